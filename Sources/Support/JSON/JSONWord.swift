/// The parsing state of a number or one of true, false, null.
enum JSONWord {
    enum Literal: String {
        case `true`, `false`, null
    }

    case literal(Literal, length: Int)
    /// The states of a number, named after its last part.
    case minus, zero, whole, point, fraction, e, sign, exponent

    /// Nil if neither a number nor a literal begins with this byte.
    init?(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "t"): self = .literal(.true, length: 1)
        case UInt8(ascii: "f"): self = .literal(.false, length: 1)
        case UInt8(ascii: "n"): self = .literal(.null, length: 1)
        case UInt8(ascii: "-"): self = .minus
        case UInt8(ascii: "0"): self = .zero
        case UInt8(ascii: "1")...UInt8(ascii: "9"): self = .whole
        default: return nil
        }
    }

    /// Whether the number or literal may end here.
    var isWhole: Bool {
        switch self {
        case .literal(let literal, let length): length == literal.rawValue.utf8.count
        case .zero, .whole, .fraction, .exponent: true
        case .minus, .point, .e, .sign: false
        }
    }

    /// Whether the byte can be part of a number or a literal; any other byte ends it.
    static func isPart(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "E"),
            UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."):
            true
        default: false
        }
    }

    /// - Returns: False if the byte cannot continue the number or literal.
    mutating func append(_ byte: UInt8) -> Bool {
        switch (self, byte) {
        case (.literal(let literal, let length), _):
            let bytes = literal.rawValue.utf8
            guard length < bytes.count, bytes[bytes.index(bytes.startIndex, offsetBy: length)] == byte else { return false }
            self = .literal(literal, length: length + 1)
        case (.minus, UInt8(ascii: "0")): self = .zero
        case (.minus, UInt8(ascii: "1")...UInt8(ascii: "9")): self = .whole
        case (.whole, UInt8(ascii: "0")...UInt8(ascii: "9")): self = .whole
        case (.zero, UInt8(ascii: ".")), (.whole, UInt8(ascii: ".")): self = .point
        case (.point, UInt8(ascii: "0")...UInt8(ascii: "9")), (.fraction, UInt8(ascii: "0")...UInt8(ascii: "9")):
            self = .fraction
        case (.zero, UInt8(ascii: "e")), (.whole, UInt8(ascii: "e")), (.fraction, UInt8(ascii: "e")),
            (.zero, UInt8(ascii: "E")), (.whole, UInt8(ascii: "E")), (.fraction, UInt8(ascii: "E")):
            self = .e
        case (.e, UInt8(ascii: "+")), (.e, UInt8(ascii: "-")): self = .sign
        case (.e, UInt8(ascii: "0")...UInt8(ascii: "9")), (.sign, UInt8(ascii: "0")...UInt8(ascii: "9")),
            (.exponent, UInt8(ascii: "0")...UInt8(ascii: "9")):
            self = .exponent
        default: return false
        }
        return true
    }
}
