import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder

extension TypeSyntax {
    /// An error for a type that cannot be generated. Without it, the compiler would report an error in generated code.
    var unsupported: DiagnosticsError? {
        switch self.as(TypeSyntaxEnum.self) {
        case .arrayType(let array):
            array.element.optionalWrapped.map { unsupported(use: "an array without optional elements", replacement: "[\($0)]") }
                ?? array.element.unsupported
        case .attributedType(let attributed): attributed.baseType.unsupported
        case .optionalType, .implicitlyUnwrappedOptionalType: unsupported(use: "a single optional")
        case .dictionaryType: unsupported(use: Self.pairs)
        case .tupleType: withoutParentheses == self ? unsupported(use: "a '@Generable' struct") : withoutParentheses.unsupported
        case .functionType, .metatypeType: unsupported(use: "a '@Generable' type")
        case .someOrAnyType, .compositionType: unsupported(use: "a '@Generable' enum with a case for every type")
        case .identifierType(let type): unsupported(named: type.name.text)
        default: nil
        }
    }

    /// Matches only names without a module prefix, so that programs with their own conformance can use
    /// `Foundation.Date`.
    private func unsupported(named name: String) -> DiagnosticsError? {
        let arguments = genericArguments
        switch name {
        case "Dictionary" where arguments.count == 2: return unsupported(use: Self.pairs)
        case "Set" where arguments.count == 1:
            return arguments.first.map { unsupported(use: "'[\($0.trimmed)]'", replacement: "[\($0.trimmed)]") }
        case "Array" where arguments.count == 1: return arguments.first?.unsupported
        case "Any", "AnyObject", "Void": return unsupported(use: "a '@Generable' type")
        default:
            return Self.replacements[name].map { unsupported(use: "'\($0)'", replacement: $0) }
        }
    }

    private func unsupported(use advice: String, replacement: TypeSyntax? = nil) -> DiagnosticsError {
        let fixIt = replacement.map { FixIt("Use '\($0)'", .replacing(self, with: $0)) }
        return DiagnosticsError("'\(trimmed)' cannot be generated; use \(advice).", at: self, fixIt: fixIt)
    }

    private static let pairs = "an array of a '@Generable' struct with a key and a value"

    private static let replacements: [String: TypeSyntax] = [
        "Date": "String", "URL": "String", "UUID": "String", "Data": "String",
        "Int8": "Int", "Int16": "Int", "Int32": "Int", "Int64": "Int", "Int128": "Int",
        "UInt": "Int", "UInt8": "Int", "UInt16": "Int", "UInt32": "Int", "UInt64": "Int", "UInt128": "Int",
        "CGFloat": "Double", "Float16": "Double", "Float80": "Double",
    ]
}
