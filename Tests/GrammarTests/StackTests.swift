import Foundation
import JSON
import Synchronization
import Testing

@testable import Grammar

/// Recursion in the grammar and the JSON parser fits the stack of a secondary thread of Apple's systems: 512 KB.
@Suite struct StackTests {
    private func onSmallStack(_ body: @escaping @Sendable () throws -> Void) throws {
        let failure = Mutex<(any Error)?>(nil)
        let isDone = DispatchSemaphore(value: 0)
        let thread = Thread {
            do { try body() } catch { failure.withLock { $0 = error } }
            isDone.signal()
        }
        // Optimised code has smaller frames, so that 192 KB stand for the 512 KB of a debug build.
        #if OptimizedEngine
        thread.stackSize = 192 << 10
        #else
        thread.stackSize = 512 << 10
        #endif
        thread.start()
        isDone.wait()
        if let error = failure.withLock({ $0 }) { throw error }
    }

    @Test func documents() throws {
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"a\":[", "]}]")] {
            try onSmallStack {
                let levels = JSONParser.maximumDepth / open.filter { "[{".contains($0) }.count
                let text = String(repeating: open, count: levels) + "1" + String(repeating: close, count: levels)
                let value = try JSONParser.parse(text)
                #expect(value.text == text && value.isEqual(to: value) && !value.prettyText.isEmpty)
                #expect(throws: JSONSyntaxError.self) { try JSONParser.parse(open + text + close) }
                // A document as deep as a response can be.
                var matcher = try Grammar("{}").matcher()
                try matcher.read(text.utf8)
                #expect(matcher.isComplete)
            }
        }
    }

    @Test(arguments: [
        ("{\"items\":", "{}", "}"), ("{\"allOf\":[", "{\"maxLength\":3}", "]}"), ("{\"not\":", "{\"type\":\"string\"}", "}"),
        ("{\"anyOf\":[{\"type\":\"null\"},", "{\"type\":\"string\"}", "]}"),
        ("{\"oneOf\":[{\"type\":\"null\"},", "{\"type\":\"string\"}", "]}"),
        ("{\"type\":\"object\",\"properties\":{\"a\":", "{}", "},\"required\":[\"a\"]}"),
        ("{\"if\":{\"type\":\"string\"},\"then\":{\"minLength\":1},\"else\":", "{}", "}"),
        ("{\"dependentSchemas\":{\"a\":", "{}", "}}"),
    ])
    func schemas(open: String, inner: String, close: String) throws {
        try onSmallStack {
            for levels in [20, 70, 140] {
                let schema = String(repeating: open, count: levels) + inner + String(repeating: close, count: levels)
                do {
                    let grammar = try Grammar(schema)
                    var matcher = grammar.matcher()
                    _ = matcher.allowed
                    try matcher.read(matcher.completion)
                    #expect(matcher.isComplete)
                } catch let error as SchemaError {
                    #expect([.tooComplex, .unsatisfiable].contains(error.kind), "\(error)")
                }
            }
        }
    }

    /// Schemas that consist of references to each other.
    @Test(arguments: [
        "{\"$ref\":\"#/$defs/X0\"}", "{\"not\":{\"$ref\":\"#/$defs/X0\"}}",
        "{\"unevaluatedProperties\":false,\"$ref\":\"#/$defs/X0\"}",
    ])
    func references(root: String) throws {
        let chain = (0..<2000).map { "\"X\($0)\":{\"$ref\":\"#/$defs/X\($0 + 1)\"}" }.joined(separator: ",")
        let schema = root.dropLast() + ",\"$defs\":{\(chain),\"X2000\":{\"type\":\"object\"}}}"
        try onSmallStack {
            do { _ = try Grammar(String(schema)).matcher().completion } catch let error as SchemaError {
                #expect(error.kind == .tooComplex, "\(error)")
            }
        }
    }

    @Test(arguments: [
        String(repeating: "(", count: 199) + "a" + String(repeating: ")*", count: 199),
        String(repeating: "(a|", count: 199) + "b" + String(repeating: ")", count: 199),
        String(repeating: "(?=a", count: 50) + String(repeating: ")", count: 50) + "a*",
        String(repeating: "(?!b)a", count: 60), String(repeating: "a?", count: 300) + String(repeating: "a", count: 300),
        "^(a{0,1000}b{0,1000}c{0,1000})$", "^.{0,1000}a.{1000}$",
        "^" + String(repeating: "ab", count: 450) + "[b-d]{0,300}$",
        "^" + (0..<500).map { "word\($0)" }.joined(separator: "|") + "$",
    ])
    func patterns(pattern: String) throws {
        try onSmallStack {
            do {
                let grammar = try Grammar(.pattern(pattern), vocabulary: Vocabularies.bytes)
                var matcher = grammar.matcher()
                _ = matcher.allowed
                try matcher.read(matcher.completion)
                #expect(matcher.isComplete)
            } catch let error as SchemaError {
                #expect([.tooComplex, .unsatisfiable, .unsupported].contains(error.kind), "\(error)")
            }
        }
    }

    /// Items that must differ, nested in each other and in arrays.
    @Test func itemsThatMustDiffer() throws {
        try onSmallStack {
            let grammar = try Grammar(
                "{\"$ref\":\"#/$defs/T\",\"$defs\":{\"T\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/T\"}}}}"
                    .replacingOccurrences(of: "\"items\"", with: "\"uniqueItems\":true,\"items\""))
            var matcher = grammar.matcher()
            for _ in 0..<40 {
                try matcher.read("[".utf8)
                _ = matcher.allowed
            }
            try matcher.read(matcher.completion)
            #expect(matcher.isComplete)
            let items = try Grammar("{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"type\":\"array\"}}")
            var deep = items.matcher()
            try deep.read("[".utf8)
            for _ in 0..<400 { try deep.read("[".utf8) }
            _ = deep.allowed
            try deep.read(deep.completion)
            #expect(deep.isComplete)
        }
    }

    /// A type that contains itself, down to the maximum depth.
    @Test func recursion() throws {
        try onSmallStack {
            let grammar = try Grammar(
                "{\"$ref\":\"#/$defs/T\",\"$defs\":{\"T\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/T\"}}}}")
            var matcher = grammar.matcher()
            for _ in 0..<500 {
                try matcher.read("[".utf8)
                _ = matcher.allowed
            }
            #expect(matcher.completion == Array(repeating: UInt8(ascii: "]"), count: 500))
            try matcher.read(matcher.completion)
            #expect(matcher.isComplete)
        }
    }
}
