import FoundationModels
import TextScreening

/// Checks the text of a response as it is generated, and says what can be passed on.
struct CheckedResponse {
    typealias Event = LanguageModelExecutorGenerationChannel.Event

    private let classifier: (any GuardrailClassifier)?
    private var filter: ResponseFilter
    private let isJSON: Bool
    private let lists: [DenyList]
    /// The entry and segment to which the text belongs.
    private var target: (entryID: String?, segmentID: String?)?
    /// Whether the session knows of the segment.
    private var isPlaced = false
    /// Text that the lists have passed and the classifier has not seen, and the end of what it has seen.
    private var held = ""
    private var seen = ""
    private var heldTokens = 0

    /// The minimum number of UTF-8 bytes that a classifier checks at once, and the number of scalars before them that it sees.
    private static let step = 400

    init<Base>(_ checks: GuardedLanguageModel<Base>.Checks, isJSON: Bool) {
        lists = checks.denyLists.lists(for: .response, in: checks.language)
        classifier = checks.classifier.classifier
        self.isJSON = isJSON
        filter = ResponseFilter(lists, isJSON: isJSON)
    }

    /// The events to send in place of one.
    mutating func append(_ event: Event) async throws -> [Event] {
        guard let change = event.responseText else {
            // Entries and segments are in the order of their first events. Text that is held has its place before what follows.
            guard let target, !isPlaced else { return [event] }
            isPlaced = true
            return [Self.text("", of: target, tokenCount: 0), event]
        }
        var events: [Event] = []
        if let target, target != (change.entryID, change.segmentID) { events = try await end() }
        if target == nil { isPlaced = false }
        target = (change.entryID, change.segmentID)
        heldTokens += change.tokenCount
        if change.isReplacement {
            filter = ResponseFilter(lists, isJSON: isJSON)
            (held, seen) = ("", "")
        }
        let text = try await checked(try filter.append(change.text), isLast: false)
        if text.isEmpty, !change.isReplacement { return events }
        isPlaced = true
        defer { heldTokens = 0 }
        return events + [event.withResponseText(text, tokenCount: heldTokens)]
    }

    /// The events at the end of the response.
    mutating func finish() async throws -> [Event] { try await end() }

    /// Ends the text of the current segment.
    private mutating func end() async throws -> [Event] {
        guard let target else { return [] }
        let text = try await checked(try filter.finish(), isLast: true)
        filter = ResponseFilter(lists, isJSON: isJSON)
        seen = ""
        defer { heldTokens = 0 }
        self.target = nil
        if text.isEmpty, heldTokens == 0 { return [] }
        return [Self.text(text, of: target, tokenCount: heldTokens)]
    }

    private static func text(_ text: String, of target: (entryID: String?, segmentID: String?), tokenCount: Int) -> Event {
        .response(entryID: target.entryID, action: .appendText(text, segmentID: target.segmentID, tokenCount: tokenCount))
    }

    private mutating func checked(_ text: String, isLast: Bool) async throws -> String {
        guard let classifier else { return text }
        held += text
        guard isLast ? !held.isEmpty : held.utf8.count >= Self.step else { return "" }
        let assessment = try await classifier.assess(seen + held, as: .response)
        if assessment.isUnsafe { throw violation("The response", assessment) }
        defer { held = "" }
        // Scalars, because a character may consist of any number of them.
        seen = String(String.UnicodeScalarView((seen + held).unicodeScalars.suffix(Self.step)))
        return held
    }
}

/// Applies deny lists to a text, or to the texts of a JSON document one by one. Names of members are not texts.
private struct ResponseFilter {
    private let lists: [DenyList]
    private let isJSON: Bool
    private var filters: [TermFilter] = []

    /// Where the JSON reader is.
    private enum Place {
        case outside, name, text
    }
    private var place = Place.outside
    /// Whether each open container is an object, and whether a name comes next in the innermost one.
    private var isObject: [Bool] = []
    private var expectsName = false
    /// An escape sequence that has begun.
    private var escape = ""

    init(_ lists: [DenyList], isJSON: Bool) {
        self.lists = lists
        self.isJSON = isJSON
        restart()
    }

    private mutating func restart() {
        filters = lists.map { list in
            guard case .replace(let replacement) = list.action else { return TermFilter(list.automaton, replacement: "") }
            return TermFilter(list.automaton, replacement: replacement)
        }
    }

    /// - Throws: A violation if a list rejects the text.
    mutating func append(_ text: String) throws -> String {
        if lists.isEmpty { return text }
        guard isJSON else { return try filtered(text, isLast: false) }
        var result = ""
        var part = ""
        for scalar in text.unicodeScalars { try read(scalar, &part, &result) }
        if place == .text { result += Self.escaped(try filtered(part, isLast: false)) }
        return result
    }

    mutating func finish() throws -> String {
        if lists.isEmpty { return "" }
        let rest = try filtered("", isLast: true)
        restart()
        return isJSON ? Self.escaped(rest) : rest
    }

    private mutating func filtered(_ text: String, isLast: Bool) throws -> String {
        var text = text
        for index in filters.indices {
            text = filters[index].append(text)
            if isLast { text += filters[index].finish() }
            if case .reject = lists[index].action, let match = filters[index].found.first {
                throw violation("The response", list: lists[index], term: lists[index].terms[match.source])
            }
        }
        return text
    }

    /// - Parameter part: what has been read of a text, without escapes.
    private mutating func read(_ scalar: Unicode.Scalar, _ part: inout String, _ result: inout String) throws {
        switch place {
        case .outside:
            result.unicodeScalars.append(scalar)
            switch scalar {
            case "{": isObject.append(true)
            case "[": isObject.append(false)
            case "}", "]": _ = isObject.popLast()
            case "\"": place = expectsName ? .name : .text
            default: break
            }
            switch scalar {
            case "{": expectsName = true
            case ",": expectsName = isObject.last ?? false
            case "[", ":", "}", "]": expectsName = false
            default: break
            }
        case .name:
            result.unicodeScalars.append(scalar)
            if !escape.isEmpty {
                escape = ""
            } else if scalar == "\\" {
                escape = "\\"
            } else if scalar == "\"" {
                place = .outside
            }
        case .text:
            if !escape.isEmpty || scalar == "\\" {
                escape.unicodeScalars.append(scalar)
                if let character = Self.unescaped(escape) {
                    part += character
                    escape = ""
                }
            } else if scalar == "\"" {
                result += Self.escaped(try filtered(part, isLast: true)) + "\""
                part = ""
                place = .outside
                restart()
            } else {
                part.unicodeScalars.append(scalar)
            }
        }
    }

    /// The character of an escape sequence; nil if it is not complete.
    private static func unescaped(_ escape: String) -> String? {
        let count = escape.unicodeScalars.count
        guard count > 1 else { return nil }
        if escape.hasPrefix("\\u") {
            guard count >= 6 else { return nil }
            let isHigh = UInt32(escape.dropFirst(2).prefix(4), radix: 16).map { (0xD800...0xDBFF).contains($0) } ?? false
            let low = escape.unicodeScalars.dropFirst(6)
            if isHigh, count < 12, zip(low, "\\u".unicodeScalars).allSatisfy({ $0 == $1 }), low.last != "\"" { return nil }
        }
        // The decoder writes valid JSON; a sequence that is none becomes nothing.
        return (try? GeneratedContent(json: "\"\(escape)\"").value(String.self)) ?? ""
    }

    /// A text for a JSON string, without its quotation marks.
    private static func escaped(_ text: String) -> String {
        if !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x22 || $0 == 0x5C }) { return text }
        return String(GeneratedContent(text).jsonString.dropFirst().dropLast())
    }
}
