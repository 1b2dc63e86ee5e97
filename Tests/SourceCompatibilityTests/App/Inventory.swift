import Foundation
import FoundationModels

/// A list row with an identity that the model does not generate.
@Generable
struct InventoryItem: Identifiable, Equatable {
    let id = UUID()
    var name: String
    var quantity: Int = 1
    var tags: [String] = []
    private(set) var price: Decimal?

    static func == (lhs: InventoryItem, rhs: InventoryItem) -> Bool {
        (lhs.name, lhs.quantity, lhs.price) == (rhs.name, rhs.quantity, rhs.price) && lhs.tags == rhs.tags
    }
}

/// An identity that the model generates.
@Generable
struct CatalogueEntry: Identifiable {
    @Guide(description: "A short unique code")
    var id: String
    var label: String
}

@Generable
struct NumberedEntry: Identifiable, Hashable, Sendable {
    var id: Int
    var label: String
}

/// Constants, defaults and computed properties in addition to generated properties.
@Generable(description: "A label for a shelf")
struct ShelfLabel: Codable, Hashable, Sendable {
    static let width = 20
    let text: String
    let level: Int
    var isFragile: Bool

    var padded: String {
        text.padding(toLength: Self.width, withPad: " ", startingAt: 0)
    }

    init(text: String, level: Int) {
        self.text = text
        self.level = level
        self.isFragile = false
    }
}

/// A schema with a different name from the type.
@Generable(name: "stock_report", description: "What is in stock")
struct StockReportVersion2 {
    var items: [InventoryItem]
    var checkedBy: String?
}

@Generable(representNilExplicitlyInGeneratedContent: true)
struct Delivery {
    var carrier: String
    var trackingCode: String?
    var weight: Double?
}

@Generable(description: "As Delivery, and nil is left out", representNilExplicitlyInGeneratedContent: false)
struct QuietDelivery {
    var carrier: String
    var trackingCode: String?
}

/// A document with content of any structure.
@Generable
struct ScannedDocument {
    var kind: String
    var fields: GeneratedContent?
    var pages: [GeneratedContent]
}

/// A type without properties, for tools without arguments.
@Generable
struct NoDetails {}

/// Types nested in other types and in extensions.
enum Warehouse {
    @Generable
    struct Aisle: Equatable {
        var number: Int
        var shelves: [Shelf]

        @Generable
        struct Shelf: Equatable {
            var level: Level
        }

        @Generable
        enum Level: String, Equatable { case low, high }
    }
}

extension Warehouse {
    @Generable
    struct Forklift: Equatable {
        var isCharging: Bool
        var aisle: Aisle?
    }

    @Generable(description: "Why a door is open")
    enum DoorReason: Equatable {
        case delivery
        case broken(since: String)
    }
}

/// A public type of a library for other modules.
@Generable
public struct PublicParcel: Equatable, Sendable {
    @Guide(description: "Where it goes")
    public var address: String
    public var weight: Double?
    public var contents: [Item]

    public init(address: String, weight: Double?, contents: [Item]) {
        self.address = address
        self.weight = weight
        self.contents = contents
    }

    @Generable
    public enum Item: Equatable, Sendable {
        case book
        case other(name: String)
    }
}
