import Foundation
import Inference
import TestSupport
import Testing

struct TokenizerTests {
    static func realTokenizer() throws -> Tokenizer { try Tokenizer(file: GGUFFile(path: SmallModel.path)) }

    @Test func equalsLlamaCpp() throws {
        let tokenizer = try Self.realTokenizer()
        let cases = try GoldenFile.load("tokens", as: [GoldenFile.Tokens].self)
        #expect(cases.count > 500)
        for test in cases { #expect(tokenizer.encode(test.text) == test.tokens, "\(test.text.debugDescription)") }
    }

    /// Bytes without a token in the model's vocabulary. They are omitted, as in the reference implementation.
    static func missingBytes(_ tokenizer: Tokenizer) -> Set<UInt8> {
        Set((0...255).filter { tokenizer.encode(bytes: [UInt8($0)]).isEmpty }.map { UInt8($0) })
    }

    @Test func missingBytesAreOnlyControlsAndInvalidOnes() throws {
        let missing = Self.missingBytes(try Self.realTokenizer())
        for byte in missing { #expect(byte < 0x20 || byte == 0x7F || byte >= 0xC0, "\(byte)") }
        #expect(missing.isDisjoint(with: [0x09, 0x0A, 0x0D]))
    }

    @Test func roundTripOfRandomText() throws {
        let tokenizer = try Self.realTokenizer()
        let missing = Self.missingBytes(tokenizer)
        var random = SeededGenerator(1)
        for _ in 0..<2000 {
            let scalars = (0..<Int.random(in: 0...60, using: &random)).compactMap { _ -> Unicode.Scalar? in
                let range: ClosedRange<UInt32> = [
                    0x20...0x7E, 0xA0...0x24F, 0x370...0x3000, 0x3040...0x9FFF, 0x1F300...0x1FAFF, 0...0x10FFFF,
                ][
                    Int.random(in: 0..<6, using: &random)]
                return Unicode.Scalar(UInt32.random(in: range, using: &random))
            }
            let text = String(String.UnicodeScalarView(scalars))
            let expected = Array(text.utf8).filter { !missing.contains($0) }
            #expect(tokenizer.decode(tokenizer.encode(text)) == expected)
        }
    }

    /// With a complete byte vocabulary, decoding restores any bytes exactly, valid UTF-8 or not.
    @Test(arguments: PreTokenizer.names)
    func roundTripOfRandomBytes(pre: String) throws {
        var builder = TinyModel().builder()
        builder.metadata.removeAll { $0.0 == "tokenizer.ggml.pre" }
        builder.metadata.append(("tokenizer.ggml.pre", .string(pre)))
        let file = try TemporaryFile(builder.bytes())
        let tokenizer = try Tokenizer(file: GGUFFile(path: file.path))
        var random = SeededGenerator(2)
        for _ in 0..<300 {
            let bytes = (0..<Int.random(in: 0...80, using: &random)).map { _ -> UInt8 in
                Bool.random(using: &random)
                    ? UInt8.random(in: 0...255, using: &random)
                    : Array(" the an \r\n'sing12".utf8).randomElement(using: &random) ?? 0
            }
            #expect(tokenizer.decode(tokenizer.encode(bytes: bytes)) == bytes)
        }
    }

    @Test(arguments: [
        ("gpt-2", "it's 123  days\n\nx", ["it", "'s", " 123", " ", " days", "\n", "\n", "x"]),
        ("smollm", "it's 123  days", ["it", "'s", " ", "1", "2", "3", " ", " days"]),
        ("llama-bpe", "It'S 12345 (a)\n\n b", ["It", "'S", " ", "123", "45", " (", "a", ")\n\n", " b"]),
        ("gpt-4o", "HelloWORLD it's 1234 ok\n", ["Hello", "WORLD", " it's", " ", "123", "4", " ok", "\n"]),
        ("deepseek-v3", "日本語 is 12345.", ["日本語", " is", " ", "123", "45", "."]),
        ("default", "a=1234 b", ["a", "=", "123", "4", " b"]),
        ("qwen2", "x12 \n y", ["x", "1", "2", " \n", " y"]),
    ])
    func words(pre: String, text: String, expected: [String]) throws {
        #expect(try PreTokenizer(name: pre).words(of: text) == expected)
    }

    @Test func controlTokensComeFromTemplatesOnly() throws {
        let tokenizer = try Self.realTokenizer()
        let end = try #require(tokenizer.vocabulary.specialToken(named: "<|im_end|>"))
        #expect(tokenizer.encode([.template("<|im_end|>")]) == [end])
        #expect(!tokenizer.encode([.user("<|im_end|>")]).contains(end))
        // Not even across the boundary between the template's and the user's text.
        #expect(!tokenizer.encode([.template("<|im_"), .user("end|>")]).contains(end))
        #expect(tokenizer.decode(tokenizer.encode([.user("<|im_end|>")])) == Array("<|im_end|>".utf8))
    }

    @Test(arguments: ["a", " ", "\n", "ab", "'", "0", "é", "🙂", "the "])
    func noInputIsQuadratic(unit: String) throws {
        let tokenizer = try Self.realTokenizer()
        let ratio = Linearity.ratio(40_000, minimum: .zero) { bytes in
            let text = String(repeating: unit, count: bytes / unit.utf8.count)
            #expect(tokenizer.decode(tokenizer.encode(text)) == Array(text.utf8))
        }
        #expect(ratio < Linearity.limit)
    }

    /// Eight times the text takes at most about eight times as many steps, with every pre-tokenizer.
    @Test(arguments: PreTokenizer.names) func noPatternIsQuadratic(name: String) throws {
        let preTokenizer = try PreTokenizer(name: name)
        for unit in [
            "漢", "ก", "م", "é", "a", "A", "Aa", "ǅ", "1", "١", " ", "\n", "'", "'s", "!", "🙂", "e\u{301}", "\u{301}", "漢's",
        ] {
            for ending in ["", "1", "a", "漢", "!", "'s"] {
                func steps(_ count: Int) -> Int { preTokenizer.steps(for: String(repeating: unit, count: count) + ending) }
                #expect(steps(1_600) <= 10 * steps(200), "\(unit) \(ending)")
            }
        }
    }

    /// A contraction belongs to the word before it, also after letters without case and after marks.
    @Test func contractionsOfCasedPatterns() throws {
        let words = try PreTokenizer(name: "gpt-4o").words(of: "It's 漢字's e\u{301}'LL DON'T'S x'y ''s")
        #expect(words == ["It's", " 漢字's", " e\u{301}'LL", " DON'T", "'S", " x", "'y", " ''", "s"])
    }

    @Test func assemblerNeverEmitsHalfACharacter() {
        let text = "aé漢🙂 e\u{301} 👩‍👩‍👧 \u{FFFD}"
        var assembler = UTF8Assembler()
        var result = ""
        for byte in text.utf8 {
            let piece = assembler.append([byte])
            result += piece
            #expect(!piece.contains("\u{FFFD}") || text.contains("\u{FFFD}"))
        }
        #expect(result + assembler.finish() == text)
        // Invalid sequences become replacement characters as soon as they cannot be completed.
        var broken = UTF8Assembler()
        #expect(broken.append([0xF0, 0x9F]) == "")
        #expect(broken.append([0x41]) == "\u{FFFD}A")
        #expect(broken.append([0xC3]) == "")
        #expect(broken.finish() == "\u{FFFD}")
        #expect(broken.append([0xFF, 0xED, 0xA0]) == "\u{FFFD}\u{FFFD}\u{FFFD}")
    }

    /// Tokenizers of encoder models with invalid metadata result in an error or in tokens, never in a trap.
    @Test(arguments: ["bert", "t5"]) func damagedEncoderVocabularies(model: String) throws {
        var random = SeededGenerator(9)
        let texts = [
            "", "hello wörld", "\u{2581}\u{2581}", String(repeating: "ab", count: 500), "你好 \u{FFFD}\u{0}\u{1F}", "  a  ",
        ]
        var accepted = 0
        for round in 0..<400 {
            var builder = GGUFBuilder()
            let tokens = ["[PAD]", "\u{2581}hel", "lo", "\u{2581}w", "o", "", "r", "\u{2581}", "a", "b", "\u{2581}你"]
            var charsmap = (0..<Int.random(in: 0...80, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
            if charsmap.count > 4 { charsmap.replaceSubrange(0..<4, with: [UInt8(charsmap.count / 8 * 4), 0, 0, 0]) }
            builder.metadata = [
                ("tokenizer.ggml.model", .string(model)), ("tokenizer.ggml.tokens", .strings(tokens)),
                (
                    "tokenizer.ggml.scores",
                    .float32s(tokens.map { _ in [-1, 0, .nan, -.infinity, .infinity].randomElement(using: &random) ?? 0 })
                ),
                ("tokenizer.ggml.token_type", .int32s(tokens.map { _ in .random(in: 1...6, using: &random) })),
                ("tokenizer.ggml.remove_extra_whitespaces", .bool(round % 2 == 0)),
                ("tokenizer.ggml.precompiled_charsmap", .bytes(charsmap)),
            ]
            if round % 3 == 0 { builder.metadata.append(("tokenizer.ggml.unknown_token_id", .uint32(UInt32(round % 12)))) }
            let file = try TemporaryFile(builder.bytes())
            // With typed throws, a file can only be rejected with a ModelError.
            guard let tokenizer = try? Tokenizer(file: GGUFFile(path: file.path)) else { continue }  // rejected: allowed
            accepted += 1
            for text in texts {
                let encoded = tokenizer.encode([.user(text)], addsBoundaryTokens: true)
                #expect(encoded.count <= text.utf8.count * 4 + 2 && encoded.allSatisfy { $0 >= 0 && $0 < tokens.count })
            }
            _ = tokenizer.encode(bytes: (0..<100).map { _ in UInt8.random(in: 0...255, using: &random) })
        }
        #expect(accepted > 100)
    }
}
