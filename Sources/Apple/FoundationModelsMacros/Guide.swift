import SwiftSyntax
import SwiftSyntaxBuilder

/// The combined arguments of the `@Guide` attributes of a property.
struct Guide {
    private(set) var description: ExprSyntax?
    private(set) var guides: [ExprSyntax] = []

    init(guides: [ExprSyntax] = []) {
        self.guides = guides
    }

    init(_ attributes: AttributeListSyntax) {
        for case .attribute(let attribute) in attributes where attribute.attributeName.isNamed("Guide") {
            let description = attribute.arguments(labeled: "description").first { !$0.is(NilLiteralExprSyntax.self) }
            self.description = self.description ?? description?.trimmed
            guides += attribute.arguments(labeled: nil).map(\.trimmed)
        }
        // A single regex selects the initializer of `Property` for regexes; with other guides it must be a guide as
        // well.
        if guides.count > 1 {
            guides = guides.map { $0.isRegex ? ".pattern(\($0))" : $0 }
        }
    }
}

extension ExprSyntax {
    /// Whether this is syntactically a regex: a literal, a call of `Regex`, or a method call on one of those.
    fileprivate var isRegex: Bool {
        switch self.as(ExprSyntaxEnum.self) {
        case .regexLiteralExpr: true
        case .functionCallExpr(let call): call.calledExpression.isRegex
        case .memberAccessExpr(let member): member.declName.baseName.text == "Regex" || member.base?.isRegex == true
        case .genericSpecializationExpr(let generic): generic.expression.isRegex
        case .declReferenceExpr(let name): name.baseName.text == "Regex"
        case .tryExpr(let expression): expression.expression.isRegex
        case .tupleExpr(let tuple): tuple.elements.count == 1 && tuple.elements.first?.expression.isRegex == true
        default: false
        }
    }
}
