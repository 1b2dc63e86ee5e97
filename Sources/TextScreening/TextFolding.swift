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
        0x80...0x2FFF, 0xA640...0xA7FF, 0xAB30...0xABBF, 0xF900...0xFFFF, 0x10400...0x1044F, 0x1D400...0x1D7FF, 0x1F100...0x1F1FF,
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
        // Tags and the variation selectors of plane 14.
        return (0xE0000...0xE0FFF).contains(scalar) ? .nothing : scalar == 0x3000 ? .separator : .one(scalar)
    }

    private static let ascii: [Folded] = (0..<128).map { value in
        switch UInt8(value) {
        case 0x09...0x0D, 0x20, UInt8(ascii: "-"), UInt8(ascii: "_"): .separator
        case 0..<0x20, 0x7F: .nothing
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): .one(UInt32(value) | 0x20)
        default: .one(UInt32(value))
        }
    }

    // MARK: - One scalar

    private static func fold(_ scalar: Unicode.Scalar, keepsDiacritics: Bool) -> Folded {
        if isInvisible(scalar) { return .nothing }
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
        case 0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, 0xFE00...0xFE0F, 0xFFF9...0xFFFB: true
        default: [.format, .control, .surrogate, .unassigned].contains(scalar.properties.generalCategory)
        }
    }

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

    /// Letters that a character may stand for because it looks like them, in addition to itself.
    package static func lettersLike(_ scalar: UInt32) -> [UInt32] { lookAlikes[scalar] ?? [] }

    package static var allLookAlikes: [UInt32: [UInt32]] { lookAlikes }

    /// Digits and signs, and letters of other scripts that are drawn like Latin ones (a selection of the confusables of
    /// Unicode Technical Standard 39). Upper and lower case differ: В looks like B, but в does not look like b.
    private static let lookAlikes: [UInt32: [UInt32]] = {
        let latin = [
            "a": "@4аαɑᴀаАΑ", "b": "8ВΒʙЬЪ", "c": "сСϲᴄ¢", "d": "ԁᴅɗ", "e": "3еЕΕᴇ€ɛє", "f": "ƒ", "g": "9ɡց", "h": "НΗһʜ",
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
