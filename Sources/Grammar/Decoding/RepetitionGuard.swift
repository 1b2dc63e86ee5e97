/// Recognises that a JSON document has fallen into a loop: an array repeats its elements or a cycle of them, or arrays are
/// nested without end. Reads the document byte by byte, in constant time for each.
package struct RepetitionGuard: Sendable {
    /// What an array has so far.
    private struct OpenArray {
        /// The nesting depth of its elements.
        let depth: Int
        /// The number of bytes of the document before the first element.
        let start: Int
        /// For the last elements, a hash of their bytes, and where they end.
        var elements: [(hash: UInt64, end: Int)] = []
        /// For each period, the number of last elements that equal the one a period before.
        var runs = [Int](repeating: 0, count: RepetitionGuard.maximumPeriod + 1)
        /// The number of last elements that differ in digits only.
        var similar = 0
        var lastShape: UInt64 = 0
        // The element that is being written.
        var hash = RepetitionGuard.seed
        var shape = RepetitionGuard.seed
        var isEmpty = true
        var isScalar = true
        var hasLetter = false
        /// The loop has been reported, but the array could not be closed: it should end from this number of elements on.
        var retry: Int?
    }

    /// The longest cycle of elements that is recognised.
    private static let maximumPeriod = 8
    /// The number of equal numbers, Booleans or nulls from which on an array is a loop, since ordinary data has some.
    private static let maximumScalars = 16
    /// The number of elements that differ in digits only, from which on an array is a loop.
    private static let maximumSimilar = 40
    /// The number of repetitions from which on also repetitions that the prompt asks for are a loop.
    private static let maximumWanted = 64
    /// The depth from which on arrays remain empty.
    private static let maximumDepth = 16
    private static let seed: UInt64 = 0xCBF2_9CE4_8422_2325

    /// Whether the prompt asks for repetition.
    private let allowsRepetition: Bool
    private var arrays: [OpenArray] = []
    private var cursor = DocumentCursor()
    private var bytes = 0

    package init(allowsRepetition: Bool = false) { self.allowsRepetition = allowsRepetition }

    /// Reads a byte. If an array should end, returns the number of bytes of the document that should be kept before its end.
    package mutating func append(_ byte: UInt8) -> Int? {
        let wasInString = cursor.isInString
        let depth = cursor.depth
        cursor.advance(byte)
        defer { bytes += 1 }
        if !wasInString {
            switch byte {
            case UInt8(ascii: "["):
                // The array is a part of the element of the outer one.
                extend(byte, isString: false)
                arrays.append(OpenArray(depth: cursor.depth, start: bytes + 1))
                return cursor.depth > Self.maximumDepth ? bytes + 1 : nil
            case UInt8(ascii: "]"):
                // The array ended by itself.
                if arrays.last?.depth == depth { arrays.removeLast() }
                extend(byte, isString: false)
                return nil
            case UInt8(ascii: ",") where arrays.last?.depth == depth: return endElement()
            case 0x20, 0x0A, 0x0D, 0x09: return nil
            default: break
            }
        }
        extend(byte, isString: wasInString || cursor.isInString)
        return nil
    }

    /// The array whose end was asked for could not be closed. Asked again when it has twice as many elements, so that the
    /// attempts take no more time than the text.
    package mutating func postpone() {
        if let array = arrays.last { arrays[arrays.count - 1].retry = max(2, 2 * array.elements.count) }
    }

    /// Only the innermost array reads each byte; its hash becomes a part of the outer element when it ends.
    private mutating func extend(_ byte: UInt8, isString: Bool) {
        for index in arrays.indices {
            arrays[index].hash = (arrays[index].hash ^ UInt64(byte)) &* 0x100_0000_01B3
            let isDigit = (0x30...0x39).contains(byte)
            arrays[index].shape = (arrays[index].shape ^ UInt64(isDigit ? 0x23 : byte)) &* 0x100_0000_01B3
            arrays[index].isEmpty = false
            if isString || byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") { arrays[index].isScalar = false }
            if isString, (0x61...0x7A).contains(byte | 0x20) { arrays[index].hasLetter = true }
        }
    }

    private mutating func endElement() -> Int? {
        var array = arrays.removeLast()
        defer {
            (array.hash, array.shape, array.isEmpty, array.isScalar, array.hasLetter) = (Self.seed, Self.seed, true, true, false)
            arrays.append(array)
        }
        array.elements.append((array.hash, bytes))
        let count = array.elements.count
        var kept: Int?
        for period in 1...Self.maximumPeriod where period < count {
            array.runs[period] = array.elements[count - 1 - period].hash == array.hash ? array.runs[period] + 1 : 0
            let limit = allowsRepetition ? Self.maximumWanted : array.isScalar ? Self.maximumScalars : 2 * period
            // Two equal elements, or two equal cycles, stay.
            if array.runs[period] >= limit, kept == nil {
                kept = array.elements[max(0, count - 1 - array.runs[period] + period)].end
            }
        }
        array.similar = array.hasLetter && array.shape == array.lastShape ? array.similar + 1 : 0
        array.lastShape = array.shape
        if array.similar >= Self.maximumSimilar, !allowsRepetition { kept = kept ?? bytes }
        if let retry = array.retry { return count >= retry ? bytes : nil }
        return kept
    }
}
