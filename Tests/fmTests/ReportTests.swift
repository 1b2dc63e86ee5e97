import Foundation
import Reports
import Testing

@Suite("tables and pages") struct ReportTests {
    @Test("columns are as wide as their widest cell, in cells of the terminal") func columns() {
        let table = TextTable(
            [.left("name"), .right("size"), .left()], indentation: "  ", rows: [["日本", "7", "wide"], ["two\nlines", "1000"]])
        #expect(table.lines() == ["  name       size", "  日本          7  wide", "  two lines  1000"])
        #expect(table.text() == table.lines().map { $0 + "\n" }.joined())
        #expect(TextTable(facts: [("a", "1"), ("bc", "2")]).lines() == ["a   1", "bc  2"])
    }

    @Test("lines that are too long are cut off, wide characters included") func widths() {
        let table = TextTable([.left()], rows: [["日本語の文章"], ["short"]])
        #expect(table.lines(width: 8) == ["日本語…", "short"])
        #expect(table.lines(width: 12) == ["日本語の文章", "short"])
    }

    @Test("a table that is written row by row keeps its columns") func rowByRow() {
        let table = TextTable([.left("task", minimum: 6), .right("tokens")])
        #expect([table.titles, table.row(["a", "7"])] == ["task    tokens", "a            7"])
    }

    @Test("text in a page is text") func escaping() {
        let hostile = "<script>alert('x')</script>"
        var page = Page(hostile)
        page.add(hostile, Page.paragraph(hostile, "soft"))
        page.add(Page.table(titles: [hostile], [["\(hostile)", .number(hostile), .name(hostile)]], id: "t"))
        page.add(Page.table(facts: [(hostile, hostile)]))
        page.add("bars", Chart.bars([(1, hostile, hostile)]))
        page.add("lines", Chart.lines([], x: 0...1, y: 0...1, ends: (hostile, hostile), label: { _ in hostile }))
        #expect(!page.html.contains("<script") && page.html.contains("&lt;script&gt;") && page.html.contains("<table id=\"t\">"))
        #expect(page.html.contains("color-scheme:light dark") && !page.html.contains("http"))
    }

    @Test("parts without contents are left out") func empty() {
        var page = Page("Title")
        page.add("Nothing", Page.table([]))
        #expect(!page.html.contains("Nothing") && !page.html.contains("<h2>"))
    }

    @Test("charts show what is a number, within their frame") func charts() {
        let line = Chart.Line([(0, 0), (.nan, 1), (1, 2)], colour: "red", hasDots: true)
        let svg = Chart.lines([line], x: 0...1, y: 0...2, ends: ("0", "1"), label: { "\($0)" })
        #expect(!svg.contains("nan") && svg.components(separatedBy: "<circle").count == 3)
        #expect(svg.contains("points=\"60.0,350.0 800.0,20.0\""), "\(svg)")
        #expect(Chart.share(2).contains("width=\"100.0\"") && Chart.share(-1).contains("width=\"0.0\""))
    }
}
