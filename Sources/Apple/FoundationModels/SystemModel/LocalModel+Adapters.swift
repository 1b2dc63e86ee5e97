internal import Foundation
package import Inference
internal import InstalledModels
internal import Synchronization

/// The model in memory, with its adapters.
extension LocalModel {
    /// The files of the adapters that requests use together, in this order: that of the model, and one that was selected. The model's is the one
    /// beside its file, for content tagging or else for general use. A selected adapter is used alone, unless it was trained on top of the one
    /// for general use.
    ///
    /// - Throws: ``SystemLanguageModel/Error/assetsUnavailable(_:)`` if the adapter on top of which the selected one was trained is missing.
    package var adapterPaths: [String] {
        get throws {
            guard let adapter else {
                let use: AdapterUse = isTagging ? .tagging : .assistant
                return usesInstalledAdapter ? use.installed(beside: path).map { [$0] } ?? [] : []
            }
            guard usesInstalledAdapter, Self.hasBase(adapter) else { return [adapter] }
            if let base = AdapterUse.assistant.installed(beside: path) { return [base, adapter] }
            // A missing model is an error where it is loaded.
            guard FileManager.default.fileExists(atPath: path) else { return [adapter] }
            throw SystemLanguageModel.Error.assetsUnavailable(
                .init(
                    debugDescription:
                        "The adapter \(adapter) was trained on top of another one, which is not at \(AdapterUse.assistant.path(beside: path)), or does not fit the model. Install the model again, or use it without adapters."
                ))
        }
    }

    /// Whether requests use no other adapter than the model's for general use, if there is one.
    package var isForGeneralUse: Bool { adapter == nil && !isTagging }

    /// Whether selected adapters were trained on top of another one, by path, with the identities of the files.
    private static let bases = Mutex<[String: (identity: UInt64, hasBase: Bool)]>([:])

    private static func hasBase(_ adapter: String) -> Bool {
        guard let identity = GGUFFile.identity(ofModel: adapter) else { return false }
        if let known = bases.withLock({ $0[adapter] }), known.identity == identity { return known.hasBase }
        // A file that cannot be read is an error where its matrices are.
        let hasBase = (try? AdapterFile(path: adapter))?.texts["base_adapter"] != nil
        bases.withLock { $0[adapter] = (identity, hasBase) }
        return hasBase
    }

    /// The model in memory, for one request. Adapters are used beside its weights where possible, so that sessions with different
    /// adapters share them; otherwise the model is loaded again with the last adapter merged into the weights.
    ///
    /// - Parameter isPrewarm: whether loading goes on if the task is cancelled.
    /// - Throws: ``SystemLanguageModel/Error/assetsUnavailable(_:)`` if there is no usable file, or `CancellationError`.
    package func lease(isPrewarm: Bool = false) async throws -> ModelLease<LoadedModel> {
        let adapters = try adapterPaths
        if Self.merged.withLock({ $0.contains([path] + adapters) }) {
            return try await lease(merging: adapters.last, isPrewarm)
        }
        // The plain model is released before the other one is loaded, so that both need not fit into memory.
        if let plain = try await plainModel(adapters, isPrewarm) { return plain }
        return try await lease(merging: adapters.last, isPrewarm)
    }

    /// The model without an adapter in its weights; nil if the last adapter must be merged into them.
    private func plainModel(_ adapters: [String], _ isPrewarm: Bool) async throws -> ModelLease<LoadedModel>? {
        let plain = try await lease(merging: nil, isPrewarm)
        let beside = try await adapter(adapters, for: plain.model)
        if adapters.isEmpty || beside != nil { return plain }
        Self.merged.withLock { _ = $0.insert([path] + adapters) }
        return nil
    }

    private func lease(merging adapter: String?, _ isPrewarm: Bool) async throws -> ModelLease<LoadedModel> {
        do {
            return try await ModelPool.shared.lease(
                path: path, adapter: adapter, defaults: ModelCatalogue.defaults, isPrewarm: isPrewarm)
        } catch let error as CancellationError {
            throw error
        } catch {
            let missing = !FileManager.default.fileExists(atPath: path)
            throw SystemLanguageModel.Error.assetsUnavailable(
                .init(
                    debugDescription: missing
                        ? "There is no model at \(path). Put a GGUF file there, or name another one with FM_MODEL."
                        : "\(error)"))
        }
    }

    /// Model files and adapters the last of which must be merged into the weights.
    private static let merged = Mutex<Set<[String]>>([])

    /// The adapters to use beside the weights of a model that ``lease(isPrewarm:)`` returned; nil if there are none.
    package func adapter(for model: LoadedModel) async throws -> LowRankAdapter? { try await adapter(adapterPaths, for: model) }

    private func adapter(_ paths: [String], for model: LoadedModel) async throws -> LowRankAdapter? {
        guard !model.hasMergedAdapter, !paths.isEmpty else { return nil }
        do { return try await model.adapter(paths: paths) } catch let error as CancellationError {
            throw error
        } catch {
            throw SystemLanguageModel.Error.assetsUnavailable(
                .init(debugDescription: "The adapter \(paths.joined(separator: " with ")) cannot be used with \(path): \(error)"))
        }
    }
}
