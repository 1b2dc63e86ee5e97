public import Foundation

/// What a conversation did to bring back what a prompt needs: what was looked for, found, brought, and left out.
public struct Recall: Sendable, Codable {
    /// An earlier turn that was looked at.
    public struct Item: Sendable, Codable {
        /// What became of it.
        public enum Outcome: String, Sendable, Codable {
            /// It is in front of the prompt, word for word.
            case brought
            /// Sentences of it are: all of it has no room.
            case shortened
            /// There was no room for it.
            case noRoom
            /// Its score is far below the best one's.
            case weak
            /// It cannot be read.
            case damaged
        }

        /// Its number in the conversation.
        public var turn: Int
        /// When it was said.
        public var date: Date?
        /// Its score and what it has in common with the prompt; nil for the neighbour of a match.
        public var match: ScoredTurn?
        /// What became of it.
        public var outcome: Outcome
        /// What of it is in front of the prompt.
        public var text: String
    }

    /// What was asked.
    public var prompt: String
    /// How sure it was that the prompt needs something from before, from 0 to 1.
    public var evidence: Double
    /// Whether that was enough to look for it.
    public var isNeeded: Bool
    /// The turns that were looked at, the best first, neighbours last.
    public var items: [Item]
    /// Tokens that were free for earlier turns.
    public var budget: Int
    /// Tokens that they take.
    public var tokens: Int
    /// Why nothing could be looked for; nil if it could.
    public var problem: String?

    /// After the window has run over: the prompt is asked again by itself.
    mutating func leaveOut() {
        for index in items.indices where !items[index].text.isEmpty {
            items[index].outcome = .noRoom
            items[index].text = ""
        }
        tokens = 0
    }

    /// Whether something had less room than it wanted.
    var hasShortage: Bool { items.contains { $0.outcome == .noRoom || $0.outcome == .shortened } }

    /// The turns that are in front of the prompt.
    public var brought: [Item] { items.filter { $0.outcome == .brought || $0.outcome == .shortened } }

    /// All of it for people: each turn, when it was said, why it was brought back or left out, and its text.
    public var report: String {
        var lines = [summary]
        let left = items.filter(\.text.isEmpty)
        for item in items.filter({ !$0.text.isEmpty }) + left.prefix(Self.shownItems) {
            var line = "  turn \(item.turn)"
            if let date = item.date { line += ", \(RecallBlock.day(date))" }
            line += ": \(item.outcome.words)"
            if let match = item.match {
                line += match.matches.isEmpty ? "" : ", it has “\(match.matches.joined(separator: "”, “"))”"
                line += " (score \(match.score.formatted(.number.precision(.fractionLength(1)))))"
            } else {
                line += ", beside a match"
            }
            lines.append(line)
            lines += item.text.split(separator: "\n").map { "    \($0)" }
        }
        if left.count > Self.shownItems { lines.append("  and \(left.count - Self.shownItems) more that were left out") }
        return lines.joined(separator: "\n")
    }

    /// Turns that were left out and are shown to people.
    private static let shownItems = 4

    /// Why the prompt got what it got, in a sentence.
    public var summary: String {
        if let problem { return "The archive could not be searched: \(problem)" }
        let certainty = "evidence \(evidence.formatted(.number.precision(.fractionLength(2))))"
        if !isNeeded {
            return items.isEmpty
                ? "No earlier turn has words of this prompt." : "Nothing was recalled: too little speaks for it (\(certainty))."
        }
        let left = items.count { $0.outcome == .noRoom }
        let damaged = items.count { $0.outcome == .damaged }
        let turns = brought.count == 1 ? "1 earlier turn was" : "\(brought.count) earlier turns were"
        return "\(turns) recalled, \(tokens) of \(budget) tokens (\(certainty))"
            + (left > 0 ? "; \(left) more had no room" : "") + (damaged > 0 ? "; \(damaged) are damaged" : "") + "."
    }
}

extension Recall.Item.Outcome {
    fileprivate var words: String {
        switch self {
        case .brought: "recalled"
        case .shortened: "recalled in part"
        case .noRoom: "left out, no room"
        case .weak: "left out, too little in common"
        case .damaged: "damaged"
        }
    }
}
