import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder

/// A case of an enum.
struct EnumCase {
    struct Payload {
        /// The label as written in the source, including backticks.
        let label: TokenSyntax?
        let field: Field
    }

    let name: TokenSyntax
    /// The name as a string, which is the `type` in the content of a case of an enum with payloads.
    let tag: ExprSyntax
    /// The content of a case of an enum without payloads.
    let text: ExprSyntax
    let payloads: [Payload]
    /// `indirect` or empty.
    let modifiers: DeclModifierListSyntax

    static func all(in enumeration: EnumDeclSyntax, _ compilation: Compilation?) throws -> [EnumCase] {
        let members = enumeration.memberBlock.members
        let elements = try members.active(in: compilation) { $0.as(EnumCaseDeclSyntax.self) }.flatMap { declaration in
            declaration.elements.map { (declaration, $0) }
        }
        guard !elements.isEmpty else {
            throw DiagnosticsError("A '@Generable' enum needs at least one case.", at: enumeration.name)
        }
        var names: Set<String> = []
        return try elements.mapReportingAll { declaration, element in
            let name = element.name.plainName
            guard names.insert(name).inserted else {
                throw DiagnosticsError("Another case is also named '\(name)'; use another name.", at: element.name)
            }
            return try EnumCase(element, of: declaration, in: enumeration)
        }
    }

    private init(
        _ element: EnumCaseElementSyntax, of declaration: EnumCaseDeclSyntax, in enumeration: EnumDeclSyntax
    ) throws {
        name = element.name.trimmed
        let plainName = name.plainName
        guard !["generationSchema", "PartiallyGenerated"].contains(plainName) else {
            throw DiagnosticsError.reserved(name: element.name)
        }
        tag = ExprSyntax(plainName.makeLiteralSyntax())
        let isText = enumeration.inheritanceClause?.inheritedTypes.contains { $0.type.isNamed("String") } == true
        text = isText ? element.rawValue?.value.trimmed ?? tag : tag
        modifiers = declaration.modifiers.first(of: [.indirect])

        var keys: Set = ["type"]
        let parameters = Array(element.parameterClause?.parameters ?? [])
        let unlabeled = parameters.filter { $0.label == nil }
        payloads = try parameters.mapReportingAll { parameter in
            let number = unlabeled.firstIndex(of: parameter).map { unlabeled.count == 1 ? "" : "\($0 + 1)" } ?? ""
            let key = parameter.label?.plainName ?? "value\(number)"
            guard keys.insert(key).inserted else {
                throw DiagnosticsError("'\(key)' is already in the content of the case; use another label.", at: parameter)
            }
            let type = try FieldType(parameter.type, in: enumeration.name.trimmed)
            return Payload(label: parameter.label, field: Field(key: key, type: type))
        }
    }
}
