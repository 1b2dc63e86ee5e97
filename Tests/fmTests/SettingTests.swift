import Foundation
import ProcessSettings
import Testing

@Suite("variables of the environment") struct SettingTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    @Test("the page lists each variable once, with the sentence of the code") func page() throws {
        let page = try String(contentsOf: Self.root.appending(path: "Documentation/Environment.md"), encoding: .utf8)
        let rows = page.split(separator: "\n").filter { $0.hasPrefix("| `") }
        let expected = Setting.allCases.map { "| `\($0.rawValue)` | \($0.meaning) |" }
        #expect(rows.count == expected.count)
        for (row, beginning) in zip(rows, expected) { #expect(row.hasPrefix(beginning), "\(row)") }
        for row in rows { #expect(row.split(separator: "|").count == 5, "\(row)") }
    }

    @Test("“fm --help” lists each variable") func help() throws {
        let help = try CommandTests().fm(["--help"]).output
        for setting in Setting.allCases { #expect(help.contains("  \(setting.rawValue) ") && help.contains(setting.meaning)) }
    }

    @Test("no other code reads the environment of the process") func onlyReader() throws {
        let sources = Self.root.appending(path: "Sources")
        let files = try #require(FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil))
        var readers: Set<String> = []
        for case let file as URL in files where ["swift", "c", "h"].contains(file.pathExtension) {
            let text = try String(contentsOf: file, encoding: .utf8)
            if text.contains(/processInfo\.environment|getenv\s*\(/) { readers.insert(file.lastPathComponent) }
        }
        #expect(readers == ["Setting.swift"])
    }

    @Test("an empty variable is not set") func values() {
        #expect(Setting.model.value(in: ["FM_MODEL": "small"]) == "small")
        #expect(Setting.model.value(in: ["FM_MODEL": ""]) == nil && Setting.model.value(in: [:]) == nil)
    }
}
