import Foundation
import FoundationModels
import FoundationModelsTesting
import Testing

@Suite("Types with @Generable")
struct GeneratedTypeTests {
    @Generable
    struct Journey: Equatable {
        var title: String
        var price: Decimal?
        var extras: GeneratedContent
        var stops: [Stop]
    }

    @Generable
    enum Stop: Hashable {
        case city(name: String, nights: Int?)
        case anywhere
    }

    @Generable
    struct Loose {
        var name: String
    }

    @Test("Partial forms of equatable types are equal if their ids and properties are")
    func equality() throws {
        let id = GenerationID()
        func partial(_ json: String, id: GenerationID) throws -> Journey.PartiallyGenerated {
            var content = try GeneratedContent(json: json)
            content.id = id
            return try Journey.PartiallyGenerated(content)
        }
        let json = #"{"title": "A", "price": 1.5, "extras": [1], "stops": [{"type": "city", "name": "B"}, {"type": "anywhere"}]"#
        let first = try partial(json, id: id)
        #expect(first == (try partial(json, id: id)))
        #expect(first != (try partial(json, id: GenerationID())))
        let changes = [("\"A\"", "\"B\""), ("1.5", "2"), ("[1]", "[2]"), ("city", "anywhere"), ("B\"}", "C\"}")]
        for (old, new) in changes {
            #expect(first != (try partial(json.replacingOccurrences(of: old, with: new), id: id)), "\(old) → \(new)")
        }
        #expect(first != (try partial(#"{"title": "A""#, id: id)))
    }

    @Generable
    struct Errand: Equatable {
        var id = UUID()
        var tries = 0
        var text: String
        var minutes: Int = 5
    }

    @Test("Variables with a value but without a type annotation keep the value")
    func initialValues() throws {
        let content = try GeneratedContent(json: #"{"id": 1, "tries": 2, "text": "a", "minutes": 3}"#)
        let (first, second) = (try Errand(content), try Errand(content))
        #expect(first.id != second.id)
        #expect(first == Errand(id: first.id, text: "a", minutes: 3))
        #expect(first.generatedContent.jsonString == #"{"text": "a", "minutes": 3}"#)
        #expect(first.asPartiallyGenerated().minutes == 3)
        #expect(try properties(of: Errand.self) == ["text", "minutes"])
    }

    /// The names of the properties in the schema.
    private func properties(of type: any Generable.Type) throws -> [String] {
        let schema = try GeneratedContent(json: String(decoding: JSONEncoder().encode(type.generationSchema), as: UTF8.self))
        return try schema.value(forProperty: "x-order")
    }

    @Generable
    struct Search {
        var terms: [Term]

        @Generable
        struct Term: Equatable {
            var id: GenerationID
            var text: String
        }
    }

    @Test("A property of the type GenerationID is the id of the content, also while it is generated")
    func generationIDs() async throws {
        var content = try GeneratedContent(json: #"{"text": "a"}"#)
        content.id = GenerationID()
        let term = try Search.Term(content)
        #expect(term == Search.Term(id: try #require(content.id), text: "a"))
        #expect(term.generatedContent == content)
        #expect(term.asPartiallyGenerated().id == term.id)
        #expect(try properties(of: Search.Term.self) == ["text"])

        let json = #"{"terms": [{"text": "a"}, {"text": "b"}]}"#
        let session = LanguageModelSession(model: ScriptedLanguageModel([.text(json)]))
        let stream = session.streamResponse(to: "Search.", generating: Search.self)
        var last: [GenerationID] = []
        for try await snapshot in stream {
            let ids = (snapshot.content.terms ?? []).map(\.id)
            #expect(Array(ids.prefix(last.count)) == last)
            last = ids
        }
        #expect(Set(last).count == 2)
        #expect(try await stream.collect().content.terms.map(\.id) == last)
    }

    @Test("Parts that cannot be compared are equal only if both are missing")
    func incomparableParts() {
        func areEqual(_ first: Loose?, _ second: Loose?) -> Bool { GeneratedContent._areEqual(first, second) }
        #expect(areEqual(nil, nil))
        #expect(!areEqual(Loose(name: "a"), nil))
        #expect(!areEqual(Loose(name: "a"), Loose(name: "a")))
    }
}
