/// Checks texts for what should neither be asked nor said: instructions for grave harm. Words alone are harmless; it takes the
/// subject and the intent together.
///
/// A net with wide meshes, without a model of its own: it catches plain requests, not clever ones.
enum Guardrail {
    private struct Rule {
        let name: String
        /// Each group must have a word or phrase in the text.
        let groups: [[String]]
    }

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

    /// The name of the first rule that a text breaks.
    static func violation(in text: String) -> String? {
        let words = " " + normalized(text) + " "
        return rules.first { rule in
            rule.groups.allSatisfy { group in group.contains { words.contains(" \($0) ") } }
        }?.name
    }

    /// Lower case, words apart by single spaces.
    private static func normalized(_ text: String) -> String {
        text.lowercased().split { !$0.isLetter && !$0.isNumber }.joined(separator: " ")
    }

    /// - Throws: ``LanguageModelError/guardrailViolation(_:)`` if what was asked last is not safe.
    static func check(prompt transcript: Transcript) throws {
        guard case .prompt(let prompt)? = transcript.last(where: { if case .prompt = $0 { true } else { false } }),
            let rule = violation(in: prompt.segments.modelText)
        else { return }
        throw error("The prompt", rule)
    }

    fileprivate static func error(_ subject: String, _ rule: String) -> LanguageModelError {
        .guardrailViolation(.init(debugDescription: "\(subject) may not be safe (\(rule)).", metadata: ["rule": rule]))
    }
}

/// A response that is checked as it grows: each part is looked at twice at most, however long the response is.
struct CheckedOutput {
    private let isChecked: Bool
    private var recent = ""
    private var unchecked = 0
    private var rule: String?

    /// Characters between checks, and characters that are kept from before the last one.
    private static let step = 200

    init(isChecked: Bool) { self.isChecked = isChecked }

    var isUnsafe: Bool { rule != nil }

    mutating func append(_ text: String) {
        guard isChecked, rule == nil else { return }
        recent += text
        unchecked += text.utf8.count
        if unchecked >= Self.step { check() }
    }

    private mutating func check() {
        rule = Guardrail.violation(in: recent)
        recent = String(recent.suffix(Self.step))
        unchecked = 0
    }

    /// The error of a response that is not safe, once it is complete.
    var violation: LanguageModelError? {
        mutating get {
            if rule == nil, unchecked > 0 { check() }
            return rule.map { Guardrail.error("The response", $0) }
        }
    }
}
