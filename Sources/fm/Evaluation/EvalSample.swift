import EvaluationCore
import Foundation
import FoundationModels
import Safety
internal import JSON

/// A line of a data set: a prompt and what is expected of the answer.
struct EvalSample: Decodable, Sendable {
    /// A tool whose output is always the same.
    struct StaticTool: Decodable, Sendable {
        var name: String
        var description: String
        /// A JSON Schema, whose members are written in the order in which it lists them.
        var parameters: JSONValue?
        var output: String

        enum CodingKeys: String, CodingKey { case name, description, output }
    }

    var id: String?
    var prompt: String
    var instructions: String?
    /// Text of a document that the prompt is about.
    var context: String?
    /// Samples of a class are counted together.
    var `class`: String?
    /// The language of the prompt. A model that does not list it may stop the request.
    var language: String?

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

    enum CodingKeys: String, CodingKey, CaseIterable {
        case id, prompt, instructions, context, `class`, language, expected, contains, excludes, regex, tools, requiresTool, calls
        case similarity, rubric, declines, maxTokens
    }

    var needsEmbedder: Bool { similarity != nil }

    /// Reads a data set.
    ///
    /// - Throws: ``EvalError`` with the number of the line.
    static func read(_ data: Data, name: String) throws -> [EvalSample] {
        if String(validating: data, as: UTF8.self) == nil { throw EvalError("\(name) is not UTF-8 text.") }
        var samples: [EvalSample] = []
        var ids: Set<String> = []
        let lines = data.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() where !line.allSatisfy({ $0 == 0x20 || $0 == 0x0D || $0 == 0x09 }) {
            do {
                var sample = try sample(Data(line))
                let id = sample.id ?? "line \(index + 1)"
                sample.id = id
                guard ids.insert(id).inserted else { throw EvalError("there are two samples with the id “\(id)”") }
                samples.append(sample)
            } catch {
                throw EvalError("\(name), line \(index + 1): \(EvalError.reason(error)).")
            }
        }
        if samples.isEmpty { throw EvalError("\(name) contains no samples.") }
        return samples
    }

    /// Whether the id is the number of the line, which another version of the data set may have for another sample.
    static func isGenerated(id: String) -> Bool { id.hasPrefix("line ") && id.dropFirst("line ".count).allSatisfy(\.isNumber) }

    private static func sample(_ line: Data) throws -> EvalSample {
        // This parser says where a mistake is.
        let json = try JSONParser.parse(line)
        guard case .object = json else { throw EvalError("this is not an object, {\"prompt\": …}") }
        try EvalKeys.check(json)
        var sample = try JSONDecoder().decode(EvalSample.self, from: line)
        // A decoder does not keep the order of members.
        sample.schema = json["schema"]
        if case .array(let tools)? = json["tools"] {
            // Of two keys of the same name, the decoder may have read the other one.
            for index in sample.tools?.indices ?? 0..<0 where index < tools.count {
                sample.tools?[index].parameters = tools[index]["parameters"]
            }
        }
        try sample.check()
        return sample
    }

    /// What would fail at every run.
    private func check() throws {
        let metric = Metric("")
        if let regex { _ = try RegexEvaluator<ModelSample<String>>(metric, pattern: regex) }
        if let similarity {
            if expected == nil { throw EvalError("“similarity” needs “expected”") }
            if !(-1...1).contains(similarity) { throw EvalError("“similarity” must be from -1 to 1") }
        }
        if let maxTokens, maxTokens < 1 { throw EvalError("“maxTokens” must be at least 1") }
        if let schema {
            guard case .object = schema else { throw EvalError("“schema” must be an object") }
            do {
                _ = try JSONSchemaEvaluator<ModelSample<String>>(metric, schema: schema.text)
            } catch EvaluatorArgumentError.invalidSchema(let reason) {
                throw EvalError("“schema” cannot be used: \(reason)")
            }
        }
        var names: Set<String> = []
        for tool in tools ?? [] {
            _ = try EvalTool(tool)
            if tool.name.isEmpty || !names.insert(tool.name).inserted {
                throw EvalError("the tool “\(tool.name)” needs a name of its own")
            }
        }
        if requiresTool == true, names.isEmpty { throw EvalError("“requiresTool” needs “tools”") }
        for call in (calls?.ordered ?? []) + (calls?.unordered ?? []) + (calls?.disallowed ?? []) {
            for case .pattern(_, let pattern) in call.arguments {
                _ = try RegexEvaluator<ModelSample<String>>(metric, pattern: pattern)
            }
        }
    }

    /// The prompt with its document, which may be marked as data.
    func fullPrompt(_ spotlighting: Spotlighting? = nil) -> String {
        guard let context else { return prompt }
        return spotlighting?.prompt(prompt, about: context) ?? "\(prompt)\n\n\(context)"
    }
}

/// What is wrong with a data set or a run, for people.
struct EvalError: Error, CustomStringConvertible {
    var description: String
    /// The exit code of the command: 64 for wrong usage or data, 1 for other failures.
    var code: Int32

    init(_ description: String, code: Int32 = 64) { (self.description, self.code) = (description, code) }

    /// A part of a sentence, without a full stop.
    static func reason(_ error: any Error) -> String {
        let reason =
            switch error {
            case let error as EvalError: error.description
            case let error as JSONSyntaxError: "not valid JSON at column \(error.column): \(error.reason)"
            case DecodingError.keyNotFound(let key, let context): "“\(place(context.codingPath + [key]))” is missing"
            case DecodingError.typeMismatch(let type, let context), DecodingError.valueNotFound(let type, let context):
                (context.codingPath.isEmpty ? "this" : "“\(place(context.codingPath))”") + " must be \(words(for: type))"
            case DecodingError.dataCorrupted(let context): context.debugDescription
            default: error.localizedDescription
            }
        return reason.hasSuffix(".") ? String(reason.dropLast()) : reason
    }

    private static func words(for type: any Any.Type) -> String {
        switch "\(type)" {
        case "String": "a text"
        case "Bool": "true or false"
        case "Int", "UInt64", "Double": "a number"
        case let name where name.hasPrefix("Array"): "a list"
        default: "an object"
        }
    }

    /// Where a value is: calls.ordered[0].name
    private static func place(_ path: [any CodingKey]) -> String {
        path.reduce("") { place, key in
            key.intValue.map { "\(place)[\($0)]" } ?? (place.isEmpty ? key.stringValue : "\(place).\(key.stringValue)")
        }
    }
}
