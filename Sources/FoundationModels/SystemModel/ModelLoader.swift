internal import Foundation
internal import Inference
internal import Synchronization

/// Loads each model file once; all sessions share it.
enum ModelLoader {
    private static let tasks = Mutex<[String: Task<LoadedModel, any Error>]>([:])

    /// The model, loaded now if it is not yet.
    ///
    /// - Throws: ``SystemLanguageModel/Error/assetsUnavailable(_:)`` if there is no usable file.
    static func model(path: String) async throws -> LoadedModel {
        let task = tasks.withLock { tasks in
            if let task = tasks[path] { return task }
            let task = Task.detached { try await LoadedModel.load(path: path) }
            tasks[path] = task
            return task
        }
        do {
            return try await task.value
        } catch {
            // The file may be repaired or replaced: the next request tries again.
            tasks.withLock { if $0[path] == task { $0[path] = nil } }
            let missing = !FileManager.default.fileExists(atPath: path)
            throw SystemLanguageModel.Error.assetsUnavailable(
                .init(
                    debugDescription: missing
                        ? "There is no model at \(path). Fetch the default model with “fm model pull”, or set FM_MODEL to a GGUF file."
                        : "\(error)"))
        }
    }
}
