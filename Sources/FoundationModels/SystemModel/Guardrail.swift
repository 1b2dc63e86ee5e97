/// Detects texts that request or contain instructions for serious harm. A rule matches only if the text contains both
/// the subject and the intent; single words do not match.
///
/// A coarse filter of fixed phrases, without a model: it detects direct requests, not disguised ones.
enum Guardrail {
    private struct Rule {
        let name: String
        /// A text matches if it contains at least one word or phrase of each group.
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

    /// The name of the first rule that matches a text.
    static func violation(in text: String) -> String? {
        let words = " " + normalized(text) + " "
        return rules.first { rule in
            rule.groups.allSatisfy { group in group.contains { words.contains(" \($0) ") } }
        }?.name
    }

    /// The text in lower case, with words separated by single spaces.
    private static func normalized(_ text: String) -> String {
        text.lowercased().split { !$0.isLetter && !$0.isNumber }.joined(separator: " ")
    }

    /// - Throws: ``LanguageModelError/guardrailViolation(_:)`` if the last prompt is unsafe.
    static func check(prompt transcript: Transcript) throws {
        guard case .prompt(let prompt)? = transcript.last(where: { if case .prompt = $0 { true } else { false } }),
            let rule = violation(in: prompt.segments.modelText)
        else { return }
        throw error("The prompt", rule)
    }

    fileprivate static func error(_ subject: String, _ rule: String) -> LanguageModelError {
        .guardrailViolation(.init(debugDescription: "\(subject) may be unsafe (\(rule)).", metadata: ["rule": rule]))
    }
}

/// Checks a response while it is generated. Each part is checked at most twice, however long the response is.
struct CheckedOutput {
    private let isChecked: Bool
    private var recent = ""
    private var unchecked = 0
    private var rule: String?

    /// The minimum number of UTF-8 bytes between checks, and the number of characters kept from before the last check.
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

    /// The error of an unsafe response, once it is complete.
    var violation: LanguageModelError? {
        mutating get {
            if rule == nil, unchecked > 0 { check() }
            return rule.map { Guardrail.error("The response", $0) }
        }
    }
}
