import TextSearch

/// Decides by words which passage supports a statement.
///
/// Numbers and names of a statement must be in the passage or in the question. Most of the words that the question does not have
/// must be in the passage: they are what the statement adds.
struct StatementCheck: Sendable {
    /// The result for a statement.
    enum Result: Equatable {
        /// The passage with this number supports it.
        case supported(Int)
        /// No passage supports it.
        case unsupported(Problem)
    }

    /// Why a passage does not support a statement.
    enum Problem: Equatable, CustomStringConvertible {
        /// It says that there is no answer.
        case noAnswer
        /// A number is missing.
        case number(String)
        /// A name is missing.
        case name(String)
        /// Too many words are missing: these.
        case words([String])
        /// It has nothing in common with the passage that the question does not have.
        case unrelated
        /// It names no passage, and not exactly one supports it.
        case noPassage

        var description: String {
            switch self {
            case .noAnswer: "it does not answer the question"
            case .number(let number): "the passage does not have the number \(number)"
            case .name(let name): "the passage does not have the name \(name)"
            case .words(let words): "the passage does not have: \(words.joined(separator: ", "))"
            case .unrelated: "the passage is about something else"
            case .noPassage: "it names no passage"
            }
        }
    }

    private let question: Vocabulary
    private let passages: [(number: Int, vocabulary: Vocabulary)]

    /// - Parameter passages: Their numbers and what the model reads of them.
    init(question: String, passages: [(number: Int, text: String)]) {
        self.question = Vocabulary(question)
        self.passages = passages.map { ($0.number, Vocabulary($0.text)) }
    }

    /// The passage that supports a statement: the one that it cites or, if that does not, the only other one. Without a citation, the
    /// one that has most of its words.
    ///
    /// - Parameter source: The number of the passage that the statement cites; nil for none.
    func result(of statement: String, citing source: Int?) -> Result {
        let claims = Claims(statement)
        if claims.deniesAnswer { return .unsupported(.noAnswer) }
        var reason = Problem.noPassage
        if let cited = passages.first(where: { $0.number == source }) {
            guard let found = problem(of: claims, in: cited.vocabulary) else { return .supported(cited.number) }
            reason = found
        }
        let others = passages.filter { $0.number != source && problem(of: claims, in: $0.vocabulary) == nil }
        if others.count == 1, let other = others.first { return .supported(other.number) }
        func known(_ passage: Vocabulary) -> Int { claims.words.count { passage.has(word: $0) } }
        // The search has ordered the passages: of several that have as many, the first one.
        if source == nil, let most = others.map({ known($0.vocabulary) }).max(),
            let best = others.first(where: { known($0.vocabulary) == most })
        {
            return .supported(best.number)
        }
        return .unsupported(reason)
    }

    /// Why a passage does not support a statement; nil if it does.
    private func problem(of claims: Claims, in passage: Vocabulary) -> Problem? {
        if let number = claims.numbers.first(where: { !passage.has(number: $0) && !question.has(number: $0) }) {
            return .number(number)
        }
        if let name = claims.names.first(where: { !passage.has(name: $0) && !question.has(name: $0) }) { return .name(name) }
        if let name = claims.possibleNames.first(where: { !passage.has(word: $0) && !question.has(word: $0) }) {
            return .name(name)
        }
        let new = claims.words.filter { !question.has(word: $0) }
        let missing = new.filter { !passage.has(word: $0) }
        if !missing.isEmpty, missing.count * 2 >= new.count || missing.count * 3 > claims.words.count { return .words(missing) }
        return isRelated(claims, to: passage, addsWords: !new.isEmpty) ? nil : .unrelated
    }

    /// Whether a statement has something in common with a passage. A statement that only repeats words of the question, which
    /// the search may have found in every passage, needs more of them.
    private func isRelated(_ claims: Claims, to passage: Vocabulary, addsWords: Bool) -> Bool {
        guard !claims.words.isEmpty else { return claims.numbers.contains { passage.has(number: $0) } }
        let known = claims.words.count { passage.has(word: $0) }
        // The numbers of a table have few words around them; a number that the question lacks is in the passage here.
        let newNumbers = claims.numbers.count { !question.has(number: $0) }
        if newNumbers > 0 { return true }
        return addsWords ? known > 0 : known * 2 >= claims.words.count
    }
}

// MARK: - Claims

/// What a statement claims.
private struct Claims {
    /// The numbers, in the form of ``NumberText``.
    private(set) var numbers: [String] = []
    /// The names, as they are written.
    private(set) var names: [String] = []
    /// Words at the beginning of sentences that may be names.
    private(set) var possibleNames: [String] = []
    /// The distinct words with a meaning of their own in lower case, including names.
    private(set) var words: [String] = []
    /// Whether the statement says that there is no answer.
    let deniesAnswer: Bool

    init(_ statement: String) {
        let tokens = Token.tokens(of: statement)
        deniesAnswer = Denial.isOne(tokens.map(\.lowercased))
        var previous = ""
        for token in tokens {
            if token.numbers.isEmpty { add(word: token) } else { add(number: token, after: previous) }
            previous = token.lowercased
        }
    }

    private mutating func add(number: Token, after previous: String) {
        // “Passage 2” is a citation, and “one” is seldom a number.
        if number.lowercased != "one", !Self.references.contains(previous) { numbers += number.numbers }
    }

    private mutating func add(word: Token) {
        let found = SearchText.words(of: word.text, limit: .max).filter {
            !Self.references.contains($0) && !Self.connecting.contains($0)
        }
        guard !found.isEmpty else { return }
        if word.isName { names.append(word.text) } else if word.mayBeName { possibleNames.append(word.lowercased) }
        for new in found where !words.contains(new) { words.append(new) }
    }

    /// Words with which answers refer to passages. They need not be in them.
    private static let references: Set<String> = [
        "according", "answer", "excerpt", "excerpts", "mentioned", "mentions", "passage", "passages", "stated", "states",
    ]

    /// Words that connect others, in addition to the common words of ``SearchText``.
    private static let connecting: Set<String> = Set(
        """
        above additionally after against although among approximately around based below between beyond both called cannot \
        during each either especially following furthermore hence however include includes including inside instead itself \
        least less likely located moreover namely near neither nor often once onto otherwise outside per several specifically \
        themselves therefore though through throughout thus together toward towards typically under unless unlike until upon \
        usually various via whenever whether within without
        """.split(separator: " ").map(String.init))
}

/// Recognises statements that say that there is no answer: “The passage does not mention the price.”
private enum Denial {
    /// - Parameter words: All words of the statement in lower case, cut at apostrophes.
    static func isOne(_ words: [String]) -> Bool {
        let pairs = zip(words, words.dropFirst())
        if pairs.contains(where: { $0 == "no" && ["answer", "information", "mention"].contains($1) }) { return true }
        let sources = words.indices.filter { Self.sources.contains(words[$0]) }
        guard !sources.isEmpty else { return false }
        return sources.contains { saysNothing(words[($0 + 1)...].prefix(6)) } || isNotTold(words)
    }

    /// Whether the words after “passage” are like “does not say”.
    private static func saysNothing(_ words: ArraySlice<String>) -> Bool {
        guard let helper = words.firstIndex(where: { helpers.contains($0) }) else { return false }
        let rest = words[(helper + 1)...]
        guard let first = rest.first, negations.contains(first) else { return false }
        return rest.contains { verbs.contains($0) }
    }

    /// Whether there are words like “not mentioned” or “not explicitly mentioned”.
    private static func isNotTold(_ words: [String]) -> Bool {
        words.indices.contains { index in
            guard negations.contains(words[index]) else { return false }
            let next = words[(index + 1)...].first { !$0.hasSuffix("ly") }
            return next.map(participles.contains) ?? false
        }
    }

    private static let sources: Set<String> = [
        "document", "documents", "excerpt", "excerpts", "passage", "passages", "text", "texts",
    ]
    private static let helpers: Set<String> = ["did", "didn", "do", "does", "doesn", "don"]
    /// “Doesn't” is cut into “doesn” and “t”.
    private static let negations: Set<String> = ["not", "t"]
    private static let verbs: Set<String> = [
        "answer", "contain", "describe", "explain", "give", "have", "include", "indicate", "mention", "provide", "say", "specify",
        "state", "tell",
    ]
    private static let participles: Set<String> = ["answered", "mentioned", "provided", "specified", "stated"]
}

// MARK: - Vocabulary

/// The words and numbers of a text.
private struct Vocabulary {
    private var words: Set<String> = []
    /// The first letters of longer words, which their other forms have too: “renewed”, “renewal”.
    private var stems: Set<String> = []
    /// The words without their last letters.
    private var beginnings: Set<String> = []
    private var numbers: Set<String> = []

    private static let stemLength = 5

    init(_ text: String) {
        for token in Token.tokens(of: text) {
            numbers.formUnion(token.numbers)
            for word in SearchText.words(of: token.text, limit: .max, includesCommon: true).map(Self.spelled)
            where words.insert(word).inserted {
                if word.count >= Self.stemLength { stems.insert(String(word.prefix(Self.stemLength))) }
                beginnings.formUnion(Self.beginnings(of: word))
            }
        }
    }

    /// - Parameter number: In the form of ``NumberText``.
    func has(number: String) -> Bool { numbers.contains(number) }

    /// Whether the text has a word, or probably another form of it.
    ///
    /// - Parameter word: In lower case.
    func has(word: String) -> Bool {
        let word = Self.spelled(word)
        if words.contains(word) || beginnings.contains(word) { return true }
        if word.count >= Self.stemLength, stems.contains(String(word.prefix(Self.stemLength))) { return true }
        return Self.beginnings(of: word).contains { words.contains($0) }
    }

    /// Whether the text has a name. Names with the same beginning may be those of two people, so fewer forms are allowed.
    func has(name: String) -> Bool {
        let name = Self.spelled(name.lowercased())
        return words.contains(name) || words.contains { Self.areForms($0, name) }
    }

    /// American spelling, which models prefer: “meters” for “metres”.
    private static func spelled(_ word: String) -> String {
        guard word.utf8.count >= 5 else { return word }
        if word.hasSuffix("tre") { return word.dropLast(2) + "er" }
        if word.hasSuffix("tres") { return word.dropLast(3) + "ers" }
        return word
    }

    /// The beginnings of a word without one or two letters: “fee” of “fees”, “box” of “boxes”.
    private static func beginnings(of word: String) -> [String] {
        [1, 2].map { String(word.dropLast($0)) }.filter { $0.count >= 3 }
    }

    /// Whether names differ only in an ending: “Alps” and “Alp”, “German” and “Germany”, but not “Paul” and “Paula”.
    private static func areForms(_ one: String, _ other: String) -> Bool {
        let (short, long) = one.count < other.count ? (one, other) : (other, one)
        guard long.hasPrefix(short) else { return false }
        let ending = long.dropFirst(short.count)
        if ending == "s" { return short.count >= 3 }
        return short.count >= stemLength && ending.count <= 3 && ending.allSatisfy(\.isLetter)
    }
}

// MARK: - Tokens

/// A word or a number of a text.
private struct Token {
    /// The text as it is written.
    var text: String
    /// What it says as a number, in the form of ``NumberText``; empty for other words.
    var numbers: [String]
    /// Whether it is the first of a sentence, where every word has a capital letter.
    var beginsSentence: Bool

    var lowercased: String { text.lowercased() }

    /// Whether a word is a name: it has a capital letter that is not that of a sentence, or a digit.
    var isName: Bool {
        if text.contains(where: { $0.isDigit }) || text.dropFirst().contains(where: \.isUppercase) { return true }
        return !beginsSentence && text.first?.isUppercase == true
    }

    /// Whether the first word of a sentence may be a name. Words with the endings of plurals, verbs and abstract nouns are not
    /// taken for names.
    var mayBeName: Bool {
        guard beginsSentence, text.first?.isUppercase == true else { return false }
        return !["s", "ing", "ly", "ed", "ion", "ment", "ity", "ness"].contains { text.hasSuffix($0) }
    }

    /// The words and numbers of a text in order. Words are cut at apostrophes and hyphens.
    static func tokens(of text: String) -> [Token] {
        var tokenizer = Tokenizer(text)
        tokenizer.run()
        return tokenizer.tokens
    }
}

/// Cuts a text into tokens.
private struct Tokenizer {
    private let characters: [Character]
    private var place = 0
    private var beginsSentence = true
    private(set) var tokens: [Token] = []

    init(_ text: String) { characters = Array(text) }

    mutating func run() {
        while place < characters.count {
            let character = characters[place]
            if character.isDigit {
                readNumber()
            } else if character.isLetter {
                add(word: read { $0.isLetter || $0.isDigit })
            } else {
                if endsSentence(character) { beginsSentence = true }
                place += 1
            }
        }
    }

    /// The characters from here on that satisfy a condition.
    private mutating func read(while condition: (Character) -> Bool) -> String {
        let run = characters[place...].prefix(while: condition)
        place = run.endIndex
        return String(run)
    }

    private mutating func readNumber() {
        let start = place
        while place < characters.count, characters[place].isDigit || joinsDigits { place += 1 }
        let text = String(characters[start..<place])
        tokens.append(Token(text: text, numbers: NumberText.numbers(in: text), beginsSentence: beginsSentence))
        beginsSentence = false
        // The letters in “3rd” have no meaning of their own; those in “25kg” have.
        let end = place
        let suffix = read { $0.isLetter }.lowercased()
        if !["st", "nd", "rd", "th"].contains(suffix) { place = end }
    }

    /// Whether the mark here is between two digits of a number: a digit is before it.
    private var joinsDigits: Bool {
        NumberText.marks.contains(characters[place]) && place + 1 < characters.count && characters[place + 1].isDigit
    }

    private mutating func add(word: String) {
        let value = NumberText.values[word.lowercased()]
        if let value, let last = tokens.last, let sum = NumberText.sum(of: last.lowercased, and: value) {
            tokens.removeLast()
            tokens.append(Token(text: "\(last.text)-\(word)", numbers: ["\(sum)"], beginsSentence: last.beginsSentence))
            return
        }
        tokens.append(Token(text: word, numbers: value.map { ["\($0)"] } ?? [], beginsSentence: beginsSentence))
        beginsSentence = false
    }

    /// Whether the next word may have a capital letter because of the character before it.
    private func endsSentence(_ character: Character) -> Bool {
        if character.isNewline { return true }
        // The dot in “J. Smith” is not the end of a sentence.
        if character == ".", let last = tokens.last?.text, last.count == 1, last.first?.isUppercase == true { return false }
        return ".!?:…\"“”«»".contains(character)
    }
}

/// Numbers in one form, however they are written: digits without marks between thousands, a dot before a fraction, and no zeros
/// that mean nothing.
private enum NumberText {
    /// The characters between the digits of a number.
    static let marks: Set<Character> = [".", ",", "'", "’", "\u{A0}", "\u{202F}"]

    /// The values of words.
    static let values: [String: Int] = {
        let units = """
            zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen \
            eighteen nineteen
            """.split(separator: " ")
        let tens = "twenty thirty forty fifty sixty seventy eighty ninety".split(separator: " ")
        let all = zip(units, 0...19).map { (String($0), $1) } + zip(tens, 2...9).map { (String($0), $1 * 10) }
        return Dictionary(uniqueKeysWithValues: all)
    }()

    /// The value of two words that are one number, such as “twenty-five”; nil if they are not.
    static func sum(of tens: String, and units: Int) -> Int? {
        guard (1...9).contains(units), let value = values[tens], value >= 20 else { return nil }
        return value + units
    }

    /// The numbers in a run of digits and marks; usually one.
    static func numbers(in run: String) -> [String] {
        // Digits of all scripts have the same value.
        var text = run.map { character in
            character.isDigit ? character.wholeNumberValue.map { "\($0)" } ?? "" : String(character)
        }.joined()
        for mark in marks where mark != "." { text = withoutThousands(text, mark) }
        // A single comma that is left is before a fraction; several separate numbers.
        if text.count(where: { $0 == "," }) == 1 { text = text.replacing(",", with: ".") }
        return text.split { !$0.isDigit && $0 != "." }.map { trimmed(String($0)) }
    }

    /// A number without a mark between its thousands; the same text if the mark means something else.
    private static func withoutThousands(_ text: String, _ mark: Character) -> String {
        let parts = text.split(separator: mark, omittingEmptySubsequences: false)
        guard parts.count > 1, let first = parts.first, (1...3).contains(first.count) else { return text }
        let areThousands = parts.dropFirst().allSatisfy { part in part.prefix { $0.isDigit }.count == 3 }
        return areThousands ? parts.joined() : text
    }

    private static func trimmed(_ text: String) -> String {
        var parts = text.split(separator: ".", omittingEmptySubsequences: false)
        if parts.count == 2, ["0", "00"].contains(parts[1]) { parts.removeLast() }
        let whole = parts[0].drop { $0 == "0" }
        parts[0] = whole.isEmpty ? "0" : whole
        return parts.joined(separator: ".")
    }
}

extension Character {
    /// Whether it is a decimal digit of any script.
    fileprivate var isDigit: Bool {
        guard let scalar = unicodeScalars.first else { return false }
        return scalar.properties.numericType == .decimal
    }
}
