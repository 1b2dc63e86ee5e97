import EvaluationCore
import Foundation
import FoundationModels
import Safety

/// A line of a data set: a prompt and what is expected of the answer.
struct EvalSample: Codable, Sendable {
    /// A tool whose output is always the same.
    struct StaticTool: Codable, Sendable {
        var name: String
        var description: String
        var parameters: StructuredValue?
        var output: String
    }

    var id: String?
    var prompt: String
    var instructions: String?
    /// Text of a document that the prompt is about.
    var context: String?
    /// Samples of a class are counted together.
    var `class`: String?

    /// The answer: a text, or a JSON value for answers with a schema.
    var expected: StructuredValue?
    var contains: [String]?
    var excludes: [String]?
    var regex: String?
    var schema: StructuredValue?
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

    var needsEmbedder: Bool { similarity != nil }

    /// Reads a data set.
    ///
    /// - Throws: ``EvalError`` with the number of the line.
    static func read(_ data: Data, name: String) throws -> [EvalSample] {
        var samples: [EvalSample] = []
        var ids: Set<String> = []
        let lines = data.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() where !line.allSatisfy({ $0 == 0x20 || $0 == 0x0D || $0 == 0x09 }) {
            do {
                var sample = try JSONDecoder().decode(EvalSample.self, from: Data(line))
                try checkKeys(Data(line))
                try sample.check()
                let id = sample.id ?? "line \(String(format: "%05d", index + 1))"
                sample.id = id
                guard ids.insert(id).inserted else { throw EvalError("there are two samples with the id “\(id)”") }
                samples.append(sample)
            } catch {
                throw EvalError("\(name), line \(index + 1): \(EvalError.reason(error))")
            }
        }
        if samples.isEmpty { throw EvalError("\(name) contains no samples.") }
        return samples
    }

    private static let keys: Set<String> = [
        "id", "prompt", "instructions", "context", "class", "expected", "contains", "excludes", "regex", "schema", "tools",
        "requiresTool", "calls", "similarity", "rubric", "declines", "maxTokens",
    ]
    private static let callKeys: Set<String> = ["ordered", "unordered", "disallowed", "allowsAdditionalCalls"]

    /// A key that does not exist is a check that is not made.
    private static func checkKeys(_ line: Data) throws {
        guard case .dictionary(let members) = try JSONDecoder().decode(StructuredValue.self, from: line) else { return }
        var unknown = members.keys.filter { !keys.contains($0) }
        if case .dictionary(let calls)? = members["calls"] { unknown += calls.keys.filter { !callKeys.contains($0) } }
        if let key = unknown.min() { throw EvalError("there is no key “\(key)”; “fm eval --help” lists the keys") }
    }

    /// What would fail at every run.
    private func check() throws {
        if let regex, (try? Regex(regex)) == nil {  // the error of Regex has no readable text
            throw EvalError("“\(regex.prefix(60))” is not a regular expression")
        }
        if let similarity {
            if expected == nil { throw EvalError("“similarity” needs “expected”") }
            if !(-1...1).contains(similarity) { throw EvalError("“similarity” must be from -1 to 1") }
        }
        if let maxTokens, maxTokens < 1 { throw EvalError("“maxTokens” must be at least 1") }
        if let schema {
            guard case .dictionary = schema else { throw EvalError("“schema” must be an object") }
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
            for case .pattern(let name, let pattern) in call.arguments where (try? Regex(pattern)) == nil {  // as above
                throw EvalError("the pattern for “\(name)” is not a regular expression")
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
    init(_ description: String) { self.description = description }

    static func reason(_ error: any Error) -> String {
        switch error {
        case let error as EvalError: error.description
        case DecodingError.keyNotFound(let key, _): "“\(key.stringValue)” is missing"
        case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context):
            context.codingPath.isEmpty
                ? "each line must be an object, {\"prompt\": …}"
                : "“\(context.codingPath.map(\.stringValue).joined(separator: "."))” has another type: \(context.debugDescription)"
        case DecodingError.dataCorrupted(let context): context.debugDescription
        default: error.localizedDescription
        }
    }
}
