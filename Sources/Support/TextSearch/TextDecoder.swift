public import Foundation

/// Decodes the bytes of a file piece by piece: UTF-8, or UTF-16 if the file begins with the byte order mark of that. A byte order mark
/// is no part of the text.
public struct TextDecoder {
    private enum Encoding { case utf8, utf16LittleEndian, utf16BigEndian }

    /// Nil before the first bytes.
    private var encoding: Encoding?
    /// The beginning of a character.
    private var pending = Data()

    /// Creates a decoder for a file.
    public init() {}

    /// The text of a whole file; nil if it is neither UTF-8 nor UTF-16 with a mark.
    public static func text(of data: Data) -> String? {
        var decoder = TextDecoder()
        return decoder.text(of: data, isLast: true)
    }

    /// The text that more bytes complete; nil if they are no text.
    public mutating func text(of data: Data, isLast: Bool) -> String? {
        pending.append(data)
        if encoding == nil {
            // The longest mark has three bytes.
            if pending.count < 3, !isLast { return "" }
            let (found, length): (Encoding, Int) =
                if pending.starts(with: [0xFF, 0xFE]) {
                    (.utf16LittleEndian, 2)
                } else if pending.starts(with: [0xFE, 0xFF]) {
                    (.utf16BigEndian, 2)
                } else {
                    (.utf8, pending.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0)
                }
            encoding = found
            if length > 0 { pending = Data(pending.dropFirst(length)) }
        }
        let (text, length) = encoding == .utf8 ? utf8(isLast) : utf16(isLast)
        pending = Data(pending.dropFirst(length))
        return text
    }

    /// The text of the complete characters, and their bytes.
    private func utf8(_ isLast: Bool) -> (text: String?, length: Int) {
        // Up to three bytes of the last character may be there.
        for missing in 0...(isLast ? 0 : min(3, pending.count)) {
            let length = pending.count - missing
            if let text = String(validating: pending.prefix(length), as: UTF8.self) { return (text, length) }
        }
        return (nil, 0)
    }

    private func utf16(_ isLast: Bool) -> (text: String?, length: Int) {
        if isLast, pending.count % 2 != 0 { return (nil, 0) }
        var units = pending.withUnsafeBytes { bytes in
            (0..<bytes.count / 2).map { index in
                let unit = bytes.loadUnaligned(fromByteOffset: 2 * index, as: UInt16.self)
                return encoding == .utf16BigEndian ? UInt16(bigEndian: unit) : UInt16(littleEndian: unit)
            }
        }
        // The second half of the last character may be missing.
        if !isLast, let last = units.last, UTF16.isLeadSurrogate(last) { units.removeLast() }
        return (String(validating: units, as: UTF16.self), 2 * units.count)
    }
}
