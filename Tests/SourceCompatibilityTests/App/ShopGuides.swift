import Foundation
import FoundationModels

/// The lists and limits of the shop that the guides below refer to.
enum Shop {
    static let departments = ["garden", "kitchen", "books"]
    static let maximumGifts = 3
    static var prices: ClosedRange<Double> { 0.5...250 }
    static let months: ClosedRange<Int> = 1...12

    enum Colour: String, CaseIterable { case red, green, blue }
}

/// Guides are expressions that can use constants, call functions and span several lines.
@Generable(
    description: """
        A wish for a birthday.
        It is sent to the shop.
        """
)
struct GiftWish: Equatable {
    typealias Words = [String]
    static let ages = 0...120

    @Guide(description: "The department", .anyOf(Shop.departments))
    var department: String

    @Guide(.anyOf(Shop.Colour.allCases.map(\.rawValue)))
    var colour: String

    @Guide(.range(Shop.prices))
    var price: Double

    @Guide(.range(GiftWish.ages))
    var age: Int

    @Guide(
        description: """
            Words that describe the gift,
            most important first
            """,
        .count(Shop.maximumGifts), .element(.anyOf(["soft", "loud", "round", "useful"])))
    var words: Words

    @Guide(.minimum(Shop.months.lowerBound), .maximum(Shop.months.upperBound)) var month: Int

    @Guide(.maximumCount(Shop.maximumGifts)) var alternatives: [String]?

    var `default`: Bool
    var width, height: Int

    /// Other notations of the same types.
    var note: Swift.String
    var sizes: Array<Int>
    var nickname: Optional<String>
    var cost: Foundation.Decimal

    var wrapping: Wrapping {
        didSet { changes += wrapping == oldValue ? 0 : 1 }
    }

    @Generable
    enum Wrapping: Equatable {
        case paper
        case `none`
        case box(lid: Bool)
    }

    // Static, constant, lazy and computed properties are not generated.
    private static var counter: Int { 0 }
    let createdBy = "app"
    lazy var summary = "\(department), \(colour)"
    var changes: Int {
        get { 0 }
        set {}
    }

    static func == (lhs: GiftWish, rhs: GiftWish) -> Bool {
        lhs.generatedContent == rhs.generatedContent
    }
}

/// A custom schema for choices that are loaded at run time.
struct ShopSearch {
    let session: LanguageModelSession

    func department(for wish: String, among names: [String]) async throws -> String {
        let schema = DynamicGenerationSchema(type: String.self, guides: [GenerationGuide<String>.anyOf(names)])
        let response = try await session.respond(
            to: "Where is this? \(wish)", schema: GenerationSchema(root: schema, dependencies: []))
        return try response.content.value(String.self)
    }

    /// Guides can also be created in code.
    static func guides(isStrict: Bool) -> [GenerationGuide<Int>] {
        var guides: [GenerationGuide<Int>] = [.minimum(0)]
        if isStrict { guides.append(.maximum(10)) }
        return guides
    }

    static func stars(isStrict: Bool) throws -> GenerationSchema {
        try GenerationSchema(
            root: DynamicGenerationSchema(
                name: "Stars",
                properties: [.init(name: "stars", schema: .init(type: Int.self, guides: guides(isStrict: isStrict)))]),
            dependencies: [])
    }
}
