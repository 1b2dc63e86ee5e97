import Foundation

extension EvalReport {
    /// The report as one HTML page that needs no network: plots by class, times, and every sample.
    var html: String {
        """
        <!doctype html>
        <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
        <title>\(Self.xml(header.dataset))</title><style>
        :root { color-scheme: light dark; --ok: #2a9d5c; --bad: #d1495b; --soft: #8884; }
        body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
        h1 { font-size: 1.4rem; margin-bottom: 0 } h2 { font-size: 1.1rem; margin-top: 2rem } .soft { opacity: .7 }
        table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .3rem .6rem; vertical-align: top }
        tr { border-bottom: 1px solid var(--soft) } pre { white-space: pre-wrap; margin: .3rem 0; font: inherit; overflow-wrap: anywhere }
        #samples td:first-child, #samples td:last-child, #shares td { white-space: nowrap }
        #shares td:nth-child(2) { width: 100% } #shares svg { width: 100%; height: 20px; display: block }
        #changes { table-layout: fixed } #changes th:first-child { width: 14% } #changes th:nth-child(2) { width: 9% }
        #changes td { overflow-wrap: anywhere }
        #times { width: 100%; height: 100px; display: block } .ends { display: flex; justify-content: space-between }
        @media (max-width: 45rem) {
          #samples tr, #samples td { display: block } #samples tr[hidden], #samples th { display: none }
          #samples td:first-child, #samples td:last-child { white-space: normal }
          #changes th:first-child, #changes th:nth-child(2) { width: 18% }
        }
        .ok { color: var(--ok) } .bad { color: var(--bad) }
        input { font: inherit; padding: .3rem .5rem; width: 20rem; max-width: 100%; box-sizing: border-box } label { margin-left: 1rem }
        </style></head><body>
        <h1>\(Self.xml(header.dataset))</h1>
        <p class="soft">\(Self.xml(header.heading))</p>
        <p class="\(isPassed ? "ok" : "bad")"><b>\(Self.xml(verdict))</b></p>
        <p>Sum of the times of all answers, which may overlap: \(String(format: "%.0f", seconds)) s.</p>
        \(comparison.map { "<p>\(Self.xml($0.heading))<br>\(Self.xml($0.conclusion))</p>" } ?? "")
        <h2>Passed, with 95 % intervals</h2>\(shares)
        <h2>Answers by their time</h2>\(times)
        <h2>Checks</h2><table><tr><th>check<th>passed<th>mean score</tr>\(checkRows)</table>
        \(comparison.map { changes($0) } ?? "")
        \(risks.map { "<h2>Risks</h2>\(table($0))" } ?? "")
        <h2>Samples</h2>
        <p><input id="find" placeholder="find in prompts and answers"><label><input type="checkbox" id="only" \
        style="width:auto"> failed only</label></p>
        <table id="samples"><tr><th>sample<th>prompt and answer<th>checks<th>time</tr>\(rows)</table>
        <script>
        const find = document.getElementById("find"), only = document.getElementById("only");
        function show() {
          const text = find.value.toLowerCase();
          for (const row of document.querySelectorAll("#samples tr[data-ok]"))
            row.hidden = (only.checked && row.dataset.ok == "1") || !row.textContent.toLowerCase().includes(text);
        }
        find.oninput = only.onchange = show;
        </script></body></html>

        """
    }

    /// A bar for each class, with its interval.
    private var shares: String {
        let rows = (classes + [total]).map { line in
            let x = { (share: Double) in String(format: "%.1f", share * 500) }
            let bar =
                "<rect y=\"3\" width=\"500\" height=\"14\" fill=\"var(--soft)\"/>"
                + "<rect y=\"3\" width=\"\(x(line.share))\" height=\"14\" fill=\"var(--ok)\"/>"
                + "<line x1=\"\(x(line.low))\" x2=\"\(x(line.high))\" y1=\"10\" y2=\"10\" stroke=\"currentColor\" "
                + "stroke-width=\"2\"/>"
            let interval = String(format: "%.0f–%.0f %%", line.low * 100, line.high * 100)
            return "<tr><td>\(Self.xml(line.name))"
                + "<td><svg viewBox=\"0 0 500 20\" preserveAspectRatio=\"none\" role=\"img\">\(bar)</svg>"
                + "<td>\(line.passed) of \(line.count)<td class=\"soft\">\(interval)</tr>"
        }
        return "<table id=\"shares\">\(rows.joined())</table>"
    }

    /// How many samples took how long.
    private var times: String {
        let longest = max(entries.map(\.seconds).max() ?? 0, 0.001)
        let count = 40
        var bins = Array(repeating: 0, count: count)
        for entry in entries { bins[Int(min(max(0, entry.seconds / longest), 0.999) * Double(count))] += 1 }
        let highest = max(bins.max() ?? 1, 1)
        let bars = bins.enumerated().map { index, bin in
            let height = 80.0 * Double(bin) / Double(highest)
            return "<rect x=\"\(index * 18)\" y=\"\(String(format: "%.1f", 90 - height))\" width=\"16\" "
                + "height=\"\(String(format: "%.1f", height))\" fill=\"var(--ok)\"/>"
        }
        return "<svg id=\"times\" viewBox=\"0 0 718 90\" preserveAspectRatio=\"none\" role=\"img\">\(bars.joined())</svg>"
            + "<div class=\"ends soft\"><span>0 s</span><span>\(String(format: "%.1f", longest)) s</span></div>"
    }

    private var checkRows: String {
        checks.map { check in
            "<tr><td>\(Self.xml(check.name))<td>\(check.passed) of \(check.count)"
                + "<td>\(check.score.map { String(format: "%.3f", $0) } ?? "")</tr>"
        }.joined()
    }

    private func changes(_ comparison: EvalComparison) -> String {
        let rows = comparison.changes.map { change in
            "<tr><td>\(Self.xml(change.id))<td class=\"\(change.isBetter ? "ok" : "bad")\">\(change.isBetter ? "better" : "worse")"
                + "<td><pre>\(Self.xml(change.before))</pre><td><pre>\(Self.xml(change.after))</pre></tr>"
        }
        let layers = comparison.layerChanges.map { change in
            "<tr><td>\(Self.xml(change.id))<td>stopped by<td>\(Self.xml(change.before))<td>\(Self.xml(change.after))</tr>"
        }
        return "<h2>Changes</h2><table id=\"changes\"><tr><th>sample<th><th>before<th>now</tr>\((rows + layers).joined())</table>"
    }

    private func table(_ risks: EvalRisks) -> String {
        func row(_ cells: [String], _ tag: String) -> String {
            "<tr>" + cells.map { "<\(tag)>\(Self.xml($0))" }.joined() + "</tr>"
        }
        let table =
            risks.columns.isEmpty
            ? "" : "<table>\(row(risks.columns, "th"))\(risks.rows.map { row($0, "td") }.joined())</table>"
        return "<pre>\(Self.xml(risks.before))</pre>\(table)<pre>\(Self.xml(risks.after))</pre>"
    }

    private var rows: String {
        entries.map { entry in
            let checks = entry.checks.map { check in
                "<div class=\"\(check.passes ? "ok" : "bad")\">\(check.passes ? "✓" : "✗") \(Self.xml(check.name)) "
                    + "<span class=\"soft\">\(Self.xml(check.reason ?? ""))</span></div>"
            }
            let instructions = entry.instructions.map { "<pre class=\"soft\">Instructions: \(Self.xml($0))</pre>" } ?? ""
            let calls = (entry.calls ?? []).map { call in
                "<pre class=\"soft\">called: \(Self.xml(call.text))\(call.output.map { " → \(Self.xml($0))" } ?? "")</pre>"
            }
            let layer = entry.layer.map { "<div class=\"soft\">stopped by: \($0.rawValue)</div>" } ?? ""
            return
                "<tr data-ok=\"\(entry.passes ? 1 : 0)\"><td>\(Self.xml(entry.title))<div class=\"soft\">\(Self.xml(entry.class ?? ""))</div>"
                + "<td>\(instructions)<b><pre>\(Self.xml(entry.prompt))</pre></b>\(calls.joined())"
                + "<pre>\(Self.xml(entry.response))</pre>\(layer)"
                + "<td>\(checks.joined())<td>\(String(format: "%.2f", entry.seconds)) s<div class=\"soft\">\(entry.outputTokens) tokens</div></tr>"
        }.joined()
    }
}
