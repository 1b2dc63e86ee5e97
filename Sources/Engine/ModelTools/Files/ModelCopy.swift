internal import Foundation
internal import Inference

/// Copies a model with other types of tensors, one part after the other, so that a model of any size needs little memory.
///
/// The file is written under a temporary name, opened as a model, and renamed when it is complete.
struct ModelCopy {
    /// A tensor of the copy.
    struct Entry {
        var tensor: GGUFTensor
        var type: TensorType
        var bytes: Int { tensor.elementCount / type.blockElements * type.blockBytes }
    }

    let model: GGUFFile
    /// In the order of the file.
    var entries: [Entry]
    /// Metadata that replaces or is added to the model's.
    var changes: [(String, GGUFWriter.Value)] = []

    /// - Parameters:
    ///   - progress: called with the share of the work that is done, from 0 to 1. If it throws, the file is removed.
    ///   - next: the next bytes of a tensor of which some are written.
    /// - Throws: ``ModelError`` if the file cannot be written, or what the functions throw.
    func write(
        to url: URL, progress: (Double) throws -> Void, next: (Entry, _ written: Int) throws -> [UInt8]
    ) throws {
        guard !model.paths.contains(where: { FileIdentity($0) == FileIdentity(url.path) && FileIdentity($0) != nil }) else {
            throw ModelError.unreadable(path: url.path, reason: "it is the model itself: write to another file")
        }
        let alignment = try model.metadata.integer("general.alignment", in: 1...(1 << 20)) ?? 32
        func padding(_ count: Int) -> Int { (alignment - count % alignment) % alignment }
        var file = try PartFile(url, identity: nil)
        do {
            let head = head(padding)
            try file.write(head + Data(count: padding(head.count)))
            let total = Double(max(1, entries.reduce(0) { $0 + $1.bytes }))
            var done = 0
            for entry in entries {
                var written = 0
                while written < entry.bytes {
                    let part = try next(entry, written)
                    try file.write(Data(part))
                    written += part.count
                    try progress(Double(done + written) / total)
                }
                precondition(written == entry.bytes, "a tensor has as many bytes as its type says")
                try file.write(Data(count: padding(written)))
                done += written
            }
            try file.finish { _ = try ModelShape(file: GGUFFile(path: $0)) }
        } catch {
            file.remove()
            throw error
        }
    }

    private func head(_ padding: (Int) -> Int) -> Data {
        let changed = Set(changes.map(\.0))
        // The parts of a split model become one file.
        let kept = model.metadata.keys.filter { !changed.contains($0) && !$0.hasPrefix("split.") }
        var head = Data("GGUF".utf8)
        head.put(UInt32(3))
        head.put(UInt64(entries.count))
        head.put(UInt64(kept.count + changes.count))
        for key in kept {
            if let entry = model.bytes(ofEntry: key) { head.append(contentsOf: entry) }
        }
        for (key, value) in changes { head += value.encoded(key: key) }
        var offset = 0
        for entry in entries {
            head.put(entry.tensor.name)
            head.put(UInt32(entry.tensor.shape.count))
            for size in entry.tensor.shape { head.put(UInt64(size)) }
            head.put(entry.type.rawValue)
            head.put(UInt64(offset))
            offset += entry.bytes + padding(entry.bytes)
        }
        return head
    }
}
