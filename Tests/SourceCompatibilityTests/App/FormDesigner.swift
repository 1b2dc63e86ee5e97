import Foundation
import FoundationModels

/// A form that the user designs and the model fills in.
struct FormDesign {
    enum Field {
        case text
        case choice([String])
        case number(ClosedRange<Int>)
        case yesNo
        case list(of: String, atMost: Int)
        case pattern(Regex<Substring>)
    }

    var name: String
    var purpose: String?
    var fields: [(name: String, help: String?, field: Field, isOptional: Bool)]

    var dynamicSchema: DynamicGenerationSchema {
        DynamicGenerationSchema(
            name: name,
            description: purpose,
            properties: fields.map { field in
                DynamicGenerationSchema.Property(
                    name: field.name,
                    description: field.help,
                    schema: schema(for: field.field, named: field.name),
                    isOptional: field.isOptional)
            })
    }

    private func schema(for field: Field, named name: String) -> DynamicGenerationSchema {
        switch field {
        case .text:
            DynamicGenerationSchema(type: String.self)
        case .choice(let choices):
            DynamicGenerationSchema(name: name.capitalized, anyOf: choices)
        case .number(let range):
            DynamicGenerationSchema(type: Int.self, guides: [.range(range)])
        case .yesNo:
            DynamicGenerationSchema(type: Bool.self)
        case .list(let other, let limit):
            DynamicGenerationSchema(
                arrayOf: DynamicGenerationSchema(referenceTo: other), minimumElements: 1, maximumElements: limit)
        case .pattern(let regex):
            DynamicGenerationSchema(type: String.self, guides: [.pattern(regex)])
        }
    }

    func schema(with others: [FormDesign] = []) throws -> GenerationSchema {
        try GenerationSchema(root: dynamicSchema, dependencies: others.map(\.dynamicSchema))
    }
}

/// A menu with the dishes of today's delivery as choices.
enum MenuForms {
    static func menu(dishes: [String]) throws -> GenerationSchema {
        let dish = DynamicGenerationSchema(name: "Dish", description: "What the kitchen can cook", anyOf: dishes)
        let course = DynamicGenerationSchema(
            name: "Course",
            properties: [
                .init(name: "dish", schema: DynamicGenerationSchema(referenceTo: "Dish")),
                .init(name: "portions", schema: .init(type: Int.self, guides: [.minimum(1), .maximum(9)])),
                .init(name: "remark", schema: .init(name: "Remark", anyOf: ["mild", "hot"]), isOptional: true),
            ])
        let menu = DynamicGenerationSchema(
            name: "Menu",
            properties: [
                .init(
                    name: "courses", description: "Two courses",
                    schema: .init(
                        arrayOf: DynamicGenerationSchema(referenceTo: "Course"), minimumElements: 2, maximumElements: 2)),
                .init(name: "isVegetarian", schema: .init(type: Bool.self)),
            ])
        return try GenerationSchema(root: menu, dependencies: [course, dish])
    }

    /// A payment in one of several shapes, or none.
    static func payment() throws -> GenerationSchema {
        let cash = DynamicGenerationSchema(
            name: "Cash", properties: [.init(name: "coins", schema: .init(type: Int.self))])
        let card = DynamicGenerationSchema(
            name: "Card", description: "By card",
            properties: [.init(name: "digits", schema: .init(type: String.self, guides: [.pattern(#/[0-9]{4}/#)]))])
        return try GenerationSchema(
            root: DynamicGenerationSchema(name: "Payment", anyOf: [cash, card, .null]), dependencies: [])
    }

    /// A tree: a schema that refers to itself.
    static func outline() throws -> GenerationSchema {
        let node = DynamicGenerationSchema(
            name: "Node",
            properties: [
                .init(name: "title", schema: .init(type: String.self)),
                .init(
                    name: "children",
                    schema: .init(arrayOf: .init(referenceTo: "Node"), maximumElements: 2)),
            ])
        return try GenerationSchema(root: node, dependencies: [])
    }

    /// Types of the app and dynamic schemas mix.
    static func shift() throws -> GenerationSchema {
        let shift = DynamicGenerationSchema(
            name: "Shift",
            representNilExplicitlyInGeneratedContent: true,
            properties: [
                .init(name: "day", schema: DynamicGenerationSchema(type: Weekday.self)),
                .init(name: "notes", schema: DynamicGenerationSchema(type: [String].self, guides: [.maximumCount(2)])),
                .init(name: "extra", schema: DynamicGenerationSchema(type: GeneratedContent.self), isOptional: true),
            ])
        return try GenerationSchema(root: shift, dependencies: [])
    }

    static func numbers() throws -> GenerationSchema {
        try GenerationSchema(
            root: DynamicGenerationSchema(arrayOf: .init(type: Int.self), minimumElements: 1, maximumElements: 3),
            dependencies: [])
    }
}

/// Reports the errors in a form to the designer.
enum FormProblems {
    static func message(for error: GenerationSchema.SchemaError) -> String {
        switch error {
        case .duplicateType(let schema, let type, _):
            "Two things are called \(type)\(schema.map { " in \($0)" } ?? "")."
        case .duplicateProperty(let schema, let property, context: _):
            "\(schema) has two fields called \(property)."
        case .emptyTypeChoices(let schema, _):
            "\(schema) has nothing to choose from."
        case .undefinedReferences(_, let references, let context):
            "Unknown: \(references.sorted().joined(separator: ", ")). \(context.debugDescription)"
        @unknown default:
            error.errorDescription ?? "The form is not valid."
        }
    }

    static func check(_ design: FormDesign, with others: [FormDesign] = []) -> String? {
        do {
            _ = try design.schema(with: others)
            return nil
        } catch let error as GenerationSchema.SchemaError {
            return message(for: error)
        } catch {
            return "\(error)"
        }
    }
}

/// Stores forms in files as JSON Schema.
enum FormFiles {
    static func data(for schema: GenerationSchema) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .prettyPrinted]
        return try encoder.encode(schema)
    }

    static func schema(from data: Data) throws -> GenerationSchema {
        try JSONDecoder().decode(GenerationSchema.self, from: data)
    }

    static func schema(fromFileAt url: URL) throws -> GenerationSchema {
        try schema(from: Data(contentsOf: url))
    }

    static func names(of types: [any Generable.Type]) -> [String] {
        types.map { $0.generationSchema.name }
    }
}

/// Fills forms in.
struct FormFiller {
    let session: LanguageModelSession

    func fill(_ schema: GenerationSchema, from text: String) async throws -> [(String, String)] {
        let content = try await session.respond(to: text, schema: schema).content
        guard case .structure(let properties, let orderedKeys) = content.kind else { return [] }
        return orderedKeys.map { ($0, properties[$0]?.jsonString ?? "") }
    }

    func dishes(_ request: String, from dishes: [String], options: GenerationOptions) async throws -> [String] {
        let schema = try MenuForms.menu(dishes: dishes)
        let response = try await session.respond(to: request, schema: schema, options: options)
        let courses = try response.content.value([GeneratedContent].self, forProperty: "courses")
        return try courses.map { try $0.value(String.self, forProperty: "dish") }
    }
}
