import EvaluationCore
import Foundation

/// A prompt of a text file or of a data set.
struct PlayPrompt: Hashable {
    var instructions: String?
    var text: String

    /// The prompts of a file: separated by lines of `---`, or one in each line of a data set.
    static func read(_ data: Data, name: String) throws -> [PlayPrompt] {
        if name.hasSuffix(".jsonl") {
            return try EvaluationDataSet(data, name: name).samples.map {
                PlayPrompt(instructions: $0.instructions, text: $0.fullPrompt)
            }
        }
        guard let text = String(validating: data, as: UTF8.self) else {
            throw CommandFailure("“\(name)” is not UTF-8 text.", code: .wrongUsage)
        }
        var prompts: [PlayPrompt] = []
        var lines: [Substring] = []
        var instructions: String?
        func end() {
            let text = lines.joined(separator: "\n").trimmingCharacters(in: .whitespacesAndNewlines)
            if !text.isEmpty { prompts.append(PlayPrompt(instructions: instructions, text: text)) }
            (lines, instructions) = ([], nil)
        }
        for line in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
            if line.trimmingCharacters(in: .whitespaces) == "---" {
                end()
            } else if line.hasPrefix("@instructions ") {
                instructions = String(line.dropFirst("@instructions ".count))
            } else {
                lines.append(line)
            }
        }
        end()
        if prompts.isEmpty { throw CommandFailure("“\(name)” contains no prompts.", code: .wrongUsage) }
        return prompts
    }
}
