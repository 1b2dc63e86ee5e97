internal import Foundation
internal import JSON

/// The built-in filters, methods, functions and operators of the template language.
enum TemplateFilters {
    static let functions: Set<String> = ["range", "namespace", "dict", "raise_exception", "strftime_now"]
    static let names: Set<String> = [
        "trim", "length", "count", "upper", "lower", "capitalize", "title", "first", "last", "join", "default", "d", "tojson",
        "string", "int", "float", "list", "replace", "items", "dictsort", "map", "select", "reject", "selectattr", "rejectattr",
        "sort", "unique", "reverse", "safe", "from_json", "indent", "abs", "round", "sum", "min", "max",
    ]

    private static let maximumItems = 1 << 18

    /// Whether Python's `strip` removes the character.
    private static func isSpace(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.isWhitespace || (0x1C...0x1F).contains(scalar.value)
    }

    static func items(of value: TemplateValue) throws(TemplateError) -> [TemplateValue] {
        switch value {
        case .list(let values): values
        case .dictionary(let dictionary): dictionary.pairs.map(TemplateDictionary.key)
        case .string(let text):
            // Each character becomes a value.
            if text.utf8Count <= maximumItems {
                text.scalars.map { .string(TemplateText([$0])) }
            } else {
                throw .limit(reason: "a string is too long for its characters to be listed")
            }
        case .undefined: []
        default: throw .rendering(reason: "a loop needs a list")
        }
    }

    static func apply(
        _ name: String, to value: TemplateValue, _ arguments: [TemplateValue], _ named: [String: TemplateValue]
    ) throws(TemplateError) -> TemplateValue {
        func argument(_ index: Int, _ label: String) -> TemplateValue? {
            index < arguments.count ? arguments[index] : named[label]
        }
        switch name {
        case "trim", "upper", "lower", "capitalize", "title", "replace":
            let method = name == "trim" ? "strip" : name
            return try callMethod(method, on: .string(value.output), arguments, named)
        case "length", "count":
            switch value {
            case .string(let text): return .int(text.count)
            default: return .int(try items(of: value).count)
            }
        case "first", "last":
            if case .string = value { return try element(.int(name == "first" ? 0 : -1), of: value) }
            let items = try items(of: value)
            return (name == "first" ? items.first : items.last) ?? .undefined
        case "join":
            let separator = argument(0, "d")?.output ?? TemplateText()
            var parts = try items(of: value)
            if let attribute = argument(1, "attribute") {
                for index in parts.indices { parts[index] = try element(attribute, of: parts[index]) }
            }
            guard parts.count * separator.utf8Count <= TemplateInterpreter.maximumText else {
                throw .limit(reason: "a string is too long")
            }
            return .string(TemplateText.join(parts.map(\.output), separator: separator))
        case "default", "d":
            let fallback = argument(0, "default_value") ?? .text("")
            if case .undefined = value { return fallback }
            return argument(1, "boolean")?.isTrue == true && !value.isTrue ? fallback : value
        case "tojson":
            let isASCII = named["ensure_ascii"]?.isTrue == true
            if case .int(let width)? = named["indent"] ?? arguments.first {
                return .string(value.json(indent: min(max(width, 0), 16), isASCII: isASCII))
            }
            return .string(value.json(isASCII: isASCII))
        case "string": return .string(value.output)
        case "safe":
            var text = value.output
            text.isSafe = true
            return .string(text)
        case "from_json":
            do { return TemplateValue(try JSONParser.parse(value.output.string)) } catch {
                throw .rendering(reason: "a string is not valid JSON")
            }
        case "int": return .int(value.number.flatMap { Int(exactly: $0.rounded(.towardZero)) } ?? Int(value.output.string) ?? 0)
        case "float": return .float(value.number ?? Double(value.output.string) ?? 0)
        case "list": return .list(try items(of: value))
        case "items", "dictsort":
            guard case .dictionary(let dictionary) = value else { throw .rendering(reason: "“\(name)” needs a dictionary") }
            let pairs =
                name == "items"
                ? dictionary.pairs
                : dictionary.pairs.sorted { a, b in
                    if a.isInteger, b.isInteger { return (Int(a.key) ?? 0) < (Int(b.key) ?? 0) }
                    return a.key.lowercased() < b.key.lowercased()
                }
            return .list(pairs.map { .list([TemplateDictionary.key($0), $0.value]) })
        case "map", "select", "reject", "selectattr", "rejectattr":
            // `none` counts as an empty list.
            if case .none = value { return .list([]) }
            if name != "map" { return try select(name, value, arguments) }
            var result: [TemplateValue] = []
            for item in try items(of: value) {
                if let attribute = named["attribute"] {
                    result.append(try element(attribute, of: item))
                } else if let filter = arguments.first?.output.string, names.contains(filter) {
                    result.append(try apply(filter, to: item, Array(arguments.dropFirst()), named))
                } else {
                    throw .rendering(reason: "“map” needs an attribute or a filter")
                }
            }
            return .list(result)
        case "sort", "min", "max":
            let values = try items(of: value)
            let attribute = argument(name == "sort" ? 2 : 1, "attribute")
            var keyed: [(TemplateValue, TemplateValue)] = []
            for item in values {
                keyed.append((try attribute.map { (key) throws(TemplateError) in try element(key, of: item) } ?? item, item))
            }
            keyed.sort { precedes($0.0, $1.0) }
            if argument(0, "reverse")?.isTrue == true { keyed.reverse() }
            if name == "min" { return keyed.first?.1 ?? .undefined }
            if name == "max" { return keyed.last?.1 ?? .undefined }
            return .list(keyed.map(\.1))
        case "unique":
            var result: [TemplateValue] = []
            for item in try items(of: value) where !result.contains(where: { TemplateValue.equal($0, item) }) {
                result.append(item)
            }
            return .list(result)
        case "reverse":
            if case .string(let text) = value { return .string(TemplateText(text.scalars.reversed())) }
            return .list(try items(of: value).reversed())
        case "indent":
            var width = 4
            if case .int(let value)? = argument(0, "width") { width = min(max(value, 0), 64) }
            let lines = value.output.lines
            let pad = TemplateText(String(repeating: " ", count: width))
            // Empty lines are indented only with `blank`.
            let indentsEmpty = argument(2, "blank")?.isTrue == true
            var result = TemplateText()
            for (index, line) in lines.enumerated() {
                if index > 0 {
                    result.append("\n", isUser: false)
                    if indentsEmpty || !line.isEmpty { result.append(pad) }
                }
                result.append(line)
            }
            if argument(1, "first")?.isTrue == true {
                var padded = TemplateText(String(repeating: " ", count: width))
                padded.append(result)
                result = padded
            }
            return .string(result)
        case "abs":
            if case .int(let number) = value { return .int(number == .min ? .max : Swift.abs(number)) }
            return .float(Swift.abs(value.number ?? 0))
        case "round": return .float((value.number ?? 0).rounded())
        case "sum":
            var total: TemplateValue = .int(0)
            for item in try items(of: value) { total = try binary("+", total, item) }
            return total
        default: throw .rendering(reason: "the filter “\(name)” is not supported")
        }
    }

    private static func select(
        _ name: String, _ value: TemplateValue, _ arguments: [TemplateValue]
    ) throws(TemplateError) -> TemplateValue {
        let byAttribute = name.hasSuffix("attr")
        let rest = byAttribute ? Array(arguments.dropFirst()) : arguments
        var result: [TemplateValue] = []
        for item in try items(of: value) {
            let subject = byAttribute ? try element(arguments.first ?? .undefined, of: item) : item
            let test = rest.first?.output.string
            let passes =
                try test.map { (test) throws(TemplateError) in
                    try TemplateTests.passes(test, subject, Array(rest.dropFirst()))
                } ?? subject.isTrue
            if passes == name.hasPrefix("select") { result.append(item) }
        }
        return .list(result)
    }

    private static func precedes(_ a: TemplateValue, _ b: TemplateValue) -> Bool {
        if let x = a.number, let y = b.number { return x < y }
        return a.output.string < b.output.string
    }

    // MARK: - Members

    static func attribute(_ name: String, of value: TemplateValue) throws(TemplateError) -> TemplateValue {
        switch value {
        case .dictionary(let dictionary): dictionary[name] ?? .undefined
        case .namespace(let namespace): namespace.values[name] ?? .undefined
        case .undefined: throw .rendering(reason: "the attribute “\(name)” of an undefined value is used")
        default: .undefined
        }
    }

    static func element(_ key: TemplateValue, of value: TemplateValue) throws(TemplateError) -> TemplateValue {
        switch (value, key) {
        case (.list(let values), .int(let index)):
            let position = index < 0 ? values.count + index : index
            return values.indices.contains(position) ? values[position] : .undefined
        case (.string(let text), .int(let index)):
            return text.scalar(at: index < 0 ? text.count + index : index).map { .string(TemplateText([$0])) } ?? .undefined
        default: return try attribute(key.output.string, of: value)
        }
    }

    static func slice(_ value: TemplateValue, _ from: Int?, _ to: Int?, _ step: Int) throws(TemplateError) -> TemplateValue {
        guard step != 0 else { throw .rendering(reason: "a slice has a step of 0") }
        func indices(_ count: Int) -> [Int] {
            func clamp(_ bound: Int?, _ fallback: Int) -> Int {
                guard let bound else { return fallback }
                let position = bound < 0 ? bound &+ count : bound
                return min(max(position, step > 0 ? 0 : -1), step > 0 ? count : count - 1)
            }
            let start = clamp(from, step > 0 ? 0 : count - 1)
            // Limit the step, because steps beyond the length are equivalent and could overflow.
            let step = min(max(step, -count - 1), count + 1)
            return Array(stride(from: start, to: clamp(to, step > 0 ? count : -1), by: step))
        }
        switch value {
        case .list(let values): return .list(indices(values.count).map { values[$0] })
        case .string(let text):
            let scalars = text.scalars
            return .string(TemplateText(indices(scalars.count).map { scalars[$0] }))
        default: throw .rendering(reason: "only lists and strings can be sliced")
        }
    }

    static func callMethod(
        _ name: String, on value: TemplateValue, _ arguments: [TemplateValue], _ named: [String: TemplateValue]
    ) throws(TemplateError) -> TemplateValue {
        func text(_ index: Int) -> String? { index < arguments.count ? arguments[index].output.string : nil }
        switch (value, name) {
        case (.string(let string), "strip"), (.string(let string), "lstrip"), (.string(let string), "rstrip"):
            let removed = text(0).map { Set($0.unicodeScalars) }
            return .string(
                string.trimmed(leading: name != "rstrip", trailing: name != "lstrip") { removed?.contains($0) ?? isSpace($0) })
        case (.string(let string), "upper"): return .string(string.mapRuns { $0.uppercased() })
        case (.string(let string), "lower"): return .string(string.mapRuns { $0.lowercased() })
        case (.string(let string), "title"): return .string(string.mapRuns(\.capitalized))
        case (.string(let string), "capitalize"):
            var first = true
            return .string(
                string.mapRuns { run in
                    defer { first = false }
                    return first ? run.prefix(1).uppercased() + run.dropFirst().lowercased() : run.lowercased()
                })
        case (.string(let string), "split"):
            var limit = Int.max
            if arguments.count > 1, case .int(let count) = arguments[1], count >= 0 { limit = count }
            guard let separator = text(0) else {
                let parts = string.scalars.split { isSpace($0.scalar) }
                return .list(parts.map { .string(TemplateText($0)) })
            }
            return .list(string.split(separator: separator, limit: limit).map { .string($0) })
        case (.string(let string), "replace"):
            guard let old = text(0), arguments.count > 1 else { throw .rendering(reason: "“replace” needs two strings") }
            let parts = string.split(separator: old)
            guard parts.count * arguments[1].output.utf8Count <= TemplateInterpreter.maximumText else {
                throw .limit(reason: "a string is too long")
            }
            return .string(TemplateText.join(parts, separator: arguments[1].output))
        case (.string(let string), "startswith"), (.string(let string), "endswith"):
            var candidates = [arguments.first ?? .undefined]
            if case .list(let several)? = arguments.first { candidates = several }
            let whole = string.string
            return .bool(
                candidates.contains {
                    let part = $0.output.string
                    return name == "startswith" ? whole.hasPrefix(part) : whole.hasSuffix(part)
                })
        case (.string(let string), "find"):
            let parts = string.split(separator: text(0) ?? "", limit: 1)
            return .int(parts.count > 1 ? parts[0].count : -1)
        case (.string(let string), "join"):
            let parts = try items(of: arguments.first ?? .undefined)
            guard parts.count * string.utf8Count <= TemplateInterpreter.maximumText else {
                throw .limit(reason: "a string is too long")
            }
            return .string(TemplateText.join(parts.map(\.output), separator: string))
        case (.string(let string), "format"): return .string(try format(string, arguments, named))
        case (.dictionary(let dictionary), "items"):
            return .list(dictionary.pairs.map { .list([TemplateDictionary.key($0), $0.value]) })
        case (.dictionary(let dictionary), "keys"): return .list(dictionary.pairs.map(TemplateDictionary.key))
        case (.dictionary(let dictionary), "values"): return .list(dictionary.pairs.map(\.value))
        case (.dictionary(let dictionary), "get"):
            return dictionary[text(0) ?? ""] ?? (arguments.count > 1 ? arguments[1] : .none)
        default: throw .rendering(reason: "the method “\(name)” is not supported")
        }
    }

    /// Replaces `{}`, `{0}` and `{name}` as in Python's format strings.
    private static func format(
        _ pattern: TemplateText, _ arguments: [TemplateValue], _ named: [String: TemplateValue]
    ) throws(TemplateError) -> TemplateText {
        var result = TemplateText()
        var (next, bytes) = (0, 0)
        for run in pattern.runs {
            var rest = run.text[...]
            while let open = rest.firstIndex(of: "{") {
                result.append(String(rest[..<open]), isUser: run.isUser)
                guard let close = rest[open...].firstIndex(of: "}") else {
                    throw .rendering(reason: "a format string is malformed")
                }
                let name = String(rest[rest.index(after: open)..<close])
                let index = name.isEmpty ? next : Int(name) ?? -1
                if name.isEmpty { next += 1 }
                guard let value = named[name] ?? (arguments.indices.contains(index) ? arguments[index] : nil) else {
                    throw .rendering(reason: "a format string refers to a missing argument")
                }
                result.append(value.output)
                bytes += value.output.utf8Count
                guard bytes <= TemplateInterpreter.maximumText else {
                    throw .limit(reason: "a string is too long")
                }
                rest = rest[rest.index(after: close)...]
            }
            result.append(String(rest), isUser: run.isUser)
        }
        return result
    }

    static func callFunction(
        _ name: String, _ arguments: [TemplateValue], _ named: [String: TemplateValue]
    ) throws(TemplateError) -> TemplateValue {
        switch name {
        case "range":
            var bounds: [Int] = []
            for argument in arguments {
                guard case .int(let bound) = argument else { throw .rendering(reason: "“range” needs integers") }
                bounds.append(bound)
            }
            let (start, end, step): (Int, Int, Int)
            switch bounds.count {
            case 1: (start, end, step) = (0, bounds[0], 1)
            case 2: (start, end, step) = (bounds[0], bounds[1], 1)
            case 3 where bounds[2] != 0: (start, end, step) = (bounds[0], bounds[1], bounds[2])
            default: throw .rendering(reason: "“range” needs one to three integers and a step other than 0")
            }
            var list: [TemplateValue] = []
            var value = start
            while step > 0 ? value < end : value > end {
                guard list.count < 100_000 else { throw .rendering(reason: "a range is too long") }
                list.append(.int(value))
                let (next, overflow) = value.addingReportingOverflow(step)
                if overflow { break }
                value = next
            }
            return .list(list)
        case "namespace", "dict":
            var dictionary = TemplateDictionary()
            if case .dictionary(let first)? = arguments.first { dictionary = first }
            for (key, value) in named.sorted(by: { $0.key < $1.key }) { dictionary[key] = value }
            return name == "dict" ? .dictionary(dictionary) : .namespace(TemplateNamespace(dictionary))
        case "raise_exception": throw .raised(arguments.first?.output.string ?? "no reason given")
        default: throw .rendering(reason: "the function “\(name)” is not supported")
        }
    }

    /// A time formatted by `strftime`: `date` in UTC, or the current local time if it is nil.
    static func time(_ format: String, _ date: Date?) -> String {
        var seconds = date.map { time_t($0.timeIntervalSince1970) } ?? Glibc.time(nil)
        var parts = tm()
        if date == nil { localtime_r(&seconds, &parts) } else { gmtime_r(&seconds, &parts) }
        var buffer = [CChar](repeating: 0, count: 256)
        let length = strftime(&buffer, buffer.count, format, &parts)
        return String(decoding: buffer.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    // MARK: - Operators

    static func binary(_ symbol: String, _ a: TemplateValue, _ b: TemplateValue) throws(TemplateError) -> TemplateValue {
        switch symbol {
        case "==": return .bool(TemplateValue.equal(a, b))
        case "!=": return .bool(!TemplateValue.equal(a, b))
        case "in": return .bool(try contains(b, a))
        case "~":
            var text = a.output
            text.append(b.output)
            return .string(text)
        case "<", ">", "<=", ">=":
            let (less, greater): (Bool, Bool)
            if let x = a.number, let y = b.number {
                (less, greater) = (x < y, x > y)
            } else if case .string(let x) = a, case .string(let y) = b {
                (less, greater) = (x.string < y.string, x.string > y.string)
            } else {
                throw .rendering(reason: "“\(symbol)” compares values of different types")
            }
            return .bool(symbol == "<" ? less : symbol == ">" ? greater : symbol == "<=" ? !greater : !less)
        case "+":
            if case .string(var text) = a, case .string(var other) = b {
                if text.isSafe != other.isSafe {
                    if text.isSafe { other = other.escaped } else { text = text.escaped }
                    text.isSafe = true
                }
                text.append(other)
                return .string(text)
            }
            if case .list(let x) = a, case .list(let y) = b { return .list(x + y) }
            return try arithmetic(symbol, a, b)
        case "*":
            let repeated: (TemplateText, Int)? =
                switch (a, b) {
                case (.string(let text), .int(let count)), (.int(let count), .string(let text)): (text, count)
                default: nil
                }
            guard let (text, count) = repeated else { return try arithmetic(symbol, a, b) }
            let (bytes, overflow) = text.utf8Count.multipliedReportingOverflow(by: max(0, count))
            guard !overflow, bytes <= TemplateInterpreter.maximumText else { throw .limit(reason: "a string is too long") }
            var result = TemplateText()
            if !text.isEmpty { for _ in 0..<max(0, count) { result.append(text) } }
            return .string(result)
        default: return try arithmetic(symbol, a, b)
        }
    }

    private static func contains(_ container: TemplateValue, _ value: TemplateValue) throws(TemplateError) -> Bool {
        switch container {
        case .string(let text): value.output.isEmpty || text.string.contains(value.output.string)
        case .list(let values): values.contains { TemplateValue.equal($0, value) }
        case .dictionary(let dictionary): dictionary[value.output.string] != nil
        case .namespace(let namespace): namespace.values[value.output.string] != nil
        case .undefined, .none: false
        default: throw .rendering(reason: "“in” needs a string, a list or a dictionary")
        }
    }

    private static func arithmetic(_ symbol: String, _ a: TemplateValue, _ b: TemplateValue) throws(TemplateError)
        -> TemplateValue
    {
        if case .int(let x) = a, case .int(let y) = b, symbol != "/", symbol != "**" {
            let result: (partialValue: Int, overflow: Bool)
            switch symbol {
            case "+": result = x.addingReportingOverflow(y)
            case "-": result = x.subtractingReportingOverflow(y)
            case "*": result = x.multipliedReportingOverflow(by: y)
            case "//", "%":
                guard y != 0 else { throw .rendering(reason: "a division by 0") }
                let (quotient, overflow) = x.dividedReportingOverflow(by: y)
                let remainder = overflow ? 0 : x % y
                let floored = remainder != 0 && (remainder < 0) != (y < 0)  // Python rounds down, not towards 0
                result =
                    symbol == "//"
                    ? (floored ? quotient - 1 : quotient, overflow) : (floored ? remainder + y : remainder, overflow)
            default: throw .rendering(reason: "the operator “\(symbol)” is not supported")
            }
            guard !result.overflow else { throw .rendering(reason: "a number is too large") }
            return .int(result.partialValue)
        }
        guard let x = a.number, let y = b.number else { throw .rendering(reason: "“\(symbol)” needs numbers") }
        switch symbol {
        case "+": return .float(x + y)
        case "-": return .float(x - y)
        case "*": return .float(x * y)
        case "/": return .float(x / y)
        case "//": return .float((x / y).rounded(.down))
        case "%": return .float(x - y * (x / y).rounded(.down))
        case "**": return .float(pow(x, y))
        default: throw .rendering(reason: "the operator “\(symbol)” is not supported")
        }
    }
}

/// `value is test`
enum TemplateTests {
    static let needOperand: Set<String> = ["equalto", "eq", "ne", "in", "divisibleby"]
    static let names: Set<String> = needOperand.union([
        "defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence", "iterable",
        "true", "false", "odd", "even", "callable",
    ])

    static func passes(_ name: String, _ value: TemplateValue, _ operands: [TemplateValue]) throws(TemplateError) -> Bool {
        switch (name, value) {
        case ("defined", .undefined): return false
        case ("defined", _): return true
        case ("undefined", .undefined), ("none", .none), ("string", .string), ("number", .int), ("number", .float),
            ("integer", .int), ("float", .float), ("boolean", .bool), ("mapping", .dictionary), ("sequence", .list),
            ("sequence", .string), ("sequence", .dictionary), ("sequence", .undefined), ("iterable", .undefined),
            ("iterable", .list), ("iterable", .string), ("iterable", .dictionary), ("callable", .function),
            ("true", .bool(true)), ("false", .bool(false)):
            return true
        case ("odd", .int(let number)): return number % 2 != 0
        case ("even", .int(let number)): return number % 2 == 0
        case ("divisibleby", .int(let number)):
            guard case .int(let divisor)? = operands.first, divisor != 0 else {
                throw .rendering(reason: "“divisibleby” needs a number")
            }
            return number.remainderReportingOverflow(dividingBy: divisor).partialValue == 0
        case ("equalto", _), ("eq", _), ("ne", _):
            return TemplateValue.equal(value, operands.first ?? .undefined) == (name != "ne")
        case ("in", _):
            guard case .bool(let result) = try TemplateFilters.binary("in", value, operands.first ?? .undefined) else {
                return false
            }
            return result
        default: return false
        }
    }
}
