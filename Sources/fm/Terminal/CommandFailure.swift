import ArgumentParser
import ContextKit
import Embeddings
import EvaluationCore
import Foundation
import FoundationModels
import FoundationModelsInstallation
import FoundationModelsTraining
import Grammar
import Inference
import InstalledModels
import Retrieval
import TextClassification
import Reports

/// Why a command ends without having done what it was to do. Commands throw it, or errors of libraries; ``Program`` prints it and ends with
/// its code.
struct CommandFailure: Error, Equatable, CustomStringConvertible {
    /// The exit codes. “fm --help” lists them.
    enum Code: Int32, CaseIterable {
        case failed = 1
        case noModel = 3
        case promptTooLarge = 4
        case unusableSchema = 5
        case notInDocuments = 6
        case endless = 7
        case wrongUsage = 64
        case interrupted = 130

        var meaning: String {
            switch self {
            case .failed: "failed"
            case .noModel: "no usable model"
            case .promptTooLarge: "the prompt is too large"
            case .unusableSchema: "the schema cannot be used"
            case .notInDocuments: "not in the documents (fm ask, fm read)"
            case .endless: "the answer repeated itself, or nested values too deeply, and was ended"
            case .wrongUsage: "wrong usage, or wrong data"
            case .interrupted: "interrupted (Ctrl-C)"
            }
        }

        /// The part of “fm --help”.
        static var table: String {
            let rows = [["0", "answered"]] + allCases.map { ["\($0.rawValue)", $0.meaning] }
            return TextTable([.left(), .left()], indentation: "  ", rows: rows).lines().joined(separator: "\n")
        }
    }

    var code: Code
    /// What is wrong, for people. Empty if the command has said it, or its output says it.
    var description: String

    /// - Parameter advice: What to do.
    init(_ description: String = "", code: Code = .failed, advice: String? = nil) {
        self.code = code
        self.description = [description, advice].compactMap(\.self).joined(separator: " ")
    }

    /// The failure that an error of a library means for a command.
    init(_ error: any Error) {
        switch error {
        case let failure as CommandFailure: self = failure
        case let error as EvaluationDataError: self.init(error)
        case let error as ValidationError: self.init(error.message, code: .wrongUsage)
        case is CancellationError, ModelError.cancelled, TrainingError.cancelled: self.init(code: .interrupted)
        case LanguageModelError.contextSizeExceeded(let context):
            self.init(
                context.debugDescription, code: .promptTooLarge,
                advice: "“fm read FILE” reads texts of any length, also from a pipe.")
        case ConversationError.promptTooLarge(let size):
            self.init(
                Self.text(of: error), code: .promptTooLarge,
                advice: "Shorten it by \(size.excess) tokens; “fm read FILE” reads texts of any length.")
        // Even the shortest document exceeds the token limit.
        case let error as GeneratedContent.ParsingError where error.underlyingError is GenerationFailure:
            self.init(error.debugDescription, code: .promptTooLarge)
        case SystemLanguageModel.Error.assetsUnavailable(let context):
            self.init(
                context.debugDescription, code: .noModel,
                advice: context.debugDescription.contains(ModelStore.defaultModelPath)
                    ? Self.advice("fm model pull", missing: ModelStore.defaultModelPath) : nil)
        case let error as EmbeddingError:
            self.init(
                error.description, code: .noModel, advice: Self.advice("fm model pull embedder", missing: ModelStore.embedderPath)
            )
        case RetrievalError.index(let path, _):
            self.init(
                Self.text(of: error),
                advice: FileManager.default.fileExists(atPath: path) ? nil : "“fm index DIR --out FILE” builds one.")
        case let error as InstallationError: self.init(error.message, code: .noModel)
        case is ModelError, TrainingError.unsupportedModel, TrainingError.damagedModel:
            self.init(Self.text(of: error), code: .noModel)
        case LanguageModelError.unsupportedGenerationGuide(let context):
            self.init(context.debugDescription, code: .unusableSchema)
        case let error as SchemaError: self.init(error.sentence, code: .unusableSchema)
        case TrainingError.invalidOption, TrainingError.invalidData, TrainingError.noData, ClassifierError.invalidOption,
            ClassifierError.invalidData, ClassifierError.unsuitableData:
            self.init(Self.text(of: error), code: .wrongUsage)
        case let error as LanguageModelError: self.init(error.debugDescription)
        default: self.init(Self.text(of: error), advice: (error as? any LocalizedError)?.recoverySuggestion)
        }
    }

    /// What to do if a file is missing; nil if it is there.
    private static func advice(_ command: String, missing path: String) -> String? {
        FileManager.default.fileExists(atPath: path) ? nil : "“\(command)” downloads one."
    }

    private static func text(of error: any Error) -> String {
        (error as? any LocalizedError)?.errorDescription ?? "\(error)"
    }

    /// Prints the reason on standard error, if there is something to say.
    func say() { if !description.isEmpty { Message.say("fm: \(description)") } }

    /// Ctrl-C ended the command.
    static let interrupted = CommandFailure(code: .interrupted)

    /// The failure of an answer that something else than the model ended; nil if the command has done what it was to do.
    ///
    /// - Parameters:
    ///   - usage: What the model says of the answer.
    ///   - limitMessage: What to say if the answer was ended at the maximum number of tokens; nil if the user knows of it.
    static func ofEnd(_ usage: LanguageModelSession.Usage?, limitMessage: String? = nil) -> CommandFailure? {
        switch RunReport.stopReason(usage) {
        case "loop": return CommandFailure("The answer repeated itself and was ended.", code: .endless)
        case "grammarLimit":
            return CommandFailure(
                "The value was closed where it was: it was nested too deeply, or needed too much memory.", code: .endless)
        case "maximumTokens":
            if let limitMessage { Message.say(limitMessage) }
            return nil
        default: return nil
        }
    }
}
