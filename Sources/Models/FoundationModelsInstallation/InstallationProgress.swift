internal import Synchronization

/// How far an installation is.
public struct InstallationProgress: Hashable, Sendable {
    /// What an installation does.
    public enum Phase: Hashable, Sendable {
        /// Waits until another process or task that installs something in the same folder is ready.
        case waiting
        /// Compares existing files with the published ones.
        case verifying
        /// Downloads what is missing.
        case downloading
        /// Converts what was downloaded to a GGUF file.
        case importing
    }

    /// What is being done. Phases may occur several times or not at all.
    public var phase: Phase
    /// The model that is installed: its title, or the name of its file or repository.
    public var model: String
    /// The file that is being processed; nil while waiting.
    public var file: String?
    /// The number of bytes that are done in this phase, of all files together. It never decreases within a phase.
    public var completedBytes: Int
    /// The number of bytes of all files of this phase; nil if it is not known.
    public var totalBytes: Int?

    /// The share of this phase that is done, from 0 to 1; nil if the size is not known.
    public var fraction: Double? {
        totalBytes.map { $0 > 0 ? min(1, Double(completedBytes) / Double($0)) : 1 }
    }
}

/// What an installation reports: see ``ModelInstallation/installing(_:)``.
public enum InstallationEvent: Sendable {
    /// Something was done.
    case progress(InstallationProgress)
    /// The model is installed. No event follows.
    case installed(InstalledModel)
}

/// Counts bytes and reports them: at most 200 times for each phase and file, and never less than before.
final class ProgressReport: Sendable {
    private struct State {
        var progress: InstallationProgress
        /// The bytes of the files of this phase that are complete.
        var completedFiles = 0
        var reportedBytes = 0
    }

    private let state: Mutex<State>
    private let handler: @Sendable (InstallationProgress) -> Void

    init(model: String, handler: @escaping @Sendable (InstallationProgress) -> Void) {
        state = Mutex(State(progress: InstallationProgress(phase: .waiting, model: model, completedBytes: 0)))
        self.handler = handler
    }

    func name(_ model: String) { state.withLock { $0.progress.model = model } }

    /// - Parameter total: The bytes of all files of the phase.
    func begin(_ phase: InstallationProgress.Phase, total: Int? = nil, completed: Int = 0) {
        let progress = state.withLock { state in
            state.progress.phase = phase
            (state.progress.file, state.progress.totalBytes, state.progress.completedBytes) = (nil, total, completed)
            (state.completedFiles, state.reportedBytes) = (0, completed)
            return state.progress
        }
        handler(progress)
    }

    /// Begins a file of the phase.
    func begin(file: String) { state.withLock { $0.progress.file = file } }

    /// - Parameter bytes: The number of bytes of the current file that are done.
    func show(_ bytes: Int) {
        let progress = state.withLock { state -> InstallationProgress? in
            let total = state.progress.totalBytes
            let completed = min(total ?? .max, state.completedFiles + bytes)
            guard completed > state.progress.completedBytes else { return nil }
            state.progress.completedBytes = completed
            let step = max(1 << 16, (total ?? 200 << 20) / 200)
            guard completed == total || completed - state.reportedBytes >= step else { return nil }
            state.reportedBytes = completed
            return state.progress
        }
        if let progress { handler(progress) }
    }

    /// Ends a file of the phase.
    func end(fileOf bytes: Int) {
        show(bytes)
        state.withLock { $0.completedFiles += bytes }
    }
}
