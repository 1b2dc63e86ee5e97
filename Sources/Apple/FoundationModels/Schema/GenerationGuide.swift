public import Foundation

/// The rule of a guide. Guides compile only for value types to which they apply.
enum GuideRule: Sendable {
    case minimumCount(Int)
    case maximumCount(Int)
    case element([GuideRule])
    case constant(String)
    case anyOf([String])
    /// Nil if the expression has no literal pattern.
    case pattern(String?)
    /// A JSON number, or another string, which is rejected later.
    case minimum(String)
    case maximum(String)
}

/// Constrains the values that a model can generate. Guides are enforced during decoding: other values cannot be
/// generated.
///
/// Guides can be combined; all bounds are inclusive.
public struct GenerationGuide<Value> {
    let rules: [GuideRule]

    init(_ rules: GuideRule...) { self.rules = rules }
}

extension GenerationGuide {
    /// The minimum number of elements.
    public static func minimumCount<Element>(_ count: Int) -> GenerationGuide<[Element]> where Value == [Element] {
        GenerationGuide<[Element]>(.minimumCount(count))
    }

    /// The maximum number of elements.
    public static func maximumCount<Element>(_ count: Int) -> GenerationGuide<[Element]> where Value == [Element] {
        GenerationGuide<[Element]>(.maximumCount(count))
    }

    /// The range of the number of elements.
    public static func count<Element>(_ range: ClosedRange<Int>) -> GenerationGuide<[Element]> where Value == [Element] {
        GenerationGuide<[Element]>(.minimumCount(range.lowerBound), .maximumCount(range.upperBound))
    }

    /// The exact number of elements.
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
    /// Only this string.
    public static func constant(_ value: String) -> GenerationGuide<String> { GenerationGuide(.constant(value)) }

    /// One of these strings.
    public static func anyOf(_ values: [String]) -> GenerationGuide<String> { GenerationGuide(.anyOf(values)) }

    /// A string that the expression matches as a whole.
    public static func pattern<Output>(_ regex: Regex<Output>) -> GenerationGuide<String> {
        GenerationGuide(.pattern(SchemaPattern.text(of: regex)))
    }
}

extension GenerationGuide where Value == Int {
    /// The minimum value.
    public static func minimum(_ value: Int) -> GenerationGuide<Int> { GenerationGuide(.minimum("\(value)")) }
    /// The maximum value.
    public static func maximum(_ value: Int) -> GenerationGuide<Int> { GenerationGuide(.maximum("\(value)")) }
    /// The range of values.
    public static func range(_ range: ClosedRange<Int>) -> GenerationGuide<Int> {
        GenerationGuide(.minimum("\(range.lowerBound)"), .maximum("\(range.upperBound)"))
    }
}

extension GenerationGuide where Value == Float {
    /// The minimum value.
    public static func minimum(_ value: Float) -> GenerationGuide<Float> { GenerationGuide(.minimum("\(value)")) }
    /// The maximum value.
    public static func maximum(_ value: Float) -> GenerationGuide<Float> { GenerationGuide(.maximum("\(value)")) }
    /// The range of values.
    public static func range(_ range: ClosedRange<Float>) -> GenerationGuide<Float> {
        GenerationGuide(.minimum("\(range.lowerBound)"), .maximum("\(range.upperBound)"))
    }
}

extension GenerationGuide where Value == Decimal {
    /// The minimum value.
    public static func minimum(_ value: Decimal) -> GenerationGuide<Decimal> { GenerationGuide(.minimum("\(value)")) }
    /// The maximum value.
    public static func maximum(_ value: Decimal) -> GenerationGuide<Decimal> { GenerationGuide(.maximum("\(value)")) }
    /// The range of values.
    public static func range(_ range: ClosedRange<Decimal>) -> GenerationGuide<Decimal> {
        GenerationGuide(.minimum("\(range.lowerBound)"), .maximum("\(range.upperBound)"))
    }
}

extension GenerationGuide where Value == Double {
    /// The minimum value.
    public static func minimum(_ value: Double) -> GenerationGuide<Double> { GenerationGuide(.minimum("\(value)")) }
    /// The maximum value.
    public static func maximum(_ value: Double) -> GenerationGuide<Double> { GenerationGuide(.maximum("\(value)")) }
    /// The range of values.
    public static func range(_ range: ClosedRange<Double>) -> GenerationGuide<Double> {
        GenerationGuide(.minimum("\(range.lowerBound)"), .maximum("\(range.upperBound)"))
    }
}

/// Provides a type for `@Guide(.count(3))` before the macro has the property's type; the macro uses only the source
/// text of the guide.
extension GenerationGuide where Value == [Never] {
    /// The minimum number of elements.
    public static func minimumCount(_ count: Int) -> GenerationGuide<Value> { GenerationGuide(.minimumCount(count)) }
    /// The maximum number of elements.
    public static func maximumCount(_ count: Int) -> GenerationGuide<Value> { GenerationGuide(.maximumCount(count)) }
    /// The range of the number of elements.
    public static func count(_ range: ClosedRange<Int>) -> GenerationGuide<Value> {
        GenerationGuide(.minimumCount(range.lowerBound), .maximumCount(range.upperBound))
    }
    /// The exact number of elements.
    @_disfavoredOverload
    public static func count(_ count: Int) -> GenerationGuide<Value> {
        GenerationGuide(.minimumCount(count), .maximumCount(count))
    }
}
