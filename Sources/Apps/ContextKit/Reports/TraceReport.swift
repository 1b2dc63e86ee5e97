public import Foundation
internal import TraceFiles

/// A report on requests, read from the trace file that `FM_TRACE` named while they ran.
public struct TraceReport: Sendable {
    /// An event, which is one line of the file.
    public struct Event: Sendable, Codable {
        /// `request`, `compaction` or `recall`.
        public var kind: String
        /// Seconds since 1970.
        public var start: Double
        /// Duration in seconds.
        public var seconds: Double
        /// Seconds until the first token.
        public var firstTokenSeconds: Double?
        /// The model's name.
        public var model: String?
        /// Number of input tokens.
        public var inputTokens: Int?
        /// Number of input tokens that were in the cache.
        public var cachedTokens: Int?
        /// Number of generated tokens.
        public var outputTokens: Int?
        /// Number of generated tokens for which the grammar allowed only one choice.
        public var forcedTokens: Int?
        /// Number of generated tokens that were sampled with a token mask.
        public var maskedTokens: Int?
        /// Duration of prompt processing in seconds.
        public var promptSeconds: Double?
        /// Duration of generation in seconds.
        public var generationSeconds: Double?
        /// Tokens by part: instructions, tools, history, prompt.
        public var parts: [String: Int]?
        /// The tools that were called.
        public var toolCalls: [String]?
        /// Why the response ended.
        public var stopReason: String?
        /// The error, if there is no complete response.
        public var error: String?
        /// The prompt's text, recorded if the environment variable `FM_TRACE_TEXT` is 1.
        public var prompt: String?
        /// The text of the response, recorded like that of the prompt.
        public var response: String?
        /// The compaction that was done.
        public var compaction: Compaction?
        /// The result of recall for a prompt.
        public var recall: Recall?
    }

    /// All events, ordered by the time at which they ended.
    public var events: [Event]
    /// Number of lines that cannot be decoded, such as one that was being written when the disk was full.
    public var damagedLines = 0

    /// Reads a trace file.
    ///
    /// - Throws: An error of the file system.
    public init(contentsOf url: URL) throws {
        events = []
        for line in try Data(contentsOf: url).split(separator: 0x0A) {
            // Lines that cannot be decoded are only counted, so that the others can be shown.
            if let event = try? JSONDecoder().decode(Event.self, from: line) { events.append(event) } else { damagedLines += 1 }
        }
    }

    /// A table with one line for each event.
    public var table: String {
        var text = "     at   first     total   input  cached output    tok/s  forced  masked  details\n"
        let origin = events.map(\.start).min() ?? 0
        for event in events {
            text += String(format: "%6.1f s ", event.start - origin)
            if let compaction = event.compaction {
                text += String(format: "        %6.0f ms", event.seconds * 1000)
                text +=
                    "  compaction (\(compaction.reason.rawValue)): \(compaction.tokensBefore) → \(compaction.tokensAfter) tokens, "
                text += "\(compaction.evictedTurns.count) turns archived\n"
                continue
            }
            if let recall = event.recall {
                text += "                  recall: \(recall.summary)\n"
                continue
            }
            let written = event.outputTokens ?? 0
            let generation = event.generationSeconds ?? 0
            text += event.firstTokenSeconds.map { String(format: "%4.0f ms", $0 * 1000) } ?? "      –"
            text += String(
                format: "%7.0f ms%8d%8d%7d%9.0f%8d%8d  ", event.seconds * 1000, event.inputTokens ?? 0, event.cachedTokens ?? 0,
                written, generation > 0 ? Double(written) / generation : 0, event.forcedTokens ?? 0, event.maskedTokens ?? 0)
            text += Self.words(for: event) + "\n"
        }
        let requests = events.filter { $0.kind == "request" }
        // Floating point prevents an overflow: the numbers in a file from another source may be arbitrarily large.
        func sum(_ tokens: (Event) -> Int?) -> Double { requests.reduce(0) { $0 + Double(tokens($1) ?? 0) } }
        let read = sum(\.inputTokens)
        text += String(
            format: "%d requests, %.0f input tokens (%.0f %% cached), %.0f generated, %d compactions\n", requests.count,
            read,
            read > 0 ? 100 * sum(\.cachedTokens) / read : 0, sum(\.outputTokens), events.count { $0.compaction != nil })
        if damagedLines > 0 { text += "\(damagedLines) lines are damaged.\n" }
        return text
    }

    private static func words(for event: Event) -> String {
        var words: [String] = []
        if let error = event.error { words.append("failed: \(error.beginning)") }
        if let calls = event.toolCalls, !calls.isEmpty { words.append("called \(calls.joined(separator: ", "))") }
        if let parts = event.parts, !parts.isEmpty {
            words.append(parts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", "))
        }
        if event.error == nil, let reason = event.stopReason, reason != "endOfTurn" { words.append("(\(reason))") }
        return words.joined(separator: "; ")
    }

    /// A self-contained HTML page with a timeline.
    public var html: String {
        let origin = events.map(\.start).min() ?? 0
        let end = events.map { $0.start + $0.seconds }.max() ?? origin
        let span = max(0.001, end - origin)
        let models = Set(events.compactMap(\.model))
        var rows = ""
        for event in events.sorted(by: { $0.start < $1.start }) {
            func bar(_ from: Double, _ length: Double, _ kind: String, _ title: String) -> String {
                String(
                    format: "<i class=\"%@\" style=\"left:%.3f%%;width:%.3f%%\" title=\"%@\"></i>", kind, 100 * from / span,
                    max(0.15, 100 * length / span), Self.escaped(title))
            }
            let at = event.start - origin
            var bars = ""
            var label = event.kind
            if let compaction = event.compaction {
                bars = bar(at, event.seconds, "c", "compaction: \(compaction.tokensBefore) → \(compaction.tokensAfter) tokens")
                label = "compaction, \(compaction.evictedTurns.count) turns"
            } else if let recall = event.recall {
                label = recall.summary
            } else {
                let first = event.firstTokenSeconds ?? event.seconds
                bars = bar(at, first, "p", String(format: "%.0f ms to the first token", first * 1000))
                bars += bar(
                    at + first, max(0, event.seconds - first), event.error == nil ? "g" : "e",
                    "\(event.outputTokens ?? 0) tokens generated")
                label =
                    "\(event.inputTokens ?? 0) input, \(event.cachedTokens ?? 0) cached, \(event.outputTokens ?? 0) generated"
            }
            let model = models.count > 1 ? event.model : nil
            let words = Self.escaped([model, Self.words(for: event)].compactMap(\.self).joined(separator: "; "))
            rows += "<tr><td>\(String(format: "%.2f s", at))</td><td>\(Self.escaped(label))</td><td>"
            if let prompt = event.prompt {
                rows += "<details><summary>\(words.isEmpty ? "text" : words)</summary><pre>\(Self.escaped(prompt))</pre>"
                rows += "<pre class=\"a\">\(Self.escaped(event.response ?? ""))</pre></details>"
            } else {
                rows += words
            }
            rows += "</td><td class=\"t\">\(bars)</td></tr>\n"
        }
        return """
            <!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Requests</title><style>
            body{font:14px system-ui,sans-serif;margin:2em;color:#222;background:#fff}
            table{border-collapse:collapse;width:100%}td,th{padding:3px 8px;text-align:left;border-bottom:1px solid #eee}td:first-child,td:nth-child(2){white-space:nowrap}td:nth-child(3){overflow-wrap:anywhere}
            .t{position:relative;width:55%;height:18px}.t i{position:absolute;top:4px;height:12px;border-radius:2px}
            pre{white-space:pre-wrap;margin:4px 0}.a{padding-left:8px;border-left:3px solid #5cb487}
            .p{background:#7aa7d9}.g{background:#5cb487}.e{background:#d9534f}.c{background:#b08ad6}
            span{display:inline-block;width:12px;height:12px;border-radius:2px;margin:0 4px 0 14px}
            @media(max-width:50rem){td,th{display:block;border:0}.t{width:auto;border-bottom:1px solid #ddd}}
            @media(prefers-color-scheme:dark){body{background:#191919;color:#ddd}td,th{border-color:#333}}
            </style><h1>Requests</h1><p><span class="p"></span>time to first token<span class="g"></span>generation
            <span class="e"></span>failed<span class="c"></span>compaction</p>
            <table><tr><th>at</th><th>tokens</th><th></th><th></th></tr>
            \(rows)</table></html>
            """
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;").replacing(
            "\"", with: "&quot;")
    }
}

/// Records compactions and recalls in the trace file, in addition to the requests. Texts are left out unless they are wanted.
enum ConversationTrace {
    static func record(_ compaction: Compaction) {
        guard let file = TraceFile.shared else { return }
        var compaction = compaction
        if !TraceFile.recordsText {
            compaction.carried = ""
            compaction.problem = compaction.problem.map { _ in "a step failed" }
        }
        file.write(
            TraceReport.Event(
                kind: "compaction", start: compaction.date.timeIntervalSince1970 - compaction.seconds,
                seconds: compaction.seconds, compaction: compaction))
    }

    static func record(_ recall: Recall) {
        guard let file = TraceFile.shared else { return }
        var recall = recall
        if !TraceFile.recordsText { recall.removeTexts() }
        file.write(
            TraceReport.Event(kind: "recall", start: Date().timeIntervalSince1970, seconds: 0, recall: recall))
    }
}
