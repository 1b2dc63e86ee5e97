internal import Inference
internal import Logging
internal import Synchronization

/// What an adapter that belongs to a model is for. Its file lies beside that of the model, is installed and removed with it, and is used
/// without being named.
package enum AdapterUse: String, CaseIterable, Sendable {
    /// General use: the adapter teaches the model the tasks that programs give it.
    case assistant
    /// Content tagging.
    case tagging

    /// Where the adapter of a model lies, if there is one: `NAME.assistant.fmadapter` beside `NAME.gguf`.
    ///
    /// - Parameter model: The path of the model; of a model in several files, that of the first one.
    package func path(beside model: String) -> String {
        "\(model.hasSuffix(".gguf") ? String(model.dropLast(5)) : model).\(rawValue).fmadapter"
    }

    /// Whether files of adapters fit the models beside them, by the path of the adapter, with the identities of both files.
    private static let known = Mutex<[String: (identities: [UInt64], fits: Bool)]>([:])

    /// The path of the adapter beside a model; nil if there is none, or if it was made for another model. The files are read once, and again
    /// after one of them was replaced.
    package func installed(beside model: String) -> String? {
        let path = path(beside: model)
        guard let own = GGUFFile.identity(ofModel: path), let base = GGUFFile.identity(ofModel: model) else { return nil }
        let identities = [base, own]
        if let known = Self.known.withLock({ $0[path] }), known.identities == identities { return known.fits ? path : nil }
        let fits = Self.fits(path, model)
        Self.known.withLock { $0[path] = (identities, fits) }
        return fits ? path : nil
    }

    private static func fits(_ path: String, _ model: String) -> Bool {
        do {
            let file = try AdapterFile(path: path)
            // Nobody named the file: it must say itself that it belongs to the model.
            guard file.baseFingerprint != nil else { throw ModelError.missing("base_fingerprint") }
            try file.check(GGUFFile(path: model))
            return true
        } catch {
            Logger(label: "FoundationModels").warning("\(model) is used without the adapter beside it, \(path): \(error)")
            return false
        }
    }
}
