public import Foundation

/// A record of one compaction: what made a context smaller, and by how much.
public struct Compaction: Sendable, Codable {
    /// The reason for a compaction.
    public enum Reason: String, Sendable, Codable {
        /// An answer reached the threshold.
        case threshold
        /// The next prompt would not fit.
        case beforeRequest
        /// What the next prompt needs of earlier turns would not fit.
        case recall
        /// A request exceeded the window although its prompt had been counted.
        case overflow
        /// The conversation continues with a model that has a different window.
        case modelChange
        /// The program requested it.
        case requested
    }

    /// When the compaction was done.
    public var date: Date
    /// Why the compaction was done.
    public var reason: Reason
    /// Tokens of the context before the compaction.
    public var tokensBefore: Int
    /// Tokens of the context after the compaction.
    public var tokensAfter: Int
    /// The numbers of the turns that left the context. They are in the archive.
    public var evictedTurns: [Int]
    /// Number of turns that stay in the context but lost their tool exchanges.
    public var droppedToolExchanges: Int
    /// The text carried over from turns that are no longer in the context.
    public var carried: String
    /// Duration in seconds.
    public var seconds: Double
    /// The errors of the steps, and what was done instead; nil if there were none.
    public var problem: String?
}
