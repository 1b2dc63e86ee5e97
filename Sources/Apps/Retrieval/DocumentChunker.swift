import Embeddings
import TextSearch

/// A part of a document that is searched as a whole.
package struct Chunk: Sendable {
    package var text: String
    package var headings: [String]
    package var firstLine: Int
    package var lastLine: Int
    package var page: Int?
    package var tokens: Int

    /// What is embedded: the headings say what the text is about.
    var embedded: String { headings.isEmpty ? text : headings.joined(separator: " › ") + "\n" + text }
}

/// Cuts documents between sentences into chunks with a maximum number of tokens of the embedding model.
struct DocumentChunker {
    /// The maximum number of tokens of a chunk, including its headings.
    var limit: Int
    /// The maximum number of tokens at the end of a chunk that the next chunk of the same section repeats.
    var overlap: Int
    let model: any EmbeddingModel

    private struct Sentence {
        var text: Substring
        var line: Int
        /// The last line, if it does not follow from the text.
        var lastLine: Int?
        var page: Int?
        var tokens: Int
        var isRepeated = false
    }

    func chunks(of document: ExtractedText) async throws -> [Chunk] {
        var result: [Chunk] = []
        var section: [ExtractedText.Block] = []
        var omitted: Set<[String]> = []
        // A chunk belongs to one section and one page, so that its place is right.
        for block in document.blocks {
            if let last = section.last, last.headings != block.headings || last.page != block.page {
                result += try await chunks(ofSection: section, omitted: &omitted)
                section = []
            }
            section.append(block)
        }
        return result + (try await chunks(ofSection: section, omitted: &omitted))
    }

    /// - Parameter omitted: the headings that were too long to be shown so far, with those above them.
    private func chunks(
        ofSection blocks: [ExtractedText.Block], omitted: inout Set<[String]>
    ) async throws -> [Chunk] {
        guard let headings = blocks.first?.headings else { return [] }
        var blocks = blocks
        // Headings of unusual length must leave most of the chunk to the text: the outer ones are left out.
        var shownHeadings = headings
        var headingTokens = 0
        while !shownHeadings.isEmpty {
            headingTokens = try await model.tokenCounts(of: [shownHeadings.joined(separator: " › ")], as: .document).first ?? 0
            if headingTokens <= limit / 3 { break }
            shownHeadings.removeFirst()
            headingTokens = 0
        }
        // Those that are left out are texts, once in a document.
        for count in (0..<headings.count - shownHeadings.count).map({ $0 + 1 }).reversed() {
            guard let first = blocks.first, omitted.insert(Array(headings[..<count])).inserted else { continue }
            var heading = first
            heading.text = headings[count - 1]
            blocks.insert(heading, at: 0)
        }
        let room = max(8, limit - headingTokens)
        var result: [Chunk] = []
        var current: [Sentence] = []
        var total = 0
        func flush() {
            guard current.contains(where: { !$0.isRepeated }), let first = current.first, let last = current.last else { return }
            let text = current.map { String($0.text) }.joined()
            let lines = last.text.utf8.reversed().drop { $0 == 0x0A }.count { $0 == 0x0A }
            result.append(
                Chunk(
                    text: text.trimmingNewlines, headings: shownHeadings, firstLine: first.line,
                    lastLine: last.lastLine ?? last.line + lines, page: first.page, tokens: total))
            var repeated: [Sentence] = []
            var tokens = 0
            for sentence in current.reversed() {
                tokens += sentence.tokens
                if tokens > overlap || repeated.count + 1 >= current.count { break }
                repeated.append(sentence)
            }
            current = repeated.reversed().map { sentence in
                var sentence = sentence
                sentence.isRepeated = true
                return sentence
            }
            total = current.reduce(0) { $0 + $1.tokens }
        }
        for sentence in try await sentences(of: blocks, limit: room) {
            while total + sentence.tokens > room, !current.isEmpty {
                if current.contains(where: { !$0.isRepeated }) {
                    flush()
                } else {
                    total -= current.removeFirst().tokens
                }
            }
            current.append(sentence)
            total += sentence.tokens
        }
        flush()
        return result
    }

    /// The sentences of blocks with their numbers of tokens; longer ones are divided. Joined they are the text.
    private func sentences(of blocks: [ExtractedText.Block], limit: Int) async throws -> [Sentence] {
        var sentences: [Sentence] = []
        for (index, block) in blocks.enumerated() {
            var line = block.line
            let text = index + 1 < blocks.count ? block.text + block.separator(before: blocks[index + 1]) : block.text
            for sentence in TextUnits.sentences(of: text) {
                sentences.append(Sentence(text: sentence, line: line, lastLine: block.lastLine, page: block.page, tokens: 0))
                if block.lastLine == nil { line += sentence.utf8.count { $0 == 0x0A } }
            }
        }
        // The model adds the same tokens to every text.
        let added = try await model.tokenCounts(of: [""], as: .document).first ?? 0
        let counts = try await model.tokenCounts(of: sentences.map { String($0.text) }, as: .document)
        var result: [Sentence] = []
        for (sentence, count) in zip(sentences, counts) {
            var sentence = sentence
            sentence.tokens = Self.tokens(count - added, sentence.text)
            if sentence.tokens <= limit - added {
                result.append(sentence)
            } else {
                result += try await parts(of: sentence, limit: limit - added, added: added)
            }
        }
        return result
    }

    /// A text has at least one token for 16 bytes: a model may have a single token for a long text that it does not know.
    private static func tokens(_ count: Int, _ text: Substring) -> Int { max(count, (text.utf8.count + 15) / 16) }

    /// Divides a sentence that is too long, between words if possible.
    private func parts(of sentence: Sentence, limit: Int, added: Int) async throws -> [Sentence] {
        // No word has fewer than one token, and hardly a token has more than 16 bytes: this finds pieces that are small
        // enough after few counts.
        var pieces: [Sentence] = []
        var rest = sentence.text
        var line = sentence.line
        while !rest.isEmpty {
            var length = max(1, limit * 4)
            while true {
                let end = rest.utf8.index(rest.startIndex, offsetBy: length, limitedBy: rest.endIndex) ?? rest.endIndex
                var cut =
                    end < rest.endIndex ? rest[..<end].lastIndex(where: \.isWhitespace).map { rest.index(after: $0) } ?? end : end
                // Never within a character.
                if cut < rest.endIndex { cut = rest.index(rest.startIndex, offsetBy: rest[..<cut].count) }
                if cut == rest.startIndex { cut = rest.index(after: rest.startIndex) }
                let piece = rest[..<cut]
                let count = try await model.tokenCounts(of: [String(piece)], as: .document).first ?? 0
                let tokens = Self.tokens(count - added, piece)
                if tokens <= limit || length <= 8 || piece.count == 1 {
                    pieces.append(
                        Sentence(
                            text: piece, line: line, lastLine: sentence.lastLine, page: sentence.page,
                            tokens: min(tokens, limit)))
                    if sentence.lastLine == nil { line += piece.utf8.count { $0 == 0x0A } }
                    rest = rest[cut...]
                    break
                }
                length /= 2
            }
        }
        return pieces
    }
}

extension String {
    fileprivate var trimmingNewlines: String {
        var text = self[...]
        while let last = text.last, last.isNewline || last == " " { text.removeLast() }
        return String(text)
    }
}
