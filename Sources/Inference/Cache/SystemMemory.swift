internal import Foundation

/// The memory of the machine, which all programs share.
package struct SystemMemory: Sendable {
    /// Available memory in bytes, including files that the system can drop from memory; nil if it is not known.
    package var available: @Sendable () -> Int?
    /// Bytes that caches leave to other programs.
    package var reserve: Int

    package static let current = SystemMemory(
        available: {
            // The file exists only on Linux. Where it cannot be read, the memory is not known: caches have their maximum only, and
            // packed weights are read where they are needed.
            guard let text = try? String(contentsOfFile: "/proc/meminfo", encoding: .utf8) else { return nil }
            let line = text.split(separator: "\n").first { $0.hasPrefix("MemAvailable:") }
            return line?.split(separator: " ").dropFirst().first.flatMap { Int($0) }.map { $0 * 1024 }
        },
        // A sixteenth, at most 1 GB.
        reserve: min(1 << 30, Int(clamping: ProcessInfo.processInfo.physicalMemory / 16)))

    /// The bytes that are missing from the reserve, 0 if the available memory is not known.
    package var missingBytes: Int { available().map { max(0, reserve - $0) } ?? 0 }
}
