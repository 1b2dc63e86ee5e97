import Foundation
import Testing

#if canImport(FoundationXML)
import FoundationXML
#endif

@testable import EvaluationCore

@Suite("evaluation reports") struct EvaluationReportTests {
    @Test("intervals and probabilities have known values")
    func statistics() {
        let interval = EvaluationStatistics.interval(8, of: 10)
        #expect(abs(interval.lowerBound - 0.4902) < 0.0005 && abs(interval.upperBound - 0.9433) < 0.0005)
        #expect(EvaluationStatistics.interval(0, of: 0) == 0...1)
        #expect(abs(EvaluationStatistics.signTest(better: 1, worse: 9) - 0.02148) < 0.0001)
        #expect(
            EvaluationStatistics.signTest(better: 0, worse: 0) == 1 && EvaluationStatistics.signTest(better: 3, worse: 3) == 1)
        let paired = EvaluationStatistics.interval(ofDifferences: [1, 1, -1, 0, 0, 0, 0, 0, 0, 0])
        #expect(abs(paired.lowerBound + 0.2399) < 0.001 && abs(paired.upperBound - 0.4066) < 0.001)
    }

    @Test("runs are compared by sample")
    func comparison() {
        func entry(
            _ id: String, passes: Bool, seed: UInt64? = nil, prompt: String? = nil, layer: SampleResult.Layer? = nil
        ) -> SampleResult { .test(id, passes: passes, seed: seed, prompt: prompt, layer: layer) }
        func compare(_ before: [SampleResult], _ after: [SampleResult]) -> EvaluationComparison {
            EvaluationResult(test: after).comparison(with: EvaluationResult(test: before))
        }
        let simple = compare(
            [entry("a", passes: true), entry("b", passes: false), entry("c", passes: true)],
            [entry("a", passes: true), entry("b", passes: true), entry("d", passes: true)])
        #expect(simple.common == 2 && simple.better == 1 && simple.worse == 0 && simple.passedBefore == 1 && simple.skipped == 1)
        #expect(simple.layerChanges.map(\.before) == ["refusal"] && simple.layerChanges.map(\.after) == ["answered"])
        #expect(simple.heading == "Compared with d with m (s), 2026-01-01 00:00 UTC")
        // Several seeds of a sample are one observation.
        let seeds: [UInt64] = Array(1...8)
        let seeded = compare(
            seeds.map { entry("a", passes: false, seed: $0) }, seeds.map { entry("a", passes: $0 > 1, seed: $0) })
        #expect(seeded.common == 1 && seeded.changes.map(\.id) == ["a"] && seeded.probability == 1)
        #expect(seeded.difference == 0.875)
        // Samples without ids are found again after a line was inserted.
        let moved = compare(
            [entry("line 9", passes: true, prompt: "x"), entry("line 10", passes: false, prompt: "x")],
            [entry("line 10", passes: true, prompt: "x"), entry("line 11", passes: true, prompt: "x")])
        #expect(moved.common == 2 && moved.better == 1 && moved.changes.map(\.id) == ["line 11"])
        // An error before is a result that counts.
        #expect(compare([entry("a", passes: false, layer: .error)], [entry("a", passes: true)]).better == 1)
    }

    @Test("reports are well-formed and complete")
    func reports() throws {
        var entries: [SampleResult] = [
            .test("b", passes: false, class: "one"), .test("a", passes: true, class: "one"), .test("c", passes: true),
        ]
        entries[0].calls = [.init(name: "weather", arguments: "{\"city\":\"Rome\"}", output: "sunny")]
        entries[0].instructions = "Be brief."
        let result = EvaluationResult(test: entries)
        let report = EvaluationReport(result, comparedWith: result, risks: "| a <b> |")
        #expect(report.total.passed == 2 && report.classes.map(\.count) == [2] && report.samples.map(\.id) == ["a", "b", "c"])
        #expect(report.text.contains("contains: It does not <contain> it.") && report.text.contains("| a <b> |"))
        #expect(report.text.hasSuffix("\n2 of 3 passed (66.7 %); required: 100 %: failed\n"))
        #expect(try JSONSerialization.jsonObject(with: report.json()) is [String: Any])
        #expect(try String(decoding: report.json(), as: UTF8.self).contains("\"name\" : \"weather\""))
        for text in [report.junitXML, report.html] {
            #expect(!text.contains("<prompt>") && text.contains("&lt;prompt&gt; &amp; &quot;"))
            #expect(!text.contains("\u{1}") && !text.contains("http"))
        }
        #expect(report.html.contains("called: weather({&quot;city&quot;:&quot;Rome&quot;}) → sunny"))
        #expect(report.junitXML.contains("tests=\"3\" failures=\"1\""))
        let seeded = EvaluationReport(EvaluationResult(test: [.test("a", passes: true, seed: 7)]))
        #expect(seeded.html.contains("a (seed 7)"))
    }

    @Test("the report shows a few failures of each class, the dangerous ones first, and nothing that controls terminals")
    func failures() {
        let entries =
            (1...12).map { SampleResult.test("line \($0)", passes: false, class: "colours\u{1B}[31m") }
            + [.test("u", passes: false, class: "unsafe")]
        var lines = EvaluationReport(EvaluationResult(test: entries)).text.split(separator: "\n")
        #expect(!lines.contains { $0.contains("\u{1B}") })
        lines = Array(lines.drop { $0 != "Failed:" }.dropFirst())
        let shown = lines.filter { !$0.hasPrefix("   ") }.prefix(5).map { $0.prefix { $0 != ":" } }
        #expect(
            shown == ["  u", "  line 1", "  line 2", "  line 3", "  … and 9 more in class colours [31m"], "\(shown)")
    }

    @Test("the table of risks is joined with the results of the classes")
    func risks() {
        let table = """
            # Risks

            | harm | tested by |
            |---|---|
            | invents \\| omits | class "one", class "two" |
            | other | a person |

            The end.
            """
        let report = EvaluationReport(
            EvaluationResult(test: [.test("a", passes: true, class: "one"), .test("b", passes: false, class: "one")]),
            risks: table)
        #expect(report.risks?.columns == ["harm", "tested by", "result"])
        #expect(
            report.risks?.rows == [
                [
                    "invents | omits", "class \"one\", class \"two\"", "1 of 2 passed; there is no class “two” in this run",
                ], ["other", "a person", ""],
            ])
        #expect(report.text.contains("# Risks\n\n| harm | tested by | result |\n|---|---|---|\n| invents \\| omits |"))
        #expect(report.html.contains("<th>result") && report.html.contains("The end."))
    }

    @Test("JUnit XML is well-formed whatever the texts contain, and has a test case for each sample and seed")
    func junit() throws {
        var failed = SampleResult.test(
            "b ]]> \u{0}\u{1B}\u{FFFF} 🙂", passes: false, seed: 1, class: "<\"class'>", prompt: "a & b\n<c>")
        failed.errors = ["An <error>."]
        let result = EvaluationResult(test: [.test("a", passes: true), failed])
        let reader = JUnitReader()
        let parser = XMLParser(data: Data(EvaluationReport(result).junitXML.utf8))
        parser.delegate = reader
        #expect(parser.parse(), "\(String(describing: parser.parserError))")
        #expect(reader.names == ["a", "b ]]>  🙂 (seed 1)"] && reader.classes == ["d", "<\"class'>"])
        #expect(reader.messages == ["contains: It does not <contain> it.; An <error>."])
        #expect(reader.text.trimmingCharacters(in: .whitespacesAndNewlines) == "a & b\n<c>\n\nanswer")
    }

    private final class JUnitReader: NSObject, XMLParserDelegate {
        var names: [String] = []
        var classes: [String] = []
        var messages: [String] = []
        var text = ""

        func parser(
            _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
            attributes: [String: String] = [:]
        ) {
            if name == "testcase" {
                names.append(attributes["name"] ?? "")
                classes.append(attributes["classname"] ?? "")
            }
            if name == "failure" { messages.append(attributes["message"] ?? "") }
        }

        func parser(_ parser: XMLParser, foundCharacters string: String) { text += string }
    }

    @Test("checks that have only scores, and samples whose feature failed, are in all forms of a report")
    func scores() throws {
        var scored = SampleResult.test("a", passes: true)
        scored.checks = [.init(Metric("Length").scoring(4)), .init(Metric("Tone").ignore())]
        var failed = SampleResult(prompt: "p")
        (failed.id, failed.layer, failed.detail) = ("b", .error, "no network")
        failed.errors = ["The feature failed: no network"]
        let report = EvaluationReport(EvaluationResult(test: [scored, failed]))
        #expect(report.checks.map(\.score) == [4, nil] && report.checks.map(\.count) == [0, 0])
        #expect(report.text.contains("Length          mean 4.000") && report.text.contains("The feature failed: no network"))
        #expect(report.html.contains("· Length 4.000") && report.html.contains("The feature failed: no network"))
        #expect(report.junitXML.contains("failures=\"1\"") && report.total.layers == ["error": 1])
    }

    @Test("times that a file cannot have do not end a report")
    func implausibleTimes() throws {
        let folder = try Folder()
        let sample = #"{"id":"a","prompt":"p","response":"r","checks":[],"started":"2026-01-01T00:00:00Z","seconds":"#
        let file = try folder.write(
            "run.jsonl",
            "{\"dataset\":\"d\"}\n"
                + [#""NaN"}"#, #""Infinity"}"#, "-1}", "1e300}"].enumerated().map {
                    sample.replacing("\"a\"", with: "\"\($0)\"") + $1 + "\n"
                }.joined())
        let result = try EvaluationResult(contentsOfRun: file)
        #expect(result.samples.count == 4 && result.duration == 0 && EvaluationReport(result).html.contains("4 of 4"))
        _ = try result.jsonData()
        withExtendedLifetime(folder) {}
    }
}
