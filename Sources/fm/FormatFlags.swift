import ArgumentParser
import Foundation
import FoundationModels
import Grammar

/// The flags that say what an answer must be.
struct FormatFlags: ParsableArguments {
    @Option(help: ArgumentHelp("Answer with a JSON document that this JSON Schema accepts.", valueName: "file"))
    var schema: String?

    @Option(
        help: ArgumentHelp("Answer with a text in which this regular expression is found; ^ and $ anchor it.", valueName: "regex")
    )
    var pattern: String?

    @Option(help: ArgumentHelp("Answer with this text, or another one given so.", valueName: "text"))
    var choice: [String] = []

    @Flag(help: "Write JSON with line breaks and indentation.")
    var pretty = false

    @Flag(help: "Let the model write the members of objects in any order, instead of the order of the schema.")
    var anyOrder = false

    @Flag(inversion: .prefixedNo, help: "Tell the model what is asked for, besides holding it to it.")
    var describe = true

    func validate() throws {
        let count = (schema == nil ? 0 : 1) + (pattern == nil ? 0 : 1) + (choice.isEmpty ? 0 : 1)
        if count > 1 { throw ValidationError("Give one of --schema, --pattern and --choice.") }
        if pretty, schema == nil { throw ValidationError("--pretty goes with --schema.") }
        if anyOrder, schema == nil { throw ValidationError("--any-order goes with --schema.") }
    }

    /// - Throws: an exit code after saying why, if there is no such schema.
    func responseFormat() throws -> ResponseFormat? {
        let options = GrammarOptions(isPretty: pretty, allowsZeroFraction: false, membersInAnyOrder: anyOrder)
        if let schema { return ResponseFormat(.schema(try SchemaFile.read(schema)), options: options) }
        if let pattern { return ResponseFormat(.pattern(pattern), options: options) }
        return choice.isEmpty ? nil : ResponseFormat(.texts(choice), options: options)
    }

    /// What to add to a prompt, so that the model knows what it is held to.
    func request(for format: ResponseFormat?) -> String? {
        guard describe, let format else { return nil }
        return switch format.source {
        case .schema(let schema): "Answer with JSON for this schema:\n\(schema.text)"
        case .texts(let texts): "Answer with one of: \(texts.joined(separator: ", "))."
        case .pattern, .tools, .framed: nil
        }
    }
}

enum SchemaFile {
    /// The JSON in a file, or in standard input if it is called “-”.
    static func read(_ path: String) throws -> JSONValue {
        do {
            // A handle also reads pipes.
            guard let file = path == "-" ? FileHandle.standardInput : FileHandle(forReadingAtPath: path) else {
                throw fail("Cannot read \(path): there is no such file, or it may not be read.")
            }
            return try JSONParser.parse(try file.readToEnd() ?? Data())
        } catch let error as JSONSyntaxError {
            throw fail("\(path): \(error)")
        } catch let code as ExitCode {
            throw code
        } catch {
            throw fail("Cannot read \(path): \(error.localizedDescription)")
        }
    }

    /// Says what is wrong with a schema, and gives the exit code for it.
    static func fail(_ message: String) -> ExitCode {
        FileHandle.standardError.write(Data("fm: \(message)\n".utf8))
        return ExitCode(5)
    }
}
