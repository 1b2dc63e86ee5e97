import Foundation

/// Runs the commands that install models (`curl`, `python3`, `sha256sum`) and that build Swift files.
enum Subprocess {
    struct Result {
        /// The exit status; nil if the command does not exist.
        var status: Int32?
        var output: String
    }

    /// Runs a command and waits until it ends. Its standard output is returned; its standard error is passed through
    /// unless `isQuiet`.
    static func run(
        _ command: [String], input: String? = nil, isQuiet: Bool = false, environment: [String: String]? = nil
    ) -> Result {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = command
        if let environment { process.environment = environment }
        process.standardOutput = output
        process.standardError = isQuiet ? FileHandle.nullDevice : FileHandle.standardError
        let pipe = Pipe()
        process.standardInput = input == nil ? FileHandle.nullDevice : pipe
        guard (try? process.run()) != nil else { return Result(status: nil, output: "") }  // env itself is missing
        if let input {
            // If a command ends before it has read everything, only its exit status counts.
            try? pipe.fileHandleForWriting.write(contentsOf: Data(input.utf8))
            try? pipe.fileHandleForWriting.close()
        }
        let data = (try? output.fileHandleForReading.readToEnd()) ?? Data()  // nothing was written
        process.waitUntilExit()
        return Result(
            status: process.terminationStatus == 127 ? nil : process.terminationStatus,
            output: String(decoding: data, as: UTF8.self))
    }
}
