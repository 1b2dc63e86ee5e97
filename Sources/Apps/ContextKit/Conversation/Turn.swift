public import Foundation
public import FoundationModels
import Logging
import TextSearch

/// A prompt and everything that was generated for it: tool calls with their outputs, reasoning, the response.
///
/// Compaction removes whole turns, so that a prompt is never separated from its response, nor a call from its output.
public struct Turn: Sendable {
    /// The turn's number in the conversation, from 0. Numbers are not reused.
    public let number: Int
    /// The text of the user's prompt, without what the conversation put in front of it. Attachments are named in their places.
    public let prompt: String
    /// When the prompt was sent; nil for turns of older archives.
    public let date: Date?
    /// The entries as the model sees them.
    public internal(set) var entries: [Transcript.Entry]

    init(number: Int, prompt: String, date: Date?, entries: [Transcript.Entry]) {
        self.number = number
        self.prompt = prompt
        self.date = date
        self.entries = entries
    }

    /// The words of the turn, separated by spaces in all scripts.
    var indexedText: String { SearchText.indexed("\(prompt)\n\(response)") }

    /// The text of the full-text index: the words, and the terms of the date.
    var searchedText: String { searchedText(date) }

    /// The text of the index as a program in this time zone or another one has made it: the turn may have another day there.
    var searchedTexts: [String] {
        guard let date else { return [searchedText] }
        return [0, -1, 1].map { searchedText(date + $0 * 86_400) }
    }

    private func searchedText(_ date: Date?) -> String {
        ([indexedText] + (date.map { DateWords.words(of: $0) } ?? [])).joined(separator: " ")
    }

    /// The text of the model's response.
    public var response: String {
        entries.map { entry in
            if case .response(let response) = entry { response.segments.plainText } else { "" }
        }.filter { !$0.isEmpty }.joined(separator: "\n")
    }

    /// The turn as text: for display, for summaries and for recall.
    public var text: String { (["User: \(prompt)"] + outputs + ["Assistant: \(response)"]).joined(separator: "\n") }

    /// The outputs of tools and the response.
    var modelText: String { (outputs + [response]).joined(separator: "\n") }

    private var outputs: [String] {
        entries.compactMap { entry in
            if case .toolOutput(let output) = entry {
                "Output of the tool \(output.toolName): \(output.segments.plainText)"
            } else {
                nil
            }
        }
    }

    /// Whether the turn contains a part of an answer: text, or the output of a tool.
    var hasAnswer: Bool {
        entries.contains { entry in
            switch entry {
            case .response(let response): !response.segments.plainText.isEmpty
            case .toolOutput: true
            default: false
            }
        }
    }

    /// The turn as the archive will return it: with what was in the files of its attachments. If it cannot be stored, for example because
    /// a file cannot be read, a turn with only the texts of its entries.
    var storable: Turn {
        var turn = self
        do {
            let data = try JSONEncoder().encode(Transcript(entries: entries))
            guard hasAttachments else { return self }
            if data.count <= Self.maximumBytes {
                turn.entries = Array(try JSONDecoder().decode(Transcript.self, from: data))
                return turn
            }
            Logger.contextKit.warning("The attachments of a turn are not stored: with them it has \(data.count) bytes.")
        } catch { Logger.contextKit.warning("The attachments of a turn are not stored: \(error)") }
        turn.entries = entries.compactMap { entry in
            switch entry {
            case .prompt(let entry): .prompt(.init(id: entry.id, segments: entry.segments.withoutAttachments))
            case .response(let entry): .response(.init(id: entry.id, segments: entry.segments.withoutAttachments))
            case .toolCalls: entry
            case .toolOutput(let entry):
                .toolOutput(.init(id: entry.id, toolName: entry.toolName, segments: entry.segments.withoutAttachments))
            default: nil
            }
        }
        return turn
    }

    /// The maximum size of a turn with attachments as JSON.
    private static let maximumBytes = 48 << 20

    /// Whether a prompt or the output of a tool has content that is not text.
    var hasAttachments: Bool {
        entries.contains { entry in
            switch entry {
            case .prompt(let entry): entry.segments.hasAttachments
            case .toolOutput(let entry): entry.segments.hasAttachments
            case .response(let entry): entry.segments.hasAttachments
            default: false
            }
        }
    }

    /// Whether earlier turns are in front of the prompt. They never are in the archive.
    var hasRecalled: Bool {
        entries.contains { entry in
            if case .prompt(let prompt) = entry { prompt.segments.contains { $0.id == Message.recalledID } } else { false }
        }
    }

    /// The turn without recalled turns in front of its prompt.
    var withoutRecalledTurns: Turn { hasRecalled ? withOriginalPrompt : self }

    /// The turn with only the user's prompt: without recalled turns, and without facts that were pinned since the last
    /// compaction.
    var withOriginalPrompt: Turn {
        guard let index = entries.firstIndex(where: { if case .prompt = $0 { true } else { false } }),
            case .prompt(var entry) = entries[index]
        else { return self }
        let segments = entry.segments.filter { $0.id != Message.recalledID && $0.id != Message.factsID }
        if segments.count < entry.segments.count {
            entry.segments = segments
        } else if segments.plainText != prompt {
            // Earlier versions of this package stored facts and prompt as one text.
            entry.segments = [.text(.init(content: prompt))]
        }
        var turn = self
        turn.entries[index] = .prompt(entry)
        return turn
    }

    /// The turn without what was said after the last output of a tool.
    var withoutAnswer: Turn {
        let outputs = (entries.lastIndex { if case .toolOutput = $0 { true } else { false } } ?? -1) + 1
        var turn = self
        turn.entries = entries[..<outputs] + entries[outputs...].filter { if case .response = $0 { false } else { true } }
        return turn
    }

    /// The turn without tool calls, their outputs and reasoning, if it contains a response.
    var withoutTools: Turn {
        guard entries.contains(where: { if case .response = $0 { true } else { false } }) else { return self }
        var turn = self
        turn.entries.removeAll {
            switch $0 {
            case .toolCalls, .toolOutput, .reasoning: true
            default: false
            }
        }
        return turn
    }

    var usesTools: Bool { entries.contains { if case .toolCalls = $0 { true } else { false } } }
}

extension [Transcript.Segment] {
    /// The text of the segments: structures as JSON, and attachments by their names.
    var plainText: String {
        map { segment in
            switch segment {
            case .text(let text): text.content
            case .structure(let structure): structure.content.jsonString
            case .attachment(let attachment): attachment.description
            }
        }.joined(separator: "\n")
    }

    var hasAttachments: Bool { contains { if case .attachment = $0 { true } else { false } } }

    /// The segments with the names of attachments in their places.
    var withoutAttachments: [Transcript.Segment] {
        map { segment in
            if case .text = segment { segment } else { .text(.init(id: segment.id, content: [segment].plainText)) }
        }
    }
}
