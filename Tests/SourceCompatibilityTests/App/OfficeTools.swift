import Foundation
import FoundationModels

/// A tool whose parameters are known only at run time, with content as input and output.
struct SpreadsheetTool: Tool {
    typealias Arguments = GeneratedContent

    let name: String
    let description: String
    let parameters: GenerationSchema
    private let rows: [[String: String]]

    init(sheet: String, columns: [String], rows: [[String: String]]) throws {
        name = "search_\(sheet)"
        description = "Searches the sheet \(sheet)."
        self.rows = rows
        let column = DynamicGenerationSchema(name: "Column", anyOf: columns)
        let root = DynamicGenerationSchema(
            name: "Search",
            properties: [
                .init(name: "column", description: "Where to look", schema: column),
                .init(name: "text", schema: DynamicGenerationSchema(type: String.self)),
            ])
        parameters = try GenerationSchema(root: root, dependencies: [])
    }

    func call(arguments: GeneratedContent) async throws -> GeneratedContent {
        let column = try arguments.value(String.self, forProperty: "column")
        let text = try arguments.value(String.self, forProperty: "text")
        let hits = rows.filter { $0[column]?.contains(text) == true }
        return GeneratedContent(
            elements: hits.map { row in
                GeneratedContent(
                    properties: row.sorted { $0.key < $1.key }.map { ($0.key, $0.value as any ConvertibleToGeneratedContent) },
                    uniquingKeysWith: { first, _ in first })
            })
    }
}

/// Arguments that only convert from content require a separate schema.
struct ForecastTool: Tool {
    let name = "forecast"
    let description = "Forecasts the weather."

    var parameters: GenerationSchema {
        GenerationSchema(
            type: GeneratedContent.self,
            description: "Where and for how long",
            properties: [
                .init(name: "place", type: String.self),
                .init(name: "days", type: Int?.self, guides: [.range(1...5)]),
            ])
    }

    func call(arguments: WeatherQuery) async throws -> Forecast {
        Forecast(
            summary: "\(arguments.place), \(arguments.days) days",
            readings: (0..<arguments.days).map { Temperature(degrees: Double(10 + $0), scale: "C") })
    }
}

/// State shared by several tools: one tool uses the results of another.
actor Appointments {
    private(set) var titles: [String]

    init(_ titles: [String] = []) {
        self.titles = titles
    }

    func add(_ title: String) throws {
        guard !titles.contains(title) else { throw CalendarProblem.taken(title) }
        titles.append(title)
    }
}

enum CalendarProblem: LocalizedError, Equatable {
    case taken(String)

    var errorDescription: String? {
        switch self {
        case .taken(let title): "\(title) is in the calendar already."
        }
    }
}

struct AddAppointmentTool: Tool {
    let name = "addAppointment"
    let description = "Writes an appointment into the calendar."
    let appointments: Appointments

    @Generable
    struct Arguments {
        @Guide(description: "A title of at most five words")
        let title: String
    }

    func call(arguments: Arguments) async throws -> String {
        try await appointments.add(arguments.title)
        return "\(arguments.title) is in the calendar."
    }
}

struct ListAppointmentsTool: Tool {
    let name = "listAppointments"
    let description = "Lists the appointments."
    let appointments: Appointments

    @Generable
    struct Arguments {}

    func call(arguments: Arguments) async throws -> String {
        await appointments.titles.joined(separator: ", ")
    }
}

/// A tool for a view that runs on the main actor.
@MainActor
final class BannerTool: Tool {
    nonisolated let name = "showBanner"
    nonisolated let description = "Shows a banner to the person."
    private(set) var banners: [String] = []

    @Generable
    struct Arguments {
        var text: String
    }

    nonisolated init() {}

    func call(arguments: Arguments) async throws -> String {
        await show(arguments.text)
        return "shown"
    }
}

extension BannerTool {
    private func show(_ text: String) {
        banners.append(text)
    }
}

/// The office assistant and its tools.
struct OfficeAssistant {
    let appointments: Appointments

    var tools: [any Tool] {
        [AddAppointmentTool(appointments: appointments), ListAppointmentsTool(appointments: appointments)]
    }

    func session(on model: some LanguageModel) -> LanguageModelSession {
        LanguageModelSession(model: model, tools: tools, instructions: "You keep a calendar.")
    }

    func session() -> LanguageModelSession {
        LanguageModelSession(tools: tools) {
            "You keep a calendar."
            "Look before you add."
        }
    }

    static func names(of tools: [any Tool]) -> [String] {
        tools.map(\.name)
    }

    /// The definition of a tool that the model receives.
    static func definitions(of tools: [any Tool]) -> [Transcript.ToolDefinition] {
        tools.map { Transcript.ToolDefinition(tool: $0) }
    }
}
