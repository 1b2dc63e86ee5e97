public import FoundationModels
internal import JSON
internal import Synchronization

extension EvaluationDataSet.Sample {
    /// A session with the tools of the sample, whose outputs are in the data set.
    ///
    /// - Parameters:
    ///   - model: The model under test.
    ///   - instructions: The instructions; nil for none.
    ///   - historyTransform: What the model receives of the history, such as with marks around the outputs of tools.
    public func session(
        on model: some LanguageModel, instructions: String?,
        historyTransform: @escaping @Sendable ([Transcript.Entry]) -> [Transcript.Entry] = { $0 }
    ) throws -> LanguageModelSession {
        let calls = CallCount()
        let tools = try (tools ?? []).map { try StaticOutputTool($0, calls) }
        if tools.isEmpty, let turns, !turns.isEmpty {
            return LanguageModelSession(model: model, transcript: Transcript(entries: earlier(turns, instructions)))
        }
        if tools.isEmpty { return LanguageModelSession(model: model, instructions: instructions) }
        return LanguageModelSession(
            profile: SampleProfile(
                model: model, instructions: instructions, tools: tools, historyTransform: historyTransform,
                requiresTool: requiresTool ?? false, calls: calls))
    }

    private func earlier(_ turns: [[String]], _ instructions: String?) -> [Transcript.Entry] {
        func text(_ content: String) -> [Transcript.Segment] { [.text(.init(content: content))] }
        var entries: [Transcript.Entry] = []
        if let instructions { entries.append(.instructions(.init(segments: text(instructions), toolDefinitions: []))) }
        for turn in turns {
            if let said = turn.first { entries.append(.prompt(.init(segments: text(said)))) }
            if turn.count > 1 { entries.append(.response(.init(assetIDs: [], segments: text(turn[1])))) }
        }
        return entries
    }
}

/// The number of tool calls of a sample.
final class CallCount: Sendable {
    private let count = Mutex(0)

    var value: Int { count.withLock { $0 } }
    func add() { count.withLock { $0 += 1 } }
}

/// The model, instructions and tools of a sample.
private struct SampleProfile<Model: LanguageModel>: LanguageModelSession.DynamicProfile {
    var model: Model
    var instructions: String?
    var tools: [StaticOutputTool]
    var historyTransform: @Sendable ([Transcript.Entry]) -> [Transcript.Entry]
    /// Whether the first round must call a tool.
    var requiresTool: Bool
    var calls: CallCount

    var body: some LanguageModelSession.DynamicProfile {
        LanguageModelSession.Profile {
            if let instructions { Instructions(instructions) }
            tools
        }
        .model(model)
        .historyTransform { [historyTransform] in historyTransform($0) }
        .toolCallingMode(requiresTool && calls.value == 0 ? .required : .allowed)
    }
}

/// A tool of a data set, with a fixed output.
struct StaticOutputTool: Tool {
    typealias Arguments = GeneratedContent
    let name: String
    let description: String
    let parameters: GenerationSchema
    private let output: String
    private let calls: CallCount

    init(_ tool: EvaluationDataSet.Sample.StaticTool, _ calls: CallCount = CallCount()) throws {
        self.calls = calls
        name = tool.name
        description = tool.description
        output = tool.output
        guard let schema = tool.parameters, schema != .null else {
            parameters = try GenerationSchema(root: DynamicGenerationSchema(name: "Arguments", properties: []), dependencies: [])
            return
        }
        if case .string(let type)? = schema["type"], type != "object" {
            throw DataProblem.Text("The parameters of the tool “\(tool.name)” must be an object, “type”: “object”")
        }
        do throws(JSONSchemaError) { parameters = try GenerationSchema(jsonSchema: schema) } catch {
            throw DataProblem.Text("The parameters of the tool “\(tool.name)” cannot be used: \(error)")
        }
    }

    func call(arguments: GeneratedContent) async throws -> String {
        calls.add()
        return output
    }
}
