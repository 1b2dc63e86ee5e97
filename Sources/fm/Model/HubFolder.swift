import Foundation
import Inference

/// A model in the Hugging Face form that is downloaded to be imported. An interrupted download is continued by the next call.
struct HubFolder {
    /// Where the files are while they are needed.
    let url: URL
    private let repository: String
    private let files: [(path: String, file: RemoteFile)]

    static func isRepository(_ name: String) -> Bool { name.wholeMatch(of: /\w[\w.-]*\/\w[\w.-]*/) != nil }

    /// Asks the hub which files there are.
    init(repository: String) throws {
        self.repository = repository
        let (revision, files) = try Hub.folder(in: repository)
        self.files = files
        // The revision is part of the name: files of two revisions do not form one model.
        let name = repository.replacing("/", with: "--") + "-" + revision.prefix(12)
        url = ModelStore.directory.deletingLastPathComponent().appendingPathComponent("imports/\(name)")
    }

    /// Downloads what is missing: first what says whether the model can be imported, then the weights.
    func download() throws {
        do { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) } catch {
            throw InstallError.cannotWrite(directory: url.path, reason: error.localizedDescription)
        }
        let lock = open(url.appendingPathComponent(".lock").path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
        defer { close(lock) }
        guard lock >= 0, flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            throw InstallError.cannotWrite(directory: url.path, reason: "another process is downloading to it")
        }
        let weights = files.filter { $0.path.hasSuffix(".safetensors") && !$0.path.contains("/") }
        for (path, file) in files where !weights.contains(where: { $0.path == path }) { try fetch(file, path) }
        try HuggingFaceFolder.check(url)
        let names = try HuggingFaceFolder.weightFiles(in: url)
        let wanted = try names.map { name in
            guard let file = weights.first(where: { $0.path == name }) else {
                throw InstallError.hub("\(repository) has no \(name).")
            }
            return file
        }
        let total = wanted.reduce(0) { $0 + ($1.file.size ?? 0) }
        let missing = wanted.reduce(0) { $0 + max(0, ($1.file.size ?? 0) - size(of: $1.path)) }
        if let free = ModelInstaller.freeSpace(url), free < missing + 200_000_000 {
            throw InstallError.notEnoughSpace(needed: missing + 200_000_000, free: free, directory: url.path)
        }
        if missing > 0 { Message.say("Downloading \(repository) (\(total / 1_000_000) MB) to \(url.path) …") }
        for (path, file) in wanted { try fetch(file, path) }
    }

    private func size(of path: String) -> Int {
        let place = url.appendingPathComponent(path)
        return max(fileSize(place) ?? 0, fileSize(place.appendingPathExtension("part")) ?? 0)
    }

    private func fetch(_ file: RemoteFile, _ path: String) throws {
        let target = url.appendingPathComponent(path)
        guard fileSize(target) == nil else { return }
        do {
            try FileManager.default.createDirectory(at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
        } catch {
            throw InstallError.cannotWrite(directory: url.path, reason: error.localizedDescription)
        }
        let part = target.appendingPathExtension("part")
        guard case .web(let address, let token)? = file.sources.first else { return }
        if let problem = try Curl.fetch(address, token: token, to: part, size: file.size) {
            throw InstallError.notFetched(name: file.fileName, attempts: ["\(Hub.endpoint): \(problem)"])
        }
        if let expected = file.sha256, case let found = try ModelInstaller.checksum(part), found != expected {
            // Continuing this download could not produce the right file.
            unlink(part.path)
            throw InstallError.notFetched(
                name: file.fileName,
                attempts: ["the file differs from the published one: its SHA-256 is \(found), not \(expected)"])
        }
        guard rename(part.path, target.path) == 0 else {
            throw InstallError.cannotWrite(directory: url.path, reason: String(cString: strerror(errno)))
        }
    }

    /// Removes the files.
    func remove() throws { try FileManager.default.removeItem(at: url) }

    private func fileSize(_ file: URL) -> Int? {
        var status = stat()
        return stat(file.path, &status) == 0 ? Int(status.st_size) : nil
    }
}
