import Foundation
import Synchronization

/// The results of a run, in a file to which a line is added after each sample. A run that was stopped continues where it ended.
final class EvalRun: Sendable {
    /// The first line: what was run. A run continues only with the same.
    struct Header: Codable, Sendable, Equatable {
        var dataset: String
        /// A hash of the data set.
        var fingerprint: String
        /// The name and size of the model's file.
        var model: String
        var settings: String
        /// The judge, if it is another model.
        var judge: String?
        /// The embedder, if a sample needs it.
        var embedder: String?
        /// A hash of the weights that check prompts and responses.
        var screening: String?
        /// The version of this program.
        var program: String?
        /// The name of the model's adapter, if it has one.
        var adapter: String?
        /// Fingerprints of the files of the model, adapter, judge and embedder: others may have the same name and size. Runs of earlier
        /// versions have none.
        var contents: [String: String]?

        /// The model, adapter, settings and judge for people.
        var heading: String {
            "\(Self.title(model)) (" + (adapter.map { "adapter \($0), " } ?? "") + settings
                + (judge.map { ", judged by \(Self.title($0))" } ?? "") + ")"
        }

        /// A model with its size in megabytes.
        private static func title(_ model: String) -> String {
            model.replacing(/(\d+) bytes/) { "\((Int($0.1) ?? 0) / 1_000_000) MB" }
        }

        /// What differs from another run.
        func differences(from other: Header) -> [String] {
            func isOther(_ part: String, _ name: KeyPath<Header, String?>) -> Bool {
                self[keyPath: name] != other[keyPath: name] || contents?[part] != other.contents?[part]
            }
            let parts = [
                ("data set", dataset != other.dataset || fingerprint != other.fingerprint),
                ("model", model != other.model || contents?["model"] != other.contents?["model"]),
                ("adapter", isOther("adapter", \.adapter)), ("settings", settings != other.settings),
                ("judge", isOther("judge", \.judge)), ("embedder", isOther("embedder", \.embedder)),
                ("guardrail or language identification", screening != other.screening),
                ("version of fm", program != other.program),
            ]
            return parts.filter(\.1).map(\.0)
        }
    }

    struct Check: Codable, Sendable, Equatable {
        var name: String
        var passes: Bool
        var score: Double?
        var reason: String?
    }

    /// A call of a tool.
    struct Call: Codable, Sendable, Equatable {
        var name: String
        /// A JSON object.
        var arguments: String
        /// Nil if the request was stopped before.
        var output: String?

        var text: String { "\(name)(\(arguments))" }
    }

    /// The result of one sample with one seed.
    struct Entry: Codable, Sendable {
        var id: String
        var seed: UInt64?
        var `class`: String?
        var prompt: String
        /// The prompt without marks, by which runs are compared; nil if it is the same.
        var request: String?
        var instructions: String?
        var calls: [Call]?
        var response: String
        var layer: EvalAnswer.Layer?
        var checks: [Check]
        /// What stopped the request, in words.
        var detail: String?
        var started: String
        var seconds: Double
        var inputTokens: Int
        var outputTokens: Int
        /// Why the model ended the answer. Runs of earlier versions have none.
        var stopReason: String?

        var passes: Bool { checks.allSatisfy(\.passes) }
        var key: String { "\(id)#\(seed.map(String.init) ?? "")" }
        var comparedPrompt: String { request ?? prompt }

        /// Sorts by id, with numbers in ids as numbers.
        static func isInOrder(_ a: Entry, _ b: Entry) -> Bool {
            switch a.id.compare(b.id, options: .numeric) {
            case .orderedAscending: true
            case .orderedDescending: false
            case .orderedSame: (a.id, a.seed ?? 0) < (b.id, b.seed ?? 0)
            }
        }

        /// The id, with the seed if there are several.
        var title: String { id + (seed.map { " (seed \($0))" } ?? "") }
    }

    private struct Contents {
        var entries: [Entry]
        var file: FileHandle
        var failure: EvalError?
    }

    let header: Header
    private let contents: Mutex<Contents>

    var entries: [Entry] { contents.withLock { $0.entries } }

    /// Opens or creates a run.
    ///
    /// - Throws: ``EvalError`` if the file is one of another run, or cannot be written.
    init(_ url: URL, _ header: Header) throws {
        self.header = header
        let descriptor = open(url.path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            throw EvalError("\(url.path) cannot be written: \(String(cString: strerror(errno))).", code: 1)
        }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        // The lock ends with the process.
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            if errno == EWOULDBLOCK { throw EvalError("Another “fm eval” is writing \(url.path). Give another --run.") }
            throw EvalError("\(url.path) cannot be locked: \(String(cString: strerror(errno))).", code: 1)
        }
        let (known, entries, length) = try Self.read(url)
        let line = try Self.encoder.encode(header) + [0x0A]
        // Without a header, the file is new, or the header was not written completely.
        if known == nil, !line.starts(with: try Data(contentsOf: url)) {
            throw EvalError("\(url.path) does not contain a run of “fm eval”.")
        }
        if let known, known.contents == nil, header.contents != nil {
            throw EvalError(
                "\(url.path) is a run of an earlier version, which did not note which file the model was. It is there for --compare; "
                    + "to run again, give another --run, or remove it.")
        }
        if let known, known != header {
            throw EvalError(
                "\(url.path) contains another run (\(known.dataset) with \(known.heading)); different are: "
                    + "\(header.differences(from: known).joined(separator: ", ")). Give another --run, or remove it.")
        }
        do {
            // A line that was not written completely is written again.
            try file.truncate(atOffset: UInt64(known == nil ? 0 : length))
            if known == nil { try file.write(contentsOf: line) }
        } catch { throw EvalError("\(url.path) cannot be written: \(error.localizedDescription)", code: 1) }
        // A sample that failed for a reason outside of it runs again.
        contents = Mutex(Contents(entries: entries.filter { $0.layer != .error }, file: file))
    }

    private static var encoder: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }

    /// The header, the complete entries, and the number of bytes that they have. There is no header if not even the first line was
    /// written completely.
    static func read(_ url: URL) throws -> (Header?, [Entry], Int) {
        let data = try EvalFile.bytes(url.path)
        var lines: [(Data, Int)] = []
        var start = EvalFile.start(of: data)
        while let end = data[start...].firstIndex(of: 0x0A) {
            lines.append((Data(data[start..<end]), end + 1 - data.startIndex))
            start = end + 1
        }
        if lines.isEmpty { return (nil, [], 0) }
        let decoder = JSONDecoder()
        // Any file can be given; why it is not a header does not matter.
        guard let first = lines.first, let header = try? decoder.decode(Header.self, from: first.0) else {
            throw EvalError("\(url.path) does not contain a run of “fm eval”.")
        }
        var entries: [String: Entry] = [:]
        var length = first.1
        for (index, line) in lines.dropFirst().enumerated() {
            let entry: Entry
            do { entry = try decoder.decode(Entry.self, from: line.0) } catch {
                throw EvalError("\(url.path), line \(index + 2), is damaged. Remove the line: its sample runs again.")
            }
            length = line.1
            // The last result counts.
            entries[entry.key] = entry
        }
        return (header, entries.values.sorted { $0.key < $1.key }, length)
    }

    /// When the last sample of a run began; nil without samples.
    static func date(of entries: [Entry]) -> String? {
        // 2026-01-31T12:34:56Z
        entries.map(\.started).max().map { $0.prefix(16).replacing("T", with: " ") + " UTC" }
    }

    /// - Throws: ``EvalError`` if the file cannot be written.
    func append(_ entry: Entry) throws {
        let line = try Self.encoder.encode(entry) + [0x0A]
        try contents.withLock { contents in
            if let failure = contents.failure { throw failure }
            do { try contents.file.write(contentsOf: line) } catch {
                // Nothing may follow a part of a line.
                let failure = EvalError("The result cannot be written: \(error.localizedDescription)", code: 1)
                contents.failure = failure
                throw failure
            }
            contents.entries.append(entry)
        }
    }
}
