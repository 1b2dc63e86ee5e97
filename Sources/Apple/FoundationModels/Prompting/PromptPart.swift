/// A component of a prompt or of instructions.
enum PromptPart: Sendable {
    case text(String)
    case attachment(Transcript.AttachmentSegment)
}

extension [PromptPart] {
    /// The components as segments; adjacent texts become the lines of one segment.
    var segments: [Transcript.Segment] {
        var result: [Transcript.Segment] = []
        var lines: [String] = []
        func endText() {
            if !lines.isEmpty { result.append(.text(.init(content: lines.joined(separator: "\n")))) }
            lines = []
        }
        for part in self {
            switch part {
            case .text(let text): lines.append(text)
            case .attachment(let attachment):
                endText()
                result.append(.attachment(attachment))
            }
        }
        endText()
        return result
    }
}

extension Prompt {
    /// The text that the model receives for the prompt.
    package var modelText: String { parts.segments.modelText }
}

extension Instructions {
    /// The text that the model receives for the instructions.
    package var modelText: String { parts.segments.modelText }
}
