internal import Synchronization

/// Converts text to tokens and back, with the vocabulary, merges and pre-tokenizer of a model file.
///
/// Control tokens are recognised in template text only: `<|im_end|>` in a user's text is encoded as ordinary
/// characters. Encoding takes linear time (n log n for a single very long word). Decoding the tokens of valid UTF-8
/// restores the text exactly.
package final class Tokenizer: Sendable {
    package let vocabulary: Vocabulary
    /// Nil for vocabularies that do not split text by a pattern.
    package let preTokenizer: PreTokenizer?
    /// The token that ends a turn; generation always stops at it.
    package let endOfTurn: TokenID
    /// All tokens that end generation: end of turn, end of text, end of message.
    package let stopTokens: Set<TokenID>
    /// Text of the beginning- and end-of-sequence tokens, for templates that contain them.
    package let beginningText: String
    package let endText: String

    /// The beginning-of-sequence token, and whether it is added to prompts.
    package let beginningToken: TokenID?
    package let addsBeginning: Bool
    /// The token that is added at the end of a text; nil for models that generate text.
    package let endMark: TokenID?
    /// What the file does not say and was found in another way.
    package let notes: [String]

    /// The normalization of text between control tokens before it is split into words.
    private enum Normalization: Sendable {
        case none
        /// Replaces SentencePiece's mark (U+2581) by a space, also in the user's text; optionally adds a space before
        /// the text.
        case spaces(leading: Bool)
        case wordPiece(WordPieceText)
        case unigram(UnigramText)
    }
    private let normalization: Normalization

    private let states = EncoderStates()

    package init(file: GGUFFile) throws(ModelError) {
        let vocabulary = try Vocabulary(file: file)
        self.vocabulary = vocabulary
        switch vocabulary.model {
        case .gpt2: preTokenizer = try PreTokenizer(name: try file.metadata.string("tokenizer.ggml.pre") ?? "default")
        case .llama, .gemma4, .bert, .t5: preTokenizer = nil
        }
        let addsSpace = try file.metadata.bool("tokenizer.ggml.add_space_prefix") ?? true
        switch vocabulary.model {
        case .gpt2: normalization = .none
        case .llama: normalization = .spaces(leading: addsSpace)
        case .gemma4: normalization = .spaces(leading: false)
        case .bert:
            normalization = .wordPiece(
                WordPieceText(
                    isLowercased: try file.metadata.bool("tokenizer.ggml.normalizer.lowercase") ?? true,
                    stripsAccents: try file.metadata.bool("tokenizer.ggml.normalizer.strip_accents") ?? true))
        case .t5: normalization = .unigram(try UnigramText(file: file, addsLeadingSpace: addsSpace))
        }
        let usual = vocabulary.model.defaultBoundaryTokens
        let ids = 0...max(0, vocabulary.count - 1)
        let writtenEnd = try file.metadata.integer("tokenizer.ggml.eos_token_id", in: ids)
        let end: Int
        if let known = writtenEnd ?? usual.end.map({ min($0, vocabulary.count - 1) }) {
            (end, notes) = (known, [])
        } else if let found = try Self.endOfTemplate(file, vocabulary) {
            end = Int(found)
            let name = String(decoding: vocabulary.bytes(of: found), as: UTF8.self)
            notes = ["The file has no tokenizer.ggml.eos_token_id; the chat template ends turns with \(name)."]
        } else {
            throw .missing("tokenizer.ggml.eos_token_id, and no chat template that ends turns with a control token")
        }
        var stops: Set<TokenID> = [TokenID(end)]
        for key in ["eot", "eom", "fim_pad", "fim_rep", "fim_sep"] {
            if let id = try file.metadata.integer("tokenizer.ggml.\(key)_token_id", in: ids) { stops.insert(TokenID(id)) }
        }
        // Files specify one end token, but chat models end a turn with another one, found by its usual name.
        for name in Self.endNames { if let id = vocabulary.specialToken(named: name) { stops.insert(id) } }
        // Harmony (gpt-oss) ends messages, not turns, with <|end|>; in Gemma 4, “</s>” is ordinary text.
        if let end = vocabulary.specialToken(named: "<|end|>"), vocabulary.specialToken(named: "<|return|>") != nil,
            vocabulary.specialToken(named: "<|call|>") != nil
        {
            stops.remove(end)
        }
        if vocabulary.specialToken(named: "<|tool_response>") != nil, let end = vocabulary.specialToken(named: "</s>") {
            stops.remove(end)
        }
        endOfTurn = TokenID(try file.metadata.integer("tokenizer.ggml.eot_token_id", in: ids) ?? end)
        stopTokens = stops
        func text(_ token: Int?) -> String {
            token.map { String(decoding: vocabulary.bytes(of: TokenID($0)), as: UTF8.self) } ?? ""
        }
        let writtenBeginning = try file.metadata.integer("tokenizer.ggml.bos_token_id", in: ids)
        let beginning = writtenBeginning ?? usual.beginning.map { min($0, vocabulary.count - 1) }
        beginningToken = beginning.map { TokenID($0) }
        let isUsual = usual.beginning != nil || preTokenizer?.addsBeginning == true
        // Some Gemma 4 files disable the beginning token although the model needs it.
        let asksForBeginning = try file.metadata.bool("tokenizer.ggml.add_bos_token") ?? isUsual
        addsBeginning = asksForBeginning || vocabulary.model == .gemma4
        // Models that compute embeddings expect an end token. Others would interpret it as the end of their response.
        let architecture = try file.metadata.string("general.architecture") ?? ""
        let pooling = try file.metadata.integer("\(architecture).pooling_type", in: 0...(1 << 16)) ?? 0
        let usuallyAddsEnd = vocabulary.model == .bert || vocabulary.model == .t5
        let isEncoder = usuallyAddsEnd || (1...3).contains(pooling)
        let addsEnd =
            try file.metadata.bool("tokenizer.ggml.add_\(vocabulary.model == .bert ? "sep" : "eos")_token") ?? usuallyAddsEnd
        let separator = try file.metadata.integer("tokenizer.ggml.seperator_token_id", in: ids)  // sic
        endMark = isEncoder && addsEnd ? TokenID(vocabulary.model == .bert ? separator ?? end : end) : nil
        beginningText = text(beginning)
        endText = text(end)
    }

    /// The control token that the chat template writes after a response; nil if there is none.
    private static func endOfTemplate(_ file: GGUFFile, _ vocabulary: Vocabulary) throws(ModelError) -> TokenID? {
        guard let source = try file.metadata.string("tokenizer.chat_template") else { return nil }
        let turn = [ChatMessage(role: .user, content: "prompt"), ChatMessage(role: .assistant, content: "response")]
        // Why a template cannot be used is reported where it is needed.
        guard
            let pieces = try? ChatTemplate(source: source, beginningText: "", endText: "")
                .render(turn, addGenerationPrompt: false),
            let response = pieces.lastIndex(of: .user("response")),
            case .template(let rest)? = pieces[response...].dropFirst().first
        else { return nil }
        let text = rest.utf8.drop { [0x09, 0x0A, 0x0D, 0x20].contains($0) }
        return vocabulary.specialTokens.first { text.starts(with: vocabulary.bytes(of: $0)) }
    }

    /// Usual names of tokens that end a turn.
    private static let endNames = [
        "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>", "</s>", "<|end|>", "<|return|>", "<|call|>",
        "<|flush|>", "<|calls|>", "<end_of_turn>", "<EOT>", "[EOT]", "[EOS]", "<end_of_utterance>", "<eos>", "<turn|>",
        "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~[", "[|endofturn|]", "<｜hy_place▁holder▁no▁2｜>",
    ]

    // MARK: - Encoding

    /// Encodes a whole prompt.
    ///
    /// - Parameter addsBoundaryTokens: whether to add the beginning and end tokens that the file requires. Tokens that the
    ///   template contains already are not added again.
    package func encode(_ pieces: [PromptPiece], addsBoundaryTokens: Bool) -> [TokenID] {
        var tokens = encode(pieces)
        guard addsBoundaryTokens, !tokens.isEmpty else { return tokens }
        if addsBeginning, let beginningToken, tokens.first != beginningToken { tokens.insert(beginningToken, at: 0) }
        if let endMark, tokens.last != endMark { tokens.append(endMark) }
        return tokens
    }

    /// Encodes pieces of a prompt. Adjacent pieces form one text: a word may extend across their boundary.
    package func encode(_ pieces: [PromptPiece]) -> [TokenID] { encode(pieces, isContinuation: false) }

    /// Encodes text that follows generated text: no space is added before it.
    package func encode(continuation text: String) -> [TokenID] { encode([.user(text)], isContinuation: true) }

    private func encode(_ pieces: [PromptPiece], isContinuation: Bool) -> [TokenID] {
        // Runs of text between control tokens; each run ends with a control token.
        var runs: [(bytes: [UInt8], special: TokenID?)] = []
        var run: [UInt8] = []
        for piece in pieces {
            switch piece {
            case .user(let text):
                if !hasOpenSpecials {
                    run.append(contentsOf: text.utf8)
                    continue
                }
                splitSpecial(Array(text.utf8), vocabulary.openSpecialsByFirstByte) { (special, bytes) in
                    run.append(contentsOf: bytes)
                    if let special {
                        runs.append((run, special))
                        run.removeAll()
                    }
                }
            case .template(let text):
                splitSpecial(Array(text.utf8), vocabulary.specialsByFirstByte) { (special, bytes) in
                    run.append(contentsOf: bytes)
                    if let special {
                        runs.append((run, special))
                        run.removeAll()
                    }
                }
            }
        }
        runs.append((run, nil))
        return states.withState { state in
            var tokens: [TokenID] = []
            for (index, run) in runs.enumerated() {
                encode(run.bytes, &state, isContinuation: isContinuation && index == 0, into: &tokens)
                if let special = run.special { tokens.append(special) }
            }
            return tokens
        }
    }

    /// Encodes plain text; control tokens in it are not recognised.
    package func encode(_ text: String) -> [TokenID] { encode([.user(text)]) }

    /// Encodes bytes, which need not be valid UTF-8.
    package func encode(bytes: [UInt8]) -> [TokenID] {
        states.withState { state in
            var tokens: [TokenID] = []
            encode(bytes, &state, into: &tokens)
            return tokens
        }
    }

    /// Encodes text without control tokens.
    private func encode(
        _ bytes: [UInt8], _ state: inout EncoderState, isContinuation: Bool = false, into tokens: inout [TokenID]
    ) {
        guard !bytes.isEmpty else { return }
        let text =
            switch normalization {
            case .none: bytes
            case .spaces(let leading): Self.withSpaces(bytes, leading: leading && !isContinuation)
            case .wordPiece(let normalize): normalize(bytes)
            case .unigram(let normalize): normalize(bytes)
            }
        text.withUnsafeBufferPointer { state.encode($0, vocabulary, preTokenizer, into: &tokens) }
    }

    private static func withSpaces(_ bytes: [UInt8], leading: Bool) -> [UInt8] {
        var text: [UInt8] = leading ? [0x20] : []
        text.reserveCapacity(bytes.count + 1)
        var index = 0
        while index < bytes.count {
            if bytes[index] == 0xE2, index + 2 < bytes.count, bytes[index + 1] == 0x96, bytes[index + 2] == 0x81 {
                text.append(0x20)
                index += 3
            } else {
                text.append(bytes[index])
                index += 1
            }
        }
        return text
    }

    private var hasOpenSpecials: Bool { vocabulary.hasOpenSpecials }

    /// Splits text at special tokens; at each position, the longest match counts.
    /// Calls `emit` with each token and the text before it; finally with nil and the remaining text, if any.
    private func splitSpecial(_ text: [UInt8], _ specials: [[TokenID]], _ emit: (TokenID?, ArraySlice<UInt8>) -> Void) {
        var start = 0
        var index = 0
        while index < text.count {
            let match = specials[Int(text[index])].first { text[index...].starts(with: vocabulary.bytes(of: $0)) }
            if let match {
                emit(match, text[start..<index])
                index += vocabulary.bytes(of: match).count
                start = index
            } else {
                index += 1
            }
        }
        if start < text.count { emit(nil, text[start...]) }
    }

    // MARK: - Decoding

    /// The bytes of tokens. Control tokens have none, because they are structure rather than text.
    package func decode(_ tokens: some Sequence<TokenID>) -> [UInt8] {
        var bytes: [UInt8] = []
        for token in tokens { bytes.append(contentsOf: text(of: token)) }
        return bytes
    }

    /// The bytes of a token in a response; empty for control tokens.
    func text(of token: TokenID) -> ArraySlice<UInt8> {
        guard (0..<TokenID(vocabulary.count)).contains(token), vocabulary.kind(of: token) != .control else { return [] }
        return vocabulary.bytes(of: token)
    }
}

/// A piece of a rendered prompt.
package enum PromptPiece: Sendable, Equatable {
    /// Text of the chat template: control tokens in it are recognised.
    case template(String)
    /// Text of a message: control tokens in it are not recognised.
    case user(String)
}

/// The states of encoding of a tokenizer. A long text does not keep others, such as the engine's, waiting: each call has a state for
/// itself, and a few are kept.
private final class EncoderStates: Sendable {
    private final class Box: @unchecked Sendable {
        /// Used by the one call that has taken the box out.
        var state = EncoderState()
    }

    private let free = Mutex<[Box]>([])
    private static let maximumFree = 4

    func withState<Result>(_ body: (inout EncoderState) -> Result) -> Result {
        let box = free.withLock { $0.popLast() } ?? Box()
        defer { free.withLock { if $0.count < Self.maximumFree { $0.append(box) } } }
        return body(&box.state)
    }
}

/// The state of encoding between calls: character classes, buffers, and a cache of the tokens of recent words.
private struct EncoderState: ~Copyable {
    private let classes = UnsafeMutablePointer<UnicodeClasses>.allocate(capacity: 1)
    private var encoder = BytePairEncoder()
    private var scoreEncoder = ScoreEncoder()
    private var unigramEncoder = UnigramEncoder()
    private let cache = UnsafeMutableBufferPointer<CachedWord>.allocate(capacity: EncoderState.cacheSize)

    private static let cacheSize = 4096

    /// A word of up to 16 bytes and its up to four tokens. `length` 0 is an empty slot.
    private struct CachedWord {
        var low: UInt64 = 0, high: UInt64 = 0
        var tokens: (TokenID, TokenID, TokenID, TokenID) = (0, 0, 0, 0)
        var length: UInt8 = 0, count: UInt8 = 0
    }

    init() {
        classes.initialize(to: UnicodeClasses())
        cache.initialize(repeating: CachedWord())
    }

    deinit {
        classes.deinitialize(count: 1)
        classes.deallocate()
        cache.deallocate()
    }

    mutating func encode(
        _ bytes: UnsafeBufferPointer<UInt8>, _ vocabulary: Vocabulary, _ preTokenizer: PreTokenizer?, into tokens: inout [TokenID]
    ) {
        if let preTokenizer {
            let text = ClassifiedText(bytes: bytes, classes: UnsafePointer(classes))
            preTokenizer.forEachWord(in: text) { word in
                encodeWord(
                    UnsafeBufferPointer(rebasing: bytes[word]), vocabulary, ignoresMerges: preTokenizer.ignoresMerges,
                    into: &tokens)
            }
            return
        }
        var start = 0
        while start < bytes.count {
            let end = Self.wordEnd(bytes, start, vocabulary)
            encodeWord(UnsafeBufferPointer(rebasing: bytes[start..<end]), vocabulary, ignoresMerges: false, into: &tokens)
            start = end
        }
    }

    /// The end of the word at `start`, for vocabularies without a pre-tokenizer: spaces and the following text, up to a
    /// space before which the text can be split without changing its tokens. In Gemma 4's vocabulary, runs of line
    /// breaks are separate words.
    private static func wordEnd(_ bytes: UnsafeBufferPointer<UInt8>, _ start: Int, _ vocabulary: Vocabulary) -> Int {
        var end = start
        let breaksLines = vocabulary.model == .gemma4
        if breaksLines, bytes[start] == 0x0A {
            while end < bytes.count, bytes[end] == 0x0A { end += 1 }
            return end
        }
        while end < bytes.count, bytes[end] == 0x20 { end += 1 }
        while end < bytes.count, !(breaksLines && bytes[end] == 0x0A) {
            if bytes[end] == 0x20, bytes[end - 1] != 0x20, !vocabulary.precedesSpace[Int(bytes[end - 1])] { break }
            end += 1
        }
        return end
    }

    private mutating func encodeWord(
        _ word: UnsafeBufferPointer<UInt8>, _ vocabulary: Vocabulary, ignoresMerges: Bool, into tokens: inout [TokenID]
    ) {
        guard word.count <= 16 else {
            encodeUncached(word, vocabulary, ignoresMerges: ignoresMerges, into: &tokens)
            return
        }
        var (low, high): (UInt64, UInt64) = (0, 0)
        for index in 0..<min(8, word.count) { low |= UInt64(word[index]) << (8 * UInt64(index)) }
        for index in 8..<max(8, word.count) { high |= UInt64(word[index]) << (8 * UInt64(index - 8)) }
        let slot = Int(mixedHash(low ^ mixedHash(high ^ UInt64(word.count))) >> 52)
        if cache[slot].length == word.count, cache[slot].low == low, cache[slot].high == high {
            let found = cache[slot].tokens
            tokens.append(found.0)
            if cache[slot].count > 1 { tokens.append(found.1) }
            if cache[slot].count > 2 { tokens.append(found.2) }
            if cache[slot].count > 3 { tokens.append(found.3) }
            return
        }
        let first = tokens.count
        encodeUncached(word, vocabulary, ignoresMerges: ignoresMerges, into: &tokens)
        let count = tokens.count - first
        guard (1...4).contains(count) else { return }
        func token(_ index: Int) -> TokenID { index < count ? tokens[first + index] : 0 }
        cache[slot] = CachedWord(
            low: low, high: high, tokens: (token(0), token(1), token(2), token(3)), length: UInt8(word.count),
            count: UInt8(count))
    }

    private mutating func encodeUncached(
        _ word: UnsafeBufferPointer<UInt8>, _ vocabulary: Vocabulary, ignoresMerges: Bool, into tokens: inout [TokenID]
    ) {
        switch vocabulary.model {
        case .llama: scoreEncoder.encode(word, with: vocabulary, into: &tokens)
        case .bert: WordPieceEncoder().encode(word, with: vocabulary, into: &tokens)
        case .t5: unigramEncoder.encode(word, with: vocabulary, into: &tokens)
        default:
            if ignoresMerges || vocabulary.model == .gemma4 && word.first == 0x0A, let whole = vocabulary.token(for: word) {
                tokens.append(whole)
            } else {
                encoder.encode(word, with: vocabulary, into: &tokens)
            }
        }
    }
}
