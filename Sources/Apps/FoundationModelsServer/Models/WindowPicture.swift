internal import ContextKit
internal import FoundationModels
internal import Inference
internal import JSON
internal import ModelPrompts

/// What the prompt of a request consists of, in tokens.
struct WindowPicture: Sendable {
    struct Part: Sendable {
        /// instructions, tools, schema, turn, recall, question or answer.
        var kind: String
        var label: String
        var tokens: Int
        var cached = 0
        /// kept, evicted or recalled.
        var state = "kept"
        var why: String?
    }

    var contextSize: Int
    var parts: [Part]
}

extension LocalTurn {
    /// The entries of a request as its prompt has them: made to fit if the request asks for it.
    static func fittedEntries(
        of request: TurnRequest, _ served: ServedModel, _ windows: ConversationWindows
    ) async throws -> [Transcript.Entry] {
        guard case .chat(let chat) = request.input else { return [] }
        let lease = try await served.lease()
        return try await FittedConversation(chat, request, [], served.local, lease.model, windows).entries
    }

    /// What the prompt of a request consists of. Counts are differences of whole prompts, so that they add up.
    static func picture(
        of request: TurnRequest, _ served: ServedModel, _ schemas: SchemaChecks, _ windows: ConversationWindows
    ) async throws -> WindowPicture {
        guard case .chat(let chat) = request.input else {
            throw RequestError.invalid("messages", "The picture is one of a conversation.")
        }
        let definitions = try await definitions(request.tools.tools, schemas)
        let lease = try await served.lease()
        let model = lease.model
        let local = served.local
        let conversation = try await FittedConversation(chat, request, definitions, local, model, windows)
        let (all, entries, whole, size) = (conversation.all, conversation.entries, conversation.tokens, conversation.contextSize)
        let fitted = conversation.fitted
        func tokens(upTo index: Int, of entries: [Transcript.Entry], isWaiting: Bool = false) async throws -> Int {
            try await conversation.tokens(of: Array(entries[...index]), isWaiting: isWaiting).count
        }
        let sequence = try model.makeSequence(
            contextSize: local.maximumContext, format: local.cacheFormat, adapter: try await local.adapter(for: model))
        let cached = model.cachedTokens(of: whole, like: sequence)

        var parts: [WindowPicture.Part] = []
        var used = 0
        func add(_ kind: String, _ label: String, upTo count: Int, state: String = "kept", why: String? = nil) {
            guard count > used else { return }
            parts.append(
                .init(
                    kind: kind, label: label, tokens: count - used, cached: max(0, min(cached, count) - used), state: state,
                    why: why))
            used = count
        }
        for turn in leftOut(all, fitted) {
            parts.append(.init(kind: "turn", label: turn.label, tokens: 0, state: "evicted", why: turn.why))
        }
        let last = entries.lastIndex { if case .prompt = $0 { true } else { false } } ?? entries.count
        for index in entries.indices {
            let isLast = index == entries.count - 1
            let count = isLast ? whole.count : try await tokens(upTo: index, of: entries)
            switch entries[index] {
            case .instructions(let instructions):
                // Tools are written with the instructions.
                if !definitions.isEmpty, !instructions.segments.isEmpty {
                    var bare = instructions
                    bare.toolDefinitions = []
                    let plain = try await conversation.tokens(of: [.instructions(bare)], isWaiting: false, hasTools: false)
                    add("instructions", "Instructions", upTo: min(plain.count, count))
                }
                add(
                    definitions.isEmpty ? "instructions" : "tools",
                    definitions.isEmpty ? "Instructions" : "Tools (\(definitions.count))", upTo: count)
            case .prompt(let prompt):
                let text = prompt.segments.modelText
                if index == last {
                    if let recall = fitted?.recall, !recall.recalledItems.isEmpty {
                        // The recalled text stands before the question.
                        var without = entries
                        without[index] = all.last { if case .prompt = $0 { true } else { false } } ?? entries[index]
                        let bare = try await tokens(upTo: index, of: without, isWaiting: isLast)
                        let recalled = max(0, count - bare)
                        let turns = Set(recall.recalledItems.map(\.turn)).sorted().map { "\($0 + 1)" }
                        add(
                            "recall", "Recalled: turns " + turns.joined(separator: ", "), upTo: used + recalled,
                            state: "recalled",
                            why: "They are likely to be needed for the question.")
                    }
                    if request.format != nil, chat.describesFormat {
                        var without = chat
                        without.describesFormat = false
                        let bare = Transcript.entries(without.messages, definitions)
                        let place = bare.lastIndex { if case .prompt = $0 { true } else { false } } ?? 0
                        if fitted == nil, bare.indices.contains(place) {
                            let end = try await tokens(upTo: index, of: entries)
                            add("schema", "Schema", upTo: used + max(0, end - (try await tokens(upTo: place, of: bare))))
                        }
                    }
                    add("question", "Question", upTo: count)
                } else {
                    add("turn", "User: " + Self.beginning(of: text), upTo: count)
                }
            case .response(let response):
                add("turn", "Assistant: " + Self.beginning(of: response.segments.modelText), upTo: count)
            case .toolCalls(let calls):
                add("turn", "Calls: " + calls.map(\.toolName).joined(separator: ", "), upTo: count)
            case .toolOutput(let output): add("turn", "Result of \(output.toolName)", upTo: count)
            default: add("turn", "Reasoning", upTo: count)
            }
        }
        let room = min(request.maximumTokens ?? reserve(request, size), max(0, size - whole.count))
        parts.append(.init(kind: "answer", label: "Room for the answer", tokens: room))
        return WindowPicture(contextSize: size, parts: parts)
    }

    /// The turns that were left out, with what became of them.
    private static func leftOut(
        _ entries: [Transcript.Entry], _ fitted: ConversationWindow.Fitted?
    ) -> [(label: String, why: String)] {
        guard let fitted, fitted.leftOutTurns > 0 else { return [] }
        let prompts = entries.compactMap { entry -> String? in
            if case .prompt(let prompt) = entry { prompt.segments.modelText } else { nil }
        }
        let recalled = Set(fitted.recall?.recalledItems.map(\.turn) ?? [])
        return prompts.prefix(fitted.leftOutTurns).enumerated().map { index, text in
            (
                "Turn \(index + 1): " + beginning(of: text),
                recalled.contains(index) ? "Left out, but quoted before the question." : "Left out to make room."
            )
        }
    }

    /// The first words of a text, in one line.
    private static func beginning(of text: String) -> String {
        let words = text.prefix(200).split(whereSeparator: \.isWhitespace)
        var line = ""
        for word in words where line.count < 40 { line += (line.isEmpty ? "" : " ") + word.prefix(40) }
        return line.count < text.count ? line + " …" : line
    }

    /// The conversation with the description of the answer's form.
    static func described(_ chat: TurnRequest.Chat, _ format: AnswerFormat?) -> TurnRequest.Chat {
        guard chat.describesFormat, case .schema(let schema, _)? = format,
            let place = chat.messages.lastIndex(where: { $0.role == .user })
        else { return chat }
        var chat = chat
        chat.messages[place].content += "\n\n" + SchemaDescription.request(for: schema)
        return chat
    }
}
