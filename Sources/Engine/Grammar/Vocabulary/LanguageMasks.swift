internal import JSON

/// The part of masks that depends on a language only: a walk through the vocabulary.
extension MaskTable {
    /// The minimum of ``LanguageMask/listedNeed``: masks are computed once for all limits from this one on.
    private static let leastListedNeed: Int32 = 12
    /// A list of needs serves for this many limits: with each character of a text the limit decreases.
    private static let limitsPerList: Int32 = 64
    /// Where so few characters are left beyond those that the shortest string needs, most tokens do not fit, and only
    /// the others are visited.
    private static let nearlyFull = 16

    /// - Parameter listedNeed: Lists the needs of tokens that are greater than this; `.max` for none.
    func languageMask(_ language: RegexID, listedNeed: Int32 = .max) -> LanguageMask {
        let language = walkStates.languageOfMask(language)
        if let known = languageMasks[language], known.listedNeed <= listedNeed { return known }
        // Languages of the arena template have the same id in all arenas: compute their masks once per vocabulary.
        let isShared = listedNeed == .max && Int(language) < RegexArena.sharedCount
        if isShared, let known = vocabulary.sharedMask(language) {
            languageMasks[language] = known
            return known
        }
        let workBefore = work
        var mask = computeLanguage(language, listedNeed)
        // Not counted, so that a preparation does the same whichever grammar needs the mask first.
        if isShared { work = workBefore }
        mask.listedNeed = listedNeed
        mask.needs.sortByMost()
        mask.exitNeeds.sortByMost()
        if automaton.regexes.isFull { return mask }
        if isShared { vocabulary.share(mask, language) }
        languageMasks[language] = mask
        size += 64 + mask.list.count * 4 + mask.exits.count * 4 + (mask.needs.count + mask.exitNeeds.count) * 12
        return mask
    }

    private func computeLanguage(_ language: RegexID, _ listedNeed: Int32) -> LanguageMask {
        var mask = LanguageMask()
        let regexes = automaton.regexes
        if let (content, style) = regexes.stringContent(language) {
            if style == .any, let window = regexes.lengthWindow(content) {
                return LanguageMask(free: Free(minimum: window.minimum, maximum: window.maximum))
            }
            // A minimum length matters only for tokens that close the string.
            if listedNeed == .max, let (rest, minimum) = regexes.withoutLowerLimit(content) {
                let open = languageMask(regexes.stringBody(rest, style))
                if open.free == nil { return closed(open, from: minimum) }
            }
            // A maximum length matters only for tokens that come near it, so start from the mask without this limit.
            if let (rest, limit) = regexes.withoutUpperLimit(content), limit >= Self.leastListedNeed {
                let maximum = Int32(clamping: limit)
                let body = walkStates.languageOfMask(regexes.stringBody(rest, style))
                // A list serves for other limits too, but it contains all tokens that lead away from the shortest string,
                // while a walk for one limit skips them. So it pays only for a language that is visited again, such as
                // any text.
                let isFirst = !boundedLanguages.contains(body) && languageMasks[body]?.listedNeed ?? .max == .max
                if listedNeed == .max, isFirst || regexes.sufficientLength(body) + Self.nearlyFull > limit {
                    walk(body, .within(maximum, language: language), into: &mask)
                    if !regexes.isFull { boundedLanguages.insert(body) }
                    return mask
                }
                // The next smaller multiple, so that the following limits find the same list.
                let above = max(Self.leastListedNeed, (maximum - 1) / Self.limitsPerList * Self.limitsPerList)
                let unlimited = languageMask(body, listedNeed: above)
                if unlimited.free == nil { return limited(unlimited, maximum, language) }
            }
        }
        if let (content, style) = regexes.stringContent(language), style == .any,
            let (words, minimum, maximum) = regexes.openText(content), words.allSatisfy({ $0.count < maximum ?? .max })
        {
            return LanguageMask(free: Free(minimum: minimum, maximum: maximum, removed: Set(closing(at: Set(words)))))
        }
        walk(language, listedNeed == .max ? .none : .listing(above: listedNeed), into: &mask)
        return mask
    }

    /// Removes the tokens that close a string after less than a minimum number of characters.
    private func closed(_ mask: LanguageMask, from minimum: Int) -> LanguageMask {
        let table = vocabulary.freeText
        var result = mask
        let early = table.closing.lazy.filter { $0.characters < minimum }.map(\.token)
        if let dense = mask.dense {
            result.removed += early.filter { dense[Int($0) >> 5] >> UInt32($0 & 31) & 1 == 1 }
        } else if !mask.list.isEmpty {
            let set = Set(early)
            result.list.removeAll { set.contains($0) }
        }
        result.exits.removeAll { table.characters(beforeClosing: $0) < minimum }
        return result
    }

    /// Removes the tokens that exceed a maximum number of characters.
    private func limited(_ mask: LanguageMask, _ maximum: Int32, _ language: RegexID) -> LanguageMask {
        var result = mask
        automaton.regexes.spend(parts: (mask.needs.count + mask.exitNeeds.count) / 8)
        (result.needs, result.exitNeeds) = ([], [])
        let removed = mask.needs.prefix { $0.most > maximum }.filter {
            $0.least > maximum || !reaches(language, vocabulary.texts[Int($0.id)] ?? [])
        }.map(\.id)
        if removed.count > Self.longestList, var dense = mask.dense {
            for token in removed { dense[Int(token) >> 5] &= ~(1 << UInt32(token & 31)) }
            result.dense = dense
            size += dense.count * 4
        } else if !removed.isEmpty {
            result.removed = mask.dense == nil ? [] : removed
            let set = Set(removed)
            result.list.removeAll { set.contains($0) }
        }
        let closed = Set(
            mask.exitNeeds.prefix { $0.most > maximum }.filter {
                $0.least > maximum || !reaches(language, path(to: Int($0.id)))
            }.map(\.id))
        if !closed.isEmpty { result.exits.removeAll { closed.contains($0) } }
        return result
    }

    /// The bytes on the path from the root to a node.
    func path(to node: Int) -> [UInt8] {
        let token = Int(trie.tokens[Int(trie.nodes[node].firstToken)])
        return Array((vocabulary.texts[token] ?? []).prefix(Int(trie.nodes[node].depth)))
    }

    private func reaches(_ language: RegexID, _ bytes: [UInt8]) -> Bool {
        var state = language
        automaton.regexes.spend(parts: 1 + bytes.count / 4)
        for byte in bytes {
            guard let row = automaton.regexes.liveRow(state) else { return false }
            state = row[Int(byte)]
            if state == RegexArena.empty { return false }
        }
        return true
    }

    /// Tokens that close a string directly after one of `words`, whatever follows the closing quote.
    func closing(at words: Set<[UInt8]>) -> [Int32] {
        var removed: [Int32] = []
        for word in words {
            var text: [UInt8] = []
            JSONText.escape(word, into: &text)
            text.append(UInt8(ascii: "\""))
            var node = 0
            for byte in text {
                guard node >= 0 else { break }
                node = trie.child(of: node, byte)
            }
            guard node > 0 else { continue }
            removed += trie.tokens[Int(trie.nodes[node].firstToken)..<trie.lastToken(below: node)]
        }
        automaton.regexes.spend(parts: words.count + vocabulary.freeText.closingWithEscape.count * 4)
        // The same texts can also be written with escapes.
        for token in vocabulary.freeText.closingWithEscape {
            let body = (vocabulary.texts[Int(token)] ?? [])
            guard let end = JSONText.endOfString(body),
                let name = JSONText.decoded(body[..<end])
            else { continue }
            if words.contains(name), !removed.contains(token) { removed.append(token) }
        }
        return removed
    }

    private func open(_ language: RegexID, _ counting: VocabularyWalk.Counting) -> VocabularyWalk.Open {
        let regexes = automaton.regexes
        guard let run = regexes.textRun(language), run.leads == LeadBytes.allBits else { return VocabularyWalk.Open() }
        var length = run.maximum ?? .max
        if let limit = counting.limit { length = min(length, limit - Int32(clamping: regexes.sufficientLength(run.language))) }
        if length < Self.leastOpenLength { return VocabularyWalk.Open() }
        return VocabularyWalk.Open(length: length, other: ~(run.classes | ByteClasses.mask(0x80)))
    }

    private static let leastOpenLength: Int32 = 6

    /// Adds the tokens of the whole vocabulary that continue a language.
    private func walk(_ language: RegexID, _ counting: VocabularyWalk.Counting, into mask: inout LanguageMask) {
        let regexes = automaton.regexes
        // Where the exact language reaches a limit, the automaton allows nothing.
        if case .within(_, let exact) = counting, regexes.liveRow(exact) == nil { return }
        walkStates.removeUnneeded()
        let open = open(language, counting)
        let found = VocabularyWalk.run(language, regexes, walkStates, trie, counting, open, bits: &scratch)
        work += found.visited
        (mask.exits, mask.needs, mask.exitNeeds) = (found.exits, found.needs, found.exitNeeds)
        if open.length > 0 || found.count > Self.longestList {
            if open.length > 0 {
                let plain = vocabulary.plainText(without: open.other)
                for (index, word) in vocabulary.freeText.inside(atMost: Int(open.length)).enumerated() {
                    scratch[index] |= word & plain[index]
                }
            }
            mask.dense = scratch
            size += scratch.count * 4
            for index in scratch.indices { scratch[index] = 0 }
        } else {
            mask.list = found.list
            for token in mask.list { scratch[Int(token) >> 5] = 0 }
        }
    }
}

extension [MaskTable.Need] {
    /// Sorts by ``MaskTable/Need/most``, in descending order. Most of the vocabulary can be in the list, with few
    /// different needs: counting is faster than comparing.
    fileprivate mutating func sortByMost() {
        guard count > 64, let first = self.lazy.map(\.most).max(), let last = self.lazy.map(\.most).min(),
            first - last < 4_096
        else {
            sort { $0.most > $1.most }
            return
        }
        var position = [Int](repeating: 0, count: Int(first - last) + 2)
        for need in self { position[Int(first - need.most) + 1] += 1 }
        for index in position.indices.dropFirst() { position[index] += position[index - 1] }
        self = [MaskTable.Need](unsafeUninitializedCapacity: count) { sorted, initialized in
            for need in self {
                sorted.initializeElement(at: position[Int(first - need.most)], to: need)
                position[Int(first - need.most)] += 1
            }
            initialized = count
        }
    }
}
