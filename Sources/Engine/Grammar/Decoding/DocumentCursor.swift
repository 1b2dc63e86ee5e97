/// Tracks the position in a JSON document byte by byte. A value type, independent of any schema.
package struct DocumentCursor: Sendable {
    package enum Step: Sendable, Equatable {
        /// In the member with this name, given as written in the document, without quotes.
        case member([UInt8])
        case item(Int)
    }

    private enum Container { case object, array }

    /// The enclosing members and items, outermost first.
    package private(set) var path: [Step] = []
    private var containers: [Container] = []
    /// Whether the last byte was inside a string or opened one.
    package private(set) var isInString = false
    /// Whether that string is a member's name.
    package private(set) var isInName = false
    private var isEscaped = false
    private var expectsName = false
    private var name: [UInt8] = []

    package init() {}

    /// Number of open objects and arrays.
    var depth: Int { containers.count }

    /// Whether the last byte was inside a string that is a value, not a name.
    package var isInStringValue: Bool { isInString && !isInName }

    package mutating func advance(_ byte: UInt8) {
        if isInString {
            advanceInString(byte)
            return
        }
        switch byte {
        case UInt8(ascii: "\""):
            isInString = true
            isInName = expectsName
            name.removeAll(keepingCapacity: true)
        case UInt8(ascii: "{"):
            containers.append(.object)
            expectsName = true
        case UInt8(ascii: "["):
            containers.append(.array)
            path.append(.item(0))
        case UInt8(ascii: "}"):
            // An empty object never had a member.
            if !expectsName { path.removeLast(min(1, path.count)) }
            close()
        case UInt8(ascii: "]"):
            path.removeLast(min(1, path.count))
            close()
        case UInt8(ascii: ","):
            switch containers.last {
            case .object:
                path.removeLast(min(1, path.count))
                expectsName = true
            case .array: if case .item(let index)? = path.popLast() { path.append(.item(index + 1)) }
            case nil: break
            }
        default: break
        }
    }

    private mutating func close() {
        containers.removeLast(min(1, containers.count))
        expectsName = false
    }

    private mutating func advanceInString(_ byte: UInt8) {
        if isEscaped {
            isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
            isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
            isInString = false
            if isInName {
                path.append(.member(name))
                isInName = false
                expectsName = false
            }
            return
        }
        if isInName { name.append(byte) }
    }

    /// The name of the member of the outermost object that contains the byte at `offset` of a document; nil if there is none.
    package static func member(at offset: Int, of document: String) -> String? {
        var cursor = DocumentCursor()
        var name: String?
        for byte in document.utf8.prefix(offset) {
            cursor.advance(byte)
            if case .member(let bytes)? = cursor.path.first { name = String(decoding: bytes, as: UTF8.self) }
        }
        return name
    }
}
