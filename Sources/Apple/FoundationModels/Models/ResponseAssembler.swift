internal import Foundation

/// Builds transcript entries from a model's events, in the order of each entry's first event.
///
/// Each fragment is appended to its text in place, so that building is linear in the length of the response.
package struct ResponseAssembler: Sendable {
    private typealias Channel = LanguageModelExecutorGenerationChannel

    private struct TextSegment {
        let id: String
        var text: String
    }

    private enum Segment {
        case text(TextSegment)
        case attachment(Transcript.AttachmentSegment)
    }

    private struct Call {
        let id: String
        /// The id that the executor uses.
        let key: String
        let name: String
        var arguments = ""
        var metadata: [String: GeneratedContent] = [:]
    }

    private struct Entry {
        enum Content {
            case response
            case reasoning
            case toolCalls
            case data
        }

        let id: String
        /// The id that the executor uses.
        let key: String
        let content: Content
        var segments: [Segment] = []
        var calls: [Call] = []
        var signature: Data?
        var data: Channel.DataEntry.Update?
        var metadata: [String: GeneratedContent] = [:]

        var dataEntry: Transcript.DataEntry? {
            data.map { .init(id: id, contentType: $0.contentType, content: $0.content, metadata: $0.metadata) }
        }

        /// The id of the segment with the response's text or value.
        var segmentID: String { if case .text(let text)? = segments.first { text.id } else { id } }
    }

    /// The change that an event makes to the text of the response.
    package enum TextChange {
        case none
        case appended(String)
        /// The text was replaced entirely.
        case replaced
    }

    private var entries: [Entry] = []
    private var lastKind: Entry.Content?
    /// Counted from the fragments; replaced by the usage that the executor reports itself.
    private var counted = LanguageModelSession.Usage.zero
    private var reported: LanguageModelSession.Usage?

    /// The ids of the entries and calls of the transcript, and of those generated so far.
    private var usedIDs: Set<String>

    /// The ids of entries of the transcript that events may change.
    private let replaceableIDs: Set<String>

    package init(usedIDs: Set<String> = [], replaceableIDs: Set<String> = []) {
        self.usedIDs = usedIDs
        self.replaceableIDs = replaceableIDs
    }

    package var usage: LanguageModelSession.Usage { reported ?? counted }
    /// The entries of data.
    var dataEntries: [Transcript.DataEntry] { entries.compactMap(\.dataEntry) }
    var hasToolCalls: Bool { entries.contains { !$0.calls.isEmpty } }
    var isEmpty: Bool { entries.isEmpty }

    /// The text of the current or last response entry.
    var text: String {
        guard let entry = entries.last(where: { $0.content == .response }) else { return "" }
        return entry.segments.map { if case .text(let segment) = $0 { segment.text } else { "" } }.joined()
    }

    /// Applies an event.
    @discardableResult
    package mutating func apply(_ event: LanguageModelExecutorGenerationChannel.Event) -> TextChange {
        switch event.kind {
        case .response(let response): apply(response)
        case .reasoning(let reasoning): apply(reasoning)
        case .toolCalls(let calls): apply(calls)
        case .data(let data): apply(data)
        }
    }

    private mutating func apply(_ data: Channel.DataEntry) -> TextChange {
        // Each event without an id is a new entry.
        let index = entry(data.entryID ?? UUID().uuidString, .data)
        switch data.action.kind {
        case .update(let update): entries[index].data = update
        }
        return .none
    }

    private mutating func apply(_ response: Channel.Response) -> TextChange {
        if case .usage(let usage) = response.action.kind { report(usage) }
        let before = entries.count
        let index = entry(response.entryID, .response)
        switch response.action.kind {
        case .appendText(let fragment):
            counted.output.totalTokenCount.add(fragment.tokenCount)
            let isAtEnd = append(fragment.content, to: fragment.segmentID, of: index)
            let isNew = entries.count > before && entries.dropLast().contains { $0.content == .response }
            return isNew || !isAtEnd || index != entries.lastIndex(where: { $0.content == .response })
                ? .replaced : .appended(fragment.content)
        case .replaceText(let replacement):
            counted.output.totalTokenCount.add(replacement.tokenCount)
            replace(replacement.content, segmentID: replacement.segmentID, of: index)
            return .replaced
        case .addAttachment(let segment): entries[index].segments.append(.attachment(segment))
        case .removeAttachment(let id):
            entries[index].segments.removeAll { if case .attachment(let segment) = $0 { segment.id == id } else { false } }
        case .metadata(let metadata): entries[index].metadata = metadata.values
        case .usage: break
        }
        return .none
    }

    private mutating func apply(_ reasoning: Channel.Reasoning) -> TextChange {
        if case .usage(let usage) = reasoning.action.kind { report(usage) }
        let index = entry(reasoning.entryID, .reasoning)
        func count(_ tokens: Int) {
            counted.output.totalTokenCount.add(tokens)
            counted.output.reasoningTokenCount.add(tokens)
        }
        switch reasoning.action.kind {
        case .appendText(let fragment):
            count(fragment.tokenCount)
            append(fragment.content, to: fragment.segmentID, of: index)
        case .replaceText(let replacement):
            count(replacement.tokenCount)
            replace(replacement.content, segmentID: replacement.segmentID, of: index)
        case .signature(let signature):
            count(signature.tokenCount)
            entries[index].signature = signature.signature
        case .metadata(let metadata): entries[index].metadata = metadata.values
        case .usage: break
        }
        return .none
    }

    private mutating func apply(_ calls: Channel.ToolCalls) -> TextChange {
        if case .usage(let usage) = calls.action.kind { report(usage) }
        let index = entry(calls.entryID, .toolCalls)
        switch calls.action.kind {
        case .toolCall(let call):
            let known = entries[index].calls.firstIndex { $0.key == call.id }
            let place = known ?? entries[index].calls.count
            if known == nil { entries[index].calls.append(Call(id: unusedID(call.id), key: call.id, name: call.name)) }
            switch call.action.kind {
            case .arguments(let fragment):
                counted.output.totalTokenCount.add(fragment.tokenCount)
                entries[index].calls[place].arguments += fragment.content
            case .metadata(let metadata): entries[index].calls[place].metadata = metadata.values
            }
        case .removeToolCall(let id): entries[index].calls.removeAll { $0.key == id }
        case .metadata(let metadata): entries[index].metadata = metadata.values
        case .usage: break
        }
        return .none
    }

    private mutating func report(_ usage: Channel.Usage) {
        reported = LanguageModelSession.Usage(
            input: .init(
                totalTokenCount: usage.input.totalTokenCount, cachedTokenCount: usage.input.cachedTokenCount),
            output: .init(
                totalTokenCount: usage.output.totalTokenCount, reasoningTokenCount: usage.output.reasoningTokenCount),
            metadata: usage.metadata)
    }

    /// The index of the entry that an event belongs to; appends a new entry if there is none.
    private mutating func entry(_ id: String?, _ content: Entry.Content) -> Int {
        defer { lastKind = content }
        if let id {
            if let index = entries.firstIndex(where: { $0.key == id && $0.content == content }) { return index }
        } else if content != .reasoning || lastKind == .reasoning,
            let index = entries.lastIndex(where: { $0.content == content })
        {
            return index
        }
        let key = id ?? UUID().uuidString
        // An executor that names an entry of data or of reasoning of the transcript changes that entry.
        let isKnown = replaceableIDs.contains(key) && (content == .reasoning || content == .data)
        entries.append(Entry(id: isKnown ? key : unusedID(key), key: key, content: content))
        return entries.count - 1
    }

    /// An id for a new entry or call: some executors number those of each request in the same way, but an id must not occur twice
    /// in a transcript.
    private mutating func unusedID(_ key: String) -> String {
        if usedIDs.insert(key).inserted { return key }
        let id = UUID().uuidString
        usedIDs.insert(id)
        return id
    }

    /// - Returns: Whether the text was appended at the end of the entry's text.
    @discardableResult
    private mutating func append(_ text: String, to segmentID: String?, of index: Int) -> Bool {
        let place = textSegment(segmentID, of: index)
        // The text is moved out of the array while it grows, so that appending does not copy it.
        guard case .text(var segment) = entries[index].segments[place] else { return false }
        entries[index].segments[place] = .text(TextSegment(id: segment.id, text: ""))
        segment.text += text
        entries[index].segments[place] = .text(segment)
        return !entries[index].segments[(place + 1)...].contains { if case .text = $0 { true } else { false } }
    }

    private mutating func replace(_ text: String, segmentID: String?, of index: Int) {
        let place = textSegment(segmentID, of: index)
        guard case .text(let segment) = entries[index].segments[place] else { return }
        entries[index].segments[place] = .text(TextSegment(id: segment.id, text: text))
    }

    private mutating func textSegment(_ id: String?, of index: Int) -> Int {
        let known = entries[index].segments.lastIndex { segment in
            guard case .text(let segment) = segment else { return false }
            return id == nil || segment.id == id
        }
        if let known { return known }
        entries[index].segments.append(.text(TextSegment(id: id ?? UUID().uuidString, text: "")))
        return entries[index].segments.count - 1
    }

    // MARK: - Entries

    /// The entries generated so far.
    ///
    /// - Parameter structure: The schema name and the value of a structured response; nil for text.
    /// - Throws: ``GeneratedContent/ParsingError`` if the arguments of a call are not JSON.
    package func transcriptEntries(structure: (schemaName: String, content: GeneratedContent)? = nil) throws -> [Transcript.Entry]
    {
        try entries.compactMap { entry in
            switch entry.content {
            case .response: response(entry, structure)
            // A reasoning entry that only reports usage is omitted.
            case .reasoning where entry.segments.isEmpty && entry.signature == nil: nil
            case .reasoning:
                .reasoning(
                    .init(id: entry.id, metadata: entry.metadata, segments: segments(entry), signature: entry.signature))
            case .data: entry.dataEntry.map { .data($0) }
            case .toolCalls:
                entry.calls.isEmpty
                    ? nil
                    : .toolCalls(
                        .init(
                            id: entry.id,
                            try entry.calls.map { call in
                                .init(
                                    id: call.id, metadata: call.metadata, toolName: call.name,
                                    arguments: try Self.arguments(call))
                            }))
            }
        }
    }

    /// The entries generated so far, without tool calls, whose arguments may be incomplete.
    ///
    /// - Parameter structure: The schema name and the partial value of a structured response; nil for text.
    func partialEntries(structure: (schemaName: String, content: GeneratedContent)? = nil) -> [Transcript.Entry] {
        entries.compactMap { entry in
            switch entry.content {
            case .response where !entry.segments.isEmpty: response(entry, structure)
            case .reasoning where !entry.segments.isEmpty:
                .reasoning(
                    .init(id: entry.id, metadata: entry.metadata, segments: segments(entry), signature: entry.signature))
            default: nil
            }
        }
    }

    private static func arguments(_ call: Call) throws -> GeneratedContent {
        if call.arguments.isEmpty { return GeneratedContent(properties: [:]) }
        let content = try GeneratedContent(json: call.arguments)
        guard content.isComplete else {
            throw GeneratedContent.ParsingError(
                rawContent: call.arguments, debugDescription: "The arguments of the call to “\(call.name)” are truncated.")
        }
        return content
    }

    private func response(
        _ entry: Entry, _ structure: (schemaName: String, content: GeneratedContent)?
    ) -> Transcript.Entry? {
        if let structure, entry.id == entries.last(where: { $0.content == .response })?.id {
            return .response(
                .init(
                    id: entry.id, metadata: entry.metadata,
                    segments: [
                        .structure(
                            .init(id: entry.segmentID, schemaName: structure.schemaName, content: structure.content))
                    ]))
        }
        // A response entry that only reports usage is omitted.
        if entry.segments.isEmpty, hasToolCalls { return nil }
        return .response(.init(id: entry.id, metadata: entry.metadata, segments: segments(entry)))
    }

    private func segments(_ entry: Entry) -> [Transcript.Segment] {
        entry.segments.map { segment in
            switch segment {
            case .text(let segment): .text(.init(id: segment.id, content: segment.text))
            case .attachment(let segment): .attachment(segment)
            }
        }
    }
}
