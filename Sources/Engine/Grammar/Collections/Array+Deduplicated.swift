extension Array where Element: Equatable {
    /// The array without consecutive duplicates.
    func deduplicated() -> [Element] {
        var result: [Element] = []
        result.reserveCapacity(count)
        for element in self where result.last != element { result.append(element) }
        return result
    }
}
