import ArgumentParser
import Foundation
import Grammar

struct Suite: ParsableCommand {
    @Argument var folder: String
    @Flag var verbose = false
    @Flag var failures = false
    @Flag var asWritten = false

    func run() throws {
        let vocabulary = TokenVocabulary(texts: (0..<256).map { [UInt8($0)] } + [nil], endTokens: [256])
        var counts = (schemas: 0, compiled: 0, tests: 0, wrongAccept: 0, wrongReject: 0, valid: 0)
        var times: [Double] = []
        for file in try FileManager.default.contentsOfDirectory(atPath: folder).sorted() where file.hasSuffix(".json") {
            let data = try Data(contentsOf: URL(fileURLWithPath: folder + "/" + file))
            guard case .array(let groups) = try JSONParser.parse(data) else { continue }
            for group in groups {
                guard let schema = group["schema"], case .array(let tests) = group["tests"], case .string(let name) = group["description"] else { continue }
                counts.schemas += 1
                let start = ContinuousClock.now
                let compiled: Grammar
                do { compiled = try Grammar(.schema(schema), vocabulary: vocabulary) } catch {
                    if verbose { print("\(file): \(name): \(error)") }
                    continue
                }
                    let grammar = compiled
                    let t = Double((ContinuousClock.now - start).components.attoseconds) / 1e15
                    times.append(t)
                    if t > 20 { print("SLOW \(t) ms: \(file): \(name)") }
                    counts.compiled += 1
                    for test in tests {
                        guard let data = test["data"], case .bool(let valid) = test["valid"], case .string(let title) = test["description"] else { continue }
                        counts.tests += 1
                        if valid { counts.valid += 1 }
                        let bytes = (asWritten ? data : SchemaOrder(schema).ordered(data, schema, 0)).bytes
                        var matcher = grammar.matcher()
                        let accepted = matcher.advance(bytes) && matcher.isComplete
                        if accepted != valid {
                            if valid { counts.wrongReject += 1 } else { counts.wrongAccept += 1 }
                            if failures { print("\(valid ? "REJECTED" : "ACCEPTED") \(file): \(name): \(title): \(String(decoding: bytes, as: UTF8.self).prefix(200))") }
                        }
                    }
            }
        }
        times.sort()
        print(counts, "compile p50", times[times.count / 2], "p99", times[times.count * 99 / 100], "max", times.last ?? 0)
    }
}

struct SchemaOrder {
    let root: JSONValue
    init(_ root: JSONValue) { self.root = root }

    func ordered(_ value: JSONValue, _ schema: JSONValue, _ depth: Int) -> JSONValue {
        if depth > 30 { return value }
        let parts = flattened(schema, 0)
        switch value {
        case .object(let members):
            var order: [String] = []
            for part in parts {
                if case .array(let list) = part["x-order"] ?? .null { for case .string(let n) in list { order.append(n) } }
                if case .object(let properties) = part["properties"] { for p in properties where !order.contains(where: { $0.utf8.elementsEqual(p.name.utf8) }) { order.append(p.name) } }
            }
            let sorted = members.enumerated().sorted { a, b in
                (order.firstIndex { $0.utf8.elementsEqual(a.element.name.utf8) } ?? 100000, a.offset) < (order.firstIndex { $0.utf8.elementsEqual(b.element.name.utf8) } ?? 100000, b.offset)
            }.map(\.element)
            return .object(sorted.map { m in
                var v = m.value
                for part in parts { if let p = part["properties"]?[m.name] { v = ordered(v, p, depth + 1) } else if let p = part["additionalProperties"] { v = ordered(v, p, depth + 1) } }
                return .init(m.name, v)
            })
        case .array(let items):
            return .array(items.enumerated().map { i, item in
                var v = item
                for part in parts {
                    if case .array(let prefix) = part["prefixItems"] ?? part["items"] ?? .null, i < prefix.count { v = ordered(v, prefix[i], depth + 1) }
                    else if let p = part["items"] { v = ordered(v, p, depth + 1) }
                }
                return v
            })
        default: return value
        }
    }

    func flattened(_ schema: JSONValue, _ depth: Int) -> [JSONValue] {
        var result = [schema]
        if depth > 8 { return result }
        if case .string(let ref) = schema["$ref"] ?? .null, ref.hasPrefix("#") {
            var target = root
            for token in ref.dropFirst().split(separator: "/") {
                let name = token.replacingOccurrences(of: "~1", with: "/").replacingOccurrences(of: "~0", with: "~")
                if let next = target[name] { target = next } else if case .array(let l) = target, let i = Int(name), i < l.count { target = l[i] } else { return result }
            }
            result += flattened(target, depth + 1)
        }
        for k in ["allOf", "anyOf", "oneOf"] { if case .array(let l) = schema[k] ?? .null { for s in l { result += flattened(s, depth + 1) } } }
        for k in ["if", "then", "else"] { if let s = schema[k] { result += flattened(s, depth + 1) } }
        return result
    }
}

@main
struct Bench: ParsableCommand {
    static let configuration = CommandConfiguration(subcommands: [Suite.self, Masks.self, Export.self, Probe.self])
}
