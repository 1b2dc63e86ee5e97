public import FoundationModels
import ModelPrompts
public import TokenCounts

/// The best passages for a question, packed into a token budget, as a text for a prompt.
///
/// ```swift
/// let context = try await RetrievedContext(for: question, from: index, tokens: 1500)
/// let response = try await session.respond(to: context.prompt(question))
/// print(response.content, context.citations)
/// ```
///
/// Passages are numbered, so that an answer can cite them: [1]. They are marked as data, because a document may contain text
/// that looks like instructions.
public struct RetrievedContext: Sendable {
    /// A passage of the context, with its number.
    public struct Citation: Sendable, Codable {
        /// The number in the text, from 1.
        public var number: Int
        /// Where the text is, for people.
        public var place: String
        /// The passages, which are adjacent in one document.
        public var passages: [Passage]
    }

    /// The question.
    public let question: String
    /// The numbered passages; empty if nothing was found or nothing fits.
    public let text: String
    /// The passages in the text.
    public let citations: [Citation]
    /// The number of tokens of the text.
    public let tokenCount: Int
    /// The number of results that did not fit.
    public let omittedCount: Int

    /// Searches an index and packs the results.
    ///
    /// - Parameters:
    ///   - question: The question.
    ///   - index: The index to search.
    ///   - tokens: The maximum number of tokens of the text.
    ///   - options: How to search; nil for ``SearchOptions/forPrompts``.
    ///   - neighbours: The number of passages before and after each result that are included if there is room.
    ///   - count: Returns the number of tokens of a text, in the language model that will read it; by default, an estimate.
    public init(
        for question: String, from index: SearchIndex, tokens: Int, options: SearchOptions? = nil, neighbours: Int = 1,
        count: (String) async throws -> Int = TokenEstimate.count
    ) async throws {
        let results = try await index.search(question, options: options ?? .forPrompts)
        var packing = Packing(limit: tokens)
        for result in results { try await packing.add(result.passage, count: count) }
        if neighbours > 0 {
            for result in results where packing.contains(result.passage) {
                for neighbour in try await index.neighbours(of: result.passage, distance: neighbours) {
                    try await packing.add(neighbour, count: count)
                }
            }
        }
        self.question = question
        (text, citations, tokenCount) = try await packing.finished(count: count)
        omittedCount = results.count { !packing.contains($0.passage) }
    }

    /// Searches an index and packs the results, with the token counts of the model that will read them. For models that do not conform to
    /// `TokenCounting`, the tokens are estimated.
    ///
    /// - Parameters:
    ///   - question: The question.
    ///   - index: The index to search.
    ///   - tokens: The maximum number of tokens of the text.
    ///   - options: How to search; nil for ``SearchOptions/forPrompts``.
    ///   - neighbours: The number of passages before and after each result that are included if there is room.
    ///   - model: The model that will read the text.
    public init(
        for question: String, from index: SearchIndex, tokens: Int, options: SearchOptions? = nil, neighbours: Int = 1,
        model: some LanguageModel
    ) async throws {
        try await self.init(
            for: question, from: index, tokens: tokens, options: options, neighbours: neighbours,
            count: TextTokens(model).count)
    }

    /// The question with the passages before it, and the request to cite them. Without passages, the request to say that the documents do
    /// not answer the question, so that the answer is not what the model remembers or invents.
    public func prompt(_ question: String? = nil) -> String {
        let question = question ?? self.question
        return text.isEmpty ? ModelPrompts.noExcerpts(question) : ModelPrompts.excerpts(text, question)
    }
}

/// Chooses passages and joins those that are adjacent.
private struct Packing {
    let limit: Int
    private var chosen: [Passage] = []
    private var ids: Set<Int64> = []
    private var tokens = 0

    init(limit: Int) { self.limit = limit }

    func contains(_ passage: Passage) -> Bool { ids.contains(passage.id) }

    mutating func add(_ passage: Passage, count: (String) async throws -> Int) async throws {
        guard !ids.contains(passage.id) else { return }
        // Headings and numbers are counted for each passage, although adjacent ones share them.
        let cost = try await count("\(Self.heading(99, passage))\n\(passage.text)\n\n")
        guard tokens + cost <= limit else { return }
        tokens += cost
        ids.insert(passage.id)
        chosen.append(passage)
    }

    /// The text, in the order of the first choice of each document.
    func finished(
        count: (String) async throws -> Int
    ) async throws -> (text: String, citations: [RetrievedContext.Citation], tokens: Int) {
        var groups: [[Passage]] = []
        var left = chosen
        while let first = left.first {
            let group = left.filter { $0.documentID == first.documentID }.sorted { $0.number < $1.number }
            left.removeAll { $0.documentID == first.documentID }
            var run: [Passage] = []
            for passage in group {
                if let last = run.last, last.number + 1 != passage.number {
                    groups.append(run)
                    run = []
                }
                run.append(passage)
            }
            groups.append(run)
        }
        var text = ""
        var citations: [RetrievedContext.Citation] = []
        for group in groups {
            guard let first = group.first, let last = group.last else { continue }
            var whole = first
            whole.lines = first.lines.lowerBound...max(first.lines.upperBound, last.lines.upperBound)
            let number = citations.count + 1
            citations.append(.init(number: number, place: whole.place, passages: group))
            text += "\(Self.heading(number, whole))\n\(Self.joined(group))\n\n"
        }
        while text.last == "\n" { text.removeLast() }
        return (text, citations, text.isEmpty ? 0 : try await count(text))
    }

    private static func heading(_ number: Int, _ passage: Passage) -> String {
        ModelPrompts.passageHeading(number, place: passage.place, headings: passage.headings)
    }

    /// The texts of adjacent passages, without what a passage repeats from the one before it.
    private static func joined(_ group: [Passage]) -> String {
        var text = group.first?.text ?? ""
        for passage in group.dropFirst() {
            let next = Array(passage.text.utf8)
            let end = Array(text.utf8.suffix(next.count))
            var shared = 0
            for length in stride(from: min(end.count, next.count), to: 0, by: -1)
            where end[(end.count - length)...].elementsEqual(next[..<length]) {
                shared = length
                break
            }
            text += (shared == 0 ? "\n" : "") + String(decoding: next[shared...], as: UTF8.self)
        }
        return quoted(text)
    }

    /// A text of which no line looks like the heading of another passage or like the question.
    private static func quoted(_ text: String) -> String {
        text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map { line in
            let start = line.drop { $0 == " " || $0 == "\t" }
            return start.hasPrefix("[") && start.dropFirst().first?.isNumber == true || start.hasPrefix("Question:")
                ? "> " + line : String(line)
        }.joined(separator: "\n")
    }
}
