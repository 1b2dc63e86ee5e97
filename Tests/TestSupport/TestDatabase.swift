import Foundation

/// The databases on which the same tests run.
public enum TestDatabase: Sendable {
    case sqlite
    /// A server that is started for the tests, with the settings that libpq needs.
    case postgreSQL(String)

    /// SQLite, and PostgreSQL if `FM_TEST_POSTGRESQL` says how to connect to a server (`Tests/Tools/postgresql.sh`).
    public static var available: [TestDatabase] {
        [.sqlite] + (ProcessInfo.processInfo.environment["FM_TEST_POSTGRESQL"].map { [.postgreSQL($0)] } ?? [])
    }

    /// How to connect to the server; nil for SQLite.
    public var server: String? { if case .postgreSQL(let server) = self { server } else { nil } }

    /// Runs `Tests/Tools/postgresql.sh` with the server's folder.
    ///
    /// - Throws: if the script fails.
    public static func control(_ verb: String) throws {
        let server = available.lazy.compactMap(\.server).first ?? ""
        let folder = server.split(separator: " ").first { $0.hasPrefix("host=") }?.dropFirst(5) ?? ""
        let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Tools/postgresql.sh")
        // Not `Process`: it waits for the server too, which inherits its files.
        if system("'\(script.path)' \(verb) '\(folder)' </dev/null >/dev/null") != 0 {
            throw CocoaError(.executableNotLoadable)
        }
    }
}
