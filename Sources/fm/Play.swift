import ArgumentParser
import Foundation
import FoundationModels
import FoundationModelsGGUF
import Inference
import Synchronization

struct Play: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Try the prompts of a file, again at each save.",
        discussion: """
            The file has prompts with lines of --- between them; a line that begins with @instructions sets the instructions of its \
            prompt. Data sets of “fm eval” (.jsonl) work too. After a save, only what changed runs again.

              @instructions You are a pirate.
              Where is the treasure?
              ---
              Suggest three names for a bakery.

              fm play prompts.txt
              fm play prompts.txt --model small --model default     side by side
              fm play prompts.txt --temperature 0 --temperature 1.2
            """)

    @Argument(help: "The file with prompts.")
    var file: String

    @Option(name: [.short, .long], help: ArgumentHelp("A model; can be repeated for several columns.", valueName: "name"))
    var model: [String] = []

    @Option(help: "The randomness of sampling, 0 to 2; 0 is the most probable answer. Can be repeated for several columns.")
    var temperature: [Double] = []

    @Option(help: "A seed that makes sampling repeatable.")
    var seed: UInt64 = 1

    @Option(help: "The maximum number of tokens of an answer.")
    var maxTokens = 200

    @Flag(help: "Run the prompts once and end.")
    var once = false

    func validate() throws {
        if temperature.contains(where: { !(0...2).contains($0) }) { throw ValidationError("--temperature must be from 0 to 2.") }
        if maxTokens < 1 { throw ValidationError("--max-tokens must be at least 1.") }
    }

    struct Prompt: Hashable {
        var instructions: String?
        var text: String
    }

    /// A model with settings.
    private struct Column {
        var title: String
        var model: GGUFLanguageModel
        var options: GenerationOptions
    }

    private struct Answer {
        var text: String
        var facts: String
    }

    private static let pollingInterval: Duration = .milliseconds(300)

    func run() async throws {
        let columns = try columns()
        var known: [Prompt: [Answer]] = [:]
        var lastSave: Date?
        while true {
            // An editor may replace the file, so that it does not exist for a moment.
            let save = try? FileManager.default.attributesOfItem(atPath: file)[.modificationDate] as? Date
            if save == nil, lastSave == nil { throw ValidationError("“\(file)” cannot be read.") }
            if let save, save != lastSave {
                guard let data = FileManager.default.contents(atPath: file) else {
                    if lastSave == nil || once { throw ValidationError("“\(file)” cannot be read.") }
                    try await Task.sleep(for: Self.pollingInterval)
                    continue
                }
                lastSave = save
                do {
                    let prompts = try Self.prompts(in: data, isDataSet: file.hasSuffix(".jsonl"))
                    known = try await show(prompts, columns, known)
                } catch let error as EvalError {
                    if once { throw ValidationError(error.description) }
                    Shell.say("fm: \(error.description)")
                }
                if once { return }
                Shell.say("Waiting for \(file) to be saved. Ctrl-C ends.")
            }
            try await Task.sleep(for: Self.pollingInterval)
        }
    }

    static func prompts(in data: Data, isDataSet: Bool) throws -> [Prompt] {
        if isDataSet {
            return try EvalSample.read(data, name: "the file").map {
                Prompt(instructions: $0.instructions, text: $0.fullPrompt())
            }
        }
        guard let text = String(validating: data, as: UTF8.self) else { throw EvalError("The file is not UTF-8 text.") }
        var prompts: [Prompt] = []
        var lines: [Substring] = []
        var instructions: String?
        func end() {
            let text = lines.joined(separator: "\n").trimmingCharacters(in: .whitespacesAndNewlines)
            if !text.isEmpty { prompts.append(Prompt(instructions: instructions, text: text)) }
            (lines, instructions) = ([], nil)
        }
        for line in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
            if line.trimmingCharacters(in: .whitespaces) == "---" {
                end()
            } else if line.hasPrefix("@instructions ") {
                instructions = String(line.dropFirst("@instructions ".count))
            } else {
                lines.append(line)
            }
        }
        end()
        if prompts.isEmpty { throw EvalError("The file contains no prompts.") }
        return prompts
    }

    private func columns() throws -> [Column] {
        let models: [String?] = model.isEmpty ? [nil] : model.map { $0 }
        let temperatures = temperature.isEmpty ? [0] : temperature
        return try models.flatMap { name in
            // The default is the model that all other commands use.
            let path =
                name.map { $0 == "default" ? ModelStore.systemModelPath : ModelStore.path(of: $0) } ?? ModelStore.systemModelPath
            guard FileManager.default.fileExists(atPath: path) else {
                Shell.say("fm: There is no model at \(path). “fm model list” shows the installed ones.")
                throw ExitCode(3)
            }
            let model = GGUFLanguageModel(url: URL(filePath: path))
            return temperatures.map { temperature in
                let options = GenerationOptions(
                    samplingMode: temperature == 0 ? .greedy : .random(probabilityThreshold: 0.9, seed: seed),
                    temperature: temperature == 0 ? nil : temperature, maximumResponseTokens: maxTokens)
                let title =
                    (name ?? URL(filePath: path).deletingPathExtension().lastPathComponent)
                    + (self.temperature.isEmpty ? "" : ", temperature \(temperature)")
                return Column(title: title, model: model, options: options)
            }
        }
    }

    /// Runs the prompts that are new, and shows them. Returns the answers to all.
    private func show(
        _ prompts: [Prompt], _ columns: [Column], _ known: [Prompt: [Answer]]
    ) async throws -> [Prompt: [Answer]] {
        var answers: [Prompt: [Answer]] = [:]
        var window = winsize()
        let width = ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &window) == 0 && window.ws_col > 0 ? Int(window.ws_col) : 100
        for prompt in prompts {
            let isNew = known[prompt] == nil && answers[prompt] == nil
            var row = answers[prompt] ?? known[prompt] ?? []
            if isNew { for column in columns { row.append(await answer(prompt, column)) } }
            answers[prompt] = row
            // What did not change is not shown again.
            guard isNew || known.isEmpty else { continue }
            var lines = ["", "▌ \(prompt.text.split(whereSeparator: \.isNewline).joined(separator: "\n▌ "))"]
            if let instructions = prompt.instructions { lines.insert("▌ (\(instructions))", at: 1) }
            lines += Self.table(zip(columns, row).map { ($0.title, $1.text, $1.facts) }, width: width)
            try Output().write(lines.joined(separator: "\n") + "\n")
        }
        return answers
    }

    private func answer(_ prompt: Prompt, _ column: Column) async -> Answer {
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

    private static let minimumWidth = 30

    /// Answers side by side, or one below the other in a narrow terminal.
    static func table(_ cells: [(title: String, text: String, facts: String)], width: Int) -> [String] {
        let columnWidth = (width - 3 * (cells.count - 1)) / max(1, cells.count)
        guard cells.count > 1, columnWidth >= minimumWidth else {
            return cells.flatMap { cell in
                (cells.count > 1 ? ["── \(cell.title)"] : []) + wrapped(cell.text, width) + ["   \(cell.facts)"]
            }
        }
        let columns = cells.map { cell in
            wrapped(cell.title, columnWidth) + [String(repeating: "─", count: columnWidth)] + wrapped(cell.text, columnWidth)
                + wrapped("(\(cell.facts))", columnWidth)
        }
        let height = columns.map(\.count).max() ?? 0
        return (0..<height).map { line in
            columns.map { column in
                let text = line < column.count ? column[line] : ""
                return text + String(repeating: " ", count: max(0, columnWidth - text.count))
            }.joined(separator: " │ ")
        }
    }

    /// Lines of at most `width` characters, broken between words where possible.
    static func wrapped(_ text: String, _ width: Int) -> [String] {
        text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).flatMap { line -> [String] in
            var lines: [String] = []
            var current = ""
            for (index, word) in line.split(separator: " ", omittingEmptySubsequences: false).enumerated() {
                var word = word
                if index > 0, current.allSatisfy({ $0 == " " }), lines.isEmpty {
                    current += " "  // indentation
                } else if !current.isEmpty, current.count + 1 + word.count > width {
                    lines.append(current)
                    current = ""
                } else if !current.isEmpty {
                    current += " "
                }
                while word.count > width {
                    lines.append(String(word.prefix(width)))
                    word = word.dropFirst(width)
                }
                current += word
            }
            return lines + [current]
        }
    }
}
