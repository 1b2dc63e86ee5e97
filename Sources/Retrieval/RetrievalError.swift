public import Foundation

/// Why an index cannot be used or a document cannot be read.
public enum RetrievalError: Error, LocalizedError, CustomStringConvertible, Equatable {
    /// A document cannot be read.
    case unreadable(file: String, reason: String)
    /// The index cannot be opened, read or written.
    case index(path: String, reason: String)
    /// The vectors of the index were computed by another model than the one in use.
    case otherModel(path: String, indexed: String, current: String)
    /// The index was opened for reading.
    case readOnly(path: String)

    public var description: String {
        switch self {
        case .unreadable(let file, let reason): "“\(file)” cannot be read: \(reason)."
        case .index(let path, let reason): "The index “\(path)” cannot be used: \(reason)."
        case .otherModel(let path, let indexed, let current):
            "The index “\(path)” was built with the embedding model \(indexed), but the current one is \(current). Use that model (--model, FM_EMBEDDER), or build a new index of the documents."
        case .readOnly(let path): "The index “\(path)” was opened for reading only."
        }
    }

    public var errorDescription: String? { description }
}
