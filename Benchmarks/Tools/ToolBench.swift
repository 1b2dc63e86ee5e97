import ArgumentParser
import Foundation
import FoundationModels
import JSON
import Synchronization

/// Measures how often a model calls the right tools with the right arguments, and no tool if none is needed.
///
///     swift run -c release tool-bench --split test
///     FM_MODEL=small swift run -c release tool-bench
///     swift run -c release tool-bench --latency          how soon the first text comes
///
/// `messages.json` contains the messages and the rules for comparing calls. Half of the messages are for development,
/// half for the measurement.
@main
struct ToolBench: AsyncParsableCommand {
    @Option(help: "The part of the messages to use: dev, test or all.") var split = "all"
    @Option(help: "The number of expected calls: one, two or none (default: all).") var kind: String?
    @Option(help: "The file with the messages.") var messages = "Benchmarks/Tools/messages.json"
    @Flag(help: "Print every message with unexpected calls.") var verbose = false
    @Flag(help: "Print the result as one JSON object.") var json = false

    @Flag(help: "Measure how soon the first text after the results of a tool and the first event of a guided response come.")
    var latency = false
    @Option(help: "How long the tool runs with --latency, in milliseconds.") var delay = 0
    @Option(help: "Measurements with --latency.") var rounds = 12

    private struct Count {
        var right = 0
        var all = 0
        mutating func add(_ isRight: Bool) {
            all += 1
            if isRight { right += 1 }
        }
        var text: String { String(format: "%3d of %3d   %5.1f %%", right, all, 100 * Double(right) / Double(max(1, all))) }
    }

    func run() async throws {
        if latency { return try await Latency(delay: .milliseconds(delay), rounds: rounds).run() }
        let data = try JSONParser.parse(try Data(contentsOf: URL(filePath: messages)))
        guard case .object(let tools)? = data["tools"], case .array(let cases)? = data["cases"] else {
            throw ValidationError("\(messages) has no tools or no cases.")
        }
        var (tool, arguments, none, two) = (Count(), Count(), Count(), Count())
        for entry in cases {
            guard case .string(let own)? = entry["split"], split == "all" || own == split,
                kind == nil || entry["kind"] == kind.map({ .string($0) }),
                case .string(let message)? = entry["message"], case .array(let offered)? = entry["tools"],
                case .array(let expected)? = entry["calls"]
            else { continue }
            let log = CallLog()
            let definitions = try offered.compactMap { name -> RecordingTool? in
                guard case .string(let name) = name, let definition = tools.first(where: { $0.name == name })?.value else {
                    return nil
                }
                return try RecordingTool(name: name, definition: definition, log: log)
            }
            let session = LanguageModelSession(tools: definitions)
            // Calls in all rounds of a message count, because a model may make one call after the other.
            let answer = try await session.respond(
                to: message, options: GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 60)
            ).content
            let calls = log.calls
            let rightTools = calls.map(\.name).sorted() == expected.map(Self.name).sorted()
            let rightArguments = rightTools && Self.match(calls, expected)
            switch expected.count {
            case 0: none.add(calls.isEmpty)
            case 1:
                tool.add(rightTools)
                if rightTools { arguments.add(rightArguments) }
            default:
                two.add(rightTools)
                if rightTools { arguments.add(rightArguments) }
            }
            if verbose, !(rightTools && rightArguments) {
                print("\(rightTools ? "arguments" : "tool     ")  \(message)")
                print("           \(calls.map { "\($0.name)\($0.arguments.text)" }) \(answer)")
            }
        }
        if json {
            print(
                "{\"one\":[\(tool.right),\(tool.all)],\"two\":[\(two.right),\(two.all)],\"none\":[\(none.right),\(none.all)],\"arguments\":[\(arguments.right),\(arguments.all)]}"
            )
            return
        }
        print("the right tool                  \(tool.text)")
        print("both tools, if two are needed   \(two.text)")
        print("no call, if none is needed      \(none.text)")
        print("right arguments of right calls  \(arguments.text)")
    }

    private static func name(_ call: JSONValue) -> String { if case .string(let name)? = call["name"] { name } else { "" } }

    /// Whether the calls match the expected calls, in any order.
    private static func match(_ calls: [(name: String, arguments: JSONValue)], _ expected: [JSONValue]) -> Bool {
        var left = calls
        for wanted in expected {
            guard let index = left.firstIndex(where: { $0.name == name(wanted) && fits($0.arguments, wanted) }) else {
                return false
            }
            left.remove(at: index)
        }
        return left.isEmpty
    }

    private static func fits(_ arguments: JSONValue, _ wanted: JSONValue) -> Bool {
        guard case .object(let members) = arguments, case .object(let required)? = wanted["arguments"] else { return false }
        let given = members.filter { !isEmpty($0.value) }
        func accepted(_ name: String) -> [JSONValue] {
            if case .array(let values)? = wanted["alternatives"]?[name] { values } else { [] }
        }
        for member in required {
            guard let value = given.first(where: { $0.name == member.name })?.value else {
                if accepted(member.name).contains(where: { $0 == .null }) { continue }
                return false
            }
            guard ([member.value] + accepted(member.name)).contains(where: { equal($0, value) }) else { return false }
        }
        return given.allSatisfy { member in
            required.contains { $0.name == member.name } || accepted(member.name).contains { equal($0, member.value) }
        }
    }

    private static func isEmpty(_ value: JSONValue) -> Bool { value == .null || value == .string("") || value == .array([]) }

    private static func equal(_ a: JSONValue, _ b: JSONValue) -> Bool {
        switch (a, b) {
        case (.string(let a), .string(let b)):
            a.trimmingCharacters(in: .whitespaces).lowercased() == b.trimmingCharacters(in: .whitespaces).lowercased()
        case (.array(let a), .array(let b)): a.count == b.count && a.allSatisfy { value in b.contains { equal($0, value) } }
        default: a.isEqual(to: b)
        }
    }
}

/// The calls of one request.
private final class CallLog: Sendable {
    private let state = Mutex<[(name: String, arguments: JSONValue)]>([])
    var calls: [(name: String, arguments: JSONValue)] { state.withLock { $0 } }
    func add(_ name: String, _ arguments: JSONValue) { state.withLock { $0.append((name, arguments)) } }
}

/// A tool that records its calls and reports success to the model.
private struct RecordingTool: Tool {
    let name: String
    let description: String
    let parameters: GenerationSchema
    let log: CallLog

    init(name: String, definition: JSONValue, log: CallLog) throws {
        self.name = name
        self.log = log
        description = if case .string(let text)? = definition["description"] { text } else { "" }
        var required: Set<String> = []
        if case .array(let names)? = definition["parameters"]?["required"] {
            for case .string(let name) in names { required.insert(name) }
        }
        var properties: [DynamicGenerationSchema.Property] = []
        if case .object(let members)? = definition["parameters"]?["properties"] {
            properties = members.map { member in
                let text: String? = if case .string(let text)? = member.value["description"] { text } else { nil }
                return DynamicGenerationSchema.Property(
                    name: member.name, description: text, schema: Self.schema(member.value, member.name),
                    isOptional: !required.contains(member.name))
            }
        }
        parameters = try GenerationSchema(root: DynamicGenerationSchema(name: name, properties: properties), dependencies: [])
    }

    private static func schema(_ json: JSONValue, _ name: String) -> DynamicGenerationSchema {
        if case .array(let values)? = json["enum"] {
            let texts = values.compactMap { value -> String? in if case .string(let text) = value { text } else { nil } }
            return DynamicGenerationSchema(name: name, anyOf: texts)
        }
        switch json["type"] {
        case .string("integer"): return DynamicGenerationSchema(type: Int.self)
        case .string("number"): return DynamicGenerationSchema(type: Double.self)
        case .string("boolean"): return DynamicGenerationSchema(type: Bool.self)
        case .string("array"): return DynamicGenerationSchema(arrayOf: schema(json["items"] ?? .object([]), name + "Item"))
        default: return DynamicGenerationSchema(type: String.self)
        }
    }

    func call(arguments: GeneratedContent) async throws -> String {
        log.add(name, try JSONParser.parse(arguments.jsonString))
        return "{\"status\": \"ok\"}"
    }
}
