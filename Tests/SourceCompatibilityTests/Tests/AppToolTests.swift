import Foundation
import FoundationModels
import Testing

@Suite("Tools of an app")
struct AppToolTests {
    static func call(_ tool: String, _ arguments: String, id: String = "call-1") -> ScriptedModel.Step {
        .call(id: id, tool: tool, arguments: [arguments])
    }

    /// Runs a script with one call and a response, and returns the output of the tool.
    func output(of tool: any Tool, _ arguments: String) async throws -> Transcript.ToolOutput {
        let model = ScriptedModel([Self.call(tool.name, arguments)], [.text("done")])
        let session = LanguageModelSession(model: model, tools: [tool])
        #expect(try await session.respond(to: "go").content == "done")
        return try #require(session.transcript.toolOutputs.first)
    }

    @Test("[C2] the tool receives the call, the model its output, and both are in the transcript")
    func roundTrip() async throws {
        let model = ScriptedModel(
            [.call(id: "call-1", tool: "getWeather", arguments: [#"{"city": "#, #""Rome", "unit""#, #": "celsius"}"#])],
            [.text("It is warm.")])
        let session = LanguageModelSession(model: model, tools: [WeatherTool()])
        let response = try await session.respond(to: "How is Rome?")
        #expect(response.content == "It is warm.")
        #expect(kinds(of: session.transcript) == ["instructions", "prompt", "toolCalls", "toolOutput", "response"])

        let call = try #require(session.transcript.toolCalls.first)
        #expect(call.id == "call-1" && call.toolName == "getWeather")
        #expect(try call.arguments.value(String.self, forProperty: "city") == "Rome")
        let output = try #require(session.transcript.toolOutputs.first)
        #expect(output.id == "call-1" && output.toolName == "getWeather")
        #expect(lines(of: output.segments) == ["24 degrees celsius"])

        let requests = await model.script.requests
        try #require(requests.count == 2)
        #expect(requests.map { $0.enabledToolDefinitions.map(\.name) } == [["getWeather"], ["getWeather"]])
        #expect(kinds(of: requests[1].transcript) == ["instructions", "prompt", "toolCalls", "toolOutput"])
        #expect(requests[0].id != requests[1].id)
        #expect(TranscriptViewer.toolsUsed(in: session.transcript) == ["getWeather"])
    }

    @Test("[C1] outputs can be text, content, prompts and lists")
    func outputs() async throws {
        let size = try await output(of: RoomSizeTool(), #"{"room": 3}"#)
        #expect(size.toolName == "RoomSizeTool")
        guard case .structure(let structure)? = size.segments.first else {
            Issue.record("the output of a generable type is not a structured segment")
            return
        }
        #expect(try RoomSizeTool.Size(structure.content) == RoomSizeTool.Size(width: 5, length: 4.5))

        let recipe = try await output(of: RecipeBoxTool(), #"{"word": "soup"}"#)
        #expect(lines(of: recipe.segments) == ["Recipe for soup:", "Boil water.", "Add leeks."])
        let none = try await output(of: RecipeBoxTool(), #"{"word": "cake"}"#)
        #expect(lines(of: none.segments) == ["Recipe for cake:", "There is none."])

        let doors = try await output(of: DoorTool(open: ["front", "attic"]), "{}")
        let text = TranscriptViewer.text(of: doors.segments)
        #expect(text.contains("front") && text.contains("attic"))
    }

    @Test("[C1] a tool with parameters created at run time receives and returns content")
    func dynamicParameters() async throws {
        let tool = try SpreadsheetTool(
            sheet: "stock", columns: ["item", "place"],
            rows: [["item": "lamp", "place": "attic"], ["item": "desk", "place": "cellar"]])
        let definition = try #require(OfficeAssistant.definitions(of: [tool]).first)
        #expect(definition.name == "search_stock")
        let parameters = try JSON(encoding: definition.parameters)
        #expect(parameters["title"] == "Search")
        #expect(parameters["x-order"] == ["column", "text"])

        let found = try await output(of: tool, #"{"column": "place", "text": "att"}"#)
        guard case .structure(let structure)? = found.segments.first else {
            Issue.record("the content is not a structured segment")
            return
        }
        let rows = try structure.content.value([GeneratedContent].self)
        #expect(try rows.map { try $0.value(String.self, forProperty: "item") } == ["lamp"])
    }

    @Test("[C1] arguments with a manual conversion and a separate schema")
    func handWrittenArguments() async throws {
        let forecast = try await output(of: ForecastTool(), #"{"place": "Oslo", "days": 2}"#)
        guard case .structure(let structure)? = forecast.segments.first else {
            Issue.record("the forecast is not a structured segment")
            return
        }
        #expect(try Forecast(structure.content).readings.map(\.degrees) == [10, 11])
        let once = try await output(of: ForecastTool(), #"{"place": "Oslo"}"#)
        #expect(TranscriptViewer.text(of: once.segments).contains("Oslo, 1 days"))
    }

    @Test("[C1] a tool with a plain string as argument")
    func textArguments() async throws {
        let output = try await output(of: NicknameTool(), #""Adelaide""#)
        #expect(lines(of: output.segments) == ["Adi"])
    }

    @Test("[C4] classes and actors keep their state from call to call")
    func state() async throws {
        let log = LampLog()
        let counter = CounterTool()
        let model = ScriptedModel(
            [Self.call("switchLamp", #"{"isOn": true}"#, id: "a")],
            [Self.call("count", #"{"step": 4}"#, id: "b")],
            [Self.call("count", #"{"step": 5}"#, id: "c")],
            [Self.call("switchLamp", #"{"isOn": false}"#, id: "d")],
            [.text("done")])
        let session = LanguageModelSession(model: model, tools: [LampTool(room: "attic", log: log), counter])
        try await session.respond(to: "go")
        #expect(await log.states == [true, false])
        #expect(await counter.count == 9)
        #expect(
            session.transcript.toolOutputs.map { lines(of: $0.segments) } == [
                ["The lamp is on."], ["4"], ["9"], ["The lamp is off."],
            ])
    }

    @MainActor
    @Test("[C4] a tool on the main actor")
    func mainActor() async throws {
        let banner = BannerTool()
        let model = ScriptedModel([Self.call("showBanner", #"{"text": "Hello"}"#)], [.text("done")])
        try await LanguageModelSession(model: model, tools: [banner]).respond(to: "go")
        #expect(banner.banners == ["Hello"])
    }

    @Test("[C4] tools share state")
    func sharedState() async throws {
        let appointments = Appointments(["Dentist"])
        let model = ScriptedModel(
            [Self.call("addAppointment", #"{"title": "Lunch"}"#, id: "a")],
            [Self.call("listAppointments", "{}", id: "b")],
            [.text("done")])
        let session = OfficeAssistant(appointments: appointments).session(on: model)
        try await session.respond(to: "go")
        #expect(await appointments.titles == ["Dentist", "Lunch"])
        #expect(session.transcript.toolOutputs.last.map { lines(of: $0.segments) } == ["Dentist, Lunch"])
    }

    @Test("a tool that wraps another one has its name, parameters and output")
    func wrapped() async throws {
        let log = EventLog()
        let tool = AnnouncedTool(base: TimerTool()) { await log.note($0) }
        #expect(try JSON(encoding: tool.parameters) == JSON(encoding: TimerArguments.generationSchema))
        let output = try await output(of: tool, #"{"minutes": 5, "label": "Tea"}"#)
        #expect(lines(of: output.segments) == ["Tea rings in 5 minutes."])
        #expect(await log.events == ["startTimer"])
    }

    /// Returns when a second call has begun.
    struct MeetingTool: Tool {
        let name = "meet"
        let description = "Waits for the other one."
        let place = Gate()

        @Generable
        struct Arguments {}

        func call(arguments: Arguments) async throws -> String {
            async let wait: Void = place.pass()
            let isTogether = try await eventually { await place.arrivals == 2 }
            await place.open()
            try await wait
            return isTogether ? "together" : "alone"
        }
    }

    @Test("[C2] several calls of one turn run concurrently", .timeLimit(.minutes(1)))
    func parallelCalls() async throws {
        let model = ScriptedModel([Self.call("meet", "{}", id: "a"), Self.call("meet", "{}", id: "b")], [.text("done")])
        let session = LanguageModelSession(model: model, tools: [MeetingTool()])
        try await session.respond(to: "go")
        #expect(kinds(of: session.transcript) == ["instructions", "prompt", "toolCalls", "toolOutput", "toolOutput", "response"])
        #expect(Set(session.transcript.toolOutputs.map(\.id)) == ["a", "b"])
        #expect(session.transcript.toolOutputs.map { lines(of: $0.segments) } == [["together"], ["together"]])
        #expect(await model.script.requests.count == 2)
    }

    @Test("[C3] an error of a tool contains its name and error, and reverts the session")
    func toolError() async throws {
        let model = ScriptedModel([.text("hello")], [Self.call("startTimer", #"{"minutes": 5}"#)], [.text("fine again")])
        let session = LanguageModelSession(model: model, tools: [TimerTool(running: 3)], instructions: "Cook.")
        try await session.respond(to: "hi")
        let before = session.transcript
        let error = await failure { try await session.respond(to: "Tea!") }
        let toolError = try #require(error as? LanguageModelSession.ToolCallError)
        #expect(toolError.tool.name == "startTimer")
        #expect(toolError.tool is TimerTool)
        #expect(toolError.underlyingError as? TimerTool.Problem == .tooMany(limit: 3))
        #expect(session.transcript == before)
        #expect(!session.isResponding)
        #expect(try await session.respond(to: "again").content == "fine again")

        let other = LanguageModelSession(
            model: ScriptedModel([Self.call("startTimer", #"{"minutes": 5}"#)]), tools: [TimerTool(running: 3)])
        let outcome = try await AdviceDesk(session: other).ask("Tea!")
        #expect(outcome == .toolFailed(tool: "startTimer", reason: "tooMany(limit: 3)"))
    }

    @Test("[C3] arguments that cannot be converted are an error of the call, not a crash")
    func wrongArguments() async throws {
        let model = ScriptedModel([Self.call("startTimer", #"{"label": "Tea"}"#)], [.text("fine again")])
        let session = LanguageModelSession(model: model, tools: [TimerTool()])
        #expect(await failure { try await session.respond(to: "Tea!") } != nil)
        #expect(session.transcript.toolOutputs.isEmpty)
        #expect(try await session.respond(to: "again").content == "fine again")
    }

    @Test("[C4] endless calls are stopped", .timeLimit(.minutes(1)))
    func boundedLoop() async throws {
        let model = ScriptedModel(Script([[Self.call("count", #"{"step": 1}"#)]], encore: true))
        let counter = CounterTool()
        let session = LanguageModelSession(model: model, tools: [counter])
        _ = await failure { try await session.respond(to: "go") }
        #expect(!Task.isCancelled)
        #expect(await counter.count > 0)
        #expect(!session.isResponding)
    }

    @Test("a call can be removed before it runs, and can have metadata")
    func removedCall() async throws {
        let model = ScriptedModel(
            [
                .callMetadata(id: "a", tool: "count", ["trace": "t-1"]),
                Self.call("count", #"{"step": 1}"#, id: "a"), Self.call("count", #"{"step": 7}"#, id: "b"), .removeCall(id: "b"),
            ],
            [.text("done")])
        let counter = CounterTool()
        let session = LanguageModelSession(model: model, tools: [counter])
        try await session.respond(to: "go")
        #expect(await counter.count == 1)
        #expect(session.transcript.toolCalls.map(\.id) == ["a"])
        #expect(try session.transcript.toolCalls.first?.metadata["trace"]?.value(String.self) == "t-1")
    }

    @Test("if tool calling is disallowed, the model receives no tool definitions")
    func disallowed() async throws {
        let model = ScriptedModel([.text("ok")], [.text("ok")])
        let session = LanguageModelSession(model: model, tools: [WeatherTool(), DoorTool(open: [])])
        try await session.respond(to: "go", options: NoteSampling.offline)
        try await session.respond(to: "go")
        let names = await model.script.requests.map { $0.enabledToolDefinitions.map(\.name) }
        #expect(names == [[], ["getWeather", "listDoors"]])
    }

    @Test("[C1] names, descriptions and parameters of tools")
    func definitions() throws {
        let tools: [any Tool] = [RoomSizeTool(), WeatherTool(), TimerTool()]
        #expect(OfficeAssistant.names(of: tools) == ["RoomSizeTool", "getWeather", "startTimer"])
        #expect(tools.map(\.includesSchemaInInstructions) == [true, true, true])
        #expect(!RecipeBoxTool().includesSchemaInInstructions)
        let weather = try JSON(encoding: OfficeAssistant.definitions(of: tools)[1].parameters)
        #expect(weather["title"] == "Arguments")
        #expect(weather["required"] == ["city"])
        #expect(weather["properties"]?["city"] == ["type": "string", "enum": ["Oslo", "Rome"], "description": "The city"])
        #expect(weather["properties"]?["unit"] == ["type": "string", "enum": ["celsius", "fahrenheit"]])
    }
}
