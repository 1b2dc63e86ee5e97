import Foundation
import FoundationModels

/// Long texts are sent to the larger model if it is available.
struct CloudDesk {
    let cloud = PrivateCloudComputeLanguageModel()

    var notice: String? {
        switch cloud.availability {
        case .available:
            return quotaNotice
        case .unavailable(let reason):
            switch reason {
            case .deviceNotEligible: return "This device works on its own."
            case .systemNotReady: return "The larger model is not ready yet."
            @unknown default: return "The larger model is not available."
            }
        }
    }

    private var quotaNotice: String? {
        let usage = cloud.quotaUsage
        switch usage.status {
        case .belowLimit(let state):
            return state.isApproachingLimit ? "Only a few requests are left today." : nil
        case .limitReached:
            usage.limitIncreaseSuggestion?.show()
            let date = usage.resetDate?.formatted(.iso8601) ?? "tomorrow"
            return "No requests are left until \(date)."
        @unknown default:
            return usage.isLimitReached ? "No requests are left." : nil
        }
    }

    /// The right model for a text of this length.
    func model(forTokens count: Int) async throws -> any LanguageModel {
        guard count > SystemLanguageModel.default.contextSize, cloud.isAvailable else {
            return SystemLanguageModel.default
        }
        let size = try await cloud.contextSize
        return count < size ? cloud : SystemLanguageModel.default
    }

    func session(forTokens count: Int) async throws -> LanguageModelSession {
        LanguageModelSession(model: try await model(forTokens: count), instructions: "Summarize contracts.")
    }

    func speaks(_ locale: Locale) async throws -> Bool {
        let languages = try await cloud.supportedLanguages
        guard !languages.isEmpty else { return false }
        return try await cloud.supportsLocale(locale)
    }

    func summarize(_ text: String) async -> String {
        let session = LanguageModelSession(model: cloud)
        do {
            return try await session.respond(
                to: text, contextOptions: ContextOptions(reasoningLevel: .custom("thorough"))
            ).content
        } catch let error as PrivateCloudComputeLanguageModel.Error {
            switch error {
            case .networkFailure(let details): return details.debugDescription
            case .quotaLimitReached(let details): return details.resetDate?.description ?? details.debugDescription
            case .serviceUnavailable: return "Out of service."
            @unknown default: return error.localizedDescription
            }
        } catch {
            return error.localizedDescription
        }
    }
}
