protocol HeapElement {
    /// Whether this one is taken out before another one.
    func precedes(_ other: Self) -> Bool
}

/// A binary heap: gives out its elements in their order, each in logarithmic time. Its memory is kept when it is emptied.
struct Heap<Element: HeapElement> {
    private var elements: [Element] = []

    mutating func removeAll() { elements.removeAll(keepingCapacity: true) }

    mutating func push(_ element: Element) {
        elements.append(element)
        var child = elements.count - 1
        while child > 0, elements[child].precedes(elements[(child - 1) / 2]) {
            elements.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// The element that precedes all others; nil if there is none.
    mutating func pop() -> Element? {
        guard let first = elements.first else { return nil }
        let last = elements.removeLast()
        guard !elements.isEmpty else { return first }
        elements[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in 2 * parent + 1...2 * parent + 2 where child < elements.count && elements[child].precedes(elements[least])
            {
                least = child
            }
            if least == parent { return first }
            elements.swapAt(parent, least)
            parent = least
        }
    }
}
