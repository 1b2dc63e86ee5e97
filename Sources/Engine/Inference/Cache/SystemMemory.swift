internal import Foundation

/// The memory that this process can use: that of the machine, which all programs share, or the limit of its container.
package struct SystemMemory: Sendable {
    /// Available memory in bytes, including files that the system can drop from memory; nil if it is not known.
    package var available: @Sendable () -> Int?
    /// Bytes that caches leave to other programs.
    package var reserve: Int

    package static let current = SystemMemory(
        available: {
            // The file exists only on Linux. Where it cannot be read, the memory is not known: caches have their maximum only, and
            // packed weights are read where they are needed.
            let machine = machineMemory()
            guard let container = container.flatMap({ $0.available() }) else { return machine }
            return machine.map { min($0, container) } ?? container
        },
        // A sixteenth, at most 1 GB.
        reserve: min(1 << 30, total / 16))

    /// `MemAvailable` of /proc/meminfo in bytes. Allocates nothing: it is read while the engine runs.
    private static func machineMemory() -> Int? {
        let descriptor = open("/proc/meminfo", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        // The line is the third one.
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 512) { buffer -> Int? in
            guard let base = buffer.baseAddress else { return nil }
            let count = read(descriptor, base, buffer.count)
            let name: StaticString = "MemAvailable:"
            guard count > name.utf8CodeUnitCount else { return nil }
            for start in 0..<count - name.utf8CodeUnitCount where start == 0 || buffer[start - 1] == 0x0A {
                guard memcmp(base + start, name.utf8Start, name.utf8CodeUnitCount) == 0 else { continue }
                var (kilobytes, index) = (0, start + name.utf8CodeUnitCount)
                while index < count, buffer[index] == 0x20 { index += 1 }
                while index < count, case let digit = Int(buffer[index]) - 0x30, (0...9).contains(digit) {
                    kilobytes = kilobytes * 10 + digit
                    index += 1
                }
                return kilobytes * 1024
            }
            return nil
        }
    }

    /// The bytes of memory that this process may use at most.
    package static let total = min(
        Int(clamping: ProcessInfo.processInfo.physicalMemory), container?.limit() ?? .max)

    /// The bytes that are missing from the reserve, 0 if the available memory is not known.
    package var missingBytes: Int { available().map { max(0, reserve - $0) } ?? 0 }

    private static let container: ContainerMemory? = [ContainerMemory.version2, .version1].first { $0.limit() != nil }
}

/// The memory controller of a container, as files of its control group.
package struct ContainerMemory: Sendable {
    var limitFile: String
    var usageFile: String
    /// Contains a line with the bytes of cached files that the system drops first.
    var statisticsFile: String
    var inactiveFiles: String

    static let version2 = ContainerMemory(folder: "/sys/fs/cgroup", isVersion1: false)
    static let version1 = ContainerMemory(folder: "/sys/fs/cgroup/memory", isVersion1: true)

    package init(folder: String, isVersion1: Bool) {
        limitFile = folder + (isVersion1 ? "/memory.limit_in_bytes" : "/memory.max")
        usageFile = folder + (isVersion1 ? "/memory.usage_in_bytes" : "/memory.current")
        statisticsFile = folder + "/memory.stat"
        inactiveFiles = isVersion1 ? "total_inactive_file" : "inactive_file"
    }

    /// The limit in bytes; nil if there is none, or no such control group.
    package func limit() -> Int? {
        // “max” or, in version 1, a number larger than any memory means that there is no limit.
        number(in: limitFile).flatMap { $0 < 1 << 60 ? $0 : nil }
    }

    /// The bytes below the limit, including files that the system can drop from memory.
    package func available() -> Int? {
        guard let limit = limit(), let usage = number(in: usageFile) else { return nil }
        // Without statistics, no file counts as available.
        let statistics = (try? String(contentsOfFile: statisticsFile, encoding: .utf8)) ?? ""
        let line = statistics.split(separator: "\n").first { $0.hasPrefix(inactiveFiles + " ") }
        let inactive = line?.split(separator: " ").last.flatMap { Int($0) } ?? 0
        return max(0, limit - usage) + inactive
    }

    private func number(in path: String) -> Int? {
        // A missing file means that there is no such control group.
        (try? String(contentsOfFile: path, encoding: .utf8)).flatMap { Int($0.trimmingCharacters(in: .whitespacesAndNewlines)) }
    }
}

extension SystemMemory {
    /// The largest resident size that this process had, in bytes; 0 if the system does not tell.
    package static var peakBytes: Int {
        var usage = rusage()
        guard getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0 else { return 0 }
        return usage.ru_maxrss << 10
    }
}
