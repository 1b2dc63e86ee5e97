public import Foundation
public import Observation
internal import Synchronization

/// A larger, remote model. Apple's servers respond only to programs on Apple's devices, so on this platform the model
/// is unavailable unless the program has registered a substitute model.
///
/// In this package, `FoundationModelsOpenAI` can register a model on a server of your own.
public final class PrivateCloudComputeLanguageModel: Sendable, Observable {
    /// Whether the model can be used.
    @frozen public enum Availability: Equatable, Sendable {
        /// Requests can be made: a substitute model responds.
        case available
        /// Requests fail, for this reason.
        case unavailable(PrivateCloudComputeLanguageModel.Availability.UnavailableReason)

        /// Why the model cannot be used.
        public enum UnavailableReason: Equatable, Sendable, Hashable {
            /// Apple's servers do not accept requests from this machine.
            case deviceNotEligible
            /// The machine is not set up. Not reported on this platform.
            case systemNotReady
        }
    }

    /// Creates the model without making a connection.
    public convenience init() { self.init(isReachable: false) }

    private init(isReachable: Bool) {}

    /// A model that responds in place of this one.
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

    /// The registered substitute; nil if there is none.
    package static var substitute: Substitute? {
        get { named.withLock { $0 } }
        set { named.withLock { $0 = newValue } }
    }

    private static func required() throws -> Substitute {
        guard let substitute else { throw unavailable }
        return substitute
    }

    /// Unavailable with the reason that the device is not eligible, unless a substitute model is registered.
    public var availability: PrivateCloudComputeLanguageModel.Availability {
        Self.substitute == nil ? .unavailable(.deviceNotEligible) : .available
    }
    /// Always below the limit: no quota applies on this platform.
    public var quotaUsage: PrivateCloudComputeLanguageModel.QuotaUsage {
        QuotaUsage(status: .belowLimit(.init(isApproachingLimit: false)), limitIncreaseSuggestion: nil, resetDate: nil)
    }
    /// Whether ``availability`` is available.
    public var isAvailable: Bool { availability == .available }
    public var capabilities: LanguageModelCapabilities {
        Self.substitute?.model.capabilities ?? LanguageModelCapabilities([.vision, .guidedGeneration, .reasoning, .toolCalling])
    }
    public var executorConfiguration: PrivateCloudComputeLanguageModel.Executor.Configuration { Executor.Configuration() }

    /// The maximum number of tokens in a conversation with the substitute model.
    ///
    /// - Throws: ``PrivateCloudComputeLanguageModel/Error/serviceUnavailable(_:)`` if there is no substitute model.
    public nonisolated(nonsending) var contextSize: Int {
        get async throws { try Self.required().contextSize }
    }

    /// The languages that the substitute model supports.
    ///
    /// - Throws: ``PrivateCloudComputeLanguageModel/Error/serviceUnavailable(_:)`` if there is no substitute model.
    public nonisolated(nonsending) var supportedLanguages: Set<Locale.Language> {
        get async throws { try Self.required().languages.withRegions(of: .user) }
    }

    /// Whether the substitute model supports the language of a locale, regardless of its region.
    ///
    /// - Throws: ``PrivateCloudComputeLanguageModel/Error/serviceUnavailable(_:)`` if there is no substitute model.
    public nonisolated(nonsending) func supportsLocale(_ locale: Locale = Locale.current) async throws -> Bool {
        try Self.required().languages.contains { $0.languageCode == locale.language.languageCode }
    }

    private static var unavailable: Error {
        .serviceUnavailable(
            .init(
                debugDescription:
                    "Private Cloud Compute is available on Apple devices only. Use the system model, or a model on a server of your own."
            ))
    }
}

extension PrivateCloudComputeLanguageModel {
    /// Usage of the request quota.
    public struct QuotaUsage: Sendable {
        /// Whether the limit is reached.
        public var status: PrivateCloudComputeLanguageModel.QuotaUsage.Status
        /// A way to raise the limit; nil on this platform.
        public var limitIncreaseSuggestion: PrivateCloudComputeLanguageModel.QuotaUsage.LimitIncreaseSuggestion?
        /// When the quota resets; nil on this platform.
        public var resetDate: Date?
        /// Whether further requests are rejected.
        public var isLimitReached: Bool {
            if case .limitReached = status { true } else { false }
        }

        /// Usage relative to the limit.
        public enum Status: Sendable {
            /// Requests are accepted.
            case belowLimit(PrivateCloudComputeLanguageModel.QuotaUsage.Status.BelowLimit)
            /// Requests are rejected until the quota resets.
            case limitReached(PrivateCloudComputeLanguageModel.QuotaUsage.Status.LimitReached)

            /// Details of usage below the limit.
            public struct BelowLimit: Sendable {
                /// Whether usage is close to the limit.
                public var isApproachingLimit: Bool
            }

            /// Details of usage at the limit.
            public struct LimitReached: Sendable {}
        }

        /// A way to raise the limit.
        public struct LimitIncreaseSuggestion: Sendable {
            /// Does nothing: the limit cannot be raised on this platform.
            public func show() {}
        }
    }

    /// An error of a request to this model.
    public enum Error: Swift.Error, LocalizedError, CustomDebugStringConvertible {
        /// The servers cannot be reached. Not thrown on this platform.
        case networkFailure(PrivateCloudComputeLanguageModel.Error.NetworkFailure)
        /// There were too many requests. Not thrown on this platform.
        case quotaLimitReached(PrivateCloudComputeLanguageModel.Error.QuotaLimitReached)
        /// The servers are not available. Without a substitute model, every request throws this error.
        case serviceUnavailable(PrivateCloudComputeLanguageModel.Error.ServiceUnavailable)

        /// Details of a network failure.
        public struct NetworkFailure: Sendable {
            /// A description of the error for developers.
            public var debugDescription: String
            /// Creates details for an error that a program constructs itself, for example in tests.
            public init(debugDescription: String) { self.debugDescription = debugDescription }
        }

        /// Details of a reached quota limit.
        public struct QuotaLimitReached: Sendable {
            /// A way to raise the limit, if there is one.
            public var limitIncreaseSuggestion: PrivateCloudComputeLanguageModel.QuotaUsage.LimitIncreaseSuggestion?
            /// When the quota resets, if known.
            public var resetDate: Date?
            /// A description of the error for developers.
            public var debugDescription: String

            /// Creates details for an error that a program constructs itself, for example in tests.
            public init(
                limitIncreaseSuggestion: PrivateCloudComputeLanguageModel.QuotaUsage.LimitIncreaseSuggestion? = nil,
                resetDate: Date? = nil, debugDescription: String
            ) {
                self.limitIncreaseSuggestion = limitIncreaseSuggestion
                self.resetDate = resetDate
                self.debugDescription = debugDescription
            }
        }

        /// Details of an unavailable service.
        public struct ServiceUnavailable: Sendable {
            /// A description of the error for developers.
            public var debugDescription: String
            /// Creates details for an error that a program constructs itself, for example in tests.
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
    /// Forwards requests to the substitute model, or rejects them if there is none.
    public struct Executor: LanguageModelExecutor {
        /// The model whose requests the executor processes.
        public typealias Model = PrivateCloudComputeLanguageModel

        /// An empty configuration: all executors of this model are equivalent.
        public struct Configuration: Hashable, Sendable {}

        /// Creates an executor. Sessions call this; it never fails.
        public init(configuration: PrivateCloudComputeLanguageModel.Executor.Configuration) {}

        private let executors = ExecutorStore()

        public func prewarm(model: PrivateCloudComputeLanguageModel.Executor.Model, transcript: Transcript) {
            guard let substitute = PrivateCloudComputeLanguageModel.substitute?.model else { return }
            prewarm(substitute, transcript)
        }

        private func prewarm(_ substitute: some LanguageModel, _ transcript: Transcript) {
            // Prewarming is a hint and has no way to report errors; the request itself throws them.
            guard let executor = try? executors.executor(for: substitute) else { return }
            executor.prewarm(model: substitute, transcript: transcript)
        }

        /// Processes a request with the substitute model.
        ///
        /// - Throws: ``PrivateCloudComputeLanguageModel/Error/serviceUnavailable(_:)`` if there is no substitute
        ///   model.
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
