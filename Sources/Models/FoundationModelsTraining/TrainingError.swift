internal import Files
public import Foundation

/// Why an adapter cannot be trained, read or written. The description says what to do.
public enum TrainingError: Error, Equatable, LocalizedError {
    /// The model's family cannot be trained.
    case unsupportedModel(String)
    /// The model's file is damaged.
    case damagedModel(String)
    /// A row of the data cannot be used.
    case invalidData(line: Int, reason: String)
    /// There is nothing to learn from.
    case noData(String)
    /// An option has a value that makes no sense.
    case invalidOption(String)
    /// The loss is not a number, or zero.
    case diverged(step: Int, lines: [Int], reason: String)
    /// An adapter's file is damaged, or has a form that is not supported.
    case invalidAdapter(String)
    /// The adapter was made for another model.
    case otherModel(String)
    /// A checkpoint is damaged, or belongs to another run.
    case invalidCheckpoint(String)
    /// A file cannot be written.
    case cannotWrite(path: String, reason: String)
    /// Another run writes the same file.
    case busy(path: String)
    case outOfMemory(bytes: Int)
    case cancelled

    public var errorDescription: String? {
        switch self {
        case .unsupportedModel(let what):
            "This model cannot be trained: \(what). Adapters can be trained for dense models of the families llama, qwen2, qwen3, gemma to gemma3, phi3, smollm3, granite, olmo2, ernie4_5 and others like them."
        case .damagedModel(let reason): reason
        case .invalidData(let line, let reason): "Line \(line) of the data: \(reason)."
        case .noData(let reason): reason
        case .invalidOption(let reason): reason
        case .diverged(let step, let lines, let reason):
            "Training ended at step \(step): \(reason). "
                + (lines.isEmpty
                    ? ""
                    : "The rows of this step are those of the lines \(lines.map(String.init).joined(separator: ", ")). Look at them. ")
                + "A lower rate may help. No adapter was written."
        case .invalidAdapter(let reason): reason
        case .otherModel(let reason): reason
        case .invalidCheckpoint(let reason): reason
        case .cannotWrite(let path, let reason): "Cannot write \(path): \(reason)."
        case .busy(let path): "Another run writes \(path). Wait for it, or choose another file."
        case .outOfMemory(let bytes):
            "Training needs \(bytes >> 20) MB more memory than there is. Train with shorter rows (--length), or with a smaller model."
        case .cancelled: "Training was cancelled."
        }
    }
}

extension TrainingError {
    /// The same error, of a row whose answer is to be kept.
    package var ofKeptAnswers: TrainingError {
        if case .invalidData(let line, let reason) = self {
            .noData("Line \(line) of the answers to keep: \(reason).")
        } else {
            self
        }
    }
}

extension FileWriter {
    static func write(_ data: Data, to url: URL) throws(TrainingError) {
        do { try write(data, to: url.path) } catch { throw .cannotWrite(path: error.path, reason: error.reason) }
    }
}
