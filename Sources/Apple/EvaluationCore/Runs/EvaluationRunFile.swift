internal import Foundation
internal import Synchronization

/// The results of a run, in a file to which a line is added after each sample. A run that was stopped continues where it ended.
final class EvaluationRunFile: Sendable {
    private struct Output {
        var file: FileHandle
        var failure: EvaluationDataError?
    }

    private let url: URL
    /// The results that the file had when it was opened.
    let results: [SampleResult.Key: SampleResult]
    private let output: Mutex<Output>

    /// Opens or creates a file.
    ///
    /// - Throws: ``EvaluationDataError`` if the file is one of another run, or cannot be written.
    init(_ url: URL, _ header: RunHeader) throws {
        self.url = url
        let descriptor = open(url.path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw EvaluationDataError.unwritable(url, reason: Self.reason) }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        // The lock ends with the process.
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            throw errno == EWOULDBLOCK
                ? EvaluationDataError.inUse(url) : .unwritable(url, reason: "it cannot be locked: \(Self.reason)")
        }
        let (known, results, length) = try Self.read(url)
        let line = try JSONEncoder.results.encode(header) + [0x0A]
        // Without a header, the file is new, or the header was not written completely.
        if known == nil, !line.starts(with: try Data(contentsOf: url)) { throw EvaluationDataError.notARun(url) }
        if let known, known.contents == nil, header.contents != nil { throw EvaluationDataError.runWithoutFingerprints(url) }
        if let known, known != header {
            throw EvaluationDataError.otherRun(
                url, earlier: known.title, differences: header.differences(from: known))
        }
        do {
            // A line that was not written completely is written again.
            try file.truncate(atOffset: UInt64(known == nil ? 0 : length))
            if known == nil { try file.write(contentsOf: line) }
        } catch { throw EvaluationDataError.unwritable(url, reason: error.localizedDescription) }
        // A sample that failed for a reason outside of it runs again.
        self.results = Dictionary(
            results.filter { $0.layer != .error }.map { ($0.key, $0) }, uniquingKeysWith: { $1 })
        output = Mutex(Output(file: file))
    }

    private static var reason: String { String(cString: strerror(errno)) + "." }

    /// The header, the complete results, and the number of bytes that they have. There is no header if not even the first line was
    /// written completely.
    ///
    /// - Throws: ``EvaluationDataError``
    static func read(_ url: URL) throws -> (RunHeader?, [SampleResult], Int) {
        let data: Data
        do { data = try Data(contentsOf: url) } catch {
            throw EvaluationDataError.unreadable(url, reason: error.localizedDescription)
        }
        var lines: [(Data, Int)] = []
        // An editor may have put a byte order mark before the text.
        var start = data.startIndex + (data.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0)
        while let end = data[start...].firstIndex(of: 0x0A) {
            lines.append((Data(data[start..<end]), end + 1 - data.startIndex))
            start = end + 1
        }
        if lines.isEmpty { return (nil, [], 0) }
        let decoder = JSONDecoder.results
        // Any file can be given; why it is not a header does not matter.
        guard let first = lines.first, let header = try? decoder.decode(RunHeader.self, from: first.0) else {
            throw EvaluationDataError.notARun(url)
        }
        var results: [SampleResult.Key: SampleResult] = [:]
        var length = first.1
        for (index, line) in lines.dropFirst().enumerated() {
            let result: SampleResult
            do { result = try decoder.decode(SampleResult.self, from: line.0) } catch {
                throw EvaluationDataError.damagedRun(url, line: index + 2)
            }
            length = line.1
            // The last result counts.
            results[result.key] = result
        }
        return (header, results.values.sorted(by: SampleResult.isInOrder), length)
    }

    /// - Throws: ``EvaluationDataError`` if the file cannot be written.
    func append(_ result: SampleResult) throws {
        let line = try JSONEncoder.results.encode(result) + [0x0A]
        try output.withLock { output in
            if let failure = output.failure { throw failure }
            do { try output.file.write(contentsOf: line) } catch {
                // Nothing may follow a part of a line.
                let failure = EvaluationDataError.unwritable(url, reason: error.localizedDescription)
                output.failure = failure
                throw failure
            }
        }
    }
}

// Scores may be numbers that JSON does not have.

extension JSONEncoder {
    static var results: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }
}

extension JSONDecoder {
    static var results: JSONDecoder {
        let decoder = JSONDecoder()
        decoder.nonConformingFloatDecodingStrategy = .convertFromString(
            positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
        return decoder
    }
}
