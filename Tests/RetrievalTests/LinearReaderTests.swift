import TestSupport
import Testing
import TextSearch

@testable import Retrieval

/// Documents come from anywhere: no text makes a reader's work grow with the square of its length.
@Suite struct LinearReaderTests {
    static let units = [
        "a", "a ", " ", "\n", "\n\n", ".", "a. ", "Mr. ", "1", "1. ", "1,", "漢", "。", "\u{301}", "🙂", "\"", "“", "(", "<", "<a",
        "<a b=",
        "<p>", "<div>", "</div>", "</p>", "<b>", "</b>", "<span>", "<li>", "<svg>", "<td>x", "<br>", "<pre> ", "&a", "<!--",
        "<script>", "<h1>x", "<table><tr><td>", "&", "&#", "&amp;", "#", "# a\n", "- a\n", "*",
        "[", "[a](",
        "![", "`", "```\n", "|", "|a|b|\n", ">", "> ", "\t", "\r", "\\", "___",
    ]

    @Test(arguments: units) func formats(unit: String) {
        for format in [ExtractedText.Format.plain, .markdown, .html, .code] {
            let ratio = Linearity.ratio(2_000) { count in
                _ = ExtractedText(String(repeating: unit, count: count), format: format)
            }
            #expect(ratio < Linearity.limit, "\(format)")
        }
    }

    /// Many open elements, and tags that look for one among them.
    @Test(
        "pages of many elements",
        arguments: [
            ("<div>", "</span>"), ("<p><b>", "</p>"), ("<div>", "<li></li>"), ("<b><div>", "</b>"), ("<svg><g>", "</x>"),
            ("<table><td>", "</table>"), ("<div>", "</h1>"), ("<x><svg>", "</x>"), ("<div>", "<dd>"), ("<table><tr>", "<td>"),
        ])
    func elements(open: String, end: String) {
        let ratio = Linearity.ratio(500) { count in
            _ = ExtractedText(String(repeating: open, count: count) + String(repeating: end, count: count), format: .html)
        }
        #expect(ratio < Linearity.limit)
    }

    @Test(arguments: units) func sentencesAndWords(unit: String) {
        let sentences = Linearity.ratio(2_000) { _ = TextUnits.sentences(of: String(repeating: unit, count: $0)) }
        #expect(sentences < Linearity.limit)
        let words = Linearity.ratio(4_000) {
            _ = SearchText.words(of: String(repeating: unit, count: $0), limit: .max, includesCommon: true)
        }
        #expect(words < Linearity.limit)
        let indexed = Linearity.ratio(2_000) { _ = SearchText.indexed(String(repeating: unit, count: $0)) }
        #expect(indexed < Linearity.limit)
    }

    /// A model may write anything as a statement.
    @Test(arguments: units) func statements(unit: String) {
        let ratio = Linearity.ratio(1_000) { count in
            let text = String(repeating: unit, count: count)
            let check = StatementCheck(question: text, passages: [(1, text)])
            _ = check.result(of: text, citing: 1)
            _ = CitedAnswer.cleaned(text)
        }
        #expect(ratio < Linearity.limit)
    }
}
