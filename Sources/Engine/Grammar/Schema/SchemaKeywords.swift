/// The keywords of JSON Schema, and what their values are.
package enum SchemaKeywords {
    /// Keywords whose values are schemas, or lists of schemas.
    package static let schemas: Set<String> = [
        "additionalItems", "additionalProperties", "allOf", "anyOf", "contains", "contentSchema", "else", "if", "items", "not",
        "oneOf", "prefixItems", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
    ]
    /// Keywords whose values are objects of schemas, whose names are not keywords.
    package static let containers: Set<String> = [
        "$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties",
    ]
    /// Keywords whose values are data, not schemas.
    static let values: Set<String> = ["const", "default", "enum", "example", "examples"]

    /// The kind of values that a keyword restricts; all kinds for keywords that restrict or describe any value.
    static let kinds: [String: Kinds] = {
        var kinds: [String: Kinds] = [:]
        func add(_ kind: Kinds, _ names: String) { for name in names.split(separator: " ") { kinds[String(name)] = kind } }
        add(.number, "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf x-digits")
        add(.string, "minLength maxLength pattern format")
        add(.object, "properties patternProperties additionalProperties propertyNames required minProperties maxProperties")
        add(.object, "dependentRequired dependentSchemas dependencies unevaluatedProperties")
        add(.array, "prefixItems items additionalItems minItems maxItems uniqueItems contains minContains maxContains")
        add(.array, "unevaluatedItems")
        add(.all, "type enum const allOf anyOf oneOf not if then else")
        add(.all, "$ref $defs definitions $id id $anchor $schema $dynamicRef $recursiveRef")
        for name in annotations { kinds[name] = .all }
        return kinds
    }()

    /// Keywords that describe a schema and restrict no value.
    static let annotations: Set<String> = [
        "title", "description", "default", "example", "examples", "deprecated", "readOnly", "writeOnly", "contentEncoding",
        "contentMediaType", "contentSchema", "externalDocs", "xml", "$comment", "$vocabulary", "$dynamicAnchor",
        "$recursiveAnchor",
    ]

    /// Whether a keyword restricts no value, whatever is beside it.
    package static func isDescription(_ name: String) -> Bool {
        annotations.contains(name) || name == "$schema" || name.hasPrefix("x-") && kinds[name] == nil
    }

    /// The keyword that an unknown name is probably meant to be; nil if none is similar.
    static func nearest(to name: String) -> String? {
        guard name.utf8.count <= 40 else { return nil }
        let folded = fold(name)
        let limit = min(2, folded.count / 3)
        var best: (name: String, distance: Int)?
        // “schema” is the name of many things.
        for keyword in kinds.keys.sorted() where keyword != "$schema" && abs(keyword.utf8.count - name.utf8.count) <= 4 {
            let distance = distance(folded, fold(keyword))
            if distance <= limit, distance < best?.distance ?? .max { best = (keyword, distance) }
        }
        return best?.name
    }

    /// Letters and digits in lower case: `max_length` is meant to be `maxLength`.
    private static func fold(_ name: String) -> [UInt8] {
        name.lowercased().utf8.filter { $0 != UInt8(ascii: "_") && $0 != UInt8(ascii: "-") && $0 != UInt8(ascii: "$") }
    }

    /// The number of characters to insert, remove or replace, and of neighbours to exchange, that makes one name the other.
    private static func distance(_ a: [UInt8], _ b: [UInt8]) -> Int {
        var rows = [Array(0...b.count)]
        for i in a.indices {
            var row = [i + 1]
            for j in b.indices {
                var cost = min(rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (a[i] == b[j] ? 0 : 1))
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { cost = min(cost, rows[i - 1][j - 1] + 1) }
                row.append(cost)
            }
            rows.append(row)
        }
        return rows[a.count][b.count]
    }
}
