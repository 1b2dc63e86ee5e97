import Foundation
import FoundationModels

/// The status of the model for the settings screen.
struct ModelStatus: Equatable {
    var isReady: Bool
    var message: String

    init(_ availability: SystemLanguageModel.Availability) {
        switch availability {
        case .available:
            isReady = true
            message = "Ready."
        case .unavailable(.deviceNotEligible):
            isReady = false
            message = "This device cannot run the model."
        case .unavailable(.appleIntelligenceNotEnabled):
            isReady = false
            message = "Turn the model on in the settings."
        case .unavailable(.modelNotReady):
            isReady = false
            message = "The model is still on its way."
        case .unavailable(let other):
            isReady = false
            message = "The model is not available: \(other)"
        }
    }

    init(reason: SystemLanguageModel.Availability.UnavailableReason) {
        isReady = false
        switch reason {
        case .deviceNotEligible: message = "Not on this device."
        case .appleIntelligenceNotEnabled: message = "Switched off."
        case .modelNotReady: message = "Not yet."
        @unknown default: message = "Not for a reason that this app does not know."
        }
    }
}

/// Shows the button only if the model is available.
enum SuggestionFeature {
    static var isVisible: Bool {
        SystemLanguageModel.default.isAvailable
    }

    static var status: ModelStatus {
        ModelStatus(SystemLanguageModel.default.availability)
    }

    static func suggestion(for text: String, options: GenerationOptions) async throws -> String? {
        let model = SystemLanguageModel.default
        guard case .available = model.availability else { return nil }
        let session = LanguageModelSession(model: model, instructions: "Suggest how to go on, in a few words.")
        return try await session.respond(to: text, options: options).content
    }
}

/// The languages that the app can offer.
enum ModelLanguages {
    static func canAnswer(in locale: Locale) -> Bool {
        SystemLanguageModel.default.supportsLocale(locale)
    }

    static var canAnswerHere: Bool {
        SystemLanguageModel.default.supportsLocale()
    }

    /// The usual check before a feature is shown.
    static var listsCurrentLanguage: Bool {
        SystemLanguageModel.default.supportedLanguages.contains(Locale.current.language)
    }

    static var codes: [String] {
        SystemLanguageModel.default.supportedLanguages
            .compactMap { $0.languageCode?.identifier }
            .sorted()
    }

    static func contains(_ language: Locale.Language) -> Bool {
        SystemLanguageModel.default.supportedLanguages.contains { $0.languageCode == language.languageCode }
    }
}

/// Prewarms the model while the user is typing, and never sends two requests concurrently.
struct LetterWriter {
    let session: LanguageModelSession

    func screenAppeared() {
        session.prewarm()
    }

    func personStartedTyping() {
        session.prewarm(promptPrefix: Prompt("Write a letter about "))
    }

    func write(about topic: String) async throws -> String? {
        guard !session.isResponding else { return nil }
        return try await session.respond(to: "Write a letter about \(topic)").content
    }
}
