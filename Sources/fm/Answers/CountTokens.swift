import ArgumentParser
import ContextKit
import Foundation
import FoundationModels

/// `fm tokens` with the options and the output of Apple's command.
struct CountTokens: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "count-tokens",
        abstract: "Print the number of tokens of a request (“fm tokens” shows its parts).",
        discussion: "On a terminal “Token count: N”; in a pipe, and with --quiet, only the number.")

    @Argument(help: "The prompt; standard input replaces it or is appended.") var prompt: String?
    @Option(name: .shortAndLong, help: "Instructions for the model.") var instructions: String?
    @OptionGroup var modelFlags: ModelFlags
    @Option(help: "Text that follows the prompt. Can be repeated.") var text: [String] = []
    @Option(help: ArgumentHelp("A transcript as JSON that precedes the prompt.", valueName: "file")) var transcript: String?
    @Flag(name: .shortAndLong, help: "Print only the number.") var quiet = false

    func run() async throws {
        if isatty(STDOUT_FILENO) == 1, !quiet { try Output().write("Token count: ") }
        try await tokens().run()
    }

    /// The command that counts.
    func tokens() throws -> Tokens {
        var arguments: [String] = ["--total"]
        let parts = [prompt].compactMap(\.self) + text
        if let instructions { arguments += ["--instructions=\(instructions)"] }
        if let model = modelFlags.model { arguments += ["--model=\(model)"] }
        if let adapter = modelFlags.adapter { arguments += ["--adapter=\(adapter)"] }
        if let transcript { arguments += ["--transcript=\(transcript)"] }
        return try Tokens.parse(arguments + (parts.isEmpty ? [] : ["--", parts.joined(separator: "\n")]))
    }
}
