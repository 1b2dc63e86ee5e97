internal import Files
internal import Foundation

/// Counts the words, pairs of words and sequences of letters of a text.
///
/// Words are runs of at least two letters, digits or underscores in lower case, as those of scikit-learn's `TfidfVectorizer`; sequences
/// of three to five characters lie within a word with a space before and after it, as with `analyzer="char_wb"`. Each is known by a hash.
struct WordGrams: Sendable {
    enum Part: UInt64, Sendable, Codable, CaseIterable {
        case words = 1
        case characters = 2
    }

    private static let lengths = 3...5

    /// How often each occurs.
    static func counts(_ text: String, _ part: Part) -> [UInt32: Int32] {
        var counts: [UInt32: Int32] = [:]
        let lower = text.lowercased()
        switch part {
        case .words:
            var previous: UInt64?
            for word in lower.unicodeScalars.split(whereSeparator: { !isWordScalar($0) }) where word.dropFirst().first != nil {
                let hash = Self.hash(word, part.rawValue)
                counts[folded(hash), default: 0] += 1
                if let previous { counts[folded(Self.hash(word, previous &* 31)), default: 0] += 1 }
                previous = hash
            }
        case .characters:
            var scalars: [Unicode.Scalar] = []
            for word in lower.unicodeScalars.split(whereSeparator: { $0.properties.isWhitespace }) {
                scalars.removeAll(keepingCapacity: true)
                scalars.append(" ")
                scalars.append(contentsOf: word)
                scalars.append(" ")
                for length in lengths {
                    let last = max(0, scalars.count - length)
                    for start in 0...last {
                        let piece = scalars[start..<min(start + length, scalars.count)]
                        counts[folded(hash(piece, part.rawValue)), default: 0] += 1
                    }
                    // A word that is shorter counts once.
                    if last == 0 { break }
                }
            }
        }
        return counts
    }

    private static func isWordScalar(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII {
            return scalar == "_" || ("0"..."9").contains(scalar) || ("a"..."z").contains(scalar) || ("A"..."Z").contains(scalar)
        }
        return switch scalar.properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter, .decimalNumber, .letterNumber,
            .otherNumber:
            true
        default: false
        }
    }

    /// FNV-1a of code points.
    private static func hash(_ scalars: some Sequence<Unicode.Scalar>, _ seed: UInt64) -> UInt64 {
        scalars.reduce(FNV.empty ^ (seed &* 0x9E37_79B9_7F4A_7C15)) { FNV.step($0, UInt64($1.value)) }
    }

    private static func folded(_ hash: UInt64) -> UInt32 {
        var hash = (hash ^ (hash >> 30)) &* 0xBF58_476D_1CE4_E5B9
        hash ^= hash >> 27
        return UInt32(truncatingIfNeeded: hash ^ (hash >> 32))
    }
}

/// The words and sequences of letters that a classifier knows, with their weights: the logarithm of the share of texts that have them.
struct GramTable: Sendable, Equatable {
    /// The column of each hash.
    private(set) var columns: [UInt32: Int32] = [:]
    /// For each column.
    private(set) var hashes: [UInt32] = []
    private(set) var rarity: [Float] = []
    let part: WordGrams.Part

    init(part: WordGrams.Part, hashes: [UInt32], rarity: [Float]) {
        (self.part, self.hashes, self.rarity) = (part, hashes, rarity)
        columns = Dictionary(hashes.enumerated().map { ($1, Int32($0)) }, uniquingKeysWith: { first, _ in first })
    }

    /// Of the texts' words and sequences, those that occur in at least `minimum` texts, at most `limit`: the most frequent.
    init(part: WordGrams.Part, counts: some Collection<[UInt32: Int32]>, minimum: Int, limit: Int) {
        var texts: [UInt32: Int] = [:]
        for text in counts { for hash in text.keys { texts[hash, default: 0] += 1 } }
        // Sorted, so that the same data gives the same table.
        let chosen = texts.filter { $0.value >= minimum }.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.prefix(limit)
        // As scikit-learn's `smooth_idf`.
        let total = Double(counts.count)
        self.init(
            part: part, hashes: chosen.map(\.key), rarity: chosen.map { Float(log((1 + total) / (1 + Double($0.value))) + 1) })
    }

    /// The row of a text, of length 1: (1 + ln count) · rarity (scikit-learn's `sublinear_tf`).
    func row(_ counts: [UInt32: Int32]) -> [(column: Int, value: Float)] {
        var row: [(column: Int, value: Float)] = []
        for (hash, count) in counts {
            guard let column = columns[hash] else { continue }
            row.append((Int(column), (1 + log(Float(count))) * rarity[Int(column)]))
        }
        // The sum of floating-point numbers depends on their order.
        row.sort { $0.column < $1.column }
        let squares = row.reduce(0) { $0 + $1.value * $1.value }
        guard squares > 0 else { return [] }
        let factor = 1 / squares.squareRoot()
        return row.map { ($0.column, $0.value * factor) }
    }
}
