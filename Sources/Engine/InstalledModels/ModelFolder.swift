package import Foundation
internal import Inference
internal import ProcessSettings

/// A folder with installed models, adapters, the sources of files, and what the user chose. `ModelStore` is the one of the user.
package struct ModelFolder: Sendable, Hashable {
    package let root: URL

    package init(root: URL) { self.root = root }

    /// `$XDG_DATA_HOME/foundation-models`, by default under `~/.local/share`
    /// (https://specifications.freedesktop.org/basedir-spec/).
    package static var standard: ModelFolder {
        ModelFolder(root: UserFolder.url(.dataFolder, default: ".local/share").appendingPathComponent("foundation-models"))
    }

    package var models: URL { root.appendingPathComponent("models") }
    package var embedders: URL { root.appendingPathComponent("embedders") }
    package var adapters: URL { root.appendingPathComponent("adapters") }
    /// Where installed files came from.
    package var sources: URL { root.appendingPathComponent("sources") }
    /// Models in the Hugging Face form that are downloaded to be imported.
    package var imports: URL { root.appendingPathComponent("imports") }

    // MARK: - Models

    /// An installed model: all files of a split one, in order, and their total size.
    package typealias Entry = (name: String, file: URL, files: [URL], bytes: Int)

    /// The installed language models, sorted by path.
    package var installed: [Entry] {
        contents(of: models).filter { $0.pathExtension == "gguf" && ShardName($0.path)?.number ?? 1 == 1 }.map { file in
            let name =
                ModelCatalogue.models.first { $0.fileName == file.lastPathComponent }?.name
                ?? file.deletingPathExtension().lastPathComponent
            return entry(name, ShardName(file.path)?.all.map { URL(fileURLWithPath: $0) } ?? [file])
        }
    }

    /// The installed models for embeddings, sorted by path.
    package var installedEmbedders: [Entry] {
        contents(of: embedders).filter { $0.pathExtension == "gguf" }.map {
            entry($0.deletingPathExtension().lastPathComponent, [$0])
        }
    }

    private func entry(_ name: String, _ files: [URL]) -> Entry {
        var status = stat()
        return (name, files[0], files, files.reduce(0) { $0 + (stat($1.path, &status) == 0 ? Int(status.st_size) : 0) })
    }

    private func contents(of folder: URL) -> [URL] {
        // A folder that does not exist yet is empty.
        let files = (try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)) ?? []
        return files.sorted { $0.path < $1.path }
    }

    /// The file of the model that is used where none is named: the given one (a catalogue name or a file) if there is one; else the one
    /// that the user chose; else the standard model of the catalogue; else the largest installed model.
    package func defaultPath(_ setting: String?) -> String {
        if let setting, setting != ModelStore.defaultName { return path(of: setting, setting: setting) }
        if let chosen = chosenModel, chosen != ModelStore.defaultName {
            let path = path(of: chosen, setting: setting)
            if FileManager.default.fileExists(atPath: path) { return path }
        }
        let standard = models.appendingPathComponent(ModelCatalogue.standard.fileName).path
        if FileManager.default.fileExists(atPath: standard) { return standard }
        return installed.max { $0.bytes < $1.bytes }?.file.path ?? standard
    }

    /// The path of a model, which need not exist: `name` is ``ModelStore/defaultName``, a catalogue name, the name of an installed file, or
    /// a path.
    package func path(of name: String, setting: String?) -> String {
        if name == ModelStore.defaultName { return defaultPath(setting) }
        if name.contains("/") { return name }
        if let known = ModelCatalogue.entry(named: name) { return models.appendingPathComponent(known.fileName).path }
        return file(name, in: models) ?? name
    }

    /// The path of a model for embeddings: a catalogue name, the name of an installed file, or a path.
    package func embedderPath(of name: String) -> String {
        if name.contains("/") { return name }
        if let known = EmbedderCatalogue.entry(named: name) { return embedders.appendingPathComponent(known.fileName).path }
        return file(name, in: embedders) ?? name
    }

    /// The path of an existing file, of whose name the ending may be left out.
    private func file(_ name: String, in folder: URL) -> String? {
        [name, name + ".gguf"].map { folder.appendingPathComponent($0).path }.first {
            FileManager.default.fileExists(atPath: $0)
        }
    }

    // MARK: - Adapters

    private static let adapterExtensions = ["fmadapter", "gguf"]

    /// The path of an adapter in the folder of adapters; nil if there is none.
    package func adapterPath(named name: String) -> String? {
        guard !name.contains("/"), !name.hasPrefix("."), !name.contains("\0") else { return nil }
        let candidates = [name] + Self.adapterExtensions.map { "\(name).\($0)" }
        return candidates.map { adapters.appendingPathComponent($0).path }.first { FileManager.default.fileExists(atPath: $0) }
    }

    /// The adapters in the folder of adapters, sorted by name.
    package var installedAdapters: [URL] {
        contents(of: adapters).filter { Self.adapterExtensions.contains($0.pathExtension) }
    }

    // MARK: - Choices

    /// The name of the model that the user chose; nil if none was chosen.
    package var chosenModel: String? { choice("model") }

    /// Chooses a model; nil removes the choice.
    package func choose(_ name: String?) throws { try write(name, "model") }

    /// The name of the adapter that the user chose; nil for none.
    package var chosenAdapter: String? { choice("adapter") }

    /// Chooses an adapter; nil removes the choice.
    package func chooseAdapter(_ name: String?) throws { try write(name, "adapter") }

    private func choice(_ file: String) -> String? {
        // If the file does not exist, nothing was chosen.
        guard let text = try? String(contentsOf: root.appendingPathComponent(file), encoding: .utf8) else { return nil }
        let name = text.trimmingCharacters(in: .whitespacesAndNewlines)
        return name.isEmpty ? nil : name
    }

    private func write(_ name: String?, _ file: String) throws {
        try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
        try Data((name ?? "").utf8).write(to: root.appendingPathComponent(file), options: .atomic)
    }
}
