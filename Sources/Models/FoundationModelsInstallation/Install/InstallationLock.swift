internal import Foundation
internal import InstalledModels

/// Held while a process or a task installs models in a folder: others wait, so that two do not write one file. It ends with the process.
final class InstallationLock: Sendable {
    private let descriptor: Int32

    /// How often a task that waits looks again. The system's lock has no wait that can be cancelled.
    private static let interval = Duration.milliseconds(100)

    /// Waits for the lock.
    ///
    /// - Parameter waiting: Called once if somebody else holds it.
    init(_ folder: ModelFolder, waiting: () -> Void) async throws {
        let file = folder.sources.appendingPathComponent(".lock")
        do {
            try FileManager.default.createDirectory(at: folder.sources, withIntermediateDirectories: true)
        } catch { throw InstallationError.cannotWrite(folder.sources, reason: error.localizedDescription) }
        let descriptor = open(file.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw InstallationError.cannotWrite(file, reason: String(cString: strerror(errno))) }
        self.descriptor = descriptor
        var isWaiting = false
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK || errno == EINTR else {
                throw InstallationError.cannotWrite(file, reason: String(cString: strerror(errno)))
            }
            if !isWaiting { waiting() }
            isWaiting = true
            try await Task.sleep(for: Self.interval)
        }
    }

    deinit { close(descriptor) }
}
