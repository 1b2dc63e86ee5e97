public import Foundation
internal import Reports
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
        let numbers = ["at", "first", "total", "input", "cached", "output", "tok/s", "forced", "masked"]
        var rows = TextTable(numbers.map { .right($0) } + [.left("details")])
        let origin = events.map(\.start).min() ?? 0
        for event in events {
            let at = String(format: "%.1f s", event.start - origin)
            let total = String(format: "%.0f ms", event.seconds * 1000)
            if let compaction = event.compaction {
                let tokens = "\(compaction.tokensBefore) → \(compaction.tokensAfter) tokens"
                let details =
                    "compaction (\(compaction.reason.rawValue)): \(tokens), \(compaction.evictedTurns.count) turns archived"
                rows.add([at, "", total, "", "", "", "", "", "", details])
            } else if let recall = event.recall {
                rows.add([at, "", "", "", "", "", "", "", "", "recall: \(recall.summary)"])
            } else {
                let written = event.outputTokens ?? 0
                let generation = event.generationSeconds ?? 0
                let rate = generation > 0 ? Double(written) / generation : 0
                rows.add([
                    at, event.firstTokenSeconds.map { String(format: "%.0f ms", $0 * 1000) } ?? "–", total,
                    "\(event.inputTokens ?? 0)", "\(event.cachedTokens ?? 0)", "\(written)", String(format: "%.0f", rate),
                    "\(event.forcedTokens ?? 0)", "\(event.maskedTokens ?? 0)", Self.words(for: event),
                ])
            }
        }
        var text = rows.text()
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
        let rows = events.sorted(by: { $0.start < $1.start }).map { event -> [Page.Cell] in
            func bar(_ from: Double, _ length: Double, _ kind: String, _ title: String) -> String {
                String(
                    format: "<i class=\"%@\" style=\"left:%.3f%%;width:%.3f%%\" title=\"%@\"></i>", kind, 100 * from / span,
                    max(0.15, 100 * length / span), title.htmlEscaped)
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
            let words = [model, Self.words(for: event)].compactMap(\.self).joined(separator: "; ").htmlEscaped
            let texts = event.prompt.map {
                Page.details(
                    words.isEmpty ? "text" : words,
                    "<pre>\($0.htmlEscaped)</pre><pre class=\"a\">\((event.response ?? "").htmlEscaped)</pre>")
            }
            return [
                .text(String(format: "%.2f s", at)), .text(label), .html(texts ?? words), .html("<div class=\"t\">\(bars)</div>"),
            ]
        }
        var page = Page("Requests", style: Self.style)
        page.add(
            """
            <p class="key"><span class="p"></span>time to first token<span class="g"></span>generation<span class="e"></span>failed\
            <span class="c"></span>compaction</p>
            """)
        page.add(Page.table(titles: ["at", "tokens", "", ""], rows, id: "requests"))
        return page.html
    }

    private static let style = """
        body{max-width:none}#requests{width:100%}#requests td:nth-child(-n+2){white-space:nowrap}
        #requests td:nth-child(3){overflow-wrap:anywhere}#requests td:last-child{width:55%}
        .t{position:relative;height:18px}.t i{position:absolute;top:4px;height:12px;border-radius:2px}
        .a{padding-left:8px;border-left:3px solid var(--ok)}
        .p{background:#7aa7d9}.g{background:#5cb487}.e{background:#d9534f}.c{background:#b08ad6}
        .key span{display:inline-block;width:12px;height:12px;border-radius:2px;margin:0 4px 0 14px}
        @media(max-width:50rem){#requests th,#requests td{display:block;width:auto!important;white-space:normal!important}}

        """
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
