import Foundation
import FoundationModels

/// One line of the history screen.
struct HistoryLine: Identifiable, Equatable {
    enum Speaker: String { case app, person, model, tool }

    let id: String
    let speaker: Speaker
    let text: String
}

/// Shows a transcript, entry by entry.
enum TranscriptViewer {
    static func lines(of transcript: Transcript) -> [HistoryLine] {
        transcript.map(line)
    }

    static func line(for entry: Transcript.Entry) -> HistoryLine {
        switch entry {
        case .instructions(let instructions):
            let tools = instructions.toolDefinitions.map(\.name)
            let suffix = tools.isEmpty ? "" : " [\(tools.joined(separator: ", "))]"
            return HistoryLine(id: entry.id, speaker: .app, text: text(of: instructions.segments) + suffix)
        case .prompt(let prompt):
            let format = prompt.responseFormat.map { " → \($0.name)" } ?? ""
            return HistoryLine(id: prompt.id, speaker: .person, text: text(of: prompt.segments) + format)
        case .toolCalls(let calls):
            let names = calls.map { "\($0.toolName)(\($0.arguments.jsonString))" }
            return HistoryLine(id: calls.id, speaker: .model, text: names.joined(separator: "; "))
        case .toolOutput(let output):
            return HistoryLine(id: output.id, speaker: .tool, text: "\(output.toolName): \(text(of: output.segments))")
        case .response(let response):
            return HistoryLine(id: response.id, speaker: .model, text: text(of: response.segments))
        case .reasoning(let reasoning):
            return HistoryLine(id: reasoning.id, speaker: .model, text: "(\(text(of: reasoning.segments)))")
        case .data(let data):
            return HistoryLine(id: data.id, speaker: .model, text: "[\(data.contentType.identifier)]")
        @unknown default:
            return HistoryLine(id: entry.id, speaker: .app, text: entry.description)
        }
    }

    static func text(of segments: [Transcript.Segment]) -> String {
        segments.map { segment in
            switch segment {
            case .text(let text):
                text.content
            case .structure(let structure):
                "\(structure.schemaName) \(structure.content.jsonString)"
            case .attachment(let attachment):
                "[\(attachment.label ?? "picture")\(fileName(of: attachment.content))]"
            @unknown default:
                segment.description
            }
        }
        .joined(separator: "\n")
    }

    private static func fileName(of attachment: Transcript.Attachment) -> String {
        switch attachment {
        case .data: ""
        case .image(let image): image.url.map { " " + $0.lastPathComponent } ?? ""
        @unknown default: ""
        }
    }

    /// The most recent response, for the widget.
    static func lastAnswer(in transcript: Transcript) -> String? {
        for entry in transcript.reversed() {
            if case .response(let response) = entry {
                return text(of: response.segments)
            }
        }
        return nil
    }

    static func toolsUsed(in entries: some Sequence<Transcript.Entry>) -> [String] {
        entries.compactMap { entry -> Transcript.ToolCalls? in
            guard case .toolCalls(let calls) = entry else { return nil }
            return calls
        }
        .flatMap { $0 }
        .map(\.toolName)
    }

    static func counts(in transcript: Transcript) -> [String: Int] {
        Dictionary(grouping: transcript) { entry in
            switch entry {
            case .instructions: "instructions"
            case .prompt: "prompt"
            case .toolCalls: "toolCalls"
            case .toolOutput: "toolOutput"
            case .response: "response"
            case .reasoning: "reasoning"
            case .data: "data"
            @unknown default: "other"
            }
        }
        .mapValues(\.count)
    }

    /// Access by index, as a list view does.
    static func ids(in transcript: Transcript) -> [Transcript.Entry.ID] {
        transcript.indices.map { transcript[$0].id }
    }
}
