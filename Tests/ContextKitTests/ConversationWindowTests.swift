import ContextKit
import FoundationModels
import Testing

/// Turns of a conversation that a program keeps itself.
struct ConversationWindowTests {
    private func turn(_ number: Int, words: Int = 20) -> [Transcript.Entry] {
        [prompt("Question \(number)" + String(repeating: " ask", count: words)), response("Answer \(number)")]
    }

    private func prompt(_ text: String) -> Transcript.Entry { .prompt(.init(segments: [.text(.init(content: text))])) }
    private func response(_ text: String) -> Transcript.Entry {
        .response(.init(assetIDs: [], segments: [.text(.init(content: text + String(repeating: " said", count: 20)))]))
    }

    private let instructions = Transcript.Entry.instructions(
        .init(segments: [.text(.init(content: "Be brief."))], toolDefinitions: []))

    /// The number of turns that are left out, by a new window or one that has seen the conversation grow.
    private func leftOut(
        _ entries: [Transcript.Entry], by window: ConversationWindow? = nil, size: Int = 1_000
    ) async throws -> Int {
        let window = try window ?? ConversationWindow(recall: nil)
        let fitted = try await window.fit(entries, contextSize: size, reserve: 0) { StubModel.count($0) }
        #expect(fitted.tokens <= size && fitted.tokens == StubModel.count(fitted.entries))
        return fitted.leftOutTurns
    }

    @Test("[D1] a conversation that fits stays whole") func fits() async throws {
        let entries = [instructions] + (0..<5).flatMap { turn($0) } + [prompt("And?")]
        #expect(try await leftOut(entries) == 0)
    }

    @Test("[D8] a prompt that has room changes nothing that is left out; one that has none makes one step, whatever its length")
    func lastPrompt() async throws {
        for count in stride(from: 30, to: 50, by: 5) {
            let history = [instructions] + (0..<count).flatMap { turn($0) }
            var places: [Int] = []
            for words in [1, 20, 40, 80, 120, 160, 200] {
                places.append(try await leftOut(history + [prompt("And" + String(repeating: " so", count: words))]))
            }
            #expect(places[0] > 0 && places == places.sorted() && Set(places).count <= 2, "\(places)")
        }
    }

    @Test("[D8] turns are left out in large steps, and what was left out for a long prompt stays out") func steps() async throws {
        let window = try ConversationWindow(recall: nil)
        var entries = [instructions]
        var places: [Int] = []
        for number in 0..<60 {
            // Every seventh prompt is long.
            let next = turn(number, words: number % 7 == 6 ? 200 : 15)
            entries.append(next[0])
            let grown = try await leftOut(entries, by: window)
            // A server that starts anew, or a client with another one, leaves out the same.
            if number % 10 == 9 { #expect(try await leftOut(entries) == grown) }
            places.append(grown)
            entries.append(next[1])
        }
        #expect(places == places.sorted())
        // Each step makes more than half of the window free.
        let steps = Set(places).count - 1
        let tokens = StubModel.count(entries)
        #expect(steps >= 2 && steps <= tokens / 500, "\(steps) steps for \(tokens) tokens: \(places)")
    }

    @Test("a prompt that does not fit alone is an error that says by how much") func tooLong() async throws {
        let entries = [instructions] + turn(0) + [prompt(String(repeating: "word ", count: 1_200))]
        await #expect { _ = try await leftOut(entries) } throws: {
            guard let error = $0 as? ConversationWindow.TooLong else { return false }
            return error.limit == 1_000 && error.tokens > 1_200
        }
    }
}
