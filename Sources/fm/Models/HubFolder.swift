import Foundation
import Inference
import InstalledModels
import ModelTools

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
        let lock = try InstallLock()
        defer { withExtendedLifetime(lock) {} }
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
        guard fileSize(target) == nil, let problem = try file.fetch(to: target) else { return }
        throw InstallError.notFetched(name: path, attempts: ["\(Hub.endpoint): \(problem)"])
    }

    /// Removes the files.
    func remove() throws { try FileManager.default.removeItem(at: url) }
}
