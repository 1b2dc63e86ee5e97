public import Foundation

extension SystemLanguageModel {
    /// A small trained module over the base model. None can be loaded yet: making one throws.
    @available(*, deprecated)
    public struct Adapter {
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

        @concurrent public func compile() async throws {}

        public static func compatibleAdapterIdentifiers(name: String) -> [String] { [] }
        public static func removeObsoleteAdapters() throws {}

        /// Why there is no adapter.
        public enum AssetError: Swift.Error, LocalizedError {
            case invalidAsset(SystemLanguageModel.Adapter.AssetError.Context)
            case invalidAdapterName(SystemLanguageModel.Adapter.AssetError.Context)
            case compatibleAdapterNotFound(SystemLanguageModel.Adapter.AssetError.Context)

            public struct Context: Sendable {
                public let debugDescription: String
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
