public import Foundation
public import Observation

/// Apple's servers, which answer programs on Apple's devices only: here the model says that it is unavailable.
///
/// For a larger model than this machine can run, use one that speaks to a server of your own.
public final class PrivateCloudComputeLanguageModel: Sendable, Observable {
    /// Whether the model can be used.
    @frozen public enum Availability: Equatable, Sendable {
        case available
        case unavailable(PrivateCloudComputeLanguageModel.Availability.UnavailableReason)

        /// Why the model cannot be used.
        public enum UnavailableReason: Equatable, Sendable, Hashable {
            case deviceNotEligible
            case systemNotReady
        }
    }

    public convenience init() { self.init(isReachable: false) }

    private init(isReachable: Bool) {}

    public var availability: PrivateCloudComputeLanguageModel.Availability { .unavailable(.deviceNotEligible) }
    public var quotaUsage: PrivateCloudComputeLanguageModel.QuotaUsage {
        QuotaUsage(status: .belowLimit(.init(isApproachingLimit: false)), limitIncreaseSuggestion: nil, resetDate: nil)
    }
    public var isAvailable: Bool { availability == .available }
    public var capabilities: LanguageModelCapabilities {
        LanguageModelCapabilities([.vision, .guidedGeneration, .reasoning, .toolCalling])
    }
    public var executorConfiguration: PrivateCloudComputeLanguageModel.Executor.Configuration { Executor.Configuration() }

    /// - Throws: ``PrivateCloudComputeLanguageModel/Error/serviceUnavailable(_:)``.
    public nonisolated(nonsending) var contextSize: Int {
        get async throws { throw Self.unavailable }
    }

    /// - Throws: ``PrivateCloudComputeLanguageModel/Error/serviceUnavailable(_:)``.
    public nonisolated(nonsending) var supportedLanguages: Set<Locale.Language> {
        get async throws { throw Self.unavailable }
    }

    /// - Throws: ``PrivateCloudComputeLanguageModel/Error/serviceUnavailable(_:)``.
    public nonisolated(nonsending) func supportsLocale(_ locale: Locale = Locale.current) async throws -> Bool {
        throw Self.unavailable
    }

    fileprivate static var unavailable: Error {
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
        public var status: PrivateCloudComputeLanguageModel.QuotaUsage.Status
        public var limitIncreaseSuggestion: PrivateCloudComputeLanguageModel.QuotaUsage.LimitIncreaseSuggestion?
        public var resetDate: Date?
        public var isLimitReached: Bool {
            if case .limitReached = status { true } else { false }
        }

        public enum Status: Sendable {
            case belowLimit(PrivateCloudComputeLanguageModel.QuotaUsage.Status.BelowLimit)
            case limitReached(PrivateCloudComputeLanguageModel.QuotaUsage.Status.LimitReached)

            public struct BelowLimit: Sendable {
                public var isApproachingLimit: Bool
            }

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
        case networkFailure(PrivateCloudComputeLanguageModel.Error.NetworkFailure)
        case quotaLimitReached(PrivateCloudComputeLanguageModel.Error.QuotaLimitReached)
        case serviceUnavailable(PrivateCloudComputeLanguageModel.Error.ServiceUnavailable)

        public struct NetworkFailure: Sendable {
            public var debugDescription: String
            public init(debugDescription: String) { self.debugDescription = debugDescription }
        }

        public struct QuotaLimitReached: Sendable {
            public var limitIncreaseSuggestion: PrivateCloudComputeLanguageModel.QuotaUsage.LimitIncreaseSuggestion?
            public var resetDate: Date?
            public var debugDescription: String

            public init(
                limitIncreaseSuggestion: PrivateCloudComputeLanguageModel.QuotaUsage.LimitIncreaseSuggestion? = nil,
                resetDate: Date? = nil, debugDescription: String
            ) {
                self.limitIncreaseSuggestion = limitIncreaseSuggestion
                self.resetDate = resetDate
                self.debugDescription = debugDescription
            }
        }

        public struct ServiceUnavailable: Sendable {
            public var debugDescription: String
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
    /// Refuses each request.
    public struct Executor: LanguageModelExecutor {
        public typealias Model = PrivateCloudComputeLanguageModel

        public struct Configuration: Hashable, Sendable {}

        public init(configuration: PrivateCloudComputeLanguageModel.Executor.Configuration) {}

        public func prewarm(model: PrivateCloudComputeLanguageModel.Executor.Model, transcript: Transcript) {}

        /// - Throws: ``PrivateCloudComputeLanguageModel/Error/serviceUnavailable(_:)``.
        public nonisolated(nonsending) func respond(
            to request: LanguageModelExecutorGenerationRequest, model: PrivateCloudComputeLanguageModel,
            streamingInto channel: LanguageModelExecutorGenerationChannel
        ) async throws {
            throw PrivateCloudComputeLanguageModel.unavailable
        }
    }
}
