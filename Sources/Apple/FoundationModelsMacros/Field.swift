import SwiftSyntax
import SwiftSyntaxBuilder

/// One value of a generated object: a property of a struct or a payload of an enum case.
struct Field {
    /// The name in the schema and in the content.
    let key: String
    let type: FieldType
    var guide = Guide()

    /// `FoundationModels.GenerationSchema.Property(…)`
    var schema: FunctionCallExprSyntax {
        FunctionCallExprSyntax(callee: "FoundationModels.GenerationSchema.Property" as ExprSyntax) {
            LabeledExprSyntax(label: "name", expression: key.makeLiteralSyntax())
            if let description = guide.description { LabeledExprSyntax(label: "description", expression: description) }
            LabeledExprSyntax(label: "type", expression: "\(type.complete).self" as ExprSyntax)
            if !guide.guides.isEmpty {
                LabeledExprSyntax(label: "guides", expression: ArrayExprSyntax(expressions: guide.guides))
            }
        }
    }

    /// Reads the value from `content`. The type is inferred from the assignment, because its name may not be visible in
    /// the generated code.
    var read: ExprSyntax {
        "try content.value(forProperty: \(literal: key))"
    }

    /// Appends the value to `__properties`; nil only if `writesNil`.
    func write(_ value: ExprSyntax, writesNil: Bool) -> CodeBlockItemSyntax {
        if type.isOptional, !writesNil {
            return """
                if let __value = \(value) {
                    __properties.append((\(literal: key), __value))
                }
                """
        }
        return "__properties.append((\(literal: key), \(value)))"
    }
}
