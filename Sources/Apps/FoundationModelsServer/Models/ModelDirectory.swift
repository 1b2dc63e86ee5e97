internal import Foundation
internal import FoundationModels
internal import Inference
internal import InstalledModels
internal import Synchronization

/// A model that clients name, with the adapter that belongs to the name.
struct ServedModel: Sendable {
    /// As the client has written it, for replies.
    var name: String
    var local: LocalModel
}

/// The models by their names: those that are installed, and files that the server was started with.
///
/// A name is that of `fm model list`, followed by a colon and the name of an adapter where one is wanted (`none` for the model alone).
/// `default` is the model that `fm` uses.
struct ModelDirectory: Sendable {
    let folder: ModelFolder
    /// The only models that are served, by name or path; empty for all that are installed.
    let served: [String]
    /// Other names of models.
    let aliases: [String: String]
    let contextSize: Int

    /// An entry of the list of models.
    struct Entry: Sendable {
        var name: String
        var path: String
        var adapter: String?
        var isEmbedder = false
    }

    /// The languages models and their adapters, then the models for embeddings.
    var entries: [Entry] {
        var entries: [Entry] = []
        if served.isEmpty {
            for model in folder.installed { entries.append(Entry(name: model.name, path: model.file.path)) }
        } else {
            for name in served { entries.append(Entry(name: Self.name(of: name), path: ModelStore.path(of: name))) }
        }
        for model in entries {
            for adapter in folder.installedAdapters where Self.fits(adapter.path, model.path) {
                let name = adapter.deletingPathExtension().lastPathComponent
                entries.append(Entry(name: "\(model.name):\(name)", path: model.path, adapter: adapter.path))
            }
        }
        for model in folder.installedEmbedders {
            entries.append(Entry(name: model.name, path: model.file.path, isEmbedder: true))
        }
        return entries
    }

    private static func name(of model: String) -> String {
        model.contains("/") ? URL(filePath: model).deletingPathExtension().lastPathComponent : model
    }

    /// What is known of files, by paths, until one of them is replaced: clients ask for the list of models again and again.
    private struct Known<Value: Sendable>: Sendable {
        var identities: [UInt64?]
        var value: Value
    }

    private static let knownFits = Mutex<[[String]: Known<Bool>]>([:])
    private static let knownShapes = Mutex<[[String]: Known<ModelShape?>]>([:])

    private static func known<Value: Sendable>(
        _ paths: [String], _ cache: borrowing Mutex<[[String]: Known<Value>]>, _ read: () -> Value
    ) -> Value {
        let identities = paths.map { GGUFFile.identity(ofModel: $0) }
        if let known = cache.withLock({ $0[paths] }), known.identities == identities { return known.value }
        let value = read()
        cache.withLock { $0[paths] = Known(identities: identities, value: value) }
        return value
    }

    private static func fits(_ adapter: String, _ model: String) -> Bool {
        // What cannot be read is offered to nobody.
        known([adapter, model], knownFits) { (try? AdapterFile(path: adapter).check(GGUFFile(path: model))) != nil }
    }

    /// The shape of a model; nil if its file cannot be read.
    static func shape(of path: String) -> ModelShape? {
        // A request that names the model gets the error of the file; a list only leaves the shape out.
        known([path], knownShapes) { (try? GGUFFile(path: path)).flatMap { try? ModelShape(file: $0) } }
    }

    /// - Throws: ``RequestError/unknownModel(_:)``
    func model(named name: String) throws(RequestError) -> ServedModel {
        let wanted = aliases[name] ?? name
        let parts = wanted.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let base = aliases[parts[0]] ?? parts[0]
        guard let path = path(of: base) else { throw .unknownModel(name) }
        var adapter: String?
        var usesInstalled = true
        // Ollama's clients add a tag.
        if parts.count == 2, parts[1] != "latest" {
            if parts[1] == "none" {
                usesInstalled = false
            } else if let known = folder.adapterPath(named: parts[1]), Self.fits(known, path) {
                adapter = known
            } else {
                throw .unknownModel(name)
            }
        }
        let local = LocalModel(
            path: path, maximumContext: contextSize, adapter: adapter, usesInstalledAdapter: usesInstalled, checksText: false)
        return ServedModel(name: name, local: local)
    }

    private func path(of name: String) -> String? {
        if served.isEmpty {
            if name == ModelStore.defaultName { return existing(ModelStore.defaultModelPath) }
            // A path is the server's business, not the client's.
            guard !name.contains("/"), !name.hasPrefix(".") else { return nil }
            if let known = ModelCatalogue.entry(named: name) { return existing(folder.path(of: known.name, setting: nil)) }
            return folder.installed.first { $0.name == name || $0.file.lastPathComponent == name }?.file.path
        }
        if name == ModelStore.defaultName { return ModelStore.path(of: served[0]) }
        return served.first { $0 == name || Self.name(of: $0) == name }.map { ModelStore.path(of: $0) }
    }

    private func existing(_ path: String) -> String? { FileManager.default.fileExists(atPath: path) ? path : nil }

    /// The path of a model for embeddings: `default` and `embedder` name the one that `fm` uses.
    ///
    /// - Throws: ``RequestError/unknownModel(_:)``
    func embedder(named name: String) throws(RequestError) -> String {
        let base = String((aliases[name] ?? name).split(separator: ":").first ?? "")
        if [ModelStore.defaultName, "embedder"].contains(base), let path = existing(ModelStore.embedderPath) { return path }
        guard let known = folder.installedEmbedders.first(where: { $0.name == base || $0.file.lastPathComponent == base }) else {
            throw .unknownModel(name)
        }
        return known.file.path
    }
}
