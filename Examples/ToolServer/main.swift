/// ToolServer: offers tools of a program to any client of the Model Context Protocol. They are the tools of sessions, unchanged.
///
///     swift build --product ToolServer
///     fm chat --mcp .build/debug/ToolServer
///     fm mcp list .build/debug/ToolServer

import Foundation
import FoundationModels
import MCP

struct RollDice: Tool {
    let name = "roll_dice"
    let description = "Rolls dice and returns what they show."

    @Generable struct Arguments {
        @Guide(description: "The number of dice", .range(1...20)) var count: Int
        @Guide(description: "The sides of each", .range(2...100)) var sides: Int
    }

    @Generable struct Roll {
        var dice: [Int]
        var total: Int
    }

    func call(arguments: Arguments) async throws -> Roll {
        let dice = (0..<arguments.count).map { _ in Int.random(in: 1...arguments.sides) }
        return Roll(dice: dice, total: dice.reduce(0, +))
    }
}

struct CurrentTime: Tool {
    let name = "current_time"
    let description = "Tells the date and the time."

    @Generable struct Arguments {
        @Guide(description: "A time zone such as Europe/Rome") var timeZone: String
    }

    struct UnknownZone: LocalizedError {
        let name: String
        var errorDescription: String? { "There is no time zone “\(name)”." }
    }

    func call(arguments: Arguments) async throws -> String {
        guard let zone = TimeZone(identifier: arguments.timeZone) else { throw UnknownZone(name: arguments.timeZone) }
        return Date.now.formatted(
            .iso8601.timeZone(separator: .colon).year().month().day().time(includingFractionalSeconds: false))
            + " UTC, offset \(zone.secondsFromGMT() / 60) minutes"
    }
}

// Standard output belongs to the protocol: nothing else may be printed.
try await MCPServer(
    name: "examples", instructions: "Dice and clocks.",
    tools: [.init(RollDice(), title: "Roll dice", isReadOnly: true), .init(CurrentTime(), title: "Time", isReadOnly: true)]
).run()
