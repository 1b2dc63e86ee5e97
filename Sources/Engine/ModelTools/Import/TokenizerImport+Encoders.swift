internal import Foundation
internal import Inference
internal import JSON

/// Tokenizers that only encoders have.
extension TokenizerImport {
    /// WordPiece: words from a table, longest first, and “##” before what continues a word.
    func wordPiece(count: Int) throws(ModelError) -> [(String, GGUFWriter.Value)] {
        guard case .object(let vocabulary)? = tokenizer["model"]?["vocab"] else { throw .missing("vocab in tokenizer.json") }
        var special: Set<String> = []
        if case .array(let added)? = tokenizer["added_tokens"] {
            special = Set(added.filter { $0["special"] != .bool(false) }.compactMap { $0["content"]?.string })
        }
        var tokens = (0..<count).map { Token(text: "[unused\($0)]", kind: .unused) }
        var ids: [String: Int] = [:]
        for (text, value) in vocabulary.map({ ($0.name, $0.value) }) {
            let id = try number(value.integer, of: text, count)
            ids[text] = id
            // GGUF marks the beginning of a word instead of its continuation. By bytes: a combining mark after “##” forms one character
            // with it.
            let isContinued = text.utf8.starts(with: "##".utf8) && text.utf8.count > 2
            tokens[id] =
                special.contains(text)
                ? Token(text: text, kind: .control)
                : Token(
                    text: isContinued ? String(decoding: text.utf8.dropFirst(2), as: UTF8.self) : "\u{2581}" + text, kind: .normal
                )
        }
        func id(_ name: String) throws(ModelError) -> GGUFWriter.Value {
            guard let id = ids[name] else { throw .missing("token \(name) in tokenizer.json") }
            return .uint32(UInt32(clamping: id))
        }
        // Without its own normalizer, texts stay as they are; folders without any are of the first models, which are in lower case.
        let parts = Self.parts(tokenizer["normalizer"], list: "normalizers")
        let normalizer = parts.first { $0["type"]?.string == "BertNormalizer" || $0["lowercase"] != nil }
        let isLowercased =
            normalizer.map { $0["lowercase"] != .bool(false) }
            ?? (parts.contains { $0["type"]?.string == "Lowercase" } || tokenizer["normalizer"] == nil)
        var stripsAccents = normalizer == nil ? parts.contains { $0["type"]?.string == "StripAccents" } : isLowercased
        if case .bool(let flag)? = normalizer?["strip_accents"] { stripsAccents = flag }
        return [
            ("tokenizer.ggml.model", .string("bert")), ("tokenizer.ggml.tokens", .strings(tokens.map(\.text))),
            ("tokenizer.ggml.token_type", .int32s(tokens.map(\.kind.rawValue))),
            ("tokenizer.ggml.unknown_token_id", try id(tokenizer["model"]?["unk_token"]?.string ?? "[UNK]")),
            ("tokenizer.ggml.bos_token_id", try id("[CLS]")), ("tokenizer.ggml.eos_token_id", try id("[SEP]")),
            ("tokenizer.ggml.cls_token_id", try id("[CLS]")), ("tokenizer.ggml.seperator_token_id", try id("[SEP]")),  // sic
            ("tokenizer.ggml.padding_token_id", try id("[PAD]")), ("tokenizer.ggml.normalizer.lowercase", .bool(isLowercased)),
            ("tokenizer.ggml.normalizer.strip_accents", .bool(stripsAccents)),
        ]
    }

    /// Unigram (arXiv:1804.10959), as SentencePiece has it: the most probable division of a text.
    func unigram(count: Int) throws(ModelError) -> [(String, GGUFWriter.Value)] {
        guard case .array(let vocabulary)? = tokenizer["model"]?["vocab"], vocabulary.count <= count else {
            throw .invalid(field: "vocab in tokenizer.json", reason: "is not a list of at most \(count) tokens")
        }
        var tokens = (0..<count).map { Token(text: "[PAD\($0)]", kind: .unused, score: -10_000) }
        let unknown = tokenizer["model"]?["unk_id"]?.integer
        for (id, item) in vocabulary.enumerated() {
            guard case .array(let pair) = item, pair.count == 2, let text = pair[0].string, let score = pair[1].double else {
                throw .invalid(field: "vocab in tokenizer.json", reason: "has something else than a text and a score at \(id)")
            }
            tokens[id] = Token(text: text, kind: id == unknown ? .unknown : .normal, score: Float(score))
        }
        if case .array(let added)? = tokenizer["added_tokens"] {
            for item in added {
                guard let text = item["content"]?.string else { continue }
                let id = try number(item["id"]?.integer, of: text, count)
                guard id != unknown else { continue }
                tokens[id] = Token(
                    text: text, kind: item["special"] == .bool(true) ? .control : .userDefined, score: tokens[id].score)
            }
        }
        var result: [(String, GGUFWriter.Value)] = [
            ("tokenizer.ggml.model", .string("t5")), ("tokenizer.ggml.pre", .string("default")),
            ("tokenizer.ggml.tokens", .strings(tokens.map(\.text))),
            ("tokenizer.ggml.token_type", .int32s(tokens.map(\.kind.rawValue))),
            ("tokenizer.ggml.scores", .float32s(tokens.map(\.score))), ("tokenizer.ggml.add_space_prefix", .bool(addsSpace)),
        ]
        let splitters = Self.parts(tokenizer["pre_tokenizer"], list: "pretokenizers")
        let normalizers = Self.parts(tokenizer["normalizer"], list: "normalizers")
        for part in normalizers where part["type"]?.string == "Precompiled" {
            guard let map = part["precompiled_charsmap"]?.string.flatMap({ Data(base64Encoded: $0) }) else {
                throw .invalid(field: "precompiled_charsmap in tokenizer.json", reason: "is not in base 64")
            }
            result.append(("tokenizer.ggml.precompiled_charsmap", .bytes(Array(map))))
        }
        // White space is merged where it separates words, or where a pattern replaces several spaces.
        let merges =
            splitters.contains { $0["type"]?.string == "WhitespaceSplit" }
            || normalizers.contains { $0["pattern"]?["Regex"]?.string == " {2,}" }
        result.append(("tokenizer.ggml.remove_extra_whitespaces", .bool(merges)))
        return try result + special(tokens, addsUsually: true)
    }
}
