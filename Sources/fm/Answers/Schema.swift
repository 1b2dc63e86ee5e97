import ArgumentParser
import Foundation
import Grammar
internal import JSON

struct Schema: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schema",
        abstract: "Check JSON Schemas, and write them.", subcommands: [Check.self, Object.self], defaultSubcommand: Check.self)

    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "check",
            abstract: "Check whether a schema can be enforced, and show an example.",
            discussion: """
                The example is written to standard output, notes on the schema to standard error: keywords that have no effect, \
                such as misspelt ones, with what to write instead, and formats that are not enforced. The exit code is 0 if the \
                schema can be used, and 5 if it is not valid, uses an unsupported feature, or cannot be satisfied.
                """)

        @Argument(help: "A JSON Schema, or - for standard input.")
        var file: String

        @Flag(help: "Write one JSON object: usable, error, notes, example, compile_ms.")
        var json = false

        func run() throws {
            let schema = try SchemaFile.read(file)
            let start = ContinuousClock.now
            let bytes = TokenVocabulary(texts: (UInt8.min...UInt8.max).map { [$0] }, endTokens: [])
            let grammar: Grammar
            do {
                grammar = try Grammar(.schema(schema), vocabulary: bytes, options: GrammarOptions(allowsZeroFraction: false))
            } catch {
                if json { try write(error: error) }
                throw error
            }
            let seconds = ContinuousClock.now - start
            let milliseconds = Double(seconds.components.attoseconds) * 1e-15 + Double(seconds.components.seconds) * 1e3
            let example = try JSONParser.parse(grammar.example())
            if json {
                let report = JSONValue.object([
                    .init("usable", .bool(true)), .init("error", .null),
                    .init("notes", .array(grammar.notes.map { .string($0) })), .init("example", example),
                    .init("compile_ms", .number(DecimalNumber(String(format: "%.3f", milliseconds)) ?? DecimalNumber(0))),
                ])
                try Output().write(report.text + "\n")
                return
            }
            for note in grammar.notes { Message.say("note: \(note).") }
            Message.say(String(format: "The schema can be used; it compiled in %.1f ms. For example:", milliseconds))
            try Output().write(example.prettyText + "\n")
        }

        private func write(error: SchemaError) throws {
            let report = JSONValue.object([
                .init("usable", .bool(false)),
                .init(
                    "error",
                    .object([
                        .init("kind", .string(error.kind.rawValue)), .init("pointer", .string(error.pointer)),
                        .init("reason", .string(error.reason)),
                    ])), .init("notes", .array([])), .init("example", .null),
            ])
            try Output().write(report.text + "\n")
        }
    }
}
