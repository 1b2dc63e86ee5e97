internal import Foundation

/// Executes a parsed template. The number of steps and the nesting depth are limited, because templates come from
/// files.
struct TemplateInterpreter {
    private var scopes: [[String: TemplateValue]]
    private var output = TemplateText()
    /// The ranges of the output, in UTF-8 bytes, that the template marks as generated.
    private var generated: [Range<Int>] = []
    /// The number of blocks around whose text is not written to the output.
    private var captures = 0
    private var budget: TemplateBudget
    /// The depth of macro calls.
    private var depth = 0
    /// All namespaces that the template has made. They may refer to each other in chains of any length, and in circles.
    private var namespaces: [TemplateNamespace] = []

    private enum Flow { case next, breakLoop, continueLoop }

    /// The time that `strftime_now` formats; nil for the current time.
    private var date: Date?

    static func render(
        _ nodes: [TemplateNode], variables: [String: TemplateValue], date: Date? = nil,
        maximumSteps: Int = TemplateBudget.maximumSteps
    ) throws(TemplateError) -> (text: TemplateText, generated: [Range<Int>]) {
        var interpreter = TemplateInterpreter(scopes: [variables], budget: TemplateBudget(maximumSteps: maximumSteps))
        interpreter.date = date
        // Emptied one after the other: a chain of namespaces would be released recursively, and a circle never.
        defer { for namespace in interpreter.namespaces { namespace.values = TemplateDictionary() } }
        _ = try interpreter.run(nodes)
        return (interpreter.output, interpreter.generated)
    }

    private init(scopes: [[String: TemplateValue]], budget: TemplateBudget) {
        self.scopes = scopes
        self.budget = budget
    }

    /// The number of bytes written to the output or to captured blocks.
    private var written = 0

    private mutating func write(_ text: TemplateText) throws(TemplateError) {
        written += text.utf8Count
        guard written <= TemplateBudget.maximumText else { throw .limit(reason: "its output is too long") }
        output.append(text)
    }

    // MARK: - Statements

    private mutating func run(_ nodes: [TemplateNode]) throws(TemplateError) -> Flow {
        try budget.enter()
        defer { budget.leave() }
        for node in nodes {
            try budget.spend()
            switch node {
            case .text(let text): try write(TemplateText(text))
            case .output(let expression): try write(try evaluate(expression).output)
            case .branch(let branches, let otherwise):
                var chosen = otherwise
                for branch in branches where try evaluate(branch.condition).isTrue {
                    chosen = branch.body
                    break
                }
                let flow = try run(chosen)
                if flow != .next { return flow }
            case .loop(let targets, let sequence, let condition, let body, let otherwise):
                try loop(targets, over: try evaluate(sequence), condition, body, otherwise)
            case .assign(let targets, let expression): try assign(targets, try evaluate(expression))
            case .assignAttribute(let object, let attribute, let expression):
                guard case .namespace(let namespace) = lookUp(object) else {
                    throw .rendering(reason: "“\(object)” is not a namespace")
                }
                namespace.values[attribute] = try evaluate(expression)
            case .assignBlock(let name, let body):
                scopes[scopes.count - 1][name] = try budget.checked(.string(try captured(body)))
            case .macro(let name, let macro): scopes[scopes.count - 1][name] = .function(.macro(macro))
            case .filterBlock(let expression, let name, let body):
                // The output of the block is the input of the filter.
                scopes[scopes.count - 1][name] = try budget.checked(.string(try captured(body)))
                try write(try evaluate(expression).output)
            case .generation(let body):
                let start = output.utf8Count
                let flow = try run(body)
                if captures == 0, generated.count < TemplateBudget.maximumNodes { generated.append(start..<output.utf8Count) }
                if flow != .next { return flow }
            case .breakLoop: return .breakLoop
            case .continueLoop: return .continueLoop
            }
        }
        return .next
    }

    private mutating func captured(_ body: [TemplateNode]) throws(TemplateError) -> TemplateText {
        let outer = output
        output = TemplateText()
        captures += 1
        defer {
            output = outer
            captures -= 1
        }
        _ = try run(body)
        return output
    }

    private mutating func assign(_ targets: [String], _ value: TemplateValue) throws(TemplateError) {
        if targets.count == 1 {
            scopes[scopes.count - 1][targets[0]] = value
            return
        }
        guard case .list(let values) = value, values.count == targets.count else {
            throw .rendering(reason: "a value cannot be unpacked into \(targets.count) names")
        }
        for (target, value) in zip(targets, values) { scopes[scopes.count - 1][target] = value }
    }

    private mutating func loop(
        _ targets: [String], over sequence: TemplateValue, _ condition: TemplateExpression?, _ body: [TemplateNode],
        _ otherwise: [TemplateNode]
    ) throws(TemplateError) {
        var items = try TemplateFilters.items(of: sequence)
        try budget.spend(items.count)
        scopes.append([:])
        defer { scopes.removeLast() }
        if let condition {
            var kept: [TemplateValue] = []
            for item in items {
                try assign(targets, item)
                if try evaluate(condition).isTrue { kept.append(item) }
            }
            items = kept
        }
        if items.isEmpty {
            _ = try run(otherwise)
            return
        }
        for (index, item) in items.enumerated() {
            try budget.spend()
            scopes[scopes.count - 1] = [:]
            try assign(targets, item)
            scopes[scopes.count - 1]["loop"] = .dictionary(
                TemplateDictionary([
                    ("index", .int(index + 1)), ("index0", .int(index)), ("first", .bool(index == 0)),
                    ("last", .bool(index == items.count - 1)), ("length", .int(items.count)),
                    ("revindex", .int(items.count - index)), ("revindex0", .int(items.count - index - 1)),
                    ("previtem", index > 0 ? items[index - 1] : .undefined),
                    ("nextitem", index + 1 < items.count ? items[index + 1] : .undefined),
                ]))
            if try run(body) == .breakLoop { break }
        }
    }

    // MARK: - Expressions

    private func lookUp(_ name: String) -> TemplateValue {
        for scope in scopes.reversed() {
            if let value = scope[name] { return value }
        }
        return TemplateFilters.functions.contains(name) ? .function(.builtin(name)) : .undefined
    }

    private mutating func evaluate(_ expressions: [TemplateExpression]) throws(TemplateError) -> [TemplateValue] {
        var values: [TemplateValue] = []
        for expression in expressions { values.append(try evaluate(expression)) }
        return values
    }

    private mutating func evaluate(_ expression: TemplateExpression) throws(TemplateError) -> TemplateValue {
        try budget.spend()
        try budget.enter()
        defer { budget.leave() }
        switch expression {
        case .value(let value): return value
        case .name(let name): return lookUp(name)
        case .list(let items):
            let values = try evaluate(items)
            return try budget.checked(.list(values))
        case .dictionary(let pairs):
            var dictionary = TemplateDictionary()
            for (key, value) in pairs {
                let key = try evaluate(key)
                try budget.charge(key)
                dictionary.set(key, try evaluate(value))
            }
            return try budget.checked(.dictionary(dictionary))
        case .attribute(let object, let name): return try TemplateFilters.attribute(name, of: try evaluate(object))
        case .element(let object, let key):
            let (object, key) = (try evaluate(object), try evaluate(key))
            try budget.charge(key)
            if case .string = object { try budget.charge(object) }
            return try TemplateFilters.element(key, of: object)
        case .slice(let object, let from, let to, let step):
            var bounds: [Int?] = []
            for bound in [from, to, step] {
                guard let bound else { bounds.append(nil); continue }
                guard case .int(let value) = try evaluate(bound) else {
                    throw .rendering(reason: "slice bounds must be integers")
                }
                bounds.append(value)
            }
            let object = try evaluate(object)
            return try TemplateFilters.slice(object, bounds[0], bounds[1], bounds[2] ?? 1, &budget)
        case .call(let callee, let arguments): return try call(callee, arguments)
        case .filter(let value, let name, let arguments):
            let input = try evaluate(value)
            let positional = try evaluate(arguments.positional)
            let named = try named(arguments)
            return try TemplateFilters.apply(name, to: input, positional, named, &budget)
        case .test(let value, let name, let operands, let negated):
            let (value, operands) = (try evaluate(value), try evaluate(operands))
            return .bool(try TemplateTests.passes(name, value, operands, &budget) != negated)
        case .unary(let symbol, let operand):
            let value = try evaluate(operand)
            if symbol == "not" { return .bool(!value.isTrue) }
            switch value {
            case .int(let number): return .int(0 &- number)
            case .float(let number): return .float(-number)
            default: throw .rendering(reason: "“-” needs a number")
            }
        case .binary("and", let a, let b):
            let left = try evaluate(a)
            return left.isTrue ? try evaluate(b) : left
        case .binary("or", let a, let b):
            let left = try evaluate(a)
            return left.isTrue ? left : try evaluate(b)
        case .binary(let symbol, let a, let b):
            let (left, right) = (try evaluate(a), try evaluate(b))
            try budget.charge(symbol, left, right)
            return try budget.checked(TemplateFilters.binary(symbol, left, right))
        case .conditional(let condition, let value, let otherwise):
            if try evaluate(condition).isTrue { return try evaluate(value) }
            guard let otherwise else { return .undefined }
            return try evaluate(otherwise)
        }
    }

    private mutating func named(_ arguments: TemplateArguments) throws(TemplateError) -> [String: TemplateValue] {
        var result: [String: TemplateValue] = [:]
        for (name, value) in arguments.named { result[name] = try evaluate(value) }
        return result
    }

    private mutating func call(_ callee: TemplateExpression, _ arguments: TemplateArguments) throws(TemplateError)
        -> TemplateValue
    {
        let positional = try evaluate(arguments.positional)
        let named = try named(arguments)
        if case .attribute(let object, let method) = callee {
            let receiver = try evaluate(object)
            if case .namespace(let namespace) = receiver, let value = namespace.values[method] {
                return try call(value, positional, named)
            }
            return try TemplateFilters.callMethod(method, on: receiver, positional, named, &budget)
        }
        return try call(try evaluate(callee), positional, named)
    }

    private mutating func call(
        _ callee: TemplateValue, _ positional: [TemplateValue], _ named: [String: TemplateValue]
    ) throws(TemplateError) -> TemplateValue {
        guard case .function(let function) = callee else { throw .rendering(reason: "only functions can be called") }
        switch function {
        case .builtin("strftime_now"):
            let format = positional.first ?? .text("%Y-%m-%d")
            try budget.charge(format)
            let text = format.output
            return .string(TemplateText(TemplateFilters.time(text.string, date), isUser: text.hasUserText))
        case .builtin(let name):
            let value = try budget.checked(TemplateFilters.callFunction(name, positional, named))
            if case .namespace(let namespace) = value {
                try TemplateBudget.check(count: namespaces.count)
                namespaces.append(namespace)
            }
            return value
        case .macro(let macro):
            depth += 1
            defer { depth -= 1 }
            guard depth < 50 else { throw .rendering(reason: "macro calls are nested too deeply") }
            var scope: [String: TemplateValue] = [:]
            for (index, parameter) in macro.parameters.enumerated() {
                if index < positional.count {
                    scope[parameter.name] = positional[index]
                } else if let value = named[parameter.name] {
                    scope[parameter.name] = value
                } else if let value = parameter.value {
                    scope[parameter.name] = try evaluate(value)
                } else {
                    scope[parameter.name] = .undefined
                }
            }
            // A macro can access global variables, but not those of its caller.
            let callerScopes = scopes
            scopes = [scopes[0], scope]
            defer { scopes = callerScopes }
            let text = try captured(macro.body)
            return try budget.checked(.string(text))
        }
    }
}
