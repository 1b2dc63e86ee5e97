public import FoundationModels
import ModelPrompts

/// A tool call split over two sessions: one writes the arguments, plain code runs the tool, the other one answers.
///
/// Each session contains only what it needs: the tool's definition does not take space from a long output, and the
/// model cannot call the tool repeatedly.
public struct SplitToolCall<T: Tool>: Sendable where T.Output: Sendable {
    /// The arguments that the model wrote for the tool.
    public let arguments: GeneratedContent
    /// The tool's output.
    public let output: T.Output
    /// The model's answer.
    public let response: LanguageModelSession.Response<String>

    /// Answers a prompt with the help of a tool. The arguments are generated greedily.
    ///
    /// - Parameters:
    ///   - instructions: The instructions of the session that answers.
    ///   - options: The options of the session that answers.
    /// - Throws: The errors of the sessions, and `LanguageModelSession/ToolCallError` for an error of the tool.
    public init(
        _ tool: T, prompt: String, model: some LanguageModel = SystemLanguageModel.default, instructions: String? = nil,
        options: GenerationOptions = GenerationOptions()
    ) async throws {
        let writer = LanguageModelSession(
            model: model,
            instructions: ModelPrompts.arguments(of: tool.name, tool.description))
        let written = try await writer.respond(
            to: prompt, schema: tool.parameters, options: GenerationOptions(samplingMode: .greedy))
        arguments = written.content
        do {
            output = try await tool.call(arguments: T.Arguments(written.content))
        } catch {
            throw LanguageModelSession.ToolCallError(tool: tool, underlyingError: error)
        }
        let answerer = LanguageModelSession(model: model, instructions: instructions)
        let result = output
        response = try await answerer.respond(options: options) {
            ModelPrompts.outputHeading(tool.name)
            result
            ModelPrompts.answerWithOutput(prompt)
        }
    }
}
