public import FoundationModels

/// What each part of a request costs, in exact tokens: their sum is what the model reads.
public struct ContextReport: Sendable, Codable {
    /// A part of a request.
    public struct Part: Sendable, Codable {
        /// What a part is.
        public enum Kind: String, Sendable, Codable, CaseIterable {
            /// What the model's template adds of its own where there are no instructions.
            case template
            /// What the model is told before everything else.
            case instructions
            /// Facts that are always there.
            case pinned
            /// What is carried over from turns that are not in the context.
            case carried
            /// The definition of a tool.
            case tool
            /// An entry of the conversation so far.
            case history
            /// Earlier turns that the prompt brings back.
            case recalled
            /// The prompt, with what opens the response to it.
            case prompt
            /// The schema of the response, in the prompt.
            case schema
        }

        /// What it is.
        public var kind: Kind
        /// Which one: a tool's name, the beginning of an entry.
        public var name: String
        /// What it costs.
        public var tokens: Int

        /// A part that a program counted itself.
        public init(kind: Kind, name: String, tokens: Int) {
            self.kind = kind
            self.name = name
            self.tokens = tokens
        }
    }

    /// Tokens of the window.
    public var contextSize: Int
    /// Everything that the model reads, in order.
    public var parts: [Part]
    /// What the prompt would bring back from earlier turns; nil without a prompt or a conversation.
    public var recall: Recall?
    /// What could be spared, in sentences.
    public var suggestions: [String] = []

    /// Tokens that the model reads.
    public var usedTokens: Int { parts.reduce(0) { $0 + $1.tokens } }
    /// Tokens left for the response; negative if the request does not fit.
    public var freeTokens: Int { contextSize - usedTokens }

    /// Tokens of all parts of a kind.
    public func tokens(of kind: Part.Kind) -> Int { parts.reduce(0) { $1.kind == kind ? $0 + $1.tokens : $0 } }

    /// Counts a request.
    ///
    /// - Parameters:
    ///   - model: Whose tokens are counted, and whose window it is.
    ///   - transcript: The conversation so far, with its instructions and tools.
    ///   - prompt: What is about to be asked; nil for the conversation alone.
    ///   - schema: What the response is to be held to.
    ///   - detailedEntries: Entries of the history that are counted one by one, from the last; those before them are one part.
    public init(
        model: some WindowedLanguageModel, transcript: some Collection<Transcript.Entry>, prompt: String? = nil,
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
        if case .instructions(let told)? = rest.first {
            rest.removeFirst()
            var shown = Transcript.Instructions(id: told.id, segments: [], toolDefinitions: [])
            for segment in told.segments {
                shown.segments.append(segment)
                let text = [segment].plainText
                let kind: Part.Kind =
                    text.hasPrefix(ContextDraft.pinnedHeading)
                    ? .pinned : text.hasPrefix(ContextDraft.carriedHeading) ? .carried : .instructions
                add(kind, text.beginning, try await model.tokenCount(for: [.instructions(shown)]))
            }
            for tool in told.toolDefinitions {
                shown.toolDefinitions.append(tool)
                add(.tool, tool.name, try await model.tokenCount(for: [.instructions(shown)]))
            }
            entries.append(.instructions(told))
        } else if !rest.isEmpty || prompt != nil {
            // What the template says by itself: what is there besides a prompt.
            let some = Transcript.Entry.prompt(.init(segments: [.text(.init(content: "x"))]))
            let told = Transcript.Entry.instructions(.init(segments: [.text(.init(content: "x"))], toolDefinitions: []))
            let alone = try await model.tokenCount(for: [told, some]) - model.tokenCount(for: [told])
            let own = try await model.tokenCount(for: [some]) - alone
            if own > 0 { add(.template, "the template's own", own) }
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
            var asked = Transcript.Prompt(segments: [.text(.init(content: prompt))])
            add(.prompt, prompt.beginning, try await model.tokenCount(for: entries + [.prompt(asked)]))
            if let schema, includeSchemaInPrompt {
                asked.responseFormat = .init(schema: schema)
                add(.schema, schema.name, try await model.tokenCount(for: entries + [.prompt(asked)]))
            }
        }
        suggestions = Self.suggestions(for: self, Array(transcript), schema: includeSchemaInPrompt ? schema : nil)
    }

    private static func suggestions(
        for report: ContextReport, _ transcript: [Transcript.Entry], schema: GenerationSchema?
    ) -> [String] {
        var found: [String] = []
        let tools = report.parts.filter { $0.kind == .tool }
        if tools.count > 5 {
            found.append("\(tools.count) tools: with more than five, models choose badly. Give a session the few that it needs.")
        }
        for tool in tools where tool.tokens > 150 {
            found.append("The tool \(tool.name) costs \(tool.tokens) tokens: shorten its descriptions and guides.")
        }
        let schemas = transcript.reduce(0) { count, entry in
            guard case .prompt(let prompt) = entry, prompt.responseFormat != nil else { return count }
            return prompt.contextOptions.includeSchemaInPrompt == false ? count : count + 1
        }
        if schemas + (schema == nil ? 0 : 1) > 1 {
            found.append(
                "The schema is in \(schemas + (schema == nil ? 0 : 1)) prompts: after the first, includeSchemaInPrompt: false saves it."
            )
        }
        if report.tokens(of: .schema) > 200 {
            found.append("The schema costs \(report.tokens(of: .schema)) tokens: use shorter names and descriptions of guides.")
        }
        if report.tokens(of: .instructions) > report.contextSize / 4 {
            found.append("The instructions take more than a quarter of the window: say less, or put material into prompts.")
        }
        let history = report.tokens(of: .history)
        if history > report.contextSize / 2 {
            found.append("The history takes \(history) tokens: a Conversation compacts it by itself.")
        }
        if report.freeTokens < 0 {
            found.append("The request is \(-report.freeTokens) tokens too large.")
        } else if report.freeTokens < report.contextSize / 10 {
            found.append("Only \(report.freeTokens) tokens are left for the response.")
        }
        return found
    }
}

extension Conversation {
    /// What the context costs now, and what it would with a prompt: what recall adds is counted with it.
    public func report(
        for prompt: String? = nil, generating schema: GenerationSchema? = nil, detailedEntries: Int = 8
    ) async throws -> ContextReport {
        // A request would wait for it, too.
        if !isInside { await pendingCompaction?.value }
        var plan: Plan?
        if let prompt {
            let found = try await self.plan(for: Request(prompt: prompt, schema: schema, options: GenerationOptions()))
            plan = found.fits ? found : nil
        }
        let asked = plan?.text ?? prompt
        let transcript = plan.map { Transcript(entries: $0.entries) } ?? transcript
        var report = try await ContextReport(
            model: model, transcript: transcript, prompt: asked, schema: schema, detailedEntries: detailedEntries)
        report.recall = plan?.recall
        guard let prompt, let asked, asked != prompt, let place = report.parts.firstIndex(where: { $0.kind == .prompt }) else {
            return report
        }
        let plain = try await ContextReport(model: model, transcript: transcript, prompt: prompt, detailedEntries: 0)
        let tokens = plain.tokens(of: .prompt)
        let recalled = report.parts[place].tokens - tokens
        report.parts[place] = .init(kind: .prompt, name: prompt.beginning, tokens: tokens)
        report.parts.insert(.init(kind: .recalled, name: asked.beginning, tokens: recalled), at: place)
        return report
    }
}

extension String {
    /// The first words, on one line.
    var beginning: String {
        let line = prefix(200).split(whereSeparator: \.isWhitespace).joined(separator: " ")
        return line.count > 48 ? line.prefix(47) + "…" : line
    }
}
