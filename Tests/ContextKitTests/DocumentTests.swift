import Foundation
import FoundationModels
import Synchronization
import TestSupport
import Testing
import TextSearch

@testable import ContextKit

struct DocumentTests {
    @Test(
        "[D5] texts in several languages are split into sentences",
        arguments: [
            (
                "Dr. Smith paid 3.14 dollars. \"Why?\" she asked. It rained… and stopped. End",
                ["Dr. ", "Smith paid 3.14 dollars. ", "\"Why?\" ", "she asked. ", "It rained… and stopped. ", "End"]
            ),
            ("J. Smith left. He ran!", ["J. Smith left. ", "He ran!"]),
            ("雨が降った。猫が鳴く!本当?", ["雨が降った。", "猫が鳴く!", "本当?"]), ("هل أنت هنا؟ نعم.", ["هل أنت هنا؟ ", "نعم."]),
            ("मैं यहाँ हूँ। तुम?", ["मैं यहाँ हूँ। ", "तुम?"]), ("One\nTwo.\n\nThree", ["One\n", "Two.\n\n", "Three"]), ("", []),
            ("www.example.com is a name, e.g. this one.", ["www.example.com is a name, e.g. this one."]),
        ])
    func sentences(text: String, expected: [String]) {
        let found = TextUnits.sentences(of: text).map(String.init)
        #expect(found.joined() == text)
        #expect(found == expected)
    }

    private static let book = (0..<400).map { "Chapter \($0) tells of hero\($0) and the year \(1000 + $0). It was long ago." }
        .joined(separator: "\n\n")

    @Test("[D5] chunks respect the token limit, lose no text, and overlap as requested") func chunks() async throws {
        let model = StubModel(contextSize: 1_000)
        for (limit, overlap) in [(50, 0), (50, 12), (13, 4), (5, 0)] {
            var chunks: [String] = []
            try await LongDocument(text: Self.book).forEachChunk(of: limit, overlap: overlap, model: model) { chunk, tokens in
                #expect(tokens <= limit && chunk.split(whereSeparator: \.isWhitespace).count <= limit)
                chunks.append(chunk)
            }
            if overlap == 0 { #expect(chunks.joined() == Self.book) }
            let all = chunks.joined(separator: " ")
            #expect((0..<400).allSatisfy { all.contains("hero\($0)") })
        }
        var one: [String] = []
        try await LongDocument(text: "word " + String(repeating: "x", count: 500)).forEachChunk(of: 3, model: model) { chunk, _ in
            one.append(chunk)
        }
        #expect(one.joined().count == 505)
    }

    @Test("files in UTF-8 and UTF-16 give the same text, without a byte order mark") func encodings() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let file = folder.appending(path: "book.txt")
        // Pieces of the file end within characters.
        let book = "x" + String(repeating: "Grüße 🙂. ", count: 20_000)
        func text(_ document: LongDocument) async throws -> String {
            var chunks: [String] = []
            try await document.forEachChunk(of: 500, overlap: 0, model: StubModel(contextSize: 1_000)) { chunk, _ in
                chunks.append(chunk)
            }
            return chunks.joined()
        }
        let units = Array("\u{FEFF}\(book)".utf16)
        for data in [
            Data("\u{FEFF}\(book)".utf8), Data(book.utf8), Data(units.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }),
            Data(units.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }),
        ] {
            try data.write(to: file)
            #expect(try await text(LongDocument(contentsOf: file)) == book)
        }
        #expect(try await text(LongDocument(text: "\u{FEFF}\(book)")) == book)
        try Data("\u{FEFF}".utf8).write(to: file)
        #expect(try await text(LongDocument(contentsOf: file)).isEmpty)
    }

    private static func model(failAt: Int = .max) -> StubModel {
        struct PulledPlug: Error {}
        return StubModel(contextSize: 300) { [count = Counter()] transcript in
            if count.next() == failAt { throw PulledPlug() }
            let text = transcript.lastPrompt
            let years = (1000..<1400).filter { text.contains("\($0)") }
            return "From \(years.first ?? 0) to \(years.last ?? 0)."
        }
    }

    final class Counter: Sendable {
        private let value = Mutex(0)
        func next() -> Int {
            value.withLock {
                $0 += 1
                return $0
            }
        }
    }

    @Test("[D5] a summary covers the whole text with either strategy", arguments: [LongDocument.Strategy.mapReduce, .refine])
    func summaries(strategy: LongDocument.Strategy) async throws {
        let progress = Mutex<[Int]>([])
        let summary = try await LongDocument(text: Self.book).summary(
            in: 40, strategy: strategy, model: Self.model(),
            progress: { step in progress.withLock { $0.append(step.chunks) } })
        #expect(summary.contains("1000") && summary.contains("1399"))
        #expect(progress.withLock { $0 == Array(1...$0.count) && $0.count > 10 })
    }

    @Test("[D5] interrupted work is resumed from its checkpoint, which different work rejects") func resumed() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let file = folder.appending(path: "book.txt")
        let checkpoint = folder.appending(path: "work.json")
        try Data(Self.book.utf8).write(to: file)
        let whole = try await LongDocument(contentsOf: file).summary(in: 40, model: Self.model())
        let broken = Self.model(failAt: 9)
        await #expect(throws: (any Error).self) {
            try await LongDocument(contentsOf: file).summary(in: 40, model: broken, checkpoint: checkpoint)
        }
        await #expect(throws: LongDocumentError.self) {
            try await LongDocument(text: "Other.").summary(in: 40, model: broken, checkpoint: checkpoint)
        }
        let again = Self.model()
        let resumed = try await LongDocument(contentsOf: file).summary(in: 40, model: again, checkpoint: checkpoint)
        #expect(resumed == whole)
        let all = Self.model()
        _ = try await LongDocument(contentsOf: file).summary(in: 40, model: all)
        #expect(again.requests.count == all.requests.count - 8)
        #expect(!FileManager.default.fileExists(atPath: checkpoint.path))
        await #expect(throws: LongDocumentError.self) {
            try await LongDocument(contentsOf: folder.appending(path: "none.txt")).summary(model: all)
        }
        try Data([0xFF, 0xFE, 0x41]).write(to: file)
        await #expect(throws: LongDocumentError.self) { try await LongDocument(contentsOf: file).summary(in: 40, model: all) }
        await #expect(throws: LongDocumentError.self) { try await LongDocument(text: "A.").summary(in: 290, model: all) }
    }

    /// A model that rejects some prompts, and fails at one request.
    private static func model(failAt: Int = .max, rejecting: @escaping @Sendable (String) -> Bool) -> StubModel {
        StubModel(contextSize: 300) { [count = Counter()] transcript in
            if count.next() == failAt { throw CocoaError(.fileReadUnknown) }
            let text = transcript.lastPrompt
            if rejecting(text) { throw LanguageModelError.guardrailViolation(.init(debugDescription: "unsafe")) }
            let years = (1000..<1400).filter { text.contains("\($0)") }
            return "From \(years.first ?? 0) to \(years.last ?? 0)."
        }
    }

    @Test("chunks that the model rejects are left out and told, also by resumed work, which does not come back to them")
    func rejected() async throws {
        let checkpoint = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: checkpoint) }  // the system removes a leftover
        let isBad: @Sendable (String) -> Bool = { $0.contains("hero20 ") }
        let book = LongDocument(text: Self.book)
        await #expect {
            try await book.summary(in: 40, model: Self.model(rejecting: isBad))
        } throws: { $0 as? LanguageModelError != nil }
        let rejections = Mutex<[LongDocument.Rejection]>([])
        let answers = Counter()
        let notice: @Sendable (LongDocument.Notice) -> Void = { notice in
            switch notice {
            case .answered: _ = answers.next()
            case .rejected(let rejection): rejections.withLock { $0.append(rejection) }
            }
        }
        await #expect(throws: (any Error).self) {
            try await book.summary(
                in: 40, model: Self.model(failAt: 12, rejecting: isBad), checkpoint: checkpoint, notice: notice)
        }
        let first = rejections.withLock { $0 }
        #expect(!first.isEmpty && first.allSatisfy { $0.text.contains("hero20 ") && $0.chunk != nil })
        // Nobody who is not told gets a summary without them.
        let untold = Self.model(rejecting: isBad)
        await #expect(throws: LanguageModelError.self) {
            try await book.summary(in: 40, model: untold, checkpoint: checkpoint)
        }
        #expect(untold.requests.isEmpty)
        let again = Self.model(rejecting: isBad)
        let summary = try await book.summary(in: 40, model: again, checkpoint: checkpoint, notice: notice)
        #expect(summary.contains("1000") && summary.contains("1399"))
        let texts = rejections.withLock { $0.map(\.text) }
        #expect(texts == (first + first).map(\.text) && !again.requests.contains { isBad($0.lastPrompt) })
        #expect(rejections.withLock { "\($0.last?.error.errorDescription ?? "")" } == first.last?.error.errorDescription)
        #expect(answers.next() > 20)
    }

    @Test("without a chunk that the model accepts there is no summary, and of results that it rejects the longest stays")
    func allRejected() async throws {
        let book = LongDocument(text: Self.book)
        let chunks = Mutex<[Int?]>([])
        let notice: @Sendable (LongDocument.Notice) -> Void = { notice in
            if case .rejected(let rejection) = notice { chunks.withLock { $0.append(rejection.chunk) } }
        }
        await #expect(throws: LanguageModelError.self) {
            try await book.summary(in: 40, model: Self.model { _ in true }, notice: notice)
        }
        #expect(chunks.withLock { $0.count > 10 && !$0.contains(nil) })
        let summary = try await book.summary(in: 40, model: Self.model { $0.contains("From ") }, notice: notice)
        #expect(summary.hasPrefix("From 1") && chunks.withLock { $0.contains(nil) })
    }

    @Generable struct Years: Equatable { var years: [Int] }

    @Test("values are taken from the chunks that the model accepts") func extractionWithRejection() async throws {
        let model = StubModel(contextSize: 300) { transcript in
            if transcript.lastPrompt.contains("hero20 ") {
                throw LanguageModelError.refusal(.init(explanation: "No.", debugDescription: "refused"))
            }
            let found = (1000..<1400).filter { transcript.lastPrompt.contains("\($0)") }
            return "{\"years\": [\(found.map(String.init).joined(separator: ", "))]}"
        }
        let rejections = Counter()
        let years = try await LongDocument(text: Self.book).extract(
            Years.self, instructions: "List the years.", model: model, responseTokens: 60,
            notice: { if case .rejected = $0 { _ = rejections.next() } },
            merging: { Years(years: Array(Set($0.years + $1.years)).sorted()) })
        #expect(years?.years.first == 1000 && years?.years.last == 1399 && years?.years.contains(1020) == false)
        #expect(rejections.next() > 1)
    }

    @Test("if the model rejects one half of a text that was too much, what the other half has is kept")
    func halfRejected() async throws {
        let model = StubModel(contextSize: 300) { transcript in
            let text = transcript.lastPrompt
            if text.contains("Ada"), text.contains("Cid") {
                throw LanguageModelError.contextSizeExceeded(
                    .init(contextSize: 300, tokenCount: 301, debugDescription: "full"))
            }
            if text.contains("Cid") { throw LanguageModelError.refusal(.init(explanation: "No.", debugDescription: "refused")) }
            let found = (1000..<1400).filter { text.contains("\($0)") }
            return "{\"years\": [\(found.map(String.init).joined(separator: ", "))]}"
        }
        let document = LongDocument(text: "Ada came in 1001. Bob came in 1002. Cid came in 1003. Dee came in 1004.")
        let rejections = Mutex<[LongDocument.Rejection]>([])
        let years = try await document.extract(
            Years.self, instructions: "List the years.", model: model, responseTokens: 60,
            notice: { if case .rejected(let rejection) = $0 { rejections.withLock { $0.append(rejection) } } },
            merging: { Years(years: $0.years + $1.years) })
        #expect(years?.years == [1001, 1002])
        let left = rejections.withLock { $0 }
        #expect(left.map(\.chunk) == [1] && left.first?.text.hasPrefix("Cid") == true)
        await #expect(throws: LanguageModelError.self) {
            try await document.extract(Years.self, instructions: "List the years.", model: model, responseTokens: 60) { a, _ in a
            }
        }
    }

    @Test("[D5] the values of all chunks are merged") func extraction() async throws {
        let model = StubModel(contextSize: 300) { transcript in
            let found = (1000..<1400).filter { transcript.lastPrompt.contains("\($0)") }
            return "{\"years\": [\(found.map(String.init).joined(separator: ", "))]}"
        }
        let years = try await LongDocument(text: Self.book).extract(
            Years.self, instructions: "List the years.", model: model, responseTokens: 60
        ) { Years(years: Array(Set($0.years + $1.years)).sorted()) }
        #expect(years?.years == Array(1000..<1400))
        #expect(
            try await LongDocument(text: "").extract(Years.self, instructions: "x", model: model, responseTokens: 60) { a, _ in a
            }
                == nil)
    }

    @Test("[D5] cancelled work ends") func cancelled() async throws {
        let requests = Mutex(0)
        let model = StubModel(contextSize: 300) { _ in
            let number = requests.withLock { count in
                count += 1
                return count
            }
            // The third request runs until it is cancelled.
            if number == 3 { try await Task.sleep(for: .seconds(60)) }
            return "Much."
        }
        let work = Task { try await LongDocument(text: Self.book).summary(in: 40, model: model) }
        await eventually { requests.withLock { $0 } >= 3 }
        work.cancel()
        await #expect(throws: CancellationError.self) { try await work.value }
        #expect(requests.withLock { $0 } == 3)
    }
}
