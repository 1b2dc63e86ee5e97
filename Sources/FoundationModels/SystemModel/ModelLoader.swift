internal import Foundation
internal import Inference
internal import Synchronization

/// Loads each combination of model file and adapter once; all sessions share it.
enum ModelLoader {
    private struct Key: Hashable {
        var path: String
        var adapter: String?
    }

    private static let tasks = Mutex<[Key: Task<LoadedModel, any Error>]>([:])

    /// The model; loads it first if necessary.
    ///
    /// - Throws: ``SystemLanguageModel/Error/assetsUnavailable(_:)`` if there is no usable file.
    static func model(path: String, adapter: String? = nil) async throws -> LoadedModel {
        let key = Key(path: path, adapter: adapter)
        let task = tasks.withLock { tasks in
            if let task = tasks[key] { return task }
            let task = Task.detached { try await LoadedModel.load(path: path, adapter: adapter) }
            tasks[key] = task
            return task
        }
        do {
            return try await task.value
        } catch {
            // The file may be repaired or replaced, so the next request tries again.
            tasks.withLock { if $0[key] == task { $0[key] = nil } }
            let missing = !FileManager.default.fileExists(atPath: path)
            throw SystemLanguageModel.Error.assetsUnavailable(
                .init(
                    debugDescription: missing
                        ? "There is no model at \(path). Download the default model with “fm model pull”, or set FM_MODEL to a GGUF file."
                        : "\(error)"))
        }
    }
}
