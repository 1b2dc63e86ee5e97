import Foundation
import Inference
import TestSupport
import Testing

struct TokenizerTests {
    static func realTokenizer() throws -> Tokenizer { try Tokenizer(file: GGUFFile(path: DefaultModel.path)) }

    @Test func equalsLlamaCpp() throws {
        let tokenizer = try Self.realTokenizer()
        let cases = try GoldenFile.load("tokens", as: [GoldenFile.Tokens].self)
        #expect(cases.count > 500)
        for test in cases { #expect(tokenizer.encode(test.text) == test.tokens, "\(test.text.debugDescription)") }
    }

    /// Bytes that have no token in the default vocabulary. They are dropped, here as in the reference.
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

    /// With a complete byte vocabulary the round trip is exact for any bytes whatever, valid UTF-8 or not.
    @Test(arguments: PreTokenizer.allCases)
    func roundTripOfRandomBytes(pre: PreTokenizer) throws {
        var builder = TinyModel().builder()
        builder.metadata.removeAll { $0.0 == "tokenizer.ggml.pre" }
        builder.metadata.append(("tokenizer.ggml.pre", .string(pre.rawValue)))
        let file = try TemporaryFile(builder.bytes())
        let tokenizer = try Tokenizer(file: GGUFFile(path: file.path))
        var random = SeededGenerator(2)
        for _ in 0..<3000 {
            let bytes = (0..<Int.random(in: 0...80, using: &random)).map { _ -> UInt8 in
                Bool.random(using: &random)
                    ? UInt8.random(in: 0...255, using: &random)
                    : Array(" the an \r\n'sing12".utf8).randomElement(using: &random) ?? 0
            }
            #expect(tokenizer.decode(tokenizer.encode(bytes: bytes)) == bytes)
        }
    }

    @Test(arguments: [
        (PreTokenizer.gpt2, "it's 123  days\n\nx", ["it", "'s", " 123", " ", " days", "\n", "\n", "x"]),
        (.smollm, "it's 123  days", ["it", "'s", " ", "1", "2", "3", " ", " days"]),
        (.llamaBPE, "It'S 12345 (a)\n\n b", ["It", "'S", " ", "123", "45", " (", "a", ")\n\n", " b"]),
        (.qwen2, "x12 \n y", ["x", "1", "2", " \n", " y"]),
    ])
    func words(pre: PreTokenizer, text: String, expected: [String]) {
        #expect(pre.words(of: text) == expected)
    }

    @Test func controlTokensComeFromTemplatesOnly() throws {
        let tokenizer = try Self.realTokenizer()
        let end = try #require(tokenizer.vocabulary.specialToken(named: "<|im_end|>"))
        #expect(tokenizer.encode([.template("<|im_end|>")]) == [end])
        #expect(!tokenizer.encode([.user("<|im_end|>")]).contains(end))
        // Not even when a user's text and the template's meet.
        #expect(!tokenizer.encode([.template("<|im_"), .user("end|>")]).contains(end))
        #expect(tokenizer.decode(tokenizer.encode([.user("<|im_end|>")])) == Array("<|im_end|>".utf8))
    }

    /// Not a benchmark: a bound so wide that only quadratic time breaks it.
    @Test(arguments: ["a", " ", "\n", "ab", "'", "0", "é", "🙂", "the "])
    func noInputIsQuadratic(unit: String) throws {
        let tokenizer = try Self.realTokenizer()
        let text = String(repeating: unit, count: 400_000 / unit.utf8.count)
        let start = ContinuousClock.now
        #expect(tokenizer.decode(tokenizer.encode(text)) == Array(text.utf8))
        #expect(ContinuousClock.now - start < .seconds(30))
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
        // Broken sequences become replacement characters as soon as they cannot be completed.
        var broken = UTF8Assembler()
        #expect(broken.append([0xF0, 0x9F]) == "")
        #expect(broken.append([0x41]) == "\u{FFFD}A")
        #expect(broken.append([0xC3]) == "")
        #expect(broken.finish() == "\u{FFFD}")
        #expect(broken.append([0xFF, 0xED, 0xA0]) == "\u{FFFD}\u{FFFD}\u{FFFD}")
    }
}
