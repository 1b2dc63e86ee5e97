internal import Foundation

/// A variable of the environment that this product reads. Nothing else of the package reads the environment of the process.
///
/// `Documentation/Environment.md` has a row for each variable; a test compares the two.
public enum Setting: String, CaseIterable, Sendable {
    // Models.
    case model = "FM_MODEL"
    case embedder = "FM_EMBEDDER"
    case modelURL = "FM_MODEL_URL"
    case hubToken = "HF_TOKEN"
    case olderHubToken = "HUGGING_FACE_HUB_TOKEN"
    case hubEndpoint = "HF_ENDPOINT"
    // The engine.
    case threads = "FM_THREADS"
    case cacheBits = "FM_CACHE_BITS"
    case loops = "FM_LOOPS"
    // Records of requests.
    case trace = "FM_TRACE"
    case traceText = "FM_TRACE_TEXT"
    // Folders.
    case package = "FM_PACKAGE"
    case cacheFolder = "XDG_CACHE_HOME"
    case dataFolder = "XDG_DATA_HOME"
    case home = "HOME"
    // The terminal and the person in front of it.
    case noColor = "NO_COLOR"
    case cliColor = "CLICOLOR"
    case terminal = "TERM"
    case allLocales = "LC_ALL"
    case messageLocale = "LC_MESSAGES"
    case language = "LANG"

    /// The value in the environment of this process; nil if the variable is not set or empty.
    public var value: String? { value(in: ProcessInfo.processInfo.environment) }

    /// The value in an environment; nil if the variable is not set or empty.
    public func value(in environment: [String: String]) -> String? {
        environment[rawValue].flatMap { $0.isEmpty ? nil : $0 }
    }
}
