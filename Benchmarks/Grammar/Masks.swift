import ArgumentParser
import Foundation
import Grammar
import Inference

/// Schemas with documents as tokens.
struct Case {
    var name: String
    var schema: JSONValue
    var documents: [[Int32]]
}

struct CaseOptions: ParsableArguments {
    @Option(help: "The model whose vocabulary is used, a GGUF file.") var model: String
    @Option(help: "A number of random tokens to add, for a larger vocabulary.") var padTo = 0
    @Argument(help: "Folders or files of schemas with documents, in the form of JSON-Schema-Test-Suite.") var paths: [String]

    func load() throws -> (tokenizer: Tokenizer, texts: [[UInt8]?], cases: [Case]) {
        let tokenizer = try Tokenizer(file: try GGUFFile(path: model))
        let vocabulary = TokenVocabulary(tokenizer)
        var cases: [Case] = []
        var files: [String] = []
        for path in paths {
            var isFolder: ObjCBool = false
            _ = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
            if isFolder.boolValue {
                files += try FileManager.default.contentsOfDirectory(atPath: path).sorted().map { path + "/" + $0 }
            } else {
                files.append(path)
            }
        }
        for file in files where file.hasSuffix(".json") {
            guard case .array(let groups) = try JSONParser.parse(Data(contentsOf: URL(fileURLWithPath: file))) else { continue }
            for group in groups {
                guard let schema = group["schema"], case .array(let tests)? = group["tests"], case .string(let name)? = group["description"] else { continue }
                var documents: [[Int32]] = []
                for test in tests {
                    guard let data = test["data"], case .bool(true)? = test["valid"] else { continue }
                    documents.append(tokenizer.encode(bytes: data.bytes))
                }
                let folder = URL(fileURLWithPath: file).deletingPathExtension().lastPathComponent
                if !documents.isEmpty { cases.append(Case(name: folder + ": " + name, schema: schema, documents: documents)) }
            }
        }
        return (tokenizer, vocabulary.texts, cases)
    }
}

struct Export: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Writes the input of grammar_peers.py.")
    @OptionGroup var options: CaseOptions

    func run() throws {
        let (tokenizer, texts, cases) = try options.load()
        let tokens = texts.map { text -> JSONValue in
            guard let text else { return .null }
            return .string(text.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined())
        }
        let list = cases.map { item in
            JSONValue.object([
                .init("name", .string(item.name)), .init("schema", item.schema),
                .init("documents", .array(item.documents.map { .array($0.map { .number(DecimalNumber(Int($0))) }) })),
            ])
        }
        print(
            JSONValue.object([
                .init("tokens", .array(tokens)), .init("eos", .number(DecimalNumber(Int(tokenizer.endOfTurn)))),
                .init("cases", .array(list)),
            ]).text)
    }
}

struct Masks: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Times compilation and masks along documents.")
    @OptionGroup var options: CaseOptions
    @Flag var verbose = false
    @Flag(help: "One line of JSON for each case.") var json = false

    func run() throws {
        let (_, texts, cases) = try options.load()
        let clock = ContinuousClock()
        let start = clock.now
        let vocabulary = TokenVocabulary(texts: texts, endTokens: [2])
        print("vocabulary \(vocabulary.count) tokens, \((clock.now - start).microseconds / 1000) ms")
        var words = [UInt32](repeating: 0, count: vocabulary.maskWords)
        var compiles: [Double] = []
        var masks: [(us: Double, name: String, prefix: String)] = []
        var advances: [Double] = []
        var failures = 0
        var rejected = 0
        let total = clock.now
        for item in cases {
            let start = clock.now
            let grammar: Grammar
            do { grammar = try Grammar(.schema(item.schema), vocabulary: vocabulary) } catch {
                failures += 1
                continue
            }
            compiles.append((clock.now - start).microseconds / 1000)
            for document in item.documents {
                var matcher = grammar.matcher()
                var prefix: [UInt8] = []
                for index in 0...document.count {
                    let before = clock.now
                    words.withUnsafeMutableBufferPointer { matcher.fillMask($0) }
                    let after = clock.now
                    masks.append(((after - before).microseconds, item.name, verbose ? String(decoding: prefix.suffix(40), as: UTF8.self) : ""))
                    guard index < document.count else { break }
                    let token = document[index]
                    guard words[Int(token) >> 5] >> UInt32(token & 31) & 1 == 1, matcher.advance(token: token) else {
                        rejected += 1
                        print("REJECTED \(item.name): after \(String(decoding: prefix, as: UTF8.self).suffix(80))")
                        break
                    }
                    advances.append((clock.now - after).microseconds)
                    if verbose { prefix += texts[Int(token)] ?? [] }
                }
            }
        }
        print("total", (clock.now - total).microseconds / 1e6, "s; failures", failures, "rejected documents", rejected)
        summarize("compile ms", compiles)
        summarize("mask us", masks.map(\.us))
        summarize("advance us", advances)
        if verbose {
            for item in masks.sorted(by: { $0.us > $1.us }).prefix(60) { print(item.us, item.name, "after", item.prefix.debugDescription) }
        }
    }

    func summarize(_ name: String, _ values: [Double]) {
        let sorted = values.sorted()
        guard !sorted.isEmpty else { return }
        func at(_ share: Double) -> Double { sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))] }
        print(name, "n", sorted.count, "p50", at(0.5), "mean", sorted.reduce(0, +) / Double(sorted.count), "p90", at(0.9), "p99", at(0.99), "max", sorted.last ?? 0)
    }
}

extension Duration {
    var microseconds: Double { Double(components.seconds) * 1e6 + Double(components.attoseconds) * 1e-12 }
}
