internal import Decisions
internal import Files
public import Foundation
internal import FoundationModels
internal import JSON

/// Prompts and what is expected of their answers, in a file of JSON Lines. An addition of this package.
///
/// ```swift
/// let result = try await EvaluationDataSet(contentsOf: URL(filePath: "facts.jsonl")).run(on: SystemLanguageModel.default)
/// print(EvaluationReport(result).text)
/// ```
///
/// The article <doc:Runs> has the format of the lines.
public struct EvaluationDataSet: Sendable {
    /// The name, for reports and run files.
    public let name: String
    /// The samples, in order.
    public let samples: [Sample]
    /// A hash of the file: another data set is a mistake, not an attack.
    let fingerprint: String

    /// Reads a file, whose name is that of the data set.
    ///
    /// - Throws: ``EvaluationDataError``
    public init(contentsOf url: URL) throws {
        let data: Data
        do { data = try Data(contentsOf: url) } catch {
            throw EvaluationDataError.unreadable(url, reason: error.localizedDescription)
        }
        try self.init(data, name: url.lastPathComponent)
    }

    /// Reads JSON Lines.
    ///
    /// - Throws: ``EvaluationDataError/invalidDataSet(reason:)``
    public init(_ data: Data, name: String) throws {
        if String(validating: data, as: UTF8.self) == nil { throw Self.error("\(name) is not UTF-8 text.") }
        var samples: [Sample] = []
        var ids: Set<String> = []
        let lines = data.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() where !line.allSatisfy({ $0 == 0x20 || $0 == 0x0D || $0 == 0x09 }) {
            do {
                let sample = try Sample(line: Data(line), index + 1)
                guard ids.insert(sample.id).inserted else {
                    throw DataProblem.Text("there are two samples with the id “\(sample.id)”")
                }
                samples.append(sample)
            } catch {
                throw Self.error("\(name), line \(index + 1): \(DataProblem.reason(error)).")
            }
        }
        if samples.isEmpty { throw Self.error("\(name) contains no samples.") }
        self.name = name
        self.samples = samples
        fingerprint = String(FNV.hash(data), radix: 16)
    }

    private static func error(_ reason: String) -> EvaluationDataError { .invalidDataSet(reason: reason) }

    /// Whether a sample has a minimum similarity.
    public var needsEmbedder: Bool { samples.contains { $0.similarity != nil } }

    /// A prompt and what is expected of the answer.
    public struct Sample: Sendable, Decodable {
        /// A tool whose output is always the same.
        struct StaticTool: Decodable, Sendable {
            var name: String
            var description: String
            /// A JSON Schema, whose members are written in the order in which it lists them.
            var parameters: JSONValue?
            var output: String

            enum CodingKeys: String, CodingKey { case name, description, output }
        }

        private var ownID: String?
        private var lineNumber = 0
        /// The request, without its document.
        public var prompt: String
        /// Instructions; nil for those of the run.
        public var instructions: String?
        /// What was said before the prompt: pairs of a text of the user and one of the assistant. Not for samples with tools.
        public var turns: [[String]]?
        /// Text of a document that the prompt is about.
        public var context: String?
        /// Samples of a class are counted together.
        public var `class`: String?
        /// The language of the prompt. A model that does not list it may stop the request.
        public var language: String?

        /// The answer: a text, or a JSON value for answers with a schema.
        var expected: StructuredValue?
        var contains: [String]?
        var excludes: [String]?
        var regex: String?
        /// The schema of the answer, whose members are written in the order in which it lists them.
        var schema: JSONValue?
        var tools: [StaticTool]?
        /// Whether the model must call a tool before it answers.
        var requiresTool: Bool?
        var calls: TrajectoryExpectation?
        /// The minimum cosine of the answer and `expected`.
        var similarity: Double?
        /// What a good answer is like, for the judge.
        var rubric: String?
        /// Whether the request should be declined: by the guardrails or by the model.
        var declines: Bool?
        var maxTokens: Int?
        /// A question on the prompt that is decided instead of answered, and the index of the option that is right.
        var decision: (item: DecisionForm.Item, expected: Int)?

        enum CodingKeys: String, CodingKey, CaseIterable {
            case ownID = "id"
            case prompt, instructions, turns, context, `class`, language, expected, contains, excludes, regex, tools, requiresTool
            case calls, similarity, rubric, declines, maxTokens
        }

        /// The id, or the number of the line.
        public var id: String { ownID ?? "line \(lineNumber)" }

        /// The prompt with its document.
        public var fullPrompt: String { context.map { "\(prompt)\n\n\($0)" } ?? prompt }

        fileprivate init(line: Data, _ number: Int) throws {
            // This parser says where a mistake is.
            let json = try JSONParser.parse(line)
            guard case .object = json else { throw DataProblem.Text("this is not an object, {\"prompt\": …}") }
            try DataSetKeys.check(json)
            // A byte order mark before the first line is no part of it.
            self = try JSONDecoder().decode(Self.self, from: line.starts(with: [0xEF, 0xBB, 0xBF]) ? line.dropFirst(3) : line)
            lineNumber = number
            // A decoder does not keep the order of members.
            schema = json["schema"]
            if case .array(let list)? = json["tools"] {
                // Of two keys of the same name, the decoder may have read the other one.
                for index in tools?.indices ?? 0..<0 where index < list.count {
                    tools?[index].parameters = list[index]["parameters"]
                }
            }
            if let question = json["decision"] { decision = try Self.decision(question, expected: json["expected"]) }
            try check()
        }

        private static func decision(
            _ question: JSONValue, expected: JSONValue?
        ) throws -> (item: DecisionForm.Item, expected: Int) {
            let form: DecisionForm
            do { form = try DecisionForm(list: [question]) } catch {
                let place = ["decision"] + error.place.dropFirst(2)
                throw DataProblem.Text("“\(place.joined(separator: "."))”: \(error.reason)")
            }
            let item = form.items[0]
            var values = item.values
            // A level is known by its number too.
            if case .score = item.question.kind, expected?.integer != nil {
                values = values.indices.map { .number(DecimalNumber($0)) }
            }
            guard let expected, let index = values.firstIndex(where: { $0.isEqual(to: expected) }) else {
                throw DataProblem.Text("“expected” must be one of the values that “decision” offers")
            }
            return (item, index)
        }

        /// What would fail at every run.
        private func check() throws {
            let metric = Metric("")
            if decision != nil {
                let others: [(String, Bool)] = [
                    ("contains", contains != nil), ("excludes", excludes != nil), ("regex", regex != nil),
                    ("schema", schema != nil), ("tools", tools != nil), ("similarity", similarity != nil),
                    ("rubric", rubric != nil), ("calls", calls != nil), ("declines", declines != nil),
                ]
                if let other = others.first(where: { $0.1 }) {
                    throw DataProblem.Text("“\(other.0)” is a check of answers, and “decision” has none")
                }
            }
            if let regex { _ = try RegexEvaluator<ModelSample<String>>(metric, pattern: regex) }
            if let similarity {
                if expected == nil { throw DataProblem.Text("“similarity” needs “expected”") }
                if !(-1...1).contains(similarity) { throw DataProblem.Text("“similarity” must be from -1 to 1") }
            }
            if let maxTokens, maxTokens < 1 { throw DataProblem.Text("“maxTokens” must be at least 1") }
            if let schema {
                guard case .object = schema else { throw DataProblem.Text("“schema” must be an object") }
                do {
                    _ = try JSONSchemaEvaluator<ModelSample<String>>(metric, schema: schema.text)
                } catch EvaluatorArgumentError.invalidSchema(let reason) {
                    throw DataProblem.Text("“schema” cannot be used: \(reason)")
                }
            }
            var names: Set<String> = []
            for tool in tools ?? [] {
                _ = try StaticOutputTool(tool)
                if tool.name.isEmpty || !names.insert(tool.name).inserted {
                    throw DataProblem.Text("the tool “\(tool.name)” needs a name of its own")
                }
            }
            if requiresTool == true, names.isEmpty { throw DataProblem.Text("“requiresTool” needs “tools”") }
            for call in (calls?.ordered ?? []) + (calls?.unordered ?? []) + (calls?.disallowed ?? []) {
                for case .pattern(_, let pattern) in call.arguments {
                    _ = try RegexEvaluator<ModelSample<String>>(metric, pattern: pattern)
                }
            }
        }
    }
}
