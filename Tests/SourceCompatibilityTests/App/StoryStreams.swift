import Foundation
import FoundationModels

@Generable
struct StoryOutline: Equatable {
    var title: String

    @Guide(description: "The chapters, in order", .count(3))
    var chapters: [Chapter]

    @Generable
    struct Chapter: Equatable {
        var heading: String
        var pages: Int
    }
}

/// All variants of streaming, with typical loops.
struct StoryStreams {
    let session: LanguageModelSession
    var options = GenerationOptions()

    // MARK: Text

    func tell(about topic: String, each: (String) -> Void) async throws {
        for try await snapshot in session.streamResponse(to: "Tell a story about \(topic).") {
            each(snapshot.content)
        }
    }

    func tell(_ prompt: Prompt) async throws -> [String] {
        var snapshots: [String] = []
        let stream = session.streamResponse(to: prompt, options: options)
        for try await snapshot in stream {
            snapshots.append(snapshot.content)
        }
        return snapshots
    }

    func tell(about topics: [String]) async throws -> String {
        let stream = session.streamResponse(options: options) {
            "Tell a story in which all of these appear."
            for topic in topics {
                topic
            }
        }
        return try await stream.collect().content
    }

    // MARK: A type

    func outline(_ idea: String) async throws -> StoryOutline {
        let stream = session.streamResponse(to: idea, generating: StoryOutline.self)
        var latest: StoryOutline.PartiallyGenerated?
        for try await snapshot in stream {
            latest = snapshot.content
        }
        _ = latest?.chapters?.last?.heading
        // The stream has ended, so the collected response is complete.
        return try await stream.collect().content
    }

    func headings(_ prompt: Prompt) async throws -> [[String]] {
        var seen: [[String]] = []
        for try await snapshot in session.streamResponse(
            to: prompt, generating: StoryOutline.self, includeSchemaInPrompt: false, options: options)
        {
            let headings = snapshot.content.chapters?.compactMap(\.heading) ?? []
            if headings != seen.last { seen.append(headings) }
        }
        return seen
    }

    func outline(of ideas: [String]) async throws -> StoryOutline {
        try await session.streamResponse(generating: StoryOutline.self) { ideas }.collect().content
    }

    func titles(_ idea: String) async throws -> [String] {
        var titles: [String] = []
        for try await snapshot in session.streamResponse(to: idea, generating: [String].self) {
            titles = snapshot.content
        }
        return titles
    }

    // MARK: A schema

    func content(_ idea: String, like schema: GenerationSchema) async throws -> [GeneratedContent] {
        var partial: [GeneratedContent] = []
        for try await snapshot in session.streamResponse(to: idea, schema: schema, options: options) {
            partial.append(snapshot.content)
        }
        return partial
    }

    func content(_ prompt: Prompt, like schema: GenerationSchema) async throws -> GeneratedContent {
        try await session.streamResponse(to: prompt, schema: schema, includeSchemaInPrompt: false).collect().content
    }

    func content(of ideas: [String], like schema: GenerationSchema) async throws -> GeneratedContent {
        try await session.streamResponse(schema: schema) { ideas }.collect().rawContent
    }

    // MARK: Around the loop

    /// Uses an iterator directly and reads only the beginning, for a preview.
    func firstWords(_ topic: String) async throws -> String? {
        var iterator = session.streamResponse(to: topic).makeAsyncIterator()
        return try await iterator.next()?.content
    }

    /// A stream of strings for a view that does not import the framework.
    func lines(about topic: String) -> AsyncThrowingStream<String, any Error> {
        AsyncThrowingStream { continuation in
            let task = Task {
                do {
                    for try await snapshot in session.streamResponse(to: topic) {
                        continuation.yield(snapshot.content)
                    }
                    continuation.finish()
                } catch {
                    continuation.finish(throwing: error)
                }
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    /// The token usage of a request so far, for the status line.
    func costs(_ topic: String) async throws -> [Int] {
        var costs: [Int] = []
        for try await snapshot in session.streamResponse(to: topic) {
            costs.append(snapshot.usage.output.totalTokenCount)
            _ = snapshot.transcriptEntries.last?.id
        }
        return costs
    }
}
