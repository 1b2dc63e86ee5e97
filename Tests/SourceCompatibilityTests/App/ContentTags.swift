import Foundation
import FoundationModels

/// Tags for a text, from the content tagging model.
@Generable
struct ContentTags: Equatable {
    @Guide(description: "What it is about", .maximumCount(3))
    let topics: [String]

    @Guide(description: "How it feels", .maximumCount(2))
    let emotions: [String]

    @Guide(.maximumCount(2)) let actions: [String]
    @Guide(.maximumCount(2)) let objects: [String]
}

struct Tagger {
    private let session: LanguageModelSession

    init() {
        session = LanguageModelSession(model: SystemLanguageModel(useCase: .contentTagging))
    }

    init(instructions: String) {
        let model = SystemLanguageModel(useCase: .contentTagging, guardrails: .default)
        session = LanguageModelSession(model: model, instructions: instructions)
    }

    init(session: LanguageModelSession) {
        self.session = session
    }

    func tags(of text: String, options: GenerationOptions = GenerationOptions()) async throws -> ContentTags {
        try await session.respond(to: text, generating: ContentTags.self, options: options).content
    }
}

/// The text is only transformed, so it is not rejected because of its topic.
struct Proofreader {
    let model = SystemLanguageModel(guardrails: .permissiveContentTransformations)

    func correct(_ text: String, options: GenerationOptions) async throws -> String {
        let session = LanguageModelSession(model: model) {
            "Correct the spelling. Change nothing else."
        }
        return try await session.respond(to: text, options: options).content
    }
}

/// Facts about the model for the about screen.
enum ModelFacts {
    static func facts(about model: SystemLanguageModel) -> [String: String] {
        [
            "window": "\(model.contextSize)",
            "variant": model.variant.displayName,
            "sees": model.capabilities.contains(.vision) ? "yes" : "no",
            "forms": model.capabilities.contains(.guidedGeneration) ? "yes" : "no",
            "tools": model.capabilities.contains(.toolCalling) ? "yes" : "no",
            "thinks": model.capabilities.contains(.reasoning) ? "yes" : "no",
        ]
    }

    static func isNewest(_ variant: SystemLanguageModel.Variant) -> Bool {
        variant == .coreAdvanced3 || variant == SystemLanguageModel.Variant.core3
    }
}

/// An adapter trained by the developers of the app, with the API of the first release.
enum ToneAdapters {
    static func session(withAdapterAt url: URL) throws -> LanguageModelSession {
        let adapter = try SystemLanguageModel.Adapter(fileURL: url)
        let model = SystemLanguageModel(adapter: adapter)
        return LanguageModelSession(model: model)
    }

    static func model(named name: String) async throws -> SystemLanguageModel {
        try SystemLanguageModel.Adapter.removeObsoleteAdapters()
        let adapter = try SystemLanguageModel.Adapter(name: name)
        try await adapter.compile()
        _ = adapter.creatorDefinedMetadata["version"] as? String
        return SystemLanguageModel(adapter: adapter, guardrails: .default)
    }

    static func identifiers(of name: String) -> [String] {
        SystemLanguageModel.Adapter.compatibleAdapterIdentifiers(name: name)
    }

    static func message(for error: any Error) -> String {
        switch error {
        case SystemLanguageModel.Adapter.AssetError.invalidAsset(let context):
            return context.debugDescription
        case let error as SystemLanguageModel.Adapter.AssetError:
            switch error {
            case .invalidAsset(let context), .invalidAdapterName(let context), .compatibleAdapterNotFound(let context):
                return "\(error.errorDescription ?? ""): \(context.debugDescription)"
            @unknown default:
                return error.recoverySuggestion ?? ""
            }
        default:
            return error.localizedDescription
        }
    }
}
