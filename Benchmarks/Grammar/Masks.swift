import ArgumentParser
import Foundation
import Grammar
import Inference
import JSON
import InstalledModels

/// A schema and valid documents as token sequences.
struct Case {
    var name: String
    var schema: JSONValue
    var documents: [[Int32]]
}

struct CaseOptions: ParsableArguments {
    @Option(help: "The GGUF file whose vocabulary is used (default: the default model).") var model: String?
    @Argument(help: "Folders or files of schemas with documents, in the format of JSON-Schema-Test-Suite.") var paths: [String]

    func load() throws -> (tokenizer: Tokenizer, texts: [[UInt8]?], cases: [Case]) {
        let tokenizer = try Tokenizer(file: try GGUFFile(path: model ?? ModelStore.defaultModelPath))
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
                guard let schema = group["schema"], case .array(let tests)? = group["tests"],
                    case .string(let name)? = group["description"]
                else { continue }
                var documents: [[Int32]] = []
                for test in tests {
                    guard let data = test["data"], case .bool(true)? = test["valid"] else { continue }
                    documents.append(tokenizer.encode(bytes: data.bytes))
                }
                let folder = URL(fileURLWithPath: file).deletingPathExtension().lastPathComponent
                // Each document is measured twice: the second pass shows the effect of caches.
                documents += documents
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

/// Takes the same measurements as grammar_peers.py, in the same format: one line of JSON per case.
struct Masks: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Measures the time of compilation and of masks along documents.")
    @OptionGroup var options: CaseOptions
    @Option(help: "Number of slowest masks to list, with the text before them.") var slowest = 0
    @Flag(inversion: .prefixedNo, help: "Prepare masks after compilation, as a session does while it begins.") var prepare = true

    func run() throws {
        let (tokenizer, texts, cases) = try options.load()
        let clock = ContinuousClock()
        let start = clock.now
        let vocabulary = TokenVocabulary(texts: texts, endTokens: [tokenizer.endOfTurn])
        vocabulary.prepareSharedMasks()
        report([
            .init("library", .string("ours")), .init("version", .string("this checkout")),
            .init("setup_ms", number((clock.now - start).microseconds / 1000)), .init("rss_mb", number(Self.residentMegabytes)),
            .init("call_overhead_us", number(0)),
        ])
        var words = [UInt32](repeating: 0, count: vocabulary.maskWords)
        var slow: [(microseconds: Double, place: String)] = []
        for item in cases {
            let start = clock.now
            let grammar: Grammar
            do { grammar = try Grammar(.schema(item.schema), vocabulary: vocabulary) } catch {
                line(item, (clock.now - start).microseconds, 0, error: "\(error)", [])
                continue
            }
            _ = grammar.matcher()
            let compile = (clock.now - start).microseconds
            let compiled = clock.now
            if prepare { grammar.prepareMasks() }
            let preparation = (clock.now - compiled).microseconds
            var documents: [JSONValue] = []
            for document in item.documents {
                var matcher = grammar.matcher()
                var times: [JSONValue] = []
                var text: [UInt8] = []
                var isAccepted = true
                for index in 0...document.count {
                    let before = clock.now
                    words.withUnsafeMutableBufferPointer { matcher.fillMask($0) }
                    let time = (clock.now - before).microseconds
                    times.append(number(time))
                    if slowest > 0 {
                        slow.append(
                            (time, "\(item.name) after \(String(decoding: text.suffix(40), as: UTF8.self).debugDescription)"))
                    }
                    let token = index < document.count ? document[index] : tokenizer.endOfTurn
                    isAccepted = words[Int(token) >> 5] >> UInt32(token & 31) & 1 == 1
                    guard isAccepted, index < document.count, matcher.advance(token: token) else { break }
                    if slowest > 0 { text += texts[Int(token)] ?? [] }
                }
                documents.append(
                    .object([
                        .init("accepted", .bool(isAccepted)), .init("mask_us", .array(times)),
                        .init("steps", .number(DecimalNumber(times.count))),
                    ]))
            }
            line(item, compile, preparation, error: nil, documents)
        }
        for item in slow.sorted(by: { $0.microseconds > $1.microseconds }).prefix(slowest) {
            FileHandle.standardError.write(Data("\(item.microseconds) us: \(item.place)\n".utf8))
        }
    }

    private func line(_ item: Case, _ microseconds: Double, _ preparation: Double, error: String?, _ documents: [JSONValue]) {
        report([
            .init("library", .string("ours")), .init("name", .string(item.name)),
            .init("compile_ms", number(microseconds / 1000)), .init("prepare_ms", number(preparation / 1000)),
            .init("error", error.map { .string($0) } ?? .null), .init("documents", .array(documents)),
            .init("rss_mb", number(Self.residentMegabytes)),
        ])
    }

    private func report(_ members: [JSONValue.Member]) {
        FileHandle.standardOutput.write(Data(JSONValue.object(members).bytes + [0x0A]))
    }

    private func number(_ value: Double) -> JSONValue {
        .number(DecimalNumber(String(format: "%.3f", value)) ?? DecimalNumber(0))
    }

    /// Resident memory of this process in megabytes; 0 on systems other than Linux, which have no /proc.
    private static var residentMegabytes: Double {
        guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8),
            let pages = Double(text.split(separator: " ")[1])
        else { return 0 }
        return pages * 4096 / 1_048_576
    }
}

extension Duration {
    var microseconds: Double { Double(components.seconds) * 1e6 + Double(components.attoseconds) * 1e-12 }
}
