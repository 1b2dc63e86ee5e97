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

    /// A hash of the weights.
    package static var fingerprint: UInt64 { gt_fingerprint() }

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
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: window) { symbols in
            var part = Part(symbols: symbols, threshold: threshold)
            ascii.withUnsafeBufferPointer { ascii in
                var index = 0
                while index < bytes.count {
                    index += part.append(ascii: bytes[index...], ascii)
                    guard index < bytes.count, bytes[index] >= 0x80 else { continue }
                    let (value, length) = TextFolding.decode(bytes, at: index)
                    index += length
                    switch TextFolding.fold(value, keepsDiacritics: false) {
                    case .nothing: break
                    case .separator: part.append(TextFolding.space)
                    case .one(let folded): part.append(withWordBit(folded))
                    case .several(let all): for folded in all { part.append(withWordBit(folded)) }
                    }
                }
            }
            part.finish()
            return part.result
        }
    }

    /// A part of a text as symbols, and the worst score so far.
    private struct Part {
        /// ``window`` elements, of which `count` are initialized.
        let symbols: UnsafeMutableBufferPointer<UInt32>
        let threshold: Float
        var count = 0
        var result = Result(unsafe: -.infinity, categories: [])

        init(symbols: UnsafeMutableBufferPointer<UInt32>, threshold: Float) {
            (self.symbols, self.threshold) = (symbols, threshold)
        }

        mutating func append(_ symbol: UInt32) {
            makeRoom()
            symbols[count] = symbol
            count += 1
        }

        /// Appends characters in ASCII up to the first other one, or as many as fit, and returns their number.
        mutating func append(ascii bytes: Slice<UnsafeBufferPointer<UInt8>>, _ table: UnsafeBufferPointer<UInt32>) -> Int {
            guard let first = bytes.first, first < 0x80 else { return 0 }
            makeRoom()
            var length = 0
            for byte in bytes.prefix(symbols.count - count) {
                if byte >= 0x80 { break }
                symbols[count + length] = table[Int(byte)]
                length += 1
            }
            count += length
            return length
        }

        private mutating func makeRoom() {
            if count < symbols.count { return }
            finish()
            // Parts overlap, so that a sentence is in one of them as a whole.
            count = symbols.count / 4
            for index in 0..<count { symbols[index] = symbols[symbols.count - count + index] }
        }

        mutating func finish() {
            let score = gt_score(symbols.baseAddress, Int32(count), nil)
            guard score > result.unsafe else { return }
            result.unsafe = score
            guard score >= threshold else { return }
            var scores = [Float](repeating: 0, count: categories.count)
            _ = gt_score(symbols.baseAddress, Int32(count), &scores)
            result.categories = zip(categories, scores).map { ($0, $1) }
        }
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
