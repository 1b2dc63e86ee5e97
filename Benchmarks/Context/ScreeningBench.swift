import ArgumentParser
import Foundation
import FoundationModels
import Safety

/// The speed of the checks of texts: deny lists beside `grep -F -i -w`, and the guardrail.
struct ScreeningBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "screening", abstract: "Speed of deny lists and the guardrail.")

    @Argument(help: "A text file of several megabytes.")
    var text: String

    @Option(help: "The number of terms.")
    var terms = 1_000

    private static let repetitions = 5

    func run() async throws {
        let data = try Data(contentsOf: URL(filePath: text))
        let text = String(decoding: data, as: UTF8.self)
        // Rare words of the text itself, so that there is something to find, and words that do not occur.
        let words = Dictionary(text.lowercased().split { !$0.isLetter }.map { (String($0), 1) }, uniquingKeysWith: +)
        let known = words.filter { $0.value < 5 && $0.key.count > 5 && $0.key.allSatisfy(\.isASCII) }.keys.sorted()
        let chosen = (0..<terms).map { index in
            index.isMultiple(of: 2) && !known.isEmpty ? known[index * 7919 % known.count] : "absent\(index)word"
        }
        let list = try DenyList(terms: Array(Set(chosen)).sorted())
        let clock = ContinuousClock()
        func best(_ body: () throws -> Void) rethrows -> Double {
            try (0..<Self.repetitions).map { _ in try clock.measure(body) / .seconds(1) }.min() ?? 0
        }
        var count = 0
        let own = best { count = list.occurrences(in: text).count }
        let megabytes = Double(data.count) / 1e6
        print(String(format: "deny list, %d terms: %.1f MB/s, %d found", list.terms.count, megabytes / own, count))

        let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try Data(list.terms.joined(separator: "\n").utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }  // a leftover in the temporary folder is harmless
        let grep = try best {
            let process = Process()
            process.executableURL = URL(filePath: "/usr/bin/env")
            process.arguments = ["grep", "-F", "-i", "-w", "-c", "-f", file.path, self.text]
            process.standardOutput = FileHandle.nullDevice
            try process.run()
            process.waitUntilExit()
        }
        print(String(format: "grep -F -i -w (without other spellings): %.1f MB/s", megabytes / grep))

        // Prompts of 1,000 characters, one after the other.
        let parts = stride(from: 0, to: min(text.count, 1_000_000) - 1_000, by: 1_000).map { start in
            let begin = text.index(text.startIndex, offsetBy: start)
            return String(text[begin..<text.index(begin, offsetBy: 1_000)])
        }
        let classifier = BuiltInGuardrailClassifier()
        let guardrail = best { for part in parts { classifier.measure(part) } }
        let denied = best { for part in parts { _ = list.occurrences(in: part) } }
        print(
            String(
                format: "1,000 characters: guardrail %.1f µs, deny list %.1f µs, together %.1f µs",
                guardrail / Double(parts.count) * 1e6,
                denied / Double(parts.count) * 1e6, (guardrail + denied) / Double(parts.count) * 1e6))
    }
}

extension BuiltInGuardrailClassifier {
    /// What a request does for its prompt.
    fileprivate func measure(_ text: String) { _ = Guardrail.violation(in: text, threshold: Guardrail.promptThreshold) }
}
