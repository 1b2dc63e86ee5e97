import Foundation
import JSON
import TestSupport
import Testing

@testable import Grammar

/// Schemas with documents whose validity is known: the official suite, and schemas of this project in the style of
/// published ones.
@Suite struct SuiteTests {
    /// The folder of the official suite: set in the environment, or downloaded by `./test`.
    private static let officialFolder: URL? = {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let named = ProcessInfo.processInfo.environment["FM_SCHEMA_SUITE"].map { URL(fileURLWithPath: $0) }
        let places = [named, root.appending(path: ".build/json-schema-test-suite/draft2020-12")]
        return places.compactMap { $0 }.first { FileManager.default.fileExists(atPath: $0.path) }
    }()

    /// Every difference from the official suite is listed by name, and every listed name is a difference.
    @Test(
        .enabled(
            if: officialFolder != nil, "the official suite is not available; set FM_SCHEMA_SUITE to its draft2020-12 folder"))
    func officialSuite() throws {
        let folder = try #require(Self.officialFolder)
        var tests = 0
        for file in try SchemaFile.all(in: folder) {
            for group in file.groups {
                let key = "\(file.name): \(group.name)"
                let grammar: Grammar
                do { grammar = try Grammar(.schema(group.schema), vocabulary: Vocabularies.bytes) } catch {
                    #expect(KnownDifferences.notCompiled[key] != nil, "\(key): \(error)")
                    continue
                }
                #expect(
                    KnownDifferences.notCompiled[key] == nil, "\(key) compiles now: remove it from KnownDifferences.notCompiled")
                for test in group.tests {
                    tests += 1
                    let document = MemberOrder(group.schema).ordered(test.document)
                    let isRight = grammar.accepts(document.bytes) == test.isValid
                    let name = key + ": " + test.name
                    #expect(isRight != (KnownDifferences.judged[name] != nil), "\(name): \(document.text)")
                }
            }
        }
        #expect(tests > 900, "the suite is complete")
    }

    @Test func ownSchemas() throws {
        let folder = try #require(Bundle.module.url(forResource: "Schemas", withExtension: nil))
        var compiled = 0
        var schemas = 0
        for file in try SchemaFile.all(in: folder) {
            for group in file.groups {
                schemas += 1
                guard let grammar = try? Grammar(.schema(group.schema), vocabulary: Vocabularies.bytes) else { continue }
                compiled += 1
                for test in group.tests {
                    #expect(grammar.accepts(test.document.bytes) == test.isValid, "\(file.name): \(group.name): \(test.name)")
                }
                // In any order, everything else being equal: schemas that compare whole items keep theirs.
                if !group.schema.text.contains("uniqueItems") {
                    let unordered = try Grammar(
                        .schema(group.schema), vocabulary: Vocabularies.bytes, options: GrammarOptions(membersInAnyOrder: true))
                    for test in group.tests {
                        let document = test.document.withMembersReversed
                        #expect(
                            unordered.accepts(document.bytes) == test.isValid,
                            "\(file.name): \(group.name): \(test.name), reversed: \(document.text)")
                    }
                }
                let example = try JSONParser.parse(grammar.example())
                #expect(SchemaChecker(group.schema).problem(example) == nil, "\(file.name): \(group.name): \(example.text)")
            }
        }
        #expect(schemas >= 280)
        #expect(Double(compiled) >= 0.97 * Double(schemas), "\(compiled) of \(schemas) compile")
    }
}

/// Sorts members into the order in which a schema declares them.
struct MemberOrder {
    private let root: JSONValue
    init(_ root: JSONValue) { self.root = root }

    func ordered(_ value: JSONValue) -> JSONValue { ordered(value, [root]) }

    private func ordered(_ value: JSONValue, _ schemas: [JSONValue]) -> JSONValue {
        let parts = schemas.flatMap { flattened($0, 0) }
        switch value {
        case .object(let members):
            var rank: [[UInt8]: Int] = [:]
            for part in parts {
                guard case .object(let properties)? = part["properties"] else { continue }
                for property in properties where rank[Array(property.name.utf8)] == nil {
                    rank[Array(property.name.utf8)] = rank.count
                }
            }
            let sorted = members.enumerated().sorted { a, b in
                (rank[Array(a.element.name.utf8)] ?? .max, a.offset) < (rank[Array(b.element.name.utf8)] ?? .max, b.offset)
            }
            return .object(
                sorted.map { _, member in
                    let inner = parts.compactMap { $0["properties"]?[member.name] ?? $0["additionalProperties"] }
                    return JSONValue.Member(member.name, ordered(member.value, inner))
                })
        case .array(let items):
            return .array(
                items.enumerated().map { index, item in
                    let inner = parts.compactMap { part -> JSONValue? in
                        if case .array(let prefix)? = part["prefixItems"], index < prefix.count { return prefix[index] }
                        return part["items"]
                    }
                    return ordered(item, inner)
                })
        default: return value
        }
    }

    private func flattened(_ schema: JSONValue, _ depth: Int) -> [JSONValue] {
        guard depth < 8 else { return [] }
        var parts = [schema]
        if case .string(let reference)? = schema["$ref"], reference.hasPrefix("#/") {
            var target: JSONValue? = root
            for token in reference.dropFirst(2).split(separator: "/") {
                target = target?[token.replacingOccurrences(of: "~1", with: "/").replacingOccurrences(of: "~0", with: "~")]
            }
            if let target { parts += flattened(target, depth + 1) }
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            if case .array(let list)? = schema[keyword] { parts += list.flatMap { flattened($0, depth + 1) } }
        }
        for keyword in ["if", "then", "else"] { if let part = schema[keyword] { parts += flattened(part, depth + 1) } }
        return parts
    }
}

extension JSONValue {
    fileprivate var withMembersReversed: JSONValue {
        switch self {
        case .object(let members): .object(members.reversed().map { Member($0.name, $0.value.withMembersReversed) })
        case .array(let items): .array(items.map(\.withMembersReversed))
        default: self
        }
    }
}
