internal import Files
internal import Foundation

/// A file under a temporary name until it is complete. After an interruption, writing continues where it stopped.
///
/// Beside the file `NAME.partial` lies `NAME.partial.state` with what it is made of and how much of it is certainly on the disk. Two processes
/// cannot write the same file.
struct PartFile {
    private let part: URL
    private let state: URL
    private let identity: String?
    private let file: FileWriter
    /// Bytes that are written already.
    private(set) var written = 0
    private var recorded = 0

    /// The state is recorded each time that this number of bytes has been written.
    private static let step = 256 << 20

    /// - Parameter identity: what the file is made of. A part that was made of something else is written again; nil if nothing is kept.
    init(_ target: URL, identity: String?) throws(FileError) {
        part = target.appendingPathExtension("partial")
        state = part.appendingPathExtension("state")
        self.identity = identity
        file = try FileWriter(target.path, continuing: part.path)
        // Without a record, or with another one, nothing is kept.
        let lines = (try? String(contentsOf: state, encoding: .utf8))?.split(separator: "\n") ?? []
        if let identity, lines.count == 2, lines[0] == identity, let count = Int(lines[1]),
            (0...file.existingBytes).contains(count)
        {
            written = count
        }
        recorded = written
        try file.keep(written)
    }

    mutating func write(_ data: Data) throws {
        try file.write(data)
        written += data.count
        if written - recorded >= Self.step { try record() }
    }

    /// Records what is written, so that another process can continue.
    mutating func record() throws {
        guard let identity else { return }
        try file.synchronize()
        try FileWriter.write(Data("\(identity)\n\(written)\n".utf8), to: state.path)
        recorded = written
    }

    /// Gives the file its name.
    ///
    /// - Parameter check: receives the path of the complete file. If it throws, the file keeps its temporary name.
    func finish(_ check: (String) throws -> Void) throws {
        try file.synchronize()
        try check(part.path)
        try file.finish()
        unlink(state.path)
    }

    /// Removes what is written.
    func remove() {
        unlink(part.path)
        unlink(state.path)
    }
}
