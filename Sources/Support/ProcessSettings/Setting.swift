internal import Foundation

/// A variable of the environment that this product reads. Nothing else of the package reads the environment of the process.
///
/// `Documentation/Environment.md` has a row for each variable, with its ``meaning``; a test compares the two.
public enum Setting: String, CaseIterable, Sendable {
    // Models.
    case model = "FM_MODEL"
    case adapter = "FM_ADAPTER"
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
    // The server.
    case serverKey = "FM_SERVER_KEY"
    case upstreamKey = "FM_UPSTREAM_KEY"
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

    /// What the variable does, in a line.
    public var meaning: String {
        switch self {
        case .model: "the model: a name of “fm model list”, or a GGUF file"
        case .adapter: "none leaves out the adapters of models"
        case .embedder: "the model for embeddings: a name, or a GGUF file"
        case .modelURL: "another address of the default model"
        case .hubToken: "an access token of the Hugging Face hub"
        case .olderHubToken: "the same, if HF_TOKEN is not set"
        case .hubEndpoint: "another address of the hub"
        case .threads: "the number of threads"
        case .cacheBits: "8 halves the memory of long texts, less precisely"
        case .loops: "1 lets answers repeat themselves endlessly"
        case .trace: "the file that records requests, for “fm trace”"
        case .traceText: "1 records prompts and responses too"
        case .serverKey: "a key that clients of “fm serve” need"
        case .upstreamKey: "the key that the servers behind “fm serve” want"
        case .package: "the folder of this package, for “fm play FILE.swift”"
        case .cacheFolder: "the folder of what can be made again: packed weights"
        case .dataFolder: "the folder of models, adapters and conversations"
        case .home: "the folder of the user"
        case .noColor: "any text forbids colours"
        case .cliColor: "0 forbids colours"
        case .terminal: "dumb forbids colours and moving the cursor"
        case .allLocales: "the locale of the person"
        case .messageLocale: "the same, if LC_ALL is not set"
        case .language: "the same, if LC_MESSAGES is not set either"
        }
    }

    /// The environment of this process.
    public static var environment: [String: String] { ProcessInfo.processInfo.environment }

    /// The value in the environment of this process; nil if the variable is not set or empty.
    public var value: String? { value(in: Self.environment) }

    /// The value in an environment; nil if the variable is not set or empty.
    public func value(in environment: [String: String]) -> String? {
        environment[rawValue].flatMap { $0.isEmpty ? nil : $0 }
    }
}
