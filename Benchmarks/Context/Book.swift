import ArgumentParser
import ContextKit
import Foundation
import FoundationModels
import FoundationModelsGGUF

struct Book: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "book", abstract: "Splits a long text into chunks and measures time and memory.")

    @Option(help: "A GGUF file.") var model: String
    @Option(help: "Number of pages of about 2,500 characters.") var pages = 1_000
    @Option(help: "Maximum number of tokens of a chunk.") var chunk = 3_000

    func run() async throws {
        let model = GGUFLanguageModel(url: URL(filePath: model), checksText: false)
        let file = FileManager.default.temporaryDirectory.appending(path: "book-\(UUID().uuidString).txt")
        defer { try? FileManager.default.removeItem(at: file) }  // a file that remains is removed by the system
        try Data().write(to: file)
        let handle = try FileHandle(forWritingTo: file)
        for page in 0..<pages {
            let text = (0..<32).map { "On page \(page) sentence \($0) tells of a ship, a storm and the \($0 * page)th wave. " }
            try handle.write(contentsOf: Data((text.joined() + "\n\n").utf8))
        }
        try handle.close()
        _ = try await model.tokenCount(for: [.prompt(.init(segments: [.text(.init(content: "x"))]))])
        let before = Memory.residentMegabytes
        let start = ContinuousClock.now
        var chunks = 0
        var peak = 0.0
        try await LongDocument(contentsOf: file).forEachChunk(of: chunk, overlap: 64, model: model) { _, _ in
            chunks += 1
            peak = max(peak, Memory.residentMegabytes)
        }
        let time = start.duration(to: .now).components
        let size = try FileManager.default.attributesOfItem(atPath: file.path)[.size] as? Int ?? 0
        print(
            String(
                format: "%d pages, %.1f MB: %d chunks of at most %d tokens in %.1f s, %.1f MB of memory in addition to the model",
                pages, Double(size) / 1e6, chunks, chunk,
                Double(time.seconds) + Double(time.attoseconds) * 1e-18, peak - before))
    }
}

enum Memory {
    /// Resident memory of this process in megabytes; 0 on systems other than Linux, which have no /proc.
    static var residentMegabytes: Double {
        guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8),
            let pages = Double(text.split(separator: " ")[1])
        else { return 0 }
        return pages * 4096 / 1_048_576
    }
}
