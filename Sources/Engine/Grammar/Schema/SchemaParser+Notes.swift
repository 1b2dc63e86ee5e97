internal import JSON

/// Sentences about keywords that have no effect.
struct SchemaNotes {
    private var texts: [String] = []
    /// Notes on unknown keywords, by their pointers. References may lead into their values.
    private var unknown: [(pointer: String, text: String)] = []
    /// A schema can be parsed at several places.
    private var known: Set<String> = []
    private static let maximumUnknown = 1_000

    var isFull: Bool { unknown.count >= Self.maximumUnknown }

    mutating func add(_ text: String) { if known.insert(text).inserted { texts.append(text) } }

    mutating func add(_ text: String, unlessReferenced pointer: String) {
        if known.insert(text).inserted { unknown.append((pointer, text)) }
    }

    /// - Parameter referencedPointers: The pointers to the schemas that references refer to.
    func sentences(referencedPointers: some Sequence<[UInt8]>) -> [String] {
        if unknown.isEmpty { return texts }
        let paths = referencedPointers.map { $0 + [UInt8(ascii: "/")] }
        return texts
            + unknown.filter { keyword in
                let path = Array(keyword.pointer.utf8) + [UInt8(ascii: "/")]
                return !paths.contains { $0.starts(with: path) }
            }.map(\.text)
    }
}

/// Notes on keywords that have no effect where they stand: mistakes that JSON Schema allows.
extension SchemaParser {
    /// The names in other dialects, with what to write instead.
    private static let advice = [
        "divisibleBy": "'multipleOf'", "disallow": "'not'", "extends": "'allOf'",
        "optional": "the names of all other properties in 'required' of the object",
    ]

    private static let types: [String: Kinds] = [
        "null": .null, "boolean": .boolean, "integer": .number, "number": .number, "string": .string, "object": .object,
        "array": .array,
    ]

    /// The schema of the place is an object.
    mutating func noteKeywordsWithoutEffect(_ place: Place) {
        guard case .object(let members) = place.value else { return }
        let allowed = kinds(place.value["type"])
        var names: Set<String> = []
        for member in members where names.insert(member.name).inserted {
            guard let restricted = SchemaKeywords.kinds[member.name] else {
                if !member.name.hasPrefix("x-") { noteUnknown(member, place) }
                continue
            }
            if let reason = reasonWithoutEffect(member, restricted, allowed, place) {
                noted.add("'\(member.name)' at \(place.name) has no effect: \(reason)")
            }
        }
    }

    /// The kinds of values that `type` allows; all if it is missing or not valid.
    private func kinds(_ type: JSONValue?) -> Kinds {
        var names: [JSONValue] = type.map { [$0] } ?? []
        if case .array(let list)? = type { names = list }
        let kinds = names.compactMap { name -> Kinds? in if case .string(let text) = name { Self.types[text] } else { nil } }
        return kinds.isEmpty ? .all : kinds.reduce([]) { $0.union($1) }
    }

    private func reasonWithoutEffect(
        _ member: JSONValue.Member, _ restricted: Kinds, _ allowed: Kinds, _ place: Place
    ) -> String? {
        func has(_ keywords: String...) -> Bool { keywords.contains { place.value[$0] != nil } }
        if SchemaKeywords.annotations.contains(member.name) || ["$schema", "$id", "id"].contains(member.name) { return nil }
        if referencesStandAlone, has("$ref"), !["$ref", "$defs", "definitions", "$anchor"].contains(member.name) {
            return "up to draft 7, '$ref' replaces the keywords beside it; put both into 'allOf'"
        }
        // Formats that are not enforced have a note of their own.
        if case .string(let format) = member.value, member.name == "format", Formats.pattern(format) == nil { return nil }
        if restricted.isDisjoint(with: allowed) {
            let words: [Kinds: String] = [.number: "numbers", .string: "strings", .object: "objects", .array: "arrays"]
            return "it restricts \(words[restricted] ?? "values"), and 'type' allows none"
        }
        switch member.name {
        case "if" where !hasConditions, "then" where !hasConditions, "else" where !hasConditions:
            return "the draft of '$schema' does not have it; remove '$schema', or name draft 7 or a later one"
        case "if" where !has("then", "else"): return "write 'then' or 'else' beside it"
        case "then" where !has("if"), "else" where !has("if"): return "write 'if' beside it"
        case "minContains" where !has("contains"), "maxContains" where !has("contains"): return "write 'contains' beside it"
        case "additionalItems":
            if case .array? = place.value["items"] { return nil }
            return "it needs a list of schemas as 'items'; for all items, write 'items'"
        case "exclusiveMinimum", "exclusiveMaximum":
            let plain = member.name == "exclusiveMinimum" ? "minimum" : "maximum"
            guard member.value == .bool(true), !has(plain) else { return nil }
            return "write the number instead of true"
        default: return nil
        }
    }

    private mutating func noteUnknown(_ member: JSONValue.Member, _ place: Place) {
        if noted.isFull { return }
        var advice: String?
        switch member.name {
        // It says what holds without it.
        case "nullable" where member.value == .bool(false): return
        case "nullable": advice = adviceForNull(place.value)
        case "discriminator":
            var name = "…"
            if case .string(let text)? = member.value["propertyName"] { name = text.quoted }
            advice = "'oneOf' with schemas whose property \(name) has a different 'const' each"
        default: advice = Self.advice[member.name] ?? SchemaKeywords.nearest(to: member.name).map { "'\($0)'" }
        }
        let text = "'\(member.name.prefix(60))' at \(place.name) "
        // A schema may lie under any name for references to it.
        noted.add(
            text + "has no effect: " + (advice.map { "write \($0)" } ?? "it is not a keyword of JSON Schema"),
            unlessReferenced: place.child(member.name, member.value).pointer)
    }

    /// How JSON Schema says that a value may be null.
    private func adviceForNull(_ schema: JSONValue) -> String {
        let values = schema["enum"] == nil ? "" : ", and null in 'enum'"
        switch schema["type"] {
        case .string(let type)?: return "\"type\": [\(type.quoted), \"null\"]\(values)"
        case .some: return "\"null\" in 'type'\(values)"
        case nil where schema["enum"] != nil: return "null in 'enum'"
        case nil:
            if case .string(let reference)? = schema["$ref"] {
                return "\"anyOf\": [{\"$ref\": \(reference.quoted)}, {\"type\": \"null\"}]"
            }
            return "\"anyOf\": [{…}, {\"type\": \"null\"}]"
        }
    }
}

extension SchemaParser.Place {
    /// The place in a sentence.
    var name: String { pointer.isEmpty ? "the root" : pointer }
}

extension String {
    /// The text as JSON.
    fileprivate var quoted: String { JSONValue.string(self).text }
}
