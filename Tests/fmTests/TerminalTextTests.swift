import Testing
import Reports

@testable import fm

@Suite("text on terminals") struct TerminalTextTests {
    @Test("cells of wide characters, emoji and marks")
    func widths() {
        for (text, width) in [
            ("abc", 3), ("日本語", 6), ("한국", 4), ("ｶﾅ", 2), ("👩‍👩‍👧", 2), ("🇩🇪", 2), ("☀️", 2), ("☀", 1), ("e\u{301}", 1), ("é", 1),
            ("", 0),
            ("\u{200D}", 0), ("か\u{3099}", 2), ("… — │", 5),
        ] {
            #expect(TerminalText.width(text) == width, "\(text)")
        }
        #expect(TerminalText.prefix("日本語", cells: 5) == "日本" && TerminalText.padded("日", cells: 4) == "日  ")
        #expect(TerminalText.expandingTabs("日\ta\tb") == "日      a       b")
    }

    @Test("text of files and models does not control the terminal")
    func controls() {
        #expect(TerminalText.safe("a\u{1B}[31m\u{9B}2J\u{7}\r\nb\tc\rd\r") == "a [31m 2J \nb\tc d ")
        #expect(TerminalText.line("a\r\nb\tc\u{1B}]0;x\u{7}") == "a b c ]0;x ")
    }

    @Test("text of files and models does not change the direction of what a terminal shows")
    func directions() {
        for scalar in ["\u{61C}", "\u{200E}", "\u{200F}", "\u{202A}", "\u{202E}", "\u{2066}", "\u{2069}", "\u{206A}", "\u{206F}"]
        {
            #expect(TerminalText.safe("a\(scalar)b") == "ab" && TerminalText.line("a\(scalar)b") == "ab")
        }
        // A family, a flag of tags, a heart in colour, a half form of Persian and a ligature that Sinhala needs.
        for text in ["👨‍👩‍👧", "🏴\u{E0067}\u{E0062}\u{E007F}", "❤\u{FE0F}", "می\u{200C}خواهم", "ක්\u{200D}ෂ"] {
            #expect(TerminalText.safe(text).unicodeScalars.elementsEqual(text.unicodeScalars), "\(text)")
        }
    }

    @Test("the columns of a table have the same number of cells in each line")
    func columns() {
        let texts = [
            "日本語の文章は単語の間に空白がないので、どこでも改行できます。\n\tx\ty", "plain text, and 👍🏽 and a\u{1B}[2Jb " + String(repeating: "w", count: 70),
        ]
        let lines = AnswerTable.lines(texts.map { .init(title: "t", text: $0, facts: "f") }, width: 80)
        #expect(lines.allSatisfy { TerminalText.width($0) == 38 + 3 + 38 && !$0.contains("\u{1B}") }, "\(lines)")
        #expect(AnswerTable.wrapped("日本", 1) == ["日", "本", ""])
    }
}
