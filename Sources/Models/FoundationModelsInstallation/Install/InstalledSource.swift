internal import Foundation
internal import InstalledModels

/// Where an installed file came from, and its content: two sources may have files of the same name.
struct InstalledSource: Codable {
    var address: String
    var sha256: String
}

/// The records of where files of a folder came from.
struct SourceRecords: Sendable {
    let folder: ModelFolder

    private func file(_ fileName: String) -> URL { folder.sources.appendingPathComponent(fileName + ".json") }
    private func partFile(_ fileName: String) -> URL { folder.sources.appendingPathComponent(fileName + ".part") }

    /// Nil if nothing is known, for example of a file that was copied into the folder.
    func source(of fileName: String) -> InstalledSource? {
        // A record that cannot be read says nothing.
        guard let data = try? Data(contentsOf: file(fileName)) else { return nil }
        return try? JSONDecoder().decode(InstalledSource.self, from: data)
    }

    func write(_ source: InstalledSource, of fileName: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        try write(encoder.encode(source), to: file(fileName))
        unlink(partFile(fileName).path)
    }

    /// What is known of the file whose download under this name did not end; nil if there was none. Its version is nil if the server named none.
    func partial(_ fileName: String) -> (identity: String, version: String?)? {
        // There was none.
        guard let text = try? String(contentsOf: partFile(fileName), encoding: .utf8) else { return nil }
        let lines = text.split(separator: "\n", maxSplits: 1).map(String.init)
        return lines.first.map { ($0, lines.count > 1 ? lines[1] : nil) }
    }

    /// Records which file is being downloaded.
    func writePartial(_ file: RemoteFile, version: String?) throws {
        try write(Data((file.identity + (version.map { "\n" + $0 } ?? "")).utf8), to: partFile(file.fileName))
    }

    func remove(_ fileName: String) {
        unlink(file(fileName).path)
        unlink(partFile(fileName).path)
    }

    private func write(_ data: Data, to file: URL) throws {
        do {
            try FileManager.default.createDirectory(at: folder.sources, withIntermediateDirectories: true)
            try data.write(to: file, options: .atomic)
        } catch { throw InstallationError.cannotWrite(file, reason: error.localizedDescription) }
    }
}
