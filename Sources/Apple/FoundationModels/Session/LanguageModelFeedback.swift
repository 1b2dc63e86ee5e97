public import Foundation
internal import Synchronization

/// Feedback on a response.
public struct LanguageModelFeedback {
    /// A rating of the response.
    public enum Sentiment: Sendable, CaseIterable {
        /// The response was good.
        case positive
        /// The response was bad.
        case negative
        /// The response was neither good nor bad.
        case neutral
    }

    /// A problem with a response.
    public struct Issue: Sendable {
        /// The kind of problem.
        public enum Category: Sendable, CaseIterable {
            /// The response does not help with the request.
            case unhelpful
            /// The response is longer than necessary.
            case tooVerbose
            /// The response does not follow the instructions or the prompt.
            case didNotFollowInstructions
            /// The response contains false statements.
            case incorrect
            /// The response is unfair to a group of people.
            case stereotypeOrBias
            /// The response contains or suggests sexual content.
            case suggestiveOrSexual
            /// The response contains rude or hurtful language.
            case vulgarOrOffensive
            /// A harmless prompt or response was rejected as unsafe.
            case triggeredGuardrailUnexpectedly
        }

        fileprivate let category: LanguageModelFeedback.Issue.Category
        fileprivate let explanation: String?

        /// Creates an issue, optionally with an explanation by the person who reports it.
        public init(category: LanguageModelFeedback.Issue.Category, explanation: String? = nil) {
            self.category = category
            self.explanation = explanation
        }
    }
}

extension LanguageModelSession {
    /// Returns the transcript and feedback on its last response as JSON. Several reports can be written to one file.
    @discardableResult
    public func logFeedbackAttachment(
        sentiment: LanguageModelFeedback.Sentiment?, issues: [LanguageModelFeedback.Issue] = [],
        desiredOutput: Transcript.Entry? = nil
    ) -> Data {
        let report = FeedbackReport(
            // Entries that were removed after an error may be the subject of the feedback.
            transcript: state.withLock { Transcript(entries: ($0.transcript + $0.discarded).map(\.encodable)) },
            sentiment: sentiment.map { "\($0)" },
            issues: issues.map { .init(category: "\($0.category)", explanation: $0.explanation) },
            desiredOutput: desiredOutput.map { Transcript(entries: [$0.encodable]) })
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // All entries can be encoded, and so can the rest.
        return (try? encoder.encode(report)) ?? Data("{}".utf8)
    }

    /// Returns the transcript and feedback as JSON, with the text that the response should have been.
    @discardableResult
    public func logFeedbackAttachment(
        sentiment: LanguageModelFeedback.Sentiment?, issues: [LanguageModelFeedback.Issue] = [],
        desiredResponseText: String?
    ) -> Data {
        logFeedbackAttachment(
            sentiment: sentiment, issues: issues,
            desiredOutput: desiredResponseText.map { .response(.init(assetIDs: [], segments: [.text(.init(content: $0))])) })
    }

    /// Returns the transcript and feedback as JSON, with the value that the response should have been.
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

extension Transcript.Entry {
    /// The entry, with descriptions in place of attachments if one of them cannot be encoded because its file no longer
    /// exists.
    fileprivate var encodable: Transcript.Entry {
        if (try? JSONEncoder().encode(Transcript(entries: [self]))) != nil { return self }  // the reason is the file
        func described(_ segments: [Transcript.Segment]) -> [Transcript.Segment] {
            segments.map { segment in
                guard case .attachment(let attachment) = segment else { return segment }
                return .text(.init(id: attachment.id, content: attachment.description))
            }
        }
        switch self {
        case .prompt(var entry):
            entry.segments = described(entry.segments)
            return .prompt(entry)
        case .instructions(var entry):
            entry.segments = described(entry.segments)
            return .instructions(entry)
        case .toolOutput(var entry):
            entry.segments = described(entry.segments)
            return .toolOutput(entry)
        case .response(var entry):
            entry.segments = described(entry.segments)
            return .response(entry)
        default: return self
        }
    }
}

/// The JSON representation of feedback.
package struct FeedbackReport: Codable {
    package struct Issue: Codable {
        package var category: String
        package var explanation: String?
    }

    package var transcript: Transcript
    package var sentiment: String?
    package var issues: [Issue]
    package var desiredOutput: Transcript?
}
