public import Foundation

/// Why an index cannot be used or a document cannot be read.
public enum RetrievalError: Error, LocalizedError, CustomStringConvertible, Equatable {
    /// A document cannot be read.
    case unreadable(file: String, reason: String)
    /// A document was read, but contains no text.
    case noText(file: String, format: ExtractedText.Format)
    /// The index cannot be opened, read or written.
    case index(path: String, reason: String)
    /// The vectors of the index were computed by another model than the one in use.
    case otherModel(path: String, indexed: String, current: String)
    /// The index was opened for reading.
    case readOnly(path: String)
    /// The window of the model has no room for passages beside a response.
    case noRoom(contextSize: Int, responseTokens: Int)

    public var description: String {
        switch self {
        case .unreadable(let file, let reason): "“\(file)” cannot be read: \(reason)."
        case .noText(let file, .pdf):
            "“\(file)” has no text: its pages are probably pictures (a scan). Recognise their text first, for example with ocrmypdf."
        case .noText(let file, .html):
            "“\(file)” has no text: it is empty, or scripts write its text. Save the page from a browser that shows it."
        case .noText(let file, _): "“\(file)” has no text."
        case .index(let path, let reason): "The index “\(path)” cannot be used: \(reason)."
        case .otherModel(let path, let indexed, let current):
            "The index “\(path)” was built with the embedding model \(indexed), but the current one is \(current). Use that model (--model, FM_EMBEDDER), or build a new index of the documents."
        case .readOnly(let path): "The index “\(path)” was opened for reading only."
        case .noRoom(let contextSize, let responseTokens):
            "A response of \(responseTokens) tokens leaves no room for passages in the context window of \(contextSize) tokens. Ask for a shorter response, or use a larger window."
        }
    }

    public var errorDescription: String? { description }
}
