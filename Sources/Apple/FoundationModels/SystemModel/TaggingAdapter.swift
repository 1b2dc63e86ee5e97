internal import Foundation
internal import Inference
internal import ProcessSettings
internal import Synchronization

#if ContentTagging
internal import TaggingAdapters
#endif

/// The adapters for content tagging that this package contains, for the models that they were trained with.
enum TaggingAdapter {
    private static let paths = Mutex<[String: String]>([:])

    /// The file of the adapter for a model, which is written to the user's cache when it is first needed; nil if there is none for the
    /// model.
    ///
    /// - Parameter fingerprint: identifies the model.
    /// - Throws: ``SystemLanguageModel/Error/assetsUnavailable(_:)`` if the file cannot be written: without the adapter, the model would
    ///   answer otherwise.
    static func path(for fingerprint: String) throws -> String? {
        // The cache may be removed while the program runs.
        if let known = paths.withLock({ $0[fingerprint] }), FileManager.default.fileExists(atPath: known) { return known }
        let cache = UserFolder.url(.cacheFolder, default: ".cache")
        let path = try path(for: fingerprint, in: cache.appendingPathComponent("foundation-models/adapters"))
        paths.withLock { $0[fingerprint] = path }
        return path
    }

    static func path(for fingerprint: String, in directory: URL) throws -> String? {
        #if ContentTagging
        var count = 0
        guard let bytes = tagging_adapter(fingerprint, &count) else { return nil }
        let url = directory.appendingPathComponent("tagging-\(fingerprint).fmadapter")
        let data = Data(bytesNoCopy: UnsafeMutableRawPointer(mutating: bytes), count: count, deallocator: .none)
        // A file that is not there, of another version, or damaged is written.
        if let found = try? Data(contentsOf: url), found == data { return url.path }
        do {
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            try data.write(to: url, options: .atomic)
            return url.path
        } catch {
            throw SystemLanguageModel.Error.assetsUnavailable(
                .init(
                    debugDescription:
                        "The adapter for content tagging cannot be written to \(url.path): \(error.localizedDescription) Make the folder writable, or set XDG_CACHE_HOME to another one."
                ))
        }
        #else
        return nil
        #endif
    }
}
