public import Foundation
public import FoundationModels
import TextSearch

/// A prompt and everything that was generated for it: tool calls with their outputs, reasoning, the response.
///
/// Compaction removes whole turns, so that a prompt is never separated from its response, nor a call from its output.
public struct Turn: Sendable {
    /// The turn's number in the conversation, from 0. Numbers are not reused.
    public let number: Int
    /// The user's prompt, without the text that recall put in front of it.
    public let prompt: String
    /// When the prompt was sent; nil for turns of older archives.
    public let date: Date?
    /// The entries as the model sees them.
    public internal(set) var entries: [Transcript.Entry]
    /// Whether recall has put earlier turns in front of the prompt. It has not in the archive, where recalled turns are left out.
    var hasRecalled = false

    init(number: Int, prompt: String, date: Date?, entries: [Transcript.Entry]) {
        self.number = number
        self.prompt = prompt
        self.date = date
        self.entries = entries
    }

    /// The words of the turn, separated by spaces in all scripts.
    var indexedText: String { SearchText.indexed("\(prompt)\n\(response)") }

    /// The text of the full-text index: the words, and the terms of the date.
    var searchedText: String { ([indexedText] + (date.map { DateWords.words(of: $0) } ?? [])).joined(separator: " ") }

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

    /// The turn itself if it can be encoded as JSON. Otherwise, for example if it has an image that cannot be read, a turn with
    /// only the texts of its entries.
    var encodable: Turn {
        if (try? JSONEncoder().encode(Transcript(entries: entries))) != nil { return self }  // the reason does not matter
        var turn = self
        turn.entries = entries.compactMap { entry in
            switch entry {
            case .prompt(let entry): .prompt(.init(id: entry.id, segments: [.text(.init(content: entry.segments.plainText))]))
            case .response(let entry): .response(.init(id: entry.id, segments: [.text(.init(content: entry.segments.plainText))]))
            case .toolCalls: entry
            case .toolOutput(let entry):
                .toolOutput(
                    .init(
                        id: entry.id, toolName: entry.toolName, segments: [.text(.init(content: entry.segments.plainText))]))
            default: nil
            }
        }
        return turn
    }

    /// The turn without recalled turns in front of its prompt.
    var withoutRecalledTurns: Turn { hasRecalled ? withOriginalPrompt : self }

    /// The turn with only the user's prompt: without recalled turns, and without facts that were pinned since the last
    /// compaction.
    var withOriginalPrompt: Turn {
        var turn = self
        turn.hasRecalled = false
        for (index, entry) in entries.enumerated() {
            guard case .prompt(var asked) = entry else { continue }
            if asked.segments.plainText != prompt { asked.segments = [.text(.init(content: prompt))] }
            turn.entries[index] = .prompt(asked)
            break
        }
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
    /// The text of the segments, structures as JSON.
    var plainText: String {
        compactMap { segment in
            switch segment {
            case .text(let text): text.content
            case .structure(let structure): structure.content.jsonString
            default: nil
            }
        }.joined(separator: "\n")
    }
}
