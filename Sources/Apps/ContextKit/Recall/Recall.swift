public import Foundation

/// The result of recall for one prompt: the earlier turns that were found, put in front of the prompt, and left out.
public struct Recall: Sendable, Codable {
    /// An earlier turn that was considered.
    public struct Item: Sendable, Codable {
        /// What was done with the turn.
        public enum Outcome: String, Sendable, Codable {
            /// It is in front of the prompt, verbatim.
            case recalled
            /// Some of its sentences are in front of the prompt, because the whole turn does not fit.
            case shortened
            /// It did not fit.
            case overBudget
            /// It is not worth its tokens, or the evidence was not sufficient to recall anything.
            case weak
            /// It cannot be read from the archive.
            case damaged
        }

        /// The turn's number in the conversation.
        public var turn: Int
        /// The side that was found; nil for the whole turn.
        public var side: ScoredTurn.Side?
        /// When its prompt was sent.
        public var date: Date?
        /// Its score and what it has in common with the prompt.
        public var match: ScoredTurn?
        /// What was done with the turn.
        public var outcome: Outcome
        /// The part of the turn that is in front of the prompt; empty if it was left out.
        public var text: String
    }

    /// The user's prompt.
    public var prompt: String
    /// How likely it is that the prompt needs an earlier turn, from 0 to 1.
    public var evidence: Double
    /// Whether the evidence was sufficient to recall turns.
    public var isNeeded: Bool
    /// What was considered, best first.
    public var items: [Item]
    /// Tokens that were available for earlier turns.
    public var budget: Int
    /// Tokens that the earlier turns take.
    public var tokens: Int
    /// Why the search failed; nil if it did not.
    public var problem: String?

    /// Marks all turns as left out. Called when the request exceeded the window and is repeated without them.
    mutating func discardTexts() {
        for index in items.indices where !items[index].text.isEmpty {
            items[index].outcome = .overBudget
            items[index].text = ""
        }
        tokens = 0
    }

    /// Removes the prompt and everything that quotes a turn.
    mutating func removeTexts() {
        prompt = ""
        for index in items.indices {
            items[index].text = ""
            items[index].match?.matches = []
        }
        problem = problem.map { _ in "the search failed" }
    }

    /// Whether a turn was shortened or left out because of the budget.
    var isBudgetExhausted: Bool { items.contains { $0.outcome == .overBudget || $0.outcome == .shortened } }

    /// The turns that are in front of the prompt, in whole or in part.
    public var recalledItems: [Item] { items.filter { $0.outcome == .recalled || $0.outcome == .shortened } }

    /// A readable report: each turn with its date, the reason why it was recalled or left out, and its text.
    public var report: String {
        var lines = [summary]
        let left = items.filter(\.text.isEmpty)
        for item in items.filter({ !$0.text.isEmpty }) + left.prefix(Self.shownItems) {
            var line = "  turn \(item.turn)" + (item.side.map { ", \($0.rawValue)" } ?? "")
            if let date = item.date { line += ", \(RecallBlock.day(date))" }
            line += ": \(item.outcome.words)"
            if let match = item.match {
                line += match.matches.isEmpty ? "" : ", shares “\(match.matches.joined(separator: "”, “"))”"
                line += " (score \(match.score.formatted(.number.precision(.fractionLength(2)))))"
            }
            lines.append(line)
            lines += item.text.split(separator: "\n").map { "    \($0)" }
        }
        if left.count > Self.shownItems { lines.append("  and \(left.count - Self.shownItems) more that were left out") }
        return lines.joined(separator: "\n")
    }

    /// Maximum number of left-out turns in the report.
    private static let shownItems = 4

    /// A sentence that states how many turns were recalled, or why none were.
    public var summary: String {
        if let problem { return "The archive could not be searched: \(problem)" }
        let certainty = "evidence \(evidence.formatted(.number.precision(.fractionLength(2))))"
        if !isNeeded {
            return items.isEmpty
                ? "No earlier turn has words of this prompt." : "Nothing was recalled: the evidence is too low (\(certainty))."
        }
        let left = items.count { $0.outcome == .overBudget }
        let damaged = items.count { $0.outcome == .damaged }
        // Both sides of a turn may be recalled.
        let count = Set(recalledItems.map(\.turn)).count
        let turns = count == 1 ? "1 earlier turn was" : "\(count) earlier turns were"
        return "\(turns) recalled, \(tokens) of \(budget) tokens (\(certainty))"
            + (left > 0 ? "; \(left) more did not fit" : "") + (damaged > 0 ? "; \(damaged) are damaged" : "") + "."
    }
}

extension Recall.Item.Outcome {
    fileprivate var words: String {
        switch self {
        case .recalled: "recalled"
        case .shortened: "recalled in part"
        case .overBudget: "left out, did not fit"
        case .weak: "left out, too little in common"
        case .damaged: "damaged"
        }
    }
}
