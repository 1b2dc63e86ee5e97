internal import Foundation

/// A value of the template language.
enum TemplateValue: Sendable {
    case undefined
    case none
    case bool(Bool)
    case int(Int)
    case float(Double)
    case string(TemplateText)
    case list([TemplateValue])
    /// Keys in order of insertion.
    case dictionary(TemplateDictionary)
    case namespace(TemplateNamespace)
    case function(TemplateFunction)

    static func text(_ string: String) -> TemplateValue { .string(TemplateText(string)) }

    var isTrue: Bool {
        switch self {
        case .undefined, .none: false
        case .bool(let value): value
        case .int(let value): value != 0
        case .float(let value): value != 0
        case .string(let value): !value.isEmpty
        case .list(let value): !value.isEmpty
        case .dictionary(let value): !value.pairs.isEmpty
        case .namespace, .function: true
        }
    }

    /// The output of `{{ value }}`: Python's `str`. Strings keep their origin marks.
    var output: TemplateText {
        switch self {
        case .undefined: return TemplateText()
        case .string(let text): return text
        default:
            var text = TemplateText()
            write(to: &text)
            return text
        }
    }

    /// Appends Python's `repr` of the value.
    private func write(to text: inout TemplateText) {
        switch self {
        case .undefined, .none: text.append("None", isUser: false)
        case .bool(let value): text.append(value ? "True" : "False", isUser: false)
        case .int(let value): text.append("\(value)", isUser: false)
        case .float(let value): text.append("\(value)", isUser: false)
        case .string(let string): text.append(Self.quoted(string))
        case .list(let values):
            var separator = "["
            for value in values {
                text.append(separator, isUser: false)
                value.write(to: &text)
                separator = ", "
            }
            text.append(values.isEmpty ? "[]" : "]", isUser: false)
        case .dictionary(let dictionary):
            var separator = "{"
            for pair in dictionary.pairs {
                text.append(separator, isUser: false)
                TemplateDictionary.key(pair).write(to: &text)
                text.append(": ", isUser: false)
                pair.value.write(to: &text)
                separator = ", "
            }
            text.append(dictionary.pairs.isEmpty ? "{}" : "}", isUser: false)
        case .namespace, .function: text.append("<object>", isUser: false)
        }
    }

    /// Python's `repr` of a string: in double quotes if it contains single quotes only.
    private static func quoted(_ text: TemplateText) -> TemplateText {
        func has(_ quote: Character) -> Bool { text.runs.contains { $0.text.contains(quote) } }
        let quote: Unicode.Scalar = has("'") && !has("\"") ? "\"" : "'"
        var result = TemplateText(String(quote))
        result.append(text.mapRuns { escaped($0, quote: quote) })
        result.append(String(quote), isUser: false)
        return result
    }

    private static func escaped(_ text: String, quote: Unicode.Scalar) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case quote: result += "\\" + String(quote)
            case _
            where scalar.value < 0x20 || scalar.value == 0x7F || (0x80..<0xA1).contains(scalar.value) || scalar.value == 0xAD:
                let digits = String(scalar.value, radix: 16)
                result += "\\x" + (digits.count < 2 ? "0" : "") + digits
            case _ where isInvisible(scalar):
                let digits = String(scalar.value, radix: 16)
                let width = scalar.value > 0xFFFF ? 8 : 4
                result += (width == 8 ? "\\U" : "\\u") + String(repeating: "0", count: width - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    private static func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: true
        case .spaceSeparator: scalar != " "
        default: false
        }
    }

    var number: Double? {
        switch self {
        case .int(let value): Double(value)
        case .float(let value): value
        case .bool(let value): value ? 1 : 0
        default: nil
        }
    }

    static func equal(_ a: TemplateValue, _ b: TemplateValue) -> Bool {
        switch (a, b) {
        case (.undefined, .undefined), (.none, .none): true
        case (.string(let a), .string(let b)): a == b
        case (.list(let a), .list(let b)): a.count == b.count && zip(a, b).allSatisfy(equal)
        case (.dictionary(let a), .dictionary(let b)):
            a.pairs.count == b.pairs.count && a.pairs.allSatisfy { pair in b[pair.key].map { equal(pair.value, $0) } ?? false }
        default: a.number.flatMap { x in b.number.map { x == $0 } } ?? false
        }
    }

    /// JSON as written by Python's `json.dumps(…, ensure_ascii=isASCII)`; strings keep their origin marks.
    func json(indent: Int? = nil, isASCII: Bool = false) throws(TemplateError) -> TemplateText {
        var text = TemplateText()
        try writeJSON(to: &text, indent: indent, level: 0, isASCII: isASCII)
        return text
    }

    private func writeJSON(to text: inout TemplateText, indent: Int?, level: Int, isASCII: Bool) throws(TemplateError) {
        guard text.utf8Count <= TemplateBudget.maximumText else { throw .limit(reason: "a string is too long") }
        func line(_ level: Int) -> String { indent.map { "\n" + String(repeating: " ", count: $0 * level) } ?? "" }
        let next = (indent == nil ? ", " : ",") + line(level + 1)
        switch self {
        case .undefined, .none, .namespace, .function: text.append("null", isUser: false)
        case .bool(let value): text.append(value ? "true" : "false", isUser: false)
        case .int, .float: write(to: &text)
        case .string(let string): Self.writeJSON(string, to: &text, isASCII: isASCII)
        case .list(let values):
            var separator = "[" + line(level + 1)
            for value in values {
                text.append(separator, isUser: false)
                try value.writeJSON(to: &text, indent: indent, level: level + 1, isASCII: isASCII)
                separator = next
            }
            text.append(values.isEmpty ? "[]" : line(level) + "]", isUser: false)
        case .dictionary(let dictionary):
            var separator = "{" + line(level + 1)
            for pair in dictionary.pairs {
                text.append(separator, isUser: false)
                Self.writeJSON(TemplateDictionary.text(pair), to: &text, isASCII: isASCII)
                text.append(": ", isUser: false)
                try pair.value.writeJSON(to: &text, indent: indent, level: level + 1, isASCII: isASCII)
                separator = next
            }
            text.append(dictionary.pairs.isEmpty ? "{}" : line(level) + "}", isUser: false)
        }
    }

    private static func writeJSON(_ string: TemplateText, to text: inout TemplateText, isASCII: Bool) {
        text.append("\"", isUser: false)
        text.append(string.mapRuns { escaped($0, isASCII: isASCII) })
        text.append("\"", isUser: false)
    }

    private static func escaped(_ text: String, isASCII: Bool) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case "\u{8}": result += "\\b"
            case "\u{C}": result += "\\f"
            case _ where scalar.value < 0x20:
                result += "\\u" + String(repeating: "0", count: scalar.value < 0x10 ? 3 : 2) + String(scalar.value, radix: 16)
            case _ where isASCII && scalar.value > 0x7E:
                for unit in String(scalar).utf16 {
                    let digits = String(unit, radix: 16)
                    result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                }
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}

/// An ordered dictionary with string keys.
struct TemplateDictionary: Sendable {
    /// Where a key is from. A key that is partly from a message is from a message. Integer keys differ from strings of the
    /// same digits in the output only.
    enum Origin { case template, user, integer }

    private(set) var pairs: [(key: String, value: TemplateValue, origin: Origin)] = []
    /// The positions of the keys; empty while there are few, which are found sooner one after the other.
    private var index: [String: Int] = [:]
    /// At least the number of entries of `loop`, which is made for each iteration.
    static let maximumUnindexed = 16

    init(_ pairs: [(String, TemplateValue)] = [], origin: Origin = .template) {
        for (key, value) in pairs { set(key, value, origin) }
    }

    subscript(key: String) -> TemplateValue? {
        get { position(of: key).map { pairs[$0].value } }
        set {
            if let newValue {
                set(key, newValue, .template)
            } else if let position = position(of: key) {
                pairs.remove(at: position)
                index = [:]
                if pairs.count > Self.maximumUnindexed { makeIndex() }
            }
        }
    }

    private func position(of key: String) -> Int? {
        index.isEmpty ? pairs.firstIndex { $0.key == key } : index[key]
    }

    private mutating func makeIndex() {
        index = Dictionary(pairs.enumerated().map { ($1.key, $0) }) { first, _ in first }
    }

    /// Sets a value. A key that is there keeps its place and its origin.
    private mutating func set(_ key: String, _ value: TemplateValue, _ origin: Origin) {
        if let position = position(of: key) {
            pairs[position].value = value
        } else {
            pairs.append((key, value, origin))
            if !index.isEmpty { index[key] = pairs.count - 1 } else if pairs.count > Self.maximumUnindexed { makeIndex() }
        }
    }

    /// Sets the value of a key that may be an integer.
    mutating func set(_ key: TemplateValue, _ value: TemplateValue) {
        let text = key.output
        if case .int = key {
            set(text.string, value, .integer)
        } else {
            set(text.string, value, text.hasUserText ? .user : .template)
        }
    }

    /// A key as a template value.
    static func key(_ pair: (key: String, value: TemplateValue, origin: Origin)) -> TemplateValue {
        pair.origin == .integer ? .int(Int(pair.key) ?? 0) : .string(text(pair))
    }

    /// The text of a key.
    static func text(_ pair: (key: String, value: TemplateValue, origin: Origin)) -> TemplateText {
        TemplateText(pair.key, isUser: pair.origin == .user)
    }
}

/// The result of `namespace(…)`: the only mutable object, which allows loops to change outer state.
final class TemplateNamespace: @unchecked Sendable {  // Used by one rendering only, which is single-threaded.
    var values: TemplateDictionary
    init(_ values: TemplateDictionary) { self.values = values }
}

/// A function that a template can call.
enum TemplateFunction: Sendable {
    case builtin(String)
    case macro(TemplateMacro)
}

struct TemplateMacro: Sendable {
    var parameters: [(name: String, value: TemplateExpression?)]
    var body: [TemplateNode]
}

/// Why a template cannot be used.
package enum TemplateError: Error, Equatable, CustomStringConvertible {
    /// The template's text is malformed or uses an unsupported feature.
    case syntax(line: Int, reason: String)
    /// Rendering failed.
    case rendering(reason: String)
    /// The conversation is larger than a template may render.
    case limit(reason: String)
    /// The template rejected the conversation with `raise_exception`.
    case raised(String)

    package var description: String {
        switch self {
        case .syntax(let line, let reason): "The model's chat template cannot be parsed, line \(line): \(reason)."
        case .rendering(let reason): "The model's chat template failed: \(reason)."
        case .limit(let reason): "The conversation cannot be rendered by the model's chat template: \(reason). Shorten it."
        case .raised(let message): "The model's chat template rejected the conversation: \(message)"
        }
    }
}
