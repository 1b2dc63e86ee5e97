package import Foundation

/// The memory of packed weights: of this process only, or a file that is mapped by every process that uses the model.
final class PackedMemory {
    private(set) var base: UnsafeMutableRawPointer
    let count: Int
    /// The weights are there already.
    let isFilled: Bool
    private let owner: AnyObject
    private let whenFinished: (() -> Void)?

    /// Memory of this process only.
    init(bytes: Int) throws(ModelError) {
        let memory = try Memory(bytes: bytes, hugePages: true)
        (base, count, isFilled, owner, whenFinished) = (memory.base, bytes, false, memory, nil)
    }

    /// Part of a mapped file, which `whenFinished` makes valid once it is filled.
    init(base: UnsafeMutableRawPointer, count: Int, isFilled: Bool, owner: AnyObject, whenFinished: (() -> Void)? = nil) {
        (self.base, self.count, self.isFilled, self.owner, self.whenFinished) = (base, count, isFilled, owner, whenFinished)
    }

    /// Called when all weights are in place.
    func finish() { whenFinished?() }
}

/// Keeps the packed form of models in files, so that the second loading copies nothing: the file is mapped, and processes share
/// its pages.
///
/// A file is written under another name and renamed when it is complete. It belongs to one model (path, and of each file the size
/// and the time of its last change), one version of the layout and one size; anything else is written anew. The files that were
/// used least recently are removed when all of them together exceed a limit.
package struct PackedCache: Sendable {
    package let directory: URL
    /// Bytes that all files may take.
    package var limit = 16 << 30

    package init(directory: URL) { self.directory = directory }

    /// Raised whenever the layout of packed panels changes.
    private static let version: UInt64 = 3
    private static let headerBytes = 4096
    private static let minimumBytes = 64 << 20
    private static let magic: UInt64 = 0x5041_434B_4D4F_444C

    /// The packed files, the most recently used last.
    package var files: [(file: URL, bytes: Int)] {
        // No directory: nothing is cached.
        let found =
            (try? FileManager.default.contentsOfDirectory(
                at: directory, includingPropertiesForKeys: [.fileSizeKey, .contentModificationDateKey])) ?? []
        return found.filter { $0.pathExtension == "packed" }.map { file in
            let values = try? file.resourceValues(forKeys: [.fileSizeKey, .contentModificationDateKey])  // gone meanwhile
            return (file, values?.fileSize ?? 0, values?.contentModificationDate ?? .distantPast)
        }.sorted { $0.2 < $1.2 }.map { ($0.0, $0.1) }
    }

    /// Removes all of them. Processes that use one keep what they have mapped.
    package func clear() {
        for entry in files { try? FileManager.default.removeItem(at: entry.file) }  // another process may have been faster
    }

    /// What a packed file must say about where it came from.
    private func key(of file: GGUFFile, bytes: Int) -> [UInt64]? {
        var state: [UInt64] = []
        for path in file.paths {
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            state += [
                UInt64(status.st_size), UInt64(bitPattern: Int64(status.st_mtim.tv_sec)),
                UInt64(bitPattern: Int64(status.st_mtim.tv_nsec)), UInt64(status.st_ino),
            ]
        }
        return [Self.magic, Self.version, UInt64(bytes), UInt64(file.size), state.withUnsafeBytes(Self.hash)]
    }

    /// FNV-1a.
    private static func hash(_ bytes: some Sequence<UInt8>) -> UInt64 {
        bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }

    private func location(of file: GGUFFile) -> URL {
        let path = URL(fileURLWithPath: file.path).standardizedFileURL.path
        let name = URL(fileURLWithPath: path).deletingPathExtension().lastPathComponent
        return directory.appendingPathComponent("\(name)-\(String(Self.hash(path.utf8), radix: 16)).packed")
    }

    /// The packed form of a model, or room for it; nil where none can be had: the model then lives in the process's own memory.
    func memory(for file: GGUFFile, bytes: Int) -> PackedMemory? {
        // Small models are packed sooner than a file is made.
        guard bytes >= Self.minimumBytes, let key = key(of: file, bytes: bytes) else { return nil }
        let location = location(of: file)
        if let mapped = MappedFile(shared: location.path, size: Self.headerBytes + bytes), let start = mapped.bytes.baseAddress,
            key.indices.allSatisfy({ mapped.bytes.load(fromByteOffset: $0 * 8, as: UInt64.self) == key[$0] })
        {
            utimes(location.path, nil)  // the most recently used
            return PackedMemory(
                base: UnsafeMutableRawPointer(mutating: start + Self.headerBytes), count: bytes, isFilled: true, owner: mapped)
        }
        return room(for: location, key: key, bytes: bytes)
    }

    private func room(for location: URL, key: [UInt64], bytes: Int) -> PackedMemory? {
        do {
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        } catch { return nil }  // read-only home: the process's own memory will do
        makeRoom(for: bytes)
        var space = statvfs()
        // Twice the size: a cache must never be what fills a disk.
        guard statvfs(directory.path, &space) == 0, Int(space.f_bavail) * Int(space.f_frsize) > 2 * bytes + (1 << 30) else {
            return nil
        }
        let temporary = location.appendingPathExtension("\(getpid()).part")
        guard let mapped = WritableMapping(path: temporary.path, bytes: Self.headerBytes + bytes) else { return nil }
        return PackedMemory(
            base: mapped.base + Self.headerBytes, count: bytes, isFilled: false, owner: mapped
        ) {
            // The header and the name come last: a file without them is no model, whatever happened to the process.
            for (index, word) in key.enumerated() { mapped.base.storeBytes(of: word, toByteOffset: index * 8, as: UInt64.self) }
            rename(temporary.path, location.path)
        }
    }

    /// Removes files until another one fits the limit, and leftovers of processes that are gone.
    private func makeRoom(for bytes: Int) {
        var files = files
        var total = files.reduce(0) { $0 + $1.bytes }
        while total + bytes > limit, let oldest = files.first {
            try? FileManager.default.removeItem(at: oldest.file)  // another process may have been faster
            total -= oldest.bytes
            files.removeFirst()
        }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? []  // nothing to remove
        for name in names where name.hasSuffix(".part") {
            guard let process = name.split(separator: ".").dropLast().last.flatMap({ pid_t($0) }) else { continue }
            if process != getpid(), kill(process, 0) != 0, errno == ESRCH {
                unlink(directory.appendingPathComponent(name).path)
            }
        }
    }
}
