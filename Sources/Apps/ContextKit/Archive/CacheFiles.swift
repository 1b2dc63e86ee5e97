import Foundation

/// Files with what a model has computed for conversations. They only save time: they can be removed at any time.
extension ConversationArchive {
    /// Maximum size of all files of an archive in bytes.
    private static let maximumCacheBytes = 1 << 30

    /// The directory beside the archive; nil for archives that are not in a file and archives that are only read.
    private var cacheDirectory: URL? {
        isReadOnly ? nil : store.file.map { URL(filePath: $0.path + "-caches", directoryHint: .isDirectory) }
    }

    /// The file of a conversation, whether or not it exists; nil if the archive has no such files.
    func cacheFile(of conversation: String) -> URL? {
        // Identifiers can contain any characters.
        let name = String(UInt64(bitPattern: Checksum.of(Data(conversation.utf8))), radix: 16)
        return cacheDirectory?.appending(path: name + ".cache")
    }

    /// Creates the directory, and removes the oldest files until they take less than the limit.
    func makeRoomForCacheFile() throws {
        guard let cacheDirectory else { return }
        try FileManager.default.createDirectory(at: cacheDirectory, withIntermediateDirectories: true)
        let keys: Set<URLResourceKey> = [.fileSizeKey, .contentModificationDateKey]
        let files = try FileManager.default.contentsOfDirectory(at: cacheDirectory, includingPropertiesForKeys: Array(keys))
            .map { file in
                let values = try? file.resourceValues(forKeys: keys)  // another process may have removed it
                return (file: file, bytes: values?.fileSize ?? 0, date: values?.contentModificationDate ?? .distantPast)
            }
            .sorted { $0.date < $1.date }
        var total = files.reduce(0) { $0 + $1.bytes }
        for file in files {
            let isTemporary = file.file.pathExtension == "part"
            if isTemporary ? !Self.isAbandoned(file.file) : total < Self.maximumCacheBytes { continue }
            try? FileManager.default.removeItem(at: file.file)  // see above
            total -= file.bytes
        }
    }

    /// Removes all files.
    ///
    /// - Returns: Whether there were any.
    func removeCacheFiles() -> Bool {
        guard let cacheDirectory,
            let names = try? FileManager.default.contentsOfDirectory(atPath: cacheDirectory.path), !names.isEmpty  // none exists
        else { return false }
        // What cannot be removed stays.
        for name in names { try? FileManager.default.removeItem(at: cacheDirectory.appending(path: name)) }
        return true
    }

    /// Whether a file is the temporary file of a process that was killed.
    private static func isAbandoned(_ file: URL) -> Bool {
        guard let process = pid_t(file.deletingPathExtension().pathExtension) else { return false }
        return process != getpid() && kill(process, 0) != 0 && errno == ESRCH
    }
}
