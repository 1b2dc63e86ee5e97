import Foundation
import FoundationModels

/// Changes of a transcript between two requests.
struct ConversationEditor {
    let session: LanguageModelSession

    /// Keeps the instructions and the last entries.
    func keepLast(_ count: Int) {
        session.transcript.history = session.transcript.history.suffix(count)
    }

    func forgetEverythingSaid() {
        session.transcript.history = []
    }

    /// Removes the last question and its response.
    func undo() {
        var transcript = session.transcript
        guard let index = transcript.lastIndex(where: { if case .prompt = $0 { true } else { false } }) else { return }
        transcript.removeSubrange(index...)
        session.transcript = transcript
    }

    /// Inserts a fact into the conversation as a prompt and a response.
    func insert(question: String, answer: String) {
        session.transcript.append(contentsOf: [
            .prompt(.init(segments: [.text(.init(content: question))])),
            .response(.init(assetIDs: [], segments: [.text(.init(content: answer))])),
        ])
    }

    /// Removes tool calls and outputs, because the responses contain the information.
    func dropToolEntries() {
        session.transcript.history.removeAll { entry in
            switch entry {
            case .toolCalls, .toolOutput: true
            default: false
            }
        }
    }

    /// Corrects the last response in place.
    func correct(_ text: String) {
        guard let index = session.transcript.history.lastIndex(where: { $0.isAnswer }) else { return }
        let entry = Transcript.Response(assetIDs: [], segments: [.text(.init(content: text))])
        session.transcript.history[index] = .response(entry)
    }

    /// Redacts a word in all entries.
    func redact(_ word: String) {
        for index in session.transcript.indices {
            guard case .prompt(var prompt) = session.transcript[index] else { continue }
            prompt.segments = prompt.segments.map { segment in
                guard case .text(var text) = segment else { return segment }
                text.content = text.content.replacingOccurrences(of: word, with: "•••")
                return .text(text)
            }
            session.transcript[index] = .prompt(prompt)
        }
    }

    /// A second session with a copy of the transcript.
    func fork(on model: some LanguageModel) -> LanguageModelSession {
        LanguageModelSession(model: model, transcript: session.transcript)
    }

    /// Whether entries of a failed request remain in the transcript.
    func keepTracesOfFailures(_ keeps: Bool) {
        session.transcriptErrorHandlingPolicy = keeps ? .preserveTranscript : .revertTranscript
    }
}

extension Transcript.Entry {
    var isAnswer: Bool {
        if case .response = self { true } else { false }
    }
}

extension Transcript.HistoryView {
    /// The last turns: each question with the entries after it.
    func lastTurns(_ count: Int) -> Transcript.HistoryView {
        let starts = indices.filter { index in
            if case .prompt = self[index] { true } else { false }
        }
        guard starts.count > count, count > 0 else { return count > 0 ? self : [] }
        return self[starts[starts.count - count]..<endIndex]
    }
}

enum TranscriptBuilding {
    /// A transcript is a collection that can be filled incrementally.
    static func conversation(instructions: String, turns: [(String, String)]) -> Transcript {
        var transcript = Transcript()
        transcript.append(.instructions(.init(segments: [.text(.init(content: instructions))], toolDefinitions: [])))
        for (question, answer) in turns {
            transcript.append(.prompt(.init(segments: [.text(.init(content: question))])))
            transcript += [.response(.init(assetIDs: [], segments: [.text(.init(content: answer))]))]
        }
        return transcript
    }

    static func merged(_ first: Transcript, _ second: Transcript) -> Transcript {
        Transcript(entries: Array(first) + second.history)
    }
}
