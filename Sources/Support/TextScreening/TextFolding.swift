internal import Foundation

/// Maps characters that people read as the same to the same symbols: compatibility forms (NFKD), upper and lower case, and, if
/// wanted, letters with and without diacritics.
package enum TextFolding {
    /// What a Unicode scalar becomes.
    package enum Folded: Equatable {
        /// Not visible: zero-width characters, direction marks, variation selectors.
        case nothing
        /// White space and hyphens.
        case separator
        case one(UInt32)
        case several([UInt32])
    }

    package static let space: UInt32 = 0x20

    // MARK: - Tables

    /// The blocks with letters that have a case, diacritics or compatibility forms. All other scalars stay as they are.
    private static let blocks: [ClosedRange<UInt32>] = [
        0x80...0x2FFF, 0x3040...0x318F, 0xA640...0xA7FF, 0xAB30...0xABBF, 0xF900...0xFFFF, 0x10400...0x1044F, 0x1D400...0x1D7FF,
        0x1F100...0x1F1FF,
        0x1FBF0...0x1FBF9,
    ]

    private static let withDiacritics = table { fold($0, keepsDiacritics: true) }
    private static let withoutDiacritics = table { fold($0, keepsDiacritics: false) }

    /// The result for each scalar of ``blocks``, in their order.
    private static func table(_ fold: (Unicode.Scalar) -> Folded) -> [Folded] {
        blocks.joined().map { Unicode.Scalar($0).map(fold) ?? .nothing }
    }

    /// The index of the first scalar of each block in the tables.
    private static let firsts = blocks.reduce(into: [0]) { $0.append($0[$0.count - 1] + $1.count) }

    package static func fold(_ scalar: UInt32, keepsDiacritics: Bool) -> Folded {
        if scalar < 0x80 { return ascii[Int(scalar)] }
        for (index, block) in blocks.enumerated() where scalar <= block.upperBound {
            guard scalar >= block.lowerBound else { break }
            let at = firsts[index] + Int(scalar - block.lowerBound)
            return keepsDiacritics ? withDiacritics[at] : withoutDiacritics[at]
        }
        // Syllables become their letters, as they are in decomposed text (Unicode, section 3.12).
        if (0xAC00...0xD7A3).contains(scalar) {
            let index = scalar - 0xAC00
            let last = index % 28
            return .several([0x1100 + index / 588, 0x1161 + index % 588 / 28] + (last > 0 ? [0x11A7 + last] : []))
        }
        // Tags and the variation selectors of plane 14.
        return (0xE0000...0xE0FFF).contains(scalar) ? .nothing : scalar == 0x3000 ? .separator : .one(scalar)
    }

    /// The scalar that begins with a byte over 0x7F of valid UTF-8, and its number of bytes.
    package static func decode(_ bytes: UnsafeBufferPointer<UInt8>, at index: Int) -> (UInt32, Int) {
        let byte = bytes[index]
        let length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2
        var value = UInt32(byte) & (0x7F >> UInt32(length))
        for position in index + 1..<min(index + length, bytes.count) { value = value << 6 | UInt32(bytes[position] & 0x3F) }
        return (value, min(length, bytes.count - index))
    }

    private static let ascii: [Folded] = (0..<128).map { value in
        switch UInt8(value) {
        case 0x09...0x0D, 0x20, UInt8(ascii: "-"), UInt8(ascii: "_"): .separator
        case 0..<0x20, 0x7F: .nothing
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): .one(UInt32(value) | 0x20)
        default: .one(UInt32(value))
        }
    }

    /// Whether a scalar is a letter, a number or a mark.
    package static func isWord(_ scalar: UInt32) -> Bool {
        if scalar < wordTable.count { return wordTable[Int(scalar)] }
        return isWordByProperties(scalar)
    }

    /// Looking up properties takes longer than comparing texts, so the results for common scripts are kept.
    private static let wordTable = (0..<UInt32(0x3000)).map(isWordByProperties)

    private static func isWordByProperties(_ scalar: UInt32) -> Bool {
        guard let properties = Unicode.Scalar(scalar)?.properties else { return false }
        return properties.isAlphabetic || properties.numericType != nil || properties.isGraphemeExtend
    }

    // MARK: - One scalar

    private static func fold(_ scalar: Unicode.Scalar, keepsDiacritics: Bool) -> Folded {
        if isInvisible(scalar) { return .nothing }
        if apostrophes.contains(scalar) { return .one(0x27) }
        // Letters on flags.
        if (0x1F1E6...0x1F1FF).contains(scalar.value) { return .one(scalar.value - 0x1F1E6 + 0x61) }
        if scalar.properties.isWhitespace || scalar.properties.generalCategory == .dashPunctuation { return .separator }
        // Letters in squares and in black circles have no compatibility forms.
        for first: UInt32 in [0x1F130, 0x1F150, 0x1F170] where (first..<first + 26).contains(scalar.value) {
            return .one(scalar.value - first + 0x61)
        }
        var result: [UInt32] = []
        for part in String(scalar).decomposedStringWithCompatibilityMapping.unicodeScalars {
            // Upper case first: it also unites ß with ss and the two forms of sigma.
            let upper = part.properties.uppercaseMapping
            for lower in upper.lowercased().unicodeScalars {
                // The lower case of a decomposed letter may be composed.
                for last in String(lower).decomposedStringWithCompatibilityMapping.unicodeScalars {
                    if keepsDiacritics {
                        result.append(last.value)
                    } else if let letters = lettersWithStrokes[last] {
                        result += letters.unicodeScalars.map(\.value)
                    } else if !isDiacritic(last.value) {
                        result.append(last.value)
                    }
                }
            }
        }
        if result.allSatisfy({ $0 == space }) { return result.isEmpty ? .nothing : .separator }
        return result.count == 1 ? .one(result[0]) : .several(result)
    }

    private static func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        // Tatweel makes Arabic words longer.
        case 0x0640, 0xFFF9...0xFFFB: true
        default:
            scalar.properties.isDefaultIgnorableCodePoint
                || [.format, .control, .surrogate, .unassigned].contains(scalar.properties.generalCategory)
        }
    }

    private static let apostrophes: Set<Unicode.Scalar> = ["‘", "’", "ʼ", "＇", "`", "´", "′"]

    /// Marks above and below letters; not the vowel signs of scripts in which they are letters.
    package static func isDiacritic(_ scalar: UInt32) -> Bool {
        switch scalar {
        case 0x0300...0x036F, 0x0483...0x0487, 0x0591...0x05BD, 0x05BF, 0x05C1...0x05C2, 0x05C4...0x05C5, 0x0610...0x061A,
            0x064B...0x065F, 0x0670, 0x06D6...0x06DC, 0x1AB0...0x1AFF, 0x1DC0...0x1DFF, 0x20D0...0x20FF, 0xFE20...0xFE2F:
            true
        default: false
        }
    }

    /// Letters whose diacritic is a part of the letter in Unicode.
    private static let lettersWithStrokes: [Unicode.Scalar: String] = [
        "ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ŧ": "t", "ƀ": "b", "ɨ": "i", "ʉ": "u", "ɍ": "r", "ɏ": "y", "æ": "ae", "œ": "oe",
        "þ": "th", "ð": "d", "ı": "i",
    ]

    // MARK: - Look-alikes

    /// Letters that a character may stand for because it, or what it becomes, looks like them.
    package static func lettersLike(_ scalar: UInt32, folded: UInt32) -> [UInt32] {
        let letters = lookAlikes[scalar] ?? []
        return folded == scalar ? letters : letters + (lookAlikes[folded] ?? [])
    }

    package static var allLookAlikes: [UInt32: [UInt32]] { lookAlikes }

    /// Digits and signs, and letters of other scripts that are drawn like Latin ones (a selection of the confusables of
    /// Unicode Technical Standard 39). Upper and lower case differ: В looks like B, but в does not look like b.
    private static let lookAlikes: [UInt32: [UInt32]] = {
        let latin = [
            "a": "@4аαɑᴀаАΑ", "b": "8ВΒʙЬЪ", "c": "сСϲᴄ¢", "d": "ԁᴅɗ", "e": "3еЕΕᴇ€ɛє", "f": "ƒꜰ", "g": "9ɡցɢ", "h": "НΗһʜ",
            "i": "1!|іІΙɪɩ¡lӏ", "j": "јЈᴊ", "k": "КΚкκᴋ", "l": "1|!IіІΙӏʟ", "m": "МΜᴍм", "n": "ΝɴпηИ", "o": "0оОΟοσᴏθ",
            "p": "рРΡρᴘ", "q": "ԛ9", "r": "ᴦʀгя", "s": "5$ѕЅꜱ", "t": "7ТΤтτᴛ+", "u": "υսᴜμ", "v": "νѵᴠ", "w": "ԝᴡωшщ",
            "x": "хХΧχ×", "y": "уУΥүγʏ", "z": "2ΖᴢƵ",
        ]
        var table: [UInt32: [UInt32]] = [:]
        for (letter, others) in latin {
            guard let letter = letter.unicodeScalars.first?.value else { continue }
            for other in others.unicodeScalars where table[other.value]?.contains(letter) != true {
                table[other.value, default: []].append(letter)
            }
        }
        return table
    }()
}
