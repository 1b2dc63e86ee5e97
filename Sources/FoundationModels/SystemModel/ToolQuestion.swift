internal import Inference

/// The question whether to call a tool now, for models that were not trained to call any: a choice among the tools' names and
/// an answer in words, so that nothing else can come out of it.
struct ToolQuestion {
    let messages: [ChatMessage]
    /// What the response begins with, before the choice.
    let opening = "Choice: "
    let choices: [String]
    private let tools: [Transcript.ToolDefinition]

    private static let answer = "none"

    init(transcript: Transcript, tools: [Transcript.ToolDefinition], mayAnswer: Bool) {
        self.tools = tools
        choices = tools.map(\.name) + (mayAnswer ? [Self.answer] : [])
        var list = tools.map { "- \($0.name): \($0.description)" }
        if mayAnswer { list.append("- \(Self.answer): for everything else, such as greetings, opinions and common knowledge") }
        var situation = "Message: "
        var results = ""
        for entry in transcript {
            switch entry {
            case .prompt(let prompt):
                situation = "Message: " + prompt.segments.modelText
                results = ""
            case .toolOutput(let output): results += "\nResult of \(output.toolName): \(output.segments.modelText)"
            default: break
            }
        }
        if !results.isEmpty { results += "\nIs another tool needed for the message?" }
        messages = [
            ChatMessage(role: .system, content: "Choose the tool that helps with a message.\n" + list.joined(separator: "\n")),
            ChatMessage(role: .user, content: situation + results),
        ]
    }

    func tool(for choice: String) -> Transcript.ToolDefinition? { tools.first { $0.name == choice } }
}
