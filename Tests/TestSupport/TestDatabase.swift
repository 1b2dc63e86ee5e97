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
}
