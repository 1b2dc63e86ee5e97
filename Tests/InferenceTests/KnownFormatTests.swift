import Foundation
import Testing

@testable import Inference

/// The formats of calls and of reasoning, and by what they are recognised.
struct KnownFormatTests {
    private struct Recorded: Decodable {
        struct Group: Decodable { var texts: [String]?, templates: [String] }
        var withoutTokens: [Group]
        var withAllTokens: [Group]
        var thinking: [Group]
    }

    /// All texts of a format.
    private func texts(_ format: ToolFormat) -> [String] {
        let arguments = format.arguments
        return [
            format.trigger, format.beforeName, format.afterName, arguments.opening("KEY"), arguments.textOpen,
            arguments.afterText, arguments.closing, arguments.separator, arguments.ending, format.afterArguments,
            format.betweenCalls ?? "", format.end, format.allowsSeveral ? "several" : "one",
        ]
    }

    /// The formats of 70 published templates, with a vocabulary that has none of the tokens, and one that has all.
    @Test(.enabled(if: ReferenceFiles.areThere))
    func publishedTemplates() throws {
        let recorded = try GoldenFile.load("formats", as: Recorded.self)
        func check(_ groups: [Recorded.Group], _ found: (String) -> [String]?) throws {
            for group in groups {
                for name in group.templates {
                    let file = ReferenceFiles.folder.appendingPathComponent("templates/\(name).jinja")
                    #expect(found(try String(contentsOf: file, encoding: .utf8)) == group.texts, "\(name)")
                }
            }
            #expect(groups.reduce(0) { $0 + $1.templates.count } == 70)
        }
        try check(recorded.withoutTokens) { ToolFormat(template: $0) { _ in false }.map(texts) }
        try check(recorded.withAllTokens) { ToolFormat(template: $0) { _ in true }.map(texts) }
        try check(recorded.thinking) { ThinkingFormat(template: $0).map { [$0.open, $0.close] } }
    }

    /// The marks of each entry lead to it, not to an earlier one.
    @Test func eachEntryIsFoundByEachOfItsMarks() {
        for known in ToolFormat.known {
            for marks in known.marks {
                let (text, tokens) = example(marks)
                #expect(ToolFormat(template: "tools" + text) { tokens.contains($0) } == known.format, "\(known.models)")
                #expect(ToolFormat(template: text) { tokens.contains($0) } == nil, "\(known.models) without tools")
            }
        }
        for known in ThinkingFormat.known {
            for marks in known.marks { #expect(ThinkingFormat(template: example(marks).text) == known.format, "\(known.models)") }
        }
        #expect(ToolFormat(template: "tools") { _ in false } == nil && ThinkingFormat(template: "") == nil)
    }

    /// A template that has the marks.
    private func example(_ marks: [FormatMark]) -> (text: String, tokens: Set<String>) {
        var (text, tokens) = ("", Set<String>())
        for mark in marks {
            switch mark {
            case .text(let part): text += " " + part
            case .token(let name): tokens.insert(name)
            }
        }
        return (text, tokens)
    }
}
