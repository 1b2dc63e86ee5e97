import Foundation
import FoundationModelsTraining
import Inference
import Reports

/// Shows rows as the model reads them, with what is learned in colour, or in brackets where there are no colours.
struct TrainingPreview {
    private let encoder: SequenceEncoder
    private let data: TrainingData
    private static let shownRows = 5

    init(model path: String, _ data: TrainingData) throws {
        do { encoder = try SequenceEncoder(GGUFFile(path: path)) } catch let error as ModelError {
            throw TrainingError.damagedModel(error.description)
        }
        self.data = data
    }

    func show() throws {
        let hasColors = Terminal.hasColors(STDOUT_FILENO)
        let (begin, end) = hasColors ? (Terminal.Style.green.begin, Terminal.Style.end) : ("⟦", "⟧")
        var (tokens, learned, longest) = (0, 0, 0)
        for (number, row) in data.rows.enumerated() {
            for sequence in try encoder.sequences(row) {
                tokens += sequence.tokens.count
                learned += sequence.learnedCount
                longest = max(longest, sequence.tokens.count)
                guard number < Self.shownRows else { continue }
                print("── line \(sequence.line): \(sequence.tokens.count) tokens, \(sequence.learnedCount) learned")
                var bytes: [UInt8] = []
                var isInside = false
                var text = ""
                func flush() {
                    text += TerminalText.safe(String(decoding: bytes, as: UTF8.self))
                    bytes = []
                }
                for (token, isLearned) in zip(sequence.tokens, sequence.isLearned) {
                    if isLearned != isInside {
                        flush()
                        text += isLearned ? begin : end
                        isInside = isLearned
                    }
                    bytes += encoder.bytes(of: token)
                }
                flush()
                try Output().writeStyled(text + (isInside ? end : "") + "\n")
            }
        }
        try Output().writeStyled(
            "\(data.count) rows, \(tokens) tokens, \(learned) learned (\(begin)marked\(end)); the longest row has \(longest) tokens.\n"
        )
    }
}
