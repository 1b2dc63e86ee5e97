import Waiting
import FoundationModels
import FoundationModelsTesting
import Synchronization
import TestSupport
import Testing

@testable import ContextKit

/// Requests that are cancelled, and tools that use the conversation that waits for them.
@Suite struct ConcurrencyTests {
    /// Lets tasks wait until a test opens it. Waiting ignores cancellation.
    final class Gate: Sendable {
        private struct State {
            var isOpen = false
            var waiting: [CheckedContinuation<Void, Never>] = []
        }
        private let state = Mutex(State())

        var hasWaiters: Bool { state.withLock { !$0.waiting.isEmpty } }

        func wait() async {
            await withCheckedContinuation { continuation in
                let isOpen = state.withLock { state in
                    if !state.isOpen { state.waiting.append(continuation) }
                    return state.isOpen
                }
                if isOpen { continuation.resume() }
            }
        }

        func waitForWaiter() async { await eventually { hasWaiters } }

        func open() {
            let waiting = state.withLock { state in
                state.isOpen = true
                defer { state.waiting = [] }
                return state.waiting
            }
            for continuation in waiting { continuation.resume() }
        }
    }

    struct Action: Tool {
        let name = "act"
        let description = "Acts."
        let body: @Sendable () async throws -> String
        func call(arguments: GeneratedContent) async throws -> String { try await body() }
    }

    private static let call = ScriptedLanguageModel.Step.toolCalls([
        .init(name: "act", arguments: GeneratedContent(properties: [:]))
    ])

    @Test("a lock passes to waiting tasks in order, and waiting can be cancelled", .timeLimit(.minutes(1)))
    func lock() async throws {
        let lock = AsyncLock()
        #expect(lock.tryAcquire() && !lock.tryAcquire())
        final class Order: Sendable { let numbers = Mutex<[Int]>([]) }
        let order = Order()
        var tasks: [Task<Void, any Error>] = []
        for number in 0..<4 {
            tasks.append(
                Task {
                    try await lock.acquire()
                    order.numbers.withLock { $0.append(number) }
                    lock.release()
                })
            await eventually { lock.waitingCount > number }
        }
        tasks[1].cancel()
        await #expect(throws: CancellationError.self) { try await tasks[1].value }
        #expect(lock.waitingCount == 3 && order.numbers.withLock { $0.isEmpty })
        lock.release()
        for number in [0, 2, 3] { try await tasks[number].value }
        #expect(order.numbers.withLock { $0 } == [0, 2, 3])
        #expect(lock.tryAcquire())
    }

    @Test("[D4] a request can be cancelled while a compaction is running", .timeLimit(.minutes(2)))
    func cancelledDuringCompaction() async throws {
        let gate = Gate()
        let model = StubModel(contextSize: 300) { transcript in
            if transcript.wholeText.contains("keep notes") { await gate.wait() }
            return "Yes."
        }
        let policy = ContextPolicy(steps: [.lastTurns(1), .summary()], recall: nil)
        let conversation = try await Conversation(model: model, policy: policy)
        var turn = 0
        while !gate.hasWaiters, turn < 200 {
            turn += 1
            let prompt = "Number \(turn) is a sentence of ten words for the conversation."
            let request = Task { try await conversation.respond(to: prompt) }
            // Either the request ends, or a compaction waits at the gate.
            let end = Task {
                _ = await request.result
                return true
            }
            await eventually { if gate.hasWaiters { true } else { await conversation.answered >= turn } }
            if gate.hasWaiters { request.cancel() }
            _ = await end.value
        }
        try #require(gate.hasWaiters)
        let waiting = Task { try await conversation.respond(to: "This one is cancelled.") }
        await eventually { conversation.lock.waitingCount > 0 }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        gate.open()
        #expect(try await conversation.respond(to: "This one is not.").content == "Yes.")
        #expect(try conversation.archive.turns(of: conversation.id).last?.prompt == "This one is not.")
    }

    @Test(
        "[D4] a cancelled request does not wait for a tool that ignores cancellation", .timeLimit(.minutes(1)),
        arguments: [false, true])
    func stubbornTool(isStructured: Bool) async throws {
        let gate = Gate()
        let model = ScriptedLanguageModel([Self.call, .text("Next.")])
        let tool = Action {
            await gate.wait()
            return "late"
        }
        let conversation = try await Conversation(model: Counting(base: model), tools: [tool])
        let request = Task {
            if isStructured {
                _ = try await conversation.respond(to: "Act.", generating: Int.self)
            } else {
                _ = try await conversation.respond(to: "Act.")
            }
        }
        await gate.waitForWaiter()
        request.cancel()
        await #expect(throws: CancellationError.self) { try await request.value }
        #expect(try await conversation.respond(to: "And now?").content == "Next.")
        #expect(gate.hasWaiters)
        gate.open()
        #expect(try conversation.archive.turns(of: conversation.id).map(\.prompt) == ["And now?"])
    }

    @Test("[D4] a detached task of a tool cannot block the request that waits for it", .timeLimit(.minutes(1)))
    func detachedTask() async throws {
        let holder = ConversationTests.Holder()
        let tool = Action {
            guard let conversation = holder.conversation.withLock({ $0 }) else { return "none" }
            let task = Task.detached {
                try await conversation.pin("The code is 4711.")
                await conversation.compact()
                await #expect(throws: LanguageModelSession.Error.self) { try await conversation.respond(to: "Are you there?") }
            }
            try await task.value
            return "Done."
        }
        let model = ScriptedLanguageModel([Self.call, .text("Pinned."), .text("4711.")])
        let conversation = try await Conversation(model: Counting(base: model), tools: [tool])
        holder.conversation.withLock { $0 = conversation }
        #expect(try await conversation.respond(to: "Act.").content == "Pinned.")
        #expect(await conversation.pinned == ["The code is 4711."])
        #expect(try await conversation.respond(to: "What is it?").content == "4711.")
        holder.conversation.withLock { $0 = nil }
    }
}

extension Conversation {
    /// Number of answered prompts.
    fileprivate var answered: Int { state.nextNumber - (isAnswering ? 1 : 0) }
}
