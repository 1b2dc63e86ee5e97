public import Foundation
public import FoundationModels
internal import TextScreening
public import TokenCounts
public import UniformTypeIdentifiers

/// A model whose prompts and responses are checked by deny lists and a classifier, in addition to the checks of the model itself.
///
/// No character of a denied term is sent to the session, also while a response is streamed. With a classifier, streamed text arrives
/// in parts that have been checked. In guided responses, each text of the value is checked by itself. Not checked are instructions,
/// outputs of tools, thoughts, the arguments of tool calls, names of members, and terms that are divided between segments of a
/// response. A `SystemLanguageModel` has guardrails of its own; to use another classifier instead of them, guard a model without,
/// such as `GGUFLanguageModel`.
public struct GuardedLanguageModel<Base: LanguageModel>: LanguageModel {
    let base: Base
    let checks: Checks

    /// What is checked.
    struct Checks: Sendable, Hashable {
        var denyLists: DenyListStore
        var classifier: Classifier
        var language: Locale.LanguageCode?
    }

    /// A classifier. A session keeps its executor as long as the classifier is the same object or an equal
    /// value, or there is none.
    final class Classifier: Sendable, Hashable {
        let classifier: (any GuardrailClassifier)?
        init(_ classifier: (any GuardrailClassifier)?) { self.classifier = classifier }

        private var identity: ObjectIdentifier? {
            guard let classifier else { return nil }
            // Values that are equal are the same, and so are objects; others are compared by their place here.
            return type(of: classifier) is AnyClass ? ObjectIdentifier(classifier as AnyObject) : ObjectIdentifier(self)
        }

        static func == (a: Classifier, b: Classifier) -> Bool {
            if let one = a.classifier as? any Hashable, let other = b.classifier as? any Hashable {
                return AnyHashable(one) == AnyHashable(other)
            }
            return a.identity == b.identity
        }

        func hash(into hasher: inout Hasher) { hasher.combine(classifier == nil) }
    }

    /// Creates a model that checks the prompts and responses of another one.
    ///
    /// - Parameters:
    ///   - denyLists: Lists that may change while requests run.
    ///   - classifier: An additional check; nil for none.
    ///   - language: The language of the app's texts: lists for other languages are not used.
    public init(
        _ base: Base, denyLists: DenyListStore? = nil, classifier: (any GuardrailClassifier)? = nil,
        language: Locale.LanguageCode? = nil
    ) {
        self.base = base
        checks = Checks(denyLists: denyLists ?? .empty, classifier: Classifier(classifier), language: language)
    }

    public var capabilities: LanguageModelCapabilities { base.capabilities }

    public nonisolated(nonsending) func supportsDataAttachmentType(_ type: UTType) async throws -> Bool {
        try await base.supportsDataAttachmentType(type)
    }

    public nonisolated(nonsending) func supportsDataEntryType(_ type: UTType) async throws -> Bool {
        try await base.supportsDataEntryType(type)
    }

    public var executorConfiguration: Executor.Configuration {
        Executor.Configuration(base: base.executorConfiguration, checks: checks)
    }

    /// Checks requests, forwards them and checks the responses.
    public struct Executor: LanguageModelExecutor {
        /// The model that this executor runs.
        public typealias Model = GuardedLanguageModel<Base>

        /// The configuration of the other model's executor, and the checks.
        public struct Configuration: Hashable, Sendable {
            let base: Base.Executor.Configuration
            let checks: Checks
        }

        private let base: Base.Executor
        private let checks: Checks

        /// Called by sessions.
        ///
        /// - Throws: The errors of the other model's executor.
        public init(configuration: Configuration) throws {
            base = try Base.Executor(configuration: configuration.base)
            checks = configuration.checks
        }

        public func prewarm(model: GuardedLanguageModel<Base>, transcript: Transcript) {
            // What requests will begin with.
            base.prewarm(
                model: model.base, transcript: Transcript(entries: checks.promptLists.replacingTerms(in: transcript)))
        }

        public nonisolated(nonsending) func respond(
            to request: LanguageModelExecutorGenerationRequest, model: GuardedLanguageModel<Base>,
            streamingInto channel: LanguageModelExecutorGenerationChannel
        ) async throws {
            var request = request
            try await checkPrompt(&request)
            var output = CheckedResponse(checks, isJSON: request.generatesValue)
            let (events, continuation) = AsyncStream.makeStream(of: LanguageModelExecutorGenerationChannel.Event.self)
            // A task of its own, so that a violation can end it.
            let checkedRequest = request
            let work = Task {
                defer { continuation.finish() }
                let recipient = LanguageModelExecutorGenerationChannel { continuation.yield($0) }
                try await base.respond(to: checkedRequest, model: model.base, streamingInto: recipient)
            }
            try await withTaskCancellationHandler {
                do {
                    for await event in events {
                        for checked in try await output.append(event) { await channel.send(checked) }
                    }
                    // A stream ends without an error when its task is cancelled.
                    try Task.checkCancellation()
                    try await work.value
                    for checked in try await output.finish() { await channel.send(checked) }
                } catch {
                    work.cancel()
                    // The task ends soon: the next request must not overlap with it. Its own error is secondary.
                    _ = await work.result
                    throw error
                }
            } onCancel: {
                work.cancel()
            }
        }

        /// Checks the last prompt, and replaces terms in all prompts if a list says so: the session keeps them as they were written.
        private nonisolated(nonsending) func checkPrompt(_ request: inout LanguageModelExecutorGenerationRequest) async throws {
            let isPrompt: (Transcript.Entry) -> Bool = { if case .prompt = $0 { true } else { false } }
            guard case .prompt(let last)? = request.transcript.last(where: isPrompt) else { return }
            var segments = last.segments
            let lists = checks.promptLists
            // In their order: one may reject what another has put there.
            for list in lists {
                if case .reject = list.action, let term = list.occurrences(in: segments.modelText).first?.term {
                    throw violation("The prompt", list: list, term: term)
                }
                segments = list.replacingTerms(in: segments)
            }
            request.transcript = Transcript(entries: lists.replacingTerms(in: request.transcript))
            if let classifier = checks.classifier.classifier {
                let assessment = try await classifier.assess(segments.modelText, as: .prompt)
                if assessment.isUnsafe { throw violation("The prompt", assessment) }
            }
        }
    }
}

extension GuardedLanguageModel.Checks {
    /// The lists that apply to prompts now.
    fileprivate var promptLists: [DenyList] { denyLists.lists(for: .prompt, in: language) }
}

extension [DenyList] {
    /// The entries as the other model reads them: prompts with other text in place of terms.
    fileprivate func replacingTerms(in entries: some Collection<Transcript.Entry>) -> [Transcript.Entry] {
        entries.map { entry in
            guard case .prompt(var prompt) = entry else { return entry }
            for list in self { prompt.segments = list.replacingTerms(in: prompt.segments) }
            return .prompt(prompt)
        }
    }
}

extension DenyList {
    /// The segments with other text in place of terms; those of a list that rejects terms stay as they are.
    fileprivate func replacingTerms(in segments: [Transcript.Segment]) -> [Transcript.Segment] {
        guard case .replace(let replacement) = action else { return segments }
        return segments.map { segment in
            switch segment {
            case .text(var text):
                text.content = replacingOccurrences(in: text.content, with: replacement)
                return .text(text)
            case .structure(var value):
                value.content = value.content.replacingOccurrences(of: self, with: replacement)
                return .structure(value)
            default: return segment
            }
        }
    }
}

extension GeneratedContent {
    /// The value with the terms in its strings replaced. Names of members stay as they are.
    fileprivate func replacingOccurrences(of list: DenyList, with replacement: String) -> GeneratedContent {
        switch kind {
        case .string(let text):
            GeneratedContent(kind: .string(list.replacingOccurrences(in: text, with: replacement)), id: id)
        case .array(let values):
            GeneratedContent(kind: .array(values.map { $0.replacingOccurrences(of: list, with: replacement) }), id: id)
        case .structure(let members, let names):
            GeneratedContent(
                kind: .structure(
                    properties: members.mapValues { $0.replacingOccurrences(of: list, with: replacement) }, orderedKeys: names),
                id: id)
        case .null, .bool, .number: self
        }
    }
}

func violation(_ subject: String, list: DenyList, term: String) -> LanguageModelError {
    .guardrailViolation(
        .init(
            debugDescription: "\(subject) contains a term of \(list.name).", metadata: ["list": list.name, "term": term]))
}

func violation(_ subject: String, _ assessment: GuardrailAssessment) -> LanguageModelError {
    let category = assessment.category ?? "unsafe"
    return .guardrailViolation(
        .init(
            debugDescription: "\(subject) may be unsafe (\(category)).",
            metadata: ["rule": category, "scores": assessment.scores]))
}

extension GuardedLanguageModel: TokenCounting where Base: TokenCounting {
    public var contextSize: Int { base.contextSize }

    /// The number of tokens that the other model counts, of prompts as it reads them: with other text in place of terms.
    public nonisolated(nonsending) func tokenCount(
        for transcriptEntries: some Collection<Transcript.Entry>
    ) async throws -> Int {
        try await base.tokenCount(for: checks.promptLists.replacingTerms(in: transcriptEntries))
    }
}

extension GuardedLanguageModel: KVCacheSaving where Base: KVCacheSaving {
    public func saveKVCache(for transcriptEntries: some Collection<Transcript.Entry>, to url: URL) async throws -> Int {
        try await base.saveKVCache(for: checks.promptLists.replacingTerms(in: transcriptEntries), to: url)
    }

    public func restoreKVCache(from url: URL) async throws -> Int { try await base.restoreKVCache(from: url) }
}

// Traces and the rounds of tools need to know of the model behind.
extension GuardedLanguageModel: HasLocalModel where Base: HasLocalModel {
    package var localModel: LocalModel { base.localModel }
}
