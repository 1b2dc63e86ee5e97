import Testing

@testable import Inference

/// What a text may become.
@Suite struct CallBeginningTests {
    private static let tools = ["get_weather", "send_mail"]

    private func beginning(of text: String, tools: [String] = CallBeginningTests.tools) -> CallBeginning {
        CallBeginning(of: Array(text.utf8), tools: tools)
    }

    @Test(arguments: [
        #"{"name": "get_weather""#, #"{"name":"get_weather""#, "\n {\n\t\"name\"\r\n :\n \"get_weather\"",
        "```json\n{\"name\": \"get_weather\"", "```\n{\n  \"name\": \"get_weather\"", "``` {\"name\": \"get_weather\"",
        #"[{"name": "get_weather""#, "```json\n[\n  {\n    \"name\": \"get_weather\"", #"{{"name": "get_weather""#,
        "```json\n{{\n  \"name\": \"get_weather\"", #"[{{ "name": "get_weather""#, #"{"function": "get_weather""#,
        #"{"tool": "get_weather""#, #"{"tool_name": "get_weather""#,
    ])
    func calls(text: String) {
        #expect(beginning(of: text) == .call(tool: "get_weather"))
        #expect(beginning(of: text + #", "arguments": {}}"#) == .call(tool: "get_weather"))
        let bytes = Array(text.utf8)
        for count in bytes.indices {
            let part = CallBeginning(of: Array(bytes[..<count]), tools: Self.tools)
            #expect(part == .open, "\(count) bytes")
        }
    }

    @Test(arguments: [
        "Hello", "get_weather", "I call `get_weather`.\n", #""get_weather""#, "`get_weather`", "[1, 2]", "{}", "[[{", "{{{",
        "```swift\nlet a",
        #"{"city": "Rome"}"#, #"{"names": ["get_weather"]}"#, #"{"name": "get"}"#, #"{"name": "get_weathers"}"#, #"{"name": 1}"#,
        #"{"name" "get_weather""#, #"{"function": {"name": "get_weather"}}"#,
    ])
    func otherTexts(text: String) {
        #expect(beginning(of: text) == .text)
        #expect(beginning(of: " \n" + text) == .text)
    }

    /// A name that begins another name.
    @Test func similarNames() {
        let tools = ["get", "get_all"]
        #expect(beginning(of: #"{"name": "get""#, tools: tools) == .call(tool: "get"))
        #expect(beginning(of: #"{"name": "get_all""#, tools: tools) == .call(tool: "get_all"))
        #expect(beginning(of: #"{"name": "get"#, tools: tools) == .open)
    }

    // MARK: Texts in parts

    @Test(arguments: 1...4)
    func callsEndATextInAnyParts(size: Int) {
        var matcher = StopMatcher(["END"], callableTools: Self.tools)
        var rest = Substring(#"{"name": "get_weather""#)
        while !rest.isEmpty {
            #expect(matcher.calledTool == nil)
            let (text, stopped) = matcher.append(String(rest.prefix(size)))
            rest = rest.dropFirst(size)
            #expect(text.isEmpty)
            #expect(stopped == rest.isEmpty)
        }
        #expect(matcher.calledTool == "get_weather" && matcher.match == nil)
        let end = matcher.finish()
        #expect(end.isEmpty)
    }

    @Test func textThatDoesNotBecomeACallIsNotLost() {
        var matcher = StopMatcher(["END"], callableTools: Self.tools)
        let first = matcher.append("{\"na").text
        let second = matcher.append("tion\": 1}").text
        // The text is not a call, whatever follows.
        let third = matcher.append(#"{"name": "get_weather""#)
        #expect([first, second, third.text] == ["", "{\"nation\": 1}", #"{"name": "get_weather""#])
        #expect(!third.stopped && matcher.calledTool == nil)

        var short = StopMatcher(["END"], callableTools: Self.tools)
        let held = short.append("```").text
        let end = short.finish()
        #expect(held.isEmpty && end == "```")
    }

    /// A trigger that is text counts only where an answer begins.
    @Test func openings() {
        for (text, isCall) in [
            ("<call>", true), (" \n<call>x", true), ("See <call>", false), ("<cal", false), ("<cali> <call>", false), ("", false),
        ] {
            for size in 1...3 {
                var matcher = StopMatcher([], openings: ["<call>"])
                var (found, rest, stopped) = ("", Substring(text), false)
                while !rest.isEmpty, !stopped {
                    let result = matcher.append(String(rest.prefix(size)))
                    rest = rest.dropFirst(size)
                    (found, stopped) = (found + result.text, result.stopped)
                }
                if !stopped { found += matcher.finish() }
                #expect(stopped == isCall && (matcher.match == "<call>") == isCall, "\(text)")
                #expect(found == (isCall ? String(text[..<(text.firstIndex(of: "<") ?? text.endIndex)]) : text), "\(text)")
            }
        }
    }

    @Test(arguments: ["It is END", "It is END of it", "{\"name\": END", "I call get_weather. END"])
    func stopStringsInATextThatCouldCallATool(text: String) throws {
        var matcher = StopMatcher(["END"], callableTools: Self.tools)
        let (part, stopped) = matcher.append(text)
        let found = stopped ? part : part + matcher.finish()
        let end = try #require(text.firstRange(of: "END"))
        #expect(found == String(text[..<end.lowerBound]))
        #expect(matcher.match == "END")
    }
}
