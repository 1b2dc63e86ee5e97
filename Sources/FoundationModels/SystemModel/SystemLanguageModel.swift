internal import Foundation
internal import Inference
public import Observation

/// The language model of this machine: a GGUF file that runs on the CPU, without network or account.
///
/// `FM_MODEL` names the file; without it, the default model that `fm model pull` installs is used.
public final class SystemLanguageModel: Sendable, Observable {
    @frozen public enum Availability: Equatable, Sendable {
        case available
        case unavailable(UnavailableReason)

        public enum UnavailableReason: Equatable, Hashable, Sendable {
            case deviceNotEligible
            case appleIntelligenceNotEnabled
            /// The model's file is not installed.
            case modelNotReady
        }
    }

    public static let `default` = SystemLanguageModel()

    private init() {}

    /// Whether requests can be made. Looked up anew each time: a model may be installed while the program runs.
    public var availability: Availability {
        FileManager.default.isReadableFile(atPath: ModelStore.systemModelPath) ? .available : .unavailable(.modelNotReady)
    }

    public var isAvailable: Bool { availability == .available }

    /// Tokens that a session's instructions, prompts and responses may have together.
    public var contextSize: Int { 4096 }
}
