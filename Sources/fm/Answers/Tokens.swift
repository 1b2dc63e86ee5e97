import ArgumentParser
import ContextKit
import Foundation
import FoundationModels
import Inference
import InstalledModels
import Reports

struct Tokens: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tokens",
        abstract: "Count the tokens of a request exactly, by part, without sending it.",
        discussion: """
            Nothing is generated: counting takes milliseconds. With --strict, exits with 4 if the request does not fit.

              fm tokens "How tall is it?"
              fm tokens -i "Be brief." --schema recipe.json "An apple pie" --json
              cat letter.txt | fm tokens
              fm tokens --transcript talk.json
            """)

    @Argument(help: "The prompt; standard input replaces it or is appended.")
    var prompt: String?

    @Option(name: .shortAndLong, help: "Instructions for the model.")
    var instructions: String?

    @OptionGroup var modelFlags: ModelFlags

    @OptionGroup var format: FormatFlags

    @Option(help: ArgumentHelp("A transcript as JSON that precedes the prompt.", valueName: "file"))
    var transcript: String?

    @Flag(help: "Print the report as JSON.") var json = false
    @Flag(help: "Print only the total.") var total = false
    @Flag(help: "Exit with 4 if the request does not fit.") var strict = false

    func run() async throws {
        let report = try await self.report(try modelFlags.choice().systemModel())
        if json {
            struct Whole: Encodable {
                var contextSize: Int, usedTokens: Int, freeTokens: Int, parts: [ContextReport.Part], suggestions: [String]
            }
            let whole = Whole(
                contextSize: report.contextSize, usedTokens: report.usedTokens, freeTokens: report.freeTokens,
                parts: report.parts, suggestions: report.suggestions)
            try Output().writeJSON(whole, isPretty: true)
        } else if total {
            try Output().write("\(report.usedTokens)\n")
        } else {
            try report.writeTable()
        }
        if strict, report.freeTokens < 1 { throw CommandFailure(code: .promptTooLarge) }
    }

    private func report(_ model: SystemLanguageModel) async throws -> ContextReport {
        var entries: [Transcript.Entry] = []
        if let transcript {
            entries = Array(try read(Transcript.self, transcript, "a transcript"))
        }
        if let instructions {
            var told = Transcript.Instructions(segments: [.text(.init(content: instructions))], toolDefinitions: [])
            if case .instructions(let old)? = entries.first {
                told.toolDefinitions = old.toolDefinitions
                entries.removeFirst()
            }
            entries.insert(.instructions(told), at: 0)
        }
        let responseFormat = try format.responseFormat()
        let prompt = self.prompt == nil && transcript != nil ? nil : try StandardInput.prompt(with: self.prompt)
        var report = try await ContextReport(model: model, transcript: entries, prompt: prompt)
        if let prompt, let request = format.request(for: responseFormat) {
            let whole = try await ContextReport(model: model, transcript: entries, prompt: prompt + "\n\n" + request)
            report.parts.append(
                .init(kind: .schema, name: "description of the format", tokens: whole.usedTokens - report.usedTokens))
        }
        return report
    }

    private func read<Value: Decodable>(_ type: Value.Type, _ path: String, _ what: String) throws -> Value {
        let data = try TextFile.data(path)
        do { return try JSONDecoder().decode(type, from: data) } catch let DecodingError.dataCorrupted(context) {
            throw CommandFailure("“\(path)” is not \(what): \(context.debugDescription)")
        } catch {
            throw CommandFailure("“\(path)” is not \(what).")
        }
    }
}

extension ContextReport {
    /// Writes the report as a table, with colours to a terminal.
    func writeTable() throws {
        guard isatty(STDOUT_FILENO) == 1 else { return try Output().write(table()) }
        var report = self
        // The names of tools and parts are texts of a file or a program.
        for index in report.parts.indices { report.parts[index].name = TerminalText.line(report.parts[index].name) }
        try Output().writeStyled(report.table(isColored: Terminal.hasColors(STDOUT_FILENO)))
    }
}
