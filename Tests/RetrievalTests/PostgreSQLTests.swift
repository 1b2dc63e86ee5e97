#if PostgreSQL
import ContextKit
import Embeddings
import Foundation
import FoundationModelsPostgreSQL
import TestSupport
import Testing

@testable import Retrieval

/// What only a server can do: go away, belong to others, refuse. `./test` starts one where it can.
@Suite(.enabled(if: TestDatabase.available.count > 1, "no PostgreSQL server: see Tests/Tools/postgresql.sh"), .serialized)
struct PostgreSQLTests {
    private let model = WordEmbedder()
    private let server = PostgreSQLTests.server ?? ""
    private static let server = TestDatabase.available.lazy.compactMap(\.server).first

    private func schema() -> String { "test \(UUID().uuidString)" }

    @Test("[D8] a server that crashes while documents are indexed: a typed error, and the next run completes the index")
    func crash() async throws {
        let docs = try TemporaryFolder()
        for number in 0..<400 { try docs.write("\(number).txt", "Document \(number) is about subject\(number).") }
        let schema = schema()
        let index = try await SearchIndex(postgreSQL: server, schema: schema, model: model)
        var crashes = 0
        for stop in [40, 170, 300] {
            var isDown = false
            do {
                try await index.update(folder: docs.url, source: "docs") { progress in
                    if progress.documents == stop, !isDown {
                        isDown = (try? TestDatabase.control("crash")) != nil
                    }
                }
            } catch let error as RetrievalError {
                guard case .index(_, let reason) = error else { throw error }
                #expect(reason.contains("server"))
                crashes += 1
            }
            await #expect(throws: RetrievalError.self) { try await index.search("subject7") }
            try TestDatabase.control("restart")
            // The same index goes on with new connections; every document is there with its passages, or not at all.
            let counts = try await index.counts()
            #expect(counts.documents == counts.passages)
        }
        #expect(crashes > 0)
        let changes = try await index.update(folder: docs.url, source: "docs")
        #expect(changes.problems.isEmpty)
        #expect(try await index.counts() == (400, 400))
        #expect(try await index.search("subject123", options: SearchOptions()).first?.passage.path == "123.txt")
        try await index.close()
    }

    @Test("an index and an archive do not share a schema with each other or with other programs")
    func schemas() async throws {
        let (one, two) = (schema(), "it's \"quoted\" \\ \(UUID().uuidString)")
        _ = try ConversationArchive(postgreSQL: server, schema: one)
        await #expect(throws: RetrievalError.self) { try await SearchIndex(postgreSQL: server, schema: one, model: model) }
        let index = try await SearchIndex(postgreSQL: server, schema: two, model: model)
        try await index.add(ExtractedText("The cat.", format: .plain), path: "it's \\ \"a\"", metadata: ["k'": "v\"\\"])
        var options = SearchOptions()
        options.filter = SearchFilter(pathPrefix: "it's \\", metadata: ["k'": "v\"\\"])
        #expect(try await index.search("cat", options: options).map(\.passage.path) == ["it's \\ \"a\""])
        #expect(throws: ConversationError.self) { try ConversationArchive(postgreSQL: server, schema: two) }
        await #expect(throws: RetrievalError.self) {
            try await SearchIndex(readingFromPostgreSQL: server, schema: "missing", model: model)
        }
        #expect(throws: ConversationError.self) { try ConversationArchive(postgreSQL: server, schema: "pg_catalog") }
    }

    @Test("errors name the server and not the password")
    func noServer() async throws {
        let settings = "postgresql://someone:secret-word@localhost:1/none"
        do {
            _ = try await SearchIndex(postgreSQL: settings, schema: "s", model: model)
            Issue.record("there is no server")
        } catch let error as RetrievalError {
            #expect(error.description.contains("cannot be reached") && !error.description.contains("secret-word"))
        }
        // Where a password ends is not clear: no part of it is shown.
        for wrong in [
            "postgresql://user:sec%zzret@host/db", "postgresql://user:sec/ret@host/db", "postgresql://user:sec@ret@host/db",
            "host=h password=my secret", "postgresql://user:p sec ret@host:12x/db",
        ] {
            do {
                _ = try ConversationArchive(postgreSQL: wrong)
                Issue.record("\(wrong) is accepted")
            } catch let error as ConversationError {
                let text = "\(error.errorDescription ?? "") \(error)"
                #expect(text.contains("cannot be read") && !text.contains("sec") && !text.contains("ret"), "\(text)")
            }
        }
        for wrong in ["no such setting", "postgresql://[", "host=/nowhere", "host=/nowhere\0x"] {
            #expect(throws: ConversationError.self) { try ConversationArchive(postgreSQL: wrong) }
        }
    }

    /// Marks that join a quotation mark to one character must not hide it; names come from files of others.
    @Test("names with quotation marks are not statements", arguments: ["'", "\"", "\\"], ["\u{600}", "\u{301}", ""])
    func injection(quote: String, mark: String) async throws {
        let victim = schema()
        let archive = try ConversationArchive(postgreSQL: server, schema: victim)
        let name =
            "x\(mark == "\u{600}" ? mark + quote : quote + mark)); DROP SCHEMA \"\(victim)\" CASCADE; -- \(UUID().uuidString)"
        let index = try await SearchIndex(postgreSQL: server, schema: name, model: WordEmbedder(identifier: name))
        try await index.add(ExtractedText("The cat.", format: .plain), path: name, source: name, metadata: [name: name])
        #expect(try await index.search("cat").first?.passage.path == name)
        let again = try await SearchIndex(
            readingFromPostgreSQL: server, schema: name, model: WordEmbedder(identifier: name))
        #expect(try await again.counts() == (1, 1))
        #expect(try archive.conversations().isEmpty)
    }

    /// A server, a role and the environment may have other settings.
    @Test(
        "texts that PostgreSQL cannot store as they are",
        arguments: [
            "",
            " client_encoding=LATIN1 options='-c bytea_output=escape -c extra_float_digits=0 "
                + "-c default_transaction_isolation=serializable -c default_transaction_read_only=on'",
        ])
    func unusualTexts(settings: String) async throws {
        let index = try await SearchIndex(postgreSQL: server + settings, schema: schema(), model: model)
        let long = String(repeating: "x", count: 300_000)
        let texts = ["a\0b zebra", "naïve Café", "東京は大きい", "/usr/share/doc/readme.txt", "3.14 1e5 v2.0", long, "👩‍👩‍👧 \u{FEFF}"]
        for (number, text) in texts.enumerated() {
            try await index.add(ExtractedText(text, format: .plain), path: "\(number)", metadata: ["a\0": "\0"])
        }
        for (query, path) in [("zebra", "0"), ("cafe", "1"), ("CAFÉ", "1"), ("東京", "2"), ("readme", "3"), ("3.14", "4")] {
            var options = SearchOptions()
            options.mode = .words
            #expect(try await index.search(query, options: options).first?.passage.path == path, "\(query)")
        }
    }

    /// The HNSW index finds nearly all of the nearest vectors, and both databases nearly the same.
    @Test func sameResults() async throws {
        let folder = try TemporaryFolder()
        let indexes = [
            try await SearchIndex(url: folder.url.appending(path: "i"), model: model),
            try await SearchIndex(postgreSQL: server, schema: schema(), model: model),
        ]
        var random = SeededGenerator(11)
        let documents = (0..<60).map { _ in
            (0..<20).map { _ in
                (0..<30).map { _ in "w\(Int(pow(Double.random(in: 0..<1, using: &random), 3) * 900))" }.joined(separator: " ")
            }.joined(separator: "\n\n")
        }
        for index in indexes {
            for (number, text) in documents.enumerated() {
                let blocks = text.components(separatedBy: "\n\n").enumerated().map {
                    ExtractedText.Block(text: $0.element, headings: ["h\($0.offset)"])
                }
                try await index.add(ExtractedText(blocks: blocks), path: "\(number % 7)/\(number)")
            }
        }
        var (same, total): ([SearchOptions.Mode: Int], [SearchOptions.Mode: Int]) = ([:], [:])
        for query in 0..<30 {
            for mode in SearchOptions.Mode.allCases {
                var options = SearchOptions()
                options.mode = mode
                if query % 3 == 0 { options.filter.pathPrefix = "\(query % 7)/" }
                let text = (0..<4).map { _ in "w\(Int.random(in: 20..<900, using: &random))" }.joined(separator: " ")
                var found: [[String]] = []
                for index in indexes {
                    let results = try await index.search(text, options: options)
                    found.append(results.map { "\($0.passage.path) \($0.passage.number)" })
                    if query % 3 == 0 { #expect(results.allSatisfy { $0.passage.path.hasPrefix("\(query % 7)/") }) }
                }
                same[mode, default: 0] += Set(found[0]).intersection(found[1]).count
                total[mode, default: 0] += found[0].count
            }
        }
        // The rankings by words differ: BM25 is not part of PostgreSQL.
        for (mode, share) in [(SearchOptions.Mode.meaning, 0.97), (.words, 0.7), (.hybrid, 0.7)] {
            let (same, total) = (same[mode] ?? 0, total[mode] ?? 0)
            #expect(total > 150 && Double(same) >= share * Double(total), "\(mode): \(same) of \(total)")
        }
    }
}
#endif
