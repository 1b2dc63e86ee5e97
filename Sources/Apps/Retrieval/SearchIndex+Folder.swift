import Waiting
import Embeddings
internal import Files
public import Foundation

extension SearchIndex {
    /// The progress of ``update(folder:source:progress:)``.
    public struct Progress: Sendable {
        /// Documents that were examined, and their number.
        public var documents = 0
        public var totalDocuments = 0
        /// Bytes of documents that were examined, and their number.
        public var bytes = 0
        public var totalBytes = 0
        /// Passages that were added.
        public var passages = 0
    }

    /// What ``update(folder:source:progress:)`` has done.
    public struct Changes: Sendable, Codable {
        /// Numbers of documents.
        public var added = 0
        public var changed = 0
        public var unchanged = 0
        public var removed = 0
        /// Passages of new and changed documents.
        public var passages = 0
        /// Files that could not be read, with the reasons.
        public var problems: [String] = []
        /// Documents without text, such as scans, pages that scripts show and empty files, with what can be done. They are in the
        /// index, without passages.
        public var withoutText: [String] = []
        /// Files that are too large for a document, with their sizes. They are usually data, not text.
        public var tooLarge: [String] = []

        /// Creates a record of no changes.
        public init() {}
    }

    /// The maximum size of a file.
    private static let maximumBytes = 64 << 20
    /// Passages that are embedded together and written in one transaction.
    private static let batchPassages = 128

    /// Brings the documents of a folder up to date: adds new ones, replaces changed ones, and removes those that are gone. Other
    /// documents are not read. If it is interrupted, the next call continues.
    ///
    /// - Parameters:
    ///   - folder: The folder, with all folders in it, or a single file. Hidden files and links are left out.
    ///   - source: The name of the collection; nil for the path of the folder, so that folders with the same name are kept
    ///     apart.
    ///   - progress: Called after each document.
    /// - Throws: ``RetrievalError``, the error of the model, or `CancellationError`. Files that cannot be read are listed in
    ///   the result.
    @discardableResult public func update(
        folder: URL, source: String? = nil, progress: (Progress) -> Void = { _ in }
    ) async throws -> Changes {
        let listing = try Listing(folder)
        let source = source ?? listing.source
        let files = listing.files
        let known = try await store.documents(source: source)
        var (changes, state) = (Changes(), Progress())
        changes.problems = listing.problems
        state.totalDocuments = files.count
        state.totalBytes = files.reduce(0) { $0 + $1.size }
        var pending: [IndexedDocument] = []
        func write() async throws {
            let vectors = try await vectors(of: pending.flatMap(\.chunks))
            var next = 0
            for index in pending.indices {
                pending[index].vectors = Array(vectors[next..<next + pending[index].chunks.count])
                next += pending[index].chunks.count
            }
            try await store.replace(pending)
            for document in pending {
                if known[document.path] == nil { changes.added += 1 } else { changes.changed += 1 }
                changes.passages += document.chunks.count
            }
            state.passages = changes.passages
            pending = []
        }
        for file in files {
            try Task.checkCancellation()
            state.documents += 1
            state.bytes += file.size
            let old = known[file.path]
            if let old, old.size == file.size, old.modified == file.modified {
                changes.unchanged += 1
                if old.isEmpty { changes.withoutText.append("\(file.withoutText)") }
            } else if file.size > Self.maximumBytes {
                changes.tooLarge.append(
                    "“\(file.path)” is left out: it has \(file.size >> 20) MB, and documents have at most \(Self.maximumBytes >> 20) MB."
                )
            } else {
                do {
                    let document = try await read(file, source: source, old: old)
                    if document?.chunks.isEmpty ?? old?.isEmpty ?? false { changes.withoutText.append("\(file.withoutText)") }
                    if let document { pending.append(document) } else { changes.unchanged += 1 }
                } catch let error as RetrievalError {
                    guard case .unreadable = error else { throw error }
                    changes.problems.append("\(error)")
                }
                if pending.reduce(0, { $0 + $1.chunks.count }) >= Self.batchPassages { try await write() }
            }
            progress(state)
        }
        if !pending.isEmpty { try await write() }
        // A file that cannot be read now may be readable later: its old version stays.
        let gone = Set(known.keys).subtracting(files.map(\.path)).filter { listing.includes($0) }
        changes.removed = gone.isEmpty ? 0 : try await store.remove(source: source, paths: gone.sorted())
        progress(state)
        return changes
    }

    private struct File {
        var url: URL
        /// Relative to the folder.
        var path: String
        var size: Int
        var modified: Double
        var format: ExtractedText.Format

        var withoutText: RetrievalError { .noText(file: path, format: format) }
    }

    /// Reads a document and cuts it into chunks; nil if its content has not changed.
    private func read(_ file: File, source: String, old: DocumentRecord?) async throws -> IndexedDocument? {
        let known = old?.hash
        // Disks, programs and large pages take long.
        let (hash, text) = try await unlessCancelled { () -> (Int64, ExtractedText?) in
            let (hash, data) = try await onAnotherThread {
                let data = try ExtractedText.data(of: file.url, name: file.path)
                return (Int64(bitPattern: FNV.hash(data)), data)
            }
            if hash == known { return (hash, nil) }
            if file.format == .pdf { return (hash, try await PDFText.extracted(file.url)) }
            return (hash, try await onAnotherThread { try ExtractedText(data: data, format: file.format, file: file.path) })
        }
        guard let text else {
            if let old { try await store.touch(old.id, size: file.size, modified: file.modified) }
            return nil
        }
        var document = IndexedDocument(
            source: source, path: file.path, title: text.title, size: file.size, modified: file.modified, hash: hash,
            metadata: ["format": file.format.rawValue])
        document.chunks = try await chunker.chunks(of: text)
        return document
    }

    /// The documents of a folder, or a single one.
    private struct Listing {
        var files: [File] = []
        /// The path of the folder.
        var source: String
        /// Folders that cannot be read.
        var problems: [String] = []
        private var unreadable: [String] = []
        /// The name of the file if only that is listed.
        private var single: String?

        /// Folders with files that programs generate.
        private static let skipped: Set<String> = ["node_modules", "__pycache__", "DerivedData"]

        init(_ folder: URL) throws {
            let folder = folder.standardizedFileURL
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: folder.path, isDirectory: &isFolder) else {
                throw RetrievalError.unreadable(file: folder.path, reason: "it does not exist")
            }
            guard isFolder.boolValue else {
                source = folder.deletingLastPathComponent().path
                single = folder.lastPathComponent
                guard let file = Self.file(folder.resolvingSymlinksInPath(), folder.lastPathComponent) else {
                    throw RetrievalError.unreadable(file: folder.path, reason: "its kind is not known")
                }
                files = [file]
                return
            }
            source = folder.path
            // The folder itself may be a link.
            let root = folder.resolvingSymlinksInPath().path
            do { _ = try FileManager.default.contentsOfDirectory(atPath: root) } catch {
                throw RetrievalError.unreadable(file: folder.path, reason: error.localizedDescription)
            }
            func relative(_ url: URL) -> String {
                url.path.hasPrefix(root + "/") ? String(url.path.dropFirst(root.count + 1)) : url.path
            }
            var failed: [String] = []
            let found = FileManager.default.enumerator(
                at: URL(filePath: root), includingPropertiesForKeys: Array(Self.keys), options: [.skipsHiddenFiles]
            ) { url, _ in
                failed.append(relative(url))
                return true
            }
            while let url = found?.nextObject() as? URL {
                if Self.skipped.contains(url.lastPathComponent) {
                    found?.skipDescendants()
                    continue
                }
                // Some file systems report a folder without permission as empty.
                var isFolder: ObjCBool = false
                if FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder), isFolder.boolValue {
                    if access(url.path, R_OK | X_OK) != 0 { failed.append(relative(url)) }
                } else if let file = Self.file(url, relative(url)) {
                    files.append(file)
                }
            }
            files.sort { $0.path < $1.path }
            unreadable = Array(Set(failed)).sorted()
            problems = unreadable.map { "“\($0)” cannot be read: its documents stay as they are in the index." }
        }

        /// Whether a document of the source would have been found if it existed.
        func includes(_ path: String) -> Bool {
            if let single { return path == single }
            return !unreadable.contains { path == $0 || path.hasPrefix($0 + "/") }
        }

        private static let keys: Set<URLResourceKey> = [
            .isRegularFileKey, .isSymbolicLinkKey, .fileSizeKey, .contentModificationDateKey,
        ]

        private static func file(_ url: URL, _ path: String) -> File? {
            // A file that is removed meanwhile is left out.
            guard let format = ExtractedText.Format(fileName: path), let values = try? url.resourceValues(forKeys: keys),
                values.isRegularFile == true, values.isSymbolicLink != true
            else { return nil }
            return File(
                url: url, path: path, size: values.fileSize ?? 0,
                modified: values.contentModificationDate?.timeIntervalSince1970 ?? 0, format: format)
        }
    }
}
