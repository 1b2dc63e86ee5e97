package import Foundation
package import Inference
internal import InstalledModels
internal import ModelPrompts
internal import ProcessSettings
internal import Synchronization

/// A model file and its configuration, shared by the system model and models from files.
package struct LocalModel: Hashable, Sendable {
    package var path: String
    /// The maximum number of tokens in a conversation; the model's own context length may be smaller.
    package var maximumContext: Int
    /// The path of a low-rank adapter; nil for none but that of the model.
    package var adapter: String?
    /// Whether the adapter beside the model's file is used: see ``adapterPaths``. `FM_ADAPTER=none` disables this.
    package var usesInstalledAdapter: Bool
    /// Whether the model is used for content tagging.
    package var isTagging = false
    /// Whether prompts and text responses are checked for safety.
    package var checksText = true
    /// Whether requests for values of a schema are checked even where texts are not.
    package var checksValues = true
    /// Whether tool calls end after rounds with identical calls and outputs; nil if the defaults of the model decide.
    package var repetitionOption: Bool?
    /// The format of keys and values in the KV cache.
    package let cacheFormat: CacheFormat
    /// Whether generation stops when the response repeats itself endlessly. `FM_LOOPS=1` disables this.
    package var detectsLoops: Bool

    /// - Parameter cacheBits: The number of bits of each element of keys and values, 8 or 16; nil for 16, unless the environment has
    ///   `FM_CACHE_BITS=8`.
    package init(
        path: String, maximumContext: Int, adapter: String? = nil, usesInstalledAdapter: Bool = true, isTagging: Bool = false,
        checksText: Bool = true, stopsRepeatedCalls: Bool? = nil, cacheBits: Int? = nil
    ) {
        self.path = path
        cacheFormat = cacheBits ?? Setting.cacheBits.value.flatMap { Int($0) } == 8 ? .int8 : .binary16
        detectsLoops = Setting.loops.value != "1"
        self.adapter = adapter
        self.usesInstalledAdapter = usesInstalledAdapter && Setting.adapter.value != "none"
        self.maximumContext = maximumContext
        self.isTagging = isTagging
        self.checksText = checksText
        repetitionOption = stopsRepeatedCalls
    }

    /// The properties of the model that its file declares, read without loading the model.
    package struct Description: Sendable {
        package var name: String
        package var contextLength: Int
        /// Empty if unknown.
        package var languages: Set<Locale.Language>
        package var canThink = false
        /// Whether there is a complete file of a model that runs here.
        package var isUsable = true
    }

    /// With the identities of the files that they were read from.
    private static let descriptions = Mutex<[String: (identity: UInt64?, description: Description)]>([:])

    /// Read once for each file, and again after it was replaced. A file that cannot be read has its own name, and nothing else is
    /// known of it; if there is no file, the description is that of the default model.
    package var description: Description {
        let identity = GGUFFile.identity(ofModel: path)
        if let known = Self.descriptions.withLock({ $0[path] }), identity != nil, known.identity == identity {
            return known.description
        }
        let made: Description
        do {
            let summary = try ModelSummary(path: path)
            made = Description(
                name: summary.name, contextLength: summary.contextLength,
                languages: Set(summary.languages.map { Locale.Language(identifier: $0) }), canThink: summary.canThink)
        } catch {  // requests throw an error about the file
            guard FileManager.default.fileExists(atPath: path) else {
                return Description(
                    name: ModelCatalogue.standard.title, contextLength: 32_768,
                    languages: Set(ModelCatalogue.standard.languages.map { Locale.Language(identifier: $0) }), isUsable: false)
            }
            let name = URL(fileURLWithPath: path).deletingPathExtension().lastPathComponent
            made = Description(name: name, contextLength: maximumContext, languages: [], isUsable: false)
            // Whether a file may be read changes without a change of the file.
            if case .unreadable = error { return made }
        }
        Self.descriptions.withLock { $0[path] = (identity, made) }
        return made
    }

    /// The model's capabilities besides text generation.
    package var capabilities: LanguageModelCapabilities {
        LanguageModelCapabilities([.guidedGeneration, .toolCalling] + (description.canThink ? [.reasoning] : []))
    }

    package var contextSize: Int { min(maximumContext, description.contextLength) }

    /// Whether tool calls end after rounds with identical calls and outputs.
    var stopsRepeatedCalls: Bool {
        get async {
            if let repetitionOption { return repetitionOption }
            // Asked after the model has generated calls, so that it is in memory; if not, the request reports it.
            return (try? await lease().model.defaults.repeatsToolCalls) ?? false
        }
    }

    /// Frees the models that no request is using, and the caches of sessions that are gone.
    package static func releaseUnused() { ModelPool.shared.releaseIdle() }

    /// The number of tokens that the engine processes for a conversation.
    package func tokenCount(_ entries: [Transcript.Entry]) async throws -> Int {
        do {
            let lease = try await lease()
            let model = lease.model
            return try model.tokens(
                for: TranscriptRenderer(self, model).prompt(for: entries), addGenerationPrompt: entries.isWaiting
            ).count
        } catch {
            throw _SessionFailure.wrapping(error)
        }
    }

    /// Writes the keys and values of a conversation to a file, as far as they are in memory, so that a later process need not
    /// compute them again.
    ///
    /// - Returns: the number of tokens; 0 if there are none, and then no file is written.
    package func writeCache(for entries: [Transcript.Entry], to url: URL) async throws -> Int {
        let lease = try await lease()
        let model = lease.model
        let prompt = TranscriptRenderer(self, model).prompt(for: entries)
        let tokens = try model.tokens(for: prompt, addGenerationPrompt: false)
        return try await model.writeCache(
            for: tokens, format: cacheFormat, adapter: try await adapter(for: model), to: url)
    }

    /// Reads a file that ``writeCache(for:to:)`` has written, for the next request that begins with the same entries.
    ///
    /// - Returns: the number of tokens.
    /// - Throws: an error if the file is damaged or was written with another model.
    package func readCache(from url: URL) async throws -> Int {
        let lease = try await lease()
        let model = lease.model
        return try await model.readCache(from: url, format: cacheFormat, adapter: try await adapter(for: model))
    }

    /// The number of tokens that a prompt adds to a conversation, including the tokens that begin the response.
    package func tokenCount(prompt: Transcript.Prompt) async throws -> Int {
        // Without instructions, a template may add default instructions, which must not be counted as part of the
        // prompt.
        let before = Transcript.Entry.instructions(.init(segments: [.text(.init(content: "x"))], toolDefinitions: []))
        return try await tokenCount([before, .prompt(prompt)]) - tokenCount([before])
    }
}

extension Set<Locale.Language> {
    /// Adds those of the languages whose code is in the set: a model of English supports British English. Programs look up
    /// `Locale.current.language`, which has a region.
    func withRegions(of languages: [Locale.Language]) -> Self {
        union(languages.filter { language in contains { $0.languageCode == language.languageCode } })
    }
}

extension [Locale.Language] {
    /// The languages of the user: the current one, and that of the environment.
    static var user: Self { [Locale.current, PersonLocale.named()].compactMap { $0?.language } }
}

extension [Transcript.Entry] {
    /// Whether the model generates the next entry.
    fileprivate var isWaiting: Bool {
        switch last {
        case .prompt, .toolOutput: true
        default: false
        }
    }
}
