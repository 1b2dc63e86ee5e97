public import FoundationModels
import ModelPrompts

/// Marks the outputs of tools as data, so that a model is less likely to follow instructions in them (Hines et al., "Defending
/// Against Indirect Prompt Injection Attacks With Spotlighting", arXiv:2403.14720).
///
/// ```swift
/// let spotlighting = Spotlighting()
/// Profile { … }.historyTransform(spotlighting.marked)
/// ```
///
/// The transcript keeps the texts as they are. Documents that a program puts into a prompt itself can be marked in the same way.
public struct Spotlighting: Sendable {
    /// The word that surrounds data. Texts from outside cannot contain it, because it is random.
    let key: String

    /// Creates marks with a random key. Keep the value as long as the session: other marks would change the processed history.
    public init() { self.init(key: String((0..<6).map { _ in "abcdefghijkmnpqrstuvwxyz".randomElement() ?? "x" })) }

    /// Marks that are always the same, for repeatable tests.
    package init(key: String) { self.key = key }

    /// Instructions that explain the marks. The transform adds them.
    public var instructions: String {
        ModelPrompts.spotlighting(key)
    }

    /// A text of a document or a tool with marks.
    public func marked(_ text: String) -> String { "[data \(key)]\n\(text)\n[end \(key)]" }

    /// A prompt about a text of a document: the text with marks, and then the request, so that it is the last that the model reads.
    public func prompt(_ request: String, about text: String) -> String { "\(marked(text))\n\(ModelPrompts.request(request))" }

    /// A history in which the outputs of tools have marks, with an explanation of them: for `historyTransform`.
    public func marked(_ entries: [Transcript.Entry]) -> [Transcript.Entry] {
        var entries = entries
        let place = entries.firstIndex { if case .instructions = $0 { true } else { false } }
        // A history may come without its instructions. Then the first output explains the marks.
        var explanation = place == nil ? instructions + "\n" : ""
        var hasData = false
        var request: String?
        func data(_ text: String) -> String {
            defer { explanation = "" }
            hasData = true
            // The output of a tool is the last that the model reads: it must end with what the user wants.
            return explanation + (request.map { prompt($0, about: text) } ?? marked(text))
        }
        for (index, entry) in entries.enumerated() {
            if case .prompt(let prompt) = entry { request = prompt.segments.modelText }
            guard case .toolOutput(var output) = entry else { continue }
            output.segments = output.segments.map { segment in
                switch segment {
                case .text(var text):
                    text.content = data(text.content)
                    return .text(text)
                case .structure(let structure):
                    return .text(.init(id: structure.id, content: data(structure.content.jsonString)))
                default: return segment
                }
            }
            entries[index] = .toolOutput(output)
        }
        if hasData, let place, case .instructions(var first) = entries[place] {
            first.segments.append(.text(.init(content: instructions)))
            entries[place] = .instructions(first)
        }
        return entries
    }
}
