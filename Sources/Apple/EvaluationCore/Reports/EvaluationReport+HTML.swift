internal import Decisions
internal import Foundation
internal import Reports

extension EvaluationReport {
    /// The report as one HTML page that needs no network: plots by class, times, and every sample.
    public var html: String {
        var page = Page(
            header.dataset.withoutControls,
            style: """
                #samples td:first-child,#samples td:last-child,#shares td{white-space:nowrap}
                #samples,#shares,#changes{width:100%}
                #shares td:nth-child(2){width:100%}#shares svg{width:100%;height:20px;display:block}
                #changes{table-layout:fixed}#changes th:first-child{width:14%}#changes th:nth-child(2){width:9%}
                #changes td{overflow-wrap:anywhere}
                #times{width:100%;height:100px;display:block}.ends{display:flex;justify-content:space-between}
                @media(max-width:45rem){
                #samples tr,#samples td{display:block}#samples tr[hidden],#samples th{display:none}
                #samples td:first-child,#samples td:last-child{white-space:normal}
                #changes th:first-child,#changes th:nth-child(2){width:18%}
                }
                input{font:inherit;padding:.3rem .5rem;width:20rem;max-width:100%;box-sizing:border-box}
                label{margin-left:1rem}#only{width:auto}
                """,
            script: """
                const find = document.getElementById("find"), only = document.getElementById("only");
                function show() {
                  const text = find.value.toLowerCase();
                  for (const row of document.querySelectorAll("#samples tr[data-ok]"))
                    row.hidden = (only.checked && row.dataset.ok == "1") || !row.textContent.toLowerCase().includes(text);
                }
                find.oninput = only.onchange = show;
                """)
        if !header.heading.isEmpty { page.add("<p class=\"soft\">\(header.heading.xmlEscaped)</p>") }
        page.add("<p class=\"\(isPassed ? "ok" : "bad")\"><b>\(verdict.xmlEscaped)</b></p>")
        page.add("<p>Sum of the times of all answers, which may overlap: \(String(format: "%.0f", seconds)) s.</p>")
        if let comparison {
            page.add("<p>\(comparison.heading.xmlEscaped)<br>\(comparison.conclusion.xmlEscaped)</p>")
        }
        page.add("Passed, with 95 % intervals", shares)
        page.add("Answers by their time", times)
        page.add(
            "Checks",
            Page.table(
                titles: ["check", "passed", "mean score"],
                checks.map { check in
                    let score = check.score.map { String(format: "%.3f", $0) }
                    return [.html(check.name.xmlEscaped), .text(check.shareText), .text(score ?? "")]
                }))
        if !decisions.isEmpty { page.add("Decisions", decisionTables) }
        if let comparison { page.add("Changes", changes(comparison)) }
        if let risks { page.add("Risks", table(risks)) }
        page.add(
            "Samples",
            "<p><input id=\"find\" placeholder=\"find in prompts and answers\">"
                + "<label><input type=\"checkbox\" id=\"only\"> failed only</label></p>"
                + "<table id=\"samples\"><tr><th>sample<th>prompt and answer<th>checks<th>time</tr>\(rows)</table>")
        return page.html
    }

    /// The decisions by kinds, and how often those of each range of probabilities are right.
    private var decisionTables: String {
        let kinds = Page.table(
            titles: ["kind", "right", "calibration error", "with fitted temperatures", "log loss"],
            decisions.map { summary in
                [
                    .text(summary.kind), .text(String(format: "%.1f %%", 100 * summary.quality.accuracy)),
                    .text(String(format: "%.3f", summary.quality.calibrationError)),
                    .text(summary.fitted.map { String(format: "%.3f", $0.calibrationError) } ?? "–"),
                    .text(String(format: "%.3f", summary.quality.logLoss)),
                ]
            })
        guard let bins = decisions.last?.quality.bins else { return kinds }
        let ranges = Page.table(
            titles: ["mean probability", "right", "decisions"],
            bins.map { bin in
                [
                    .text(String(format: "%.0f %%", 100 * bin.probability)), .text(String(format: "%.0f %%", 100 * bin.accuracy)),
                    .text("\(bin.count)"),
                ]
            })
        return kinds + ranges
    }

    /// A bar for each class, with its interval.
    private var shares: String {
        Page.table(
            (classes + [total]).map { line in
                let x = { (share: Double) in String(format: "%.1f", share * 500) }
                let bar =
                    "<rect y=\"3\" width=\"500\" height=\"14\" fill=\"var(--line)\"/>"
                    + "<rect y=\"3\" width=\"\(x(line.share))\" height=\"14\" fill=\"var(--ok)\"/>"
                    + "<line x1=\"\(x(line.low))\" x2=\"\(x(line.high))\" y1=\"10\" y2=\"10\" stroke=\"currentColor\" "
                    + "stroke-width=\"2\"/>"
                let interval = String(format: "%.0f–%.0f %%", line.low * 100, line.high * 100)
                return [
                    .html(line.name.xmlEscaped),
                    .html("<svg viewBox=\"0 0 500 20\" preserveAspectRatio=\"none\" role=\"img\">\(bar)</svg>"),
                    .text("\(line.passed) of \(line.count)"), .html("<span class=\"soft\">\(interval)</span>"),
                ]
            }, id: "shares")
    }

    /// How many samples took how long.
    private var times: String {
        let longest = max(samples.map(\.plausibleSeconds).max() ?? 0, 0.001)
        let count = 40
        var bins = Array(repeating: 0, count: count)
        for sample in samples { bins[Int(min(sample.plausibleSeconds / longest, 0.999) * Double(count))] += 1 }
        let highest = max(bins.max() ?? 1, 1)
        let bars = bins.enumerated().map { index, bin in
            let height = 80.0 * Double(bin) / Double(highest)
            return "<rect x=\"\(index * 18)\" y=\"\(String(format: "%.1f", 90 - height))\" width=\"16\" "
                + "height=\"\(String(format: "%.1f", height))\" fill=\"var(--ok)\"/>"
        }
        return "<svg id=\"times\" viewBox=\"0 0 718 90\" preserveAspectRatio=\"none\" role=\"img\">\(bars.joined())</svg>"
            + "<div class=\"ends soft\"><span>0 s</span><span>\(String(format: "%.1f", longest)) s</span></div>"
    }

    private func changes(_ comparison: EvaluationComparison) -> String {
        let rows = comparison.changes.map { change -> [Page.Cell] in
            [
                .html(change.id.xmlEscaped),
                .html("<span class=\"\(change.isBetter ? "ok" : "bad")\">\(change.isBetter ? "better" : "worse")</span>"),
                .html("<pre>\(change.before.xmlEscaped)</pre>"), .html("<pre>\(change.after.xmlEscaped)</pre>"),
            ]
        }
        let layers = comparison.layerChanges.map { change -> [Page.Cell] in
            [.html(change.id.xmlEscaped), "stopped by", .html(change.before.xmlEscaped), .html(change.after.xmlEscaped)]
        }
        return Page.table(titles: ["sample", "", "before", "now"], rows + layers, id: "changes")
    }

    private func table(_ risks: RiskTable) -> String {
        let rows = risks.rows.map { $0.map { Page.Cell.html($0.xmlEscaped) } }
        return "<pre>\(risks.before.xmlEscaped)</pre>\(Page.table(titles: risks.columns.map(\.withoutControls), rows))"
            + "<pre>\(risks.after.xmlEscaped)</pre>"
    }

    private var rows: String {
        samples.map { sample in
            let checks = sample.checks.map { check in
                let (style, mark) = check.passes.map { $0 ? ("ok", "✓") : ("bad", "✗") } ?? ("", "·")
                let score = check.passes == nil ? check.score.map { String(format: " %.3f", $0) } ?? "" : ""
                return "<div class=\"\(style)\">\(mark) \(check.name.xmlEscaped)\(score) "
                    + "<span class=\"soft\">\((check.reason ?? "").xmlEscaped)</span></div>"
            }
            let errors = sample.errors.map { "<div class=\"bad\">\($0.xmlEscaped)</div>" }
            let instructions = sample.instructions.map { "<pre class=\"soft\">Instructions: \($0.xmlEscaped)</pre>" } ?? ""
            let calls = (sample.calls ?? []).map { call in
                "<pre class=\"soft\">called: \(call.text.xmlEscaped)\(call.output.map { " → \($0.xmlEscaped)" } ?? "")</pre>"
            }
            let layer = sample.layer.map { "<div class=\"soft\">stopped by: \($0.rawValue)</div>" } ?? ""
            let tokens = sample.outputTokens.map { "<div class=\"soft\">\($0) tokens</div>" } ?? ""
            return "<tr data-ok=\"\(sample.passes ? 1 : 0)\"><td>\(sample.title.xmlEscaped)"
                + "<div class=\"soft\">\((sample.class ?? "").xmlEscaped)</div>"
                + "<td>\(instructions)<b><pre>\(sample.prompt.xmlEscaped)</pre></b>\(calls.joined())"
                + "<pre>\((sample.response ?? "").xmlEscaped)</pre>\(layer)"
                + "<td>\((checks + errors).joined())<td>\(String(format: "%.2f", sample.seconds)) s\(tokens)</tr>"
        }.joined()
    }
}
