public import Foundation
public import FoundationModelsGGUF
internal import InstalledModels

/// What a model is for.
public enum ModelKind: Hashable, Sendable {
    /// It answers: a language model.
    case language
    /// It makes vectors of texts.
    case embedding
}

/// A model that is installed.
public struct InstalledModel: Hashable, Identifiable, Sendable {
    /// The name by which it is chosen: that of the catalogue, else that of its file.
    public let name: String
    /// What the model is for.
    public let kind: ModelKind
    /// The GGUF file; of a model in several files, the first one.
    public let url: URL
    /// All files.
    public let files: [URL]
    /// The size of all files.
    public let bytes: Int
    /// Where the file came from; nil if it was copied into the folder.
    public let source: String?

    public var id: URL { url }

    /// What the catalogue says of the model; nil for other models.
    public var catalogueEntry: CatalogueModel? { CatalogueModel.named(url.lastPathComponent) }

    /// The title of the catalogue, else the name.
    public var title: String { catalogueEntry?.title ?? name }

    /// The memory in bytes that the model needs while it runs.
    public var memory: Int { ModelCatalogue.memory(forBytes: bytes) }

    /// The model for sessions. Any GGUF file can be used, whatever folder it is in:
    ///
    /// ```swift
    /// let session = LanguageModelSession(model: model.languageModel)
    /// ```
    public var languageModel: GGUFLanguageModel { GGUFLanguageModel(url: url) }

    init(_ entry: ModelFolder.Entry, kind: ModelKind, source: String?) {
        self.kind = kind
        self.source = source
        (name, url, files, bytes) = (entry.name, entry.file, entry.files, entry.bytes)
    }
}

/// A model that can be installed by name.
public struct CatalogueModel: Hashable, Identifiable, Sendable {
    /// The name by which it is installed, in lower case.
    public let name: String
    /// The name for people.
    public let title: String
    /// What the model is for.
    public let kind: ModelKind
    /// The size of the download in bytes.
    public let bytes: Int
    /// The name of its license.
    public let license: String
    /// The languages that its publisher names, as codes of ISO 639-1; empty if none are named.
    public let languages: [String]
    /// The publisher's score of MMLU-Pro in per cent, without reasoning where there are two; nil if it is not known.
    public let score: Double?
    /// The name of the file that it is installed as.
    let fileName: String

    public var id: String { name }

    /// The memory in bytes that the model needs while it runs.
    public var memory: Int { ModelCatalogue.memory(forBytes: bytes) }

    /// All language models in ascending order of size, then the models for embeddings.
    public static let all = ModelCatalogue.models.map { CatalogueModel($0) } + EmbedderCatalogue.models.map { CatalogueModel($0) }

    init(_ model: PublishedModel) {
        (name, title, kind, bytes) = (model.name, model.title, .language, model.size)
        (license, languages, score, fileName) = (model.license, model.languages, model.score, model.fileName)
    }

    private init(_ model: PublishedEmbedder) {
        (name, title, kind, bytes) = (model.name, model.title, .embedding, model.size)
        (license, languages, score, fileName) = (model.license, [], nil, model.fileName)
    }

    /// The model with this name or title, ignoring case, or with this file name.
    static func named(_ name: String) -> CatalogueModel? {
        let wanted = name.lowercased()
        return all.first { $0.name == wanted || $0.title.lowercased() == wanted || $0.fileName == name }
    }
}
