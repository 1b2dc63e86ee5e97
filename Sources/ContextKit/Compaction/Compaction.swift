public import Foundation

/// What making a context smaller did.
public struct Compaction: Sendable, Codable {
    /// Why it was done.
    public enum Reason: String, Sendable, Codable {
        /// An answer reached the threshold.
        case threshold
        /// The next prompt would not have fitted.
        case beforeRequest
        /// A request ran over the window all the same.
        case overflow
        /// The conversation goes on with a model of another window.
        case modelChange
        /// The program asked for it.
        case requested
    }

    /// When it was done.
    public var date: Date
    /// Why it was done.
    public var reason: Reason
    /// Tokens of the context before.
    public var tokensBefore: Int
    /// Tokens of the context after.
    public var tokensAfter: Int
    /// The numbers of the turns that left the context. They are in the archive.
    public var evictedTurns: [Int]
    /// Tool exchanges that were taken out of turns that stay.
    public var droppedToolExchanges: Int
    /// What is carried over from turns that are not in the context.
    public var carried: String
    /// Seconds that it took.
    public var seconds: Double
    /// What went wrong on the way, and what was done instead; nil if nothing did.
    public var problem: String?
}
