import Testing

@testable import MCP

struct MCPLinesTests {
    /// The lines of a text that comes in parts of a number of bytes.
    private func lines(
        _ text: String, parts: Int, maximumBytes: Int = 1_000, keepsEmpty: Bool = false
    ) -> [MCPLines.Item] {
        var reader = MCPLines(maximumBytes: maximumBytes, keepsEmpty: keepsEmpty)
        let bytes = Array(text.utf8)
        var items: [MCPLines.Item] = []
        for start in stride(from: 0, to: bytes.count, by: parts) {
            items += reader.take(bytes[start..<min(bytes.count, start + parts)])
        }
        return items
    }

    private func line(_ text: String) -> MCPLines.Item { .line(Array(text.utf8)) }

    @Test("lines are the same, wherever their bytes are divided") func boundaries() {
        let text = "one\n\ntwo é 😀\r\n\n\n{\"a\": 1}\nno end"
        let size = text.utf8.count
        for parts in 1...size {
            #expect(lines(text, parts: parts) == [line("one"), line("two é 😀\r"), line("{\"a\": 1}")])
            #expect(
                lines(text, parts: parts, keepsEmpty: true) == [
                    line("one"), line(""), line("two é 😀\r"), line(""), line(""), line("{\"a\": 1}"),
                ])
        }
        // Two parts of any sizes.
        let bytes = Array(text.utf8)
        for boundary in 0...size {
            var reader = MCPLines()
            let items = reader.take(bytes[..<boundary]) + reader.take(bytes[boundary...])
            #expect(items == [line("one"), line("two é 😀\r"), line("{\"a\": 1}")])
        }
    }

    @Test("the end of a line may come alone") func end() {
        var reader = MCPLines()
        var items = reader.take(Array("abc".utf8)) + reader.take([UInt8]())
        #expect(items.isEmpty)
        items = reader.take([UInt8](repeating: 0x0A, count: 1))
        #expect(items == [line("abc")])
        items = reader.take([UInt8](repeating: 0x0A, count: 1))
        #expect(items.isEmpty)
    }

    @Test("a line that is too long is reported once, and the next one is read") func tooLong() {
        let text = "1234\n12345\n" + String(repeating: "x", count: 50) + "\nab\n\n"
        for parts in 1...text.utf8.count {
            let items = lines(text, parts: parts, maximumBytes: 4)
            #expect(items == [line("1234"), .tooLong, .tooLong, line("ab")])
            let all = lines(text, parts: parts, maximumBytes: 4, keepsEmpty: true)
            #expect(all == [line("1234"), .tooLong, .tooLong, line("ab"), line("")])
        }
        // Nobody waits for the end of it.
        var reader = MCPLines(maximumBytes: 4)
        let first = reader.take(Array("12345".utf8))
        #expect(first == [.tooLong])
        let rest = reader.take(Array("678".utf8)) + reader.take(Array("9\nok\n".utf8))
        #expect(rest == [line("ok")])
    }
}
