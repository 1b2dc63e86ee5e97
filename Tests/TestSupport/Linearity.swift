internal import Foundation

/// Whether a function takes linear time: eight times the input takes about eight times as long, and not sixty-four times as quadratic
/// work does. Both are measured in the same run, so that the speed of the machine does not matter, in time of the processor, so that other
/// programs do not matter either.
package enum Linearity {
    /// How many times longer eight times the input takes; the minimum of three measurements each.
    ///
    /// - Parameter minimum: Work of eight times the input that is shorter cannot be measured, and counts as linear.
    package static func ratio(
        _ count: Int, minimum: Duration = .milliseconds(4), _ work: (Int) throws -> Void
    ) rethrows -> Double {
        func duration(_ count: Int) throws -> Duration {
            var best = Duration.seconds(3_600)
            for _ in 0..<3 {
                let start = threadTime
                try work(count)
                best = min(best, threadTime - start)
            }
            return best
        }
        let long = try duration(8 * count)
        if long < minimum { return 8 }
        return try long / duration(count)
    }

    /// The time that this thread has computed.
    private static var threadTime: Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    /// Between eight and sixty-four.
    package static let limit = 32.0
}
