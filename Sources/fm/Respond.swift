import ArgumentParser
import Foundation
import FoundationModels

struct Respond: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "respond",
        abstract: "Answer one prompt (the default command).",
        discussion: """
            The prompt is the argument, standard input, or both: standard input is appended to the argument. The answer is \
            written to standard output as it is generated; everything else is written to standard error.
            """)

    @Argument(help: "The prompt.")
    var prompt: String?

    @OptionGroup var flags: GenerationFlags

    @OptionGroup var format: FormatFlags

    /// The checks of prompts and answers, with Apple's names.
    enum Guardrails: String, CaseIterable, ExpressibleByArgument {
        case `default`
        case permissiveContentTransformations = "permissive-content-transformations"

        var value: SystemLanguageModel.Guardrails {
            switch self {
            case .default: .default
            case .permissiveContentTransformations: .permissiveContentTransformations
            }
        }
    }

    @Option(
        help: "What the model is used for: general, or content-tagging for the topics, emotions, actions and objects of texts.")
    var useCase = UseCase.general

    enum UseCase: String, ExpressibleByArgument, CaseIterable {
        case general
        case contentTagging = "content-tagging"

        var value: SystemLanguageModel.UseCase { self == .general ? .general : .contentTagging }
    }

    @Option(help: "Checks of the prompt and the answer; the permissive ones are for changing texts that may be unsafe.")
    var guardrails = Guardrails.default

    @Flag(inversion: .prefixedNo, help: "Write the answer as it is generated.")
    var stream = true

    @Flag(help: "Write one JSON object: content, stop_reason, usage, seconds.")
    var json = false

    @Option(help: ArgumentHelp("Continue the conversation of a transcript, a JSON file.", valueName: "file"))
    var loadTranscript: String?

    @Option(help: ArgumentHelp("Write the transcript, with this answer, to a JSON file.", valueName: "file"))
    var saveTranscript: String?

    @Flag(help: "Write times, token counts and memory to standard error afterwards.")
    var stats = false

    func run() async throws {
        let start = ContinuousClock.now
        try flags.selectModel()
        let responseFormat = try format.responseFormat()
        var prompt = try StandardInput.prompt(with: prompt)
        if let request = format.request(for: responseFormat) { prompt += "\n\n" + request }
        let session = try makeSession()
        let question = prompt
        let request = Task { try await answer(question, responseFormat, session, start) }
        let interrupt = Interrupt { request.cancel() }
        defer { interrupt.stop() }
        do {
            try await request.value
            try save(session.transcript)
            ModelAdvice.sayOnce()
        } catch let error as ValidationError { throw error } catch {
            if interrupt.happened {
                Message.say("")
                throw ExitCode(130)
            }
            throw ExitMessage.exit(for: error)
        }
    }

    private func makeSession() throws -> LanguageModelSession {
        let model = SystemLanguageModel(useCase: useCase.value, guardrails: guardrails.value)
        guard let loadTranscript else { return LanguageModelSession(model: model, instructions: flags.instructions) }
        guard flags.instructions == nil else {
            throw ValidationError("A transcript has its own instructions: leave out --instructions or --load-transcript.")
        }
        let transcript: Transcript
        do {
            transcript = try JSONDecoder().decode(Transcript.self, from: Data(contentsOf: URL(filePath: loadTranscript)))
        } catch is DecodingError {
            throw ValidationError("“\(loadTranscript)” is not a transcript.")
        } catch {
            throw ValidationError("“\(loadTranscript)” cannot be read: \(error.localizedDescription)")
        }
        return LanguageModelSession(model: model, transcript: transcript)
    }

    private func save(_ transcript: Transcript) throws {
        guard let saveTranscript else { return }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        do {
            // Conversations are private.
            try Data().write(to: URL(filePath: saveTranscript))
            chmod(saveTranscript, 0o600)
            try encoder.encode(transcript).write(to: URL(filePath: saveTranscript))
        } catch {
            throw ValidationError("“\(saveTranscript)” cannot be written: \(error.localizedDescription)")
        }
        Message.say("Written to \(saveTranscript).")
    }

    private func answer(
        _ prompt: String, _ format: ResponseFormat?, _ session: LanguageModelSession, _ start: ContinuousClock.Instant
    ) async throws {
        let output = Output()
        var report = RunReport()
        var written = 0
        let responses =
            if let format { session.streamResponse(to: Prompt(prompt), format: format, options: flags.options) } else {
                session.streamResponse(to: prompt, options: flags.options)
            }
        do {
            for try await snapshot in responses {
                if report.firstToken == nil { report.firstToken = ContinuousClock.now - start }
                if stream, !json, snapshot.content.utf8.count > written {
                    try output.write(Substring(snapshot.content.utf8.dropFirst(written)))
                    written = snapshot.content.utf8.count
                }
            }
        } catch LanguageModelError.contextSizeExceeded(let context) where written > 0 {
            // The text generated so far is kept: it ends where the window ends.
            try output.write("\n")
            Message.say("(The context window of \(context.contextSize) tokens is full: the answer ends here.)")
            return
        }
        let response = try await responses.collect()
        report.total = ContinuousClock.now - start
        report.usage = response.usage
        if json {
            try output.write(try report.json(content: response.content, isDocument: self.format.schema != nil) + "\n")
        } else {
            if !stream { try output.write(response.content) }
            if !response.content.hasSuffix("\n") { try output.write("\n") }
        }
        if report.stopReason == "loop" { Message.say("(The model repeated itself and was stopped.)") }
        if report.stopReason == "maximumTokens", flags.maxTokens == nil {
            Message.say("(Stopped after \(GenerationFlags.defaultMaxTokens) tokens; --max-tokens allows more.)")
        }
        if stats { Message.say(report.table, terminator: "") }
    }
}
