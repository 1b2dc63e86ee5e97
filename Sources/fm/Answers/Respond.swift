import ArgumentParser
import Decisions
import Foundation
import FoundationModels
import FoundationModelsInstallation

struct Respond: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "respond",
        abstract: "Answer one prompt (the default command).",
        discussion: """
            The prompt is the argument, standard input, or both: standard input is appended to the argument. The answer is \
            written to standard output as it is generated; everything else is written to standard error. With --schema, \
            --pattern or --choice, a pipe or a file gets the whole answer or nothing.
            """)

    @Argument(help: "The prompt.")
    var prompt: String?

    @OptionGroup var flags: GenerationFlags

    @OptionGroup var format: FormatFlags

    @Option(
        help: "What the model is used for: general, or content-tagging for the topics, emotions, actions and objects of texts.")
    var useCase = UseCase.general

    enum UseCase: String, ExpressibleByArgument, CaseIterable {
        case general
        case contentTagging = "content-tagging"

        var value: SystemLanguageModel.UseCase { self == .general ? .general : .contentTagging }
    }

    @Flag(inversion: .prefixedNo, help: "Write the answer as it is generated.")
    var stream = true

    @Flag(
        help: ArgumentHelp(
            "Write one JSON object: content, stop_reason, usage, seconds; with --choice, the probabilities of all choices.",
            discussion: "Stop reasons are \(RunReport.stopReasons)."))
    var json = false

    @Option(help: ArgumentHelp("Continue the conversation of a transcript, a JSON file.", valueName: "file"))
    var loadTranscript: String?

    @Option(help: ArgumentHelp("Write the transcript, with this answer, to a JSON file.", valueName: "file"))
    var saveTranscript: String?

    @Flag(help: "Write times, token counts and memory to standard error afterwards.")
    var stats = false

    func run() async throws {
        let start = ContinuousClock.now
        let model = try flags.modelFlags.choice()
        let responseFormat = try format.responseFormat()
        var prompt = try StandardInput.prompt(with: prompt)
        if let request = format.request(for: responseFormat) { prompt += "\n\n" + request }
        let session = try makeSession(model)
        let question = prompt
        let request = Task { try await answer(question, responseFormat, session, start) }
        let interrupt = Interrupt { request.cancel() }
        defer { interrupt.stop() }
        do {
            let failure = try await request.value
            try save(session.transcript)
            if flags.modelFlags.model == nil { ModelAdvice.sayOnce() }
            if let failure { throw failure }
        } catch {
            guard interrupt.happened else { throw error }
            Message.say("")
            throw CommandFailure.interrupted
        }
    }

    private func makeSession(_ choice: ModelChoice) throws -> LanguageModelSession {
        let model = choice.systemModel(useCase: useCase.value, guardrails: flags.guardrails.value)
        guard let loadTranscript else { return LanguageModelSession(model: model, instructions: flags.instructions) }
        guard flags.instructions == nil else {
            throw ValidationError("A transcript has its own instructions: leave out --instructions or --load-transcript.")
        }
        let transcript: Transcript
        do { transcript = try JSONDecoder().decode(Transcript.self, from: TextFile.data(loadTranscript)) } catch is DecodingError
        {
            throw CommandFailure("“\(loadTranscript)” is not a transcript.")
        }
        return LanguageModelSession(model: model, transcript: transcript)
    }

    private func save(_ transcript: Transcript) throws {
        guard let saveTranscript else { return }
        // Conversations are private.
        try OutputFile.write(try JSONEncoder.stable(isPretty: true).encode(transcript), to: saveTranscript, mode: 0o600)
        Message.say("Written to \(saveTranscript).")
    }

    /// - Returns: The failure of an answer that was ended because it repeated itself.
    private func answer(
        _ prompt: String, _ format: ResponseFormat?, _ session: LanguageModelSession, _ start: ContinuousClock.Instant
    ) async throws -> CommandFailure? {
        var output = AnswerOutput(
            isLive: stream && !json && (format == nil || isatty(STDOUT_FILENO) == 1), isDocument: self.format.schema != nil)
        var report = RunReport()
        let responses =
            if let format { session.streamResponse(to: Prompt(prompt), format: format, options: flags.options) } else {
                session.streamResponse(to: prompt, options: flags.options)
            }
        do {
            for try await snapshot in responses {
                if report.firstToken == nil { report.firstToken = ContinuousClock.now - start }
                try output.show(snapshot.content)
            }
            let response = try await responses.collect()
            report.total = ContinuousClock.now - start
            report.usage = response.usage
            if json {
                try output.check(response.content)
                let choices = self.format.choice
                let probabilities =
                    choices.isEmpty ? nil : try await session.probabilities(of: choices, inPlaceOf: response)
                try Output().write(
                    try report.json(content: response.content, isDocument: output.isDocument, probabilities) + "\n")
            } else {
                try output.finish(response.content)
            }
        } catch {
            try output.abandon()
            // The text generated so far is kept: it ends where the window ends. A part of a value is of no use.
            guard case LanguageModelError.contextSizeExceeded(let context) = error, format == nil, !output.written.isEmpty else {
                throw error
            }
            Message.say("(The context window of \(context.contextSize) tokens is full: the answer ends here.)")
            return nil
        }
        let failure = CommandFailure.ofEnd(report.usage, limitMessage: flags.limitMessage())
        if stats { Message.say(report.table, terminator: "") }
        return failure
    }
}
