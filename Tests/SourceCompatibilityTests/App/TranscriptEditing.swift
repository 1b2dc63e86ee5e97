import Foundation
import FoundationModels

/// What an app may do to a conversation between two requests.
struct ConversationEditor {
    let session: LanguageModelSession

    /// Keeps the instructions and the last entries.
    func keepLast(_ count: Int) {
        session.transcript.history = session.transcript.history.suffix(count)
    }

    func forgetEverythingSaid() {
        session.transcript.history = []
    }

    /// Takes the last question and its answer back.
    func undo() {
        var transcript = session.transcript
        guard let index = transcript.lastIndex(where: { if case .prompt = $0 { true } else { false } }) else { return }
        transcript.removeSubrange(index...)
        session.transcript = transcript
    }

    /// Puts a fact into the conversation as though it had been said.
    func insert(question: String, answer: String) {
        session.transcript.append(contentsOf: [
            .prompt(.init(segments: [.text(.init(content: question))])),
            .response(.init(assetIDs: [], segments: [.text(.init(content: answer))])),
        ])
    }

    /// Leaves out what tools have said: the answers carry it already.
    func dropToolEntries() {
        session.transcript.history.removeAll { entry in
            switch entry {
            case .toolCalls, .toolOutput: true
            default: false
            }
        }
    }

    /// Corrects the last answer in place.
    func correct(_ text: String) {
        guard let index = session.transcript.history.lastIndex(where: { $0.isAnswer }) else { return }
        let entry = Transcript.Response(assetIDs: [], segments: [.text(.init(content: text))])
        session.transcript.history[index] = .response(entry)
    }

    /// Hides a word in everything said so far.
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

    /// A second conversation with the same past.
    func fork(on model: some LanguageModel) -> LanguageModelSession {
        LanguageModelSession(model: model, transcript: session.transcript)
    }

    /// Whether a failed request leaves its traces.
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
    /// The last questions with what followed each of them.
    func lastTurns(_ count: Int) -> Transcript.HistoryView {
        let starts = indices.filter { index in
            if case .prompt = self[index] { true } else { false }
        }
        guard starts.count > count, count > 0 else { return count > 0 ? self : [] }
        return self[starts[starts.count - count]..<endIndex]
    }
}

enum TranscriptBuilding {
    /// A transcript is a collection that may be filled bit by bit.
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
