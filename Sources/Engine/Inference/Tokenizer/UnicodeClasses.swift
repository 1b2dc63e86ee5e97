/// The class of a code point in a pre-tokenizer.
enum CharacterClass: UInt8 {
    case other = 1, letter, number, space
}

/// Classes of all code points, computed on demand in pages of 256, because a complete table would take more time than
/// encoding a short prompt.
struct UnicodeClasses: ~Copyable {
    private let pages = UnsafeMutableBufferPointer<UnsafeMutablePointer<UInt8>?>.allocate(capacity: 0x1100)

    init() {
        pages.initialize(repeating: nil)
        flagPages.initialize(repeating: nil)
    }

    deinit {
        for page in pages { page?.deallocate() }
        pages.deallocate()
        for page in flagPages { page?.deallocate() }
        flagPages.deallocate()
    }

    func callAsFunction(_ codePoint: UInt32) -> CharacterClass {
        let index = Int(codePoint >> 8)
        guard index < pages.count else { return .other }
        let page = pages[index] ?? makePage(index)
        return CharacterClass(rawValue: page[Int(codePoint & 0xFF)]) ?? .other
    }

    private let flagPages = UnsafeMutableBufferPointer<UnsafeMutablePointer<UInt32>?>.allocate(capacity: 0x1100)

    /// See ``CharacterFlags``.
    func flags(_ codePoint: UInt32) -> UInt32 {
        let index = Int(codePoint >> 8)
        guard index < flagPages.count else { return CharacterFlags.other }
        if let page = flagPages[index] { return page[Int(codePoint & 0xFF)] }
        let page = UnsafeMutablePointer<UInt32>.allocate(capacity: 256)
        for low in 0..<256 { page[low] = CharacterFlags.flags(of: UInt32(index << 8 | low)) }
        flagPages[index] = page
        return page[Int(codePoint & 0xFF)]
    }

    private func makePage(_ index: Int) -> UnsafeMutablePointer<UInt8> {
        let page = UnsafeMutablePointer<UInt8>.allocate(capacity: 256)
        for low in 0..<256 {
            page[low] = Self.classify(UInt32(index << 8 | low)).rawValue
        }
        pages[index] = page
        return page
    }

    /// `\p{L}`, `\p{N}` and `\s` of the published patterns; surrogates belong to none of them.
    private static func classify(_ codePoint: UInt32) -> CharacterClass {
        guard let properties = Unicode.Scalar(codePoint)?.properties else { return .other }
        if properties.isWhitespace { return .space }
        switch properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter: return .letter
        case .decimalNumber, .letterNumber, .otherNumber: return .number
        default: return .other
        }
    }
}
