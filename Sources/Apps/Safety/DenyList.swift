public import Foundation
internal import TextScreening

/// Terms that must not occur in prompts or responses.
///
/// Terms are found whatever their case and however they are written: in full-width or mathematical letters, with or without
/// diacritics, with zero-width characters, with digits, signs and letters of other scripts that look alike (`k1ll`), or in letters
/// with spaces or signs between them (`k.i.l.l`). Not found are other spellings (`kiill`), characters that stand for any letter
/// (`k*ll`), several characters in place of one (`|<ill`), words that are all in letters of another alphabet, and spaced letters
/// next to other single letters.
///
/// Finding takes time proportional to the text and hardly depends on the number of terms. A list can be used by several tasks.
public struct DenyList: Sendable {
    /// What happens to a text with a term.
    public enum Action: Sendable, Hashable {
        /// The request fails with `LanguageModelError.guardrailViolation`.
        case reject
        /// The term is replaced. The text that replaces it is not searched again.
        case replace(with: String)
    }

    /// A text that is checked.
    public enum Subject: Sendable, Hashable, CaseIterable {
        case prompt, response
    }

    /// An occurrence of a term.
    public struct Occurrence: Sendable, Equatable {
        /// Where the term is in the text.
        public let range: Range<String.Index>
        /// The term as the list has it.
        public let term: String
    }

    /// Why a list could not be made.
    public enum ListError: Error, LocalizedError, Equatable {
        /// The terms have more than four million different beginnings.
        case tooManyTerms(count: Int)
        /// The text is not UTF-8.
        case notText(source: String)
        /// The server answered with an error.
        case download(source: String, status: Int)
        /// The list is larger than 16 MiB.
        case tooLarge(source: String)

        public var errorDescription: String? {
            switch self {
            case .tooManyTerms(let count): "The deny list has too many terms (\(count)). Divide it into several lists."
            case .notText(let source): "\(source) is not a deny list: it is not UTF-8 text."
            case .download(let source, let status):
                "\(source) could not be downloaded: the server answered with status \(status)."
            case .tooLarge(let source): "\(source) is larger than 16 MiB, the limit for deny lists."
            }
        }
    }

    /// The name that errors mention.
    public var name: String
    /// What happens to a text with a term.
    public var action: Action
    /// The texts that are checked.
    public var subjects: Set<Subject>
    /// The languages of the terms; empty for terms of any language.
    public var languages: Set<Locale.LanguageCode>
    /// The terms, without those that are allowed.
    public let terms: [String]

    let automaton: TermAutomaton

    private static let maximumBytes = 16 << 20

    /// Creates a list.
    ///
    /// - Parameters:
    ///   - terms: Words and phrases that are found where no letter or digit precedes or follows them.
    ///   - parts: Terms that are also found within words.
    ///   - allowedPhrases: Phrases in which terms do not count, such as the names of dishes and places.
    ///   - ignoresDiacritics: Whether letters with and without diacritics are the same.
    /// - Throws: ``ListError/tooManyTerms(count:)``
    public init(
        name: String = "deny list", terms: [String], parts: [String] = [], allowedPhrases: [String] = [],
        action: Action = .reject,
        subjects: Set<Subject> = Set(Subject.allCases), languages: Set<Locale.LanguageCode> = [], ignoresDiacritics: Bool = true
    ) throws {
        self.name = name
        self.terms = terms + parts
        self.action = action
        self.subjects = subjects
        self.languages = languages
        do {
            automaton = try TermAutomaton(
                terms.map { ($0, true, false) } + parts.map { ($0, false, false) } + allowedPhrases.map { ($0, true, true) },
                keepsDiacritics: !ignoresDiacritics, findsLookAlikes: true, findsSpacedLetters: true)
        } catch {
            throw ListError.tooManyTerms(count: terms.count + parts.count + allowedPhrases.count)
        }
    }

    /// Creates a list from a text: one term in each line. `*term*` is found within words too, `+phrase` is allowed, and lines that
    /// begin with `#` are comments.
    ///
    /// - Throws: ``ListError``
    public init(
        name: String, text: String, action: Action = .reject, subjects: Set<Subject> = Set(Subject.allCases),
        languages: Set<Locale.LanguageCode> = []
    ) throws {
        var terms: [String] = []
        var parts: [String] = []
        var allowed: [String] = []
        for line in text.split(whereSeparator: \.isNewline) {
            // A file may begin with a byte order mark.
            let line = line.trimmingCharacters(in: .whitespaces.union(CharacterSet(charactersIn: "\u{FEFF}")))
            if line.isEmpty || line.hasPrefix("#") { continue }
            if line.hasPrefix("+") {
                allowed.append(String(line.dropFirst()))
            } else if line.hasPrefix("*"), line.hasSuffix("*"), line.count > 2 {
                parts.append(String(line.dropFirst().dropLast()))
            } else {
                terms.append(line)
            }
        }
        try self.init(
            name: name, terms: terms, parts: parts, allowedPhrases: allowed, action: action, subjects: subjects,
            languages: languages)
    }

    /// Reads a list from a file or from a server (`http` and `https`), in the format of ``init(name:text:action:subjects:languages:)``.
    ///
    /// - Parameter name: The name of the list; nil for the last part of the address.
    /// - Throws: ``ListError``, or an error of Foundation if the file cannot be read or the server cannot be reached.
    public static func load(
        from url: URL, name: String? = nil, action: Action = .reject, subjects: Set<Subject> = Set(Subject.allCases),
        languages: Set<Locale.LanguageCode> = []
    ) async throws -> DenyList {
        let data: Data?
        if url.isFileURL {
            // At the end of a file there is no data, not empty data.
            data = try FileHandle(forReadingFrom: url).read(upToCount: maximumBytes + 1) ?? Data()
        } else {
            let download = try await LimitedDownload.data(from: url, maximumBytes: maximumBytes)
            if let status = download.status, status != 200 {
                throw ListError.download(source: url.absoluteString, status: status)
            }
            data = download.data
        }
        guard let data, data.count <= maximumBytes else { throw ListError.tooLarge(source: url.absoluteString) }
        guard let text = String(data: data, encoding: .utf8) else { throw ListError.notText(source: url.absoluteString) }
        return try DenyList(
            name: name ?? url.lastPathComponent, text: text, action: action, subjects: subjects, languages: languages)
    }

    /// The terms in a text, in the order of their beginnings.
    public func occurrences(in text: String) -> [Occurrence] {
        var scanner = TermScanner(automaton)
        scanner.append(text)
        scanner.finish()
        return scanner.takeMatches().sorted { $0.range.lowerBound < $1.range.lowerBound }.map { match in
            let utf8 = text.utf8
            let start = utf8.index(utf8.startIndex, offsetBy: match.range.lowerBound)
            return Occurrence(
                range: start..<utf8.index(start, offsetBy: match.range.count), term: terms[match.source])
        }
    }

    /// A text with `replacement` in place of each term.
    public func replacingOccurrences(in text: String, with replacement: String) -> String {
        var filter = TermFilter(automaton, replacement: replacement)
        return filter.append(text) + filter.finish()
    }
}
