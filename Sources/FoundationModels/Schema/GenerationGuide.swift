public import Foundation

/// What a guide says. Guides of a type that does not have the property they speak of do not compile.
enum GuideRule: Sendable {
    case minimumCount(Int)
    case maximumCount(Int)
    case element([GuideRule])
    case constant(String)
    case anyOf([String])
    /// Nil if the expression has no text.
    case pattern(String?)
    /// A JSON number, or what is none.
    case minimum(String)
    case maximum(String)
}

/// Limits the values that a model can generate. Guides are enforced while decoding: nothing else can be written.
///
/// Guides combine; all bounds are inclusive.
public struct GenerationGuide<Value> {
    let rules: [GuideRule]

    init(_ rules: GuideRule...) { self.rules = rules }
}

extension GenerationGuide {
    /// At least so many elements.
    public static func minimumCount<Element>(_ count: Int) -> GenerationGuide<[Element]> where Value == [Element] {
        GenerationGuide<[Element]>(.minimumCount(count))
    }

    /// At most so many elements.
    public static func maximumCount<Element>(_ count: Int) -> GenerationGuide<[Element]> where Value == [Element] {
        GenerationGuide<[Element]>(.maximumCount(count))
    }

    /// So many elements as the range allows.
    public static func count<Element>(_ range: ClosedRange<Int>) -> GenerationGuide<[Element]> where Value == [Element] {
        GenerationGuide<[Element]>(.minimumCount(range.lowerBound), .maximumCount(range.upperBound))
    }

    /// Exactly so many elements.
    public static func count<Element>(_ count: Int) -> GenerationGuide<[Element]> where Value == [Element] {
        GenerationGuide<[Element]>(.minimumCount(count), .maximumCount(count))
    }

    /// A guide for each element.
    public static func element<Element>(_ guide: GenerationGuide<Element>) -> GenerationGuide<[Element]>
    where Value == [Element] {
        GenerationGuide<[Element]>(.element(guide.rules))
    }
}

extension GenerationGuide where Value == String {
    /// This text and no other.
    public static func constant(_ value: String) -> GenerationGuide<String> { GenerationGuide(.constant(value)) }

    /// One of these texts.
    public static func anyOf(_ values: [String]) -> GenerationGuide<String> { GenerationGuide(.anyOf(values)) }

    /// A text that the whole of the expression matches.
    public static func pattern<Output>(_ regex: Regex<Output>) -> GenerationGuide<String> {
        GenerationGuide(.pattern(SchemaPattern.text(of: regex)))
    }
}

extension GenerationGuide where Value == Int {
    /// This number or a greater one.
    public static func minimum(_ value: Int) -> GenerationGuide<Int> { GenerationGuide(.minimum("\(value)")) }
    /// This number or a smaller one.
    public static func maximum(_ value: Int) -> GenerationGuide<Int> { GenerationGuide(.maximum("\(value)")) }
    /// A number in this range.
    public static func range(_ range: ClosedRange<Int>) -> GenerationGuide<Int> {
        GenerationGuide(.minimum("\(range.lowerBound)"), .maximum("\(range.upperBound)"))
    }
}

extension GenerationGuide where Value == Float {
    /// This number or a greater one.
    public static func minimum(_ value: Float) -> GenerationGuide<Float> { GenerationGuide(.minimum("\(value)")) }
    /// This number or a smaller one.
    public static func maximum(_ value: Float) -> GenerationGuide<Float> { GenerationGuide(.maximum("\(value)")) }
    /// A number in this range.
    public static func range(_ range: ClosedRange<Float>) -> GenerationGuide<Float> {
        GenerationGuide(.minimum("\(range.lowerBound)"), .maximum("\(range.upperBound)"))
    }
}

extension GenerationGuide where Value == Decimal {
    /// This number or a greater one.
    public static func minimum(_ value: Decimal) -> GenerationGuide<Decimal> { GenerationGuide(.minimum("\(value)")) }
    /// This number or a smaller one.
    public static func maximum(_ value: Decimal) -> GenerationGuide<Decimal> { GenerationGuide(.maximum("\(value)")) }
    /// A number in this range.
    public static func range(_ range: ClosedRange<Decimal>) -> GenerationGuide<Decimal> {
        GenerationGuide(.minimum("\(range.lowerBound)"), .maximum("\(range.upperBound)"))
    }
}

extension GenerationGuide where Value == Double {
    /// This number or a greater one.
    public static func minimum(_ value: Double) -> GenerationGuide<Double> { GenerationGuide(.minimum("\(value)")) }
    /// This number or a smaller one.
    public static func maximum(_ value: Double) -> GenerationGuide<Double> { GenerationGuide(.maximum("\(value)")) }
    /// A number in this range.
    public static func range(_ range: ClosedRange<Double>) -> GenerationGuide<Double> {
        GenerationGuide(.minimum("\(range.lowerBound)"), .maximum("\(range.upperBound)"))
    }
}

/// So that `@Guide(.count(3))` has a type before the macro has seen the property's: only the text of the guide is used then.
extension GenerationGuide where Value == [Never] {
    /// At least so many elements.
    public static func minimumCount(_ count: Int) -> GenerationGuide<Value> { GenerationGuide(.minimumCount(count)) }
    /// At most so many elements.
    public static func maximumCount(_ count: Int) -> GenerationGuide<Value> { GenerationGuide(.maximumCount(count)) }
    /// So many elements as the range allows.
    public static func count(_ range: ClosedRange<Int>) -> GenerationGuide<Value> {
        GenerationGuide(.minimumCount(range.lowerBound), .maximumCount(range.upperBound))
    }
    /// Exactly so many elements.
    @_disfavoredOverload
    public static func count(_ count: Int) -> GenerationGuide<Value> {
        GenerationGuide(.minimumCount(count), .maximumCount(count))
    }
}
