protocol HeapElement {
    /// Whether the heap returns this element before `other`.
    func precedes(_ other: Self) -> Bool
}

/// A binary heap: returns its elements in order, each in logarithmic time. `removeAll` keeps the memory.
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

    /// Removes and returns the first element in order; nil if the heap is empty.
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
