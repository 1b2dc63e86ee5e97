internal import Foundation
internal import TraceFiles

/// Records one request as a line of JSON in the file named by `FM_TRACE`. Disabled unless the variable is set. Texts are
/// recorded only if `FM_TRACE_TEXT` is 1, because they may be private.
struct RequestTrace: Sendable {
    /// Names follow the OpenTelemetry semantic conventions for generative AI, without their prefix.
    struct Record: Encodable {
        var kind = "request"
        var id: String
        /// Seconds since 1970.
        var start: Double
        var seconds = 0.0
        var firstTokenSeconds: Double?
        var model: String
        var inputTokens = 0
        var cachedTokens = 0
        var outputTokens = 0
        /// The numbers of output tokens that the grammar determined completely, and of those that were sampled with
        /// its masks.
        var forcedTokens = 0
        var maskedTokens = 0
        var promptSeconds = 0.0
        var generationSeconds = 0.0
        /// Token counts of the last model request by part: instructions, tools, history, prompt.
        var parts: [String: Int] = [:]
        var toolCalls: [String] = []
        var stopReason: String?
        var error: String?
        var prompt: String?
        var response: String?
    }

    private let file: TraceFile
    private let begin = ContinuousClock.now
    private let start = Date()

    /// Nil if requests are not recorded.
    init?() {
        guard let file = TraceFile.shared else { return nil }
        self.file = file
    }

    func end(
        _ transcript: Transcript, _ prompt: Transcript.Prompt, _ model: any LanguageModel, _ progress: ResponseProgress,
        _ error: (any Error)?
    ) async {
        let usage = progress.current().usage
        var record = Record(id: prompt.id, start: start.timeIntervalSince1970, model: "\(type(of: model))")
        record.seconds = begin.duration(to: .now).seconds
        record.firstTokenSeconds = progress.firstEvent.map { begin.duration(to: $0).seconds }
        record.inputTokens = usage.input.totalTokenCount
        record.cachedTokens = usage.input.cachedTokenCount
        record.outputTokens = usage.output.totalTokenCount
        // Executors of other models may report nothing, or other values, under these names.
        func number(_ name: String) -> Double { (try? usage.metadata[name]?.value(Double.self)) ?? 0 }
        record.forcedTokens = Int(exactly: number("forcedTokens").rounded()) ?? 0
        record.promptSeconds = number("promptSeconds")
        record.generationSeconds = number("generationSeconds")
        record.stopReason = try? usage.metadata["stopReason"]?.value(String.self)
        record.error = error.map { TraceFile.description(of: $0) }
        let entries = progress.current().entries
        for case .toolCalls(let calls) in entries { record.toolCalls += calls.map(\.toolName) }
        if TraceFile.recordsText {
            record.prompt = prompt.segments.text
            record.response = entries.compactMap { if case .response(let part) = $0 { part.segments.text } else { nil } }
                .joined(separator: "\n")
        }
        if prompt.responseFormat != nil || !record.toolCalls.isEmpty {
            record.maskedTokens = max(0, record.outputTokens - record.forcedTokens)
        }
        if let local = (model as? any HasLocalModel)?.localModel {
            record.model = local.description.name
            record.parts = await Self.parts(of: transcript, prompt, local)
        }
        file.write(record)
    }

    /// Token counts by part of the request; parts that cannot be counted are omitted.
    private static func parts(
        of transcript: Transcript, _ prompt: Transcript.Prompt, _ model: LocalModel
    ) async -> [String: Int] {
        var parts: [String: Int] = [:]
        let before = Array(transcript.prefix { $0.id != prompt.id })
        func count(_ entries: [Transcript.Entry]) async -> Int? { try? await model.tokenCount(entries) }
        var told = 0
        if case .instructions(var instructions)? = before.first {
            let whole = await count([.instructions(instructions)]) ?? 0
            if !instructions.toolDefinitions.isEmpty {
                instructions.toolDefinitions = []
                parts["tools"] = whole - (await count([.instructions(instructions)]) ?? whole)
            }
            parts["instructions"] = whole - (parts["tools"] ?? 0)
            told = whole
        }
        let history = before.isEmpty ? 0 : await count(before)
        if let history, history > told { parts["history"] = history - told }
        if let history, let all = await count(before + [.prompt(prompt)]) { parts["prompt"] = all - history }
        return parts
    }
}

/// Models that run locally and can therefore count tokens.
package protocol HasLocalModel {
    var localModel: LocalModel { get }
}

extension Duration {
    fileprivate var seconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
}
