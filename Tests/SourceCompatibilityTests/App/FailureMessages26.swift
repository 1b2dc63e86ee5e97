import Foundation
import FoundationModels

/// The messages of the app for failed requests, with the errors of the first release.
struct AdviceDesk {
    enum Outcome: Equatable {
        case answer(String)
        case startOver(String)
        case sorry(String)
        case refused(String)
        case toolFailed(tool: String, reason: String)
    }

    let session: LanguageModelSession

    /// One `catch` clause for each case that the screen handles specifically.
    func ask(_ question: String) async throws -> Outcome {
        do {
            return .answer(try await session.respond(to: question).content)
        } catch LanguageModelSession.GenerationError.exceededContextWindowSize(let context) {
            return .startOver(context.debugDescription)
        } catch LanguageModelSession.GenerationError.guardrailViolation {
            return .sorry("Let us talk about something else.")
        } catch LanguageModelSession.GenerationError.unsupportedLanguageOrLocale(_) {
            return .sorry("I do not speak that language yet.")
        } catch LanguageModelSession.GenerationError.refusal(let refusal, _) {
            let explanation = try await refusal.explanation
            return .refused(explanation.content)
        } catch let error as LanguageModelSession.ToolCallError {
            return .toolFailed(tool: error.tool.name, reason: "\(error.underlyingError)")
        }
    }

    /// The same with one `catch` clause and a switch over all cases.
    func askBriefly(_ question: String) async -> String {
        do {
            return try await session.respond(to: question).content
        } catch let error as LanguageModelSession.GenerationError {
            return Self.name(of: error)
        } catch let error as LanguageModelSession.ToolCallError {
            return "tool: \(error.tool.name)"
        } catch is CancellationError {
            return "cancelled"
        } catch {
            return "other: \(error.localizedDescription)"
        }
    }

    static func name(of error: LanguageModelSession.GenerationError) -> String {
        switch error {
        case .exceededContextWindowSize: "exceededContextWindowSize"
        case .assetsUnavailable: "assetsUnavailable"
        case .guardrailViolation: "guardrailViolation"
        case .unsupportedGuide: "unsupportedGuide"
        case .unsupportedLanguageOrLocale: "unsupportedLanguageOrLocale"
        case .decodingFailure: "decodingFailure"
        case .rateLimited: "rateLimited"
        case .concurrentRequests: "concurrentRequests"
        case .refusal: "refusal"
        @unknown default: "unknown"
        }
    }

    static func debugDescription(of error: LanguageModelSession.GenerationError) -> String {
        switch error {
        case .exceededContextWindowSize(let context), .assetsUnavailable(let context),
            .guardrailViolation(let context), .unsupportedGuide(let context),
            .unsupportedLanguageOrLocale(let context), .decodingFailure(let context),
            .rateLimited(let context), .concurrentRequests(let context):
            return context.debugDescription
        case .refusal(_, let context):
            return context.debugDescription
        @unknown default:
            return ""
        }
    }

    /// The localized texts of the errors.
    static func alert(for error: LanguageModelSession.GenerationError) -> (title: String, body: String) {
        (
            error.errorDescription ?? "Something went wrong.",
            [error.failureReason, error.recoverySuggestion].compactMap { $0 }.joined(separator: " ")
        )
    }

    /// The explanation of a refusal, streamed while the model generates it.
    func explainRefusal(of question: String, each: (String) -> Void) async throws {
        do {
            try await session.respond(to: question, generating: NoteSummary.self)
        } catch let error as LanguageModelSession.GenerationError {
            guard case .refusal(let refusal, _) = error else { throw error }
            for try await snapshot in refusal.explanationStream {
                each(snapshot.content)
            }
        }
    }

    /// Errors that an app creates itself, for previews and tests.
    static let samples: [LanguageModelSession.GenerationError] = {
        let context = LanguageModelSession.GenerationError.Context(debugDescription: "A sample.")
        return [
            .exceededContextWindowSize(context), .assetsUnavailable(context), .guardrailViolation(context),
            .unsupportedGuide(context), .unsupportedLanguageOrLocale(context), .decodingFailure(context),
            .rateLimited(context), .concurrentRequests(context), .refusal(.init(transcriptEntries: []), context),
        ]
    }()
}
