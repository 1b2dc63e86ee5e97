import Foundation
import FoundationModels
import Grammar
internal import JSON

/// The schema of the answer to a sample.
enum EvalSchema {
    private static let bytes = TokenVocabulary(texts: (UInt8.min...UInt8.max).map { [$0] }, endTokens: [])

    /// - Throws: ``EvalError`` if answers cannot be held to the schema.
    static func check(_ schema: JSONValue) throws {
        let format = ResponseFormat(.schema(schema))
        do { _ = try Grammar(format.source, vocabulary: bytes, options: format.options) } catch {
            throw EvalError("“schema” cannot be used: \(error)")
        }
    }

    /// What is wrong with an answer; nil if it conforms to the schema. The members of objects must be in the order in which the
    /// schema lists them, which is that of all answers with a schema.
    static func problem(with text: String, _ schema: JSONValue) throws -> String? {
        let answer: JSONValue
        do { answer = try JSONParser.parse(text) } catch { return "The answer is not JSON. \(error)" }
        var matcher = try Grammar(.schema(schema), vocabulary: bytes).matcher()
        var read: [UInt8] = []
        for byte in answer.bytes {
            guard matcher.advance([byte]) else {
                let end = String(decoding: read.suffix(40), as: UTF8.self)
                return "The answer does not conform to the schema after “\(end)”."
            }
            read.append(byte)
        }
        return matcher.isComplete ? nil : "The answer ends before it conforms to the schema."
    }
}
