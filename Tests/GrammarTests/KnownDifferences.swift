/// Known differences from the official test suite, with reasons. The tests fail if an entry is no longer needed.
enum KnownDifferences {
    /// Schemas that do not compile, by file and group.
    static let notCompiled: [String: String] = [
        "allOf: allOf with boolean schemas, all false":
            "unsatisfiable, which is reported as an error",
        "allOf: allOf with boolean schemas, some false":
            "unsatisfiable, which is reported as an error",
        "anyOf: anyOf with boolean schemas, all false":
            "unsatisfiable, which is reported as an error",
        "boolean_schema: boolean schema 'false'":
            "unsatisfiable, which is reported as an error",
        "defs: validate definition against metaschema":
            "refers to another document",
        "dynamicRef: $dynamicRef avoids the root of each schema, but scopes are still registered":
            "a dynamic reference",
        "dynamicRef: $dynamicRef points to a boolean schema":
            "a dynamic reference",
        "dynamicRef: $dynamicRef skips over intermediate resources - direct reference":
            "a dynamic reference",
        "dynamicRef: $ref and $dynamicAnchor are independent of order - $defs first":
            "refers to another document",
        "dynamicRef: $ref and $dynamicAnchor are independent of order - $ref first":
            "refers to another document",
        "dynamicRef: $ref to $dynamicRef finds detached $dynamicAnchor":
            "refers to another document",
        "dynamicRef: A $dynamicRef resolves to the first $dynamicAnchor still in scope that is encountered when the schema is evaluated":
            "a dynamic reference",
        "dynamicRef: A $dynamicRef that initially resolves to a schema with a matching $dynamicAnchor resolves to the first $dynamicAnchor in the dynamic scope":
            "a dynamic reference",
        "dynamicRef: A $dynamicRef that initially resolves to a schema without a matching $dynamicAnchor behaves like a normal $ref to $anchor":
            "a dynamic reference",
        "dynamicRef: A $dynamicRef to a $dynamicAnchor in the same schema resource behaves like a normal $ref to an $anchor":
            "a dynamic reference",
        "dynamicRef: A $dynamicRef to an $anchor in the same schema resource behaves like a normal $ref to an $anchor":
            "a dynamic reference",
        "dynamicRef: A $dynamicRef with a non-matching $dynamicAnchor in the same schema resource behaves like a normal $ref to $anchor":
            "a dynamic reference",
        "dynamicRef: A $dynamicRef with intermediate scopes that don't include a matching $dynamicAnchor does not affect dynamic scope resolution":
            "a dynamic reference",
        "dynamicRef: A $dynamicRef without a matching $dynamicAnchor in the same schema resource behaves like a normal $ref to $anchor":
            "a dynamic reference",
        "dynamicRef: A $dynamicRef without anchor in fragment behaves identical to $ref":
            "a dynamic reference",
        "dynamicRef: An $anchor with the same name as a $dynamicAnchor is not used for dynamic scope resolution":
            "a dynamic reference",
        "dynamicRef: after leaving a dynamic scope, it is not used by a $dynamicRef":
            "a dynamic reference",
        "dynamicRef: multiple dynamic paths to the $dynamicRef keyword":
            "a dynamic reference",
        "dynamicRef: strict-tree schema, guards against misspelled properties":
            "refers to another document",
        "dynamicRef: tests for implementation dynamic anchor and reference link":
            "refers to another document",
        "enum: empty enum":
            "unsatisfiable, which is reported as an error",
        "not: forbid everything with boolean schema true":
            "unsatisfiable, which is reported as an error",
        "not: forbid everything with empty schema":
            "unsatisfiable, which is reported as an error",
        "oneOf: oneOf with boolean schemas, all false":
            "unsatisfiable, which is reported as an error",
        "oneOf: oneOf with boolean schemas, all true":
            "unsatisfiable, which is reported as an error",
        "oneOf: oneOf with boolean schemas, more than one true":
            "unsatisfiable, which is reported as an error",
        "ref: $ref to boolean schema false":
            "unsatisfiable, which is reported as an error",
        "ref: order of evaluation: $id and $ref on nested schema":
            "refers to another document",
        "ref: remote ref, containing refs itself":
            "refers to another document",
        "refRemote: $ref to $ref finds detached $anchor":
            "refers to another document",
        "refRemote: Location-independent identifier in remote ref":
            "refers to another document",
        "refRemote: anchor within remote ref":
            "refers to another document",
        "refRemote: base URI change":
            "refers to another document",
        "refRemote: base URI change - change folder":
            "refers to another document",
        "refRemote: base URI change - change folder in subschema":
            "refers to another document",
        "refRemote: fragment within remote ref":
            "refers to another document",
        "refRemote: ref within remote ref":
            "refers to another document",
        "refRemote: remote HTTP ref with different $id":
            "refers to another document",
        "refRemote: remote HTTP ref with different URN $id":
            "refers to another document",
        "refRemote: remote HTTP ref with nested absolute ref":
            "refers to another document",
        "refRemote: remote ref":
            "refers to another document",
        "refRemote: remote ref with ref to defs":
            "refers to another document",
        "refRemote: retrieved nested refs resolve relative to their URI not $id":
            "refers to another document",
        "refRemote: root ref in remote ref":
            "refers to another document",
        "unevaluatedItems: unevaluatedItems and contains interact to control item dependency relationship":
            "an unevaluated keyword next to keywords that combine schemas",
        "unevaluatedItems: unevaluatedItems depends on adjacent contains":
            "an unevaluated keyword next to keywords that combine schemas",
        "unevaluatedItems: unevaluatedItems depends on multiple nested contains":
            "an unevaluated keyword next to keywords that combine schemas",
        "unevaluatedItems: unevaluatedItems with $dynamicRef":
            "a dynamic reference",
        "unevaluatedItems: unevaluatedItems with minContains = 0":
            "an unevaluated keyword next to keywords that combine schemas",
        "unevaluatedProperties: dynamic evalation inside nested refs":
            "an unevaluated keyword next to keywords that combine schemas",
        "unevaluatedProperties: unevaluatedProperties + ref inside allOf / oneOf":
            "an unevaluated keyword next to keywords that combine schemas",
        "unevaluatedProperties: unevaluatedProperties with $dynamicRef":
            "a dynamic reference",
    ]

    /// Documents with a result that differs from the suite, by file, group and test.
    static let judged: [String: String] = [
        "const: const with object: same object with different property order is valid":
            "the order of members is fixed",
        "format: date format: invalid date string is only an annotation by default":
            "formats are enforced, not only annotations",
        "format: date-time format: invalid date-time string is only an annotation by default":
            "formats are enforced, not only annotations",
        "format: duration format: invalid duration string is only an annotation by default":
            "formats are enforced, not only annotations",
        "format: email format: invalid email string is only an annotation by default":
            "formats are enforced, not only annotations",
        "format: idn-email format: invalid idn-email string is only an annotation by default":
            "formats are enforced, not only annotations",
        "format: hostname format: invalid hostname string is only an annotation by default":
            "formats are enforced, not only annotations",
        "format: ipv4 format: invalid ipv4 string is only an annotation by default":
            "formats are enforced, not only annotations",
        "format: ipv6 format: invalid ipv6 string is only an annotation by default":
            "formats are enforced, not only annotations",
        "format: iri format: invalid iri string is only an annotation by default":
            "formats are enforced, not only annotations",
        "format: iri-reference format: invalid iri-reference string is only an annotation by default":
            "formats are enforced, not only annotations",
        "format: json-pointer format: invalid json-pointer string is only an annotation by default":
            "formats are enforced, not only annotations",
        "format: relative-json-pointer format: invalid relative-json-pointer string is only an annotation by default":
            "formats are enforced, not only annotations",
        "format: time format: invalid time string is only an annotation by default":
            "formats are enforced, not only annotations",
        "format: uri format: invalid uri string is only an annotation by default":
            "formats are enforced, not only annotations",
        "format: uri-template format: invalid uri-template string is only an annotation by default":
            "formats are enforced, not only annotations",
        "format: uri-reference format: invalid uri-reference string is only an annotation by default":
            "formats are enforced, not only annotations",
        "format: uuid format: invalid uuid string is only an annotation by default":
            "formats are enforced, not only annotations",
        "vocabulary: schema that uses custom metaschema with with no validation vocabulary: no validation: invalid number, but it still validates":
            "vocabularies are not supported",
    ]
}
