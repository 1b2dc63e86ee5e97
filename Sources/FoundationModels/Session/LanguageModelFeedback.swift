public import Foundation
internal import Synchronization

/// What someone thinks of a response.
public struct LanguageModelFeedback {
    /// Whether it was good.
    public enum Sentiment: Sendable, CaseIterable {
        case positive
        case negative
        case neutral
    }

    /// Something that was wrong with it.
    public struct Issue: Sendable {
        /// What was wrong.
        public enum Category: Sendable, CaseIterable {
            case unhelpful
            case tooVerbose
            case didNotFollowInstructions
            case incorrect
            case stereotypeOrBias
            case suggestiveOrSexual
            case vulgarOrOffensive
            case triggeredGuardrailUnexpectedly
        }

        fileprivate let category: LanguageModelFeedback.Issue.Category
        fileprivate let explanation: String?

        public init(category: LanguageModelFeedback.Issue.Category, explanation: String? = nil) {
            self.category = category
            self.explanation = explanation
        }
    }
}

extension LanguageModelSession {
    /// The conversation and what someone thinks of its last response, as JSON. Several can be written to one file.
    @discardableResult
    public func logFeedbackAttachment(
        sentiment: LanguageModelFeedback.Sentiment?, issues: [LanguageModelFeedback.Issue] = [],
        desiredOutput: Transcript.Entry? = nil
    ) -> Data {
        let report = FeedbackReport(
            // What was taken back after an error is what the feedback may be about.
            transcript: state.withLock { Transcript(entries: $0.transcript + $0.discarded) }, sentiment: sentiment.map { "\($0)" },
            issues: issues.map { .init(category: "\($0.category)", explanation: $0.explanation) },
            desiredOutput: desiredOutput.map { Transcript(entries: [$0]) })
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Pictures whose file is gone are all that cannot be encoded; the rest is worth having.
        return (try? encoder.encode(report)) ?? Data("{}".utf8)
    }

    /// The same with the text that the response should have been.
    @discardableResult
    public func logFeedbackAttachment(
        sentiment: LanguageModelFeedback.Sentiment?, issues: [LanguageModelFeedback.Issue] = [],
        desiredResponseText: String?
    ) -> Data {
        logFeedbackAttachment(
            sentiment: sentiment, issues: issues,
            desiredOutput: desiredResponseText.map { .response(.init(assetIDs: [], segments: [.text(.init(content: $0))])) })
    }

    /// The same with the value that the response should have been.
    @discardableResult
    public func logFeedbackAttachment(
        sentiment: LanguageModelFeedback.Sentiment?, issues: [LanguageModelFeedback.Issue] = [],
        desiredResponseContent: (any ConvertibleToGeneratedContent)?
    ) -> Data {
        logFeedbackAttachment(
            sentiment: sentiment, issues: issues,
            desiredOutput: desiredResponseContent.map { content in
                .response(
                    .init(
                        assetIDs: [],
                        segments: [
                            .structure(.init(schemaName: "\(type(of: content))", content: content.generatedContent))
                        ]))
            })
    }
}

/// Feedback as it is written.
private struct FeedbackReport: Encodable {
    struct Issue: Encodable {
        var category: String
        var explanation: String?
    }

    var transcript: Transcript
    var sentiment: String?
    var issues: [Issue]
    var desiredOutput: Transcript?
}
