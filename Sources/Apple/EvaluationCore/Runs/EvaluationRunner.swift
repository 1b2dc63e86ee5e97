internal import Waiting
internal import Foundation

/// How far a run of an evaluation is. An addition of this package.
public struct EvaluationProgress: Sendable {
    /// The number of samples; with several seeds, each of them counts.
    public let total: Int
    /// How many have a result.
    public internal(set) var completed: Int
    /// How many of them an earlier run left in the file.
    public let continued: Int
    /// How many of them did not pass.
    public internal(set) var failed: Int
    /// The newest result; nil at the beginning of the run.
    public internal(set) var latest: SampleResult?
}

/// Runs samples, several at once, and keeps their results in a file: all evaluations run here.
struct EvaluationRunner {
    var header: RunHeader
    /// The number of samples that run at once. A single one runs on the actor of the caller.
    var parallel = 1
    var file: URL?

    /// What is known of a sample before it runs.
    struct Item: Sendable {
        var key: SampleResult.Key
        var `class`: String?
    }

    /// Runs what the file does not contain yet. The results have the order of the samples.
    ///
    /// - Parameters:
    ///   - progress: Called at the beginning, and with each result.
    ///   - body: The result of the sample with this number, without its id.
    /// - Throws: ``EvaluationDataError`` for the file, `CancellationError`, or an error of `body`, which ends the run.
    nonisolated(nonsending) func run(
        _ items: [Item], progress: (EvaluationProgress) -> Void,
        body: nonisolated(nonsending) @escaping @Sendable (Int) async throws -> SampleResult
    ) async throws -> [SampleResult] {
        var ids: Set<SampleResult.Key> = []
        for item in items where !ids.insert(item.key).inserted { throw EvaluationDataError.repeatedID(item.key.id) }
        let header = header
        var runFile: EvaluationRunFile?
        if let file { runFile = try await onAnotherThread { try EvaluationRunFile(file, header) } }
        let output = runFile
        var results = items.map { output?.results[$0.key] }
        let known = results.compactMap { $0 }
        var state = EvaluationProgress(
            total: items.count, completed: known.count, continued: known.count, failed: known.count { !$0.passes })
        progress(state)
        var work = results.indices.filter { results[$0] == nil }[...]

        @Sendable nonisolated(nonsending) func answer(_ index: Int) async throws -> (Int, SampleResult) {
            try Task.checkCancellation()
            let started = Date().ISO8601Format()
            var result = try await body(index)
            let item = items[index]
            (result.id, result.seed, result.class, result.started) = (item.key.id, item.key.seed, item.class, started)
            try output?.append(result)
            return (index, result)
        }
        func finish(_ index: Int, _ result: SampleResult) {
            results[index] = result
            state.completed += 1
            state.failed += result.passes ? 0 : 1
            state.latest = result
            progress(state)
        }

        if parallel <= 1 {
            for index in work {
                let (_, result) = try await answer(index)
                finish(index, result)
            }
        } else {
            try await withThrowingTaskGroup(of: (Int, SampleResult).self) { group in
                for index in work.prefix(parallel) { group.addTask { try await answer(index) } }
                work = work.dropFirst(parallel)
                while let (index, result) = try await group.next() {
                    if let next = work.popFirst() { group.addTask { try await answer(next) } }
                    finish(index, result)
                }
            }
        }
        return results.compactMap { $0 }
    }
}
