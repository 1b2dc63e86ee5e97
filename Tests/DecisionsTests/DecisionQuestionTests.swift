import Foundation
import FoundationModels
import ModelPrompts
import Testing

@testable import Decisions

/// Questions, and the prompts that are made of them.
struct DecisionQuestionTests {
    private static let letters: [DecisionQuestion.Option] = ["a", "b", "c", "d", "e", "f", "g", "h", "i"]

    // MARK: - Options

    @Test func unusableOptions() throws {
        func error(_ kind: DecisionQuestion.Kind) -> DecisionError? {
            do { try DecisionQuestion("Q", kind).check() } catch { return error as? DecisionError }
            return nil
        }
        #expect(error(.predicate(yes: " ")) == nil && error(.choice(["a"])) == nil && error(.score(Self.letters)) == nil)
        #expect(error(.choice([])) == .noOptions(question: "Q") && error(.score([])) == .noOptions(question: "Q"))
        let many = (0..<256).map { DecisionQuestion.Option("\($0)") }
        #expect(error(.choice(many)) == .tooManyOptions(question: "Q", count: 256) && error(.choice(Array(many[1...]))) == nil)
        for name in ["", " \n", "a\u{0}", "\u{85}x", "\u{1B}[2J"] {
            #expect(error(.choice(["x", .init(name)])) == .unusableOption(question: "Q", option: name), "\(name)")
        }
        for name in ["Billing", " billing ", "\u{3000}BILLING"] {
            #expect(error(.choice(["billing", .init(name)])) == .equalOptions(question: "Q", option: name), "\(name)")
        }
        // Criteria are texts of several lines.
        #expect(error(.choice(["x", "a\tb\nc"])) == nil)
        // Descriptions may be equal, and anything.
        #expect(error(.choice([.init("a", "x\ny"), .init("b", "x\ny")])) == nil)
        for error in [
            DecisionError.unsupportedModel, .noOptions(question: "Q"), .tooManyOptions(question: "Q", count: 256),
            .unusableOption(question: "Q", option: ""), .equalOptions(question: "Q", option: "a"), .openValue(pointer: "/a"),
            .unknownResponse,
        ] { #expect(error.errorDescription?.isEmpty == false && error.recoverySuggestion?.isEmpty == false) }
    }

    // MARK: - Orders

    @Test func orders() {
        func orders(_ kind: DecisionQuestion.Kind, averages: Bool = true) -> [[Int]] {
            AskedDecision(DecisionQuestion("Q", kind), averagesOrders: averages).orders
        }
        #expect(orders(.choice(["a", "b", "c"]), averages: false) == [[0, 1, 2]])
        #expect(orders(.score(["a", "b", "c"]), averages: false) == [[0, 1, 2]])
        // Yes and no have no order, and a scale only two.
        #expect(orders(.predicate()) == [[0, 1]] && orders(.choice(["a"])) == [[0]])
        #expect(orders(.score(["a", "b", "c"])) == [[0, 1, 2], [2, 1, 0]])
        // Each option is at each place once.
        for count in 2...6 {
            let all = orders(.choice(Array(Self.letters[..<count])))
            #expect(all.count == count && all[0] == Array(0..<count))
            for place in 0..<count { #expect(Set(all.map { $0[place] }).count == count) }
        }
        let nine = orders(.choice(Self.letters))
        #expect(Set(nine).count == 6)
        for order in nine { #expect(order.sorted() == Array(0..<9)) }
    }

    /// The readings are in the order of each prompt, the result in that of the question.
    @Test(arguments: [2, 4, 9]) func averagesAreThoseOfTheOptions(count: Int) {
        let asked = AskedDecision(DecisionQuestion("Q", .choice(Array(Self.letters[..<count]))), averagesOrders: true)
        let weights = (0..<count).map { Double($0 + 1) }
        // Half of what the model could write is none of the options.
        let values = weights.map { log(0.5 * $0 / weights.reduce(0, +)) }
        let same = asked.combined(asked.orders.map { order in order.map { values[$0] } })
        for (value, weight) in zip(same.logProbabilities, weights) {
            #expect(abs(exp(value) - weight / weights.reduce(0, +)) < 1e-12)
        }
        #expect(abs(same.mass - 0.5) < 1e-12)
        // A model that prefers the first place of every list prefers no option, if each is there as often.
        guard count <= AskedDecision.maximumOrders else { return }
        let partial = asked.combined(
            asked.orders.map { order in order.indices.map { $0 == 0 ? log(0.9) : log(0.1 / Double(count)) } })
        for value in partial.logProbabilities { #expect(abs(value - partial.logProbabilities[0]) < 1e-12) }
    }

    @Test func scalesAreReadInBothDirections() {
        let asked = AskedDecision(DecisionQuestion("Q", .score(["a", "b", "c"])), averagesOrders: true)
        let combined = asked.combined([[log(0.5), log(0.25), log(0.25)], [log(0.25), log(0.25), log(0.5)]])
        for (value, expected) in zip(combined.logProbabilities, [0.5, 0.25, 0.25]) { #expect(abs(exp(value) - expected) < 1e-12) }
    }

    /// The only option is certain, and nothing was computed for it.
    @Test func singleOptions() {
        let asked = AskedDecision(DecisionQuestion("Q", .choice(["a"])), averagesOrders: true)
        let combined = asked.combined([[0]])
        #expect(combined.logProbabilities == [0] && combined.mass == 1)
        let answer = asked.answer(combined.logProbabilities, mass: combined.mass, .none)
        #expect(answer.option.name == "a" && answer.confidence == 1 && answer.probability == 1)
    }

    @Test func answers() {
        func answer(_ kind: DecisionQuestion.Kind, _ probabilities: [Double]) -> DecisionAnswer {
            AskedDecision(DecisionQuestion("Q", kind), averagesOrders: false).answer(
                probabilities.map { log($0) }, mass: 0.5, .none)
        }
        let predicate = answer(.predicate(), [0.25, 0.75])
        #expect(abs(predicate.probability - 0.25) < 1e-12 && predicate.option.name == "no" && predicate.mass == 0.5)
        let choice = answer(.choice(["a", "b", "c"]), [0.2, 0.5, 0.3])
        #expect(choice.option.name == "b" && abs(choice.confidence - 0.25) < 1e-12)
        let score = answer(.score(["a", "b", "c"]), [0.2, 0.5, 0.3])
        #expect(abs(score.score - 1.1) < 1e-12 && score.confidence == score.distribution.confidenceOfScale)
    }

    // MARK: - Prompts

    private func text(_ entry: Transcript.Entry?) -> String? {
        switch entry {
        case .prompt(let prompt)?: if case .text(let text)? = prompt.segments.first { text.content } else { nil }
        case .instructions(let instructions)?:
            if case .text(let text)? = instructions.segments.first { text.content } else { nil }
        default: nil
        }
    }

    @Test func prompts() throws {
        let before: [Transcript.Entry] = [
            .instructions(.init(segments: [.text(.init(content: "Be strict."))], toolDefinitions: []))
        ]
        func prompts(_ kind: DecisionQuestion.Kind, about state: String? = "A mail.") -> [OptionPrompt] {
            AskedDecision(DecisionQuestion("Which?", kind), averagesOrders: true).prompts(about: state, after: before)
        }
        let choice = prompts(.choice(["billing", .init("sales", "offers")]))
        #expect(choice.map(\.options) == [["billing", "sales"], ["sales", "billing"]])
        for prompt in choice {
            // Each option is the whole answer: “bill” is another one than “billing”.
            #expect(prompt.closing == .endOfTurn && prompt.opening.isEmpty && prompt.entries.count == 2)
            #expect(text(prompt.entries.first) == "Be strict.")
            let request = try #require(text(prompt.entries.last))
            // What all questions on a state begin with, so that it is processed once.
            #expect(request.hasPrefix(DecisionPrompts.state("A mail.")) && request.contains("Which?"))
            #expect(request.contains("sales: offers"))
        }
        let predicate = prompts(.predicate(yes: "After the date."), about: nil)
        #expect(predicate.map(\.options) == [["true", "false"]] && predicate[0].closing == .none)
        let request = try #require(text(predicate[0].entries.last))
        #expect(request.hasPrefix("Which?") && request.contains("After the date."))
        #expect(prompts(.score(["low", "high"])).map(\.options) == [["low", "high"], ["high", "low"]])
    }

    /// A model need not write what is long: the letters are at the places of the prompt, not those of the question.
    @Test func longOptionsHaveLetters() throws {
        let long = String(repeating: "long ", count: 12)
        let asked = AskedDecision(DecisionQuestion("Which?", .choice(["a", .init(long), "c"])), averagesOrders: true)
        let prompts = asked.prompts(about: nil, after: [])
        #expect(prompts.count == 3)
        for (prompt, order) in zip(prompts, asked.orders) {
            #expect(prompt.options == ["A", "B", "C"] && prompt.closing == .none)
            let request = try #require(text(prompt.entries.last))
            let place = try #require(order.firstIndex(of: 1))
            #expect(request.contains("\(prompt.options[place]). \(long)"))
        }
        // There are no more letters than these.
        let many = (0..<26).map { DecisionQuestion.Option("option \($0)") } + [.init(long)]
        let named = AskedDecision(DecisionQuestion("Which?", .choice(many)), averagesOrders: false).prompts(about: nil, after: [])
        #expect(named[0].options == many.map(\.name) && named[0].closing == .endOfTurn)
    }

    @Test func instructionsOfTheSessionComeFirst() {
        let own: [Transcript.Entry] = [.instructions(.init(segments: [.text(.init(content: "Mine."))], toolDefinitions: []))]
        #expect(own.withDecisionInstructions.map { text($0) } == ["Mine."])
        let prompt: [Transcript.Entry] = [.prompt(.init(segments: [.text(.init(content: "Hello"))]))]
        #expect(prompt.withDecisionInstructions.map { text($0) } == [DecisionPrompts.instructions, "Hello"])
    }
}
