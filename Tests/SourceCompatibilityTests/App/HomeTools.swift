import Foundation
import FoundationModels

/// A tool as a struct with text as input and output.
struct WeatherTool: Tool {
    let name = "getWeather"
    let description = "Says what the weather is like in a city."

    @Generable
    struct Arguments {
        @Guide(description: "The city", .anyOf(["Oslo", "Rome"]))
        var city: String
        var unit: Unit?
    }

    @Generable
    enum Unit: String { case celsius, fahrenheit }

    func call(arguments: Arguments) async throws -> String {
        try await Task.sleep(for: .milliseconds(1))
        let degrees = arguments.city == "Rome" ? 24 : 11
        return "\(degrees) degrees \(arguments.unit?.rawValue ?? "celsius")"
    }
}

/// Without an explicit name, not asynchronous, not throwing, with a generable type as output.
struct RoomSizeTool: Tool {
    let description = "Measures a room."

    @Generable
    struct Arguments {
        @Guide(.range(1...4)) var room: Int
    }

    @Generable
    struct Size: Equatable {
        var width: Double
        var length: Double
    }

    func call(arguments: Arguments) -> Size {
        Size(width: Double(arguments.room) + 2, length: 4.5)
    }
}

/// A tool as a class that counts its calls.
final class LampTool: Tool, Sendable {
    let name = "switchLamp"
    let description: String
    private let log: LampLog

    init(room: String, log: LampLog) {
        description = "Switches the lamp in the \(room) on or off."
        self.log = log
    }

    @Generable
    struct Arguments {
        var isOn: Bool
    }

    func call(arguments: Arguments) async -> String {
        await log.record(arguments.isOn)
        return arguments.isOn ? "The lamp is on." : "The lamp is off."
    }
}

actor LampLog {
    private(set) var states: [Bool] = []
    func record(_ isOn: Bool) { states.append(isOn) }
}

/// A tool as an actor with isolated state.
actor CounterTool: Tool {
    nonisolated let name = "count"
    nonisolated let description = "Counts upwards."
    private(set) var count = 0

    @Generable
    struct Arguments {
        @Guide(.range(1...10)) var step: Int
    }

    nonisolated func call(arguments: Arguments) async throws -> String {
        await advance(by: arguments.step)
    }

    private func advance(by step: Int) -> String {
        count += step
        return "\(count)"
    }
}

/// Returns a prompt with several parts.
struct RecipeBoxTool: Tool {
    let name = "findRecipe"
    let description = "Finds recipes in the box."
    let includesSchemaInInstructions = false
    var box: [String: [String]] = ["soup": ["Boil water.", "Add leeks."]]

    @Generable
    struct Arguments {
        var word: String
    }

    func call(arguments: Arguments) async throws -> Prompt {
        Prompt {
            "Recipe for \(arguments.word):"
            if let steps = box[arguments.word] {
                steps
            } else {
                "There is none."
            }
        }
    }
}

/// Returns a list.
struct DoorTool: Tool {
    var name: String { "listDoors" }
    var description: String { "Lists the doors that are open." }
    let open: [String]

    @Generable
    struct Arguments {}

    func call(arguments: Arguments) async throws -> [String] {
        open
    }
}

/// The arguments and the conformance may be declared elsewhere.
@Generable
struct TimerArguments {
    @Guide(.range(1...180)) var minutes: Int
    var label: String?
}

struct TimerTool {
    enum Problem: Error, Equatable { case tooMany(limit: Int) }
    var running = 0
    var limit = 3
}

extension TimerTool: Tool {
    var name: String { "startTimer" }
    var description: String { "Starts a kitchen timer." }

    func call(arguments: TimerArguments) async throws -> String {
        guard running < limit else { throw Problem.tooMany(limit: limit) }
        return "\(arguments.label ?? "Timer") rings in \(arguments.minutes) minutes."
    }
}

/// A tool that wraps any other tool and reports its calls.
struct AnnouncedTool<Base: Tool>: Tool {
    let base: Base
    let announce: @Sendable (String) async -> Void

    var name: String { base.name }
    var description: String { base.description }
    var parameters: GenerationSchema { base.parameters }
    var includesSchemaInInstructions: Bool { base.includesSchemaInInstructions }

    func call(arguments: Base.Arguments) async throws -> Base.Output {
        await announce(name)
        return try await base.call(arguments: arguments)
    }
}
