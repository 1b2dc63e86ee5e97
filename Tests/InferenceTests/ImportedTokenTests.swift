import Foundation
import Testing

@testable import Inference
@testable import ModelTools

/// Imported tokenizers against the tokenizers library on 10,000 lines; run by hand with the folder that
/// `Tests/Tools/check_import_tokens.py` has written: `FM_IMPORT_TOKENS=FOLDER ./test ImportedTokenTests`.
@Suite(.enabled(if: ProcessInfo.processInfo.environment["FM_IMPORT_TOKENS"] != nil))
struct ImportedTokenTests {
    @Test("[H1] the tokens of the tokenizers library") func equal() throws {
        let root = URL(filePath: try #require(ProcessInfo.processInfo.environment["FM_IMPORT_TOKENS"]))
        let kinds = try FileManager.default.contentsOfDirectory(atPath: root.path).sorted()
        #expect(kinds.count > 10)
        for kind in kinds where !kind.hasSuffix(".gguf") {
            let folder = root.appendingPathComponent(kind)
            let output = root.appendingPathComponent("\(kind).gguf")
            try HuggingFaceFolder(folder).write(to: output, name: kind, type: .f32)
            let tokenizer = try Tokenizer(file: try GGUFFile(path: output.path))
            let lines = try JSONDecoder().decode(
                [ImportTests.Expected.Line].self, from: Data(contentsOf: folder.appendingPathComponent("lines.json")))
            let wrong = lines.filter { tokenizer.encode($0.text) != $0.ids }
            print("\(kind): \(wrong.count) of \(lines.count) lines differ")
            for line in wrong.prefix(5) {
                print("  \(line.text.debugDescription)\n    \(tokenizer.encode(line.text))\n    \(line.ids)")
            }
            // The library strips only accents of an older Unicode version, and does not compose characters with several marks as
            // SentencePiece does.
            #expect(wrong.count <= ["wordpiece": 10, "unigram": 49][kind, default: 0], "\(kind)")
        }
    }
}
