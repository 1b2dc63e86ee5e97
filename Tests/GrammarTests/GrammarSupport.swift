import Foundation
import JSON
import TestSupport

@testable import Grammar

enum Vocabularies {
    /// Every byte is a token; token 256 ends the document.
    static let bytes = TokenVocabulary(texts: (UInt8.min...UInt8.max).map { [$0] } + [nil], endTokens: [256])

    /// All bytes, and tokens across every kind of boundary in a document: quotes, commas, escapes, parts of characters.
    static let small: TokenVocabulary = {
        var texts: [[UInt8]?] = (UInt8.min...UInt8.max).map { [$0] }
        let pieces = [
            "{\"", "\":", "\":\"", "\",\"", "\"}", "\"]", "\"},", "}]", "]}", "},{\"", ",\"", "[\"", "[{\"", "{}", "[]", "[]}",
            "true",
            "false", "null", "tru", "al", "se", "nul", "10", "12", "00", "-1", "1.", ".5", "0.", "1e", "e+", "E-", "\\n", "\\\"",
            "\\u",
            "\\u00", "00e9", "\\ud83d", "\\ude00", "é", "日本", "a", "ab", "abc", "name", "na", "me\"", "me\":", "id", " the", " a",
            "  ",
            "\n", "\n  ", ": ", "\": ", ",\n", "aa\",\"", "b\":1", "b\":1}", "x", "xy", "yz\"", "zz", "-", "--", "@", ".com",
            "://",
        ]
        texts += pieces.map { Array($0.utf8) }
        // Incomplete UTF-8 sequences.
        texts += [[0xC3], [0xA9], [0xE6, 0x97], [0x97, 0xA5], [0xA5, 0x22], [0xF0, 0x9F], [0x98, 0x80]]
        // Random strings of characters that are common in documents.
        var random = TestRandom(seed: 7)
        let letters = Array("abnm\"\\{}[]:,0123456789.-etrufls é".utf8)
        for _ in 0..<250 { texts.append((0..<random.next(2...6)).map { _ in letters[random.next(0...letters.count - 1)] }) }
        texts.append(nil)
        return TokenVocabulary(texts: texts, endTokens: [Int32(texts.count - 1)])
    }()

    /// Random strings of few characters, so that the trie has large subtrees at all depths.
    static let dense: TokenVocabulary = {
        var texts = small.texts.filter { $0?.count == 1 }
        var random = TestRandom(seed: 5)
        let letters = ["a", "b", "c", "0", "1", " ", "é", "日", "😀", ",", "/", ".", "-", "\"", "\\\"", "\\n"].map {
            Array($0.utf8)
        }
        for _ in 0..<3_000 { texts.append((0..<random.next(2...6)).flatMap { _ in random.pick(letters) }) }
        texts.append(nil)
        return TokenVocabulary(texts: texts, endTokens: [Int32(texts.count - 1)])
    }()

    /// As many tokens as large models have; most of them are random.
    static func synthetic(_ count: Int) -> TokenVocabulary {
        var texts = small.texts
        var random = TestRandom(seed: 11)
        let letters = Array("abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789\",:{}[].-_/\\éü".utf8)
        while texts.count < count {
            texts.append((0..<random.next(2...9)).map { _ in letters[random.next(0...letters.count - 1)] })
        }
        return TokenVocabulary(texts: texts, endTokens: small.endTokens)
    }
}

/// A small deterministic random number generator, so that failures are reproducible.
struct TestRandom {
    private var state: UInt64

    init(seed: Int) { state = UInt64(bitPattern: Int64(seed)) &* 0x9E37_79B9_7F4A_7C15 | 1 }

    mutating func next(_ range: ClosedRange<Int>) -> Int {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return range.lowerBound + Int(state % UInt64(range.count))
    }

    mutating func pick<Element>(_ list: [Element]) -> Element { list[next(0...list.count - 1)] }
    mutating func chance(_ percent: Int) -> Bool { next(1...100) <= percent }
}

extension Grammar {
    convenience init(_ schema: String, vocabulary: TokenVocabulary = Vocabularies.bytes, options: GrammarOptions = .init()) throws
    {
        try self.init(.schema(try JSONParser.parse(schema)), vocabulary: vocabulary, options: options)
    }

    /// Whether the grammar accepts a document, byte by byte.
    func accepts(_ document: some StringProtocol) -> Bool { accepts(Array(document.utf8)) }

    func accepts(_ document: [UInt8]) -> Bool {
        var matcher = matcher()
        return matcher.advance(document) && matcher.isComplete
    }
}

extension GrammarMatcher {
    struct Refused: Error { var bytes: [UInt8] }

    /// Reads bytes; throws if they cannot follow.
    mutating func read(_ bytes: some Sequence<UInt8>) throws {
        if !advance(bytes) { throw Refused(bytes: Array(bytes)) }
    }

    /// Whether a token can follow.
    func canFollow(_ token: Int32) -> Bool {
        var copy = self
        return copy.advance(token: token)
    }

    func canFollow(_ text: String) -> Bool {
        var copy = self
        return copy.advance(text.utf8)
    }

    /// The tokens whose bits are set in the mask.
    var allowed: [Int32] {
        var words = [UInt32](repeating: 0, count: grammar.vocabulary.maskWords)
        words.withUnsafeMutableBufferPointer { fillMask($0) }
        return (0..<Int32(grammar.vocabulary.count)).filter { words[Int($0) >> 5] >> UInt32($0 & 31) & 1 == 1 }
    }
}

/// A file of schemas with documents in the format of JSON-Schema-Test-Suite.
struct SchemaFile {
    struct Group {
        var name: String
        var schema: JSONValue
        var tests: [(name: String, document: JSONValue, isValid: Bool)]
    }

    var name: String
    var groups: [Group]

    init(_ url: URL) throws {
        name = url.deletingPathExtension().lastPathComponent
        groups = []
        guard case .array(let list) = try JSONParser.parse(Data(contentsOf: url)) else { return }
        for item in list {
            guard let schema = item["schema"], case .string(let name)? = item["description"],
                case .array(let tests)? = item["tests"]
            else { continue }
            var group = Group(name: name, schema: schema, tests: [])
            for test in tests {
                guard case .string(let name)? = test["description"], let data = test["data"],
                    case .bool(let valid)? = test["valid"]
                else { continue }
                group.tests.append((name, data, valid))
            }
            groups.append(group)
        }
    }

    static func all(in folder: URL) throws -> [SchemaFile] {
        try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            .filter { $0.pathExtension == "json" }.sorted { $0.path < $1.path }.map { try SchemaFile($0) }
    }
}
