import ArgumentParser
import Foundation
import FoundationModels
import Grammar
import ModelPrompts
internal import JSON

/// The flags that set the format of an answer.
struct FormatFlags: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Answer with a JSON document that conforms to this JSON Schema: a file, or the schema itself.", valueName: "schema"))
    var schema: String?

    @Option(
        help: ArgumentHelp("Answer with a text in which this regular expression matches; ^ and $ anchor it.", valueName: "regex")
    )
    var pattern: String?

    @Option(help: ArgumentHelp("Answer with this text. Can be repeated: the answer is one of the texts.", valueName: "text"))
    var choice: [String] = []

    @Flag(help: "Write JSON with line breaks and indentation.")
    var pretty = false

    @Flag(help: "Let the model write the members of objects in any order, instead of the order of the schema.")
    var anyOrder = false

    @Flag(inversion: .prefixedNo, help: "Describe the format in the prompt, in addition to enforcing it.")
    var describe = true

    func validate() throws {
        let count = (schema == nil ? 0 : 1) + (pattern == nil ? 0 : 1) + (choice.isEmpty ? 0 : 1)
        if count > 1 { throw ValidationError("Give one of --schema, --pattern and --choice.") }
        if pretty, schema == nil { throw ValidationError("--pretty requires --schema.") }
        if anyOrder, schema == nil { throw ValidationError("--any-order requires --schema.") }
    }

    /// - Throws: ``CommandFailure`` if the schema cannot be read.
    func responseFormat() throws -> ResponseFormat? {
        let options = GrammarOptions(
            isPretty: pretty, isSpaced: true, allowsZeroFraction: false, membersInAnyOrder: anyOrder)
        if let schema { return ResponseFormat(.schema(try SchemaFile.read(schema)), options: options) }
        if let pattern { return ResponseFormat(.pattern(pattern), options: options) }
        return choice.isEmpty ? nil : ResponseFormat(.texts(choice), options: options)
    }

    /// A description of the format to append to a prompt; nil if there is none.
    func request(for format: ResponseFormat?) -> String? {
        guard describe, let format else { return nil }
        return switch format.source {
        case .schema(let schema): SchemaDescription.request(for: schema)
        case .texts(let texts): "Answer with one of: \(texts.joined(separator: ", "))."
        case .pattern, .tools, .framed: nil
        }
    }
}

enum SchemaFile {
    /// The JSON of a file, of standard input if the path is “-”, or of the argument itself if it begins with “{”.
    static func read(_ path: String) throws -> JSONValue {
        do {
            // The schema itself.
            if path.drop(while: \.isWhitespace).hasPrefix("{") { return try JSONParser.parse(path) }
            return try JSONParser.parse(try TextFile.data(path))
        } catch let error as JSONSyntaxError {
            throw CommandFailure("\(path): \(error)", code: .unusableSchema)
        } catch {
            throw CommandFailure("\(error)", code: .unusableSchema)
        }
    }
}
