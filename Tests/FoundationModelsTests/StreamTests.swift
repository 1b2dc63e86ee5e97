import Foundation
import FoundationModels
import FoundationModelsTesting
import Synchronization
import TestSupport
import Testing

/// A client in C: an address and a function. The test frees the address when it has stopped the stream.
private typealias Callback = @convention(c) @Sendable (UnsafeMutableRawPointer?, UnsafePointer<CChar>?) -> Void

@_cdecl("stream_tests_receive")
func receive(_ context: UnsafeMutableRawPointer?, _ text: UnsafePointer<CChar>?) {
    context?.assumingMemoryBound(to: Int.self).pointee += 1
}

/// What `fm_start` of a C library would return: the handle of a running stream.
private final class Handle: Sendable {
    private let task: Task<Void, Never>

    init(_ session: LanguageModelSession, _ context: UInt, _ callback: @escaping Callback) {
        task = Task {
            do {
                for try await snapshot in session.streamResponse(to: "Go on.") {
                    try Task.checkCancellation()
                    snapshot.content.withCString { callback(UnsafeMutableRawPointer(bitPattern: context), $0) }
                }
            } catch {}  // cancelled
        }
    }

    /// After this, the callback is not called any more.
    func stop() async {
        task.cancel()
        await task.value
    }
}

/// Counts the conversions from content.
private struct Counted: Generable {
    typealias PartiallyGenerated = GeneratedContent

    static let conversions = Atomic(0)
    static var generationSchema: GenerationSchema {
        GenerationSchema(type: Self.self, properties: [.init(name: "text", type: String.self)])
    }
    let generatedContent: GeneratedContent

    init(_ content: GeneratedContent) throws {
        generatedContent = content
        Self.conversions.add(1, ordering: .relaxed)
    }
}

struct StreamTests {
    @Test("[B7] the transcript of the session and of each snapshot grows while a response is streamed")
    func growingTranscript() async throws {
        let session = LanguageModelSession(
            model: ScriptedLanguageModel([.text(String(repeating: "word ", count: 100))]), instructions: "Be brief.")
        func response(_ entries: some BidirectionalCollection<Transcript.Entry>) -> (id: String, text: String)? {
            guard case .response(let response)? = entries.last else { return nil }
            return (response.id, response.segments.map(\.description).joined())
        }
        var ids: Set<String> = []
        var lengths: [Int] = []
        for try await snapshot in session.streamResponse(to: "Go on.") {
            let own = try #require(response(snapshot.transcriptEntries))
            #expect(own.text == snapshot.content)
            let live = try #require(response(session.transcript))
            #expect(live.text.hasPrefix(snapshot.content) && session.transcript.count == 3)
            ids.formUnion([own.id, live.id])
            lengths.append(live.text.count)
        }
        #expect(ids.count == 1 && lengths == lengths.sorted() && lengths.last == 500)
        #expect(session.transcript.count == 3)
    }

    /// Tasks of one actor can share a stream.
    @MainActor private final class Reader {
        let stream: LanguageModelSession.ResponseStream<String>
        init(_ stream: sending LanguageModelSession.ResponseStream<String>) { self.stream = stream }

        func collect() -> Task<String, any Error> { Task { try await self.stream.collect().content } }

        func iterate() -> Task<String, any Error> {
            Task {
                var last = ""
                for try await snapshot in self.stream { last = snapshot.content }
                return last
            }
        }
    }

    @Test("several tasks read one stream; the request ends when the last of them is cancelled") @MainActor
    func severalReaders() async throws {
        let text = String(repeating: "word ", count: 200)
        let reader = Reader(LanguageModelSession(model: ScriptedLanguageModel([.text(text)])).streamResponse(to: "Go on."))
        for task in [reader.collect(), reader.iterate(), reader.iterate(), reader.collect()] {
            #expect(try await task.value == text)
        }
        #expect(try await reader.collect().value == text)
        // A reader that leaves early, and one that reads the same stream later.
        let other = LanguageModelSession(model: ScriptedLanguageModel([.text(text)])).streamResponse(to: "Go on.")
        for try await _ in other { break }
        await Task.yield()
        #expect(try await other.collect().content == text)

        let silent = LanguageModelSession(model: ScriptedLanguageModel([.silence]))
        let endless = Reader(silent.streamResponse(to: "Go on."))
        let readers = [endless.collect(), endless.iterate(), endless.collect()]
        await eventually { silent.isResponding }
        for reader in readers { reader.cancel() }
        for reader in readers { await #expect(throws: CancellationError.self) { try await reader.value } }
        await eventually { !silent.isResponding }
    }

    @Test("a stream that was left lets the next request begin, although it still exists") func leftStream() async throws {
        let session = LanguageModelSession(
            model: ScriptedLanguageModel([.text(String(repeating: "word ", count: 2_000)), .text("Yes.")]))
        let stream = session.streamResponse(to: "Go on.")
        for try await _ in stream { break }
        #expect(try await session.respond(to: "Are you there?").content == "Yes.")
        // Its reader learns that the request was ended, unless it had ended by itself.
        do { #expect(try await stream.collect().content.hasPrefix("word")) } catch is CancellationError {}
        // One that somebody still reads does not.
        let silent = LanguageModelSession(model: ScriptedLanguageModel([.silence, .text("Yes.")]))
        let read = silent.streamResponse(to: "Go on.")
        let iterator = read.makeAsyncIterator()
        await eventually { silent.isResponding }
        await #expect(throws: LanguageModelSession.Error.self) { try await silent.respond(to: "Are you there?") }
        #expect(silent.isResponding)
        _ = iterator
    }

    @Test("a response is converted to its type once; whoever collects it again has a value of their own")
    func conversions() async throws {
        let json = #"{"text": "a"}"#
        func count() -> Int { Counted.conversions.load(ordering: .relaxed) }
        let session = LanguageModelSession(model: ScriptedLanguageModel([.text(json), .text(json)]))
        try await session.respond(to: "Go on.", generating: Counted.self)
        #expect(count() == 1)
        let stream = session.streamResponse(to: "Go on.", generating: Counted.self)
        for try await _ in stream {}
        let first = try await stream.collect()
        #expect(count() == 2)
        let second = try await stream.collect()
        #expect(count() == 3)
        #expect(first.content.generatedContent == second.content.generatedContent)
    }

    @Test(
        "[A3] 1,000 streams to a C callback are cancelled at different places; each request ends and frees its session",
        .timeLimit(.minutes(5)))
    func cancelledStreams() async throws {
        let text = String(repeating: "word ", count: 200)
        for round in 0..<1_000 {
            weak var ended: LanguageModelSession?
            do {
                let session = LanguageModelSession(model: ScriptedLanguageModel([.text(text), .text("Next.")]))
                ended = session
                let context = UnsafeMutablePointer<Int>.allocate(capacity: 1)
                context.initialize(to: 0)
                let handle = Handle(session, UInt(bitPattern: context), receive)
                // Before the first snapshot, or after some of them.
                for _ in 0..<round % 50 { await Task.yield() }
                await handle.stop()
                // A client in C would free what the callback uses now.
                context.deallocate()
                // The first response is still there if the request was cancelled before it reached the model.
                if round % 10 == 0 { #expect(["Next.", text].contains(try await session.respond(to: "And now?").content)) }
            }
            // The request holds its session until it has ended, and not longer.
            await eventually { ended == nil }
        }
    }

    @Test("after an error, a part of a text is kept and a part of a value is not, unless a policy says otherwise")
    func partsOfResponses() async throws {
        let policies: [TranscriptErrorHandlingPolicy?] = [nil, .revertTranscript, .preserveTranscript]
        for (policy, count) in zip(policies, [0, 0, 2]) {
            let session = LanguageModelSession(model: ScriptedLanguageModel([.text(#"["one", "tw"#)]))
            session.transcriptErrorHandlingPolicy = policy
            await #expect(throws: GeneratedContent.ParsingError.self) {
                try await session.respond(to: "Count.", generating: [String].self)
            }
            #expect(session.transcript.count == count)
        }
    }

    /// Emits one entry and one call per request, always with the same ids.
    private struct SameIDs: LanguageModel {
        var capabilities: LanguageModelCapabilities { LanguageModelCapabilities([.toolCalling]) }
        var executorConfiguration: Executor.Configuration { .init() }

        struct Executor: LanguageModelExecutor {
            typealias Model = SameIDs
            struct Configuration: Hashable, Sendable {}
            init(configuration: Configuration) {}

            nonisolated(nonsending) func respond(
                to request: LanguageModelExecutorGenerationRequest, model: SameIDs,
                streamingInto channel: LanguageModelExecutorGenerationChannel
            ) async throws {
                let outputs = request.transcript.count { if case .toolOutput = $0 { true } else { false } }
                if outputs < 2 {
                    await channel.send(
                        .toolCalls(
                            entryID: "entry",
                            action: .toolCall(id: "call", name: "page", action: .appendArguments("{}", tokenCount: 1))))
                } else {
                    await channel.send(.response(entryID: "entry", action: .appendText("Done.", tokenCount: 1)))
                }
            }
        }
    }

    private struct Page: Tool {
        let name = "page"
        let description = "The next page."
        func call(arguments: GeneratedContent) async throws -> String { "A page." }
    }

    @Test("[G] an executor that uses the same ids in all requests does not cause equal ids in the transcript")
    func sameIDs() async throws {
        let session = LanguageModelSession(model: SameIDs(), tools: [Page()])
        #expect(try await session.respond(to: "Read.").content == "Done.")
        #expect(try await session.respond(to: "Again.").content == "Done.")
        let ids = session.transcript.map(\.id)
        #expect(Set(ids).count == ids.count && ids.contains("entry"))
        // Calls and outputs belong together.
        var (calls, outputs): ([String], [String]) = ([], [])
        for entry in session.transcript {
            if case .toolCalls(let round) = entry { calls += round.map(\.id) }
            if case .toolOutput(let output) = entry { outputs.append(output.id) }
        }
        #expect(calls.count == 2 && calls == outputs && Set(calls).count == 2)
    }

    private struct CountingProfile: LanguageModelSession.DynamicProfile {
        final class Log: Sendable {
            let names = Mutex<[String]>([])
        }
        let model: any LanguageModel
        let log: Log
        @SessionProperty(\.userName) var userName

        var body: some DynamicProfile {
            let _ = log.names.withLock { $0.append(userName) }
            Profile {
                Instructions("You talk to \(userName).")
                [Page()]
            }
            .model(model)
        }
    }

    @Test("[B6] a profile is evaluated once per model request, with the properties of its session") func evaluation() async throws
    {
        let log = CountingProfile.Log()
        let call = ScriptedLanguageModel.Step.toolCalls([.init(name: "page", arguments: GeneratedContent(properties: [:]))])
        let model = ScriptedLanguageModel([.text("Hello."), call, .text("Read."), .failure(CancellationError())])
        let session = LanguageModelSession(profile: CountingProfile(model: model, log: log))
        session.properties.userName = "Ada"
        try await session.respond(to: "Hi.")
        #expect(log.names.withLock { $0 } == ["Ada"])
        try await session.respond(to: "Read a page.")
        #expect(log.names.withLock { $0 } == ["Ada", "Ada", "Ada"])
        await #expect(throws: (any Error).self) { try await session.respond(to: "Fail.") }
        #expect(log.names.withLock { $0 } == ["Ada", "Ada", "Ada", "Ada"])
    }

    @Test("the module has version 2, and pictures of saved transcripts have their bytes") func picturesAndVersion() throws {
        #if canImport(FoundationModels, _version: 2)
        let isNew = true
        #else
        let isNew = false
        #endif
        #expect(isNew)
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString + ".png")
        let bytes = Data([0x89, 0x50, 0x4E, 0x47])
        try bytes.write(to: file)
        let segment = Transcript.AttachmentSegment(content: .image(.init(imageURL: file)))
        let saved = try JSONEncoder().encode(Transcript(entries: [.prompt(.init(segments: [.attachment(segment)]))]))
        let session = LanguageModelSession(
            transcript: Transcript(entries: [
                .prompt(.init(segments: [.text(.init(content: "What is this?")), .attachment(segment)]))
            ]))
        try FileManager.default.removeItem(at: file)
        // Feedback has everything but the bytes of a file that is gone.
        let feedback = String(decoding: session.logFeedbackAttachment(sentiment: .negative), as: UTF8.self)
        #expect(feedback.contains("What is this?") && feedback.contains("negative"))
        let transcript = try JSONDecoder().decode(Transcript.self, from: saved)
        guard case .prompt(let prompt)? = transcript.first, case .attachment(let attachment)? = prompt.segments.first,
            case .image(let image) = attachment.content
        else {
            Issue.record("no picture: \(transcript)")
            return
        }
        #expect(image.url?.absoluteString == "data:image/png;base64,iVBORw==")
    }
}

extension SessionPropertyValues {
    @SessionPropertyEntry fileprivate var userName = "nobody"
}
