public import FoundationModels

/// A tool used over two sessions: one writes the arguments, plain code runs the tool, another one answers.
///
/// Neither session sees what the other needs: a tool's definition does not take room from a long output, and the model cannot
/// call it again and again.
public struct SplitToolCall<T: Tool>: Sendable where T.Output: Sendable {
    /// What the model wrote for the tool.
    public let arguments: GeneratedContent
    /// What the tool gave.
    public let output: T.Output
    /// The answer.
    public let response: LanguageModelSession.Response<String>

    /// Answers a prompt with the help of a tool.
    ///
    /// - Parameters:
    ///   - instructions: What the answering session is told.
    /// - Throws: what the sessions throw, and ``LanguageModelSession/ToolCallError`` for an error of the tool.
    public init(
        _ tool: T, prompt: String, model: some LanguageModel = SystemLanguageModel.default, instructions: String? = nil,
        options: GenerationOptions = GenerationOptions()
    ) async throws {
        let writer = LanguageModelSession(
            model: model,
            instructions: "Write the arguments for a tool that helps to answer the user. \(tool.name): \(tool.description)")
        let written = try await writer.respond(
            to: prompt, schema: tool.parameters, options: GenerationOptions(samplingMode: .greedy))
        arguments = written.content
        do {
            output = try await tool.call(arguments: T.Arguments(written.content))
        } catch {
            throw LanguageModelSession.ToolCallError(tool: tool, underlyingError: error)
        }
        let answerer = LanguageModelSession(model: model, instructions: instructions)
        let found = output
        response = try await answerer.respond(options: options) {
            "\(tool.name) gave this:"
            found
            "Answer with it: \(prompt)"
        }
    }
}
