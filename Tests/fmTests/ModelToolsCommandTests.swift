import Foundation
import FoundationModels
import Inference
import InstalledModels
import TestSupport
import Testing

@testable import fm

/// `fm model quantize`, `imatrix`, `compare`, `profile` and `import`, and `fm classify`, as a person or a script uses them.
struct ModelToolsCommandTests {
    private let commands = CommandTests()

    private final class Folder {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("tools-\(UUID().uuidString)")
        init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }
        deinit { try? FileManager.default.removeItem(at: url) }  // best effort
        func path(_ name: String) -> String { url.appendingPathComponent(name).path }
        var environment: [String: String] { ["XDG_DATA_HOME": url.path, "FM_EMBEDDER": "/none"] }
    }

    private func fm(_ folder: Folder, _ arguments: String..., input: String? = nil) throws -> CommandTests.Run {
        try commands.fm(arguments, input: input, environment: folder.environment)
    }

    @Test("[H1][H2] importance, quantising, comparing and a profile, with pages") func model() throws {
        let folder = try Folder()
        var tiny = TinyModel()
        tiny.context = 1024
        let model = try tiny.file()
        let text = String(repeating: "the thing in the hand of her on and an other ring\n", count: 120)
        try text.write(toFile: folder.path("text.txt"), atomically: true, encoding: .utf8)
        let measured = try fm(
            folder, "model", "imatrix", model.path, folder.path("text.txt"), "--chunks", "2", "-o", folder.path("i.gguf"))
        #expect(measured.status == 0 && measured.output.contains("i.gguf"), "\(measured.error)")
        let more = try fm(
            folder, "model", "imatrix", model.path, folder.path("text.txt"), "--chunks", "3", "-o", folder.path("i.gguf"),
            "--resume")
        #expect(more.status == 0 && more.error.contains("3 parts"))
        let quantized = try fm(
            folder, "model", "quantize", model.path, "q4_0", "-o", folder.path("q.gguf"), "--imatrix", folder.path("i.gguf"),
            "--tensor", "ffn_down=Q8_0")
        #expect(quantized.status == 0 && quantized.error.contains("Q8_0"), "\(quantized.error)")
        struct Comparison: Decodable { var tokens: Int, divergence: Double, sameToken: Double }
        let compared = try fm(
            folder, "model", "compare", model.path, folder.path("q.gguf"), "--text", folder.path("text.txt"), "--chunks", "2",
            "--json",
            "--html", folder.path("c.html"))
        let comparison = try JSONDecoder().decode(Comparison.self, from: Data(compared.output.utf8))
        #expect(compared.status == 0 && comparison.tokens > 400 && comparison.divergence > 0 && comparison.sameToken <= 1)
        let profiled = try fm(folder, "model", "profile", model.path, "--layers", "--html", folder.path("p.html"))
        #expect(
            profiled.status == 0 && profiled.output.contains("attn_q") && profiled.output.contains("head"), "\(profiled.error)")
        for page in ["c.html", "p.html"] {
            let html = try String(contentsOfFile: folder.path(page), encoding: .utf8)
            #expect(html.contains("<table") && !html.contains("http"))
        }
        let again = try fm(folder, "model", "quantize", folder.path("q.gguf"), "Q8_0", "-o", folder.path("r.gguf"))
        #expect(again.status == 64 && again.error.contains("--requantize"))
        #expect(try fm(folder, "model", "quantize", model.path, "Q9").status == 64)
        #expect(try fm(folder, "model", "quantize", model.path, "Q8_0", "--tensor", "x=Q9").status == 64)
        // What was asked for is done, or refused.
        let unfit = try fm(
            folder, "model", "quantize", model.path, "Q8_0", "--tensor", "attn_q=Q4_K", "-o", folder.path("u.gguf"))
        #expect(unfit.status == 64 && unfit.error.contains("blk.0.attn_q.weight has rows of 64"), "\(unfit.error)")
        let unused = try fm(
            folder, "model", "quantize", model.path, "Q8_0", "--tensor", "atn_q=Q8_0", "-o", folder.path("u.gguf"))
        #expect(unused.status == 64 && unused.error.contains("no matrix has such a name"), "\(unused.error)")
        #expect(!FileManager.default.fileExists(atPath: folder.path("u.gguf")))
        // A text that is too short is a wrong argument, not a model that cannot be used.
        try "short".write(toFile: folder.path("short.txt"), atomically: true, encoding: .utf8)
        for command in [
            ["imatrix", model.path, folder.path("short.txt")],
            ["compare", model.path, model.path, "--text", folder.path("short.txt")],
        ] {
            let run = try commands.fm(["model"] + command, environment: folder.environment)
            #expect(run.status == 64 && run.error.contains("fewer than 512 tokens"), "\(run)")
        }
        #expect(try fm(folder, "model", "compare", model.path, "/none.gguf").status == 64)
    }

    @Test("a model file that is damaged is named with the reason, and no advice to download another one")
    func damagedModel() throws {
        let folder = try Folder()
        try Data(TinyModel().builder().bytes().prefix(60_000)).write(to: URL(filePath: folder.path("cut.gguf")))
        let model = ["--model", folder.path("cut.gguf")]
        for command in [["available"], ["chat"], ["eval", "--safety", "--run", folder.path("run.jsonl")]] {
            let run = try commands.fm(command + model, environment: folder.environment)
            #expect(run.status == 3 && run.error.contains("cut.gguf") && run.error.contains("ends at byte 60000"), "\(run)")
            #expect(!run.error.contains("fm model pull"), "\(run)")
        }
        let missing = try commands.fm(["chat"], environment: folder.environment.merging(["FM_MODEL": "/nowhere.gguf"]) { $1 })
        #expect(missing.status == 3 && missing.error.components(separatedBy: "fm model pull").count == 2, "\(missing)")
    }

    @Test("values of two parts are merged by name and without repetition, in linear time") func mergedValues() throws {
        func merged(_ first: String, _ second: String) throws -> String {
            try Read.merged(GeneratedContent(json: first), GeneratedContent(json: second)).jsonString
        }
        let (first, second) = (#"{"a":[1,2],"b":"","c":{"d":1}}"#, #"{"c":{"d":2,"e":3},"a":[2,3,3],"b":"x"}"#)
        let expected = try GeneratedContent(json: #"{"a":[1,2,3,3],"b":"x","c":{"d":1,"e":3}}"#)
        #expect(try merged(first, second) == expected.jsonString)
        let ratio = try Linearity.ratio(250) { count in
            let lists = [0, count].map { start in "[\((start..<start + count).map { "\"\($0)\"" }.joined(separator: ","))]" }
            _ = try merged(lists[0], lists[1])
        }
        #expect(ratio < Linearity.limit)
    }

    @Test("[H3] a classifier from a table: train, report, lines in, labels out, none of them") func classify() throws {
        let folder = try Folder()
        let words = [("garden", "tulip spade hedge lawn rake"), ("kitchen", "oven whisk flour knife butter")]
        var table = "text,label\n"
        for index in 0..<60 {
            let (label, list) = words[index % 2]
            let parts = list.split(separator: " ")
            table += "\"the \(parts[index % 5]), and a \(parts[(index / 2) % 5])\",\(label)\n"
        }
        try table.write(toFile: folder.path("t.csv"), atomically: true, encoding: .utf8)
        let trained = try fm(
            folder, "classify", "train", folder.path("t.csv"), "--out", folder.path("t.classifier"), "--html",
            folder.path("t.html"))
        #expect(
            trained.status == 0 && trained.output.contains("accuracy") && trained.error.contains("60 texts"), "\(trained.error)")
        #expect(try String(contentsOfFile: folder.path("t.html"), encoding: .utf8).contains("id=\"confusion\""))
        let one = try fm(folder, "classify", folder.path("t.classifier"), "a tulip", "an oven")
        #expect(one.output.split(separator: "\n").map { $0.split(separator: "\t")[0] } == ["garden", "kitchen"])
        let lines = try fm(folder, "classify", folder.path("t.classifier"), "--json", input: "\u{FEFF}the rake\nflour\n")
        #expect(lines.output.contains("\"labels\":[\"garden\"]") && lines.output.contains("\"labels\":[\"kitchen\"]"))
        #expect(lines.output.contains("\"text\":\"the rake\""))
        #expect(try fm(folder, "classify", folder.path("t.classifier"), "--threshold", "0.999", "zzz").output.hasPrefix("none\t"))
        let empty = try fm(folder, "classify", folder.path("t.classifier"), "")
        #expect(empty.status == 64 && empty.output.isEmpty && empty.error.contains("is empty"))
        let wrong = try fm(folder, "classify", folder.path("t.csv"), "x")
        #expect(wrong.status == 1 && wrong.error.contains("no classifier"))
        #expect(try fm(folder, "classify", "train", folder.path("t.csv"), "--label", "colour").error.contains("no column"))
    }
}
