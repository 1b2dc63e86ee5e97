public import Foundation
public import Observation
internal import Synchronization

/// A larger model elsewhere. Apple's servers answer programs on Apple's devices only: here the model says that it is
/// unavailable, unless the program has named another model to answer in its place.
///
/// Of the products of this package, `FoundationModelsOpenAI` can do that, with a server of your own.
public final class PrivateCloudComputeLanguageModel: Sendable, Observable {
    /// Whether the model can be used.
    @frozen public enum Availability: Equatable, Sendable {
        /// Requests can be made: another model answers them.
        case available
        /// Requests fail, for this reason.
        case unavailable(PrivateCloudComputeLanguageModel.Availability.UnavailableReason)

        /// Why the model cannot be used.
        public enum UnavailableReason: Equatable, Sendable, Hashable {
            /// Apple's servers do not answer this machine.
            case deviceNotEligible
            /// The machine is not set up for it. Not reported here.
            case systemNotReady
        }
    }

    /// The model; no connection is made.
    public convenience init() { self.init(isReachable: false) }

    private init(isReachable: Bool) {}

    /// What answers in the model's place.
    package struct Substitute: Sendable {
        let model: any LanguageModel
        let contextSize: Int
        let languages: Set<Locale.Language>

        package init(model: any LanguageModel, contextSize: Int, languages: Set<Locale.Language>) {
            self.model = model
            self.contextSize = contextSize
            self.languages = languages
        }
    }

    private static let named = Mutex<Substitute?>(nil)

    /// The program's substitute; nil as long as none is named.
    package static var substitute: Substitute? {
        get { named.withLock { $0 } }
        set { named.withLock { $0 = newValue } }
    }

    private static func required() throws -> Substitute {
        guard let substitute else { throw unavailable }
        return substitute
    }

    /// Unavailable, because the device is not eligible, unless another model answers in its place.
    public var availability: PrivateCloudComputeLanguageModel.Availability {
        Self.substitute == nil ? .unavailable(.deviceNotEligible) : .available
    }
    /// Always below the limit: nothing is used here.
    public var quotaUsage: PrivateCloudComputeLanguageModel.QuotaUsage {
        QuotaUsage(status: .belowLimit(.init(isApproachingLimit: false)), limitIncreaseSuggestion: nil, resetDate: nil)
    }
    /// Whether ``availability`` is available.
    public var isAvailable: Bool { availability == .available }
    public var capabilities: LanguageModelCapabilities {
        Self.substitute?.model.capabilities ?? LanguageModelCapabilities([.vision, .guidedGeneration, .reasoning, .toolCalling])
    }
    public var executorConfiguration: PrivateCloudComputeLanguageModel.Executor.Configuration { Executor.Configuration() }

    /// - Throws: ``PrivateCloudComputeLanguageModel/Error/serviceUnavailable(_:)``.
    public nonisolated(nonsending) var contextSize: Int {
        get async throws { try Self.required().contextSize }
    }

    /// - Throws: ``PrivateCloudComputeLanguageModel/Error/serviceUnavailable(_:)``.
    public nonisolated(nonsending) var supportedLanguages: Set<Locale.Language> {
        get async throws { try Self.required().languages }
    }

    /// - Throws: ``PrivateCloudComputeLanguageModel/Error/serviceUnavailable(_:)``.
    public nonisolated(nonsending) func supportsLocale(_ locale: Locale = Locale.current) async throws -> Bool {
        try Self.required().languages.contains { $0.languageCode == locale.language.languageCode }
    }

    private static var unavailable: Error {
        .serviceUnavailable(
            .init(
                debugDescription:
                    "Private Cloud Compute answers Apple's devices only. Use the system model, or a model that speaks to a server of your own."
            ))
    }
}

extension PrivateCloudComputeLanguageModel {
    /// How much of what one may ask is used up.
    public struct QuotaUsage: Sendable {
        /// Whether the limit is reached.
        public var status: PrivateCloudComputeLanguageModel.QuotaUsage.Status
        /// A way to a higher limit; nil here.
        public var limitIncreaseSuggestion: PrivateCloudComputeLanguageModel.QuotaUsage.LimitIncreaseSuggestion?
        /// When counting begins anew; nil here.
        public var resetDate: Date?
        /// Whether further requests are refused.
        public var isLimitReached: Bool {
            if case .limitReached = status { true } else { false }
        }

        /// How far use is from the limit.
        public enum Status: Sendable {
            /// Requests are answered.
            case belowLimit(PrivateCloudComputeLanguageModel.QuotaUsage.Status.BelowLimit)
            /// Requests are refused until counting begins anew.
            case limitReached(PrivateCloudComputeLanguageModel.QuotaUsage.Status.LimitReached)

            /// What is known while there is something left.
            public struct BelowLimit: Sendable {
                /// Whether little is left.
                public var isApproachingLimit: Bool
            }

            /// What is known when nothing is left.
            public struct LimitReached: Sendable {}
        }

        /// A way to more.
        public struct LimitIncreaseSuggestion: Sendable {
            /// Does nothing: there is no such way here.
            public func show() {}
        }
    }

    /// Why the model does not answer.
    public enum Error: Swift.Error, LocalizedError, CustomDebugStringConvertible {
        /// The servers cannot be reached. Not thrown here.
        case networkFailure(PrivateCloudComputeLanguageModel.Error.NetworkFailure)
        /// There were too many requests. Not thrown here.
        case quotaLimitReached(PrivateCloudComputeLanguageModel.Error.QuotaLimitReached)
        /// The servers do not answer: what every request throws here.
        case serviceUnavailable(PrivateCloudComputeLanguageModel.Error.ServiceUnavailable)

        /// Why the servers cannot be reached.
        public struct NetworkFailure: Sendable {
            /// What went wrong, in a sentence for developers.
            public var debugDescription: String
            /// For errors that a program makes itself, as in tests.
            public init(debugDescription: String) { self.debugDescription = debugDescription }
        }

        /// What can be done about the limit.
        public struct QuotaLimitReached: Sendable {
            /// A way to a higher limit, if there is one.
            public var limitIncreaseSuggestion: PrivateCloudComputeLanguageModel.QuotaUsage.LimitIncreaseSuggestion?
            /// When counting begins anew, if that is known.
            public var resetDate: Date?
            /// What went wrong, in a sentence for developers.
            public var debugDescription: String

            /// For errors that a program makes itself, as in tests.
            public init(
                limitIncreaseSuggestion: PrivateCloudComputeLanguageModel.QuotaUsage.LimitIncreaseSuggestion? = nil,
                resetDate: Date? = nil, debugDescription: String
            ) {
                self.limitIncreaseSuggestion = limitIncreaseSuggestion
                self.resetDate = resetDate
                self.debugDescription = debugDescription
            }
        }

        /// Why the servers do not answer.
        public struct ServiceUnavailable: Sendable {
            /// What went wrong, in a sentence for developers.
            public var debugDescription: String
            /// For errors that a program makes itself, as in tests.
            public init(debugDescription: String) { self.debugDescription = debugDescription }
        }

        public var errorDescription: String? { debugDescription }

        public var debugDescription: String {
            switch self {
            case .networkFailure(let payload): payload.debugDescription
            case .quotaLimitReached(let payload): payload.debugDescription
            case .serviceUnavailable(let payload): payload.debugDescription
            }
        }
    }
}

extension PrivateCloudComputeLanguageModel: LanguageModel {
    /// Passes requests on to what answers in the model's place, or refuses them.
    public struct Executor: LanguageModelExecutor {
        /// The model whose requests it answers.
        public typealias Model = PrivateCloudComputeLanguageModel

        /// Nothing: all executors of this model are alike.
        public struct Configuration: Hashable, Sendable {}

        /// Called by sessions; it cannot fail.
        public init(configuration: PrivateCloudComputeLanguageModel.Executor.Configuration) {}

        private let executors = ExecutorStore()

        public func prewarm(model: PrivateCloudComputeLanguageModel.Executor.Model, transcript: Transcript) {
            guard let substitute = PrivateCloudComputeLanguageModel.substitute?.model else { return }
            prewarm(substitute, transcript)
        }

        private func prewarm(_ substitute: some LanguageModel, _ transcript: Transcript) {
            // A hint has no one to report to: the request itself will say what is wrong.
            guard let executor = try? executors.executor(for: substitute) else { return }
            executor.prewarm(model: substitute, transcript: transcript)
        }

        /// - Throws: ``PrivateCloudComputeLanguageModel/Error/serviceUnavailable(_:)``.
        public nonisolated(nonsending) func respond(
            to request: LanguageModelExecutorGenerationRequest, model: PrivateCloudComputeLanguageModel,
            streamingInto channel: LanguageModelExecutorGenerationChannel
        ) async throws {
            let substitute = try PrivateCloudComputeLanguageModel.required().model
            try await respond(to: request, with: substitute, channel)
        }

        private nonisolated(nonsending) func respond(
            to request: LanguageModelExecutorGenerationRequest, with substitute: some LanguageModel,
            _ channel: LanguageModelExecutorGenerationChannel
        ) async throws {
            try await executors.executor(for: substitute).respond(to: request, model: substitute, streamingInto: channel)
        }
    }
}
