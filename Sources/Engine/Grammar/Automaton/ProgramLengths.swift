/// The lengths of shortest documents, and the removal of parts that have none.
extension Program {
    mutating func measureObject(_ index: Int) {
        var object = objects[index]
        for position in object.names.indices where object.names[position].isAllowed {
            let value = types[Int(object.names[position].type)].shortest
            if value < Self.infiniteLength {
                object.names[position].shortest = KeyText.length(object.names[position].text) + 1 + value
            }
        }
        var members: [Int] = []
        var optional: [Int] = []
        for name in object.names {
            if name.isRequired {
                members.append(name.shortest)
            } else if name.shortest < Self.infiniteLength {
                optional.append(name.shortest)
            }
        }
        let extra = otherLength(Int32(index))
        let wanted = object.regions(for: object.allWants) { types[Int($0.type)].shortest < Self.infiniteLength }
        for index in wanted ?? [] {
            members.append(object.regions[index].shortestName + 3 + types[Int(object.regions[index].type)].shortest)
        }
        if wanted == nil || members.contains(where: { $0 >= Self.infiniteLength })
            || object.maximum.map({ members.count > $0 }) ?? false
        {
            objects[index] = object
            return
        }
        optional.sort()
        while members.count < object.minimum {
            if let next = optional.first, next <= extra {
                members.append(next)
                optional.removeFirst()
            } else if extra < Self.infiniteLength, object.minimum <= Self.maximumCount {
                members += [Int](repeating: extra, count: object.minimum - members.count)
            } else {
                objects[index] = object
                return
            }
        }
        object.shortest = min(Self.infiniteLength - 1, members.reduce(2 + max(0, members.count - 1), +))
        objects[index] = object
    }

    /// The length of the shortest member with an unlisted name.
    func otherLength(_ object: Int32) -> Int {
        var minimum = Self.infiniteLength
        for region in objects[Int(object)].regions where types[Int(region.type)].shortest < Self.infiniteLength {
            minimum = min(minimum, region.shortestName + 3 + types[Int(region.type)].shortest)
        }
        return minimum
    }

    mutating func measureArray(_ index: Int) {
        var array = arrays[index]
        array.shortest = arrayCost(array, from: 0, counts: array.contains.map { _ in 0 })?.length ?? Self.infiniteLength
        arrays[index] = array
    }

    /// The types of the minimum items to add, and their total length including commas and the closing bracket; nil if
    /// no items can complete the array.
    func arrayCost(_ array: Array, from start: Int, counts: [Int]) -> (length: Int, items: [TypeID])? {
        var items: [TypeID] = []
        var length = start == 0 ? 1 : 0
        var index = start
        if array.contains.isEmpty {
            while index < array.minimum {
                let type = index < array.prefix.count ? array.prefix[index][0] : array.rest[0]
                guard let type, types[Int(type)].shortest < Self.infiniteLength, array.maximum.map({ index < $0 }) ?? true else {
                    return nil
                }
                items.append(type)
                length = min(length + types[Int(type)].shortest + 1, Self.infiniteLength - 1)
                index += 1
            }
        } else {
            var search = ItemSearch(program: self, array: array)
            var counts = counts
            guard let rest = search.length(index, counts) else { return nil }
            length += rest
            while let mask = search.choice(index, counts) {
                let kinds = index < array.prefix.count ? array.prefix[index] : array.rest
                if let type = kinds[mask] { items.append(type) }
                (index, counts) = search.after(index, counts, mask)
            }
        }
        // One byte after each item, for a comma or the bracket, but none before the first item.
        return (length + 1 - (start == 0 && !items.isEmpty ? 1 : 0), items)
    }

    /// Finds the shortest items that satisfy all conditions: dynamic programming over the index and the counts.
    private struct ItemSearch {
        let program: Program
        let array: Array
        private var known: [[Int]: (length: Int, mask: Int)?] = [:]

        init(program: Program, array: Array) {
            self.program = program
            self.array = array
        }

        private func isSatisfied(_ index: Int, _ counts: [Int]) -> Bool {
            index >= array.minimum && zip(counts, array.contains).allSatisfy { $0 >= $1.minimum }
        }

        func after(_ index: Int, _ counts: [Int], _ mask: Int) -> (Int, [Int]) {
            let limit = max(array.prefix.count, array.minimum, array.maximum ?? 0)
            let next = counts.enumerated().map { number, count in
                let part = array.contains[number]
                return min(count + (mask >> number & 1), max(part.minimum, (part.maximum ?? -1) + 1))
            }
            return (min(index + 1, limit), next)
        }

        mutating func choice(_ index: Int, _ counts: [Int]) -> Int? {
            if isSatisfied(index, counts) { return nil }
            _ = length(index, counts)
            return known[[index] + counts]??.mask
        }

        /// Number of bytes of the remaining items, each with a comma.
        mutating func length(_ index: Int, _ counts: [Int]) -> Int? {
            if isSatisfied(index, counts) { return 0 }
            if let maximum = array.maximum, index >= maximum { return nil }
            let key = [index] + counts
            if let found = known[key] { return found?.length }
            // Mark the state as being computed, to exclude cycles: items that change nothing are useless.
            known[key] = .some(nil)
            if known.count > 20_000 { return nil }
            var best: (length: Int, mask: Int)?
            for (mask, type) in (index < array.prefix.count ? array.prefix[index] : array.rest).enumerated() {
                guard let type, program.types[Int(type)].shortest < Program.infiniteLength else { continue }
                let (next, after) = after(index, counts, mask)
                if zip(after, array.contains).contains(where: { count, part in part.maximum.map { count > $0 } ?? false }) {
                    continue
                }
                if next == index, after == counts { continue }
                guard let rest = length(next, after) else { continue }
                let total = program.types[Int(type)].shortest + 1 + rest
                if best.map({ total < $0.length }) ?? true { best = (total, mask) }
            }
            known[key] = .some(best)
            return best?.length
        }
    }

    mutating func pruneObject(_ index: Int) {
        for position in objects[index].names.indices where objects[index].names[position].shortest >= Self.infiniteLength {
            objects[index].names[position].isAllowed = false
        }
        objects[index].regions.removeAll { types[Int($0.type)].shortest >= Self.infiniteLength }
        var spellings: [(text: [UInt8], name: Int32)] = []
        for (position, name) in objects[index].names.enumerated() where name.isAllowed {
            for text in KeyText.spellings(name.text) { spellings.append((text, Int32(position))) }
        }
        objects[index].keys = KeyTrie(spellings)
    }

    mutating func pruneArray(_ index: Int) {
        func alive(_ type: TypeID?) -> TypeID? { type.flatMap { types[Int($0)].shortest < Self.infiniteLength ? $0 : nil } }
        arrays[index].prefix = arrays[index].prefix.map { $0.map(alive) }
        arrays[index].rest = arrays[index].rest.map(alive)
        // If an item is impossible, the array must end before it.
        for (position, types) in arrays[index].prefix.enumerated() where types.allSatisfy({ $0 == nil }) {
            arrays[index].maximum = min(arrays[index].maximum ?? position, position)
        }
        if arrays[index].rest.allSatisfy({ $0 == nil }) {
            let count = arrays[index].prefix.count
            arrays[index].maximum = min(arrays[index].maximum ?? count, count)
        }
    }

    /// Maximum number of bytes by which one token can lengthen the shortest ending.
    ///
    /// A token opens only few values; each of them may need a complete shortest document, and a name before it.
    var maximumGrowth: Int {
        let value = types.map(\.shortest).filter { $0 < Self.infiniteLength }.max() ?? 0
        let name = objects.flatMap { $0.names.map(\.text.count) }.max() ?? 0
        return (value + name + 8) * 4
    }
}
