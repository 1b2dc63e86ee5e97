import Foundation
import FoundationModels
import Testing

@Suite("Feedback, tags and other features of an app")
struct AppFeedbackTests {
    @Test("[E6] feedback is JSON with the transcript")
    func feedback() async throws {
        let session = LanguageModelSession(model: EchoModel())
        try await session.respond(to: "a rare question")
        let form = FeedbackForm(session: session)
        let wish = Transcript.Entry.response(.init(assetIDs: [], segments: [.text(.init(content: "a rarer answer"))]))
        let attachments = [
            form.thumbsUp(),
            form.thumbsDown(because: .incorrect, saying: "far from it"),
            form.better("a rarer answer"),
            form.better(NoteSummary(title: "a rarer answer", tasks: [])),
            form.better(wish),
        ]
        for data in attachments {
            let json = try JSON(data: data)
            #expect(json.keys?.isEmpty == false)
            #expect(String(decoding: data, as: UTF8.self).contains("a rare question"))
        }
        #expect(String(decoding: attachments[1], as: UTF8.self).contains("far from it"))
        for data in attachments[2...] {
            #expect(String(decoding: data, as: UTF8.self).contains("a rarer answer"))
        }
        #expect(Set(attachments).count >= 3)
    }

    @Test("[E6] feedback about a failed request contains the request")
    func feedbackOnFailure() async throws {
        let timeout = LanguageModelError.timeout(.init(debugDescription: "too slow"))
        let session = LanguageModelSession(model: ScriptedModel([.failure(timeout)]))
        _ = await failure { try await session.respond(to: "a rare question") }
        #expect(session.transcript.isEmpty)
        let data = FeedbackForm(session: session).thumbsDown(because: .unhelpful, saying: nil)
        #expect(String(decoding: data, as: UTF8.self).contains("a rare question"))
    }

    @Test("[E6] the form contains every sentiment and category")
    func choices() {
        #expect(LanguageModelFeedback.Sentiment.allCases.map(FeedbackForm.symbol) == ["+", "-", "0"])
        #expect(FeedbackForm.choices.count == 8)
        #expect(Set(FeedbackForm.choices).count == 8 && !FeedbackForm.choices.contains("Other"))
    }

    @Test("[A9] tags are a structured response")
    func tags() async throws {
        let tags = ContentTags(topics: ["rain"], emotions: ["calm"], actions: [], objects: ["umbrella"])
        let model = FormEchoModel(json: tags.generatedContent.jsonString)
        let tagger = Tagger(session: LanguageModelSession(model: model))
        #expect(try await tagger.tags(of: "It rains.") == tags)
        let schema = try JSON(encoding: ContentTags.generationSchema)
        #expect(schema["x-order"] == ["topics", "emotions", "actions", "objects"])
    }

    @Test("[A1] reasons why no model is available")
    func reasons() {
        #expect(ModelStatus(.available).isReady)
        let reasons: [SystemLanguageModel.Availability.UnavailableReason] = [
            .deviceNotEligible, .appleIntelligenceNotEnabled, .modelNotReady,
        ]
        #expect(Set(reasons.map { ModelStatus(.unavailable($0)).message }).count == 3)
        #expect(Set(reasons.map { ModelStatus(reason: $0).message }).count == 3)
        #expect(reasons.allSatisfy { !ModelStatus(.unavailable($0)).isReady })
    }

    @Test("[G] older errors have localized descriptions for an alert")
    func alerts() {
        for error in AdviceDesk.samples {
            #expect(AdviceDesk.name(of: error) != "unknown")
            #expect(AdviceDesk.debugDescription(of: error) == "A sample.")
            #expect(error.errorDescription?.isEmpty == false)
            #expect(AdviceDesk.alert(for: error).title == error.errorDescription)
        }
        #expect(Set(AdviceDesk.samples.map(AdviceDesk.name)).count == 9)
    }

    @Test("[G] newer errors have descriptions")
    func descriptions() {
        for error in ConciergeDesk.samples {
            #expect(error.errorDescription?.isEmpty == false)
            #expect(!error.debugDescription.isEmpty)
            #expect(!ConciergeDesk.advice(for: error).isEmpty)
        }
        #expect(LanguageModelSession.Error.concurrentRequests.errorDescription?.isEmpty == false)
        #expect(ConciergeDesk.advice(for: ConciergeDesk.samples[4]) == "This model cannot see pictures.")
        #expect(ConciergeDesk.advice(for: ConciergeDesk.samples[7]) == "The model does not speak tlh.")
    }

    @Test("capabilities behave like a set")
    func capabilities() {
        let some = LanguageModelCapabilities([.vision, .toolCalling])
        #expect(some.contains(.vision) && some.contains(.toolCalling))
        #expect(!some.contains(.reasoning) && !some.contains(.guidedGeneration))
        #expect(Set([LanguageModelCapabilities.Capability.vision, .reasoning, .vision]).count == 2)
    }
}
