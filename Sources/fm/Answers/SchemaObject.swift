import ArgumentParser
import Foundation
internal import JSON

extension Schema {
    /// Writes a schema from the names and types of properties, with the options of Apple's command.
    struct Object: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "object",
            abstract: "Write a JSON Schema of an object from its properties.",
            discussion: """
                --name NAME         the name of the schema (required); --description TEXT before any property describes it
                --string NAME       a property; also --integer (--int), --double, --boolean
                --object NAME       (--nested) a property that is an object; --schema JSON after it is its schema
                --anyOf NAME        a property with one of several values; --schema JSON after it, once for each value or schema
                --array             the property before it is a list
                --description TEXT  describes the property before it
                --optional          the property before it may be missing

                A dot in a name is a property of a property: --string address.city

                  fm schema object --name Person --string name --integer age --optional > person.json
                  fm "Invent a person." --schema person.json
                """)

        @Argument(parsing: .captureForPassthrough, help: "The options, in order.") var options: [String] = []

        func run() throws {
            if options.isEmpty || options.contains("--help") || options.contains("-h") { throw CleanExit.helpRequest(self) }
            try Output().write(try SchemaBuilder.schema(options).prettyText + "\n")
        }
    }
}

/// A JSON Schema from options in order.
enum SchemaBuilder {
    private struct Property {
        var path: [String]
        var schema: JSONValue
        var description: String?
        var isArray = false
        var isOptional = false
        /// Of `--anyOf`: the values or schemas.
        var choices: [JSONValue]?
        var isObject = false
    }

    private static let types = [
        "--string": "string", "--integer": "integer", "--int": "integer", "--double": "number", "--number": "number",
        "--boolean": "boolean", "--bool": "boolean", "--object": "object", "--nested": "object", "--anyOf": "",
    ]

    /// - Throws: `ValidationError` that names the option that is wrong.
    static func schema(_ options: [String]) throws -> JSONValue {
        var name: String?
        var description: String?
        var properties: [Property] = []
        var rest = options[...]
        func value(of option: String) throws -> String {
            guard let value = rest.popFirst() else { throw ValidationError("“\(option)” needs a value.") }
            return value
        }
        func change(_ option: String, _ body: (inout Property) throws -> Void) throws {
            guard !properties.isEmpty else { throw ValidationError("“\(option)” must follow a property.") }
            try body(&properties[properties.count - 1])
        }
        while let next = rest.popFirst() {
            var option = next
            // Also --option=value.
            if next.hasPrefix("--"), let equals = next.firstIndex(of: "=") {
                option = String(next[..<equals])
                rest = [String(next[next.index(after: equals)...])] + rest
            }
            switch option {
            case "--name": name = try value(of: option)
            case "--description":
                let text = try value(of: option)
                if properties.isEmpty { description = text } else { try change(option) { $0.description = text } }
            case "--array": try change(option) { $0.isArray = true }
            case "--optional": try change(option) { $0.isOptional = true }
            case "--schema":
                let text = try value(of: option)
                try change(option) { property in
                    // A choice need not be quoted.
                    let parsed = try? JSONParser.parse(text)  // see above
                    if property.choices != nil {
                        property.choices?.append(parsed ?? .string(text))
                    } else if property.isObject, case .object? = parsed {
                        property.schema = parsed ?? property.schema
                    } else {
                        throw ValidationError("“--schema” after “\(property.path.joined(separator: "."))” must be a JSON object.")
                    }
                }
            default:
                guard let type = types[option] else { throw ValidationError("There is no option “\(option)”.") }
                let path = try value(of: option).split(separator: ".", omittingEmptySubsequences: false).map(String.init)
                guard !path.contains(""), !path[0].hasPrefix("-") else { throw ValidationError("“\(option)” needs a name.") }
                guard !properties.contains(where: { $0.path == path }) else {
                    throw ValidationError("There are two properties “\(path.joined(separator: "."))”.")
                }
                properties.append(
                    Property(
                        path: path, schema: .object([.init("type", .string(type))]), choices: type.isEmpty ? [] : nil,
                        isObject: type == "object"))
            }
        }
        guard let name else { throw ValidationError("Give the name of the schema: --name NAME.") }
        for property in properties where property.choices?.isEmpty == true {
            throw ValidationError("“\(property.path.joined(separator: "."))” needs its values: --schema VALUE after it.")
        }
        return try object(name, description, properties[...].map { ($0.path[...], $0) })
    }

    private static func object(
        _ title: String, _ description: String?, _ properties: [(path: ArraySlice<String>, property: Property)]
    ) throws -> JSONValue {
        var members: [JSONValue.Member] = []
        var required: [JSONValue] = []
        for (path, property) in properties {
            guard let name = path.first, !members.contains(where: { $0.name == name }) else { continue }
            let inner = properties.filter { $0.path.first == name && $0.path.count > 1 }
            var schema = written(property)
            var isOptional = property.isOptional
            if !inner.isEmpty {
                // The object itself may be declared, for its description and whether it is a list.
                let own = properties.first { $0.path.count == 1 && $0.path.first == name }?.property
                guard own?.isObject ?? true else { throw ValidationError("“\(name)” has properties, so it must be an object.") }
                let nested = try object(name, own?.description, inner.map { ($0.path.dropFirst(), $0.property) })
                schema = own?.isArray == true ? list(nested) : nested
                isOptional = own?.isOptional ?? inner.allSatisfy(\.property.isOptional)
            }
            members.append(.init(name, schema))
            if !isOptional { required.append(.string(name)) }
        }
        return .object(
            [.init("title", .string(title))] + (description.map { [.init("description", .string($0))] } ?? []) + [
                .init("type", .string("object")), .init("properties", .object(members)), .init("required", .array(required)),
                .init("additionalProperties", .bool(false)), .init("x-order", .array(members.map { .string($0.name) })),
            ])
    }

    private static func list(_ items: JSONValue) -> JSONValue {
        .object([.init("type", .string("array")), .init("items", items)])
    }

    private static func written(_ property: Property) -> JSONValue {
        var schema = property.schema
        if let choices = property.choices {
            let areValues = choices.allSatisfy { if case .object = $0 { false } else { true } }
            schema = .object([.init(areValues ? "enum" : "anyOf", .array(choices))])
        }
        if property.isArray { schema = list(schema) }
        if let description = property.description, case .object(let members) = schema {
            schema = .object(members + [.init("description", .string(description))])
        }
        return schema
    }
}
