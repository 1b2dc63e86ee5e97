/// Parts of published schemas that did not work: manifests of packages, resources of Kubernetes and CloudFormation,
/// configurations of continuous integration, metadata of research data.
enum PublishedSchemas {
    static let cases = orders + identifiers + unevaluated + differing + alternatives + patterns

    private static let orders = [
        // The orders of several `properties` contradict each other in a circle of three names.
        AcceptanceCase(
            """
            {"type":"object","properties":{"type":{"const":"t"},"id":{"type":"integer"}},
            "allOf":[{"properties":{"id":{},"name":{"type":"boolean"},"type":{}}}],"required":["type","id","name"]}
            """, ["{\"type\":\"t\",\"id\":1,\"name\":true}"], not: ["{\"type\":\"t\",\"id\":1}"]),
        AcceptanceCase(
            """
            {"allOf":[{"properties":{"a":{},"b":{}}},{"properties":{"b":{},"c":{}}},{"properties":{"c":{},"a":{}}}],
            "type":"object","required":["a","b","c"]}
            """, ["{\"a\":1,\"b\":2,\"c\":3}"], not: ["{\"a\":1,\"b\":2}"]),
        // Items that must differ have a fixed order of members; the objects around them do not.
        AcceptanceCase(
            """
            {"type":"object","properties":{"kind":{"const":"x"},"params":{},"tags":{"uniqueItems":true}},
            "required":["kind","params"],"allOf":[{"properties":{"keys":{"type":"array"},"kind":{}},"required":["keys"]}]}
            """,
            ["{\"keys\":[],\"kind\":\"x\",\"params\":1}", "{\"keys\":[],\"kind\":\"x\",\"params\":1,\"tags\":[{},{\"a\":1}]}"],
            not: ["{\"kind\":\"x\",\"params\":1}"]),
        AcceptanceCase(
            "{\"type\":\"object\",\"properties\":{\"a\":{},\"t\":{\"uniqueItems\":true}},\"required\":[\"b\",\"c\"]}",
            ["{\"c\":1,\"b\":2}", "{\"b\":1,\"c\":2}"], not: ["{\"b\":1}"]),
        // In the first alternative there are integers outside unique items, with both spellings.
        AcceptanceCase(
            """
            {"type":"object","properties":{"n":{"type":"integer"},"l":{"type":"array","uniqueItems":true,"items":{"type":"object",
            "properties":{"n":{"type":"integer"}}}}}}
            """, ["{\"n\":1.0,\"l\":[{\"n\":1},{\"n\":2}]}"],
            not: ["{\"l\":[{\"n\":1},{\"n\":1}]}", "{\"l\":[{\"n\":1},{\"n\":1.0}]}"]),
        // The value of a member that refers only to itself does not exist.
        AcceptanceCase(
            "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/a\"}},\"$defs\":{\"a\":{\"$ref\":\"#/$defs/a\"}}}",
            ["{}", "{\"b\":1}"], not: ["{\"a\":1}"]),
        AcceptanceCase(
            "{\"$schema\":\"http://json-schema.org/draft-04/schema#\",\"type\":\"integer\"}", ["4"], not: ["4.0"]),
    ]

    private static let identifiers = [
        // Examples are values, even if they look like schemas.
        AcceptanceCase(
            """
            {"$id":"http://e.com/","properties":{"a":{"examples":[{"$anchor":"x","type":"string"}]},
            "z":{"$anchor":"x","type":"integer"},"b":{"$ref":"#x"}}}
            """, ["{\"b\":1}"], not: ["{\"b\":\"s\"}"]),
        // Properties may have the names of keywords.
        AcceptanceCase(
            "{\"properties\":{\"default\":{\"$anchor\":\"x\",\"type\":\"integer\"},\"b\":{\"$ref\":\"#x\"}}}",
            ["{\"b\":1}"], not: ["{\"b\":\"s\"}"]),
        AcceptanceCase(
            "{\"$id\":\"http://e.com/\",\"properties\":{\"enum\":{\"$id\":\"y\",\"type\":\"integer\"},\"b\":{\"$ref\":\"y\"}}}",
            ["{\"b\":1}"], not: ["{\"b\":\"s\"}"]),
    ]

    private static let unevaluated = [
        AcceptanceCase(
            """
            {"type":"object","$ref":"#/$defs/base","properties":{"b":{"type":"string"}},"unevaluatedProperties":false,
            "$defs":{"base":{"properties":{"a":{"type":"integer"}},"patternProperties":{"^x-":{}}}}}
            """, ["{\"a\":1,\"b\":\"\"}", "{\"b\":\"\",\"a\":1}", "{\"x-y\":1}"], not: ["{\"c\":1}", "{\"a\":\"\"}"]),
        AcceptanceCase(
            """
            {"type":"object","properties":{"kind":{}},"oneOf":[{"properties":{"kind":{"const":"a"},"x":{}},"required":["kind"]},
            {"properties":{"kind":{"const":"b"},"y":{}},"required":["kind"]}],"unevaluatedProperties":false}
            """, ["{\"kind\":\"a\",\"x\":1}", "{\"kind\":\"b\",\"y\":1}"],
            not: ["{\"kind\":\"a\",\"y\":1}", "{\"kind\":\"b\",\"z\":1}"]),
        AcceptanceCase(
            """
            {"type":"object","anyOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},
            {"properties":{"b":{"type":"integer"}},"required":["b"]}],"unevaluatedProperties":{"type":"null"}}
            """, ["{\"a\":1,\"b\":2}", "{\"a\":1,\"b\":null}", "{\"b\":1,\"c\":null}"],
            not: ["{\"a\":1,\"b\":\"\"}", "{\"a\":1,\"c\":1}"]),
        AcceptanceCase(
            """
            {"type":"array","allOf":[{"prefixItems":[{"type":"string"}]}],"prefixItems":[{},{"type":"integer"}],
            "unevaluatedItems":false}
            """, ["[\"a\",1]", "[\"a\"]", "[]"], not: ["[1]", "[\"a\",1,2]"]),
    ]

    private static let differing = [
        // Arrays with equal items are not described, and therefore exclude no other alternative.
        AcceptanceCase(
            "{\"oneOf\":[{\"not\":{\"uniqueItems\":true}},{\"type\":\"array\"}]}", ["[1,2]", "[]"], not: ["[1,1]", "1"]),
        AcceptanceCase(
            "{\"oneOf\":[{\"not\":{\"type\":\"array\",\"uniqueItems\":true}},{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}]}",
            ["[1,2]", "\"a\""], not: ["[1,1]"]),
        // Alternatives whose members are declared in different orders are compared in one.
        AcceptanceCase(
            "{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"enum\":[{\"a\":1,\"b\":2},{\"b\":2,\"a\":1},{\"b\":3,\"a\":1}]}}",
            ["[{\"a\":1,\"b\":2},{\"a\":1,\"b\":3}]"], not: ["[{\"a\":1,\"b\":2},{\"b\":2,\"a\":1}]"]),
        // One of two branches has items that must differ: the other one excludes only what is certain.
        AcceptanceCase(
            """
            {"type":"object","oneOf":[{"properties":{"d":{"type":"array","uniqueItems":true},"k":{"const":1}},"required":["k"]},
            {"properties":{"k":{"const":2}},"required":["k"]}]}
            """, ["{\"d\":[1,2],\"k\":1}", "{\"k\":2,\"d\":[1,1]}"], not: ["{\"d\":[1,1],\"k\":1}", "{\"d\":[],\"k\":3}"]),
        // Items have a single spelling, so that there is always one that differs.
        AcceptanceCase(
            """
            {"type":"array","uniqueItems":true,"items":{"type":"object","properties":{"w":{"enum":[0.5,1.25,"Zürich"]}},
            "required":["w"],"additionalProperties":false}}
            """, ["[{\"w\":0.5},{\"w\":1.25},{\"w\":\"Zürich\"}]"],
            not: ["[{\"w\":0.50}]", "[{\"w\":\"Z\\u00fcrich\"}]", "[{\"w\":0.5},{\"w\":0.5}]"]),
        AcceptanceCase(
            "{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"type\":\"array\",\"items\":{\"type\":\"number\"}}}",
            ["[[1,0.25],[1e30]]", "[[0],[-1.5]]"],
            not: ["[[1.0]]", "[[0.50]]", "[[-0]]", "[[1e5]]", "[[1E30]]", "[[1e030]]", "[[1.0e30]]"]),
    ]

    private static let alternatives: [AcceptanceCase] = {
        // Commands of a robot: the member that tells them apart is optional.
        let commands = (0..<40).map { number in
            """
            {"type":"object","properties":{"commandType":{"enum":["c\(number)"]},"params":{"type":"object","properties":{
            "volume":{"type":"number"},"p\(number)":{"type":"string"},"speed":{"type":"integer"}},"required":["volume","p\(number)"]},
            "key":{"type":"string"}},"required":["params"]}
            """
        }
        let oneOf = "\"oneOf\":[\(commands.joined(separator: ","))]"
        let command = "{\"commandType\":\"c7\",\"params\":{\"volume\":1,\"p7\":\"\"}}"
        return [
            AcceptanceCase(
                "{\(oneOf)}", [command],
                not: [
                    "{\"commandType\":\"c7\",\"params\":{\"volume\":1,\"p8\":\"\"}}",
                    "{\"params\":{\"volume\":1,\"p7\":\"\",\"p8\":\"\"}}", "1",
                ]),
            // Nested alternatives, of which the outer ones exclude each other.
            AcceptanceCase(
                """
                {"oneOf":[{},{"properties":{"features":{"properties":{"geometry":{"oneOf":[
                {"properties":{"type":{"enum":["P"]},"coordinates":{"items":[{"type":"number"}]}}},
                {"properties":{"type":{"enum":["M"]},"coordinates":{"items":[{"type":"number"}]}}},
                {"properties":{"type":{"enum":["L"]},"coordinates":{"items":[{"type":"number"},{"type":"number"}]}}}]}}}}}]}
                """, ["{\"features\":{\"geometry\":{\"type\":\"X\"}}}"],
                not: ["{\"features\":{\"geometry\":{\"type\":\"P\",\"coordinates\":[1]}}}", "{}"]),
        ]
    }()

    private static let patterns = [
        // Flags, anchors and classes of other dialects.
        AcceptanceCase(
            "{\"type\":\"string\",\"pattern\":\"(?i)^[0-9a-f]{2}x$\"}", ["\"aFX\"", "\"00x\""], not: ["\"agx\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"pattern\":\"\\\\Aa(?s:.)b.\\\\Z\"}", ["\"a\\nbc\""], not: ["\"a\\nb\\n\"", "\"xaabc\""]),
        AcceptanceCase("{\"type\":\"string\",\"pattern\":\"^\\\\p{Graph}+$\"}", ["\"a~\""], not: ["\"a b\"", "\"é\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"format\":\"idn-email\"}", ["\"jörg@exämple.de\"", "\"a@b.c\""], not: ["\"text\"", "\"a@\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"pattern\":\"^[0-9a-z.\\\\-]*(?<!\\\\.)$\"}", ["\"\"", "\"a.b\"", "\"a-\""],
            not: ["\"a.\"", "\".\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"pattern\":\"(?<=a|-)b\"}", ["\"ab\"", "\"x-by\""], not: ["\"b\"", "\"xb\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"pattern\":\"^.*\\\\/search(\\\\?.*)?\\\\b\"}",
            ["\"/search\"", "\"/search?a\"", "\"/search?\""], not: ["\"/searches\"", "\"search\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"pattern\":\"^cron\\\\((\\\\b[0-5]?[0-9]\\\\b) x\\\\)$\"}",
            ["\"cron(5 x)\"", "\"cron(59 x)\""], not: ["\"cron(60 x)\"", "\"cron( x)\""]),
        AcceptanceCase("{\"type\":\"string\",\"pattern\":\"^a\\\\Bb$\"}", ["\"ab\""], not: ["\"a b\""]),
        // Surrogates are not characters, wherever they stand in a set.
        AcceptanceCase(
            "{\"type\":\"string\",\"pattern\":\"^[\\\\u0020-\\\\uD7FF\\\\uE000-\\\\uFFFD\\\\uD800\\\\uDBFF-\\\\uDC00\\\\uDFFF\\\\r\\\\n\\\\t]*$\"}",
            ["\"a\\n\"", "\"é\""], not: ["\"\\u0001\""]),
        // A repetition with a lookahead whose body can be empty.
        AcceptanceCase(
            "{\"type\":\"string\",\"pattern\":\"^(?:(?!-)(?:a?)+)*$\"}", ["\"\"", "\"aa\""], not: ["\"-\"", "\"b\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"pattern\":\"^(?:-(?!-)(?:|.))*$\"}", ["\"-\"", "\"-a-\""], not: ["\"--\"", "\"a\""]),
    ]
}
