public import FoundationModels

@Generable
public struct Itinerary: Equatable {
    public var title: String
    public var days: [Day]
    var shelter: Shelter?

    @Generable
    public struct Day: Sendable & Hashable {
        public var id: Int
    }
}

@Generable
enum Shelter: Swift.Hashable {
    case hut(beds: Int, Itinerary.Day?)
    case tent
}

@Generable
indirect enum Chain: Equatable {
    case link(Int, next: Chain?)
}

// Types of properties whose partial form is not `Equatable`.

@Generable
struct Loose {
    var name: String
}

extension Loose: Equatable {}

@Generable
struct Box<Content: Generable & Equatable>: Equatable {
    var content: Content
}

@Generable
struct Shelf: Equatable {
    var loose: Loose
    var more: [Loose]
    var box: Box<String>?
}

func requireEquatable<each Value: Equatable>(_ types: repeat (each Value).Type) {}

func requireEquatable() {
    requireEquatable(
        Itinerary.PartiallyGenerated.self, Itinerary.Day.PartiallyGenerated.self, Shelter.PartiallyGenerated.self,
        Chain.PartiallyGenerated.self, Shelf.PartiallyGenerated.self)
}
