import Foundation
import FoundationModels

/// The messages of the app for failed requests, with the errors of the second release.
struct ConciergeDesk {
    let session: LanguageModelSession

    enum Outcome: Equatable {
        case answer(String)
        case tooLong(by: Int)
        case later(Date?)
        case refused(String)
        case busy
        case unreadable(String)
        case unavailable
        case other(String)
    }

    func ask(_ question: String) async -> Outcome {
        do {
            return .answer(try await session.respond(to: question).content)
        } catch LanguageModelError.contextSizeExceeded(let details) {
            return .tooLong(by: details.tokenCount - details.contextSize)
        } catch LanguageModelError.rateLimited(let details) {
            return .later(details.resetDate)
        } catch LanguageModelError.refusal(let refusal) {
            let explanation = try? await refusal.explanation.content
            return .refused(explanation ?? refusal.debugDescription)
        } catch let error as LanguageModelError {
            return .other(Self.name(of: error))
        } catch LanguageModelSession.Error.concurrentRequests {
            return .busy
        } catch let error as LanguageModelSession.ToolCallError {
            return .other(error.errorDescription ?? error.tool.name)
        } catch {
            return .other(error.localizedDescription)
        }
    }

    func plan(_ wish: String) async -> Outcome {
        do {
            let summary = try await session.respond(to: wish, generating: NoteSummary.self).content
            return .answer(summary.title)
        } catch let error as GeneratedContent.ParsingError {
            return .unreadable(error.rawContent)
        } catch SystemLanguageModel.Error.assetsUnavailable {
            return .unavailable
        } catch let error as LanguageModelSession.Error {
            switch error {
            case .concurrentRequests: return .busy
            case .transcriptMutationWhileResponding: return .other("mutation")
            @unknown default: return .other("session")
            }
        } catch {
            return .other("\(type(of: error))")
        }
    }

    static func name(of error: LanguageModelError) -> String {
        switch error {
        case .contextSizeExceeded: "contextSizeExceeded"
        case .rateLimited: "rateLimited"
        case .guardrailViolation: "guardrailViolation"
        case .refusal: "refusal"
        case .unsupportedCapability: "unsupportedCapability"
        case .unsupportedTranscriptContent: "unsupportedTranscriptContent"
        case .unsupportedGenerationGuide: "unsupportedGenerationGuide"
        case .unsupportedLanguageOrLocale: "unsupportedLanguageOrLocale"
        case .timeout: "timeout"
        @unknown default: "unknown"
        }
    }

    /// The advice for the user, with the details of each error.
    static func advice(for error: LanguageModelError) -> String {
        switch error {
        case .contextSizeExceeded(let details):
            return "Shorten it: \(details.tokenCount) tokens do not fit into \(details.contextSize)."
        case .rateLimited(let details):
            guard let date = details.resetDate else { return "Try again later." }
            return "Try again after \(date.formatted(.iso8601))."
        case .unsupportedCapability(let details) where details.capability == .vision:
            return "This model cannot see pictures."
        case .unsupportedCapability(let details):
            return details.debugDescription
        case .unsupportedTranscriptContent(let details):
            return "\(details.unsupportedContent.count) entries cannot be read."
        case .unsupportedGenerationGuide(let details):
            return "The model cannot follow the guides of \(details.schemaName ?? "a schema")."
        case .unsupportedLanguageOrLocale(let details):
            return "The model does not speak \(details.languageCode.identifier)."
        case .guardrailViolation, .refusal, .timeout:
            return error.errorDescription ?? error.debugDescription
        @unknown default:
            return error.localizedDescription
        }
    }

    /// One error of each kind, for previews and tests.
    static let samples: [LanguageModelError] = [
        .contextSizeExceeded(.init(contextSize: 4096, tokenCount: 5000, debugDescription: "too long")),
        .rateLimited(.init(resetDate: nil, debugDescription: "too often")),
        .guardrailViolation(.init(debugDescription: "unsafe")),
        .refusal(.init(explanation: "I would rather not.", debugDescription: "refused")),
        .unsupportedCapability(.init(capability: .vision, debugDescription: "no eyes")),
        .unsupportedTranscriptContent(.init(unsupportedContent: [], debugDescription: "odd entry")),
        .unsupportedGenerationGuide(.init(schemaName: "NoteSummary", debugDescription: "odd guide")),
        .unsupportedLanguageOrLocale(.init(languageCode: "tlh", debugDescription: "no Klingon")),
        .timeout(.init(debugDescription: "too slow", metadata: ["seconds": 30])),
    ]
}
