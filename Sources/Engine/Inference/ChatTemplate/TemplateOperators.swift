internal import Foundation

/// The operators of the template language.
extension TemplateFilters {
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
            guard !overflow, bytes <= TemplateBudget.maximumText else { throw .limit(reason: "a string is too long") }
            var (result, power, rest) = (TemplateText(), text, text.isEmpty ? 0 : max(0, count))
            while rest > 0 {
                if rest % 2 == 1 { result.append(power) }
                rest /= 2
                if rest > 0 { power = TemplateText.join([power, power], separator: TemplateText()) }
            }
            return .string(result)
        default: return try arithmetic(symbol, a, b)
        }
    }

    private static func contains(_ container: TemplateValue, _ value: TemplateValue) throws(TemplateError) -> Bool {
        switch container {
        case .string(let text): text.contains(value.output)
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

    static func passes(
        _ name: String, _ value: TemplateValue, _ operands: [TemplateValue], _ budget: inout TemplateBudget
    ) throws(TemplateError) -> Bool {
        if let operand = operands.first { try budget.charge(name == "in" ? "in" : "==", value, operand) }
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
