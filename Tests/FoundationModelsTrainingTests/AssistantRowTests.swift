import Foundation
import JSON
import ModelPrompts
import Testing

@testable import FoundationModelsTraining
@testable import Inference

/// Rows that teach a model to be an assistant, and the data of the default model.
struct AssistantRowTests {
    private func messages(_ line: String) throws -> [[ChatMessage]] {
        try TrainingData(Data(line.utf8)).rows.map { row in
            guard case .chat(let messages, _, let isLearned) = row.content else { return [] }
            #expect(isLearned == messages.map { $0.role == .assistant })
            return messages
        }
    }

    @Test("[A10] a conversation has its instructions and turns") func conversations() throws {
        let found = try messages(
            #"{"class": "dialog", "language": "en", "instructions": "Be brief.", "turns": [["A", "B"], ["C", "D"]]}"#)
        #expect(found.count == 1 && found[0].map(\.content) == ["Be brief.", "A", "B", "C", "D"])
        #expect(found[0].map(\.role) == [.system, .user, .assistant, .user, .assistant])
    }

    @Test("[A10] of a conversation that names turns, only the answers of these are learned") func learnedTurns() throws {
        func learned(_ turns: String) throws -> [Bool] {
            let line = #"{"class": "dialog", "instructions": "Be brief.", "turns": [["A", "B"], ["C", "D"]], "learn": \#(turns)}"#
            guard case .chat(_, _, let isLearned) = try TrainingData(Data(line.utf8)).rows[0].content else { return [] }
            return isLearned
        }
        #expect(try learned("[1]") == [false, false, false, false, true])
        #expect(try learned("[0, 1]") == [false, false, true, false, true])
        for wrong in ["[]", "[2]", "[-1]", "1", "[0, \"1\"]"] { #expect(throws: TrainingError.self) { try learned(wrong) } }
    }

    @Test("[A10] a value stands after the schema of its request") func values() throws {
        let found = try messages(
            #"{"class": "value", "language": "en", "prompt": "Ann, 31.", "schema": {"type": "object", "properties": {"name": {"type": "string"}, "town": {"type": ["string", "null"]}}, "required": ["name", "town"]}, "value": {"name": "Ann", "town": null}}"#
        )[0]
        #expect(found[1].content == #"{"name": "Ann", "town": null}"#)
        #expect(found[0].content.hasPrefix("Ann, 31.\n\nAnswer with JSON like this:"))
        #expect(found[0].content.hasSuffix("Write null for what is not said."))
    }

    @Test("[A10] questions to passages are what answers from documents ask, with the passage or none") func documents() throws {
        let found = try messages(
            #"{"class": "documents", "language": "en", "passages": [{"document": "a.md", "headings": ["Hours"], "text": "Open at 7."}, {"document": "b.md", "text": "No dogs."}], "questions": [{"question": "When?", "statements": [{"passage": 1, "statement": "It opens at 7."}]}, {"question": "Price?", "statements": []}]}"#
        )
        #expect(found.count == 2)
        #expect(found[0].last?.content == #"{"statements": [{"passage": "1", "statement": "It opens at 7."}]}"#)
        #expect(found[1].last?.content == #"{"statements": [{"passage": "none"}]}"#)
        #expect(found[0][0].content == ModelPrompts.documentsInstructions)
        let prompt = found[0][1].content
        #expect(prompt.contains("(Hours)\nOpen at 7.") && prompt.contains("[2] b.md:") && prompt.contains("Question: When?"))
        #expect(prompt.contains(#""passage": "1" or "2""#))
    }

    @Test("[A10] what was said earlier stands before a prompt as conversations quote it") func recall() throws {
        let found = try messages(
            #"{"class": "recall", "language": "en", "earlier": [{"who": "user", "text": "I am Ines."}, {"who": "assistant", "text": "Hello\nInes."}], "prompt": "Who am I?", "answer": "You are Ines."}"#
        )[0]
        let prompt = found[0].content
        #expect(
            prompt.hasPrefix("\(ModelPrompts.recallHeading)\n[")
                && prompt.hasSuffix("\n\n\(ModelPrompts.recallFooting)\nWho am I?"))
        #expect(prompt.contains("User: I am Ines.\n") && prompt.contains("Assistant: Hello\n  Ines."))
        #expect(found[1].content == "You are Ines.")
    }

    @Test("[A10] notes and sentences have the prompts of conversations") func notes() throws {
        let notes = try messages(
            #"{"class": "notes", "language": "en", "turns": [["I am Ines.", "Hi."]], "notes": ["The user is Ines."]}"#)[0]
        #expect(notes[0].content == ModelPrompts.notesInstructions && notes[2].content == "- The user is Ines.")
        #expect(notes[1].content.contains("User: I am Ines.\nAssistant: Hi."))
        let sentences = try messages(
            #"{"class": "matters", "language": "en", "sentences": [["I am Ines.", true], ["Thanks.", false]]}"#)
        #expect(sentences.map { $0[2].content } == [#""yes""#, #""no""#])
        #expect(sentences[0][1].content == ModelPrompts.willMatter("I am Ines."))
    }

    @Test("[A10] each dialog with tools is a conversation with calls and results") func tools() throws {
        let found = try messages(
            #"{"class": "tools", "language": "en", "tools": [{"name": "hours", "description": "Opening hours", "parameters": {"type": "object"}}], "dialogs": [[{"user": "Open?"}, {"calls": [{"name": "hours", "arguments": {"day": "Monday"}}]}, {"results": ["closed"]}, {"assistant": "No."}], [{"user": "Thanks"}, {"assistant": "You are welcome."}]]}"#
        )
        #expect(found.count == 2 && found[0].map(\.role) == [.user, .assistant, .tool, .assistant])
        #expect(found[0][1].toolCalls.map(\.name) == ["hours"] && found[0][2].toolCallID == found[0][1].toolCalls[0].id)
        #expect(found[1].map(\.content) == ["Thanks", "You are welcome."])
    }

    @Test(
        "[A10] a row without its members is refused with its line",
        arguments: ["value", "documents", "recall", "notes", "tools", "fact"])
    func incomplete(kind: String) {
        #expect { try TrainingData(Data("\n{\"class\": \"\(kind)\"}".utf8)) } throws: {
            "\($0)".contains("line: 2")
        }
    }

    @Test(
        "[A10] all rows of the default model's data are read",
        arguments: [("first", 3_000), ("second", 1_400), ("third", 500), ("fourth", 500)])
    func data(part: String, conversations: Int) throws {
        let folder = URL(filePath: #filePath).appendingPathComponent("../../../Training/Assistant/\(part)").standardizedFileURL
        let data = try TrainingData(contentsOf: folder)
        #expect(data.count > conversations)
        for row in data.rows {
            guard case .chat(let messages, _, _) = row.content else {
                Issue.record("line \(row.line) is no conversation")
                continue
            }
            #expect(messages.last?.role == .assistant && messages.allSatisfy { !$0.content.isEmpty || !$0.toolCalls.isEmpty })
        }
    }
}
