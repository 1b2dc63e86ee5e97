package import Foundation
internal import Inference
internal import Synchronization

/// A model file and how it is used: what the system model and models from files have in common.
package struct LocalModel: Hashable, Sendable {
    package var path: String
    /// Tokens that a conversation may have, if the model was trained for as many.
    package var greatestContext: Int
    /// A low-rank adapter over the model; nil for the model as it is.
    package var adapter: String?
    /// Whether it answers with tags.
    package var isTagging = false
    /// Whether prompts and text responses are checked for safety.
    package var checksText = true
    /// Whether a response that repeats itself without end is stopped. `FM_LOOPS=1` leaves it alone.
    package var stopsLoops = ProcessInfo.processInfo.environment["FM_LOOPS"] != "1"

    package init(
        path: String, greatestContext: Int, adapter: String? = nil, isTagging: Bool = false, checksText: Bool = true
    ) {
        self.path = path
        self.adapter = adapter
        self.greatestContext = greatestContext
        self.isTagging = isTagging
        self.checksText = checksText
    }

    /// What the file says about the model, without loading it.
    package struct Description: Sendable {
        package var name: String
        package var contextLength: Int
        /// Empty if they are not known.
        package var languages: Set<Locale.Language>
        package var canThink = false
    }

    private static let descriptions = Mutex<[String: Description]>([:])

    /// Read once for each file; a file that cannot be read is described as the default model.
    package var description: Description {
        if let known = Self.descriptions.withLock({ $0[path] }) { return known }
        guard let summary = try? ModelSummary(path: path) else {  // requests will say what is wrong with the file
            return Description(
                name: ModelCatalogue.standard.title, contextLength: 32_768,
                languages: Set(ModelCatalogue.standard.languages.map { Locale.Language(identifier: $0) }))
        }
        let made = Description(
            name: summary.name, contextLength: summary.contextLength,
            languages: Set(summary.languages.map { Locale.Language(identifier: $0) }), canThink: summary.canThink)
        Self.descriptions.withLock { $0[path] = made }
        return made
    }

    /// What the model can do besides writing text.
    package var capabilities: LanguageModelCapabilities {
        LanguageModelCapabilities([.guidedGeneration, .toolCalling] + (description.canThink ? [.reasoning] : []))
    }

    package var contextSize: Int { min(greatestContext, description.contextLength) }

    func load() async throws -> LoadedModel { try await ModelLoader.model(path: path, adapter: adapter) }

    /// Tokens that the engine processes for a conversation; of a prompt alone, what it adds to one.
    package func tokenCount(_ entries: [Transcript.Entry]) async throws -> Int {
        do {
            let model = try await load()
            return try model.tokens(
                for: TranscriptRenderer(self, model).prompt(for: entries), addGenerationPrompt: entries.isWaiting
            ).count
        } catch {
            throw _SessionFailure.wrapping(error)
        }
    }

    /// Tokens that a prompt adds to a conversation, with what opens the response to it.
    package func tokenCount(prompt: Transcript.Prompt) async throws -> Int {
        // Templates may add instructions of their own where there are none: they are not the prompt's.
        let before = Transcript.Entry.instructions(.init(segments: [.text(.init(content: "x"))], toolDefinitions: []))
        return try await tokenCount([before, .prompt(prompt)]) - tokenCount([before])
    }
}

extension [Transcript.Entry] {
    /// Whether the model is to speak next.
    fileprivate var isWaiting: Bool {
        switch last {
        case .prompt, .toolOutput: true
        default: false
        }
    }
}
