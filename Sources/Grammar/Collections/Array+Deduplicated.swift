extension Array where Element: Equatable {
    /// Without repetitions of neighbours.
    func deduplicated() -> [Element] {
        var result: [Element] = []
        result.reserveCapacity(count)
        for element in self where result.last != element { result.append(element) }
        return result
    }
}
