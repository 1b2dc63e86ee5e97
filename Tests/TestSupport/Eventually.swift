public import Testing

/// Waits until a condition holds that other tasks will bring about. If it does not come, the test fails instead of waiting forever.
///
/// - Returns: Whether the condition holds.
@discardableResult
public nonisolated(nonsending) func eventually(
    sourceLocation: SourceLocation = #_sourceLocation, _ condition: () async throws -> Bool
) async rethrows -> Bool {
    for attempt in 0..<(maximumYields + maximumWaits) {
        if try await condition() { return true }
        if attempt < maximumYields {
            await Task.yield()
        } else {
            try? await Task.sleep(for: .milliseconds(5))  // a cancelled task checks the condition without waiting
        }
    }
    Issue.record("The condition never held.", sourceLocation: sourceLocation)
    return false
}

/// Most conditions hold after a few yields.
private let maximumYields = 1_000
private let maximumWaits = 4_000
