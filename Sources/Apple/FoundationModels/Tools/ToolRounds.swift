internal import Tracing

/// Runs the tool calls of one request: concurrently within a round, for a limited number of rounds.
struct ToolRounds {
    /// The maximum number of rounds.
    private static let maximumCount = 16

    /// The maximum number of consecutive rounds with identical calls and outputs, for models that repeat calls.
    private static let maximumRepetition = 3

    /// Whether the model is one that may repeat the same calls until the limit of rounds.
    var stopsRepeatedCalls = false
    private var count = 0
    /// The calls and outputs of the last round; `repetition` counts the consecutive rounds with these.
    private var last: [Exchange] = []
    private var repetition = 0

    fileprivate struct Exchange: Equatable {
        private let call: String
        private let output: String

        init(_ call: Transcript.ToolCall, _ output: Transcript.ToolOutput) {
            self.call = "\(call.toolName) \(call.arguments.jsonString)"
            self.output = output.segments.modelText
        }
    }

    /// Whether calls have been made.
    var hasRun: Bool { count > 0 }

    /// Whether the limit of rounds or of identical rounds is reached.
    var isExhausted: Bool { stopsRepeatedCalls && repetition >= Self.maximumRepetition || count >= Self.maximumCount }

    /// Runs calls and returns their outputs in order. A repeated call runs again, because it may return something
    /// else, such as the next page of a list.
    ///
    /// - Throws: ``LanguageModelSession/ToolCallError`` of the first call that fails, or an error that a callback
    ///   throws.
    mutating func run(
        _ calls: [Transcript.ToolCall], tools: [any Tool], callbacks: ProfileCallbacks
    ) async throws -> [Transcript.ToolOutput] {
        count += 1
        for call in calls { for callback in callbacks.onToolCall { try await callback(call) } }
        var made: [Int: [Transcript.Segment]] = [:]
        try await withThrowingTaskGroup(of: (Int, [Transcript.Segment]).self) { group in
            for (index, call) in calls.enumerated() {
                guard let tool = tools.first(where: { $0.name == call.toolName }) else {
                    throw LanguageModelSession.ToolCallError(
                        tool: UnknownTool(name: call.toolName), underlyingError: UnknownTool.NotFound(name: call.toolName))
                }
                group.addTask {
                    try await withSpan("execute_tool \(call.toolName)", ofKind: .internal) { span in
                        span.attributes["gen_ai.operation.name"] = "execute_tool"
                        span.attributes["gen_ai.tool.name"] = call.toolName
                        return (index, try await tool.segments(for: call.arguments))
                    }
                }
            }
            for try await (index, segments) in group { made[index] = segments }
        }
        var results: [Transcript.ToolOutput] = []
        for (index, call) in calls.enumerated() {
            let output = Transcript.ToolOutput(id: call.id, toolName: call.toolName, segments: made[index] ?? [])
            for callback in callbacks.onToolOutput { try await callback(call, output) }
            results.append(output)
        }
        let round = zip(calls, results).map { Exchange($0, $1) }
        repetition = round == last ? repetition + 1 : 1
        last = round
        return results
    }
}

extension Transcript {
    /// The transcript without its last round of tool calls and without tools, if the round before it had the same calls and
    /// outputs; nil otherwise.
    var withoutRepeatedCalls: Transcript? {
        /// The calls and outputs of the round before `end`, and where it begins.
        func round(before end: Int) -> (start: Int, exchanges: [ToolRounds.Exchange])? {
            var start = end
            var outputs: [ToolOutput] = []
            while start > 0, case .toolOutput(let output) = self[start - 1] {
                outputs.insert(output, at: 0)
                start -= 1
            }
            guard !outputs.isEmpty, start > 0, case .toolCalls(let calls) = self[start - 1], calls.count == outputs.count
            else { return nil }
            return (start - 1, zip(calls, outputs).map { ToolRounds.Exchange($0, $1) })
        }
        guard let last = round(before: count), let earlier = round(before: last.start), last.exchanges == earlier.exchanges
        else { return nil }
        var shortened = Transcript(entries: self[..<last.start])
        shortened.hideTools()
        return shortened
    }
}

extension Tool {
    /// Calls the tool and returns its output as segments: values as structures, prompts unchanged.
    fileprivate func segments(for arguments: GeneratedContent) async throws -> [Transcript.Segment] {
        do {
            let output = try await call(arguments: try Arguments(arguments))
            if !(output is String), let value = output as? any ConvertibleToGeneratedContent {
                let name = (value as? any Generable).map { Swift.type(of: $0).generationSchema.name } ?? "\(Output.self)"
                return [.structure(.init(schemaName: name, content: value.generatedContent))]
            }
            return output.promptRepresentation.parts.segments
        } catch let error as CancellationError where Task.isCancelled {
            throw error
        } catch {
            throw LanguageModelSession.ToolCallError(tool: self, underlyingError: error)
        }
    }
}

/// A placeholder for a tool that the model called although it does not exist.
private struct UnknownTool: Tool {
    struct NotFound: Error, CustomStringConvertible {
        let name: String
        var description: String { "There is no tool “\(name)”." }
    }

    let name: String
    let description = "A tool that does not exist."
    let parameters = GeneratedContent.generationSchema

    func call(arguments: GeneratedContent) async throws -> String { throw NotFound(name: name) }
}
