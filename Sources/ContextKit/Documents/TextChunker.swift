import FoundationModels

/// Cuts a text into chunks of at most so many tokens, between sentences, each beginning with the end of the one before.
struct TextChunker {
    /// Exact tokens of a text where it is used.
    let count: (String) async throws -> Int
    let limit: Int
    /// Tokens of the end of a chunk that the next one begins with.
    let overlap: Int

    private struct Sentence {
        var text: String
        var tokens: Int
        /// Whether it stood in the chunk before as well.
        var isRepeated = false
    }

    private var sentences: [Sentence] = []

    init(limit: Int, overlap: Int, count: @escaping (String) async throws -> Int) {
        self.count = count
        self.limit = max(1, limit)
        self.overlap = max(0, min(overlap, limit / 2))
    }

    /// Takes more of the text and gives the chunks that are full.
    mutating func append(_ text: String) async throws -> [(text: String, tokens: Int)] {
        var chunks: [(text: String, tokens: Int)] = []
        for sentence in TextUnits.sentences(of: text) {
            for part in try await parts(of: String(sentence)) {
                while total + part.tokens > limit, sentences.contains(where: { !$0.isRepeated }) { try await flush(&chunks) }
                // The end of the last chunk gives way if the sentence needs the room.
                while total + part.tokens > limit, sentences.first?.isRepeated == true { sentences.removeFirst() }
                sentences.append(part)
            }
        }
        return chunks
    }

    /// The last chunk.
    mutating func finish() async throws -> [(text: String, tokens: Int)] {
        var chunks: [(text: String, tokens: Int)] = []
        while sentences.contains(where: { !$0.isRepeated }) { try await flush(&chunks) }
        return chunks
    }

    private var total: Int { sentences.reduce(0) { $0 + $1.tokens } }

    /// Makes a chunk of the sentences; those that turn out to be too many stay for the next one.
    private mutating func flush(_ chunks: inout [(text: String, tokens: Int)]) async throws {
        var length = sentences.count
        var exact = try await count(joined(length))
        // Tokens are not quite additive: the sum is a good guess, the count of the whole is the truth.
        while length > 1, exact > limit {
            length -= 1
            exact = try await count(joined(length))
        }
        // Where only repeated sentences would be left, they give way to the new ones.
        guard sentences[..<length].contains(where: { !$0.isRepeated }) else {
            sentences.removeFirst()
            return
        }
        chunks.append((joined(length), exact))
        var repeated: [Sentence] = []
        var tokens = 0
        for sentence in sentences[..<length].reversed() {
            tokens += sentence.tokens
            if tokens > overlap || repeated.count + 1 >= length { break }
            repeated.insert(Sentence(text: sentence.text, tokens: sentence.tokens, isRepeated: true), at: 0)
        }
        sentences = repeated + sentences[length...]
    }

    private func joined(_ length: Int) -> String { sentences[..<length].map(\.text).joined() }

    /// A sentence with its tokens; one that is longer than a chunk in parts, cut between words if it has any.
    private func parts(of text: String) async throws -> [Sentence] {
        let tokens = try await count(text)
        if tokens <= limit || text.count < 2 { return [Sentence(text: text, tokens: tokens)] }
        let middle = text.index(text.startIndex, offsetBy: text.count / 2)
        let space = text[..<middle].lastIndex(where: \.isWhitespace).map { text.index(after: $0) }
        let place = space.flatMap { $0 > text.startIndex ? $0 : nil } ?? middle
        return try await parts(of: String(text[..<place])) + parts(of: String(text[place...]))
    }
}
