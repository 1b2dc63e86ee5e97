/// A node of a template's body.
indirect enum TemplateNode: Sendable {
    case text(String)
    case output(TemplateExpression)
    case branch([(condition: TemplateExpression, body: [TemplateNode])], otherwise: [TemplateNode])
    case loop(
        targets: [String], over: TemplateExpression, condition: TemplateExpression?, body: [TemplateNode],
        otherwise: [TemplateNode])
    case assign(targets: [String], TemplateExpression)
    case assignAttribute(object: String, attribute: String, TemplateExpression)
    case assignBlock(String, [TemplateNode])
    case macro(String, TemplateMacro)
    /// Filters applied to the output of a block, which is stored in the variable `input`.
    case filterBlock(TemplateExpression, input: String, [TemplateNode])
    /// What the model generates, for training.
    case generation([TemplateNode])
    case breakLoop, continueLoop
}

indirect enum TemplateExpression: Sendable {
    case value(TemplateValue)
    case name(String)
    case list([TemplateExpression])
    case dictionary([(TemplateExpression, TemplateExpression)])
    case attribute(TemplateExpression, String)
    case element(TemplateExpression, TemplateExpression)
    case slice(TemplateExpression, TemplateExpression?, TemplateExpression?, TemplateExpression?)
    case call(TemplateExpression, TemplateArguments)
    case filter(TemplateExpression, String, TemplateArguments)
    case test(TemplateExpression, String, [TemplateExpression], negated: Bool)
    case unary(String, TemplateExpression)
    case binary(String, TemplateExpression, TemplateExpression)
    case conditional(TemplateExpression, TemplateExpression, otherwise: TemplateExpression?)
}

struct TemplateArguments: Sendable {
    var positional: [TemplateExpression] = []
    var named: [(name: String, value: TemplateExpression)] = []
}

/// A recursive-descent parser. Operator precedence is that of Jinja
/// (https://jinja.palletsprojects.com/en/stable/templates/#expressions).
struct TemplateParser {
    private let tokens: [(token: TemplateLexer.Token, line: Int)]
    private var index = 0
    private var depth = 0
    private var linksOfTag = 0

    static func parse(_ template: String) throws(TemplateError) -> [TemplateNode] {
        var parser = TemplateParser(tokens: try TemplateLexer.tokens(of: template))
        return try parser.body(until: []).nodes
    }

    private init(tokens: [(token: TemplateLexer.Token, line: Int)]) { self.tokens = tokens }

    private var line: Int { index < tokens.count ? tokens[index].line : tokens.last?.line ?? 1 }
    private var current: TemplateLexer.Token? { index < tokens.count ? tokens[index].token : nil }

    private func error(_ reason: String) -> TemplateError { .syntax(line: line, reason: reason) }

    private mutating func take(_ token: TemplateLexer.Token) -> Bool {
        guard current == token else { return false }
        index += 1
        return true
    }

    private mutating func take(symbol: String) -> Bool { take(.symbol(symbol)) }

    private mutating func expect(_ token: TemplateLexer.Token, _ what: String) throws(TemplateError) {
        guard take(token) else { throw error("\(what) is missing") }
    }

    private mutating func name() throws(TemplateError) -> String {
        guard case .name(let name) = current else { throw error("a name is missing") }
        index += 1
        return name
    }

    /// Limits the nesting depth, because templates come from files.
    private mutating func nested<Result>(_ parse: (inout TemplateParser) throws(TemplateError) -> Result) throws(TemplateError)
        -> Result
    {
        depth += 1
        defer { depth -= 1 }
        guard depth < 64 else { throw error("nested too deeply") }
        return try parse(&self)
    }

    // MARK: - Statements

    /// Parses nodes up to one of the statements named in `ends`; consumes and returns its name.
    private mutating func body(until ends: Set<String>) throws(TemplateError) -> (nodes: [TemplateNode], end: String) {
        try nested { (parser) throws(TemplateError) in
            var nodes: [TemplateNode] = []
            while let token = parser.current {
                parser.linksOfTag = 0
                switch token {
                case .text(let text):
                    parser.index += 1
                    nodes.append(.text(text))
                case .openExpression:
                    parser.index += 1
                    nodes.append(.output(try parser.expression()))
                    try parser.expect(.closeExpression, "“}}”")
                case .openStatement:
                    parser.index += 1
                    let keyword = try parser.name()
                    if ends.contains(keyword) { return (nodes, keyword) }
                    nodes.append(try parser.statement(keyword))
                default: throw parser.error("unexpected \(token)")
                }
            }
            guard ends.isEmpty else { throw parser.error("\(ends.sorted().joined(separator: " or ")) is missing") }
            return (nodes, "")
        }
    }

    private mutating func close() throws(TemplateError) { try expect(.closeStatement, "“%}”") }

    private mutating func statement(_ keyword: String) throws(TemplateError) -> TemplateNode {
        switch keyword {
        case "if": return try branch()
        case "for": return try loop()
        case "set": return try assignment()
        case "macro": return try macro()
        case "filter":
            let input = "filter block"  // not a valid name in templates
            var value = TemplateExpression.name(input)
            repeat {
                let filter = try name()
                value = .filter(value, filter, take(symbol: "(") ? try arguments() : TemplateArguments())
            } while take(symbol: "|")
            try close()
            let nodes = try body(until: ["endfilter"]).nodes
            try close()
            return .filterBlock(value, input: input, nodes)
        case "break": try close(); return .breakLoop
        case "continue": try close(); return .continueLoop
        case "generation":
            try close()
            let nodes = try body(until: ["endgeneration"]).nodes
            try close()
            return .generation(nodes)
        default: throw error("the statement “\(keyword)” is not supported")
        }
    }

    private mutating func branch() throws(TemplateError) -> TemplateNode {
        var branches: [(condition: TemplateExpression, body: [TemplateNode])] = []
        var otherwise: [TemplateNode] = []
        var end = "elif"
        while end == "elif" {
            let condition = try expression()
            try close()
            let (nodes, next) = try body(until: ["elif", "else", "endif"])
            branches.append((condition, nodes))
            end = next
        }
        if end == "else" {
            try close()
            otherwise = try body(until: ["endif"]).nodes
        }
        try close()
        return .branch(branches, otherwise: otherwise)
    }

    private mutating func targets() throws(TemplateError) -> [String] {
        let parenthesised = take(symbol: "(")
        var names = [try name()]
        while take(symbol: ",") { names.append(try name()) }
        if parenthesised { try expect(.symbol(")"), "“)”") }
        return names
    }

    private mutating func loop() throws(TemplateError) -> TemplateNode {
        let names = try targets()
        try expect(.name("in"), "“in”")
        let sequence = try disjunction()  // not `expression`: an `if` here filters the loop
        let condition = take(.name("if")) ? try expression() : nil
        try close()
        let (nodes, end) = try body(until: ["else", "endfor"])
        var otherwise: [TemplateNode] = []
        if end == "else" {
            try close()
            otherwise = try body(until: ["endfor"]).nodes
        }
        try close()
        return .loop(targets: names, over: sequence, condition: condition, body: nodes, otherwise: otherwise)
    }

    private mutating func assignment() throws(TemplateError) -> TemplateNode {
        let names = try targets()
        if names.count == 1, take(symbol: ".") {
            let attribute = try name()
            try expect(.symbol("="), "“=”")
            let value = try tupleOrExpression()
            try close()
            return .assignAttribute(object: names[0], attribute: attribute, value)
        }
        if take(symbol: "=") {
            let value = try tupleOrExpression()
            try close()
            return .assign(targets: names, value)
        }
        try close()
        let nodes = try body(until: ["endset"]).nodes
        try close()
        return .assignBlock(names[0], nodes)
    }

    private mutating func macro() throws(TemplateError) -> TemplateNode {
        let title = try name()
        var parameters: [(name: String, value: TemplateExpression?)] = []
        try expect(.symbol("("), "“(”")
        while !take(symbol: ")") {
            let parameter = try name()
            parameters.append((parameter, take(symbol: "=") ? try expression() : nil))
            if !take(symbol: ",") {
                try expect(.symbol(")"), "“)”")
                break
            }
        }
        try close()
        let nodes = try body(until: ["endmacro"]).nodes
        try close()
        return .macro(title, TemplateMacro(parameters: parameters, body: nodes))
    }

    // MARK: - Expressions, in the order of increasing precedence

    private mutating func tupleOrExpression() throws(TemplateError) -> TemplateExpression {
        let first = try expression()
        guard current == .symbol(",") else { return first }
        var items = [first]
        while take(symbol: ",") { items.append(try expression()) }
        return .list(items)
    }

    private mutating func expression() throws(TemplateError) -> TemplateExpression {
        try nested { (parser) throws(TemplateError) in
            let value = try parser.disjunction()
            guard parser.take(.name("if")) else { return value }
            let condition = try parser.disjunction()
            return .conditional(condition, value, otherwise: parser.take(.name("else")) ? try parser.expression() : nil)
        }
    }

    /// Limits the length of operator chains, and of all chains of a tag: they become a tree that can be as deep, which is
    /// evaluated and released recursively.
    private mutating func countLink(_ links: inout Int) throws(TemplateError) {
        links += 1
        linksOfTag += 1
        guard links <= 200, linksOfTag <= 2000 else { throw error("an expression is too long") }
    }

    private mutating func link(_ links: inout Int, _ operand: TemplateExpression) throws(TemplateError) -> TemplateExpression {
        try countLink(&links)
        return operand
    }

    private mutating func disjunction() throws(TemplateError) -> TemplateExpression {
        var left = try conjunction()
        var links = 0
        while take(.name("or")) { left = .binary("or", left, try link(&links, try conjunction())) }
        return left
    }

    private mutating func conjunction() throws(TemplateError) -> TemplateExpression {
        var left = try negation()
        var links = 0
        while take(.name("and")) { left = .binary("and", left, try link(&links, try negation())) }
        return left
    }

    private mutating func negation() throws(TemplateError) -> TemplateExpression {
        guard take(.name("not")) else { return try comparison() }
        return try nested { (parser) throws(TemplateError) in .unary("not", try parser.negation()) }
    }

    private mutating func comparison() throws(TemplateError) -> TemplateExpression {
        var left = try sum()
        var links = 0
        while true {
            if case .symbol(let symbol) = current, ["==", "!=", "<", ">", "<=", ">="].contains(symbol) {
                index += 1
                left = .binary(symbol, left, try link(&links, try sum()))
            } else if take(.name("in")) {
                left = .binary("in", left, try link(&links, try sum()))
            } else if current == .name("not"), index + 1 < tokens.count, tokens[index + 1].token == .name("in") {
                index += 2
                left = .unary("not", .binary("in", left, try link(&links, try sum())))
            } else {
                return left
            }
        }
    }

    private mutating func sum() throws(TemplateError) -> TemplateExpression {
        var left = try concatenation()
        var links = 0
        while case .symbol(let symbol) = current, symbol == "+" || symbol == "-" {
            index += 1
            left = .binary(symbol, left, try link(&links, try concatenation()))
        }
        return left
    }

    private mutating func concatenation() throws(TemplateError) -> TemplateExpression {
        var left = try product()
        var links = 0
        while take(symbol: "~") { left = .binary("~", left, try link(&links, try product())) }
        return left
    }

    private mutating func product() throws(TemplateError) -> TemplateExpression {
        var left = try unary()
        var links = 0
        while case .symbol(let symbol) = current, ["*", "/", "//", "%", "**"].contains(symbol) {
            index += 1
            left = .binary(symbol, left, try link(&links, try unary()))
        }
        return left
    }

    private mutating func unary() throws(TemplateError) -> TemplateExpression {
        if take(symbol: "-") { return try nested { (parser) throws(TemplateError) in .unary("-", try parser.unary()) } }
        if take(symbol: "+") { return try nested { (parser) throws(TemplateError) in try parser.unary() } }
        return try postfix(try primary())
    }

    private mutating func postfix(_ start: TemplateExpression) throws(TemplateError) -> TemplateExpression {
        var value = start
        var links = 0
        while true {
            if take(symbol: ".") {
                if case .int(let number) = current {
                    index += 1
                    value = .element(value, .value(.int(number)))
                } else {
                    value = .attribute(value, try name())
                }
            } else if take(symbol: "[") {
                value = try subscripted(value)
            } else if take(symbol: "(") {
                value = .call(value, try arguments())
            } else if take(symbol: "|") {
                // Unknown filters fail on use only: templates contain filters for cases that do not occur.
                let filter = try name()
                value = .filter(value, filter, take(symbol: "(") ? try arguments() : TemplateArguments())
            } else if take(.name("is")) {
                value = try test(value)
            } else {
                return value
            }
            try countLink(&links)
        }
    }

    private mutating func subscripted(_ value: TemplateExpression) throws(TemplateError) -> TemplateExpression {
        var parts: [TemplateExpression?] = [nil]
        while !take(symbol: "]") {
            if take(symbol: ":") {
                parts.append(nil)
            } else {
                parts[parts.count - 1] = try expression()
            }
            guard parts.count <= 3, index < tokens.count else { throw error("a subscript is malformed") }
        }
        if parts.count == 1 {
            guard let element = parts[0] else { throw error("a subscript is empty") }
            return .element(value, element)
        }
        return .slice(value, parts[0], parts[1], parts.count > 2 ? parts[2] : nil)
    }

    private mutating func test(_ value: TemplateExpression) throws(TemplateError) -> TemplateExpression {
        let negated = take(.name("not"))
        let test = try name()
        guard TemplateTests.names.contains(test) else { throw error("the test “\(test)” is not supported") }
        var operands: [TemplateExpression] = []
        if take(symbol: "(") {
            operands = try arguments().positional
        } else if TemplateTests.needOperand.contains(test) {
            operands = [try postfix(try primary())]
        }
        return .test(value, test, operands, negated: negated)
    }

    private mutating func arguments() throws(TemplateError) -> TemplateArguments {
        var result = TemplateArguments()
        while !take(symbol: ")") {
            if case .name(let label) = current, index + 1 < tokens.count, tokens[index + 1].token == .symbol("=") {
                index += 2
                result.named.append((label, try expression()))
            } else {
                result.positional.append(try expression())
            }
            if !take(symbol: ",") {
                try expect(.symbol(")"), "“)”")
                break
            }
        }
        return result
    }

    private mutating func primary() throws(TemplateError) -> TemplateExpression {
        guard let token = current else { throw error("an expression is missing") }
        index += 1
        switch token {
        case .int(let value): return .value(.int(value))
        case .float(let value): return .value(.float(value))
        case .string(var value):
            while case .string(let more) = current {  // adjacent literals are concatenated
                value += more
                index += 1
            }
            return .value(.text(value))
        case .name("true"), .name("True"): return .value(.bool(true))
        case .name("false"), .name("False"): return .value(.bool(false))
        case .name("none"), .name("None"): return .value(.none)
        case .name(let name): return .name(name)
        case .symbol("("):
            if take(symbol: ")") { return .list([]) }
            var items = [try expression()]
            var isTuple = false
            while take(symbol: ",") {
                isTuple = true
                if current == .symbol(")") { break }
                items.append(try expression())
            }
            try expect(.symbol(")"), "“)”")
            return isTuple ? .list(items) : items[0]
        case .symbol("["):
            var items: [TemplateExpression] = []
            while !take(symbol: "]") {
                items.append(try expression())
                if !take(symbol: ",") {
                    try expect(.symbol("]"), "“]”")
                    break
                }
            }
            return .list(items)
        case .symbol("{"):
            var pairs: [(TemplateExpression, TemplateExpression)] = []
            while !take(symbol: "}") {
                let key = try expression()
                try expect(.symbol(":"), "“:”")
                pairs.append((key, try expression()))
                if !take(symbol: ",") {
                    try expect(.symbol("}"), "“}”")
                    break
                }
            }
            return .dictionary(pairs)
        default:
            index -= 1
            throw error("unexpected \(token)")
        }
    }
}
