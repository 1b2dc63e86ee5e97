internal import AsyncLocks
internal import Foundation
internal import Inference
internal import ModelInstallation
internal import Synchronization

/// Loads each combination of model file and adapter once; all sessions share it.
///
/// A model stays in memory as long as a session uses it. The model that was used last also stays, so that programs that
/// create one session after another, or only count tokens, do not load it again.
package enum ModelLoader {
    private struct Key: Hashable {
        var path: String
        /// A file that was replaced is another model.
        var identity: UInt64?
        var adapter: String?
    }

    private struct Loaded {
        weak var model: LoadedModel?
    }

    private struct State {
        var loading: [Key: Task<LoadedModel, any Error>] = [:]
        var loaded: [Key: Loaded] = [:]
        var last: LoadedModel?
    }

    private static let state = Mutex(State())

    /// Frees the model that was used last, unless a session uses it, with the caches of its released sequences.
    package static func releaseUnused() { keep(nil) }

    /// Makes a model the one that was used last. The one before is freed outside of the lock: that takes time, and others wait for the lock.
    private static func keep(_ model: LoadedModel?) {
        let before = state.withLock { state in
            defer { state.last = model }
            return state.last
        }
        _ = before
    }

    /// The model; loads it first if necessary.
    ///
    /// - Throws: ``SystemLanguageModel/Error/assetsUnavailable(_:)`` if there is no usable file, or `CancellationError` if the calling
    ///   task is cancelled while the model is loaded.
    static func model(path: String, adapter: String? = nil) async throws -> LoadedModel {
        let key = Key(path: path, identity: GGUFFile.identity(ofModel: path), adapter: adapter)
        // A model that nothing uses is freed before another one is loaded, so that both need not fit into memory.
        if state.withLock({ $0.loaded[key]?.model == nil && $0.loading[key] == nil }) { releaseUnused() }
        let (known, task) = state.withLock { state -> (LoadedModel?, Task<LoadedModel, any Error>?) in
            if let model = state.loaded[key]?.model { return (model, nil) }
            if let task = state.loading[key] { return (nil, task) }
            // It goes on if nobody waits for it any more: the next request needs the model too.
            let task = Task.detached {
                do {
                    let model = try await LoadedModel.load(path: path, adapter: adapter, defaults: ModelCatalogue.defaults)
                    Self.state.withLock { state in
                        state.loading[key] = nil
                        state.loaded = state.loaded.filter { $0.value.model != nil }
                        state.loaded[key] = Loaded(model: model)
                    }
                    keep(model)
                    return model
                } catch {
                    // The file may be repaired or replaced, so the next request tries again.
                    Self.state.withLock { $0.loading[key] = nil }
                    throw error
                }
            }
            state.loading[key] = task
            return (nil, task)
        }
        if let known {
            keep(known)
            return known
        }
        do {
            guard let task else { throw CancellationError() }
            return try await task.valueUnlessCancelled
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
}
