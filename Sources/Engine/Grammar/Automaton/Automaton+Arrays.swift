/// Items of arrays.
extension Automaton {
    /// The items that may come next, with the state after each; nil for states that go on by themselves.
    func items(_ local: LocalState) -> [(child: StateID, next: StateID?)] {
        let array = program.arrays[Int(local.a)]
        let progress = arrayProgress[Int(local.b)]
        if let maximum = array.maximum, Int(progress.index) >= maximum { return [] }
        let types = itemTypes(array, Int(progress.index))
        var result: [(StateID, StateID?)] = []
        for (mask, type) in types.enumerated() {
            guard let type, let after = self.progress(progress, of: array, mask) else { continue }
            if array.isUnique {
                result += uniqueItems(local, type, after).map { ($0, nil) }
            } else {
                let next = LocalState(kind: .array, phase: LocalState.Phase.after, depth: local.depth, a: local.a, b: after)
                result.append((state(LocalState(kind: .value, depth: local.depth, a: type)), state(next)))
            }
        }
        return result
    }

    func itemTypes(_ array: Program.Array, _ index: Int) -> [TypeID?] {
        index < array.prefix.count ? array.prefix[index] : array.rest
    }

    /// The progress after an item that counts for the conditions of `mask`, nil if the array could not be completed.
    func progress(_ progress: ArrayProgress, of array: Program.Array, _ mask: Int) -> Int32? {
        var value = progress
        for (number, part) in array.contains.enumerated() where mask >> number & 1 == 1 {
            if let maximum = part.maximum, Int(value.counts[number]) >= maximum { return nil }
            value.counts[number] = min(value.counts[number] + 1, Int32(clamping: max(part.minimum, part.maximum ?? 0)))
        }
        // Beyond all bounds and listed items every index is alike.
        let limit = max(array.prefix.count, array.minimum, array.maximum ?? 0)
        value.index = min(value.index + 1, Int32(clamping: limit))
        if !array.contains.isEmpty || array.isUnique, !canComplete(array, value) { return nil }
        return self.progress(value)
    }

    func canComplete(_ array: Program.Array, _ progress: ArrayProgress) -> Bool {
        program.arrayCost(array, from: Int(progress.index), counts: progress.counts.map(Int.init)) != nil
    }

    func canClose(_ array: Program.Array, _ progress: ArrayProgress) -> Bool {
        Int(progress.index) >= array.minimum && zip(progress.counts, array.contains).allSatisfy { Int($0) >= $1.minimum }
    }

    func arrayEdges(_ local: LocalState) -> [Edge] {
        let hasItems = local.phase != LocalState.Phase.close && !items(local).isEmpty
        let canClose = canClose(program.arrays[Int(local.a)], arrayProgress[Int(local.b)])
        return separatorEdges(local, canClose: canClose, hasMore: hasItems, end: "]")
    }
}
