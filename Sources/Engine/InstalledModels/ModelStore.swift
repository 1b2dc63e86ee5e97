package import Foundation
internal import Inference
import ProcessSettings

/// The model directory of this machine, and the choice of the default model.
package enum ModelStore {
    /// `$XDG_DATA_HOME/foundation-models/models`, by default under `~/.local/share`
    /// (https://specifications.freedesktop.org/basedir-spec/).
    package static var directory: URL {
        UserFolder.url(.dataFolder, default: ".local/share").appendingPathComponent("foundation-models/models")
    }

    /// The directory with the sources of installed files, beside the model directory.
    package static var sourceDirectory: URL { directory.deletingLastPathComponent().appendingPathComponent("sources") }

    /// The directory of adapters that are loaded by name, beside the model directory.
    package static var adapterDirectory: URL { directory.deletingLastPathComponent().appendingPathComponent("adapters") }

    /// The name of the model that is used where none is named.
    package static let defaultName = "default"

    /// The file of the model that is used where none is named: the environment variable `FM_MODEL` (a catalogue name or a file) if it is
    /// set; else the model chosen with `fm model use`; else the standard model of the catalogue; else the largest installed model.
    package static var defaultModelPath: String {
        if let name = ProcessInfo.processInfo.environment["FM_MODEL"], !name.isEmpty, name != defaultName {
            return path(of: name)
        }
        if let chosen = chosenModel, chosen != defaultName, FileManager.default.fileExists(atPath: path(of: chosen)) {
            return path(of: chosen)
        }
        let standard = directory.appendingPathComponent(ModelCatalogue.standard.fileName).path
        if FileManager.default.fileExists(atPath: standard) { return standard }
        return installed.max { $0.bytes < $1.bytes }?.file.path ?? standard
    }

    /// The path of a model, which need not exist: `name` is ``defaultName``, a catalogue name, the name of an installed file, or a path.
    package static func path(of name: String) -> String {
        if name == defaultName { return defaultModelPath }
        if name.contains("/") { return name }
        if let known = ModelCatalogue.entry(named: name) { return directory.appendingPathComponent(known.fileName).path }
        for candidate in [name, name + ".gguf"] {
            let file = directory.appendingPathComponent(candidate).path
            if FileManager.default.fileExists(atPath: file) { return file }
        }
        return name
    }

    /// The installed models, sorted by path. `files` are all files of a split model, in order; `bytes` is their total
    /// size.
    package static var installed: [(name: String, file: URL, files: [URL], bytes: Int)] {
        // If the directory does not exist yet, no model is installed.
        let files =
            (try? FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: [.fileSizeKey])) ?? []
        return files.filter { $0.pathExtension == "gguf" && ShardName($0.path)?.number ?? 1 == 1 }.sorted { $0.path < $1.path }
            .map { file in
                let name =
                    ModelCatalogue.models.first { $0.fileName == file.lastPathComponent }?.name
                    ?? file.deletingPathExtension().lastPathComponent
                let files = ShardName(file.path)?.all.map { URL(fileURLWithPath: $0) } ?? [file]
                var status = stat()
                let bytes = files.reduce(0) { $0 + (stat($1.path, &status) == 0 ? Int(status.st_size) : 0) }
                return (name, file, files, bytes)
            }
    }

    private static var choiceFile: URL { directory.deletingLastPathComponent().appendingPathComponent("model") }

    /// The name of the model chosen with ``choose(_:)``; nil if none was chosen.
    package static var chosenModel: String? {
        // If the file does not exist, no model was chosen.
        guard let text = try? String(contentsOf: choiceFile, encoding: .utf8) else { return nil }
        let name = text.trimmingCharacters(in: .whitespacesAndNewlines)
        return name.isEmpty ? nil : name
    }

    /// Makes a model the system model; nil removes the choice.
    package static func choose(_ name: String?) throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try Data((name ?? "").utf8).write(to: choiceFile, options: .atomic)
    }
}

// MARK: - Adapters

extension ModelStore {
    private static let adapterExtensions = ["fmadapter", "gguf"]

    /// The path of an adapter: an existing file, or a name in the directory of adapters; nil if there is none.
    package static func adapterPath(of name: String) -> String? {
        var isDirectory: ObjCBool = false
        let exists = FileManager.default.fileExists(atPath: name, isDirectory: &isDirectory)
        // A folder of this name is rather something else than an adapter.
        if exists, !isDirectory.boolValue || name.contains("/") { return name }
        return adapterPath(named: name) ?? (exists ? name : nil)
    }

    /// The path of an adapter in the directory of adapters; nil if there is none.
    package static func adapterPath(named name: String) -> String? {
        guard !name.contains("/"), !name.hasPrefix("."), !name.contains("\0") else { return nil }
        let candidates = [name] + adapterExtensions.map { "\(name).\($0)" }
        return candidates.map { adapterDirectory.appendingPathComponent($0).path }.first {
            FileManager.default.fileExists(atPath: $0)
        }
    }

    /// The adapters in the directory of adapters, sorted by name.
    package static var installedAdapters: [URL] {
        // Without the directory there are none.
        let files = (try? FileManager.default.contentsOfDirectory(at: adapterDirectory, includingPropertiesForKeys: nil)) ?? []
        return files.filter { adapterExtensions.contains($0.pathExtension) }.sorted { $0.path < $1.path }
    }

    private static var adapterChoiceFile: URL { directory.deletingLastPathComponent().appendingPathComponent("adapter") }

    /// The name of the adapter chosen with ``chooseAdapter(_:)``; nil for none.
    package static var chosenAdapter: String? {
        // If the file does not exist, none was chosen.
        guard let text = try? String(contentsOf: adapterChoiceFile, encoding: .utf8) else { return nil }
        let name = text.trimmingCharacters(in: .whitespacesAndNewlines)
        return name.isEmpty ? nil : name
    }

    /// Makes an adapter the one that commands use; nil removes the choice.
    package static func chooseAdapter(_ name: String?) throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try Data((name ?? "").utf8).write(to: adapterChoiceFile, options: .atomic)
    }
}
