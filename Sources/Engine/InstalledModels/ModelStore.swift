package import Foundation
internal import ProcessSettings

/// The model directory of this machine, and the choice of the default model.
package enum ModelStore {
    /// The folder of the user.
    package static var folder: ModelFolder { .standard }

    package static var directory: URL { folder.models }

    /// The directory with the sources of installed files, beside the model directory.
    package static var sourceDirectory: URL { folder.sources }

    /// The directory of adapters that are loaded by name, beside the model directory.
    package static var adapterDirectory: URL { folder.adapters }

    /// The name of the model that is used where none is named.
    package static let defaultName = "default"

    /// The file of the model that is used where none is named: the environment variable `FM_MODEL` (a catalogue name or a file) if it is
    /// set; else as ``ModelFolder/defaultPath(_:)`` says.
    package static var defaultModelPath: String { folder.defaultPath(Setting.model.value) }

    /// The path of a model, which need not exist: `name` is ``defaultName``, a catalogue name, the name of an installed file, or a path.
    package static func path(of name: String) -> String { folder.path(of: name, setting: Setting.model.value) }

    /// The name of the model that the user chose; nil if none was chosen.
    package static var chosenModel: String? { folder.chosenModel }
}

// MARK: - Adapters

extension ModelStore {
    /// The path of an adapter: an existing file, or a name in the directory of adapters; nil if there is none.
    package static func adapterPath(of name: String) -> String? {
        var isDirectory: ObjCBool = false
        let exists = FileManager.default.fileExists(atPath: name, isDirectory: &isDirectory)
        // A folder of this name is rather something else than an adapter.
        if exists, !isDirectory.boolValue || name.contains("/") { return name }
        return adapterPath(named: name) ?? (exists ? name : nil)
    }

    /// The path of an adapter in the directory of adapters; nil if there is none.
    package static func adapterPath(named name: String) -> String? { folder.adapterPath(named: name) }

    /// The name of the adapter that the user chose; nil for none.
    package static var chosenAdapter: String? { folder.chosenAdapter }
}
