import FoundationModels
import TextSearch

/// Cuts a text between sentences into chunks with a maximum number of tokens. Chunks may overlap.
struct TextChunker {
    /// Returns the exact number of tokens of a text within a message.
    let count: (String) async throws -> Int
    let limit: Int
    /// Number of tokens at the end of a chunk that the next chunk repeats.
    let overlap: Int

    private struct Sentence {
        var text: String
        var tokens: Int
        /// Whether it is repeated from the previous chunk.
        var isRepeated = false
    }

    private var sentences: [Sentence] = []

    init(limit: Int, overlap: Int, count: @escaping (String) async throws -> Int) {
        self.count = count
        self.limit = max(1, limit)
        self.overlap = max(0, min(overlap, limit / 2))
    }

    /// Appends text and returns the chunks that are complete.
    mutating func append(_ text: String) async throws -> [(text: String, tokens: Int)] {
        var chunks: [(text: String, tokens: Int)] = []
        for sentence in TextUnits.sentences(of: text) {
            for part in try await parts(of: String(sentence)) {
                while total + part.tokens > limit, sentences.contains(where: { !$0.isRepeated }) { try await flush(&chunks) }
                // Sentences repeated from the previous chunk are dropped if the new sentence needs their space.
                while total + part.tokens > limit, sentences.first?.isRepeated == true { sentences.removeFirst() }
                sentences.append(part)
            }
        }
        return chunks
    }

    /// Returns the remaining chunks.
    mutating func finish() async throws -> [(text: String, tokens: Int)] {
        var chunks: [(text: String, tokens: Int)] = []
        while sentences.contains(where: { !$0.isRepeated }) { try await flush(&chunks) }
        return chunks
    }

    private var total: Int { sentences.reduce(0) { $0 + $1.tokens } }

    /// Makes a chunk of the sentences. Sentences that do not fit stay for the next chunk.
    private mutating func flush(_ chunks: inout [(text: String, tokens: Int)]) async throws {
        var length = sentences.count
        var exact = try await count(joined(length))
        // Token counts are not exactly additive: the sum is an estimate, the count of the joined text is exact.
        while length > 1, exact > limit {
            length -= 1
            exact = try await count(joined(length))
        }
        // A chunk of repeated sentences only would contain nothing new: one of them is dropped instead.
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

    /// A sentence with its number of tokens. A sentence longer than a chunk is split, between words if possible.
    private func parts(of text: String) async throws -> [Sentence] {
        let tokens = try await count(text)
        if tokens <= limit || text.count < 2 { return [Sentence(text: text, tokens: tokens)] }
        let middle = text.index(text.startIndex, offsetBy: text.count / 2)
        let space = text[..<middle].lastIndex(where: \.isWhitespace).map { text.index(after: $0) }
        let place = space.flatMap { $0 > text.startIndex ? $0 : nil } ?? middle
        return try await parts(of: String(text[..<place])) + parts(of: String(text[place...]))
    }
}
