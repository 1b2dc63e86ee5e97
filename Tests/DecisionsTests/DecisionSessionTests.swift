import Foundation
import FoundationModels
import FoundationModelsGGUF
import FoundationModelsTesting
import TestSupport
import Testing

@testable import Decisions

/// Sessions that decide, with a model of random weights: what it prefers means nothing, but it must be the same each time.
struct DecisionSessionTests {
    /// A model and its file.
    private final class Tiny {
        private let file: TemporaryFile
        let model: GGUFLanguageModel

        init(seed: UInt64 = 1) throws {
            var tiny = TinyModel()
            (tiny.seed, tiny.context) = (seed, 4_096)
            file = try tiny.file()
            model = GGUFLanguageModel(url: URL(filePath: file.path), checksText: false)
        }

        func session(_ instructions: String? = nil) -> LanguageModelSession {
            LanguageModelSession(model: model, instructions: instructions)
        }
    }

    private static let mail = "My parcel has not come, and the invoice is wrong."

    private static let questions: [DecisionQuestion] = [
        .init("Is the writer angry?", .predicate(yes: "The writer complains.")),
        .init(
            "Which team should answer?", .choice(["billing", .init("support", "broken things"), "sales", "the parcel service"])),
        .init("How urgent is it?", .score(["can wait", "today", "now"])),
        .init("Who?", .choice([.init("A", "the first"), .init(String(repeating: "somebody else ", count: 5))])),
        .init("Is it sure?", .choice(["certainly"])),
    ]

    // MARK: - Questions

    @Test func decisionsChangeNoTranscript() async throws {
        let tiny = try Tiny()
        let session = tiny.session("Be strict.")
        let before = session.transcript
        let run = try await session.decisions(about: Self.mail, Self.questions)
        #expect(session.transcript == before && !session.isResponding)
        #expect(run.answers.map(\.question) == Self.questions)
        for answer in run.answers {
            #expect(answer.distribution.count == answer.question.options.count)
            #expect(abs(answer.distribution.probabilities.reduce(0, +) - 1) < 1e-9)
            #expect(answer.mass > 0 && answer.mass <= 1 && (0...1).contains(answer.confidence))
        }
        #expect(run.answers[4].probability == 1, "the only option")
        #expect(run.promptTokens > 0 && run.cachedTokens > 0 && run.cachedTokens < run.promptTokens)
    }

    /// What is asked together, and in which order, changes nothing.
    @Test(arguments: [false, true]) func questionsAreIndependent(averages: Bool) async throws {
        let tiny = try Tiny()
        let options = DecisionOptions(averagesOrders: averages, calibration: Calibration.none)
        let together = try await tiny.session().decisions(about: Self.mail, Self.questions, options: options)
        let reversed = try await tiny.session().decisions(about: Self.mail, Self.questions.reversed(), options: options)
        #expect(reversed.logProbabilities == together.logProbabilities.reversed())
        var tokens = 0
        for (index, question) in Self.questions.enumerated() {
            // Nothing of the other questions is in this model's memory.
            let fresh = try Tiny()
            let alone = try await fresh.session().decisions(about: Self.mail, [question], options: options)
            #expect(alone.logProbabilities == [together.logProbabilities[index]], "\(question.text)")
            #expect(alone.answers[0].distribution.probabilities == together.answers[index].distribution.probabilities)
            #expect(alone.model == together.model, "the file has the same contents")
            tokens += alone.promptTokens
        }
        #expect(together.promptTokens == tokens)
        let another = try Tiny(seed: 2)
        let other = try await another.session().decisions(about: Self.mail, Self.questions, options: options)
        #expect(other.logProbabilities != together.logProbabilities && other.model != together.model && other.model != nil)
    }

    /// Instructions, what was said before, and the text that is asked about are all read.
    @Test func everythingIsRead() async throws {
        let tiny = try Tiny()
        func values(_ session: LanguageModelSession, about state: String? = Self.mail) async throws -> [[Double]] {
            try await session.decisions(about: state, Self.questions).logProbabilities
        }
        let talk = Transcript(entries: [
            .prompt(.init(segments: [.text(.init(content: "Hello."))])),
            .response(.init(assetIDs: [], segments: [.text(.init(content: "Good morning."))])),
        ])
        let all = [
            try await values(tiny.session()), try await values(tiny.session("Be strict.")),
            try await values(LanguageModelSession(model: tiny.model, transcript: talk)),
            try await values(tiny.session(), about: nil), try await values(tiny.session(), about: "Thank you!"),
        ]
        #expect(Set(all).count == all.count)
    }

    private enum Team: String, Choosable {
        case billing, support, others = "somebody else"

        var optionDescription: String? { self == .support ? "broken things" : nil }
    }

    private enum Colour: Choosable { case red, green }

    @Test func answersOfOneQuestion() async throws {
        let tiny = try Tiny()
        let session = tiny.session()
        let options = DecisionOptions(calibration: Calibration.none)
        let run = try await session.decisions(
            about: Self.mail,
            [
                .init("Is it late?", .predicate(no: "In time.")),
                .init("Which team?", .choice(["billing", .init("support", "broken things"), "somebody else"])),
                .init("How urgent?", .score(["low", "middle", "high"])), .init("Which?", .choice(["red", "green"])),
            ], options: options)
        let probability = try await session.probability(of: "Is it late?", about: Self.mail, no: "In time.", options: options)
        #expect(probability == run.answers[0].probability)
        let team = try await session.choice("Which team?", about: Self.mail, from: Team.self, options: options)
        #expect(team.distribution.map { $0.value } == Team.allCases)
        #expect(team.distribution.probabilities == run.answers[1].distribution.probabilities)
        #expect(team.value.rawValue == run.answers[1].option.name && team.confidence == run.answers[1].confidence)
        #expect(team.probability(of: .others) == run.answers[1].distribution.probability(of: 2))
        let score = try await session.score("How urgent?", about: Self.mail, levels: ["low", "middle", "high"], options: options)
        #expect(score.distribution.expectedValue == run.answers[2].score && score.confidence == run.answers[2].confidence)
        #expect(score.distribution.map { $0.value } == [0, 1, 2])
        let named = try await session.choice("Which?", about: Self.mail, from: ["red", "green"], options: options)
        // A case without a raw value has its own name.
        let colour = try await session.choice("Which?", about: Self.mail, from: Colour.self, options: options)
        #expect(named.distribution.map { $0.value } == ["red", "green"] && named.value == "\(colour.value)")
        #expect(named.distribution.probabilities == colour.distribution.probabilities)
        #expect(named.distribution.probabilities == run.answers[3].distribution.probabilities)
    }

    /// A temperature changes how sure the model is, and not which option it prefers.
    @Test func calibrations() async throws {
        let tiny = try Tiny()
        func run(_ temperature: Double) async throws -> DecisionRun {
            let calibration = Calibration(
                entries: ["predicate", "choice", "score"].map { .init(kind: $0, temperature: temperature) })
            return try await tiny.session().decisions(about: Self.mail, Self.questions, options: .init(calibration: calibration))
        }
        let (cold, plain, warm) = (try await run(0.5), try await run(1), try await run(4))
        #expect(cold.logProbabilities == warm.logProbabilities && plain.logProbabilities == warm.logProbabilities)
        for index in Self.questions.indices.dropLast() {
            let all = [warm, plain, cold].map { $0.answers[index].distribution }
            #expect(Set(all.map(\.mostLikely)).count == 1)
            let largest = all.map(\.probabilityOfMostLikely)
            #expect(largest[0] < largest[2] && largest == largest.sorted())
        }
        // Nothing is known of this model.
        let usual = try await tiny.session().decisions(about: Self.mail, Self.questions)
        #expect(usual.answers.map(\.distribution.probabilities) == plain.answers.map(\.distribution.probabilities))
    }

    // MARK: - Values

    @Generable enum Mood: Equatable { case calm, angry, unknown }

    @Generable struct Sender {
        var isKnown: Bool
        var mood: Mood
    }

    @Generable struct Ticket {
        @Guide(.constant("v1")) var version: String
        @Guide(.anyOf(["billing", "support"])) var team: String
        var sender: Sender
        @Guide(.range(1...5)) var stars: Int
    }

    @Test func valuesOfTypes() async throws {
        let tiny = try Tiny()
        let session = tiny.session()
        let decided = try await session.decide("Fill in the ticket.", about: Self.mail, as: Ticket.self)
        #expect(session.transcript.isEmpty)
        #expect(decided.fields.map(\.path) == [["team"], ["sender", "isKnown"], ["sender", "mood"], ["stars"]])
        #expect(decided.fields.map(\.pointer) == ["/team", "/sender/isKnown", "/sender/mood", "/stars"])
        for field in decided.fields {
            #expect(abs(field.distribution.probabilities.reduce(0, +) - 1) < 1e-9)
            #expect(field.chosen == field.distribution.indexOfMostLikely)
            #expect(field.probability == field.distribution.probabilityOfMostLikely)
        }
        #expect(decided.leastProbability == decided.fields.map(\.probability).min())
        // The content is what was chosen.
        let content = decided.content
        #expect(content.version == "v1" && ["billing", "support"].contains(content.team) && (1...5).contains(content.stars))
        #expect(try decided.fields[0].distribution.mostLikely.value(String.self) == content.team)
        // Properties are found by their key paths.
        let team = try #require(decided[\.team])
        #expect(team.mostLikely == content.team && team.map { $0.value } == ["billing", "support"])
        let mood = try #require(decided[\.sender.mood])
        #expect(mood.mostLikely == content.sender.mood && mood.map { $0.value } == [.calm, .angry, .unknown])
        #expect(mood.probability(of: content.sender.mood) == decided.fields[2].probability)
        let stars = try #require(decided[\.stars])
        #expect(stars.map { $0.value } == [1, 2, 3, 4, 5] && (1...5).contains(stars.expectedValue))
        #expect(decided[\.sender.isKnown]?.mostLikely == content.sender.isKnown)
        #expect(decided[\.version] == nil, "there was nothing to decide")
        // The schema alone leads to the same.
        let plain = try await session.decide("Fill in the ticket.", about: Self.mail, schema: Ticket.generationSchema)
        #expect(plain.fields.map(\.distribution.probabilities) == decided.fields.map(\.distribution.probabilities))
        #expect(plain.content.jsonString == content.generatedContent.jsonString)
    }

    @Test func valuesWithoutProperties() async throws {
        let tiny = try Tiny()
        let session = tiny.session()
        let mood = try await session.decide("How is the writer?", about: Self.mail, as: Mood.self)
        #expect(mood.fields.map(\.path) == [[]] && mood.fields[0].pointer.isEmpty && mood.fields[0].distribution.count == 3)
        let isLate = try await session.decide("Is it late?", about: Self.mail, as: Bool.self)
        #expect(isLate.fields.count == 1 && isLate.content == (isLate.fields[0].chosen == 0))
        #expect(mood[\.self]?.mostLikely == mood.content, "the key path of the value itself")
    }

    @Generable struct Note {
        var isUrgent: Bool
        var text: String
    }

    @Test func openTypes() async throws {
        let tiny = try Tiny()
        await #expect(throws: DecisionError.openValue(pointer: "/text")) {
            try await tiny.session().decide(about: Self.mail, as: Note.self)
        }
        await #expect(throws: DecisionError.openValue(pointer: "")) {
            try await tiny.session().decide(about: Self.mail, as: String.self)
        }
        await #expect(throws: DecisionError.noOptions(question: "Q")) {
            try await tiny.session().decisions(about: Self.mail, [.init("Q", .choice([]))])
        }
    }

    // MARK: - Responses

    private static let greedy = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 200)

    @Test func partsOfAResponse() async throws {
        let tiny = try Tiny()
        let session = tiny.session()
        let first = try await session.respond(to: "Fill in a ticket: \(Self.mail)", generating: Ticket.self, options: Self.greedy)
        let alone = try await session.decision(in: first)
        // What comes later in the conversation changes nothing.
        _ = try await session.respond(to: "Another one.", generating: Ticket.self, options: Self.greedy)
        let before = session.transcript
        let decision = try await session.decision(in: first)
        #expect(session.transcript == before)
        #expect(decision.fields.map(\.distribution.probabilities) == alone.fields.map(\.distribution.probabilities))
        #expect(decision.content.generatedContent.jsonString == first.content.generatedContent.jsonString)
        #expect(decision.fields.map(\.path) == [["team"], ["sender", "isKnown"], ["sender", "mood"], ["stars"]])
        // The value is what was generated, which need not be the most probable one as a whole.
        #expect(try decision.fields[0].distribution[decision.fields[0].chosen].value.value(String.self) == first.content.team)
        #expect(try decision.fields[3].distribution[decision.fields[3].chosen].value.value(Int.self) == first.content.stars)
        #expect(decision[\.sender.mood]?.probability(of: first.content.sender.mood) == decision.fields[2].probability)
    }

    @Generable struct Report {
        @Guide(.count(2)) var moods: [Mood]
        var note: Mood?
    }

    /// The model could have written null instead of an optional property.
    @Test func optionalPartsOfAResponse() async throws {
        var isMissing: Set<Bool> = []
        for seed in 1...12 as ClosedRange<UInt64> {
            let tiny = try Tiny(seed: seed)
            let session = tiny.session()
            let response = try await session.respond(to: "Report.", generating: Report.self, options: Self.greedy)
            let decision = try await session.decision(in: response)
            #expect(decision.fields.map(\.path) == [["moods", "0"], ["moods", "1"], ["note"]])
            let note = try #require(decision.fields.last)
            #expect(note.distribution.count == 4 && note.distribution.contains { $0.value.kind == .null })
            isMissing.insert(response.content.note == nil)
        }
        #expect(isMissing.count == 2, "some models write null, and some do not")
    }

    @Test func textsInPlaceOfAResponse() async throws {
        let tiny = try Tiny()
        let session = tiny.session()
        let response = try await session.respond(
            to: "Yes or no?", options: GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 3))
        let texts = ["yes", "yes, please", "no"]
        let distribution = try await session.probabilities(of: texts, inPlaceOf: response)
        #expect(distribution.map { $0.value } == texts && abs(distribution.probabilities.reduce(0, +) - 1) < 1e-9)
        let other = try await session.probabilities(of: texts.reversed(), inPlaceOf: response)
        for text in texts { #expect(abs(other.probability(of: text) - distribution.probability(of: text)) < 1e-12) }
        #expect(try await session.probabilities(of: ["yes"], inPlaceOf: response).probabilities == [1])
        await #expect(throws: DecisionError.self) { try await session.probabilities(of: [], inPlaceOf: response) }
    }

    // MARK: - What cannot be decided

    @Test func responsesOfOtherSessions() async throws {
        let tiny = try Tiny()
        let session = tiny.session()
        let value = try await session.respond(to: "Fill in a ticket.", generating: Ticket.self, options: Self.greedy)
        let text = try await session.respond(
            to: "Yes or no?", options: GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 3))
        let other = tiny.session()
        await #expect(throws: DecisionError.unknownResponse) { try await other.decision(in: value) }
        session.transcript = Transcript()
        await #expect(throws: DecisionError.unknownResponse) { try await session.decision(in: value) }
        await #expect(throws: DecisionError.unknownResponse) { try await session.probabilities(of: ["a", "b"], inPlaceOf: text) }
    }

    /// A model behind a network says nothing of what it could have written.
    @Test func modelsOfOtherMachines() async throws {
        let session = LanguageModelSession(model: ScriptedLanguageModel([.text("Fine.")]))
        let response = try await session.respond(to: "Hello")
        await #expect(throws: DecisionError.unsupportedModel) { try await session.decisions(about: Self.mail, Self.questions) }
        await #expect(throws: DecisionError.unsupportedModel) { try await session.decide(as: Ticket.self) }
        await #expect(throws: DecisionError.unsupportedModel) { try await session.probability(of: "Is it?") }
        await #expect(throws: DecisionError.unsupportedModel) { try await session.decision(in: response) }
        await #expect(throws: DecisionError.unsupportedModel) {
            try await session.probabilities(of: ["a", "b"], inPlaceOf: response)
        }
    }

    @Test func questionsThatDoNotFit() async throws {
        let tiny = try Tiny()
        let long = String(repeating: "one two three ", count: 1_000)
        await #expect {
            try await tiny.session().decisions(about: long, Self.questions)
        } throws: { error in
            guard case LanguageModelError.contextSizeExceeded(let context) = error else { return false }
            return context.contextSize == 4_096 && context.tokenCount > 4_096
        }
        await #expect(throws: LanguageModelError.self) { try await tiny.session().decide(about: long, as: Ticket.self) }
    }

    @Test func cancelledDecisions() async throws {
        let tiny = try Tiny()
        let session = tiny.session()
        for isValue in [false, true] {
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                if isValue {
                    _ = try await session.decide(about: Self.mail, as: Ticket.self)
                } else {
                    _ = try await session.decisions(about: Self.mail, Self.questions)
                }
            }
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        #expect(try await session.decisions(about: Self.mail, Self.questions).answers.count == Self.questions.count)
    }
}
