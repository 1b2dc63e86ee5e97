/// Divides bytes into lines: the messages of a program's standard output. A line that is too long is dropped, and reported once.
struct MCPLines {
    /// The most bytes of a line.
    let maximumBytes: Int
    private var line: [UInt8] = []
    private var isTooLong = false

    enum Item: Equatable {
        case line([UInt8])
        case tooLong
    }

    /// Whether lines without bytes mean something.
    private let keepsEmpty: Bool

    init(maximumBytes: Int = 16 << 20, keepsEmpty: Bool = false) {
        (self.maximumBytes, self.keepsEmpty) = (maximumBytes, keepsEmpty)
    }

    /// The lines that end within the next bytes. Each byte is looked at once.
    mutating func take(_ bytes: some Collection<UInt8>) -> [Item] {
        var items: [Item] = []
        var rest = bytes[...]
        while let end = rest.firstIndex(of: 0x0A) {
            append(rest[..<end], &items)
            if !isTooLong, keepsEmpty || !line.isEmpty { items.append(.line(line)) }
            line.removeAll(keepingCapacity: line.capacity < 1 << 16)
            isTooLong = false
            rest = rest[rest.index(after: end)...]
        }
        append(rest, &items)
        return items
    }

    /// The last line, which has no line end.
    mutating func finish() -> [Item] {
        defer { line = [] }
        return line.isEmpty || isTooLong ? [] : [.line(line)]
    }

    private mutating func append(_ bytes: some Collection<UInt8>, _ items: inout [Item]) {
        if isTooLong { return }
        guard line.count + bytes.count <= maximumBytes else {
            line = []
            isTooLong = true
            items.append(.tooLong)
            return
        }
        line.append(contentsOf: bytes)
    }
}
