import ArgumentParser
import Foundation
import Inference
import ModelTools

extension Model {
    struct Imatrix: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "imatrix",
            abstract: "Measure which columns of a model's matrices matter, for fm model quantize.",
            discussion: """
                The model reads texts like those that it will be used with; the mean square of what each column is multiplied with is \
                its importance. 50,000 tokens are enough. The file is a GGUF file as llama.cpp reads and writes them. An interrupted \
                run is continued with --resume.
                """)

        @Argument(help: "The model: a GGUF file, or an installed model.") var model: String
        @Argument(help: "Text files.") var texts: [String]
        @Option(name: .shortAndLong, help: "The file to write (default: the model's name, .imatrix.gguf).") var out: String?
        @Option(help: "The largest number of parts of 512 tokens that are read.") var chunks: Int?
        @Flag(help: "Add to the file, leaving out the parts that it was made of.") var resume = false

        func validate() throws {
            if let chunks, chunks < 1 { throw ValidationError("--chunks must be at least 1.") }
        }

        func run() async throws {
            let path = try Model.file(named: model)
            let url = URL(
                filePath: out ?? URL(filePath: path).deletingPathExtension().lastPathComponent + ".imatrix.gguf")
            try OutputFile.check(url.path, inputs: [path] + texts)
            do {
                let contents = try texts.map { try TextFile.read($0) }
                var start = ImportanceMatrix()
                if resume, FileManager.default.fileExists(atPath: url.path) {
                    start = try ImportanceMatrix(contentsOf: url)
                }
                let datasets = texts.map { URL(filePath: $0).lastPathComponent }
                if start.chunks > 0 { try start.check(GGUFFile(path: path), datasets: datasets) }
                start.datasets = datasets
                let limit = chunks ?? .max
                let (matrices, parts) = try await LongWork.run { [start] check in
                    let measurement = try TextMeasurement(path: path)
                    let windows = try measurement.requiredWindows(of: contents, limit: limit)
                    let line = ProgressLine("Reading", total: windows.count)
                    defer { line.end() }
                    var matrix = start
                    for (index, window) in windows.enumerated().dropFirst(start.chunks) {
                        do {
                            try measurement.collect(window, into: &matrix, isCancelled: { LongWork.isCancelled(check) })
                        } catch is CancellationError {
                            // What was read is kept.
                            try matrix.write(to: url)
                            throw CancellationError()
                        }
                        line.show(index + 1, text: "\(index + 1) of \(windows.count) parts")
                        if (index + 1) % Self.partsBetweenFiles == 0 { try matrix.write(to: url) }
                    }
                    try matrix.write(to: url)
                    return (matrix.columns.count, matrix.chunks)
                }
                Message.say("\(matrices) matrices, \(parts) parts of \(TextMeasurement.usualWindow) tokens")
                print(url.path)
            } catch is CancellationError {
                throw CommandFailure("Stopped. The same command with --resume continues.", code: .interrupted)
            }
        }

        private static let partsBetweenFiles = 20
    }
}

extension TextMeasurement {
    /// The parts of texts that are read.
    ///
    /// - Throws: `ValidationError` if there is none.
    func requiredWindows(of texts: [String], limit: Int) throws -> [[TokenID]] {
        let windows = windows(of: texts, limit: limit)
        if windows.isEmpty { throw ValidationError("The text has fewer than \(Self.usualWindow) tokens.") }
        return windows
    }
}
