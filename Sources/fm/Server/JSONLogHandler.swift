import Foundation
import Logging
import Synchronization

/// Writes messages as lines of JSON to standard error: `{"time":…,"level":"info","message":"request",…}`.
struct JSONLogHandler: LogHandler {
    /// The least level that is written.
    final class Level: Sendable {
        private let value = Mutex(Logger.Level.info)
        func store(_ level: Logger.Level) { value.withLock { $0 = level } }
        func load() -> Logger.Level { value.withLock { $0 } }
    }

    static let level = Level()

    let label: String
    var metadata: Logger.Metadata = [:]
    private var ownLevel: Logger.Level?

    init(label: String) { self.label = label }

    var logLevel: Logger.Level {
        get { ownLevel ?? Self.level.load() }
        set { ownLevel = newValue }
    }

    /// The logger of the service group, which says much that only its developers need.
    static var serviceLogger: Logger {
        var logger = Logger(label: "fm.services")
        logger.logLevel = .error
        return logger
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        write(event.level, event.message, event.metadata)
    }

    private func write(_ level: Logger.Level, _ message: Logger.Message, _ own: Logger.Metadata?) {
        var fields: [(String, String)] = [
            ("time", Date.now.formatted(.iso8601.year().month().day().time(includingFractionalSeconds: true))),
            ("level", level.rawValue),
            ("message", message.description),
        ]
        fields += metadata.merging(own ?? [:]) { $1 }.sorted { $0.key < $1.key }.map { ($0.key, $0.value.description) }
        let line = fields.map { name, value in
            "\(Self.quoted(name)):\(Self.isNumber(value) ? value : Self.quoted(value))"
        }.joined(separator: ",")
        // A log that cannot be written must not end the server.
        try? FileHandle.standardError.write(contentsOf: Data("{\(line)}\n".utf8))
    }

    /// Whether a text is a number of JSON.
    private static func isNumber(_ text: String) -> Bool {
        text.wholeMatch(of: /-?(0|[1-9][0-9]*)(\.[0-9]+)?(e-?[0-9]+)?/) != nil
    }

    private static func quoted(_ text: String) -> String {
        // A string can always be encoded.
        (try? JSONEncoder().encode(text)).map { String(decoding: $0, as: UTF8.self) } ?? "\"\""
    }
}
