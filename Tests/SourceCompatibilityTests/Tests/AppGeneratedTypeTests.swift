import Foundation
import FoundationModels
import Testing

@Suite("Generated types of an app")
struct AppGeneratedTypeTests {
    private func last<Content: Generable>(
        _ type: Content.Type, _ json: String, _ show: (Content.PartiallyGenerated) -> Void
    ) async throws -> Content {
        let session = LanguageModelSession(model: FormEchoModel(json: json))
        return try await session.respond(to: "go", generating: type, showing: show)
    }

    @Test("a view animates changes of an itinerary, and only changes")
    func animation() async throws {
        let days = [
            #"{"title": "Shore", "activities": [{"type": "shopping", "place": {"type": "landmark", "value": "Harbour"}}]}"#,
            #"{"title": "Hills", "activities": []}"#,
        ]
        let json =
            #"{"title": "North", "photo": {"attachmentLabel": "a"}, "extras": {"x": 1}, "days": [\#(days.joined(separator: ", "))]}"#
        var screen = ItineraryScreen()
        var shown = 0
        let itinerary = try await last(Itinerary.self, json) { partial in
            screen.show(partial)
            screen.show(partial)
            shown += 1
        }
        #expect(screen.itinerary.changes > 0 && screen.itinerary.changes <= shown)
        #expect(screen.lastDay.value?.title == "Hills")
        #expect(itinerary.days.first?.activities.first?.place == .landmark("Harbour"))
    }

    @Test("values that only the app knows are not generated")
    func taskList() async throws {
        let json = #"{"title": "Today", "tasks": [{"text": "Bake", "minutes": 20}, {"text": "Wash", "minutes": 5}]}"#
        var ids: Set<GenerationID> = []
        var list = try await last(TaskList.self, json) { ids.formUnion(TaskList.rows(of: $0).map(\.id)) }
        #expect(ids.count == 2)
        #expect(Set(list.tasks.map(\.id)).count == 2)
        list.finish(list.tasks[1].id)
        list.add("Rest")
        #expect(list.tasks.map(\.isDone) == [false, true, false])
        #expect(list.tasks.map(\.minutes) == [20, 5, 30])
        #expect(try JSON(text: list.tasks[0].generatedContent.jsonString) == ["text": "Bake", "minutes": 20])
        #expect(try JSON(encoding: TaskList.Item.generationSchema)["x-order"] == ["text", "minutes"])
    }

    @Test("search terms keep their identity when they are complete")
    func searchTerms() async throws {
        var screen = SearchScreen()
        let suggestions = try await last(SearchSuggestions.self, #"{"terms": [{"words": "red sky"}, {"words": "old boats"}]}"#) {
            screen.show($0)
        }
        let ids = screen.rows.map(\.id)
        screen.show(suggestions)
        #expect(screen.rows.map(\.id) == ids && Set(ids).count == 2)
        #expect(screen.rows.map(\.words) == ["red sky", "old boats"])
        #expect(try JSON(encoding: SearchSuggestions.Term.generationSchema)["x-order"] == ["words"])
    }

    @Test("the schema has the properties and cases of this build")
    func conditions() throws {
        let order = try JSON(encoding: Diagnosis.generationSchema)["x-order"]
        #if DEBUG
        let first: [JSON] = ["summary", "reasoning"]
        #else
        let first: [JSON] = ["summary"]
        #endif
        #if os(Linux)
        #expect(order == .array(first + ["package", "cause"]))
        #else
        #expect(order?.elements?.starts(with: first) == true)
        #endif
        #expect(try Diagnosis.Cause(GeneratedContent("memory")) == .memory)
    }

    @Test("a class with guides conforms by hand")
    func station() async throws {
        var partial: Station?
        let station = try await last(Station.self, #"{"code": "ABCD", "altitude": 12}"#) { partial = $0 }
        #expect(station.code == "ABCD" && station.altitude == 12)
        #expect(partial?.code == "ABCD")
    }
}
