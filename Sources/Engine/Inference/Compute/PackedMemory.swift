internal import CKernels
internal import Files
package import Foundation
import ProcessSettings

/// The memory of packed weights: private to this process, or a mapped file shared by all processes that use the model.
final class PackedMemory {
    private(set) var base: UnsafeMutableRawPointer
    let count: Int
    /// Whether the memory already contains the weights.
    let isFilled: Bool
    private let owner: AnyObject
    private let whenFinished: (() -> Void)?
    /// Removes an incomplete file; nil once it is complete.
    private var discard: (() -> Void)?

    /// Allocates memory that is private to this process.
    init(bytes: Int) throws(ModelError) {
        let memory = try Memory(bytes: bytes, hugePages: true)
        (base, count, isFilled, owner, whenFinished) = (memory.base, bytes, false, memory, nil)
    }

    /// Uses part of a mapped file. `whenFinished` is called once the memory is filled, to make the file valid.
    /// If packing fails, `discard` is called instead.
    init(
        base: UnsafeMutableRawPointer, count: Int, isFilled: Bool, owner: AnyObject, discard: (() -> Void)? = nil,
        whenFinished: (() -> Void)? = nil
    ) {
        self.discard = discard
        (self.base, self.count, self.isFilled, self.owner, self.whenFinished) = (base, count, isFilled, owner, whenFinished)
    }

    /// Must be called when all weights have been packed.
    func finish() {
        whenFinished?()
        discard = nil
    }

    deinit { discard?() }
}

/// A cache of models' packed weights in files, so that later loads copy nothing: the file is mapped, and processes
/// share its pages.
///
/// A file is written under a temporary name and renamed when it is complete. Its name is that of the model's contents, not of its path:
/// copies and links of a model share the packed weights. The name is made of samples of the contents, so that its header also says of
/// which model files it is known, by size, modification time and inode, that they have these contents: the one that was packed, and those
/// that were compared with it byte by byte. For other model files, another layout version or another packed size, the file is rewritten.
/// After the start of another system, a file is used only if it was synchronised with the disk before: its pages could have been lost
/// without a trace. When the total size exceeds a limit, the least recently used files are removed.
package struct PackedCache: Sendable {
    package let directory: URL
    /// The maximum total size of all files in bytes.
    package var limit = 16 << 30

    package init(directory: URL) { self.directory = directory }

    /// The user's cache: `$XDG_CACHE_HOME/foundation-models/packed`, by default under `~/.cache`.
    package static var standard: PackedCache {
        let parent = UserFolder.url(.cacheFolder, default: ".cache")
        return PackedCache(directory: parent.appendingPathComponent("foundation-models/packed"))
    }

    private static let version = UInt64(CK_PACKED_VERSION)
    private static let headerBytes = 4096
    /// The offset of the identity of the running system in the header, which becomes 0 once the file is on the disk.
    private static let systemOffset = 512
    /// The offset of the identities of the model files with these contents; 0 for those that are still missing.
    private static let identitiesOffset = 1024
    private static let identityCount = 64
    /// The offset of the path of the model that was packed, which ends with 0; empty if it is too long.
    private static let pathOffset = 2048
    private static let minimumBytes = 64 << 20
    private static let magic: UInt64 = 0x5041_434B_4D4F_444C

    /// The packed files, the most recently used last.
    package var files: [(file: URL, bytes: Int)] {
        // If the directory does not exist, nothing is cached.
        let found =
            (try? FileManager.default.contentsOfDirectory(
                at: directory, includingPropertiesForKeys: [.fileSizeKey, .contentModificationDateKey])) ?? []
        return found.filter { $0.pathExtension == "packed" }.map { file in
            let values = try? file.resourceValues(forKeys: [.fileSizeKey, .contentModificationDateKey])  // may be gone
            return (file, values?.fileSize ?? 0, values?.contentModificationDate ?? .distantPast)
        }.sorted { $0.2 < $1.2 }.map { ($0.0, $0.1) }
    }

    /// Removes all packed files. Processes that use one keep their mapping.
    package func clear() {
        for entry in files { try? FileManager.default.removeItem(at: entry.file) }  // may be gone
    }

    /// The header of the packed file for a model.
    private func key(of file: GGUFFile, bytes: Int) -> [UInt64] {
        [Self.magic, Self.version, UInt64(bytes), UInt64(file.size)]
    }

    /// The packed file of a model, by its contents; nil if they cannot be read, which loading reports.
    private func location(of file: GGUFFile) -> URL? {
        guard let fingerprint = try? file.fingerprint() else { return nil }
        // The name in the file is for people. It may be any text, or missing.
        let title = ((try? file.metadata.string("general.name")) ?? nil) ?? "model"
        let name = title.prefix(60).map { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == ".") ? $0 : "-" }
        return directory.appendingPathComponent("\(String(name))-\(fingerprint).packed")
    }

    /// The packed weights of a model, or memory for them in a new file; nil if the cache cannot be used, so that the
    /// caller must use private memory.
    func memory(for file: GGUFFile, bytes: Int) -> PackedMemory? {
        // Packing a small model is faster than creating a file.
        guard bytes >= Self.minimumBytes, let location = location(of: file) else { return nil }
        let identity = file.identity
        let key = key(of: file, bytes: bytes)
        if let mapped = MappedFile(shared: location.path, size: Self.headerBytes + bytes), let start = mapped.bytes.baseAddress,
            key.indices.allSatisfy({ mapped.bytes.load(fromByteOffset: $0 * 8, as: UInt64.self) == key[$0] }),
            case let system = mapped.bytes.load(fromByteOffset: Self.systemOffset, as: UInt64.self),
            system == 0 || system == Self.runningSystem, isMade(location, mapped.bytes, of: file, identity)
        {
            utimes(location.path, nil)  // marks the file as most recently used
            if system != 0 { synchronize(location.path) }
            return PackedMemory(
                base: UnsafeMutableRawPointer(mutating: start + Self.headerBytes), count: bytes, isFilled: true, owner: mapped)
        }
        let path = URL(fileURLWithPath: file.path).standardizedFileURL.path
        return room(for: location, key: key, identity: identity, path: path, bytes: bytes)
    }

    /// Whether weights were packed of a model with the contents of a file. A file that is found to have them is noted in the header.
    private func isMade(_ location: URL, _ header: UnsafeRawBufferPointer, of file: GGUFFile, _ identity: UInt64) -> Bool {
        let known = (0..<Self.identityCount).map {
            header.load(fromByteOffset: Self.identitiesOffset + $0 * 8, as: UInt64.self)
        }
        if known.contains(identity) { return true }
        let path = String(decoding: header[Self.pathOffset..<Self.headerBytes].prefix { $0 != 0 }, as: UTF8.self)
        let paths = ShardName(path)?.all ?? [path]
        guard let packed = GGUFFile.identity(of: paths), known.contains(packed), Self.haveSameContents(paths, file.paths) else {
            return false
        }
        // If it cannot be noted, the files are compared again next time. The first one is the model that was packed.
        let descriptor = open(location.path, O_WRONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return true }
        defer { close(descriptor) }
        let place = known.firstIndex(of: 0) ?? 1 + Int(identity % UInt64(Self.identityCount - 1))
        pwrite(descriptor, [identity], 8, off_t(Self.identitiesOffset + place * 8))
        return true
    }

    private static func haveSameContents(_ some: [String], _ others: [String]) -> Bool {
        guard some.count == others.count else { return false }
        var (one, other) = ([UInt8](repeating: 0, count: 1 << 20), [UInt8](repeating: 0, count: 1 << 20))
        for (path, otherPath) in zip(some, others) {
            // A file that cannot be read is not known to be the same.
            guard let file = try? SourceFile(path: path), let otherFile = try? SourceFile(path: otherPath),
                file.size == otherFile.size
            else { return false }
            for offset in stride(from: 0, to: file.size, by: one.count) {
                let count = min(one.count, file.size - offset)
                let isSame = one.withUnsafeMutableBytes { one in
                    other.withUnsafeMutableBytes { other in
                        let (one, other) = (
                            UnsafeMutableRawBufferPointer(rebasing: one[..<count]),
                            UnsafeMutableRawBufferPointer(rebasing: other[..<count])
                        )
                        guard (try? file.read(into: one, at: offset)) != nil,
                            (try? otherFile.read(into: other, at: offset)) != nil,
                            let start = one.baseAddress, let otherStart = other.baseAddress
                        else { return false }
                        return memcmp(start, otherStart, count) == 0
                    }
                }
                if !isSame { return false }
            }
        }
        return true
    }

    /// - Parameters:
    ///   - identity: that of the model's files.
    ///   - path: the model's.
    private func room(for location: URL, key: [UInt64], identity: UInt64, path: String, bytes: Int) -> PackedMemory? {
        do {
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        } catch { return nil }  // for example, a read-only home directory: use private memory
        evictFiles(for: bytes)
        var space = statvfs()
        // Require twice the size, so that the cache does not fill the disk.
        guard statvfs(directory.path, &space) == 0, Int(space.f_bavail) * Int(space.f_frsize) > 2 * bytes + (1 << 30) else {
            return nil
        }
        let temporary = location.appendingPathExtension("\(UUID().uuidString).part")
        guard let mapped = WritableMapping(path: temporary.path, bytes: Self.headerBytes + bytes) else { return nil }
        return PackedMemory(
            base: mapped.base + Self.headerBytes, count: bytes, isFilled: false, owner: mapped,
            discard: { unlink(temporary.path) }
        ) {
            // The header is written and the file renamed last: if the process ends earlier, the file is not valid.
            for (index, word) in key.enumerated() { mapped.base.storeBytes(of: word, toByteOffset: index * 8, as: UInt64.self) }
            mapped.base.storeBytes(of: Self.runningSystem, toByteOffset: Self.systemOffset, as: UInt64.self)
            mapped.base.storeBytes(of: identity, toByteOffset: Self.identitiesOffset, as: UInt64.self)
            if path.utf8.count < Self.headerBytes - Self.pathOffset {
                for (index, byte) in path.utf8.enumerated() {
                    mapped.base.storeBytes(of: byte, toByteOffset: Self.pathOffset + index, as: UInt8.self)
                }
            }
            // If the file cannot be renamed, the weights of this process are valid all the same.
            if rename(temporary.path, location.path) == 0 { synchronize(location.path) } else { unlink(temporary.path) }
        }
    }

    /// The end of a process waits for a file that it is writing to the disk: a short one leaves this to another.
    private static let delay: DispatchTimeInterval = .seconds(30)

    /// Writes a complete file to the disk in the background, and notes in it that it is there. A process that ends earlier leaves
    /// this to the next one that uses the file.
    private func synchronize(_ path: String) {
        DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + Self.delay) {
            let descriptor = open(path, O_RDWR | O_CLOEXEC)
            guard descriptor >= 0 else { return }
            defer { close(descriptor) }
            guard fsync(descriptor) == 0 else { return }
            let onDisk: [UInt64] = [0]
            pwrite(descriptor, onDisk, 8, off_t(Self.systemOffset))
        }
    }

    /// Identifies the system since its start; 1 where that is not known, so that files are always used.
    private static let runningSystem: UInt64 = {
        // The file exists on Linux only.
        guard let id = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8) else { return 1 }
        return FNV.hash(id.utf8) | 1
    }()

    /// Removes files of earlier versions, other files until another `bytes` fit the limit, and temporary files of processes that have ended.
    private func evictFiles(for bytes: Int) {
        for entry in files where isOld(entry.file) {
            try? FileManager.default.removeItem(at: entry.file)  // another process may have removed it
        }
        var files = files
        var total = files.reduce(0) { $0 + $1.bytes }
        while total + bytes > limit, let oldest = files.first {
            try? FileManager.default.removeItem(at: oldest.file)  // another process may have removed it
            total -= oldest.bytes
            files.removeFirst()
        }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? []  // nothing to remove
        for name in names where name.hasSuffix(".part") {
            let path = directory.appendingPathComponent(name).path
            let descriptor = open(path, O_RDWR | O_CLOEXEC)
            guard descriptor >= 0 else { continue }
            // Processes lock the files that they write.
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { unlink(path) }
            close(descriptor)
        }
    }

    /// Whether a file has the layout of an earlier version, so that nothing reads it any more.
    private func isOld(_ file: URL) -> Bool {
        // A file that cannot be read stays.
        guard let source = try? SourceFile(path: file.path) else { return false }
        var words: [UInt64] = [0, 0]
        let isRead = words.withUnsafeMutableBytes { buffer in (try? source.read(into: buffer, at: 0)) != nil }
        return isRead && words[0] == Self.magic && words[1] < Self.version
    }
}
