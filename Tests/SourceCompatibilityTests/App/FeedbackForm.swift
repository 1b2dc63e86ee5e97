import Foundation
import FoundationModels

/// Feedback of users about a response, for the developers.
struct FeedbackForm {
    let session: LanguageModelSession

    func thumbsUp() -> Data {
        session.logFeedbackAttachment(sentiment: .positive)
    }

    func thumbsDown(because category: LanguageModelFeedback.Issue.Category, saying words: String?) -> Data {
        session.logFeedbackAttachment(
            sentiment: .negative,
            issues: [LanguageModelFeedback.Issue(category: category, explanation: words)])
    }

    func better(_ text: String) -> Data {
        session.logFeedbackAttachment(
            sentiment: .neutral,
            issues: [.init(category: .tooVerbose), .init(category: .didNotFollowInstructions, explanation: "Too long.")],
            desiredResponseText: text)
    }

    func better(_ content: some ConvertibleToGeneratedContent) -> Data {
        session.logFeedbackAttachment(sentiment: nil, desiredResponseContent: content)
    }

    func better(_ entry: Transcript.Entry) -> Data {
        session.logFeedbackAttachment(sentiment: .negative, desiredOutput: entry)
    }

    /// Logs the feedback without using the returned data.
    func note() {
        session.logFeedbackAttachment(sentiment: .neutral)
    }

    static var choices: [String] {
        LanguageModelFeedback.Issue.Category.allCases.map(label)
    }

    static func label(_ category: LanguageModelFeedback.Issue.Category) -> String {
        switch category {
        case .unhelpful: "Not helpful"
        case .tooVerbose: "Too long"
        case .didNotFollowInstructions: "Not what I asked for"
        case .incorrect: "Wrong"
        case .stereotypeOrBias: "Biased"
        case .suggestiveOrSexual: "Suggestive"
        case .vulgarOrOffensive: "Offensive"
        case .triggeredGuardrailUnexpectedly: "Blocked for no reason"
        @unknown default: "Other"
        }
    }

    static func symbol(_ sentiment: LanguageModelFeedback.Sentiment) -> String {
        switch sentiment {
        case .positive: "+"
        case .negative: "-"
        case .neutral: "0"
        @unknown default: "?"
        }
    }

    /// All feedback of a day in one file.
    static func append(_ attachment: Data, to url: URL) throws {
        var data = (try? Data(contentsOf: url)) ?? Data()
        data.append(attachment)
        try data.write(to: url)
    }
}
