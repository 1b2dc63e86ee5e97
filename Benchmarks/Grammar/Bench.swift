import ArgumentParser
import Foundation
import Grammar
import JSON

/// Measures and tests constrained decoding; see Benchmarks/grammar and Tests/Tools/fuzz_grammar.py.
@main
struct Bench: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "grammar-bench", abstract: "Measures and tests constrained decoding.",
        subcommands: [Masks.self, Export.self, Probe.self, Verdicts.self])
}

struct Verdicts: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Compares which documents are accepted with the expected results in test files.")

    @Argument(help: "A folder of files in the format of JSON-Schema-Test-Suite.") var folder: String

    func run() throws {
        let vocabulary = TokenVocabulary(texts: (UInt8.min...UInt8.max).map { [$0] } + [nil], endTokens: [256])
        var counts = (schemas: 0, compiled: 0, valid: 0, invalid: 0, refused: 0, letThrough: 0)
        for file in try FileManager.default.contentsOfDirectory(atPath: folder).sorted() where file.hasSuffix(".json") {
            let data = try Data(contentsOf: URL(fileURLWithPath: folder + "/" + file))
            guard case .array(let groups) = try JSONParser.parse(data) else { continue }
            for group in groups {
                guard let schema = group["schema"], case .array(let tests)? = group["tests"],
                    case .string(let name)? = group["description"]
                else { continue }
                counts.schemas += 1
                let grammar: Grammar
                do { grammar = try Grammar(.schema(schema), vocabulary: vocabulary) } catch {
                    print("not compiled: \(file): \(name): \(error)")
                    continue
                }
                counts.compiled += 1
                for test in tests {
                    guard let document = test["data"], case .bool(let isValid)? = test["valid"] else { continue }
                    var matcher = grammar.matcher()
                    let isAccepted = matcher.advance(document.bytes) && matcher.isComplete
                    if isValid { counts.valid += 1 } else { counts.invalid += 1 }
                    if isValid == isAccepted { continue }
                    if isValid { counts.refused += 1 } else { counts.letThrough += 1 }
                    print("\(isValid ? "wrongly rejected" : "wrongly accepted"): \(file): \(name): \(document.text.prefix(200))")
                }
            }
        }
        print(
            "\(counts.compiled) of \(counts.schemas) schemas compile; \(counts.refused) of \(counts.valid) valid documents are"
                + " rejected, \(counts.letThrough) of \(counts.invalid) invalid documents are accepted")
    }
}
