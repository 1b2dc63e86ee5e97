public import Foundation
public import FoundationModels
internal import TextScreening

/// A model whose prompts and responses are checked by deny lists and a classifier, in addition to the checks of the model itself.
///
/// No character of a denied term is sent to the session, also while a response is streamed. With a classifier, streamed text arrives
/// in parts that have been checked. Thoughts and the arguments of tool calls are not checked.
public struct GuardedLanguageModel<Base: LanguageModel>: LanguageModel {
    let base: Base
    let checks: Checks

    /// What is checked.
    struct Checks: Sendable, Hashable {
        var denyLists: DenyListStore
        var classifier: Classifier
        var language: Locale.LanguageCode?
    }

    /// A classifier, which is the same only as itself.
    final class Classifier: Sendable, Hashable {
        let classifier: (any GuardrailClassifier)?
        init(_ classifier: (any GuardrailClassifier)?) { self.classifier = classifier }
        static func == (a: Classifier, b: Classifier) -> Bool { a === b }
        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
    }

    /// Creates a model that checks the prompts and responses of another one.
    ///
    /// - Parameters:
    ///   - denyLists: Lists that may change while requests run.
    ///   - classifier: An additional check; nil for none.
    ///   - language: The language of the app's texts: lists for other languages are not used.
    public init(
        _ base: Base, denyLists: DenyListStore = DenyListStore(), classifier: (any GuardrailClassifier)? = nil,
        language: Locale.LanguageCode? = nil
    ) {
        self.base = base
        checks = Checks(denyLists: denyLists, classifier: Classifier(classifier), language: language)
    }

    public var capabilities: LanguageModelCapabilities { base.capabilities }

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
            var output = CheckedResponse(checks, isJSON: request.schema != nil || request.format != nil)
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

        /// Checks the last prompt, and replaces terms in it if a list says so.
        private nonisolated(nonsending) func checkPrompt(_ request: inout LanguageModelExecutorGenerationRequest) async throws {
            var entries = Array(request.transcript)
            guard let index = entries.lastIndex(where: { if case .prompt = $0 { true } else { false } }),
                case .prompt(var prompt) = entries[index]
            else { return }
            for list in checks.denyLists.lists(for: .prompt, in: checks.language) {
                for (place, segment) in prompt.segments.enumerated() {
                    guard case .text(var text) = segment else { continue }
                    switch list.action {
                    case .reject:
                        if let term = list.occurrences(in: text.content).first?.term {
                            throw violation("The prompt", list: list, term: term)
                        }
                    case .replace(let replacement):
                        text.content = list.replacingOccurrences(in: text.content, with: replacement)
                        prompt.segments[place] = .text(text)
                    }
                }
            }
            entries[index] = .prompt(prompt)
            request.transcript = Transcript(entries: entries)
            if let classifier = checks.classifier.classifier {
                let assessment = try await classifier.assess(prompt.segments.modelText, as: .prompt)
                if assessment.isUnsafe { throw violation("The prompt", assessment) }
            }
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

/// Checks the text of a response as it is generated, and says what can be passed on.
struct CheckedResponse {
    typealias Event = LanguageModelExecutorGenerationChannel.Event

    private let lists: [DenyList]
    private let classifier: (any GuardrailClassifier)?
    private let isJSON: Bool
    private var filters: [TermFilter]
    /// Text that the lists have passed and the classifier has not seen, and the end of what it has seen.
    private var held = ""
    private var seen = ""
    private var heldTokens = 0

    /// The minimum number of UTF-8 bytes that a classifier checks at once, and the number of characters before them that it sees.
    private static let step = 400

    init<Base>(_ checks: GuardedLanguageModel<Base>.Checks, isJSON: Bool) {
        lists = checks.denyLists.lists(for: .response, in: checks.language)
        classifier = checks.classifier.classifier
        self.isJSON = isJSON
        filters = []
        restart()
    }

    private mutating func restart() {
        filters = lists.map { list in
            guard case .replace(let replacement) = list.action else { return TermFilter(list.automaton, replacement: "") }
            return TermFilter(list.automaton, replacement: isJSON ? Self.escaped(replacement) : replacement)
        }
        held = ""
        seen = ""
    }

    /// A text for a JSON string, without its quotation marks.
    private static func escaped(_ text: String) -> String {
        String(GeneratedContent(text).jsonString.dropFirst().dropLast())
    }

    /// The events to send in place of one.
    mutating func append(_ event: Event) async throws -> [Event] {
        if let change = event.responseText {
            if change.isReplacement {
                restart()
                let text = try await checked(change.text, isLast: true)
                restart()
                return [event.withResponseText(text, tokenCount: change.tokenCount)]
            }
            heldTokens += change.tokenCount
            let text = try await checked(change.text, isLast: false)
            if text.isEmpty { return [] }
            defer { heldTokens = 0 }
            return [event.withResponseText(text, tokenCount: heldTokens)]
        }
        return [event]
    }

    /// The events at the end of the response.
    mutating func finish() async throws -> [Event] {
        let text = try await checked("", isLast: true)
        if text.isEmpty, heldTokens == 0 { return [] }
        return [.response(action: .appendText(text, tokenCount: heldTokens))]
    }

    private mutating func checked(_ text: String, isLast: Bool) async throws -> String {
        var text = text
        for index in filters.indices {
            text = filters[index].append(text)
            if isLast { text += filters[index].finish() }
            if case .reject = lists[index].action, let match = filters[index].found.first {
                throw violation("The response", list: lists[index], term: lists[index].terms[match.source])
            }
        }
        guard let classifier else { return text }
        held += text
        guard isLast ? !held.isEmpty : held.utf8.count >= Self.step else { return "" }
        let assessment = try await classifier.assess(seen + held, as: .response)
        if assessment.isUnsafe { throw violation("The response", assessment) }
        defer { held = "" }
        seen = String((seen + held).suffix(Self.step))
        return held
    }
}

// Traces and the rounds of tools need to know of the model behind.
extension GuardedLanguageModel: HasLocalModel where Base: HasLocalModel {
    package var localModel: LocalModel { base.localModel }
}
