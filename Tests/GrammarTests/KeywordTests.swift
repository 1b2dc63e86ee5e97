import Testing

@testable import Grammar

struct AcceptanceCase: CustomTestStringConvertible {
    var schema: String
    var accepted: [String]
    var rejected: [String]
    var testDescription: String { schema }

    init(_ schema: String, _ accepted: [String], not rejected: [String]) {
        (self.schema, self.accepted, self.rejected) = (schema, accepted, rejected)
    }
}

/// Documents that each keyword accepts and rejects.
@Suite struct KeywordTests {
    @Test(arguments: Self.values + Self.numbers + Self.strings)
    func checkScalars(_ table: AcceptanceCase) throws { try check(table) }

    @Test(arguments: Self.objects + Self.arrays + Self.differing)
    func checkStructures(_ table: AcceptanceCase) throws { try check(table) }

    @Test(arguments: Self.combinations + Self.references + Self.found)
    func checkCombinations(_ table: AcceptanceCase) throws { try check(table) }

    @Test(arguments: Self.patterns + Self.formats)
    func checkTexts(_ table: AcceptanceCase) throws { try check(table) }

    @Test(arguments: Self.published + PublishedSchemas.cases)
    func checkPublished(_ table: AcceptanceCase) throws { try check(table) }

    private func check(_ table: AcceptanceCase) throws {
        let grammar = try Grammar(table.schema)
        for document in table.accepted { #expect(grammar.accepts(document), "\(document) is valid") }
        for document in table.rejected { #expect(!grammar.accepts(document), "\(document) is not valid") }
    }

    static let values = [
        AcceptanceCase(
            "true", ["null", "1", "\"a\"", "[1,{}]", "{\"a\":[]}"], not: ["", "nul", "{\"a\":1,\"a\":2}", "[1,]", " 1"]),
        AcceptanceCase("{\"type\":\"null\"}", ["null"], not: ["0", "\"null\"", "nulll"]),
        AcceptanceCase("{\"type\":\"boolean\"}", ["true", "false"], not: ["1", "True"]),
        AcceptanceCase("{\"type\":[\"string\",\"null\",\"integer\"]}", ["null", "\"\"", "-3"], not: ["1.5", "true", "[]"]),
        AcceptanceCase(
            "{\"enum\":[1,\"a\",null,[1,2],{\"x\":true}]}", ["1", "1.0", "\"a\"", "null", "[1,2]", "{\"x\":true}"],
            not: ["2", "\"b\"", "[1]", "{\"x\":false}", "{}", "[1,2,3]"]),
        AcceptanceCase(
            "{\"const\":{\"a\":[1,\"é\"]}}", ["{\"a\":[1,\"é\"]}", "{\"a\":[1,\"\\u00e9\"]}"], not: ["{\"a\":[1]}", "{}"]),
        AcceptanceCase("{\"const\":\"a\\n\\\"b/\"}", ["\"a\\n\\\"b/\""], not: ["\"a\nb/\"", "\"a\\nb/\""]),
    ]

    static let numbers = [
        AcceptanceCase(
            "{\"type\":\"integer\"}", ["0", "-0", "12", "-7", "1.0", "18446744073709551615"],
            not: ["1.5", "01", "+1", "1.", "--1", "123456789012345678901"]),
        // As many digits as programs read, unless a bound requires more.
        AcceptanceCase(
            "{\"type\":\"integer\",\"maximum\":1000000000000000000000000}",
            ["1000000000000000000000000", "-1000000000000000000000000"],
            not: ["1000000000000000000000001"]),
        AcceptanceCase(
            "{\"type\":\"number\",\"minimum\":0,\"maximum\":1}", ["0.1234567890123456789", "1.0", "5e-7"],
            not: ["0.123456789012345678901234567890", "1.1"]),
        // The first digit does not decide where a bound begins with the same one.
        AcceptanceCase(
            "{\"type\":\"number\",\"minimum\":2.2e-50,\"exclusiveMaximum\":2.5e-50}", ["2.3e-50", "2.2e-50", "2.49e-50"],
            not: ["2.5e-50", "2.1e-50", "1e-50", "3e-50"]),
        AcceptanceCase(
            "{\"type\":\"number\",\"exclusiveMinimum\":0.5,\"maximum\":2.25}", ["5.1e-1", "0.51", "6e-1", "2.25"],
            not: ["5e-1", "0.5", "2.26", "3"]),
        AcceptanceCase(
            "{\"type\":\"number\",\"minimum\":-2.5e-50,\"exclusiveMaximum\":-2e-50}", ["-2.3e-50", "-2.5e-50"],
            not: ["-2e-50", "-2.6e-50"]),
        // Large bounds do not ask for hundreds of digits: larger numbers have exponents.
        AcceptanceCase(
            "{\"type\":\"number\",\"minimum\":0.5,\"maximum\":1e300}", ["12345678901234567890", "1.5e299", "1e5"],
            not: ["123456789012345678901", "0.4", "1e301"]),
        // Multiples have as many digits as other integers, and those that make them multiples.
        AcceptanceCase(
            "{\"type\":\"integer\",\"multipleOf\":700}", ["-1400", "99999999999999999900", "10000000000000000000500"],
            not: ["10000000000000000000100", "100000000000000000005000", "1"]),
        AcceptanceCase(
            "{\"type\":\"number\",\"multipleOf\":2.5}", ["12345678901234567890.0", "123456789012345678900", "7.5"],
            not: ["123456789012345678903", "1234567890123456789050", "7.6"]),
        AcceptanceCase(
            "{\"type\":\"integer\",\"not\":{\"multipleOf\":3}}", ["1", "99999999999999999998", "999999999999999999991"],
            not: ["3", "999999999999999999999", "9999999999999999999911"]),
        // The digits of a type of Swift: plain notation where it suffices, exponents beyond.
        AcceptanceCase(
            "{\"type\":\"number\",\"minimum\":-1e300,\"maximum\":1e300,\"x-digits\":17}",
            ["0.1", "-12345678901234567", "1.5e17", "2e-5", "0.0001"],
            not: ["123456789012345678", "1e5", "1.5e16", "2e-4", "1e301"]),
        AcceptanceCase(
            "{\"type\":\"number\",\"minimum\":-3.4e38,\"maximum\":3.4e38,\"x-digits\":9}",
            ["0.000123456789", "-0.00012", "0", "1.23456789e-5", "123456789"],
            not: ["0.0001234567891", "1234567890", "1e-4", "0.000000123456789"]),
        // Bounds near zero, and a divisor with many digits.
        AcceptanceCase(
            "{\"type\":\"number\",\"maximum\":2e-200}", ["1e-202", "-1", "0", "2e-200"], not: ["7", "1e-199", "0.1"]),
        AcceptanceCase(
            "{\"type\":\"number\",\"multipleOf\":0.1234567891}", ["0.1234567891", "0", "1.234567891"],
            not: ["7", "0.1", "0.1234567892"]),
        AcceptanceCase(
            "{\"type\":\"number\",\"minimum\":12345678901,\"maximum\":12345678902,\"x-digits\":9}",
            ["12345678901", "12345678902.0"], not: ["12345678901.55", "1.2e10"]),
        AcceptanceCase(
            "{\"type\":\"number\"}", ["0", "1.5", "-2e10", "1E-5", "0.10"], not: ["1.", ".5", "1e", "0x1", "NaN", "01.5"]),
        AcceptanceCase(
            "{\"type\":\"integer\",\"minimum\":-5,\"maximum\":120}", ["-5", "0", "120", "119", "99"],
            not: ["-6", "121", "1000", "-10", "0120"]),
        AcceptanceCase(
            "{\"type\":\"number\",\"exclusiveMinimum\":0.5,\"maximum\":2.25}",
            ["0.51", "0.500001", "2.25", "2", "1.9999", "6e-1"],
            not: ["0.5", "0.50", "2.251", "3", "-1", "1e1", "0.49"]),
        AcceptanceCase(
            "{\"type\":\"number\",\"minimum\":-0.5,\"exclusiveMaximum\":0}", ["-0.5", "-0.25", "-1e-3"],
            not: ["0", "-0.51", "0.1", "-1"]),
        AcceptanceCase(
            "{\"type\":\"number\",\"maximum\":1e-6,\"exclusiveMinimum\":0}", ["5e-07", "0.000001", "1e-6"],
            not: ["1.1e-6", "0", "2e-06", "1"]),
        // One state per remainder would be too many.
        AcceptanceCase(
            "{\"type\":\"integer\",\"multipleOf\":86400,\"minimum\":1}", ["86400", "172800", "8640000000"],
            not: ["1", "0", "86401", "-86400"]),
        AcceptanceCase(
            "{\"type\":\"integer\",\"multipleOf\":999983,\"maximum\":-5}", ["-999983", "-1999966"], not: ["0", "999983", "-5"]),
        AcceptanceCase(
            "{\"type\":\"integer\",\"multipleOf\":86400,\"minimum\":100000,\"maximum\":200000}", ["172800"],
            not: ["86400", "259200", "100000"]),
        AcceptanceCase(
            "{\"type\":\"integer\",\"multipleOf\":86400,\"exclusiveMinimum\":86400,\"exclusiveMaximum\":345600}",
            ["172800", "259200"],
            not: ["86400", "345600", "0"]),
        AcceptanceCase("{\"type\":\"integer\",\"multipleOf\":7}", ["0", "7", "-14", "700"], not: ["8", "1", "-6", "3.5"]),
        AcceptanceCase(
            "{\"type\":\"integer\",\"multipleOf\":6,\"minimum\":10,\"maximum\":30}", ["12", "18", "30"],
            not: ["6", "36", "13", "0"]),
        AcceptanceCase(
            "{\"type\":\"number\",\"multipleOf\":0.25}", ["0.25", "1.5", "-3.75", "2"], not: ["0.3", "0.125", "1.1"]),
        AcceptanceCase("{\"minimum\":9007199254740993}", ["9007199254740993", "\"any\""], not: ["9007199254740992", "-1"]),
        AcceptanceCase(
            "{\"if\":{\"type\":\"string\"},\"then\":false,\"$schema\":\"http://json-schema.org/draft-04/schema#\"}",
            ["\"a\"", "1"],
            not: []),
        AcceptanceCase(
            "{\"minimum\":3,\"exclusiveMinimum\":true,\"$schema\":\"http://json-schema.org/draft-04/schema#\"}", ["4", "3.1"],
            not: ["3", "2"]),
    ]

    static let strings = [
        AcceptanceCase(
            "{\"type\":\"string\"}", ["\"\"", "\"é😀\"", "\"\\u00e9\\ud83d\\ude00\"", "\"\\\\\\\"\\/\\b\\f\\n\\r\\t\""],
            not: ["\"\n\"", "\"\\x\"", "\"\\ud83d\"", "\"\\ude00\"", "\"a", "\"\\u12\"", "\"\u{1}\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}",
            ["\"ab\"", "\"日本語\"", "\"\\n\\u00e9\"", "\"😀\\ud83d\\ude00\""], not: ["\"a\"", "\"abcd\"", "\"😀\""]),
        AcceptanceCase("{\"maxLength\":0}", ["\"\"", "1"], not: ["\"a\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"minLength\":3000}", ["\"" + String(repeating: "a", count: 3_000) + "\""], not: ["\"aaa\""]),
    ]

    static let objects = [
        AcceptanceCase(
            "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"string\"}},\"required\":[\"b\"],\"additionalProperties\":false}",
            ["{\"a\":1,\"b\":\"x\"}", "{\"b\":\"x\"}"],
            not: [
                "{}", "{\"a\":1}", "{\"b\":\"x\",\"a\":1}", "{\"b\":1}", "{\"b\":\"x\",\"c\":1}", "{\"b\":\"x\",}",
                "{\"b\":\"x\",\"b\":\"y\"}",
            ]),
        AcceptanceCase(
            "{\"properties\":{\"b\":{},\"a\":{}},\"x-order\":[\"a\",\"b\"],\"type\":\"object\"}",
            ["{\"a\":1,\"b\":2}", "{\"b\":1}"], not: ["{\"b\":1,\"a\":2}"]),
        AcceptanceCase(
            "{\"properties\":{\"a\":{\"type\":\"null\"}},\"additionalProperties\":{\"type\":\"integer\"},\"type\":\"object\"}",
            ["{\"a\":null,\"x\":1,\"y\":2}", "{\"x\":1}", "{\"\":0}"],
            not: ["{\"a\":1}", "{\"x\":\"1\"}", "{\"x\":1,\"x\":2}", "{\"x\":1,\"\\u0078\":2}"]),
        AcceptanceCase(
            "{\"required\":[\"z\"],\"type\":\"object\",\"properties\":{\"a\":{}}}",
            ["{\"z\":1}", "{\"a\":1,\"z\":1}", "{\"z\":1,\"a\":1}"], not: ["{\"a\":1}", "{}"]),
        AcceptanceCase(
            "{\"patternProperties\":{\"^x-\":{\"type\":\"integer\"},\"-y$\":{\"minimum\":5}},\"additionalProperties\":false,\"type\":\"object\"}",
            ["{}", "{\"x-a\":1}", "{\"x-y\":7}", "{\"a-y\":\"s\"}"], not: ["{\"x-y\":1}", "{\"a\":1}", "{\"x-a\":\"s\"}"]),
        AcceptanceCase("{\"propertyNames\":{\"maxLength\":2},\"type\":\"object\"}", ["{\"ab\":1}", "{}"], not: ["{\"abc\":1}"]),
        AcceptanceCase(
            "{\"propertyNames\":{\"enum\":[\"a\",\"b\"]},\"type\":\"object\",\"minProperties\":2}",
            ["{\"b\":1,\"a\":2}", "{\"a\":1,\"b\":2}"], not: ["{\"a\":1}", "{\"a\":1,\"c\":2}"]),
        AcceptanceCase(
            "{\"type\":\"object\",\"minProperties\":1,\"maxProperties\":2}", ["{\"a\":1}", "{\"a\":1,\"b\":2}"],
            not: ["{}", "{\"a\":1,\"b\":2,\"c\":3}"]),
        AcceptanceCase(
            "{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{},\"c\":{}},\"required\":[\"c\"],\"maxProperties\":2,\"additionalProperties\":false}",
            ["{\"c\":1}", "{\"a\":1,\"c\":1}"], not: ["{\"a\":1,\"b\":1}", "{\"a\":1,\"b\":1,\"c\":1}"]),
        AcceptanceCase(
            "{\"dependentRequired\":{\"card\":[\"address\"]},\"type\":\"object\",\"properties\":{\"card\":{},\"address\":{}}}",
            ["{}", "{\"address\":1}", "{\"card\":1,\"address\":2}"], not: ["{\"card\":1}"]),
        AcceptanceCase(
            "{\"type\":\"object\",\"properties\":{\"q\\\"uote\\n\":{},\"é\":{}},\"additionalProperties\":false}",
            ["{\"q\\\"uote\\n\":1,\"é\":2}", "{\"\\u00e9\":2}"], not: ["{\"e\":1}"]),
    ]

    static let arrays = [
        AcceptanceCase(
            "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}", ["[]", "[1]", "[1,2,3]"],
            not: ["[\"a\"]", "[1,]", "[,1]", "[1", "[1 ,2]"]),
        AcceptanceCase("{\"type\":\"array\",\"minItems\":1,\"maxItems\":2}", ["[1]", "[1,\"a\"]"], not: ["[]", "[1,2,3]"]),
        AcceptanceCase(
            "{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"},{\"type\":\"string\"}],\"items\":false}",
            ["[]", "[1]", "[1,\"a\"]"], not: ["[\"a\"]", "[1,2]", "[1,\"a\",1]"]),
        AcceptanceCase(
            "{\"type\":\"array\",\"items\":[{\"type\":\"integer\"}],\"additionalItems\":{\"type\":\"null\"}}",
            ["[1,null]", "[]"], not: ["[1,1]"]),
        AcceptanceCase(
            "{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"type\":\"string\"}}", ["[\"a\",\"b\"]", "[\"a\",\"ab\"]"],
            not: ["[\"a\",\"a\"]", "[\"a\",\"b\",\"a\"]", "[\"a\",\"\\u0061\"]"]),
        AcceptanceCase(
            "{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"enum\":[1,2,true]}}", ["[1,2,true]", "[2]"],
            not: ["[1,1]", "[1,1.0]", "[1,2,true,1]"]),
        AcceptanceCase(
            "{\"type\":\"array\",\"contains\":{\"const\":5},\"items\":{\"type\":\"integer\"}}", ["[5]", "[1,5,2]", "[5,5]"],
            not: ["[]", "[1,2]"]),
        AcceptanceCase(
            "{\"type\":\"array\",\"contains\":{\"minimum\":5},\"minContains\":2,\"maxContains\":3,\"items\":{\"type\":\"integer\"}}",
            ["[5,6]", "[1,9,8,7,2]"], not: ["[5]", "[5,6,7,8]"]),
    ]

    static let differing = [
        AcceptanceCase(
            "{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"boolean\"}},\"required\":[\"a\"],\"additionalProperties\":false}}",
            ["[]", "[{\"a\":true},{\"a\":false}]"],
            not: ["[{\"a\":true},{\"a\":true}]", "[{\"a\":true},{\"a\":false},"]),
        AcceptanceCase(
            "{\"type\":\"array\",\"uniqueItems\":true}", ["[[1],[1,2],[],{},{\"a\":[1]},1,\"1\"]"],
            not: ["[[1],[1]]", "[{\"a\":1,\"b\":2},{\"b\":2,\"a\":1}]", "[{},{}]"]),
    ]

    static let combinations = [
        AcceptanceCase(
            "{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"string\",\"maxLength\":1}]}", ["1", "\"a\""], not: ["\"ab\"", "1.5"]),
        AcceptanceCase(
            "{\"oneOf\":[{\"type\":\"integer\",\"multipleOf\":3},{\"type\":\"integer\",\"multipleOf\":5}]}", ["3", "5", "9"],
            not: ["15", "1", "0"]),
        AcceptanceCase(
            "{\"oneOf\":[{\"properties\":{\"k\":{\"const\":\"a\"},\"x\":{\"type\":\"integer\"}},\"required\":[\"k\",\"x\"]},{\"properties\":{\"k\":{\"const\":\"b\"},\"y\":{\"type\":\"string\"}},\"required\":[\"k\"]}],\"type\":\"object\"}",
            ["{\"k\":\"a\",\"x\":1}", "{\"k\":\"b\"}", "{\"k\":\"b\",\"y\":\"s\"}"],
            not: ["{\"k\":\"a\"}", "{\"k\":\"c\",\"x\":1}", "{\"k\":\"b\",\"y\":1}"]),
        AcceptanceCase(
            "{\"oneOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}],\"type\":\"object\"}",
            ["{\"a\":1}", "{\"b\":1,\"c\":2}"], not: ["{}", "{\"a\":1,\"b\":1}"]),
        AcceptanceCase(
            "{\"allOf\":[{\"properties\":{\"a\":{\"type\":\"integer\"}}},{\"properties\":{\"a\":{\"minimum\":3}},\"required\":[\"a\"]}],\"type\":\"object\"}",
            ["{\"a\":3}"], not: ["{\"a\":2}", "{\"a\":\"x\"}", "{}"]),
        AcceptanceCase("{\"not\":{\"type\":\"string\"}}", ["1", "null", "{}"], not: ["\"a\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"not\":{\"enum\":[\"a\",\"b\"]}}", ["\"c\"", "\"ab\"", "\"\""], not: ["\"a\"", "\"b\""]),
        AcceptanceCase(
            "{\"type\":\"object\",\"not\":{\"required\":[\"a\",\"b\"]}}", ["{\"a\":1}", "{\"b\":1}", "{}"],
            not: ["{\"a\":1,\"b\":2}"]),
        AcceptanceCase("{\"type\":\"integer\",\"not\":{\"multipleOf\":2}}", ["1", "3"], not: ["2", "0"]),
        AcceptanceCase(
            "{\"type\":\"object\",\"properties\":{\"c\":{\"enum\":[\"US\",\"NL\"]},\"zip\":{\"type\":\"string\"}},\"required\":[\"c\"],\"if\":{\"properties\":{\"c\":{\"const\":\"US\"}}},\"then\":{\"properties\":{\"zip\":{\"pattern\":\"^[0-9]{5}$\"}},\"required\":[\"zip\"]},\"else\":{\"properties\":{\"zip\":false}}}",
            ["{\"c\":\"US\",\"zip\":\"12345\"}", "{\"c\":\"NL\"}"],
            not: ["{\"c\":\"US\"}", "{\"c\":\"US\",\"zip\":\"x\"}", "{\"c\":\"NL\",\"zip\":\"1\"}"]),
        AcceptanceCase(
            "{\"type\":\"object\",\"dependentSchemas\":{\"a\":{\"required\":[\"b\"]}},\"properties\":{\"a\":{},\"b\":{}}}",
            ["{\"b\":1}", "{\"a\":1,\"b\":1}"], not: ["{\"a\":1}"]),
        AcceptanceCase(
            "{\"type\":\"array\",\"not\":{\"items\":{\"type\":\"integer\"}}}", ["[\"a\"]", "[1,\"a\"]"], not: ["[]", "[1,2]"]),
    ]

    /// Cases that fuzzing found.
    static let found = [
        AcceptanceCase(
            "{\"oneOf\":[{\"propertyNames\":{\"enum\":[\"a b\"]}},{\"propertyNames\":{\"enum\":[\"x\"]},\"minProperties\":3}]}",
            ["{}", "{\"a b\":1}"], not: ["{\"x\":1}", "1", "{\"a b\":1,\"x\":1}"]),
        AcceptanceCase(
            "{\"enum\":[1,3],\"multipleOf\":3,\"allOf\":[{\"anyOf\":[{\"multipleOf\":7},{\"maximum\":9}]},{\"anyOf\":[{\"multipleOf\":11},{\"maximum\":9}]},{\"anyOf\":[{\"multipleOf\":13},{\"maximum\":9}]}]}",
            ["3"], not: ["1"]),
        AcceptanceCase(
            "{\"type\":\"object\",\"propertyNames\":{\"enum\":[\"a\",\"b\"]},\"not\":{\"additionalProperties\":{\"type\":\"string\"}}}",
            ["{\"a\":1}", "{\"a\":\"x\",\"b\":2}"], not: ["{\"a\":\"x\"}", "{\"a\":1,\"a\":2}", "{}"]),
        AcceptanceCase(
            "{\"$defs\":{\"\u{e9}\":{\"type\":\"integer\"},\"e\u{301}\":{\"type\":\"string\"}},\"type\":\"array\",\"prefixItems\":[{\"$ref\":\"#/$defs/\u{e9}\"},{\"$ref\":\"#/$defs/e\u{301}\"}]}",
            ["[1,\"a\"]"], not: ["[1,1]", "[\"a\",\"a\"]"]),
        AcceptanceCase(
            "{\"type\":\"array\",\"prefixItems\":[{\"enum\":[1,2]},{\"const\":1}],\"minItems\":2,\"contains\":{\"const\":1},\"maxContains\":1}",
            ["[2,1]"], not: ["[1,1]"]),
        AcceptanceCase(
            "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}},\"minProperties\":1}",
            ["{\"b\":1}", "{\"a\":{\"b\":1}}"],
            not: ["{}", "{\"a\":{}}"]),
        AcceptanceCase(
            "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"minimum\":5,\"maximum\":1}}}",
            ["{}", "{\"b\":1}"],
            not: ["{\"a\":3}"]),
    ]

    static let references = [
        AcceptanceCase(
            "{\"$ref\":\"#/$defs/node\",\"$defs\":{\"node\":{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"integer\"},\"next\":{\"$ref\":\"#/$defs/node\"}},\"required\":[\"v\"],\"additionalProperties\":false}}}",
            ["{\"v\":1}", "{\"v\":1,\"next\":{\"v\":2,\"next\":{\"v\":3}}}"],
            not: ["{\"next\":{\"v\":1}}", "{\"v\":1,\"next\":{}}"]),
        AcceptanceCase("{\"$defs\":{\"a/b~c\":{\"type\":\"null\"}},\"$ref\":\"#/$defs/a~1b~0c\"}", ["null"], not: ["1"]),
        AcceptanceCase(
            "{\"$ref\":\"#x\",\"definitions\":{\"q\":{\"$anchor\":\"x\",\"type\":\"integer\"}},\"minimum\":3}", ["3"],
            not: ["2", "\"a\""]),
        AcceptanceCase(
            "{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"definitions\":{\"a\":{\"type\":\"integer\"}},\"$ref\":\"#/definitions/a\",\"minimum\":3}",
            ["2"], not: ["\"a\""]),
        AcceptanceCase(
            "{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}]}", ["1", "[]", "[[1],[[]]]"],
            not: ["[\"a\"]", "{}"]),
    ]

    static let patterns = [
        AcceptanceCase(
            "{\"type\":\"string\",\"pattern\":\"^(a*b?){1,3}$\"}", ["\"\"", "\"bbb\"", "\"aabaab\"", "\"abab\""],
            not: ["\"bbbb\"", "\"abababab\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"pattern\":\"^(x(ab?){0,3}c|x(ab?){0,2}c|(xy){2,4}|(xy){1,3})$\"}",
            ["\"xc\"", "\"xaabac\"", "\"xy\"", "\"xyxyxyxy\""], not: ["\"xaaaac\"", "\"xyxyxyxyxy\"", "\"\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"pattern\":\"^[a-z]+(-[0-9]{2,3})?$\"}", ["\"abc\"", "\"a-12\"", "\"a-123\""],
            not: ["\"\"", "\"a-1\"", "\"a-1234\"", "\"A\""]),
        AcceptanceCase("{\"type\":\"string\",\"pattern\":\"b\"}", ["\"b\"", "\"abc\""], not: ["\"a\"", "\"\""]),
        AcceptanceCase("{\"type\":\"string\",\"pattern\":\"^a|b$\"}", ["\"ax\"", "\"xb\""], not: ["\"xa\"", "\"bx\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"pattern\":\"^\\\\d\\\\w\\\\s\\\\D$\"}", ["\"1a x\"", "\"9_\\tx\""],
            not: ["\"aa x\"", "\"1a 1\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"pattern\":\"^(?=.*[0-9])(?!.*x)[a-z0-9]{3}$\"}", ["\"a1b\"", "\"123\""],
            not: ["\"abc\"", "\"x12\"", "\"a1\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"pattern\":\"^[^\\\\u00e9]\\\\u{1F600}\\\\x41$\"}", ["\"a😀A\""], not: ["\"é😀A\"", "\"a😀B\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"pattern\":\"^\\\\p{Lu}\\\\p{L}*$\"}", ["\"Éa\"", "\"Ж\""], not: ["\"éa\"", "\"1\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"pattern\":\"^(a{2}){1,2}$\"}", ["\"aa\"", "\"aaaa\""],
            not: ["\"a\"", "\"aaa\"", "\"aaaaaa\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"pattern\":\"^a+$\",\"maxLength\":3,\"minLength\":2}", ["\"aa\"", "\"aaa\""],
            not: ["\"a\"", "\"aaaa\"", "\"ab\""]),
    ]

    static let formats = [
        AcceptanceCase(
            "{\"type\":\"string\",\"format\":\"date\"}", ["\"2024-02-29\"", "\"1999-12-31\""],
            not: ["\"2023-02-29\"", "\"2024-04-31\"", "\"24-01-01\"", "\"1900-02-29\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"format\":\"time\"}", ["\"23:59:59Z\"", "\"00:00:00.123+02:00\""],
            not: ["\"24:00:00Z\"", "\"12:00\"", "\"12:00:00\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"format\":\"date-time\"}", ["\"2024-01-31T10:00:00Z\""],
            not: ["\"2024-01-31 10:00:00Z\"", "\"2024-01-32T10:00:00Z\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"format\":\"uuid\"}", ["\"123e4567-e89b-12d3-a456-426614174000\""],
            not: ["\"123e4567e89b12d3a456426614174000\"", "\"123e4567-e89b-12d3-a456-42661417400g\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"format\":\"email\"}", ["\"a.b+c@example.co.uk\""],
            not: ["\"a@\"", "\"@b\"", "\"a b@c\"", "\"a..b@c\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"format\":\"ipv4\"}", ["\"127.0.0.1\"", "\"255.255.255.255\""],
            not: ["\"256.0.0.1\"", "\"1.2.3\"", "\"01.2.3.4\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"format\":\"ipv6\"}",
            ["\"::1\"", "\"2001:db8::ff00:42:8329\"", "\"::ffff:192.0.2.1\"", "\"1:2:3:4:5:6:7:8\""],
            not: ["\"1:2:3\"", "\"::g\"", "\"1::2::3\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"format\":\"uri\"}", ["\"https://a.b/c?d=e#f\"", "\"urn:isbn:1\"", "\"http://[::1]:8080/\""],
            not: ["\"/a/b\"", "\"http://a b\"", "\"://x\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"format\":\"uri-template\"}",
            ["\"http://a.b/{term:1}/{term}\"", "\"/é{?q,lang*}{#x.y}%20\"", "\"\""],
            not: ["\"http://a.b/{term\"", "\"{}\"", "\"{a:0}\"", "\"a b\"", "\"100%\"", "\"}\""]),
        AcceptanceCase("{\"type\":\"string\",\"format\":\"no such format\"}", ["\"anything\""], not: ["1"]),
    ]

    /// Schemas in the style of published ones that were rejected or took too long in earlier versions.
    static let published = [
        AcceptanceCase(
            "{\"type\":\"object\",\"oneOf\":[{\"properties\":{\"kind\":{\"const\":\"a\"},\"a1\":{\"type\":\"string\"},\"a2\":{\"type\":\"string\"},\"a3\":{\"type\":\"string\"}},\"required\":[\"kind\"]},{\"properties\":{\"kind\":{\"const\":\"b\"},\"b1\":{\"type\":\"string\"},\"b2\":{\"type\":\"string\"},\"b3\":{\"type\":\"string\"}},\"required\":[\"kind\"]},{\"properties\":{\"kind\":{\"const\":\"c\"},\"c1\":{\"type\":\"string\"},\"c2\":{\"type\":\"string\"},\"c3\":{\"type\":\"string\"}},\"required\":[\"kind\"]},{\"properties\":{\"kind\":{\"const\":\"d\"},\"d1\":{\"type\":\"string\"},\"d2\":{\"type\":\"string\"},\"d3\":{\"type\":\"string\"}},\"required\":[\"kind\"]}]}",
            ["{\"kind\":\"a\"}", "{\"kind\":\"d\",\"d1\":\"x\"}", "{\"kind\":\"b\",\"a1\":1}"],
            not: ["{\"kind\":\"e\"}", "{\"kind\":\"a\",\"a1\":1}", "{}", "1"]),
        AcceptanceCase(
            "{\"oneOf\":[{\"properties\":{\"kind\":{\"const\":\"a\"},\"a1\":{\"type\":\"string\"},\"a2\":{\"type\":\"string\"},\"a3\":{\"type\":\"string\"}},\"required\":[\"kind\"]},{\"properties\":{\"kind\":{\"const\":\"b\"},\"b1\":{\"type\":\"string\"},\"b2\":{\"type\":\"string\"},\"b3\":{\"type\":\"string\"}},\"required\":[\"kind\"]},{\"properties\":{\"kind\":{\"const\":\"c\"},\"c1\":{\"type\":\"string\"},\"c2\":{\"type\":\"string\"},\"c3\":{\"type\":\"string\"}},\"required\":[\"kind\"]},{\"properties\":{\"kind\":{\"const\":\"d\"},\"d1\":{\"type\":\"string\"},\"d2\":{\"type\":\"string\"},\"d3\":{\"type\":\"string\"}},\"required\":[\"kind\"]}]}",
            ["{\"kind\":\"c\",\"c2\":\"x\"}"], not: ["{\"kind\":\"e\"}", "1", "null"]),
        AcceptanceCase(
            "{\"type\":\"object\",\"oneOf\":[{\"properties\":{\"x0\":{\"type\":\"string\"},\"y0\":{\"type\":\"integer\"}},\"required\":[\"x0\"]},{\"properties\":{\"x1\":{\"type\":\"string\"},\"y1\":{\"type\":\"integer\"}},\"required\":[\"x1\"]},{\"properties\":{\"x2\":{\"type\":\"string\"},\"y2\":{\"type\":\"integer\"}},\"required\":[\"x2\"]},{\"properties\":{\"x3\":{\"type\":\"string\"},\"y3\":{\"type\":\"integer\"}},\"required\":[\"x3\"]},{\"properties\":{\"x4\":{\"type\":\"string\"},\"y4\":{\"type\":\"integer\"}},\"required\":[\"x4\"]}]}",
            ["{\"x0\":\"a\"}", "{\"x4\":\"a\",\"y4\":1}", "{\"x0\":\"a\",\"x1\":2}", "{\"x0\":\"a\",\"x1\":\"b\",\"y1\":\"c\"}"],
            not: ["{}", "{\"x0\":\"a\",\"x1\":\"b\"}", "{\"x0\":\"a\",\"y0\":\"b\"}"]),
        AcceptanceCase(
            "{\"oneOf\":[{\"properties\":{\"a\":{\"type\":\"string\",\"maxLength\":32767}}},{\"properties\":{\"a\":{\"type\":\"string\",\"maxLength\":3}}}]}",
            ["{\"a\":\"abcd\"}"], not: ["{\"a\":\"abc\"}", "{\"a\":1}", "{}", "1"]),
        AcceptanceCase(
            "{\"type\":\"string\",\"not\":{\"maxLength\":4}}",
            ["\"abcde\""], not: ["\"abcd\"", "1"]),
        AcceptanceCase(
            "{\"type\":\"object\",\"allOf\":[{\"not\":{\"propertyNames\":{\"not\":{\"enum\":[\"a\",\"c\"]}}}},{\"not\":{\"propertyNames\":{\"not\":{\"enum\":[\"b\",\"c\"]}}}}],\"maxProperties\":1}",
            ["{\"c\":1}"], not: ["{\"a\":1}", "{\"b\":1}", "{}", "{\"a\":1,\"b\":1}"]),
        AcceptanceCase(
            "{\"type\":\"string\",\"pattern\":\"^[^\\\\.\\\\s\\\\\\\\/:\\\\*\\\\?\\\"<>\\\\|\\\\x01-\\\\x1f]{1,32}(\\\\.[^\\\\.\\\\s\\\\\\\\/:\\\\*\\\\?\\\"<>\\\\|\\\\x01-\\\\x1f]{1,32}){1,3}$\",\"maxLength\":128}",
            ["\"Microsoft.VisualStudioCode.Insiders\""], not: ["\"Microsoft\"", "\"a b.c\"", "\"a.b.c.d.e\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"pattern\":\"^(?:\\\\S+\\\\s+){0,20}\\\\S+$\",\"maxLength\":12}",
            ["\"some words\"", "\"a b c d e f\""], not: ["\"some more words\"", "\" a\"", "\"\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"pattern\":\"^(a(b|$))*$\"}",
            ["\"\"", "\"a\"", "\"ab\"", "\"aba\""], not: ["\"aa\"", "\"b\"", "\"aab\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"pattern\":\"^((?!mode).)*$\"}",
            ["\"\"", "\"mod\"", "\"a mo de\""], not: ["\"mode\"", "\"a model\""]),
        AcceptanceCase(
            "{\"type\":\"string\",\"pattern\":\"^(?:(?=c)|.)*$\",\"maxLength\":4}",
            ["\"\"", "\"abc\"", "\"cccc\""], not: ["\"abcde\"", "\"a\\nb\""]),
    ]
}
