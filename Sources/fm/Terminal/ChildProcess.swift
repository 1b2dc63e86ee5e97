import Subprocess

/// Programs that commands run. A program and those that it starts end when the task is cancelled.
enum ChildProcess {
    private static var options: PlatformOptions {
        var options = PlatformOptions()
        // In a group of their own, they can be ended together. The time is for removing temporary files; then they are killed.
        options.processGroupID = 0
        options.teardownSequence = [.send(signal: .terminate, toProcessGroup: true, allowedDurationToNextStep: .seconds(2))]
        return options
    }

    /// Runs a program, whose errors go to standard error.
    ///
    /// - Parameter command: the program, a name or a path, and its arguments.
    /// - Returns: whether it succeeded.
    static func succeeds(_ command: [String]) async throws -> Bool {
        let result = try await run(
            .name("env"), arguments: Arguments(command), platformOptions: options, output: .discarded,
            error: .currentStandardError)
        try Task.checkCancellation()
        return result.terminationStatus.isSuccess
    }

    /// Runs a program whose standard input ends when this process ends.
    ///
    /// - Parameters:
    ///   - environment: variables in addition to those of this process.
    ///   - limit: the maximum number of bytes that are returned; others are read and dropped.
    /// - Returns: what it printed, errors included, and how it ended.
    static func output(
        of command: [String], environment: [Environment.Key: String?], limit: Int
    ) async throws -> (text: String, end: TerminationStatus) {
        let result = try await run(
            .name("env"), arguments: Arguments(command), environment: .inherit.updating(environment), platformOptions: options,
            input: .inputWriter, output: .sequence, error: .combinedWithOutput
        ) { execution in
            var bytes: [UInt8] = []
            for try await part in execution.standardOutput {
                part.withUnsafeBytes { bytes += $0.prefix(limit - bytes.count) }
            }
            return bytes
        }
        try Task.checkCancellation()
        return (String(decoding: result.closureResult, as: UTF8.self), result.terminationStatus)
    }
}
