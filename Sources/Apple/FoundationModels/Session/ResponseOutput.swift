internal import JSON

/// The output of a request: the entries of its completed rounds, and what the model has generated in the current round.
///
/// Text and values are parsed incrementally: reading the current content never parses the response again.
struct ResponseOutput: Sendable {
    /// A complete response.
    struct Finished: Sendable {
        var content: GeneratedContent
        var entries: ArraySlice<Transcript.Entry>
        var usage: LanguageModelSession.Usage
    }

    /// The current state of a response.
    struct Current {
        var content: GeneratedContent?
        var isComplete = false
        var entries: ArraySlice<Transcript.Entry>
        var usage: LanguageModelSession.Usage
    }

    /// The name of the response's schema; nil for text.
    private let schemaName: String?
    /// The prompt, and the entries of the completed rounds.
    private(set) var entries: [Transcript.Entry] = []
    private var assembler = ResponseAssembler()
    private var text = ""
    /// Parses structured responses; nil for text.
    private var reader: ContentReader?
    /// Why the response is not valid JSON.
    private var failure: JSONSyntaxError?
    private var usageOfRounds = LanguageModelSession.Usage.zero
    /// Why an entry of data is not part of the output. What the model sends afterwards is not either.
    private(set) var refusal: (any Error)?

    init(schemaName: String?) { self.schemaName = schemaName }

    /// Records an entry that the model did not generate: the prompt or a tool's output.
    mutating func record(_ entry: Transcript.Entry) { entries.append(entry) }

    /// Begins one model request of this session request.
    ///
    /// - Parameters:
    ///   - usedIDs: The ids of the transcript's entries, which new entries must not have.
    ///   - replaceableIDs: The ids of its entries that the model may change.
    mutating func beginRound(usedIDs: Set<String>, replaceableIDs: Set<String>) {
        assembler = ResponseAssembler(usedIDs: usedIDs, replaceableIDs: replaceableIDs)
        restart()
    }

    /// Returns whether the event has changed the output.
    mutating func apply(_ event: LanguageModelExecutorGenerationChannel.Event) -> Bool {
        if refusal != nil { return false }
        switch assembler.apply(event) {
        case .none: return false
        case .appended(let text): append(text)
        case .replaced:
            restart()
            append(assembler.text)
        }
        return true
    }

    mutating func refuse(because error: any Error) { refusal = refusal ?? error }

    private mutating func restart() {
        text = ""
        failure = nil
        reader = schemaName == nil ? nil : ContentReader(assignsIDs: true)
    }

    private mutating func append(_ more: String) {
        text += more
        guard failure == nil else { return }
        do { try reader?.append(more) } catch { failure = error }
    }

    /// Ends the round and returns the entries that the model generated in it.
    ///
    /// - Throws: ``GeneratedContent/ParsingError`` if a structured response is not a complete JSON value.
    mutating func endRound() throws -> [Transcript.Entry] {
        var structure: (String, GeneratedContent)?
        if let schemaName, !assembler.hasToolCalls { structure = (schemaName, try value()) }
        let made = try assembler.transcriptEntries(structure: structure)
        entries += made
        usageOfRounds.add(assembler.usage)
        assembler = ResponseAssembler()
        return made
    }

    private mutating func value() throws -> GeneratedContent {
        var reader = reader ?? ContentReader()
        do throws(JSONSyntaxError) {
            if let failure { throw failure }
            guard let value = try reader.finished() else { throw reader.truncation }
            self.reader = reader
            return value
        } catch {
            throw GeneratedContent.ParsingError(
                rawContent: text, underlyingError: error,
                debugDescription: "The response is not a JSON document. \(error)")
        }
    }

    /// The data that the model has generated in this round.
    var dataEntries: [Transcript.DataEntry] { assembler.dataEntries }

    /// The entries of an interrupted round, and whether they are a part of an answer: text, but not the beginning of a value.
    var partialEntries: (entries: [Transcript.Entry], isAnswer: Bool) {
        (assembler.partialEntries(), schemaName == nil && !assembler.text.isEmpty)
    }

    /// The tokens used so far by all rounds.
    var usage: LanguageModelSession.Usage {
        var total = usageOfRounds
        if !assembler.isEmpty { total.add(assembler.usage) }
        return total
    }

    var current: Current {
        let text = text.isEmpty ? nil : GeneratedContent(storage: .string(text))
        let content = reader == nil ? text : reader?.content
        return Current(
            // Even a closed value is not complete before the request has ended.
            content: content.map { GeneratedContent(storage: $0.storage, id: $0.id, isComplete: false) },
            entries: (entries + liveEntries)[...], usage: usage)
    }

    /// What the model has generated in the current round so far, without tool calls.
    var liveEntries: [Transcript.Entry] {
        assembler.partialEntries(structure: schemaName.flatMap { name in reader?.content.map { (name, $0) } })
    }

    /// The response after the last round, its entries, and the total usage of the request.
    var finished: Finished {
        let value = schemaName == nil ? nil : reader?.content
        return Finished(content: value ?? text.generatedContent, entries: entries[...], usage: usageOfRounds)
    }
}

extension ResponseOutput.Current {
    init(_ finished: ResponseOutput.Finished) {
        self.init(content: finished.content, isComplete: true, entries: finished.entries, usage: finished.usage)
    }
}
