public import FoundationModels
public import TokenCounts

/// The exact number of tokens of each part of a request. Their sum is the number that the model processes.
public struct ContextReport: Sendable, Codable {
    /// A part of a request.
    public struct Part: Sendable, Codable {
        /// The kind of a part.
        public enum Kind: String, Sendable, Codable, CaseIterable {
            /// Text that the model's template adds if there are no instructions.
            case template
            /// The instructions.
            case instructions
            /// Facts that are always in the context.
            case pinned
            /// Text carried over from turns that are no longer in the context.
            case carried
            /// The definition of a tool.
            case tool
            /// One or more earlier entries of the conversation.
            case history
            /// Earlier turns that are recalled for the prompt.
            case recalled
            /// The prompt, including the tokens that open the response.
            case prompt
            /// The schema of the response, in the prompt.
            case schema
        }

        /// The kind of the part.
        public var kind: Kind
        /// Describes the part: a tool's name, the beginning of an entry.
        public var name: String
        /// Number of tokens.
        public var tokens: Int

        /// Creates a part that the program has counted itself.
        public init(kind: Kind, name: String, tokens: Int) {
            self.kind = kind
            self.name = name
            self.tokens = tokens
        }
    }

    /// Size of the window in tokens.
    public var contextSize: Int
    /// All parts that the model processes, in order.
    public var parts: [Part]
    /// The turns that would be recalled for the prompt; nil without a prompt or a conversation.
    public var recall: Recall?
    /// Suggestions for saving tokens, as sentences.
    public var suggestions: [String] = []

    /// Tokens that the model processes.
    public var usedTokens: Int { parts.reduce(0) { $0 + $1.tokens } }
    /// Tokens left for the response; negative if the request does not fit.
    public var freeTokens: Int { contextSize - usedTokens }

    /// The tokens of all parts of a kind.
    public func tokens(of kind: Part.Kind) -> Int { parts.reduce(0) { $1.kind == kind ? $0 + $1.tokens : $0 } }

    /// Counts the tokens of a request.
    ///
    /// - Parameters:
    ///   - model: The model that counts the tokens, and whose window is used.
    ///   - transcript: The conversation so far, with its instructions and tools.
    ///   - prompt: The next prompt; nil for the conversation alone.
    ///   - schema: The schema of the response.
    ///   - includeSchemaInPrompt: Whether the schema is part of the prompt.
    ///   - detailedEntries: Number of newest history entries that are counted separately; older ones form one part.
    public init(
        model: some TokenCounting, transcript: some Collection<Transcript.Entry>, prompt: String? = nil,
        schema: GenerationSchema? = nil, includeSchemaInPrompt: Bool = true, detailedEntries: Int = 8
    ) async throws {
        contextSize = model.contextSize
        parts = []
        var entries: [Transcript.Entry] = []
        var counted = 0
        var rest = Array(transcript)[...]
        func add(_ kind: Part.Kind, _ name: String, _ whole: Int) {
            parts.append(Part(kind: kind, name: name, tokens: whole - counted))
            counted = whole
        }
        if case .instructions(let instructions)? = rest.first {
            rest.removeFirst()
            var shown = Transcript.Instructions(id: instructions.id, segments: [], toolDefinitions: [])
            for segment in instructions.segments {
                shown.segments.append(segment)
                let text = [segment].plainText
                add(
                    segment.id == ContextDraft.pinnedID ? .pinned : .instructions, text.beginning,
                    try await model.tokenCount(for: [.instructions(shown)]))
            }
            for tool in instructions.toolDefinitions {
                shown.toolDefinitions.append(tool)
                add(.tool, tool.name, try await model.tokenCount(for: [.instructions(shown)]))
            }
            entries.append(.instructions(instructions))
        } else if !rest.isEmpty || prompt != nil {
            // The template's own tokens: the difference between the tokens of a prompt alone and next to instructions.
            let some = Transcript.Entry.prompt(.init(segments: [.text(.init(content: "x"))]))
            let instructions = Transcript.Entry.instructions(.init(segments: [.text(.init(content: "x"))], toolDefinitions: []))
            let first = try await model.tokenCount(for: [some])
            let own = first - (try await model.tokenCounts(of: [instructions, some], without: [instructions]).part)
            if own > 0 { add(.template, "tokens of the template", own) }
        }
        if case .prompt(let carried)? = rest.first, carried.id == ContextDraft.carriedID {
            entries += rest.prefix(2)
            rest = rest.dropFirst(2)
            add(.carried, carried.segments.plainText.beginning, try await model.tokenCount(for: entries))
        }
        let older = rest.dropLast(max(0, detailedEntries))
        if !older.isEmpty {
            entries += older
            let name = older.count == 1 ? older[older.startIndex].description.beginning : "\(older.count) earlier entries"
            add(.history, name, try await model.tokenCount(for: entries))
        }
        for entry in rest.dropFirst(older.count) {
            entries.append(entry)
            add(.history, entry.description.beginning, try await model.tokenCount(for: entries))
        }
        if let prompt {
            var next = Transcript.Prompt(segments: [.text(.init(content: prompt))])
            add(.prompt, prompt.beginning, try await model.tokenCount(for: entries + [.prompt(next)]))
            if let schema, includeSchemaInPrompt {
                next.responseFormat = .init(schema: schema)
                add(.schema, schema.name, try await model.tokenCount(for: entries + [.prompt(next)]))
            }
        }
        suggestions = Self.suggestions(for: self, Array(transcript), schema: includeSchemaInPrompt ? schema : nil)
    }

    private static func suggestions(
        for report: ContextReport, _ transcript: [Transcript.Entry], schema: GenerationSchema?
    ) -> [String] {
        var suggestions: [String] = []
        let tools = report.parts.filter { $0.kind == .tool }
        if tools.count > 5 {
            suggestions.append(
                "\(tools.count) tools: models select badly from more than five. Use only those that a session needs.")
        }
        for tool in tools where tool.tokens > 150 {
            suggestions.append("The tool \(tool.name) costs \(tool.tokens) tokens: shorten its descriptions and guides.")
        }
        let schemas = transcript.reduce(0) { count, entry in
            guard case .prompt(let prompt) = entry, prompt.responseFormat != nil else { return count }
            return prompt.contextOptions.includeSchemaInPrompt == false ? count : count + 1
        }
        if schemas + (schema == nil ? 0 : 1) > 1 {
            suggestions.append(
                "The schema is in \(schemas + (schema == nil ? 0 : 1)) prompts: use includeSchemaInPrompt: false after the first."
            )
        }
        if report.tokens(of: .schema) > 200 {
            suggestions.append("The schema costs \(report.tokens(of: .schema)) tokens: shorten names and descriptions of guides.")
        }
        if report.tokens(of: .instructions) > report.contextSize / 4 {
            suggestions.append(
                "The instructions take more than a quarter of the window: shorten them, or move material into prompts.")
        }
        let history = report.tokens(of: .history)
        if history > report.contextSize / 2 {
            suggestions.append("The history takes \(history) tokens: a Conversation compacts it automatically.")
        }
        if report.freeTokens < 0 {
            suggestions.append("The request is \(-report.freeTokens) tokens too large.")
        } else if report.freeTokens < report.contextSize / 10 {
            suggestions.append("Only \(report.freeTokens) tokens are left for the response.")
        }
        return suggestions
    }
}

extension Conversation {
    /// Counts the current context, together with a prompt if there is one, including the turns recalled for it.
    public func report(
        for prompt: String? = nil, generating schema: GenerationSchema? = nil, detailedEntries: Int = 8
    ) async throws -> ContextReport {
        // The next request would do this first. A running operation is not waited for.
        if section == nil { try await exclusively { await compactIfDue() } }
        var plan: Plan?
        if let prompt {
            let next = try await self.plan(for: Request(prompt, schema: schema))
            plan = next.fits ? next : nil
        }
        let sent = plan?.message.segments.plainText ?? prompt
        let transcript = plan.map { Transcript(entries: $0.entries) } ?? transcript
        var report = try await ContextReport(
            model: model, transcript: transcript, prompt: sent, schema: schema, detailedEntries: detailedEntries)
        report.recall = plan?.recall
        guard let prompt, let sent, sent != prompt, let place = report.parts.firstIndex(where: { $0.kind == .prompt }) else {
            return report
        }
        let plain = try await ContextReport(model: model, transcript: transcript, prompt: prompt, detailedEntries: 0)
        let tokens = plain.tokens(of: .prompt)
        let recalled = report.parts[place].tokens - tokens
        report.parts[place] = .init(kind: .prompt, name: prompt.beginning, tokens: tokens)
        report.parts.insert(.init(kind: .recalled, name: sent.beginning, tokens: recalled), at: place)
        return report
    }
}

extension String {
    /// The first words on one line, at most 48 characters.
    var beginning: String {
        let line = prefix(200).split(whereSeparator: \.isWhitespace).joined(separator: " ")
        return line.count > 48 ? line.prefix(47) + "…" : line
    }
}
