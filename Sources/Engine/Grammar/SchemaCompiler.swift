internal import Waiting

/// Where schemas of strangers are compiled: on other threads than those of tasks, and so that a large schema does not hold up small ones.
///
/// Each schema is compiled with little work first, and again with more if that was not enough. Those with the same limit take turns, so
/// that a schema waits only for others that are no larger. Large ones run on a thread that leaves the cores to the model.
package enum SchemaCompiler {
    private struct Lane {
        /// The maximum amount of work, in units of about half a microsecond.
        var fuel: Int
        var isBackground: Bool
        let lock = AsyncLock()
    }

    private static let lanes = [
        Lane(fuel: 10_000, isBackground: false), Lane(fuel: 100_000, isBackground: true),
        Lane(fuel: Grammar.fuelToCompile, isBackground: true),
    ]

    /// Runs a compilation whose work can be limited.
    ///
    /// - Parameter compile: receives the maximum amount of work.
    /// - Throws: the ``SchemaError`` of `compile`, or `CancellationError`.
    package static func run<Value: Sendable>(
        _ compile: @escaping @Sendable (_ fuel: Int) throws(SchemaError) -> Value
    ) async throws -> Value {
        for lane in lanes.dropLast() {
            // What is too complex here may be compiled with more work.
            do { return try await run(compile, in: lane) } catch let error as SchemaError where error.kind == .tooComplex {}
        }
        return try await run(compile, in: lanes[lanes.count - 1])
    }

    private static func run<Value: Sendable>(
        _ compile: @escaping @Sendable (_ fuel: Int) throws(SchemaError) -> Value, in lane: Lane
    ) async throws -> Value {
        try await lane.lock.acquire()
        defer { lane.lock.release() }
        let fuel = lane.fuel
        return try await onAnotherThread(isBackground: lane.isBackground) { () throws(SchemaError) in try compile(fuel) }
    }
}
