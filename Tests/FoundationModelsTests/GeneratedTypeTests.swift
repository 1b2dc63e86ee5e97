import Foundation
import FoundationModels
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

    @Test("Parts that cannot be compared are equal only if both are missing")
    func incomparableParts() {
        func areEqual(_ first: Loose?, _ second: Loose?) -> Bool { GeneratedContent._areEqual(first, second) }
        #expect(areEqual(nil, nil))
        #expect(!areEqual(Loose(name: "a"), nil))
        #expect(!areEqual(Loose(name: "a"), Loose(name: "a")))
    }
}
