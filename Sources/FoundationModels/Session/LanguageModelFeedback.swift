public import Foundation
internal import Synchronization

/// What someone thinks of a response.
public struct LanguageModelFeedback {
    /// Whether it was good.
    public enum Sentiment: Sendable, CaseIterable {
        /// The response was good.
        case positive
        /// The response was bad.
        case negative
        /// The response was neither good nor bad.
        case neutral
    }

    /// Something that was wrong with it.
    public struct Issue: Sendable {
        /// What was wrong.
        public enum Category: Sendable, CaseIterable {
            /// It is of no use for what was asked.
            case unhelpful
            /// It is longer than it has to be.
            case tooVerbose
            /// It does not do what instructions or prompt say.
            case didNotFollowInstructions
            /// What it says is not true.
            case incorrect
            /// It is unfair to a group of people.
            case stereotypeOrBias
            /// It speaks of sex, or hints at it.
            case suggestiveOrSexual
            /// Its words are rude or hurtful.
            case vulgarOrOffensive
            /// A harmless prompt or response was stopped as unsafe.
            case triggeredGuardrailUnexpectedly
        }

        fileprivate let category: LanguageModelFeedback.Issue.Category
        fileprivate let explanation: String?

        /// An issue, with the words of whoever found it, if there are any.
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
            transcript: state.withLock { Transcript(entries: $0.transcript + $0.discarded) },
            sentiment: sentiment.map { "\($0)" },
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
