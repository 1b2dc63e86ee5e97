/// Identifies a token of a vocabulary.
package typealias TokenID = Int32

/// A vocabulary of any kind: the bytes of every token, and hash tables that find a token by its bytes or by the pair of
/// tokens that it is merged from.
///
/// Built once per model directly from the file's bytes, without creating a `String` per token.
package final class Vocabulary: Sendable {
    package enum Kind: UInt8, Sendable {
        case normal = 1, unknown, control, userDefined, unused, byte
    }

    package let count: Int
    private let kinds: [UInt8]
    private let texts: TokenTexts
    private let merges: MergeTable

    /// The token of each single byte, or -1: vocabularies that were built from text lack control characters and bytes
    /// that do not occur in valid UTF-8. Encoding omits such bytes, as the reference implementation does.
    let byteTokens: [TokenID]
    /// Control and user-defined tokens, longest first; text is split at them before it is split into words.
    let specialTokens: [TokenID]
    /// The special tokens by their first byte, longest first; the second table contains only those that are recognised
    /// in any text.
    let specialsByFirstByte: [[TokenID]]
    let openSpecialsByFirstByte: [[TokenID]]
    /// The tokenization algorithm of the vocabulary.
    package let model: Model
    /// The score of each token (SPM, Unigram); empty if the algorithm has none.
    let scores: [Float]
    /// The token for characters that are not in the vocabulary and have no byte tokens.
    let unknownToken: TokenID?
    /// For each byte, whether some token contains it directly before a space. After other bytes, text can be split
    /// before a space without changing its tokens.
    let precedesSpace: [Bool]
    /// The length of the longest normal token in bytes.
    let longestToken: Int
    /// Unigram: the score of a character without a token. WordPiece and Unigram: the normal tokens as a trie.
    let unknownScore: Double
    let pieces: PieceTrie

    /// Tokenization algorithms; raw values are the names in `tokenizer.ggml.model`.
    package enum Model: String, CaseIterable, Sendable {
        /// Byte-level BPE.
        case gpt2
        /// SentencePiece BPE: adjacent pairs are merged in the order of the score of the merged token.
        case llama
        /// BPE over characters, with U+2581 for spaces as in SentencePiece.
        case gemma4
        /// WordPiece.
        case bert
        /// Unigram.
        case t5

        /// The unknown token in files that do not specify it.
        var defaultUnknownToken: TokenID? {
            switch self {
            case .gpt2, .gemma4: nil
            case .llama: 0
            case .bert: 100
            case .t5: 2
            }
        }

        /// The beginning and end tokens in files that do not specify them.
        var defaultBoundaryTokens: (beginning: Int?, end: Int?) {
            switch self {
            case .gpt2, .gemma4: (nil, nil)
            case .llama: (1, 2)
            case .bert: (101, 102)
            case .t5: (nil, 1)
            }
        }
    }

    /// U+2581, which represents a space in SentencePiece vocabularies.
    static let mark: [UInt8] = [0xE2, 0x96, 0x81]

    init(file: GGUFFile) throws(ModelError) {
        guard let name = try file.metadata.string("tokenizer.ggml.model") else { throw .missing("tokenizer.ggml.model") }
        guard let model = Model(rawValue: name) else {
            throw .unsupported(
                field: "tokenizer.ggml.model", value: name, supported: Model.allCases.map(\.rawValue).joined(separator: ", "))
        }
        self.model = model
        guard let tokens = try file.metadata.array("tokenizer.ggml.tokens", of: .string) else {
            throw .missing("tokenizer.ggml.tokens")
        }
        guard tokens.count > 0, tokens.count <= 1 << 22 else {
            throw .invalid(field: "tokenizer.ggml.tokens", reason: "has \(tokens.count) elements")
        }
        var kinds = [UInt8](repeating: Kind.normal.rawValue, count: tokens.count)
        if let types = try file.metadata.array("tokenizer.ggml.token_type", of: .int32) {
            guard types.count == tokens.count else {
                throw .invalid(
                    field: "tokenizer.ggml.token_type", reason: "has \(types.count) elements for \(tokens.count) tokens")
            }
            for (index, type) in file.values(of: types, as: Int32.self).enumerated() {
                guard let raw = UInt8(exactly: type), Kind(rawValue: raw) != nil else {
                    throw .invalid(field: "tokenizer.ggml.token_type", reason: "has the type \(type) at \(index)")
                }
                kinds[index] = raw
            }
        }

        let texts = try TokenTexts(file: file, tokens: tokens, kinds: kinds, model: model)
        let (offsets, arena) = (texts.offsets, texts.arena)
        (count, self.kinds, self.texts) = (tokens.count, kinds, texts)

        if model == .gpt2 {
            byteTokens = (0..<256).map { byte in
                withUnsafePointer(to: UInt8(byte)) { texts.find(UnsafeBufferPointer(start: $0, count: 1)) ?? -1 }
            }
        } else {
            var byteTokens = [TokenID](repeating: -1, count: 256)
            for index in 0..<tokens.count
            where kinds[index] == Kind.byte.rawValue && offsets[index + 1] - offsets[index] == 1 {
                byteTokens[Int(arena[Int(offsets[index])])] = TokenID(index)
            }
            self.byteTokens = byteTokens
        }
        var scores: [Float] = []
        if let array = try file.metadata.array("tokenizer.ggml.scores", of: .float32), array.count == tokens.count {
            scores = file.values(of: array, as: Float.self).map { $0.isNaN ? -.infinity : $0 }
        } else if model == .llama || model == .t5 {
            // Without scores, earlier tokens take precedence.
            scores = (0..<tokens.count).map { -Float($0) }
        }
        self.scores = scores
        unknownToken =
            try file.metadata.integer("tokenizer.ggml.unknown_token_id", in: 0...tokens.count - 1).map { TokenID($0) }
            ?? model.defaultUnknownToken.flatMap { Int($0) < tokens.count ? $0 : nil }
        var longest = 0
        var beforeSpace = [Bool](repeating: false, count: 256)
        for index in 0..<tokens.count where kinds[index] == Kind.normal.rawValue {
            let range = Int(offsets[index])..<Int(offsets[index + 1])
            longest = max(longest, range.count)
            for place in range.dropFirst() where arena[place] == 0x20 && arena[place - 1] != 0x20 {
                beforeSpace[Int(arena[place - 1])] = true
            }
        }
        (longestToken, precedesSpace) = (longest, beforeSpace)
        unknownScore = Double(scores.min() ?? 0) - 10
        let known =
            model == .t5 || model == .bert
            ? (0..<tokens.count).filter { kinds[$0] == Kind.normal.rawValue && offsets[$0] < offsets[$0 + 1] } : []
        pieces = PieceTrie(known.map { TokenID($0) }) { arena[Int(offsets[Int($0)])..<Int(offsets[Int($0) + 1])] }
        var special: [Int] = []
        for index in 0..<tokens.count where offsets[index] < offsets[index + 1] {
            if kinds[index] == Kind.control.rawValue || kinds[index] == Kind.userDefined.rawValue { special.append(index) }
        }
        special.sort { offsets[$0 + 1] - offsets[$0] > offsets[$1 + 1] - offsets[$1] }
        specialTokens = special.map { TokenID($0) }
        var byFirst = [[TokenID]](repeating: [], count: 256)
        var openByFirst = byFirst
        for index in special {
            let text = arena[Int(offsets[index])..<Int(offsets[index + 1])]
            guard let first = text.first, let last = text.last else { continue }
            byFirst[Int(first)].append(TokenID(index))
            // Marks such as <tool_call> are recognised in templates only; line breaks, spaces and the like in any text.
            let isMark =
                [UInt8(ascii: "<"), UInt8(ascii: "[")].contains(first) && [UInt8(ascii: ">"), UInt8(ascii: "]")].contains(last)
            if kinds[index] == Kind.userDefined.rawValue, !isMark { openByFirst[Int(first)].append(TokenID(index)) }
        }
        specialsByFirstByte = byFirst
        openSpecialsByFirstByte = openByFirst

        merges = try MergeTable(file: file, texts: texts, model: model)
    }

    // MARK: - Look-up

    /// Whether any special token is recognised in all text.
    var hasOpenSpecials: Bool { openSpecialsByFirstByte.contains { !$0.isEmpty } }

    package func kind(of token: TokenID) -> Kind { Kind(rawValue: kinds[Int(token)]) ?? .normal }

    /// The bytes that a token represents; for special tokens, the text of their name.
    package func bytes(of token: TokenID) -> ArraySlice<UInt8> { texts.bytes(of: token) }

    /// The normal token with exactly these bytes.
    func token(for bytes: UnsafeBufferPointer<UInt8>) -> TokenID? {
        texts.find(bytes)
    }

    /// The special token with this name, such as `<|im_end|>`.
    package func specialToken(named name: String) -> TokenID? {
        let utf8 = Array(name.utf8)
        guard let first = utf8.first else { return nil }
        return specialsByFirstByte[Int(first)].first { bytes(of: $0).elementsEqual(utf8) }
    }

    /// The merge of two adjacent tokens; nil if there is none.
    func merge(_ left: TokenID, _ right: TokenID) -> MergeTable.Merge? { merges.find(left, right) }
}
