internal import Grammar
package import TextScreening

/// Detects texts that may request or contain serious harm, in two ways that need no language model: phrases, of which a rule matches
/// only if the subject and the intent are near each other in one sentence, and the score of a small classifier.
///
/// Words are a suspicion: the probe of a model, which has read the whole prompt, confirms it or not. Models without a probe have the
/// words alone, which find few harmful requests (see BENCHMARKS.md).
package enum Guardrail {
    /// Why a text may be unsafe.
    package struct Violation: Sendable {
        /// The rule, or the category with the highest score.
        package var category: String
        /// The log-odds of the classifier; nil if a rule matched.
        package var score: Float?
    }

    /// The minimum log-odds of an unsafe prompt, and of an unsafe response: answers to harmless questions about health, war or
    /// crime have the words of harmful texts. Chosen by cross-validation over the training data.
    package static let promptThreshold: Float = 1
    package static let responseThreshold: Float = 2

    /// Checks a text with the rules and the classifier.
    package static func violation(in text: String, threshold: Float) -> Violation? {
        violation(in: text, UnsafeTextScore.score(text, threshold: threshold), threshold: threshold)
    }

    /// Checks a text that has been scored.
    package static func violation(in text: String, _ result: UnsafeTextScore.Result, threshold: Float) -> Violation? {
        if let rule = rule(in: text) { return Violation(category: rule, score: nil) }
        guard result.unsafe >= threshold else { return nil }
        let category = result.categories.max { $0.score < $1.score }?.name
        return Violation(category: category ?? "unsafe", score: result.unsafe)
    }

    private struct Rule {
        let name: String
        /// A text matches if a sentence has at least one word or phrase of each group, near each other.
        let groups: [[String]]
    }

    /// The largest distance, in words, of the phrases of a rule.
    private static let maximumDistance = 12

    private static let rules = [
        Rule(
            name: "weapons",
            groups: [
                ["build", "make", "construct", "assemble", "synthesize", "synthesise", "create", "cook"],
                [
                    "pipe bomb", "nail bomb", "a bomb", "car bomb", "nerve agent", "sarin", "ricin", "nerve gas", "dirty bomb",
                    "explosive device", "chemical weapon", "biological weapon",
                ],
            ]),
        Rule(
            name: "self-harm",
            groups: [
                ["how to", "how do i", "how can i", "best way to", "painless way to", "easiest way to"],
                ["kill myself", "commit suicide", "end my life", "hang myself", "hurt myself"],
            ]),
        Rule(
            name: "violence",
            groups: [
                ["how to", "how do i", "how can i", "best way to", "plan to", "help me"],
                [
                    "kill someone", "kill a person", "kill people", "kill my wife", "kill my husband", "kill my neighbor",
                    "kill my neighbour", "kill my boss", "murder someone", "commit murder", "get away with murder",
                    "poison someone", "commit a mass shooting",
                ],
            ]),
        Rule(
            name: "sexual content about minors",
            groups: [
                ["child", "children", "minor", "underage", "toddler", "preteen", "little girl", "little boy"],
                ["sexual content", "sexual story", "sexual act", "sexually explicit", "sex scene", "porn", "nude", "erotic"],
                ["write", "show", "describe", "create", "generate", "story", "picture", "image", "find"],
            ]),
    ]

    /// The name of the first rule that matches a text. Reads the text once, byte by byte.
    static func rule(in text: String) -> String? {
        var text = text
        return text.withUTF8 { bytes in
            // For each group of each rule, the number of the word at the end of its last phrase in this sentence.
            var places = rules.map { [Int?](repeating: nil, count: $0.groups.count) }
            var isEmpty = true
            var word = 0
            // Phrases that have begun at earlier words and may continue.
            var open: [Int32] = []
            var next: [Int32] = []
            var index = 0
            while index < bytes.count {
                let start = index
                while index < bytes.count, case let length = wordCharacterLength(bytes, at: index), length > 0 { index += length }
                if index == start {
                    if !isEmpty, isSentenceEnd(bytes, at: index) {
                        for rule in places.indices { for group in places[rule].indices { places[rule][group] = nil } }
                        isEmpty = true
                    }
                    index += 1
                    continue
                }
                word += 1
                // Most words are in no phrase.
                if open.isEmpty, bytes[start] < 0x80, phrases.firstLetters & 1 << UInt32(bytes[start] & 0x1F) == 0 { continue }
                // One word further in each phrase, and at the beginning of a new one.
                next.removeAll(keepingCapacity: true)
                open.append(0)
                for node in open {
                    guard let after = phrases.node(after: bytes[start..<index], from: node) else { continue }
                    for match in phrases.matches[after] ?? [] {
                        places[match.rule][Int(match.group)] = word
                        isEmpty = false
                        if places[match.rule].allSatisfy({ $0.map { word - $0 <= maximumDistance } ?? false }) {
                            return rules[match.rule].name
                        }
                    }
                    if let more = phrases.node(after: CollectionOfOne(UInt8(ascii: " ")), from: after) { next.append(more) }
                }
                swap(&open, &next)
            }
            return nil
        }
    }

    /// Whether a sentence ends at a byte that is not part of a word: an abbreviation or a number goes on without a space.
    private static func isSentenceEnd(_ bytes: UnsafeBufferPointer<UInt8>, at index: Int) -> Bool {
        switch bytes[index] {
        // A line may end within a sentence, a paragraph does not.
        case UInt8(ascii: "\n"): return index + 1 < bytes.count && bytes[index + 1] == UInt8(ascii: "\n")
        case UInt8(ascii: "."), UInt8(ascii: "!"), UInt8(ascii: "?"):
            let end = endOfClosingMarks(bytes, from: index + 1)
            return end == bytes.count || bytes[end] <= 0x20
        default: return false
        }
    }

    /// The index after the quotation marks and brackets that close what a sentence ends with.
    private static func endOfClosingMarks(_ bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
        var index = start
        while let mark = closingMarks.first(where: { bytes[index...].starts(with: $0) }) { index += mark.count }
        return index
    }

    private static let closingMarks = ["\"", "'", ")", "]", "”", "’", "“", "»", "›"].map { Array($0.utf8) }

    /// Number of bytes of the character at `index` if it is a letter or a number, otherwise 0.
    @inline(__always)
    private static func wordCharacterLength(_ bytes: UnsafeBufferPointer<UInt8>, at index: Int) -> Int {
        let byte = bytes[index]
        // The rest of a sign that is not a letter.
        if (0x80..<0xC0).contains(byte) { return 0 }
        if byte < 0x80 { return (0x61...0x7A).contains(byte | 0x20) || (0x30...0x39).contains(byte) ? 1 : 0 }
        let (scalar, length) = TextFolding.decode(bytes, at: index)
        return TextFolding.isWord(scalar) ? length : 0
    }

    private static let phrases = Phrases(rules.map(\.groups))

    /// The phrases of all rules, in lower case.
    private struct Phrases {
        struct Match {
            var rule: Int
            var group: UInt8
        }

        private let trie: WordTrie
        /// The phrases that end at each node.
        private(set) var matches: [Int32: [Match]] = [:]
        /// A bit for the last five bits of each byte with which a phrase begins.
        let firstLetters: UInt32

        init(_ rules: [[[String]]]) {
            trie = WordTrie(rules.joined().joined().map { Array($0.utf8) })
            firstLetters = rules.joined().joined().compactMap(\.utf8.first).reduce(0) { $0 | 1 << UInt32($1 & 0x1F) }
            for (rule, groups) in rules.enumerated() {
                for (group, phrases) in groups.enumerated() {
                    for phrase in phrases {
                        guard let node = node(after: phrase.utf8, from: 0) else { continue }
                        matches[node, default: []].append(Match(rule: rule, group: UInt8(group)))
                    }
                }
            }
        }

        /// The node after a word, in upper or lower case; nil if no phrase goes on with it.
        func node(after word: some Sequence<UInt8>, from start: Int32) -> Int32? {
            var node = start
            for byte in word {
                let isUppercase = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
                guard let next = trie.child(of: node, isUppercase ? byte | 0x20 : byte) else { return nil }
                node = next
            }
            return node
        }
    }

    static func error(_ subject: String, _ violation: Violation) -> LanguageModelError {
        var metadata: [String: any Sendable] = ["rule": violation.category]
        metadata["score"] = violation.score
        return .guardrailViolation(
            .init(debugDescription: "\(subject) may be unsafe (\(violation.category)).", metadata: metadata))
    }
}
