import Evaluations
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
                let id = sample.id ?? "\(samples.count + 1)"
                sample.id = id
                guard ids.insert(id).inserted else { throw EvalError("there are two samples with the id “\(id)”") }
                if let regex = sample.regex, (try? Regex(regex)) == nil {  // the error of Regex has no readable text
                    throw EvalError("“\(regex)” is not a regular expression")
                }
                if sample.similarity != nil, sample.expected == nil { throw EvalError("“similarity” needs “expected”") }
                samples.append(sample)
            } catch {
                throw EvalError("\(name), line \(index + 1): \(EvalError.reason(error))")
            }
        }
        if samples.isEmpty { throw EvalError("\(name) contains no samples.") }
        return samples
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
            "\(context.codingPath.map(\.stringValue).joined(separator: ".")): \(context.debugDescription)"
        case DecodingError.dataCorrupted(let context): context.debugDescription
        default: error.localizedDescription
        }
    }
}
