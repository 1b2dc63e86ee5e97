public import Foundation
internal import Inference

extension SystemLanguageModel {
    /// A small trained module over the base model: a low-rank adapter (LoRA) in a GGUF file, as `convert_lora_to_gguf.py` of
    /// llama.cpp writes it. It is merged into the weights when the model is loaded.
    @available(*, deprecated)
    public struct Adapter {
        private let file: AdapterFile

        var path: String { file.path }

        /// The texts in the adapter's file that say something about it, such as `general.name`.
        public var creatorDefinedMetadata: [String: Any] { file.texts }

        /// An adapter in a file.
        ///
        /// - Throws: ``AssetError/invalidAsset(_:)`` if the file is no adapter, or was made for another model.
        public init(fileURL: URL) throws {
            do {
                let file = try AdapterFile(path: fileURL.path)
                // A model that is not installed yet cannot be compared; loading both will.
                if let model = try? GGUFFile(path: ModelStore.systemModelPath) { try file.check(model) }
                self.file = file
            } catch {
                throw AssetError.invalidAsset(.init(debugDescription: "\(fileURL.lastPathComponent): \(error)"))
            }
        }

        /// An adapter by its name: the file `NAME.gguf` in the folder `adapters` beside the models.
        ///
        /// - Throws: ``AssetError/invalidAdapterName(_:)`` for what is no name,
        ///   ``AssetError/compatibleAdapterNotFound(_:)`` if there is no such file for this model.
        public init(name: String) throws {
            guard !name.isEmpty, !name.hasPrefix("."), !name.contains("/"), !name.contains("\0") else {
                throw AssetError.invalidAdapterName(.init(debugDescription: "“\(name)” is not the name of an adapter."))
            }
            let url = ModelStore.adapterDirectory.appendingPathComponent(name + ".gguf")
            do {
                try self.init(fileURL: url)
            } catch {
                throw AssetError.compatibleAdapterNotFound(
                    .init(debugDescription: "There is no adapter “\(name)” for this model: \(error.localizedDescription)"))
            }
        }

        /// Does nothing: adapters are merged when the model is loaded.
        @concurrent public func compile() async throws {}

        /// The name itself, if an adapter of that name fits the model; else nothing.
        public static func compatibleAdapterIdentifiers(name: String) -> [String] {
            // Why it does not fit is for the initializer to say.
            (try? Adapter(name: name)) == nil ? [] : [name]
        }

        /// Removes nothing: the files in the folder of adapters are their owner's.
        public static func removeObsoleteAdapters() throws {}

        /// Why there is no adapter.
        public enum AssetError: Swift.Error, LocalizedError {
            /// The file is no adapter, or was made for another model.
            case invalidAsset(SystemLanguageModel.Adapter.AssetError.Context)
            /// The name cannot be that of an adapter.
            case invalidAdapterName(SystemLanguageModel.Adapter.AssetError.Context)
            /// No adapter of that name fits the model.
            case compatibleAdapterNotFound(SystemLanguageModel.Adapter.AssetError.Context)

            /// What went wrong, for developers.
            public struct Context: Sendable {
                /// What went wrong, in a sentence for developers.
                public let debugDescription: String
                /// For errors that a program makes itself, as in tests.
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

    /// The base model with an adapter.
    @available(*, deprecated)
    public convenience init(
        adapter: SystemLanguageModel.Adapter, guardrails: SystemLanguageModel.Guardrails = .default
    ) {
        self.init(.general, guardrails, adapter: adapter.path)
    }
}
