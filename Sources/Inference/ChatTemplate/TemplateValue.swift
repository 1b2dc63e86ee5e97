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

    /// The output of `{{ value }}`.
    var output: TemplateText {
        switch self {
        case .undefined: TemplateText()
        case .string(let text): text
        default: TemplateText(representation)
        }
    }

    /// Python's `str` of the value.
    private var representation: String {
        switch self {
        case .undefined, .none: "None"
        case .bool(let value): value ? "True" : "False"
        case .int(let value): "\(value)"
        case .float(let value): "\(value)"
        case .string(let text): Self.quoted(text.string)
        case .list(let values): "[" + values.map(\.representation).joined(separator: ", ") + "]"
        case .dictionary(let dictionary):
            "{"
                + dictionary.pairs.map { "\($0.isInteger ? $0.key : Self.quoted($0.key)): \($0.value.representation)" }
                .joined(separator: ", ") + "}"
        case .namespace, .function: "<object>"
        }
    }

    /// Python's `repr` of a string: in double quotes if it contains single quotes only.
    private static func quoted(_ text: String) -> String {
        let quote: Unicode.Scalar = text.contains("'") && !text.contains("\"") ? "\"" : "'"
        var result = String(quote)
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
        return result + String(quote)
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
    func json(indent: Int? = nil, level: Int = 0, isASCII: Bool = false) -> TemplateText {
        let line = indent.map { "\n" + String(repeating: " ", count: $0 * (level + 1)) }
        let end = indent.map { "\n" + String(repeating: " ", count: $0 * level) } ?? ""
        func items(_ open: String, _ close: String, _ parts: [TemplateText]) -> TemplateText {
            if parts.isEmpty { return TemplateText(open + close) }
            var result = TemplateText(open + (line ?? ""))
            result.append(TemplateText.join(parts, separator: TemplateText(line.map { "," + $0 } ?? ", ")))
            result.append(end + close, isUser: false)
            return result
        }
        switch self {
        case .undefined, .none, .namespace, .function: return TemplateText("null")
        case .bool(let value): return TemplateText(value ? "true" : "false")
        case .int, .float: return TemplateText(representation)
        case .string(let text):
            var result = TemplateText("\"")
            result.append(text.mapRuns { Self.escaped($0, isASCII: isASCII) })
            result.append("\"", isUser: false)
            return result
        case .list(let values): return items("[", "]", values.map { $0.json(indent: indent, level: level + 1, isASCII: isASCII) })
        case .dictionary(let dictionary):
            return items(
                "{", "}",
                dictionary.pairs.map { pair in
                    var part = TemplateText("\"" + Self.escaped(pair.key, isASCII: isASCII) + "\": ")
                    part.append(pair.value.json(indent: indent, level: level + 1, isASCII: isASCII))
                    return part
                })
        }
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
    private(set) var pairs: [(key: String, value: TemplateValue, isInteger: Bool)] = []
    /// The positions of the keys; empty while there are few, which are found sooner one after the other.
    private var index: [String: Int] = [:]
    private static let maximumUnindexed = 8

    init(_ pairs: [(String, TemplateValue)] = []) {
        for (key, value) in pairs { self[key] = value }
    }

    subscript(key: String) -> TemplateValue? {
        get { position(of: key).map { pairs[$0].value } }
        set {
            if let position = position(of: key) {
                if let newValue { pairs[position].value = newValue } else { remove(at: position) }
            } else if let newValue {
                pairs.append((key, newValue, false))
                if !index.isEmpty { index[key] = pairs.count - 1 } else if pairs.count > Self.maximumUnindexed { makeIndex() }
            }
        }
    }

    private func position(of key: String) -> Int? {
        index.isEmpty ? pairs.firstIndex { $0.key == key } : index[key]
    }

    private mutating func remove(at position: Int) {
        pairs.remove(at: position)
        index = [:]
        if pairs.count > Self.maximumUnindexed { makeIndex() }
    }

    private mutating func makeIndex() {
        index = Dictionary(pairs.enumerated().map { ($1.key, $0) }) { first, _ in first }
    }

    /// Sets the value of a key that may be an integer. Integer keys differ from strings of the same digits in the
    /// output only.
    mutating func set(_ key: TemplateValue, _ value: TemplateValue) {
        let name = key.output.string
        self[name] = value
        if case .int = key, let position = position(of: name) { pairs[position].isInteger = true }
    }

    /// A key as a template value.
    static func key(_ pair: (key: String, value: TemplateValue, isInteger: Bool)) -> TemplateValue {
        pair.isInteger ? .int(Int(pair.key) ?? 0) : .text(pair.key)
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
