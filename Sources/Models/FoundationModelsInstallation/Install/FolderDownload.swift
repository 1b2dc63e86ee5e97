package import Foundation
internal import InstalledModels
internal import ModelTools

/// Downloads files of a repository one by one into a folder. What was interrupted is continued by the next call.
struct FolderDownload: Sendable {
    let url: URL
    let downloader: Downloader
    let writeCheck: PartialFile.WriteCheck
    let report: ProgressReport

    /// Downloads a file unless the folder has it.
    func fetch(_ file: RemoteFile, _ path: String) async throws {
        let target = url.appendingPathComponent(path)
        report.begin(file: path)
        if fileSize(target) == nil {
            let part = try PartialFile(target.appendingPathExtension("part"), for: target, writeCheck: writeCheck)
            defer { part.close() }
            guard case .web(let address)? = file.sources.first else { throw SourceError("\(path) has no address") }
            // Without a known content, what an earlier call downloaded may be of another version.
            if file.sha256 == nil { try part.restart() } else { try await part.keep(report: report) }
            try await downloader.download(
                address, into: part, size: file.size, version: FileVersion(), isPublished: file.sha256 != nil, report: report)
            try file.check(part)
            try await part.finish()
        }
        report.end(fileOf: fileSize(target) ?? 0)
    }

    /// The number of bytes of a file that are there, complete or not.
    func existingBytes(_ path: String) -> Int {
        let target = url.appendingPathComponent(path)
        return max(fileSize(target) ?? 0, fileSize(target.appendingPathExtension("part")) ?? 0)
    }
}

/// A model in the Hugging Face form that is downloaded to be imported.
package struct HubFolder: Sendable {
    /// Where the files are while they are needed.
    package let url: URL
    private let repository: String
    private let files: [(path: String, file: RemoteFile)]
    private let installation: ModelInstallation

    package static func isRepository(_ name: String) -> Bool { Hub.isRepository(name) }

    /// Asks the hub which files there are.
    package init(repository: String, in installation: ModelInstallation) async throws {
        self.repository = repository
        self.installation = installation
        let (revision, files) = try await installation.hub.folder(in: repository)
        self.files = files
        // The revision is part of the name: files of two revisions do not form one model.
        let name = repository.replacing("/", with: "--") + "-" + revision.prefix(12)
        url = installation.folder.imports.appendingPathComponent(name)
    }

    /// Downloads what is missing: first what says whether the model can be imported, then the weights.
    package func download(progress: @escaping @Sendable (InstallationProgress) -> Void) async throws {
        let report = ProgressReport(model: repository, handler: progress)
        let lock = try await InstallationLock(installation.folder) { report.begin(.waiting) }
        defer { withExtendedLifetime(lock) {} }
        let download = FolderDownload(
            url: url, downloader: installation.downloader, writeCheck: installation.writeCheck, report: report)
        let weights = files.filter { $0.path.hasSuffix(".safetensors") && !$0.path.contains("/") }
        report.begin(.downloading)
        for (path, file) in files where !weights.contains(where: { $0.path == path }) { try await fetch(file, path, download) }
        try HuggingFaceFolder.check(url)
        let wanted = try HuggingFaceFolder.weightFiles(in: url).map { name in
            guard let file = weights.first(where: { $0.path == name }) else {
                throw InstallationError.repository(name: repository, reason: "it has no \(name)")
            }
            return file
        }
        let missing = wanted.reduce(0) { $0 + max(0, ($1.file.size ?? 0) - download.existingBytes($1.path)) }
        if missing > 0 { try installation.fileInstaller(report).checkSpace(missing) }
        report.begin(.downloading, total: wanted.reduce(0) { $0 + ($1.file.size ?? 0) })
        for (path, file) in wanted { try await fetch(file, path, download) }
    }

    private func fetch(_ file: RemoteFile, _ path: String, _ download: FolderDownload) async throws {
        do { try await download.fetch(file, path) } catch let error as SourceError {
            throw InstallationError.notDownloaded(name: path, reasons: ["\(file.sources.first?.name ?? "hub"): \(error.reason)"])
        }
    }

    /// Removes the files.
    package func remove() throws { try FileManager.default.removeItem(at: url) }
}
