internal import Files
internal import Foundation

/// The state of a run in a file beside the adapter: `NAME.checkpoint`. It is written under another name and then renamed, so that there is
/// always a whole one.
struct Checkpoint {
    /// What a checkpoint belongs to: a run with other data or options begins anew.
    struct Identity: Codable, Equatable {
        var options: AdapterOptions
        var data: UInt64
        var model: String
        /// Of the adapter below; nil for none.
        var base: String?
        /// Of the adapter that the run began with; nil for none.
        var start: String?
        /// Of the conversations whose answers are kept; nil for none.
        var kept: UInt64?
        var rows: Int
    }

    private struct Header: Codable {
        var identity: Identity
        var state: TrainingState
        var count: Int
        var hasBest: Bool
    }

    let url: URL
    private static let magic = Array("FMTRAIN1".utf8)

    init(beside adapter: URL) { url = adapter.appendingPathExtension("checkpoint") }

    /// Holds a lock while a run writes the file.
    final class Lock {
        private let descriptor: Int32
        private let path: String
        init(_ path: String) throws(TrainingError) {
            self.path = path
            descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw .cannotWrite(path: path, reason: String(cString: strerror(errno))) }
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
                close(descriptor)
                throw .busy(path: String(path.dropLast(".checkpoint.lock".count)))
            }
        }

        func release() {
            unlink(path)
            close(descriptor)
        }
    }

    func lock() throws(TrainingError) -> Lock { try Lock(url.appendingPathExtension("lock").path) }

    var exists: Bool { FileManager.default.fileExists(atPath: url.path) }

    func remove() { unlink(url.path) }

    func write(_ identity: Identity, _ state: TrainingState, _ best: [Float]?, _ factors: LowRankFactors) throws(TrainingError) {
        let header: Data
        do {
            header = try JSONEncoder().encode(
                Header(identity: identity, state: state, count: factors.count, hasBest: best != nil))
        } catch {
            throw .invalidCheckpoint("The checkpoint cannot be written: \(error)")
        }
        var data = Data(Self.magic)
        func append(_ number: UInt64) { withUnsafeBytes(of: number.littleEndian) { data.append(contentsOf: $0) } }
        append(UInt64(header.count))
        data.append(header)
        for buffer in [factors.values, factors.means, factors.squares] {
            data.append(UnsafeBufferPointer(start: buffer.pointer, count: buffer.count))
        }
        if let best { best.withUnsafeBufferPointer { data.append($0) } }
        append(FNV.hash(data))
        try FileWriter.write(data, to: url)
    }

    struct Saved {
        var state: TrainingState
        /// The factors with the smallest validation loss.
        var best: [Float]?
    }

    /// Reads the state of a run into the factors; nil if there is no checkpoint.
    ///
    /// - Throws: ``TrainingError/invalidCheckpoint(_:)`` if the file is damaged, or belongs to another run.
    func read(_ identity: Identity, _ factors: LowRankFactors) throws(TrainingError) -> Saved? {
        guard exists else { return nil }
        let advice = "Remove it, or train without --resume, to begin anew."
        // Whatever keeps it from being read or decoded, only another run helps: the message says so.
        guard let data = try? Data(contentsOf: url), data.count >= 24, data.starts(with: Self.magic) else {
            throw .invalidCheckpoint("\(url.path) is not a checkpoint, or cannot be read. \(advice)")
        }
        func number(at offset: Int) -> UInt64 {
            data[offset..<offset + 8].enumerated().reduce(0) { $0 | UInt64($1.element) << (8 * UInt64($1.offset)) }
        }
        let body = data.count - 8
        let length = number(at: 8)
        guard number(at: body) == FNV.hash(data[..<body]), length <= UInt64(body - 16),
            let header = try? JSONDecoder().decode(Header.self, from: data[16..<16 + Int(length)])
        else { throw .invalidCheckpoint("\(url.path) is damaged. \(advice)") }
        let bytes = 4 * factors.count
        guard header.identity == identity, header.count == factors.count,
            header.state.isValid(steps: identity.options.steps ?? 0),
            body - 16 - Int(length) == bytes * (header.hasBest ? 4 : 3)
        else {
            throw .invalidCheckpoint("\(url.path) belongs to a run with other data, options or model. \(advice)")
        }
        var offset = 16 + Int(length)
        func floats() -> [Float] {
            defer { offset += bytes }
            return [Float](unsafeUninitializedCapacity: factors.count) { buffer, count in
                data.copyBytes(to: UnsafeMutableRawBufferPointer(buffer), from: offset..<offset + bytes)
                count = factors.count
            }
        }
        factors.values.values = floats()
        factors.means.values = floats()
        factors.squares.values = floats()
        return Saved(state: header.state, best: header.hasBest ? floats() : nil)
    }
}
