import Embeddings
import EvaluationCore
import Foundation
import FoundationModels
import Safety
import TestSupport
import Testing

@testable import TextClassification

/// Training, files and uses, with texts made from lists of words.
@Suite struct TextClassifierTests {
    private static let words: [(label: String, words: [String])] = [
        ("garden", ["tulip", "spade", "compost", "hedge", "seedling", "rake", "lawn", "greenhouse"]),
        ("kitchen", ["saucepan", "oven", "whisk", "recipe", "flour", "simmer", "knife", "butter"]),
        ("traffic", ["junction", "lorry", "motorway", "tram", "cyclist", "crossing", "roundabout", "diesel"]),
    ]

    private static func data(_ count: Int, several: Bool = false, classes: Int = 3) -> LabelledTexts {
        var random = SeededGenerator(7)
        return LabelledTexts(
            (0..<count).map { index in
                let first = words[index % classes]
                let second = words[(index / 2) % classes]
                let chosen = several && first.label != second.label ? [first, second] : [first]
                let text =
                    chosen.flatMap { item in (0..<4).map { _ in item.words[Int.random(in: item.words.indices, using: &random)] } }
                    + ["the", "and", "of"]
                return .init(text: text.shuffled(using: &random).joined(separator: " "), labels: chosen.map(\.label))
            })
    }

    private static func options(_ features: TextClassifier.Features? = .words) -> ClassifierOptions {
        var options = ClassifierOptions()
        (options.features, options.embedder) = (features, nil)
        return options
    }

    @Test("[H3] a classifier learns, says how sure it is, and is the same after being written", arguments: [2, 3])
    func learns(_ classes: Int) async throws {
        let (classifier, report) = try await TextClassifier.train(Self.data(90, classes: classes), options: Self.options(nil))
        #expect(report.accuracy > 0.95 && report.baseline < 0.6 && report.count == 90 && !report.isSeparate)
        #expect(report.confusion.flatMap { $0 }.reduce(0, +) == 90 && report.candidates.count == 6)
        #expect(report.learningCurve.count == 4 && report.calibrationError < 0.2)
        let file = try TemporaryFile([])
        try classifier.write(to: URL(filePath: file.path))
        let read = try TextClassifier(contentsOf: URL(filePath: file.path))
        #expect(read.labels == Self.words.prefix(classes).map(\.label).sorted())
        for (text, label) in [("a rake and a tulip", "garden"), ("Butter and FLOUR, then simmer", "kitchen")] {
            let (one, other) = (try await classifier.predictions(for: text), try await read.predictions(for: text))
            #expect(one.first?.label == label && abs(one.reduce(0) { $0 + $1.probability } - 1) < 1e-9)
            for (one, other) in zip(one, other) {
                #expect(one.label == other.label && abs(one.probability - other.probability) < 1e-3)
            }
        }
        // Of a text without a known word, nothing is known.
        #expect(try await read.label(of: "zzz qqq", threshold: 0.9) == nil)
        #expect(try await read.label(of: "") != nil)
    }

    @Test("[H3] the same data gives the same file") func isDeterministic() async throws {
        var files: [Data] = []
        for _ in 0..<2 {
            let file = try TemporaryFile([])
            try await TextClassifier.train(Self.data(60), options: Self.options(nil)).classifier.write(
                to: URL(filePath: file.path))
            files.append(try Data(contentsOf: URL(filePath: file.path)))
        }
        #expect(files[0] == files[1])
    }

    @Test("[H3] texts with several labels") func severalLabels() async throws {
        let (classifier, report) = try await TextClassifier.train(Self.data(120, several: true), options: Self.options())
        #expect(classifier.hasSeveralLabels && report.macroF1 > 0.9 && report.confusion.isEmpty)
        #expect(Set(try await classifier.labels(of: "the tram and the oven, butter and diesel")) == ["kitchen", "traffic"])
        #expect(try await classifier.labels(of: "nothing of this", threshold: 0.9).isEmpty)
    }

    @Test("[H3] a test set of its own, and rare classes") func testSet() async throws {
        var options = Self.options()
        options.isBalanced = true
        let (_, report) = try await TextClassifier.train(Self.data(60), test: Self.data(9), options: options)
        #expect(report.isSeparate && report.count == 9 && report.accuracy > 0.8)
        await #expect(throws: ClassifierError.self) {
            try await TextClassifier.train(Self.data(60), test: LabelledTexts([.init("x", "other")]), options: options)
        }
    }

    @Generable enum Room: String { case garden, kitchen, traffic }

    @Test("[H3] a Generable label, a guardrail and an evaluator") func uses() async throws {
        let (classifier, _) = try await TextClassifier.train(Self.data(90), options: Self.options())
        #expect(try await classifier.label(of: "whisk and oven", as: Room.self) == .kitchen)
        let guardrail = TextClassifierGuardrail(classifier, unsafe: ["traffic"], subjects: [.prompt])
        let found = try await guardrail.assess("the tram at the junction", as: .prompt)
        #expect(found.isUnsafe && found.category == "traffic" && found.scores.count == 3)
        #expect(try await !guardrail.assess("a tulip on the lawn", as: .prompt).isUnsafe)
        #expect(try await !guardrail.assess("the tram at the junction", as: .response).isUnsafe)
        let evaluator = classifier.evaluator(Metric("gardens"), expecting: "garden", for: ModelSample<String>.self)
        let sample = ModelSample<String>(prompt: "?")
        for (answer, passes) in [("Use the spade and the rake.", true), ("Use the oven.", false)] {
            let subject = ModelSubject(value: answer)
            let metrics = try await evaluator.metrics(subject: subject, input: sample)
            #expect(metrics.count == 1 && (metrics[0].value == .passing) == passes)
        }
    }

    /// Vectors of two numbers by the first letter.
    private struct LetterModel: EmbeddingModel {
        var identifier = "letters"
        func info() async throws -> EmbeddingModelInfo {
            EmbeddingModelInfo(name: identifier, identifier: identifier, dimension: 2, maximumTokenCount: 100)
        }
        func embed(_ texts: [String], as role: EmbeddingRole) async throws -> [[Float]] {
            texts.map { $0.hasPrefix("a") ? [1, 0] : [0, 1] }
        }
        func tokenCounts(of texts: [String], as role: EmbeddingRole) async throws -> [Int] { texts.map(\.count) }
    }

    @Test("[H3] embeddings are chosen where they are better, and another model is refused") func embeddings() async throws {
        var options = Self.options(nil)
        options.embedder = LetterModel()
        let data = LabelledTexts((0..<40).map { .init("\($0 % 2 == 0 ? "a" : "b")\($0) q\($0)", $0 % 2 == 0 ? "even" : "odd") })
        let (classifier, report) = try await TextClassifier.train(data, options: options)
        #expect(classifier.features == .embeddings && report.accuracy == 1)
        let file = try TemporaryFile([])
        try classifier.write(to: URL(filePath: file.path))
        let read = try TextClassifier(contentsOf: URL(filePath: file.path), embedder: LetterModel())
        #expect(try await read.label(of: "aardvark") == "even")
        let other = try TextClassifier(contentsOf: URL(filePath: file.path), embedder: LetterModel(identifier: "other"))
        await #expect(throws: ClassifierError.self) { try await other.label(of: "aardvark") }
    }

    @Test("[H3] a damaged file is an error") func damagedFiles() async throws {
        let (classifier, _) = try await TextClassifier.train(Self.data(30), options: Self.options())
        let file = try TemporaryFile([])
        let url = URL(filePath: file.path)
        try classifier.write(to: url)
        let good = try Data(contentsOf: url)
        var random = SeededGenerator(11)
        var refused = 0
        for round in 0..<400 {
            var bad = good
            if round % 4 == 0 {
                bad = good.prefix(Int.random(in: 0..<good.count, using: &random))
            } else {
                for _ in 0..<(1 + round % 3) {
                    let place = Int.random(in: 0..<good.count / (round % 2 == 0 ? 1 : 20), using: &random)
                    bad[place] ^= UInt8(1 << Int.random(in: 0..<8, using: &random))
                }
            }
            try bad.write(to: url)
            do {
                // A weight may change; then it is a classifier still.
                _ = try await TextClassifier(contentsOf: url).predictions(for: "a rake and a tulip")
            } catch is ClassifierError {
                refused += 1
            }
        }
        #expect(refused > 100)
    }

    // MARK: - Data

    private func read(_ text: String, _ name: String, label: String? = nil) throws -> LabelledTexts {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // best effort
        let url = folder.appendingPathComponent(name)
        try Data(text.utf8).write(to: url)
        return try LabelledTexts(contentsOf: url, label: label)
    }

    @Test("[H3] CSV, TSV, JSON Lines and folders") func formats() throws {
        let table = try read("\u{FEFF}id,Text,label\r\n1,\"a, \"\"b\"\"\nc\",x\r\n2,plain,y\n", "a.csv")
        #expect(table.examples == [.init("a, \"b\"\nc", "x"), .init("plain", "y")])
        #expect(try read("text\tlabel\none\tx\ntwo\ty", "a.tsv").labels == ["x", "y"])
        let lines = try read("{\"text\": \"a\", \"label\": \"x\"}\n\n{\"text\": \"b\", \"labels\": [\"x\", \"y\"]}", "a.jsonl")
        #expect(lines.hasSeveralLabels && lines.examples[1].labels == ["x", "y"])
        // Line ends of other systems, numbers as labels, and marks after separators.
        let other = try read("{\"text\": \"a\", \"label\": 1}\r\n{\"text\": \"b\", \"label\": 2.5}\r\n", "a.jsonl")
        #expect(other.labels == ["1", "2.5"])
        #expect(
            try read("text,label\r\"\u{301}a, b\", x \rc,\u{301}y", "a.csv").examples == [
                .init("\u{301}a, b", "x"), .init("c", "\u{301}y"),
            ])
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }  // best effort
        for label in ["x", "y"] {
            let part = folder.appendingPathComponent(label)
            try FileManager.default.createDirectory(at: part, withIntermediateDirectories: true)
            try "text of \(label)".write(to: part.appendingPathComponent("1.txt"), atomically: true, encoding: .utf8)
        }
        #expect(try LabelledTexts(contentsOf: folder).examples == [.init("text of x", "x"), .init("text of y", "y")])
    }

    @Test(
        "[H3] data that cannot be used: the line, and what to do",
        arguments: [
            ("text,label\na,x\nb\n", "a.csv", "Line 3"), ("words,label\na,x\n", "a.csv", "no column is named text"),
            ("text,label\n\"a,x\n", "a.csv", "quotation mark"), ("{\"text\": \"a\"}", "a.jsonl", "--label"),
            ("{\"text\": 3}", "a.jsonl", "Line 1"), ("{", "a.jsonl", "not a JSON object"),
            ("text,label\na, b,x\n", "a.csv", "quotation marks"),
            ("text,label\na,\n", "a.csv", "no label"), ("", "a.csv", "no examples"),
        ])
    func badData(_ text: String, _ name: String, _ message: String) {
        #expect { try read(text, name) } throws: { ($0 as? ClassifierError)?.errorDescription?.contains(message) == true }
    }

    @Test("[H3] one class, or one text of a class, cannot be learned") func unsuitable() async throws {
        for examples in [[("a", "x"), ("b", "x")], [("a", "x"), ("b", "x"), ("c", "y")]] {
            await #expect(throws: ClassifierError.self) {
                try await TextClassifier.train(LabelledTexts(examples.map { .init($0.0, $0.1) }), options: Self.options())
            }
        }
    }

    @Test("[H3] a cancelled training ends") func cancellation() async throws {
        let task = Task { try await TextClassifier.train(Self.data(600), options: Self.options(nil)) }
        task.cancel()
        await #expect(throws: CancellationError.self) { _ = try await task.value }
    }
}
