import Testing

@testable import MCP

struct MCPEventsTests {
    private func events(_ text: String, parts: Int, maximumBytes: Int = 1_000) throws -> [String] {
        var reader = MCPEvents(maximumBytes: maximumBytes)
        let bytes = Array(text.utf8)
        var found: [[UInt8]] = []
        for start in stride(from: 0, to: bytes.count, by: parts) {
            found += try reader.take(bytes[start..<min(bytes.count, start + parts)])
        }
        return found.map { String(decoding: $0, as: UTF8.self) }
    }

    @Test("events are the same, wherever their bytes are divided") func boundaries() throws {
        let text =
            ": ping\r\n\r\nevent: message\r\ndata: {\"a\":\r\ndata:  \"é 😀\"}\r\nid: 7\r\nretry: 10\r\n\r\n"
            + "data: two\n\n\n: ping - 2026-11-29\n\ndata:three\ndata:\ndata: 3\n\nevent: empty\n\ndata:\n\ndata: no end\n"
        for parts in 1...text.utf8.count {
            #expect(try events(text, parts: parts) == ["{\"a\":\n \"é 😀\"}", "two", "three\n\n3", ""])
        }
    }

    @Test("line ends of both kinds may be mixed") func ends() throws {
        #expect(try events("data: a\r\ndata: b\n\r\ndata: c\n\n", parts: 1) == ["a\nb", "c"])
        #expect(try events("data: a\n\n", parts: 100) == ["a"])
    }

    @Test("only one space after the colon does not belong to the data, and other fields are passed over") func fields() throws {
        #expect(try events("data:   a \ndatabase: x\nid: 1\n\n", parts: 3) == ["  a "])
    }

    @Test("events that are too long are an error, in one line or in many") func tooLong() {
        for parts in [1, 3, 100] {
            #expect(throws: MCPEvents.TooLong.self) { try events("data: 123456789\n\n", parts: parts, maximumBytes: 8) }
            #expect(throws: MCPEvents.TooLong.self) {
                try events(String(repeating: "data: 1\n", count: 9) + "\n", parts: parts, maximumBytes: 8)
            }
        }
        // Each event has its own limit.
        #expect(throws: Never.self) { try events(String(repeating: "data: 1\n\n", count: 9), parts: 5, maximumBytes: 8) }
    }
}
