public import FoundationModels

final class Counter {
    var value = 0
}

extension SessionPropertyValues {
    @SessionPropertyEntry var counter: Int = 0
    @SessionPropertyEntry var title = "none"
    @SessionPropertyEntry var limit: Int?
    @SessionPropertyEntry var reference: Counter = Counter()
    @SessionPropertyEntry var callback: () -> Void = { print("called") }
    @SessionPropertyEntry var `default` = [1, 2]
}

public extension SessionPropertyValues {
    @SessionPropertyEntry var language: String = "en"
}

extension SessionPropertyValues {
    @SessionPropertyEntry public var isVerbose = false
}
