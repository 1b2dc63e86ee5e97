public import Foundation
public import FoundationModels
internal import TextScreening
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
            base.prewarm(model: model.base, transcript: transcript)
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
            var entries = Array(request.transcript)
            guard let last = entries.lastIndex(where: { if case .prompt = $0 { true } else { false } }) else { return }
            for list in checks.denyLists.lists(for: .prompt, in: checks.language) {
                for (index, entry) in entries.enumerated() {
                    guard case .prompt(var prompt) = entry else { continue }
                    switch list.action {
                    case .reject:
                        if index == last, let term = list.occurrences(in: prompt.segments.modelText).first?.term {
                            throw violation("The prompt", list: list, term: term)
                        }
                    case .replace(let replacement):
                        prompt.segments = prompt.segments.map { segment in
                            switch segment {
                            case .text(var text):
                                text.content = list.replacingOccurrences(in: text.content, with: replacement)
                                return .text(text)
                            case .structure(var value):
                                value.content = value.content.replacingOccurrences(of: list, with: replacement)
                                return .structure(value)
                            default: return segment
                            }
                        }
                        entries[index] = .prompt(prompt)
                    }
                }
            }
            request.transcript = Transcript(entries: entries)
            if let classifier = checks.classifier.classifier, case .prompt(let prompt) = entries[last] {
                let assessment = try await classifier.assess(prompt.segments.modelText, as: .prompt)
                if assessment.isUnsafe { throw violation("The prompt", assessment) }
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

// Traces and the rounds of tools need to know of the model behind.
extension GuardedLanguageModel: HasLocalModel where Base: HasLocalModel {
    package var localModel: LocalModel { base.localModel }
}
