package import CKernels
internal import Foundation
internal import Synchronization
import ProcessSettings

/// The thread pool for matrix arithmetic; by default one thread per physical core that this process may use.
///
/// Separate from Swift's cooperative pool. Several models can use one pool: their parallel operations take turns.
package final class WorkerPool: @unchecked Sendable {  // Parallel operations hold a lock of the pool.
    package let handle: OpaquePointer
    package let kernels: UnsafePointer<ck_kernels>

    private static let sharedPool = Mutex<WorkerPool?>(nil)

    /// The pool with the default number of threads, for all models of the process.
    package static func shared() throws(ModelError) -> WorkerPool {
        try sharedPool.withLock { (pool) throws(ModelError) in
            if let pool { return pool }
            let made = try WorkerPool()
            pool = made
            return made
        }
    }

    package var threads: Int { Int(ck_pool_threads(handle)) }
    /// The name of the instruction set in use, for display.
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

    /// The value of the environment variable `FM_THREADS` if it is set, else the number of physical cores within the
    /// process's CPU affinity and quota.
    package static var defaultThreads: Int {
        if let threads = Setting.threads.value.flatMap({ Int($0) }), threads > 0 {
            return min(threads, 256)
        }
        let cores = Int(ck_physical_cores())
        return max(1, min(cores, quota ?? cores))
    }

    /// The container's CPU quota in whole CPUs, if there is one (cgroup v2, `cpu.max`).
    private static var quota: Int? {
        // Without the file there is no cgroup v2 and so no quota.
        guard let line = try? String(contentsOfFile: "/sys/fs/cgroup/cpu.max", encoding: .utf8) else { return nil }
        let fields = line.split(whereSeparator: \.isWhitespace)
        guard fields.count == 2, let limit = Double(fields[0]), let period = Double(fields[1]), period > 0 else { return nil }
        return max(1, Int((limit / period).rounded(.up)))
    }
}

/// A thread of its own for work that waits most of the time.
enum DetachedThread {
    private final class Body {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Runs `body` on a new thread. Returns false if the system cannot create one.
    static func start(_ body: @escaping @Sendable () -> Void) -> Bool {
        let context = Unmanaged.passRetained(Body(body))
        let isStarted = ck_start_thread(
            { context in
                guard let context else { return }
                Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
            }, context.toOpaque())
        if !isStarted { context.release() }
        return isStarted
    }
}

/// An instruction set with its own kernels; chosen automatically unless a test or a benchmark specifies one.
package enum InstructionSet: String, CaseIterable, Sendable {
    case scalar, avx2, avx512, amx, neon

    package var isa: ck_isa {
        switch self {
        case .scalar: CK_SCALAR
        case .avx2: CK_AVX2
        case .avx512: CK_AVX512
        case .amx: CK_AMX
        case .neon: CK_NEON
        }
    }

    /// The instruction sets that this processor supports.
    package static var available: [InstructionSet] { allCases.filter { ck_kernels_for($0.isa) != nil } }
}
