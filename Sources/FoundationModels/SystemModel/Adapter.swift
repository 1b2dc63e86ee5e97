public import Foundation

extension SystemLanguageModel {
    /// A small trained module over the base model. None can be loaded yet: making one throws.
    @available(*, deprecated)
    public struct Adapter {
        /// What the adapter's makers wrote into its file: nothing here.
        public var creatorDefinedMetadata: [String: Any] { [:] }

        /// - Throws: ``AssetError/invalidAsset(_:)``.
        public init(fileURL: URL) throws {
            throw AssetError.invalidAsset(
                .init(debugDescription: "Adapters cannot be loaded here yet: \(fileURL.lastPathComponent)."))
        }

        /// - Throws: ``AssetError/compatibleAdapterNotFound(_:)``, or ``AssetError/invalidAdapterName(_:)`` for an empty name.
        public init(name: String) throws {
            if name.isEmpty { throw AssetError.invalidAdapterName(.init(debugDescription: "An adapter has a name.")) }
            throw AssetError.compatibleAdapterNotFound(
                .init(debugDescription: "No adapter “\(name)” is installed for this model."))
        }

        /// Does nothing.
        @concurrent public func compile() async throws {}

        /// Adapters of that name that fit the model: none here.
        public static func compatibleAdapterIdentifiers(name: String) -> [String] { [] }
        /// Does nothing: there are none.
        public static func removeObsoleteAdapters() throws {}

        /// Why there is no adapter.
        public enum AssetError: Swift.Error, LocalizedError {
            /// The file is no adapter that can be loaded. Here none is.
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
        self.init(useCase: .general, guardrails: guardrails)
    }
}
