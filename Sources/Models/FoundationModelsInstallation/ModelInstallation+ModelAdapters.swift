internal import Files
internal import Foundation
internal import Inference
internal import InstalledModels
internal import ModelAdapters

extension ModelInstallation {
    /// Writes the adapters that belong to a model beside its file, where they are missing or of another version. Models use them by default.
    ///
    /// ``install(_:progress:)`` does this too. A program calls this function for a model that an earlier version of the package has
    /// installed; what is there already is not written again.
    ///
    /// - Throws: ``InstallationError/cannotWrite(_:reason:)``. Without the adapters, the model can be used nevertheless.
    public func ensureAdapters(of model: InstalledModel) throws { try ensureAdapters(ofModelAt: model.url.path) }

    /// The same for a file, which need not be there, or be in the folder of models: then nothing is written.
    package func ensureAdapters(ofModelAt path: String) throws {
        let url = URL(filePath: path).standardizedFileURL
        guard url.deletingLastPathComponent().path == folder.models.standardizedFileURL.path, fileSize(url) != nil else { return }
        // What is no model is an error where it is used.
        guard let fingerprint = try? GGUFFile(path: path).fingerprint() else { return }
        for use in AdapterUse.allCases {
            let file = URL(filePath: use.path(beside: path))
            guard let bytes = modelAdapter(fingerprint, use), !Self.has(file, bytes) else { continue }
            do { try FileWriter.write(bytes, to: file.path) } catch {
                throw InstallationError.cannotWrite(file, reason: error.reason)
            }
        }
    }

    /// Whether a file has these bytes, as far as its size, its beginning and its end say: each version begins with the date and the figures of
    /// its training.
    private static func has(_ file: URL, _ bytes: Data) -> Bool {
        // A file that cannot be read is written again.
        guard fileSize(file) == bytes.count, let handle = try? FileHandle(forReadingFrom: file) else { return false }
        defer { try? handle.close() }  // nothing was written to it
        let count = min(bytes.count, 1 << 16)
        func read(at offset: Int) -> Data? {
            // As above.
            guard (try? handle.seek(toOffset: UInt64(offset))) != nil else { return nil }
            return try? handle.read(upToCount: count)
        }
        return read(at: 0) == bytes.prefix(count) && read(at: bytes.count - count) == bytes.suffix(count)
    }

    /// The adapter of a model that this package contains; nil if there is none.
    static func containedAdapter(_ fingerprint: String, _ use: AdapterUse) -> Data? {
        var count = 0
        guard let bytes = model_adapter(fingerprint, use.rawValue, &count) else { return nil }
        return Data(bytesNoCopy: UnsafeMutableRawPointer(mutating: bytes), count: count, deallocator: .none)
    }

    /// Removes the adapters beside a model's file.
    func removeAdapters(of model: InstalledModel) throws {
        for file in AdapterUse.allCases.map({ URL(filePath: $0.path(beside: model.url.path)) }) where fileSize(file) != nil {
            try writing(file) { try FileManager.default.removeItem(at: file) }
        }
    }
}
