public import Foundation
internal import Inference
internal import InstalledModels

extension SystemLanguageModel {
    /// A low-rank adapter (LoRA) for the base model: a `.fmadapter` file, which `fm adapter train` writes, or a GGUF adapter, as llama.cpp
    /// reads it. It is used beside the weights, which sessions with other adapters share; an adapter of the embeddings or the output
    /// matrix is merged into a copy of the weights.
    @available(*, deprecated)
    public struct Adapter {
        private let file: AdapterFile

        var path: String { file.path }

        /// What the adapter's creator has added to the file (`AdapterInformation.creatorDefined`); of a GGUF adapter, all metadata that are
        /// strings, such as `general.name`.
        public var creatorDefinedMetadata: [String: Any] {
            let mark = "creator."
            guard file.texts["format"] == "fmadapter" else { return file.texts }
            let own = file.texts.filter { $0.key.hasPrefix(mark) }
            return Dictionary(uniqueKeysWithValues: own.map { (String($0.key.dropFirst(mark.count)), $0.value) })
        }

        /// Loads an adapter from a file.
        ///
        /// - Throws: ``AssetError/invalidAsset(_:)`` if the file is not an adapter, or was made for another model.
        public init(fileURL: URL) throws {
            do {
                let file = try AdapterFile(path: fileURL.path)
                // Without an installed model the check is skipped; loading the model with the adapter repeats it.
                if let model = try? GGUFFile(path: ModelStore.defaultModelPath) { try file.check(model) }
                self.file = file
            } catch {
                throw AssetError.invalidAsset(.init(debugDescription: "\(fileURL.lastPathComponent): \(error)"))
            }
        }

        /// Loads an adapter by name: the file `NAME.fmadapter` or `NAME.gguf` in the directory `adapters` beside the models.
        ///
        /// - Throws: ``AssetError/invalidAdapterName(_:)`` if the name is not valid: names consist of letters, digits and underscores;
        ///   ``AssetError/compatibleAdapterNotFound(_:)`` if there is no such file for this model.
        public init(name: String) throws {
            guard !name.isEmpty,
                name.unicodeScalars.allSatisfy({ $0 == "_" || $0.properties.isAlphabetic || $0.properties.numericType != nil })
            else {
                throw AssetError.invalidAdapterName(
                    .init(
                        debugDescription:
                            "“\(name)” is not a valid adapter name: names consist of letters, digits and underscores."))
            }
            guard let path = ModelStore.adapterPath(named: name) else {
                throw AssetError.compatibleAdapterNotFound(
                    .init(debugDescription: "There is no adapter “\(name)” in \(ModelStore.adapterDirectory.path)."))
            }
            do {
                try self.init(fileURL: URL(filePath: path))
            } catch {
                throw AssetError.compatibleAdapterNotFound(
                    .init(debugDescription: "There is no adapter “\(name)” for this model: \(error.localizedDescription)"))
            }
        }

        /// Does nothing: adapters need no preparation.
        @concurrent public func compile() async throws {}

        /// The given name, if an adapter with this name is compatible with the model; otherwise an empty array.
        public static func compatibleAdapterIdentifiers(name: String) -> [String] {
            // The initializer reports why an adapter is not compatible.
            (try? Adapter(name: name)) == nil ? [] : [name]
        }

        /// Does nothing: the files in the adapters directory belong to the user.
        public static func removeObsoleteAdapters() throws {}

        /// An error of loading an adapter.
        public enum AssetError: Swift.Error, LocalizedError {
            /// The file is not an adapter, or was made for another model.
            case invalidAsset(SystemLanguageModel.Adapter.AssetError.Context)
            /// The name is not a valid adapter name.
            case invalidAdapterName(SystemLanguageModel.Adapter.AssetError.Context)
            /// There is no adapter with this name for the model.
            case compatibleAdapterNotFound(SystemLanguageModel.Adapter.AssetError.Context)

            /// Details of the error.
            public struct Context: Sendable {
                /// A description of the error for developers.
                public let debugDescription: String
                /// Creates details for an error that a program constructs itself, for example in tests.
                public init(debugDescription: String) { self.debugDescription = debugDescription }
            }

            public var errorDescription: String? {
                switch self {
                case .invalidAsset(let context), .invalidAdapterName(let context), .compatibleAdapterNotFound(let context):
                    context.debugDescription
                }
            }

            public var recoverySuggestion: String? { "Use the base model." }
        }
    }

    /// Creates the base model with an adapter.
    @available(*, deprecated)
    public convenience init(
        adapter: SystemLanguageModel.Adapter, guardrails: SystemLanguageModel.Guardrails = .default
    ) {
        self.init(file: nil, adapter: adapter.path, guardrails: guardrails)
    }
}
