public import Foundation

/// Which model to install.
public enum ModelRequest: Hashable, Sendable {
    /// The model of the catalogue that suits this machine best: see ``ModelInstallation/recommendation()``. It is several gigabytes large on
    /// most machines.
    case recommended
    /// The model that most programs should begin with, about a gigabyte. On a machine with little memory or disk space, this is ``small``.
    case `default`
    /// The smallest model of the catalogue, about a hundred megabytes.
    case small
    /// A model of the catalogue, by its name.
    case named(String)
    /// A GGUF file of a repository of the Hugging Face hub, such as `Qwen/Qwen3-0.6B-GGUF` with the quantisation `Q8_0`; nil for a usual one
    /// of four bits.
    case repository(String, quantisation: String? = nil)
    /// A GGUF file at an address, or a file of this machine, which is copied.
    case url(URL)
    /// The model for embeddings of texts, which searches use.
    case embedder

    /// Reads what a person types: a name of the catalogue, `OWNER/REPO`, `OWNER/REPO:QUANTISATION`, or a web address.
    ///
    /// - Throws: ``InstallationError/unknownModel(_:)`` for anything else, and ``InstallationError/address(_:reason:)``.
    public init(_ text: String) throws {
        switch text {
        case "default": self = .default
        case "recommended": self = .recommended
        case "small": self = .small
        case "embedder": self = .embedder
        case _ where text.hasPrefix("https://") || text.hasPrefix("http://"):
            guard let url = URL(string: text), url.host?.isEmpty == false else {
                throw InstallationError.address(text, reason: "is not a web address")
            }
            guard url.lastPathComponent.hasSuffix(".gguf") else {
                throw InstallationError.address(text, reason: "is not the address of a GGUF file")
            }
            self = .url(url)
        case _ where CatalogueModel.named(text) != nil: self = .named(text)
        default:
            let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard Hub.isRepository(parts[0]), parts.last != "" else { throw InstallationError.unknownModel(text) }
            self = .repository(parts[0], quantisation: parts.count > 1 ? parts[1] : nil)
        }
    }
}
