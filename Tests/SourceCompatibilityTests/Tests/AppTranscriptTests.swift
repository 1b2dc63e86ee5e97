import Foundation
import FoundationModels
import Testing

@Suite("Transcripts in an app")
struct AppTranscriptTests {
    // MARK: The file

    static let bookQuerySchema: JSON = [
        "title": "BookQuery", "type": "object",
        "properties": [
            "subject": ["type": "string", "description": "What the book is about"],
            "year": ["type": "integer", "minimum": 1900, "maximum": 2030],
        ],
        "required": ["subject"], "x-order": ["subject", "year"], "additionalProperties": false,
    ]

    /// The JSON of the sample transcript, entry by entry.
    static let entries: [JSON] = [
        [
            "role": "instructions", "id": "i-1",
            "contents": [["type": "text", "id": "s-1", "text": "You are a librarian."]],
            "tools": [
                [
                    "type": "function",
                    "function": ["name": "findBook", "description": "Finds a book.", "parameters": bookQuerySchema],
                ]
            ],
        ],
        [
            "role": "user", "id": "p-1",
            "contents": [["type": "text", "id": "s-2", "text": "A book about rain?"]],
            "options": [
                "temperature": 0.5, "maximumResponseTokens": 80, "topK": 5, "randomSeed": 9, "toolCallingMode": "required",
            ],
            "contextOptions": ["includeSchemaInPrompt": true, "reasoningLevel": "deep"],
            "metadata": ["requestID": "42"],
            "responseFormat": ["type": "jsonSchema", "jsonSchema": ["name": "BookQuery", "schema": bookQuerySchema]],
        ],
        [
            "role": "reasoning", "id": "t-1",
            "reasoning": [
                "contents": [["type": "text", "id": "s-3", "text": "Rain is weather."]], "signature": "AQID",
            ],
        ],
        [
            "role": "response", "id": "c-1",
            "toolCalls": [
                ["id": "call-1", "name": "findBook", "arguments": ["subject": "rain", "year": 1999], "metadata": ["index": 0]],
                ["id": "call-2", "name": "findBook", "arguments": ["subject": "snow"]],
            ],
        ],
        [
            "role": "tool", "id": "call-1", "toolCallID": "call-1", "toolName": "findBook",
            "contents": [["type": "text", "id": "s-4", "text": "Drops"]],
        ],
        [
            "role": "tool", "id": "call-2", "toolCallID": "call-2", "toolName": "findBook",
            "contents": [
                ["type": "structure", "id": "s-5", "structure": ["source": "BookQuery", "content": ["subject": "ice"]]]
            ],
        ],
        [
            "role": "response", "id": "r-1",
            "contents": [["type": "text", "id": "s-6", "text": "Try “Drops”."]], "metadata": ["modelID": "shelf"],
        ],
    ]

    static func entries(of transcript: Transcript) throws -> [JSON] {
        try #require(try JSON(encoding: transcript)["transcript"]?["entries"]?.elements)
    }

    @Test("the file contains its type and version")
    func envelope() throws {
        let json = try JSON(encoding: SampleTranscripts.everything())
        #expect(json.keys == ["transcript", "type", "version"])
        #expect(json["type"] == "FoundationModels.Transcript")
        #expect(json["version"] == "1.1")
        #expect(json["transcript"]?.keys == ["entries"])
    }

    @Test("every kind of entry has its keys in the file", arguments: entries.indices)
    func entryShapes(index: Int) throws {
        var entry = try Self.entries(of: SampleTranscripts.everything())[index]
        // The arguments of a call are JSON in a string.
        if let calls = entry["toolCalls"]?.elements {
            entry["toolCalls"] = .array(
                try calls.map { call in
                    var call = call
                    call["arguments"] = try JSON(text: try #require(call["arguments"]?.text))
                    return call
                })
        }
        #expect(entry == Self.entries[index])
    }

    @Test("a prompt without options has empty options, and absent values are omitted")
    func emptyOptions() throws {
        let prompt = try Self.entries(of: SampleTranscripts.text)[1]
        #expect(prompt.keys == ["contents", "contextOptions", "id", "options", "role"])
        #expect(prompt["options"] == [:] && prompt["contextOptions"] == [:])
        let instructions = try #require(try Self.entries(of: SampleTranscripts.text).first)
        #expect(instructions.keys == ["contents", "id", "role"])
    }

    @Test("asset identifiers are encoded and decoded")
    func assets() throws {
        let early = SampleTranscripts.early()
        let response = try #require(try Self.entries(of: early).last)
        #expect(response["assets"] == ["asset-1"])
        #expect(response["contents"]?[0]?["structure"]?["source"] == "BookQuery")
        #expect(early.responses.first?.assetIDs == ["asset-1"])
        let decoded = try JSONDecoder().decode(Transcript.self, from: JSONEncoder().encode(early))
        #expect(decoded.responses.first?.assetIDs == ["asset-1"])
        let fromMetadata = Transcript.Response(metadata: ["assetIDs": ["asset-2"]], segments: [])
        #expect(fromMetadata.assetIDs == ["asset-2"])
    }

    @Test("[A2] a decoded transcript equals the saved one, and a session continues from it")
    func archive() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let archive = TranscriptArchive(folder: folder)
        try archive.save(SampleTranscripts.text, as: "text")
        #expect(try archive.transcript(named: "text") == SampleTranscripts.text)

        let model = ScriptedModel([.text("Another.")])
        let session = try archive.session(named: "text", on: model, tools: [])
        try await session.respond(to: "And snow?")
        #expect(try #require(await model.script.requests.first).transcript.dropLast().elementsEqual(SampleTranscripts.text))
    }

    @Test("a file with all kinds of entries can be decoded and encoded")
    func roundTrip() throws {
        let original = SampleTranscripts.everything()
        let decoded = try JSONDecoder().decode(Transcript.self, from: JSONEncoder().encode(original))
        #expect(kinds(of: decoded) == kinds(of: original))
        #expect(decoded.map(\.id) == original.map(\.id))
        #expect(try Self.entries(of: decoded).count == Self.entries.count)
        for (index, entry) in decoded.enumerated() {
            switch entry {
            // Decoded content has a new identity, so calls and structures are not equal to the original ones.
            case .toolCalls, .toolOutput: continue
            default: #expect(entry == original[index])
            }
        }
        #expect(decoded.prompts.first?.options == original.prompts.first?.options)
        #expect(decoded.toolCalls.map(\.arguments.jsonString) == original.toolCalls.map(\.arguments.jsonString))
    }

    @Test("a file of the first release can be decoded")
    func firstRelease() throws {
        let json = """
            {"type": "FoundationModels.Transcript", "version": 1, "transcript": {"entries": [
              {"role": "user", "id": "p", "contents": [{"type": "text", "id": "s", "text": "Hello"}], "options": {}},
              {"role": "response", "id": "r", "contents": [{"type": "text", "id": "t", "text": "Hi"}], "assets": []}
            ]}}
            """
        let transcript = try JSONDecoder().decode(Transcript.self, from: Data(json.utf8))
        #expect(kinds(of: transcript) == ["prompt", "response"])
        #expect(transcript.prompts.first?.plainText == "Hello")
    }

    @Test(
        "decoding an invalid transcript throws an error",
        arguments: [
            #"{"role": "user", "contents": [], "options": {}, "contextOptions": {}}"#,
            #"{"role": "user", "id": "p", "contents": [{"type": "text", "text": "no id"}], "options": {}, "contextOptions": {}}"#,
            #"{"role": "poet", "id": "p", "contents": []}"#,
            #"{"role": "response", "id": "p", "contents": [{"type": "song", "id": "s", "song": "la"}]}"#,
            #"{"role": "response", "id": "p", "toolCalls": [{"id": "c", "name": "t", "arguments": "{not json"}]}"#,
            #"{"role": "instructions", "id": "p", "contents": [], "tools": [{"type": "spell", "function": {}}]}"#,
        ])
    func refused(entry: String) {
        let json = #"{"type": "FoundationModels.Transcript", "version": "1.1", "transcript": {"entries": [\#(entry)]}}"#
        #expect(throws: (any Error).self) { try JSONDecoder().decode(Transcript.self, from: Data(json.utf8)) }
    }

    // MARK: Reading

    @Test("each entry is one line on the screen")
    func viewer() {
        let lines = TranscriptViewer.lines(of: SampleTranscripts.everything())
        #expect(lines.map(\.speaker) == [.app, .person, .model, .model, .tool, .tool, .model])
        #expect(lines.map(\.id) == ["i-1", "p-1", "t-1", "c-1", "call-1", "call-2", "r-1"])
        #expect(lines[0].text == "You are a librarian. [findBook]")
        #expect(lines[1].text == "A book about rain? → BookQuery")
        #expect(lines[4].text == "findBook: Drops")
        #expect(lines[5].text == #"findBook: BookQuery {"subject": "ice"}"#)
        #expect(TranscriptViewer.lastAnswer(in: SampleTranscripts.everything()) == "Try “Drops”.")
        #expect(TranscriptViewer.toolsUsed(in: SampleTranscripts.everything()) == ["findBook", "findBook"])
        #expect(TranscriptViewer.counts(in: SampleTranscripts.everything())["toolOutput"] == 2)
        #expect(TranscriptViewer.ids(in: SampleTranscripts.text) == ["i-1", "p-1", "r-1"])
    }

    @Test("segments and entries without an identifier get a unique one")
    func identifiers() {
        let first = Transcript.TextSegment(content: "a"), second = Transcript.TextSegment(content: "a")
        #expect(first.id != second.id && !first.id.isEmpty)
        #expect(first != second)
        #expect(Transcript.Segment.text(first).id == first.id)
        let prompt = Transcript.Prompt(segments: [.text(first)])
        #expect(Transcript.Entry.prompt(prompt).id == prompt.id)
    }

    // MARK: Editing

    static func session(_ turns: Int, _ model: ScriptedModel) -> LanguageModelSession {
        let transcript = TranscriptBuilding.conversation(
            instructions: "Chat.", turns: (1...turns).map { ("question \($0)", "answer \($0)") })
        return LanguageModelSession(model: model, transcript: transcript)
    }

    @Test("the history contains all entries after the instructions")
    func history() async throws {
        let model = ScriptedModel([.text("answer")])
        let session = Self.session(3, model)
        let editor = ConversationEditor(session: session)
        #expect(session.transcript.count == 7)
        #expect(session.transcript.history.count == 6)
        editor.keepLast(2)
        #expect(kinds(of: session.transcript) == ["instructions", "prompt", "response"])
        #expect(session.transcript.prompts.map(\.plainText) == ["question 3"])
        try await session.respond(to: "next")
        let request = try #require(await model.script.requests.first)
        #expect(request.transcript.prompts.map(\.plainText) == ["question 3", "next"])
        editor.forgetEverythingSaid()
        #expect(kinds(of: session.transcript) == ["instructions"])
    }

    @Test("entries can be removed, inserted, replaced and redacted")
    func edits() {
        let session = Self.session(2, ScriptedModel())
        let editor = ConversationEditor(session: session)
        editor.insert(question: "secret plan?", answer: "yes")
        #expect(session.transcript.prompts.count == 3)
        editor.correct("no")
        #expect(session.transcript.responses.map(\.plainText) == ["answer 1", "answer 2", "no"])
        editor.redact("secret")
        #expect(session.transcript.prompts.last?.plainText == "••• plan?")
        editor.undo()
        #expect(session.transcript.prompts.map(\.plainText) == ["question 1", "question 2"])
        #expect(instructionLines(in: session.transcript) == ["Chat."])
    }

    @Test("tool entries can be removed; the instructions are unchanged")
    func droppedTools() {
        let session = LanguageModelSession(model: ScriptedModel(), transcript: SampleTranscripts.everything())
        ConversationEditor(session: session).dropToolEntries()
        #expect(kinds(of: session.transcript) == ["instructions", "prompt", "reasoning", "response"])
    }

    @Test("a fork of a session is independent")
    func fork() async throws {
        let session = Self.session(1, ScriptedModel())
        let fork = ConversationEditor(session: session).fork(on: ScriptedModel([.text("other")]))
        try await fork.respond(to: "go")
        #expect(fork.transcript.count == 5)
        #expect(session.transcript.count == 3)
    }

    @Test("slices of the history contain whole turns")
    func turns() {
        let history = TranscriptBuilding.conversation(
            instructions: "Chat.", turns: [("1", "a"), ("2", "b"), ("3", "c")]
        ).history
        #expect(history.lastTurns(2).count == 4)
        #expect(history.lastTurns(9).count == 6)
        #expect(history.lastTurns(0).isEmpty)
        #expect(kinds(of: history.lastTurns(1)) == ["prompt", "response"])
    }

    @Test("transcripts are mutable collections")
    func collection() {
        var transcript = SampleTranscripts.text
        let merged = TranscriptBuilding.merged(transcript, transcript)
        #expect(merged.count == 5)
        transcript.swapAt(1, 2)
        #expect(transcript.map(\.id) == ["i-1", "r-1", "p-1"])
        transcript.replaceSubrange(1..<3, with: [SampleTranscripts.text[1]])
        #expect(transcript.map(\.id) == ["i-1", "p-1"])
        #expect(transcript.dropFirst().first?.id == "p-1")
        #expect(Transcript(entries: transcript.filter(\.isAnswer)).isEmpty)
        #expect(transcript != SampleTranscripts.text)
    }
}
