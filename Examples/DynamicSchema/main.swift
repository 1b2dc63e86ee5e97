/// DynamicSchema: a form that is defined at run time, here as JSON, and filled in from a text.
///
///     swift run DynamicSchema
///     swift run DynamicSchema form.json "The text to read."
///
/// Each field becomes a property of the schema of the response. The fields always have the right type; whether their
/// values are those of the text depends on the model.

import Foundation
import FoundationModels

struct Form: Decodable {
    var name: String
    var fields: [Field]

    struct Field: Decodable {
        enum Kind: String, Decodable { case text, number, choice, list, yesNo }

        var name: String
        var description: String?
        var kind: Kind
        /// The minimum and the maximum of a number.
        var from: Int?
        var to: Int?
        /// The allowed values of a choice, or of the elements of a list.
        var choices: [String]?
        var isOptional: Bool?
    }

    /// - Throws: ``GenerationSchema/SchemaError`` if the form is not a valid schema, for example with two fields of one
    ///   name.
    func schema() throws -> GenerationSchema {
        let properties = fields.map { field in
            DynamicGenerationSchema.Property(
                name: field.name, description: field.description, schema: schema(of: field),
                isOptional: field.isOptional ?? false)
        }
        return try GenerationSchema(root: DynamicGenerationSchema(name: name, properties: properties), dependencies: [])
    }

    private func schema(of field: Field) -> DynamicGenerationSchema {
        // Named schemas need unique names.
        let choice = field.choices.map { DynamicGenerationSchema(name: "\(name).\(field.name)", anyOf: $0) }
        let text = choice ?? DynamicGenerationSchema(type: String.self)
        switch field.kind {
        case .text, .choice: return text
        case .list: return DynamicGenerationSchema(arrayOf: text, maximumElements: 4)
        case .yesNo: return DynamicGenerationSchema(type: Bool.self)
        case .number:
            let bounds = [field.from.map { GenerationGuide<Int>.minimum($0) }, field.to.map { .maximum($0) }]
            return DynamicGenerationSchema(type: Int.self, guides: bounds.compactMap { $0 })
        }
    }
}

let order = """
    {"name": "Order", "fields": [
      {"name": "customer", "kind": "text", "description": "Who orders"},
      {"name": "pizza", "kind": "choice", "choices": ["margherita", "funghi", "hawaii", "other"]},
      {"name": "count", "kind": "number", "from": 1, "to": 20},
      {"name": "extras", "kind": "list", "choices": ["olives", "onions", "cheese", "basil"], "isOptional": true},
      {"name": "delivery", "kind": "yesNo", "description": "Whether it is to be brought"}
    ]}
    """
let letter = "Hello, this is Grace. Please bring me two funghi with extra cheese to 12 Harbour Street."

func fail(_ message: String, code: Int32 = 1) -> Never {
    FileHandle.standardError.write(Data("DynamicSchema: \(message)\n".utf8))
    exit(code)
}

/// The value of a field as text.
func words(_ value: GeneratedContent?) -> String {
    switch value?.kind {
    case nil, .null: "-"
    case .bool(let isTrue): isTrue ? "yes" : "no"
    case .string(let text): text
    case .array(let elements): elements.isEmpty ? "none" : elements.map { words($0) }.joined(separator: ", ")
    default: value?.jsonString ?? "-"
    }
}

let arguments = Array(CommandLine.arguments.dropFirst())
do {
    let data = try arguments.first.map { try Data(contentsOf: URL(filePath: $0)) } ?? Data(order.utf8)
    let form = try JSONDecoder().decode(Form.self, from: data)
    let schema = try form.schema()
    guard SystemLanguageModel.default.isAvailable else {
        fail("There is no model. Download it with “fm model pull”.", code: 3)
    }
    let session = LanguageModelSession(instructions: "Fill in the form from the text.")
    let response = try await session.respond(
        to: arguments.dropFirst().first ?? letter, schema: schema, options: GenerationOptions(samplingMode: .greedy))
    print(form.name)
    for field in form.fields {
        let value: GeneratedContent? = try response.content.value(forProperty: field.name)
        print("  \(field.name): \(words(value))")
    }
} catch let error as DecodingError {
    fail("The form cannot be read: \(error)")
} catch let error as GenerationSchema.SchemaError {
    fail("The form is not a valid schema: \(error.localizedDescription)", code: 5)
} catch LanguageModelError.unsupportedGenerationGuide(let reason) {
    fail("The form is not supported: \(reason.debugDescription)", code: 5)
} catch SystemLanguageModel.Error.assetsUnavailable(let reason) {
    fail(reason.debugDescription, code: 3)
} catch {
    fail(error.localizedDescription)
}
