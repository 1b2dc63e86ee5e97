internal import Foundation
internal import JSON

/// The built-in filters, methods and functions of the template language.
enum TemplateFilters {
    static let functions: Set<String> = ["range", "namespace", "dict", "raise_exception", "strftime_now"]
    static let names: Set<String> = [
        "trim", "length", "count", "upper", "lower", "capitalize", "title", "first", "last", "join", "default", "d", "tojson",
        "string", "int", "float", "list", "replace", "items", "dictsort", "map", "select", "reject", "selectattr", "rejectattr",
        "sort", "unique", "reverse", "safe", "from_json", "indent", "abs", "round", "sum", "min", "max",
    ]

    /// Filters whose results consist of elements of a list or dictionary: such a result is not larger than what it is made of.
    private static let selecting: Set<String> = [
        "first", "last", "default", "d", "list", "select", "reject", "selectattr", "rejectattr", "reverse",
        "sort", "unique", "min", "max",
    ]
    /// Filters that do not read the elements of a list, and those of them that do not even visit all.
    private static let unread: Set<String> = [
        "list", "items", "map", "select", "reject", "selectattr", "rejectattr", "reverse", "unique",
    ]
    private static let unvisited: Set<String> = ["length", "count", "first", "last", "default", "d"]

    private static let maximumItems = 1 << 18
    /// The maximum size of a JSON text in bytes, each of which may become a value.
    private static let maximumJSON = 1 << 20

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

    /// `value | name(arguments)`
    static func apply(
        _ name: String, to value: TemplateValue, _ arguments: [TemplateValue], _ named: [String: TemplateValue],
        _ budget: inout TemplateBudget
    ) throws(TemplateError) -> TemplateValue {
        // Filters of `map` are applied recursively.
        try budget.enter()
        defer { budget.leave() }
        try budget.spend(1 + arguments.count / 8)
        for argument in arguments { try budget.charge(argument) }
        for argument in named.values { try budget.charge(argument) }
        var isText = false
        if case .string = value { isText = true }
        switch name {
        case "default", "d": break
        // Templates use these for each message.
        case _ where !isText && unvisited.contains(name): break
        case _ where unread.contains(name): try budget.chargeElements(of: value)
        default: try budget.charge(value)
        }
        let made =
            switch name {
            case "map": try map(value, arguments, named, &budget)
            case "select", "reject", "selectattr", "rejectattr": try select(name, value, arguments, &budget)
            case "unique": try unique(value, &budget)
            default: try result(of: name, value, arguments, named, &budget)
            }
        return !isText && selecting.contains(name) ? made : try budget.checked(made)
    }

    private static func result(
        of name: String, _ value: TemplateValue, _ arguments: [TemplateValue], _ named: [String: TemplateValue],
        _ budget: inout TemplateBudget
    ) throws(TemplateError) -> TemplateValue {
        func argument(_ index: Int, _ label: String) -> TemplateValue? {
            index < arguments.count ? arguments[index] : named[label]
        }
        switch name {
        case "trim", "upper", "lower", "capitalize", "title", "replace":
            let method = name == "trim" ? "strip" : name
            return try callMethod(method, on: value.output, arguments, named, &budget)
        case "length", "count":
            switch value {
            case .string(let text): return .int(text.count)
            case .list(let values): return .int(values.count)
            case .dictionary(let dictionary): return .int(dictionary.pairs.count)
            default: return .int(try items(of: value).count)
            }
        case "first", "last":
            if case .string = value { return try element(.int(name == "first" ? 0 : -1), of: value) }
            if case .dictionary(let dictionary) = value {
                return (name == "first" ? dictionary.pairs.first : dictionary.pairs.last).map(TemplateDictionary.key)
                    ?? .undefined
            }
            let items = try items(of: value)
            return (name == "first" ? items.first : items.last) ?? .undefined
        case "join":
            let separator = argument(0, "d")?.output ?? TemplateText()
            var parts = try items(of: value)
            if let attribute = argument(1, "attribute").map(key) {
                for index in parts.indices { parts[index] = try element(attribute, of: parts[index]) }
            }
            guard parts.count * separator.utf8Count <= TemplateBudget.maximumText else {
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
                return .string(try value.json(indent: min(max(width, 0), 16), isASCII: isASCII))
            }
            return .string(try value.json(isASCII: isASCII))
        case "string": return .string(value.output)
        case "safe":
            var text = value.output
            text.isSafe = true
            return .string(text)
        case "from_json":
            let text = value.output
            guard text.utf8Count <= maximumJSON else { throw .limit(reason: "a JSON text is too long") }
            do { return TemplateValue(try JSONParser.parse(text.string)) } catch {
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
                    if a.origin == .integer, b.origin == .integer { return (Int(a.key) ?? 0) < (Int(b.key) ?? 0) }
                    return a.key.lowercased() < b.key.lowercased()
                }
            return .list(pairs.map { .list([TemplateDictionary.key($0), $0.value]) })
        case "sort", "min", "max":
            let attribute = argument(name == "sort" ? 2 : 1, "attribute").map(key)
            var keyed: [(number: Double?, text: String, item: TemplateValue)] = []
            for item in try items(of: value) {
                let key = try attribute.map { (key) throws(TemplateError) in try element(key, of: item) } ?? item
                keyed.append((key.number, key.output.string, item))
            }
            keyed.sort { a, b in
                if let x = a.number, let y = b.number { return x < y }
                return a.text < b.text
            }
            if argument(0, "reverse")?.isTrue == true { keyed.reverse() }
            if name == "min" { return keyed.first?.item ?? .undefined }
            if name == "max" { return keyed.last?.item ?? .undefined }
            return .list(keyed.map(\.item))
        case "reverse":
            if case .string(let text) = value { return .string(TemplateText(text.scalars.reversed())) }
            return .list(try items(of: value).reversed())
        case "indent":
            var width = 4
            if case .int(let value)? = argument(0, "width") { width = min(max(value, 0), 64) }
            let pad = TemplateText(String(repeating: " ", count: width))
            // Empty lines are indented only with `blank`.
            let indentsEmpty = argument(2, "blank")?.isTrue == true
            var isFirst = true
            var result = argument(1, "first")?.isTrue == true ? pad : TemplateText()
            try value.output.forEachLine { (line) throws(TemplateError) in
                if !isFirst {
                    result.append("\n", isUser: false)
                    if indentsEmpty || !line.isEmpty { result.append(pad) }
                }
                isFirst = false
                try append(line, to: &result, &budget)
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

    private static func map(
        _ value: TemplateValue, _ arguments: [TemplateValue], _ named: [String: TemplateValue], _ budget: inout TemplateBudget
    ) throws(TemplateError) -> TemplateValue {
        // `none` counts as an empty list.
        if case .none = value { return .list([]) }
        let attribute = named["attribute"].map(key)
        let filter = arguments.first?.output.string
        let rest = Array(arguments.dropFirst())
        var result: [TemplateValue] = []
        for item in try items(of: value) {
            if let attribute {
                result.append(try element(attribute, of: item))
            } else if let filter, names.contains(filter) {
                result.append(try apply(filter, to: item, rest, named, &budget))
            } else {
                throw .rendering(reason: "“map” needs an attribute or a filter")
            }
        }
        return .list(result)
    }

    private static func select(
        _ name: String, _ value: TemplateValue, _ arguments: [TemplateValue], _ budget: inout TemplateBudget
    ) throws(TemplateError) -> TemplateValue {
        if case .none = value { return .list([]) }
        let attribute = name.hasSuffix("attr") ? key(arguments.first ?? .undefined) : nil
        let rest = attribute == nil ? arguments[...] : arguments.dropFirst()
        let test = rest.first?.output.string
        let operands = Array(rest.dropFirst())
        var result: [TemplateValue] = []
        for item in try items(of: value) {
            try budget.spend()
            let subject = try attribute.map { (key) throws(TemplateError) in try element(key, of: item) } ?? item
            let passes =
                try test.map { (test) throws(TemplateError) in
                    try TemplateTests.passes(test, subject, operands, &budget)
                } ?? subject.isTrue
            if passes == name.hasPrefix("select") { result.append(item) }
        }
        return .list(result)
    }

    /// Each item is compared with all different ones before it.
    private static func unique(_ value: TemplateValue, _ budget: inout TemplateBudget) throws(TemplateError) -> TemplateValue {
        var result: [TemplateValue] = []
        for item in try items(of: value) {
            try budget.spend(1 + TemplateBudget.size(of: item) * result.count / 8)
            if !result.contains(where: { TemplateValue.equal($0, item) }) { result.append(item) }
        }
        return .list(result)
    }

    /// An attribute that is looked up in many values: its text is made once.
    private static func key(_ attribute: TemplateValue) -> TemplateValue {
        if case .int = attribute { attribute } else { .string(attribute.output) }
    }

    /// Appends a part of a text that may have very many, or grow with each.
    private static func append(
        _ part: TemplateText, to text: inout TemplateText, _ budget: inout TemplateBudget
    ) throws(TemplateError) {
        try budget.spend()
        text.append(part)
        guard text.utf8Count <= TemplateBudget.maximumText else { throw .limit(reason: "a string is too long") }
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

    static func slice(
        _ value: TemplateValue, _ from: Int?, _ to: Int?, _ step: Int, _ budget: inout TemplateBudget
    ) throws(TemplateError) -> TemplateValue {
        guard step != 0 else { throw .rendering(reason: "a slice has a step of 0") }
        func indices(_ count: Int) -> StrideTo<Int> {
            func clamp(_ bound: Int?, _ fallback: Int) -> Int {
                guard let bound else { return fallback }
                let position = bound < 0 ? bound &+ count : bound
                return min(max(position, step > 0 ? 0 : -1), step > 0 ? count : count - 1)
            }
            let start = clamp(from, step > 0 ? 0 : count - 1)
            // Limit the step, because steps beyond the length are equivalent and could overflow.
            let step = min(max(step, -count - 1), count + 1)
            return stride(from: start, to: clamp(to, step > 0 ? count : -1), by: step)
        }
        switch value {
        case .list(let values):
            // A part of a list is not larger than the list, and templates take one for each message.
            var result: [TemplateValue] = []
            for index in indices(values.count) {
                result.append(values[index])
                if result.count % 64 == 0 { try budget.spend() }
            }
            return .list(result)
        case .string(let text):
            try budget.charge(value)
            let scalars = text.scalars
            let part = TemplateText(indices(scalars.count).lazy.map { scalars[$0] })
            return try budget.checked(.string(part))
        default: throw .rendering(reason: "only lists and strings can be sliced")
        }
    }

    /// `value.name(arguments)`
    static func callMethod(
        _ name: String, on value: TemplateValue, _ arguments: [TemplateValue], _ named: [String: TemplateValue],
        _ budget: inout TemplateBudget
    ) throws(TemplateError) -> TemplateValue {
        for argument in arguments { try budget.charge(argument) }
        for argument in named.values { try budget.charge(argument) }
        if case .string = value { try budget.charge(value) }
        switch (value, name) {
        case (.string(let string), _):
            let result = try callMethod(name, on: string, arguments, named, &budget)
            return try budget.checked(result)
        case (.dictionary(let dictionary), "items"):
            return try budget.checked(.list(dictionary.pairs.map { .list([TemplateDictionary.key($0), $0.value]) }))
        case (.dictionary(let dictionary), "keys"):
            return try budget.checked(.list(dictionary.pairs.map(TemplateDictionary.key)))
        case (.dictionary(let dictionary), "values"):
            try budget.spend(dictionary.pairs.count)
            return .list(dictionary.pairs.map(\.value))
        case (.dictionary(let dictionary), "get"):
            return dictionary[arguments.first?.output.string ?? ""] ?? (arguments.count > 1 ? arguments[1] : .none)
        default: throw .rendering(reason: "the method “\(name)” is not supported")
        }
    }

    private static func callMethod(
        _ name: String, on string: TemplateText, _ arguments: [TemplateValue], _ named: [String: TemplateValue],
        _ budget: inout TemplateBudget
    ) throws(TemplateError) -> TemplateValue {
        func text(_ index: Int) -> String? { index < arguments.count ? arguments[index].output.string : nil }
        switch name {
        case "strip", "lstrip", "rstrip":
            let removed = text(0).map { Set($0.unicodeScalars) }
            return .string(
                string.trimmed(leading: name != "rstrip", trailing: name != "lstrip") { removed?.contains($0) ?? isSpace($0) })
        case "upper": return .string(string.mapRuns { $0.uppercased() })
        case "lower": return .string(string.mapRuns { $0.lowercased() })
        case "title": return .string(string.mapRuns(\.capitalized))
        case "capitalize":
            var first = true
            return .string(
                string.mapRuns { run in
                    defer { first = false }
                    return first ? run.prefix(1).uppercased() + run.dropFirst().lowercased() : run.lowercased()
                })
        case "split":
            var limit = Int.max
            if arguments.count > 1, case .int(let count) = arguments[1], count >= 0 { limit = count }
            var parts: [TemplateValue] = []
            func add(_ part: TemplateText) throws(TemplateError) {
                try TemplateBudget.check(count: parts.count)
                parts.append(.string(part))
            }
            if let separator = text(0) {
                try string.forEachPart(separator: separator, limit: limit, add)
            } else {
                try string.forEachPart(where: isSpace, add)
            }
            return .list(parts)
        case "replace":
            guard let old = text(0), arguments.count > 1 else { throw .rendering(reason: "“replace” needs two strings") }
            let new = arguments[1].output
            var result = TemplateText()
            var isFirst = true
            try string.forEachPart(separator: old) { (part) throws(TemplateError) in
                if !isFirst { try append(new, to: &result, &budget) }
                isFirst = false
                try append(part, to: &result, &budget)
            }
            return .string(result)
        case "startswith", "endswith":
            var candidates = [arguments.first ?? .undefined]
            if case .list(let several)? = arguments.first { candidates = several }
            let whole = string.string
            return .bool(
                candidates.contains {
                    let part = $0.output.string
                    return name == "startswith" ? whole.hasPrefix(part) : whole.hasSuffix(part)
                })
        case "find":
            var lengths: [Int] = []
            try string.forEachPart(separator: text(0) ?? "", limit: 1) { lengths.append($0.count) }
            return .int(lengths.count > 1 ? lengths[0] : -1)
        case "join":
            let parts = try items(of: arguments.first ?? .undefined)
            guard parts.count * string.utf8Count <= TemplateBudget.maximumText else {
                throw .limit(reason: "a string is too long")
            }
            return .string(TemplateText.join(parts.map(\.output), separator: string))
        case "format": return .string(try format(string, arguments, named))
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
                guard bytes <= TemplateBudget.maximumText else {
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
}
