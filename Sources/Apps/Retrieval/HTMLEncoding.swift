import Foundation

/// The encoding of pages that are not UTF-8.
enum HTMLEncoding {
    /// The name of the encoding that a page declares, in small letters: in a `meta` element or in the declaration of XML, within the
    /// first 1,024 bytes, as in browsers.
    static func declared(in data: Data) -> String? {
        let beginning = Array(data.prefix(1_024))
        let text = Windows1252.text(of: beginning)
        if let match = text.prefixMatch(of: /\s*<\?xml[^>]*\sencoding\s*=\s*["']([^"']*)["']/) { return match.1.lowercased() }
        var tokenizer = HTMLTokenizer(bytes: beginning)
        while let token = tokenizer.next() {
            guard case .tag(let tag) = token, !tag.isEnd else { continue }
            if tag.name == "script" || tag.name == "style" || tag.name == "title" { _ = tokenizer.rawText(of: tag.name) }
            guard tag.name == "meta" else { continue }
            if let name = tag.attributes["charset"] { return name.trimmingCharacters(in: .whitespaces).lowercased() }
            if tag.attributes["http-equiv"]?.lowercased() == "content-type",
                let match = tag.attributes["content"]?.firstMatch(of: /charset\s*=\s*["']?([^"'\s;]+)/.ignoresCase())
            {
                return match.1.lowercased()
            }
        }
        return nil
    }
}

/// The encoding windows-1252, which pages call Latin-1 or ASCII too (https://encoding.spec.whatwg.org).
enum Windows1252 {
    static let names: Set<String> = [
        "ansi_x3.4-1968", "ascii", "cp1252", "cp819", "csisolatin1", "ibm819", "iso-8859-1", "iso-ir-100", "iso8859-1",
        "iso88591",
        "iso_8859-1", "iso_8859-1:1987", "l1", "latin1", "us-ascii", "windows-1252", "x-cp1252",
    ]

    /// From 0x80 on. Five bytes are controls.
    private static let scalars = Array(
        "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8D}Ž\u{8F}\u{90}‘’“”•–—˜™š›œ\u{9D}žŸ".unicodeScalars)

    static func scalar(_ byte: UInt8) -> Unicode.Scalar {
        0x80...0x9F ~= byte ? scalars[Int(byte) - 0x80] : Unicode.Scalar(byte)
    }

    static func text(of bytes: some Sequence<UInt8>) -> String {
        var text = String.UnicodeScalarView()
        for byte in bytes { text.append(scalar(byte)) }
        return String(text)
    }
}
