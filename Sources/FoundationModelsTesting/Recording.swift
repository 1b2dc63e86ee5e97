public import Foundation
public import FoundationModels

/// What models said to prompts, to be said again in tests.
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
    /// One thing that a model said.
    public struct Exchange: Codable, Sendable, Equatable {
        /// What it answered: the text of the last prompt, and the outputs of tools since.
        public var situation: String
        /// What it said: reasoning, tool calls, a response.
        public var said: Transcript
        /// Tokens that the model read; 0 if nobody counted.
        public var inputTokens: Int
        /// Tokens that the model wrote; 0 if nobody counted.
        public var outputTokens: Int

        /// For recordings that are written by hand.
        public init(situation: String, said: Transcript, inputTokens: Int = 0, outputTokens: Int = 0) {
            self.situation = situation
            self.said = said
            self.inputTokens = inputTokens
            self.outputTokens = outputTokens
        }
    }

    /// In the order in which they happened.
    public var exchanges: [Exchange]

    /// For recordings that are written by hand, or put together from others.
    public init(exchanges: [Exchange] = []) { self.exchanges = exchanges }

    /// - Throws: an error of the file system, or `DecodingError` if this is not a recording.
    public init(contentsOf url: URL) throws {
        self = try JSONDecoder().decode(Recording.self, from: Data(contentsOf: url))
    }

    /// Writes the recording as JSON that shows changes well.
    public func write(to url: URL) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        try encoder.encode(self).write(to: url, options: .atomic)
    }

    /// What tells one request from another: ids and options do not.
    static func situation(of transcript: Transcript) -> String {
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
