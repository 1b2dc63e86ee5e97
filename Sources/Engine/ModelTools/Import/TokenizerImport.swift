internal import Foundation
internal import Inference
internal import JSON

/// The tokenizer of a model, from `tokenizer.json` and the files beside it.
///
/// Two kinds of byte-pair encoding are read: that of bytes (GPT-2, Llama 3, Qwen), whose words are found by a pattern, and that of
/// characters with bytes for unknown ones (SentencePiece: Llama 2, Mistral, Gemma); of encoders also WordPiece and Unigram.
struct TokenizerImport {
    let tokenizer: JSONValue
    /// `tokenizer_config.json`.
    let config: JSONValue
    /// The name of the pre-tokenizer, if it is not recognised.
    var preName: String?
    /// The architecture of the model.
    var architecture: String
    /// The number of the token that begins texts, by the model's configuration.
    var beginning: Int?
    /// The numbers of tokens that end texts, by the model's configuration.
    var ends: [Int] = []
    /// Whether the model makes vectors of texts.
    var isEmbedder = false

    // The numbers of `tokenizer.ggml.token_type`.
    enum Kind: Int32 { case normal = 1, unknown, control, userDefined, unused, byte }

    struct Token {
        var text: String
        var kind: Kind
        var score: Float = 0
    }

    /// The metadata of the tokenizer.
    ///
    /// - Parameters:
    ///   - count: the number of rows of the embeddings; more tokens are an error, missing ones are marked as unused.
    func metadata(count: Int) throws(ModelError) -> [(String, GGUFWriter.Value)] {
        let model = tokenizer["model"]
        switch model?["type"]?.string {
        case "WordPiece": return try wordPiece(count: count)
        // Older files of BERT do not name the kind.
        case nil where architecture == "bert" || architecture == "nomic-bert": return try wordPiece(count: count)
        case "Unigram" where architecture == "bert": return try unigram(count: count)
        default: break
        }
        guard case .string("BPE")? = model?["type"] ?? .string("BPE"), case .object(let vocabulary)? = model?["vocab"],
            case .array(let list)? = model?["merges"]
        else {
            throw .unsupported(
                field: "the model of tokenizer.json", value: model?["type"]?.text ?? "none",
                supported: "BPE with vocab and merges")
        }
        let isOfCharacters = model?["byte_fallback"] == .bool(true)
        var tokens = [Token?](repeating: nil, count: count)
        func place(_ token: Token, at id: Int?) throws(ModelError) { tokens[try number(id, of: token.text, count)] = token }
        let unknown = model?["unk_token"]?.string
        for member in vocabulary {
            var kind = Kind.normal
            if isOfCharacters, member.name.utf8.count == 6, member.name.hasPrefix("<0x"), member.name.hasSuffix(">") {
                kind = .byte
            }
            if member.name == unknown { kind = .unknown }
            try place(Token(text: member.name, kind: kind), at: member.value.integer)
        }
        if case .array(let added)? = tokenizer["added_tokens"] {
            for item in added {
                guard let text = item["content"]?.string else { continue }
                // A mark for images, which no text has.
                if let id = item["id"]?.integer, id >= count, id < Self.markLimit { continue }
                var kind = item["special"] == .bool(true) || Self.looksSpecial(text) ? Kind.control : .userDefined
                if text == unknown, isOfCharacters { kind = .unknown }
                if architecture == "gemma4", Self.visible.contains(text) { kind = .userDefined }
                // SentencePiece has no score for them; they are found before anything is merged.
                try place(Token(text: text, kind: kind, score: isOfCharacters ? -1000 : 0), at: item["id"]?.integer)
            }
        }
        for part in Self.parts(tokenizer["normalizer"], list: "normalizers") {
            let kind = part["type"]?.string ?? "none"
            // NFC changes few texts, and GGUF cannot say it.
            let allowed = isOfCharacters ? ["Prepend", "Replace", "NFC"] : ["NFC"]
            let isUsual =
                switch kind {
                case "Replace": part["pattern"]?["String"]?.string == " " && part["content"]?.string == "\u{2581}"
                case "Prepend": part["prepend"]?.string == "\u{2581}"
                default: true
                }
            guard allowed.contains(kind), isUsual else {
                throw .unsupported(
                    field: "the normalizer of tokenizer.json", value: kind, supported: allowed.joined(separator: ", "))
            }
        }
        let merges = try pairs(list)
        var all = tokens.enumerated().map { $1 ?? Token(text: "[PAD\($0)]", kind: .unused) }
        if isOfCharacters {
            guard preName == nil else {
                throw .invalid(field: "--pre", reason: "is for tokenizers of bytes, and this one is of characters: leave it out")
            }
            score(&all, merges)
        }
        let isGemma4 = architecture == "gemma4" && isOfCharacters
        var result: [(String, GGUFWriter.Value)] = [
            ("tokenizer.ggml.model", .string(isGemma4 ? "gemma4" : isOfCharacters ? "llama" : "gpt2")),
            ("tokenizer.ggml.pre", .string(isOfCharacters ? "default" : try preTokenizer())),
            ("tokenizer.ggml.tokens", .strings(all.map(\.text))),
            ("tokenizer.ggml.token_type", .int32s(all.map(\.kind.rawValue))),
        ]
        if isOfCharacters {
            result.append(("tokenizer.ggml.scores", .float32s(all.map(\.score))))
            result.append(("tokenizer.ggml.add_space_prefix", .bool(addsSpace)))
        }
        if !isOfCharacters || isGemma4 {
            // A space within a half is written as the letter that stands for it.
            let lines = merges.map { "\($0.0.replacing(" ", with: "\u{120}")) \($0.1.replacing(" ", with: "\u{120}"))" }
            result.append(("tokenizer.ggml.merges", .strings(lines)))
        }
        return try result + special(all)
    }

    /// The number of tokens, by the largest number of an added one, which may be among the others.
    static func count(_ tokenizer: JSONValue) -> Int {
        var count = 0
        if case .object(let vocabulary)? = tokenizer["model"]?["vocab"] { count = vocabulary.count }
        guard case .array(let added)? = tokenizer["added_tokens"] else { return count }
        return max(count, (added.compactMap { $0["id"]?.integer }.filter { (0..<markLimit).contains($0) }.max() ?? -1) + 1)
    }

    /// A token's number, which must be one of a row of the embeddings.
    func number(_ id: Int?, of text: String, _ count: Int) throws(ModelError) -> Int {
        guard let id, id >= 0 else {
            throw .invalid(field: "tokenizer.json", reason: "has the token \(text) without a number")
        }
        guard id < count else {
            throw .invalid(field: "tokenizer.json", reason: "has the token \(id), and the model has \(count) embeddings")
        }
        return id
    }

    /// Added tokens without a row in the embeddings have numbers below this one.
    private static let markLimit = 1 << 24

    /// Added tokens that are not marked as special although they are.
    private static func looksSpecial(_ text: String) -> Bool {
        (text.hasPrefix("<|") && text.hasSuffix("|>"))
            || ["<start_of_turn>", "<end_of_turn>", "<mask>", "<2mass>", "[@BOS@]"].contains(text)
    }

    /// Tokens of Gemma 4 that responses contain.
    private static let visible = [
        "<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", "<|\"|>",
    ]

    private func pairs(_ list: [JSONValue]) throws(ModelError) -> [(String, String)] {
        var pairs: [(String, String)] = []
        pairs.reserveCapacity(list.count)
        for item in list {
            switch item {
            case .string(let text):
                guard let space = text.utf8.dropFirst().firstIndex(of: UInt8(ascii: " ")) else {
                    throw .invalid(field: "the merges of tokenizer.json", reason: "contain “\(text)”")
                }
                pairs.append((String(text[..<space]), String(text[text.utf8.index(after: space)...])))
            case .array(let halves) where halves.count == 2:
                guard let first = halves[0].string, let second = halves[1].string else { fallthrough }
                pairs.append((first, second))
            default: throw .invalid(field: "the merges of tokenizer.json", reason: "are not pairs of texts")
            }
        }
        return pairs
    }

    /// Scores that merge in the order of the merges: SentencePiece merges the pair whose token has the largest score first.
    private func score(_ tokens: inout [Token], _ merges: [(String, String)]) {
        var ranks: [[UInt8]: Int] = [:]
        for (rank, pair) in merges.enumerated() {
            let text = Array((pair.0 + pair.1).utf8)
            if ranks[text] == nil { ranks[text] = rank }
        }
        // Tokens that result from no merge come last; their score is never compared.
        for index in tokens.indices where tokens[index].kind == .normal {
            tokens[index].score = -Float(ranks[Array(tokens[index].text.utf8)] ?? merges.count)
        }
    }

    /// Whether a space is added before the first word.
    var addsSpace: Bool {
        for part in Self.parts(tokenizer["normalizer"], list: "normalizers") where part["type"]?.string == "Prepend" {
            return true
        }
        for part in Self.parts(tokenizer["pre_tokenizer"], list: "pretokenizers") where part["type"]?.string == "Metaspace" {
            if let scheme = part["prepend_scheme"]?.string { return scheme != "never" }
            return part["add_prefix_space"] != .bool(false)
        }
        return config["add_prefix_space"] == .bool(true)
    }

    static func parts(_ value: JSONValue?, list: String) -> [JSONValue] {
        guard let value, value != .null else { return [] }
        if value["type"]?.string == "Sequence", case .array(let parts)? = value[list] { return parts }
        return [value]
    }

    // MARK: - The pre-tokenizer

    private static let contractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
    private static let ending = #" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"#
    private static let upper = #"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"#
    private static let lower = #"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"#

    /// The published patterns, as they stand in `tokenizer.json`, and the names that GGUF has for them: with and without
    /// `ignore_merges`.
    private static let known: [(parts: [String], name: String, ignoring: String)] = [
        (["ByteLevel"], "gpt-2", "gpt-2"), (["Digits", "ByteLevel"], "smollm", "smollm"),
        ([contractions + #"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"# + ending], "smaug-bpe", "llama-bpe"),
        ([contractions + #"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"# + ending], "qwen2", "qwen2"),
        (
            [
                contractions
                    + #"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"#
            ], "seed-coder", "seed-coder"
        ),
        (
            [contractions + #"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"#],
            "qwen35", "qwen35"
        ),
        (
            [
                "\(upper)\(contractions)?|\(lower)\(contractions)?"
                    + #"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"#
            ], "gpt-4o", "gpt-4o"
        ),
        ([upper + "|" + lower + #"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"#], "tekken", "tekken"),
        (
            [
                #"\p{N}{1,3}"#, "[一-龥぀-ゟ゠-ヿ]+",
                ##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##,
            ], "deepseek-v3", "deepseek-v3"
        ),
    ]

    /// The name of the pre-tokenizer with these patterns.
    private func preTokenizer() throws(ModelError) -> String {
        if let preName {
            _ = try PreTokenizer(name: preName)
            return preName
        }
        var parts: [String] = []
        for part in Self.parts(tokenizer["pre_tokenizer"], list: "pretokenizers") {
            switch part["type"]?.string {
            case "Split"?: parts.append(part["pattern"]?["Regex"]?.string ?? part["pattern"]?["String"]?.string ?? "?")
            case "Digits"? where part["individual_digits"] == .bool(true): parts.append("Digits")
            case "ByteLevel"?: if part["use_regex"] != .bool(false) { parts.append("ByteLevel") }
            case let other?: parts.append(other)
            case nil: parts.append("?")
            }
        }
        let ignores = tokenizer["model"]?["ignore_merges"] == .bool(true)
        guard let found = Self.known.first(where: { $0.parts == parts }) else {
            throw .unsupported(
                field: "the pre_tokenizer of tokenizer.json", value: parts.joined(separator: " ; "),
                supported:
                    "the published patterns of the families that run here. Name one with --pre: \(PreTokenizer.names.joined(separator: ", "))"
            )
        }
        return ignores ? found.ignoring : found.name
    }

    // MARK: - Special tokens

    /// - Parameters:
    ///   - addsUsually: whether tokens are added at both ends, if the files do not say it.
    func special(_ tokens: [Token], addsUsually: Bool = false) throws(ModelError) -> [(String, GGUFWriter.Value)] {
        func id(_ key: String) -> Int? {
            guard let text = config[key]?.string ?? config[key]?["content"]?.string else { return nil }
            return tokens.firstIndex { $0.text.utf8.elementsEqual(text.utf8) }
        }
        // What is added is said by the post-processor; older tokenizers have only the setting.
        var added: [String: Int?] = addsUsually ? ["bos": nil, "eos": nil] : [:]
        for part in Self.parts(tokenizer["post_processor"], list: "processors") {
            switch part["type"]?.string {
            case "RobertaProcessing", "BertProcessing":
                for (name, key) in [("bos", "cls"), ("eos", "sep")] {
                    guard case .array(let pair)? = part[key] else { continue }
                    added[name] = pair.last?.integer
                }
            case "TemplateProcessing":
                guard case .array(let list)? = part["single"] else { continue }
                let sequence = list.firstIndex { $0["Sequence"] != nil } ?? list.count
                for (index, item) in list.enumerated() {
                    guard let text = item["SpecialToken"]?["id"]?.string else { continue }
                    added[index < sequence ? "bos" : "eos"] = tokens.firstIndex { $0.text.utf8.elementsEqual(text.utf8) }
                }
            default: break
            }
        }
        // The vector of a text can depend on what is added; a response ends with what the settings say.
        func boundary(_ name: String) -> Int? { isEmbedder ? added[name] ?? nil : nil }
        var result: [(String, GGUFWriter.Value)] = []
        for (name, id) in [
            ("bos", boundary("bos") ?? id("bos_token") ?? id("cls_token") ?? beginning),
            ("eos", boundary("eos") ?? id("eos_token") ?? id("sep_token") ?? ends.first),
            ("unknown", id("unk_token")), ("padding", id("pad_token")), ("cls", id("cls_token")),
            ("seperator", id("sep_token")),  // sic
            ("mask", id("mask_token")),
        ] {
            if let id, tokens.indices.contains(id) { result.append(("tokenizer.ggml.\(name)_token_id", .uint32(UInt32(id)))) }
        }
        // GLM begins the next turn instead of ending its own.
        for (name, text) in [("eot", "<|user|>"), ("eom", "<|observation|>")] where ["glm4", "deepseek2"].contains(architecture) {
            guard let id = tokens.firstIndex(where: { $0.text == text }), ends.contains(id) else { continue }
            result.append(("tokenizer.ggml.\(name)_token_id", .uint32(UInt32(id))))
        }
        for name in ["bos", "eos"] {
            let isAdded = added.keys.contains(name)
            if case .bool(let flag)? = config["add_\(name)_token"], !(isEmbedder && isAdded) {
                result.append(("tokenizer.ggml.add_\(name)_token", .bool(flag)))
            } else if name == "bos" || isAdded {
                result.append(("tokenizer.ggml.add_\(name)_token", .bool(isAdded)))
            }
        }
        return result
    }
}
