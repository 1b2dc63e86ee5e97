internal import GuardrailTable

/// Scores texts for unsafe content with a small linear classifier that is a part of the program.
///
/// The work is proportional to the length of the text; nothing is loaded.
package enum UnsafeTextScore {
    /// The score of a text.
    package struct Result: Sendable {
        /// The log-odds that the text is unsafe, for the worst part of it.
        package var unsafe: Float
        /// The log-odds of each category.
        package var categories: [(name: String, score: Float)]
    }

    package static let categories = (0..<gt_category_count()).map { String(cString: gt_category($0)) }

    /// Texts are scored in parts of this many symbols.
    private static let window = Int(GT_WINDOW)
    private static let wordBit: UInt32 = 1 << 31

    /// The score of the worst part of a text.
    ///
    /// - Parameter threshold: categories are computed only for parts with at least this score.
    package static func score(_ text: String, threshold: Float = -.infinity) -> Result {
        var text = text
        return text.withUTF8 { score($0, threshold: threshold) }
    }

    private static func score(_ bytes: UnsafeBufferPointer<UInt8>, threshold: Float) -> Result {
        var result = Result(unsafe: -.infinity, categories: [])
        var symbols: [UInt32] = []
        symbols.reserveCapacity(min(window, bytes.count))
        func finishPart() {
            let score = gt_score(symbols, Int32(symbols.count), nil)
            guard score > result.unsafe else { return }
            result.unsafe = score
            guard score >= threshold else { return }
            var scores = [Float](repeating: 0, count: categories.count)
            _ = gt_score(symbols, Int32(symbols.count), &scores)
            result.categories = zip(categories, scores).map { ($0, $1) }
        }
        func append(_ symbol: UInt32) {
            if symbols.count == window {
                finishPart()
                // Parts overlap, so that a sentence is in one of them as a whole.
                symbols.removeFirst(window * 3 / 4)
            }
            symbols.append(symbol)
        }
        ascii.withUnsafeBufferPointer { ascii in
            var index = 0
            while index < bytes.count {
                let byte = bytes[index]
                if byte < 0x80 {
                    append(ascii[Int(byte)])
                    index += 1
                    continue
                }
                let (value, length) = TextFolding.decode(bytes, at: index)
                index += length
                switch TextFolding.fold(value, keepsDiacritics: false) {
                case .nothing: break
                case .separator: append(TextFolding.space)
                case .one(let folded): append(withWordBit(folded))
                case .several(let all): for folded in all { append(withWordBit(folded)) }
                }
            }
        }
        finishPart()
        return result
    }

    private static let ascii: [UInt32] = (0..<UInt32(128)).map { value in
        switch TextFolding.fold(value, keepsDiacritics: false) {
        // The hyphen is a separator there and here.
        case .one(let folded): withWordBit(folded)
        default: TextFolding.space
        }
    }

    private static func withWordBit(_ symbol: UInt32) -> UInt32 { TextFolding.isWord(symbol) ? symbol | wordBit : symbol }
}
