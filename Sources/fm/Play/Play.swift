import ArgumentParser
import Foundation
import FoundationModels
import Inference
import InstalledModels
import Synchronization
import Reports

struct Play: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "play",
        abstract: "Try prompts or #Playground blocks, again at each save.",
        discussion: """
            A text file has prompts with lines of --- between them; a line that begins with @instructions sets the instructions of \
            its prompt. Data sets of “fm eval” (.jsonl) work too. After a save, only what changed runs again.

              @instructions Talk like a pirate.
              How was your day?
              ---
              Suggest three names for a bakery.

              fm play prompts.txt
              fm play prompts.txt --model small --model default     side by side
              fm play prompts.txt --temperature 0 --temperature 1.2
              fm play prompts.txt --adapter my --adapter none       with and without an adapter

            A Swift file has #Playground blocks. It is built with this package, and each block runs in a process of its own, with \
            the model of the column as the default model. It runs as a program does, without the adapter of “fm adapter use”: it \
            names adapters itself. Further files declare what the blocks use.

              import FoundationModels
              import Playgrounds

              #Playground("Names") {
                  let session = LanguageModelSession(instructions: "Be brief.")
                  print(try await session.respond(to: "Suggest three names for a bakery.").content)
              }

              fm play Prompts.swift Types.swift --model small --model default
            """)

    @Argument(help: "The file with prompts, or Swift files.")
    var files: [String]

    @Option(name: [.short, .long], help: ArgumentHelp("A model; can be repeated for several columns.", valueName: "name"))
    var model: [String] = []

    @Option(
        help: ArgumentHelp(
            "An adapter of the model: a file, a name of “fm adapter list”, or none (default: the one in use). Can be repeated.",
            valueName: "file"))
    var adapter: [String] = []

    @Option(
        help: """
            The randomness of sampling, 0 to 2; 0 is the most probable answer, which is the default. Can be repeated for several \
            columns.
            """)
    var temperature: [Double] = []

    @Option(help: "A seed that makes sampling repeatable (default: 1).")
    var seed: UInt64?

    @Option(help: "The maximum number of tokens of an answer (default: 200).")
    var maxTokens: Int?

    @Option(help: Guardrails.help)
    var guardrails = Guardrails.default

    @Flag(help: "Run the prompts once and end.")
    var once = false

    private var isSwift: Bool { files.contains { $0.hasSuffix(".swift") } }

    func validate() throws {
        if files.isEmpty { throw ValidationError("Name a file with prompts.") }
        if temperature.contains(where: { !(0...2).contains($0) }) { throw ValidationError("--temperature must be from 0 to 2.") }
        if let maxTokens, maxTokens < 1 { throw ValidationError("--max-tokens must be at least 1.") }
        if isSwift {
            if !temperature.isEmpty || seed != nil || maxTokens != nil || !adapter.isEmpty || guardrails != .default {
                throw ValidationError(
                    "--temperature, --seed, --max-tokens, --adapter and --guardrails are for text files. A Swift file says these things itself."
                )
            }
            if let other = files.first(where: { !$0.hasSuffix(".swift") }) {
                throw ValidationError("“\(other)” is not a Swift file.")
            }
        } else if files.count > 1 {
            throw ValidationError("Only Swift files can be several.")
        }
    }

    /// A model with settings.
    private struct Column {
        var title: String
        var path: String
        var model: SystemLanguageModel
        var options: GenerationOptions
    }

    private struct Answer {
        var text: String
        var facts: String
    }

    private static let pollingInterval: Duration = .milliseconds(300)

    func run() async throws {
        let columns = try columns()
        try await LongWork.untilInterrupted { try await watch(columns) }
    }

    /// Runs the files, and again after each save.
    private func watch(_ columns: [Column]) async throws {
        var known: [PlayPrompt: [Answer]] = [:]
        var lastSaves: [Date?] = []
        var isRequested = false
        while true {
            // An editor may replace a file, so that it does not exist for a moment.
            let saves = files.map { try? FileManager.default.attributesOfItem(atPath: $0)[.modificationDate] as? Date }
            if lastSaves.isEmpty, let missing = zip(files, saves).first(where: { $1 == nil })?.0 {
                throw CommandFailure("“\(missing)” cannot be read.", code: .wrongUsage)
            }
            if !saves.contains(nil), saves != lastSaves || isRequested {
                if isRequested { known = [:] }
                lastSaves = saves
                do {
                    if isSwift {
                        try await show(try await PlaygroundProgram(building: files), columns)
                    } else {
                        let data = try EvalFile.data(files[0])
                        known = try await show(try PlayPrompt.read(data, name: files[0]), columns, known)
                    }
                } catch {
                    // Whatever is wrong with the file, the next save may be right.
                    if once || error is CancellationError { throw error }
                    CommandFailure(error).say()
                }
                if once { return }
                Message.say("Waiting for \(files.joined(separator: ", ")) to be saved. Enter runs everything again, Ctrl-C ends.")
                // What was typed before is no request.
                if isatty(STDIN_FILENO) == 1 { tcflush(STDIN_FILENO, TCIFLUSH) }
            }
            try await Task.sleep(for: Self.pollingInterval)
            isRequested = Self.takeEnter()
        }
    }

    /// Whether a line was typed. Does not wait.
    private static func takeEnter() -> Bool {
        var input = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
        guard isatty(STDIN_FILENO) == 1, poll(&input, 1, 0) == 1, input.revents & Int16(POLLIN) != 0 else { return false }
        // A terminal returns a line at a time.
        var line = [UInt8](repeating: 0, count: 4096)
        return read(STDIN_FILENO, &line, line.count) > 0
    }

    private func columns() throws -> [Column] {
        let models: [String?] = model.isEmpty ? [nil] : model
        let adapters: [String?] = adapter.isEmpty ? [nil] : adapter
        let temperatures = temperature.isEmpty ? [0] : temperature
        return try models.flatMap { name in
            try adapters.flatMap { adapter in
                // A Swift file runs as a program does, without an adapter of the user.
                let choice = try ModelChoice(model: name ?? ModelStore.defaultName, adapter: isSwift ? "none" : adapter)
                let model = choice.systemModel(guardrails: guardrails.value)
                return temperatures.map { temperature in
                    let options = GenerationOptions(
                        samplingMode: temperature == 0 ? .greedy : .random(probabilityThreshold: 0.9, seed: seed ?? 1),
                        temperature: temperature == 0 ? nil : temperature, maximumResponseTokens: maxTokens ?? 200)
                    let title =
                        (name ?? URL(filePath: choice.path).deletingPathExtension().lastPathComponent)
                        + (choice.adapterName.map { ", adapter \($0)" } ?? "")
                        + (self.temperature.isEmpty ? "" : ", temperature \(temperature)")
                    return Column(title: title, path: choice.path, model: model, options: options)
                }
            }
        }
    }

    private static var terminalWidth: Int { Terminal.columns(of: STDOUT_FILENO) ?? 100 }

    /// Runs all blocks of a program with each model, and shows the results.
    private func show(_ program: PlaygroundProgram, _ columns: [Column]) async throws {
        let progress = Progress(total: program.blocks.count * columns.count)
        for (index, block) in program.blocks.enumerated() {
            var cells: [AnswerTable.Cell] = []
            for column in columns {
                progress.next()
                let run = try await program.run(index, model: column.path)
                cells.append(.init(title: column.title, text: run.text, facts: run.facts))
            }
            progress.end()
            try Self.write(["▌ \(block.title)"], cells)
        }
    }

    /// Runs the prompts that are new, and shows them. Returns the answers to all.
    private func show(
        _ prompts: [PlayPrompt], _ columns: [Column], _ known: [PlayPrompt: [Answer]]
    ) async throws -> [PlayPrompt: [Answer]] {
        var answers: [PlayPrompt: [Answer]] = [:]
        let progress = Progress(total: Set(prompts).count { known[$0] == nil } * columns.count)
        for prompt in prompts {
            let isNew = known[prompt] == nil && answers[prompt] == nil
            var row = answers[prompt] ?? known[prompt] ?? []
            if isNew {
                for column in columns {
                    progress.next()
                    row.append(await answer(prompt, column))
                    try Task.checkCancellation()
                }
                progress.end()
            }
            answers[prompt] = row
            // What did not change is not shown again.
            guard isNew || known.isEmpty else { continue }
            var lines = prompt.text.split(whereSeparator: \.isNewline).map { "▌ \($0)" }
            if let instructions = prompt.instructions { lines.insert("▌ (\(instructions))", at: 0) }
            try Self.write(lines, zip(columns, row).map { AnswerTable.Cell(title: $0.title, text: $1.text, facts: $1.facts) })
        }
        return answers
    }

    /// - Parameter title: lines of a file, which do not control the terminal.
    private static func write(_ title: [String], _ cells: [AnswerTable.Cell]) throws {
        let lines = [""] + title.map { TerminalText.safe($0) } + AnswerTable.lines(cells, width: terminalWidth)
        try Output().write(lines.joined(separator: "\n") + "\n")
    }

    /// Shows which answer is being written.
    private final class Progress {
        private let line: ProgressLine
        private let total: Int
        private var number = 0

        init(total: Int) {
            self.total = total
            line = ProgressLine("Answering", total: total)
        }

        func next() {
            number += 1
            line.show(number - 1, text: "\(number) of \(total)")
        }

        func end() { line.end() }
    }

    private func answer(_ prompt: PlayPrompt, _ column: Column) async -> Answer {
        let session = LanguageModelSession(model: column.model, instructions: prompt.instructions)
        let clock = ContinuousClock()
        let start = clock.now
        do {
            let response = try await session.respond(to: prompt.text, options: column.options)
            let seconds = (clock.now - start) / .seconds(1)
            let facts = String(
                format: "%d + %d tokens, %.1f s", response.usage.input.totalTokenCount, response.usage.output.totalTokenCount,
                seconds)
            return Answer(text: response.content, facts: facts)
        } catch let error as LanguageModelError {
            return Answer(text: "", facts: error.debugDescription)
        } catch {
            return Answer(text: "", facts: "\(error)")
        }
    }
}
