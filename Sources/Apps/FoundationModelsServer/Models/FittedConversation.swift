internal import ContextKit
internal import FoundationModels
internal import Inference
internal import ModelPrompts
internal import Waiting

/// The conversation of a request as the model gets it: with the description of the answer's form, and made to fit the window if the request
/// asks for it.
struct FittedConversation: Sendable {
    /// All entries of the request.
    let all: [Transcript.Entry]
    /// Those of the prompt.
    private(set) var entries: [Transcript.Entry]
    /// The tokens of the prompt.
    private(set) var tokens: [TokenID] = []
    /// What was left out, and what of it came back; nil if the conversation fits.
    private(set) var fitted: ConversationWindow.Fitted?
    let contextSize: Int
    private let model: LoadedModel
    private let render: @Sendable (_ entries: [Transcript.Entry], _ hasTools: Bool) -> ChatPrompt

    /// - Parameter definitions: of the tools that the model may call.
    /// - Throws: ``RequestError``, or `CancellationError`.
    init(
        _ chat: TurnRequest.Chat, _ request: TurnRequest, _ definitions: [Transcript.ToolDefinition], _ local: LocalModel,
        _ model: LoadedModel, _ windows: ConversationWindows
    ) async throws {
        contextSize = min(local.maximumContext, model.shape.contextLength)
        self.model = model
        let tools = model.toolFormat == nil ? nil : definitions.map { ChatTool($0) }
        let (configuration, thinking) = (local, chat.thinking)
        render = { entries, hasTools in
            var prompt = TranscriptRenderer(configuration, model).prompt(for: entries, thinking: thinking)
            if hasTools, let tools { prompt.tools = tools }
            return prompt
        }
        all = Transcript.entries(LocalTurn.described(chat, request.format).messages, definitions)
        entries = all
        tokens = try await tokens(of: all, request)
        let reserve = LocalTurn.reserve(request, contextSize)
        guard request.truncates, tokens.count >= contextSize - reserve else { return }
        let unfitted = self
        let fitted = try await windows.fit(all, request, contextSize: contextSize, reserve: reserve) {
            try await unfitted.tokens(of: $0, request).count
        }
        (self.fitted, entries) = (fitted, fitted.entries)
        tokens = try await tokens(of: entries, request)
    }

    /// The prompt as the template writes it.
    var prompt: ChatPrompt { render(entries, true) }

    private func tokens(of entries: [Transcript.Entry], _ request: TurnRequest) async throws -> [TokenID] {
        do { return try await tokens(of: entries) } catch {
            throw RequestError.invalid(
                request.inputName, "The model's chat template cannot write this conversation: \(error)")
        }
    }

    /// - Parameters:
    ///   - isWaiting: Whether the answer of the model follows.
    ///   - hasTools: Whether the template writes the tools.
    func tokens(
        of entries: [Transcript.Entry], isWaiting: Bool = true, hasTools: Bool = true
    ) async throws -> [TokenID] {
        // Long texts take a while, and must not block the threads of other tasks.
        try await onAnotherThread { [model, render] in
            try model.tokens(for: render(entries, hasTools), addGenerationPrompt: isWaiting)
        }
    }
}
