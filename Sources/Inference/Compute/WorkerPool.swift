internal import CKernels
internal import Foundation

/// The threads that arithmetic runs on: as many as there are physical cores this process may use.
///
/// Never Swift's cooperative pool. One thread at a time may run work on it: the engine's own.
package final class WorkerPool: @unchecked Sendable {  // Used from the engine's executor only.
    let handle: OpaquePointer
    let kernels: UnsafePointer<ck_kernels>

    package var threads: Int { Int(ck_pool_threads(handle)) }
    /// The instruction set in use, for people.
    package var instructionSet: String { String(cString: kernels.pointee.name) }

    package init(threads: Int? = nil, instructionSet: InstructionSet? = nil) throws(ModelError) {
        guard let handle = ck_pool_create(Int32(clamping: threads ?? Self.defaultThreads)) else {
            throw .outOfMemory(bytes: 4096)
        }
        self.handle = handle
        guard let kernels = instructionSet.map({ ck_kernels_for($0.isa) }) ?? ck_kernels_best() else {
            ck_pool_destroy(handle)
            throw .unsupported(
                field: "the instruction set", value: instructionSet.map { "\($0)" } ?? "none",
                supported: InstructionSet.available.map { "\($0)" }.joined(separator: ", "))
        }
        self.kernels = kernels
    }

    deinit { ck_pool_destroy(handle) }

    /// `FM_THREADS` where set, else the physical cores within the process's CPU affinity and quota.
    package static var defaultThreads: Int {
        if let setting = ProcessInfo.processInfo.environment["FM_THREADS"], let threads = Int(setting), threads > 0 {
            return min(threads, 256)
        }
        let cores = Int(ck_physical_cores())
        return max(1, min(cores, quota ?? cores))
    }

    /// The container's CPU quota in whole CPUs, if there is one (cgroup v2, `cpu.max`).
    private static var quota: Int? {
        // No file: no cgroup v2, so no quota to keep to.
        guard let line = try? String(contentsOfFile: "/sys/fs/cgroup/cpu.max", encoding: .utf8) else { return nil }
        let fields = line.split(whereSeparator: \.isWhitespace)
        guard fields.count == 2, let limit = Double(fields[0]), let period = Double(fields[1]), period > 0 else { return nil }
        return max(1, Int((limit / period).rounded(.up)))
    }
}

/// An instruction set with kernels of its own; chosen automatically unless a test or a benchmark asks for one.
package enum InstructionSet: String, CaseIterable, Sendable {
    case scalar, avx2, avx512, amx, neon

    var isa: ck_isa {
        switch self {
        case .scalar: CK_SCALAR
        case .avx2: CK_AVX2
        case .avx512: CK_AVX512
        case .amx: CK_AMX
        case .neon: CK_NEON
        }
    }

    /// Those this processor can run.
    package static var available: [InstructionSet] { allCases.filter { ck_kernels_for($0.isa) != nil } }
}
