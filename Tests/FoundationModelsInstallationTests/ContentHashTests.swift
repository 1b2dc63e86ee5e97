import Foundation
import SHA256
import TestSupport
import Testing

@testable import FoundationModelsInstallation

/// SHA-256 (FIPS 180-4), with and without the instructions of the processor.
struct ContentHashTests {
    private static func hash(_ bytes: [UInt8], parts: Int = .max, isPortable: Bool = false) -> String {
        var context = sha256_context()
        if isPortable { sha256_begin_portable(&context) } else { sha256_begin(&context) }
        var rest = bytes[...]
        while !rest.isEmpty {
            let part = Array(rest.prefix(parts))
            sha256_add(&context, part, part.count)
            rest = rest.dropFirst(part.count)
        }
        var digest = [UInt8](repeating: 0, count: 32)
        sha256_end(&context, &digest)
        return digest.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    /// The examples of NIST.
    private static let vectors = [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
        (
            "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"
        ),
    ]

    @Test(arguments: [false, true]) func `the published examples have the published hashes`(isPortable: Bool) {
        for (text, hash) in Self.vectors { #expect(Self.hash(Array(text.utf8), isPortable: isPortable) == hash) }
        let million = [UInt8](repeating: 0x61, count: 1_000_000)
        #expect(
            Self.hash(million, isPortable: isPortable) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
    }

    @Test func `the parts of a content and the instructions of the processor do not matter`() {
        var random = SeededGenerator(3)
        let bytes = (0..<300).map { _ in UInt8.random(in: 0...255, using: &random) }
        for count in [0, 1, 54, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128, 129, 300] {
            let content = Array(bytes.prefix(count))
            let expected = Self.hash(content, isPortable: true)
            for parts in [1, 7, 63, 64, 65, 300] {
                #expect(Self.hash(content, parts: parts) == expected)
                #expect(Self.hash(content, parts: parts, isPortable: true) == expected)
            }
        }
    }

    @Test func `a file is hashed up to a limit`() throws {
        let file = try TemporaryFile(Array("abcdef".utf8))
        var hash = ContentHash()
        #expect(try hash.add(URL(filePath: file.path), limit: 3) { _ in } == 3)
        #expect(hash.text == Self.vectors[1].1)
    }
}
