/// Checks a response while it is generated. Each part is checked a few times at most, however long the response is.
struct CheckedOutput {
    private let isChecked: Bool
    private var recent = ""
    private var unchecked = 0
    private var found: Guardrail.Violation?

    /// The minimum number of UTF-8 bytes between checks.
    private static let step = 200
    /// The number of scalars kept from before the last check.
    private static let keptScalars = 400

    init(isChecked: Bool) { self.isChecked = isChecked }

    var isUnsafe: Bool { found != nil }

    mutating func append(_ text: String) {
        guard isChecked, found == nil else { return }
        recent += text
        unchecked += text.utf8.count
        if unchecked >= Self.step { check() }
    }

    private mutating func check() {
        found = Guardrail.violation(in: recent, threshold: Guardrail.responseThreshold)
        // Scalars, because a character may consist of any number of them.
        recent = String(String.UnicodeScalarView(recent.unicodeScalars.suffix(Self.keptScalars)))
        unchecked = 0
    }

    /// The words of a shorter text say too little: a single character in Chinese counted as hate.
    private static let minimumBytes = 40

    /// The error of an unsafe response, once it is complete.
    var violation: LanguageModelError? {
        mutating get {
            if found == nil, unchecked > 0, recent.utf8.count >= Self.minimumBytes { check() }
            return found.map { Guardrail.error("The response", $0) }
        }
    }
}
