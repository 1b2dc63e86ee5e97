internal import Foundation
internal import Inference
internal import Synchronization
internal import TaggingAdapters

/// The adapters for content tagging that this package contains, for the models that they were trained with.
enum TaggingAdapter {
    private struct Key: Hashable { var path: String, identity: UInt64? }

    private static let paths = Mutex<[Key: String?]>([:])

    /// The file of the adapter for a model, which is written to the user's cache when it is first needed; nil if there is none for the
    /// model, or if the cache cannot be written.
    static func path(for model: String) -> String? {
        let key = Key(path: model, identity: GGUFFile.identity(ofModel: model))
        // The cache may be removed while the program runs.
        if let known = paths.withLock({ $0[key] }), known.map({ FileManager.default.fileExists(atPath: $0) }) != false {
            return known
        }
        let path = makePath(for: model)
        // The model may be installed later.
        if key.identity != nil { paths.withLock { $0[key] = path } }
        return path
    }

    private static func makePath(for model: String) -> String? {
        // A model that cannot be read is reported when it is loaded.
        guard let fingerprint = try? GGUFFile(path: model).fingerprint() else { return nil }
        var count = 0
        guard let bytes = tagging_adapter(fingerprint, &count) else { return nil }
        let directory = ModelStore.userDirectory("XDG_CACHE_HOME", default: ".cache").appendingPathComponent(
            "foundation-models/adapters")
        let url = directory.appendingPathComponent("tagging-\(fingerprint).fmadapter")
        let data = Data(bytesNoCopy: UnsafeMutableRawPointer(mutating: bytes), count: count, deallocator: .none)
        // Of another version, or damaged: it is written again.
        if let found = try? Data(contentsOf: url), found == data { return url.path }
        do {
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            try data.write(to: url, options: .atomic)
            return url.path
        } catch {
            return nil
        }
    }
}
