public import Foundation
public import FoundationModels

/// Recorded requests and responses of a model, which tests can replay with ``ScriptedLanguageModel``.
///
/// ```swift
/// // Once, with the real model:
/// let recorder = RecordingLanguageModel(SystemLanguageModel.default)
/// let session = LanguageModelSession(model: recorder)
/// …
/// try recorder.recording.write(to: url)
///
/// // In the app's tests, without any model:
/// let session = LanguageModelSession(model: ScriptedLanguageModel(try Recording(contentsOf: url)))
/// ```
public struct Recording: Codable, Sendable, Equatable {
    /// One recorded request and its response.
    public struct Exchange: Codable, Sendable, Equatable {
        /// The key that identifies the request: the text of the last prompt, and the tool outputs after it.
        public var requestKey: String
        /// The entries that the model generated: reasoning, tool calls, a response.
        public var response: Transcript
        /// Input tokens; 0 if they were not counted.
        public var inputTokens: Int
        /// Output tokens; 0 if they were not counted.
        public var outputTokens: Int

        /// Creates an exchange, for recordings that are written by hand.
        public init(requestKey: String, response: Transcript, inputTokens: Int = 0, outputTokens: Int = 0) {
            self.requestKey = requestKey
            self.response = response
            self.inputTokens = inputTokens
            self.outputTokens = outputTokens
        }
    }

    /// The exchanges in chronological order.
    public var exchanges: [Exchange]

    /// Creates a recording that is written by hand or combined from others.
    public init(exchanges: [Exchange] = []) { self.exchanges = exchanges }

    /// Reads a recording from a file.
    ///
    /// - Throws: An error of the file system, or `DecodingError` if the file is not a recording.
    public init(contentsOf url: URL) throws {
        self = try JSONDecoder().decode(Recording.self, from: Data(contentsOf: url))
    }

    /// Writes the recording as indented JSON with sorted keys, so that differences between versions are readable.
    ///
    /// - Throws: An error of the file system.
    public func write(to url: URL) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        try encoder.encode(self).write(to: url, options: .atomic)
    }

    /// The key of a request. Ids and options are not part of it.
    static func requestKey(of transcript: Transcript) -> String {
        var parts: [String] = []
        for entry in transcript {
            switch entry {
            case .prompt(let prompt): parts = [prompt.segments.modelText]
            case .toolOutput(let output): parts.append("\(output.toolName): \(output.segments.modelText)")
            default: break
            }
        }
        return parts.joined(separator: "\n")
    }
}
