import ArgumentParser
import EvaluationCore
import Files
import Foundation
import FoundationModels
import Inference
internal import JSON
import InstalledModels

extension Adapter {
    struct Distill: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "distill",
            abstract: "Let one model write the answers that another learns.",
            discussion: """
                The prompts are JSON Lines, {"prompt": "…"} or {"messages": […]} without the last answer, or a text with one prompt a \
                line. The teacher answers each, and the rows are written as data for “fm adapter train”. With --schema, answers are \
                values of the schema, and prompts ask for it as requests with a schema do. Prompts that the teacher refuses, or whose answers do not end, are left out.

                  fm adapter distill prompts.txt --teacher default -i "Answer in one sentence." --out data.jsonl
                  fm adapter train data.jsonl --model small

                Work that was interrupted goes on with the same command.
                """)

        @Argument(help: "A file with prompts.") var prompts: String
        @Option(help: "The model that answers: a name of “fm model list”, or a GGUF file (default: the one in use).") var teacher:
            String?
        @Option(
            help: ArgumentHelp(
                "An adapter of the teacher: a file, a name of “fm adapter list”, or none (default: the one in use).",
                valueName: "file"))
        var adapter: String?
        @Option(name: .shortAndLong, help: "Instructions for the teacher.") var instructions: String?
        @Option(help: "Instructions in the rows that are written, if not those of the teacher; an empty text for none.")
        var learn: String?
        @OptionGroup var format: FormatFlags
        @Option(help: "Answers that are longer are left out, in tokens.") var maxTokens = 400
        @Option(
            help: ArgumentHelp(
                "Leave out answers that do not pass: a JSON object with contains, excludes, regex, schema or rubric, as in rows of “fm eval”.",
                valueName: "json"))
        var filter: String?
        @Option(help: "The file of rows to write.") var out: String

        private struct Item {
            var instructions: String?
            var prompt: String
        }

        func run() async throws {
            let choice = try ModelChoice(model: teacher ?? ModelStore.defaultName, adapter: adapter)
            let items = try readItems()
            // A mistake in the requirements is seen before the teacher writes.
            let requirements = try requirements()
            let url = URL(filePath: out)
            if FileIdentity(out) != nil, FileIdentity(out) == FileIdentity(prompts) {
                throw ValidationError("\(out) has the prompts: write to another file.")
            }
            // What was done before: a line for these prompts and options, then one for each prompt, left out or not.
            let state = URL(filePath: out + ".done")
            let lock = open(state.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
            guard lock >= 0 else {
                throw CommandFailure("“\(state.path)” cannot be written: \(String(cString: strerror(errno))).")
            }
            defer { close(lock) }
            guard flock(lock, LOCK_EX | LOCK_NB) == 0 else { throw CommandFailure("Another run writes “\(out)”.") }
            let parts = items.flatMap { [$0.instructions ?? "", $0.prompt] }
            let responseFormat = try format.responseFormat()
            // What a schema says, not where it is.
            let answers = responseFormat.map { ["\($0.source)", "\($0.options)"] } ?? []
            let request = format.request(for: responseFormat) ?? ""
            let options =
                answers + [request, learn ?? "-", "\(maxTokens)", filter ?? ""] + (try choice.identity())
            let identity = "\(FNV.hash(Array((parts + options).joined(separator: "\0").utf8)))"
            if !FileManager.default.fileExists(atPath: out) { ftruncate(lock, 0) }
            let before = try Self.marks(state)
            guard before.isEmpty || before[0] == identity else {
                throw ValidationError(
                    "\(state.path) belongs to other prompts or options, or to another teacher. Remove it and \(out) to begin anew."
                )
            }
            if before.isEmpty { try append(identity + "\n", to: state) }
            let done = before.count > 1 ? try Self.done(before[before.count - 1], url) : 0
            try await LongWork.untilInterrupted("Stopped. The same command continues.") {
                try await answer(items, done, responseFormat, requirements, choice, url, state)
            }
        }

        /// The lines of the file with what was done. A last one that was not written completely is removed.
        private static func marks(_ url: URL) throws -> [Substring] {
            let data = try Data(contentsOf: url)
            let complete = data.lastIndex(of: 0x0A).map { data[...$0] } ?? Data()
            if complete.count < data.count { truncate(url.path, off_t(complete.count)) }
            return String(decoding: complete, as: UTF8.self).split(separator: "\n")
        }

        /// The number of prompts that are done.
        ///
        /// - Parameters:
        ///   - mark: The last one: the number of a prompt and, if its answer is a row, the size of the file before that.
        ///   - rows: The file of rows. A last one that was not written completely is removed.
        private static func done(_ mark: Substring, _ rows: URL) throws -> Int {
            let numbers = mark.split(separator: " ").compactMap { Int($0) }
            guard let number = numbers.first, number > 0 else { return 0 }
            guard numbers.count > 1 else { return number }
            let data = try Data(contentsOf: rows)
            let complete = data.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
            if complete < data.count { truncate(rows.path, off_t(complete)) }
            return complete < data.count || complete == numbers[1] ? number - 1 : number
        }

        private static func rowCount(_ url: URL) throws -> Int {
            guard FileManager.default.fileExists(atPath: url.path) else { return 0 }
            return try Data(contentsOf: url).count { $0 == 0x0A }
        }

        private func readItems() throws -> [Item] {
            let text = try TextFile.read(prompts)
            var items: [Item] = []
            for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
                let line = line.trimmingCharacters(in: .whitespaces)
                if line.isEmpty { continue }
                guard line.hasPrefix("{") else {
                    items.append(Item(instructions: instructions, prompt: line))
                    continue
                }
                let value: JSONValue
                do { value = try JSONParser.parse(line) } catch {
                    throw ValidationError("Line \(index + 1) is not JSON at column \(error.column): \(error.reason).")
                }
                if case .string(let prompt)? = value["prompt"] {
                    items.append(Item(instructions: instructions, prompt: prompt))
                    continue
                }
                guard case .array(let messages)? = value["messages"] else {
                    throw ValidationError("Line \(index + 1) has neither “prompt” nor “messages”.")
                }
                var item = Item(instructions: instructions, prompt: "")
                for message in messages {
                    guard case .string(let role)? = message["role"], case .string(let content)? = message["content"] else {
                        throw ValidationError("Line \(index + 1) has a message without a role or a text.")
                    }
                    guard role == "system" || role == "user", item.prompt.isEmpty else {
                        throw ValidationError("Line \(index + 1) has more than one turn: the teacher answers single prompts.")
                    }
                    if role == "system" { item.instructions = instructions ?? content }
                    if role == "user" { item.prompt = content }
                }
                guard !item.prompt.isEmpty else { throw ValidationError("Line \(index + 1) has no message of the user.") }
                items.append(item)
            }
            guard !items.isEmpty else { throw ValidationError("“\(prompts)” has no prompts.") }
            return items
        }

        private func answer(
            _ items: [Item], _ done: Int, _ responseFormat: ResponseFormat?, _ requirements: EvaluationDataSet.Sample?,
            _ choice: ModelChoice, _ url: URL, _ state: URL
        ) async throws {
            let request = format.request(for: responseFormat).map { "\n\n" + $0 } ?? ""
            let line = ProgressLine("Answering", total: items.count, done: done)
            var written = try Self.rowCount(url)
            let model = choice.systemModel(guardrails: .permissiveContentTransformations)
            let judge = choice.systemModel()
            for (index, item) in items.enumerated().dropFirst(done) {
                try Task.checkCancellation()
                let session = LanguageModelSession(model: model, instructions: item.instructions)
                var text: String?
                do {
                    var options = GenerationOptions(samplingMode: .greedy)
                    options.maximumResponseTokens = maxTokens
                    let responses =
                        if let responseFormat {
                            session.streamResponse(to: Prompt(item.prompt + request), format: responseFormat, options: options)
                        } else { session.streamResponse(to: item.prompt, options: options) }
                    let response = try await responses.collect()
                    // An answer that was cut teaches not to end.
                    if response.usage.metadata["stopReason"]?.kind == .string("endOfTurn") { text = response.content }
                } catch is LanguageModelError {
                    // Refused, too long, or in a language that the teacher does not know: not learned.
                }
                // The mark comes first: after a kill between the two, its size says whether the row is there.
                if let text, !text.isEmpty, try await Self.passes(requirements, item, text, judge) {
                    try append("\(index + 1) \(fileSize(url) ?? 0)\n", to: state)
                    try append(row(item, request, text) + "\n", to: url)
                    written += 1
                } else {
                    try append("\(index + 1)\n", to: state)
                }
                line.show(index + 1, text: "\(written) rows")
            }
            line.end()
            Message.say("\(written) of \(items.count) prompts have an answer to learn.")
            print(url.path)
        }

        /// A row of an evaluation with the requirements of the filter; nil without one.
        private func requirements() throws -> EvaluationDataSet.Sample? {
            guard let filter else { return nil }
            // Whatever is wrong with it, the message is the same.
            guard let value = try? JSONParser.parse(filter), case .object(let members) = value else {
                throw ValidationError("--filter is not a JSON object: use '{\"excludes\": [\"sorry\"]}'.")
            }
            let allowed = ["contains", "excludes", "regex", "schema", "rubric"]
            if let other = members.first(where: { !allowed.contains($0.name) }) {
                throw ValidationError("--filter has “\(other.name)”: use \(allowed.joined(separator: ", ")).")
            }
            let row = JSONValue.object(members + [.init("prompt", .string("?"))])
            do { return try EvaluationDataSet(Data(row.bytes), name: "--filter").samples[0] } catch {
                throw ValidationError("\(error)")
            }
        }

        private static func passes(
            _ requirements: EvaluationDataSet.Sample?, _ item: Item, _ text: String, _ judge: SystemLanguageModel
        ) async throws -> Bool {
            guard var sample = requirements else { return true }
            sample.prompt = item.prompt
            return try await sample.accepts(text, judge: judge)
        }

        private func row(_ item: Item, _ request: String, _ answer: String) -> String {
            func message(_ role: String, _ content: String) -> JSONValue {
                .object([.init("role", .string(role)), .init("content", .string(content))])
            }
            let learned = learn ?? item.instructions ?? ""
            let system = learned.isEmpty ? [] : [message("system", learned)]
            return JSONValue.object([
                .init("messages", .array(system + [message("user", item.prompt + request), message("assistant", answer)]))
            ]).text
        }

        private func append(_ text: String, to url: URL) throws {
            let descriptor = open(url.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
            guard descriptor >= 0 else {
                throw CommandFailure("“\(url.path)” cannot be written: \(String(cString: strerror(errno))).")
            }
            defer { close(descriptor) }
            let bytes = Array(text.utf8)
            guard write(descriptor, bytes, bytes.count) == bytes.count else {
                throw CommandFailure("“\(url.path)” cannot be written: \(String(cString: strerror(errno))).")
            }
        }
    }
}
