import Decisions
import Foundation
import FoundationModels
import Inference
import Reports

/// Times, token counts and memory of a run, as a table or JSON.
struct RunReport {
    /// Time from the start of the command to the first text.
    var firstToken: Duration?
    var total = Duration.zero
    var usage: LanguageModelSession.Usage?

    private func number(_ key: String) -> Double {
        guard case .number(let value)? = usage?.metadata[key]?.kind else { return 0 }
        return value
    }

    var stopReason: String { Self.stopReason(usage) ?? "unknown" }

    /// Why the model ended its last answer; nil if it does not say it.
    static func stopReason(_ usage: LanguageModelSession.Usage?) -> String? {
        guard case .string(let reason)? = usage?.metadata["stopReason"]?.kind else { return nil }
        return reason
    }

    /// The names of the reasons, for people.
    static let stopReasons = "endOfTurn, stopString, maximumTokens, loop, contextFull and grammarLimit"

    /// Peak resident memory of this process in MB.
    static var peakMegabytes: Double { Double(SystemMemory.peakBytes) / 1_048_576 }

    private static func seconds(_ duration: Duration?) -> Double {
        guard let duration else { return 0 }
        return Double(duration.components.seconds) + Double(duration.components.attoseconds) * 1e-18
    }

    private static func rate(_ tokens: Int, _ seconds: Double) -> Double { seconds > 0 ? Double(tokens) / seconds : 0 }

    /// Describes the tokens for which the grammar allowed only one choice.
    private func forced(_ output: Int) -> String {
        let count = Int(number("forcedTokens"))
        return count > 0
            ? String(format: ", %d (%.0f %%) without running the model", count, 100 * Double(count) / Double(max(1, output))) : ""
    }

    var table: String {
        let input = usage?.input.totalTokenCount ?? 0
        let cached = usage?.input.cachedTokenCount ?? 0
        let output = usage?.output.totalTokenCount ?? 0
        let prompt = number("promptSeconds")
        let generation = number("generationSeconds")
        func milliseconds(_ seconds: Double) -> String { String(format: "%.1f ms", seconds * 1000) }
        let rows = [
            ["model load", milliseconds(number("loadSeconds"))],
            ["first token", milliseconds(Self.seconds(firstToken)), "from the start"],
            [
                "prompt", milliseconds(prompt),
                String(format: "%d tokens, %d cached, %.0f tokens/s", input, cached, Self.rate(input - cached, prompt)),
            ],
            [
                "generation", milliseconds(generation),
                String(format: "%d tokens, %.0f tokens/s", output, Self.rate(output, generation)) + forced(output),
            ],
            ["total", milliseconds(Self.seconds(total)), "ended by \(stopReason)"],
            ["peak memory", String(format: "%.1f MB", Self.peakMegabytes)],
        ]
        return "\n" + TextTable([.left(minimum: 18), .right(), .left()], indentation: "  ", rows: rows).text()
    }

    /// - Parameters:
    ///   - isDocument: Whether the content is JSON, which is inserted into the object unchanged.
    ///   - probabilities: Those of the texts that the content could have been.
    func json(content: String, isDocument: Bool, _ probabilities: Distribution<String>? = nil) throws -> String {
        struct Object: Encodable {
            struct Usage: Encodable {
                var prompt_tokens: Int, cached_tokens: Int, completion_tokens: Int, forced_tokens: Int, total_tokens: Int
            }
            struct Seconds: Encodable { var load: Double, first_token: Double, prompt: Double, generation: Double, total: Double }
            var stop_reason: String, usage: Usage, seconds: Seconds, peak_memory_mb: Double
        }
        let input = usage?.input.totalTokenCount ?? 0
        let output = usage?.output.totalTokenCount ?? 0
        let object = Object(
            stop_reason: stopReason,
            usage: .init(
                prompt_tokens: input, cached_tokens: usage?.input.cachedTokenCount ?? 0, completion_tokens: output,
                forced_tokens: Int(number("forcedTokens")), total_tokens: input + output),
            seconds: .init(
                load: number("loadSeconds"), first_token: Self.seconds(firstToken), prompt: number("promptSeconds"),
                generation: number("generationSeconds"), total: Self.seconds(total)),
            peak_memory_mb: Self.peakMegabytes)
        let encoder = JSONEncoder.stable()
        let rest = String(decoding: try encoder.encode(object), as: UTF8.self)
        let value = isDocument ? content : String(decoding: try encoder.encode(content), as: UTF8.self)
        let odds = try probabilities.map { probabilities in
            let members = try probabilities.map { text, probability in
                String(decoding: try encoder.encode(text), as: UTF8.self) + ":\(probability)"
            }
            return "\"probabilities\":{" + members.joined(separator: ",") + "},"
        }
        return "{\"content\":" + value + "," + (odds ?? "") + rest.dropFirst()
    }
}
