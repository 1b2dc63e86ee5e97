internal import Foundation

/// A GGUF file, opened for reading. Its contents are not trusted: every count, length and offset is checked against the
/// file's size before it is used, and an invalid value throws a ``ModelError`` that names the field.
///
/// A model split into several files (`NAME-00001-of-00003.gguf`) is opened by its first file, which contains the
/// metadata; the others must be in the same directory.
///
/// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3, little-endian).
package final class GGUFFile: Sendable {
    package let path: String
    package let version: UInt32
    /// Metadata in the order of the file's keys.
    package let metadata: GGUFMetadata
    package let tensors: [String: GGUFTensor]
    /// Tensor names in the file's order.
    package let tensorNames: [String]
    let header: FileHeader
    let source: SourceFile
    /// The second and later files of a split model.
    let laterShards: [GGUFFile]

    /// Total size of all files in bytes.
    package var size: Int { laterShards.reduce(source.size) { $0 + $1.size } }

    /// What is wrong with the file without harm to the model.
    package var notes: [String] {
        metadata.repeatedKeys.sorted().map { "The key \($0) appears twice; the first value counts." }
    }

    /// The paths of all files, in order.
    package var paths: [String] { [path] + laterShards.map(\.path) }

    package convenience init(path: String) throws(ModelError) { try self.init(path: path, shard: 0) }

    /// - Parameter shard: the expected index of the file in a split model; 0 for the first or only file.
    private init(path: String, shard: Int) throws(ModelError) {
        self.path = path
        source = try SourceFile(path: path)
        let contents: Contents
        (header, contents) = try Self.readHeader(of: source)
        version = contents.version
        metadata = contents.metadata
        var table = contents.table
        var names = contents.names
        let number = try metadata.integer("split.no", in: 0...Int(UInt16.max)) ?? 0
        guard number == shard else {
            let reason = shard == 0 ? ": open the first file of the model" : ", not \(shard)"
            throw .invalid(field: "split.no", reason: "is \(number)\(reason)")
        }
        var shards: [GGUFFile] = []
        if shard == 0, let count = try metadata.integer("split.count", in: 0...Self.maximumShards), count > 1 {
            guard let name = ShardName(path), name.number == 1, name.count == count else {
                throw .invalid(field: "split.count", reason: "is \(count), but the file name is not that of part 1 of \(count)")
            }
            for (number, path) in name.all.enumerated().dropFirst() {
                let next = try GGUFFile(path: path, shard: number)
                for name in next.tensorNames {
                    guard var tensor = next.tensors[name] else { continue }
                    tensor.shard = number
                    guard table.updateValue(tensor, forKey: name) == nil else {
                        throw .invalid(field: "tensor \(name)", reason: "appears twice")
                    }
                }
                names += next.tensorNames
                shards.append(next)
            }
            let expected = try metadata.integer("split.tensors.count", in: 0...Int(Int32.max)) ?? names.count
            guard expected == names.count else {
                throw .invalid(field: "split.tensors.count", reason: "is \(expected), but the files have \(names.count)")
            }
        }
        laterShards = shards
        tensors = table
        tensorNames = names
    }

    private static let maximumShards = 1_000
    private static let maximumHeaderBytes = 256 << 20

    /// The fields before the tensors' data.
    private struct Contents {
        var version: UInt32
        var metadata: GGUFMetadata
        var table: [String: GGUFTensor]
        /// Tensor names in the file's order.
        var names: [String]
    }

    private static func readHeader(of source: SourceFile) throws(ModelError) -> (FileHeader, Contents) {
        let header = try FileHeader(of: source, limit: maximumHeaderBytes)
        do { return (header, try contents(header, fileSize: source.size)) } catch {
            guard source.size > maximumHeaderBytes, error.isAboutLength else { throw error }
            let limit = maximumHeaderBytes >> 20
            throw .invalid(field: "the header", reason: "is damaged or larger than \(limit) MB: \(error)")
        }
    }

    private static func contents(_ header: FileHeader, fileSize: Int) throws(ModelError) -> Contents {
        var reader = GGUFReader(header: header)
        let magic = try reader.bytes(4, field: "the magic number")
        guard Array(magic) == Array("GGUF".utf8) else { throw .notGGUF(found: Array(magic)) }
        let version = try reader.integer(UInt32.self, field: "the version")
        guard version == 2 || version == 3 else { throw .unsupportedVersion(version) }
        // The smallest tensor entry has 32 bytes, the smallest metadata entry 13, which limits the counts.
        let tensorCount = try reader.count(field: "the tensor count", smallestItem: 32)
        let metadataCount = try reader.count(field: "the metadata count", smallestItem: 13)
        let metadata = try GGUFMetadata(reader: &reader, count: metadataCount)

        let alignment = try metadata.integer("general.alignment", in: 1...(1 << 20)) ?? 32
        guard alignment & (alignment - 1) == 0 else {
            throw .invalid(field: "general.alignment", reason: "is \(alignment), not a power of two")
        }
        var entries: [GGUFTensor] = []
        entries.reserveCapacity(min(tensorCount, 4_096))
        for index in 0..<tensorCount {
            entries.append(try GGUFTensor(reader: &reader, index: index))
        }
        let dataStart = (reader.offset + alignment - 1) / alignment * alignment
        var table: [String: GGUFTensor] = Dictionary(minimumCapacity: tensorCount)
        for index in entries.indices {
            try entries[index].place(dataStart: dataStart, alignment: alignment, fileSize: fileSize)
            guard table.updateValue(entries[index], forKey: entries[index].name) == nil else {
                throw .invalid(field: "tensor \(entries[index].name)", reason: "appears twice")
            }
        }
        return Contents(
            version: version, metadata: metadata, table: table, names: entries.map(\.name))
    }

    // MARK: - Tensors

    /// The file that contains a tensor's data.
    func source(of tensor: GGUFTensor) -> SourceFile { tensor.shard == 0 ? source : laterShards[tensor.shard - 1].source }

    /// The bytes of a tensor, or of a part of it: offsets are relative to the tensor's first byte.
    package func bytes(of tensor: GGUFTensor, in part: Range<Int>? = nil) throws(ModelError) -> [UInt8] {
        let part = part ?? 0..<tensor.range.count
        var bytes = [UInt8](repeating: 0, count: part.count)
        try bytes.withUnsafeMutableBufferPointer { buffer throws(ModelError) in
            let first = tensor.range.lowerBound + part.lowerBound
            try source(of: tensor).read(into: UnsafeMutableRawBufferPointer(buffer), at: first)
        }
        return bytes
    }

    /// The bytes of a tensor in memory of their own, for as long as they are needed.
    package func memory(of tensor: GGUFTensor) throws(ModelError) -> Memory {
        let memory = try Memory(bytes: tensor.range.count, hugePages: true)
        let bytes = UnsafeMutableRawBufferPointer(start: memory.base, count: tensor.range.count)
        try source(of: tensor).read(into: bytes, at: tensor.range.lowerBound)
        return memory
    }

    /// All numbers of a tensor, dequantised.
    package func values(of tensor: GGUFTensor) throws(ModelError) -> [Float] {
        tensor.type.decode(try bytes(of: tensor), count: tensor.elementCount)
    }
}

extension ModelError {
    /// Whether the error may be caused by reading only the beginning of a file.
    fileprivate var isAboutLength: Bool {
        switch self {
        case .truncated: true
        case .invalid(_, let reason): reason.hasSuffix("more than the file could hold")
        default: false
        }
    }
}
