#if PostgreSQL
import Foundation
import Synchronization

/// A schema on a PostgreSQL server, and connections to it.
///
/// Each operation is one transaction. A connection that the server has ended is replaced when the next transaction begins.
package final class PostgreSQLServer: Sendable {
    /// Server, database and schema, for people.
    let name: String
    let isReadOnly: Bool
    private let settings: String
    private let searchPath: String
    /// How long a statement may take, as PostgreSQL writes it; nil without a limit.
    private let statementTimeout: String?
    private let idle: Mutex<[PostgreSQLConnection]>
    private let queue = OperationQueue()

    /// The maximum number of connections of asynchronous operations, and of those that are kept.
    private static let maximumConnections = 8

    /// Connects, and creates the schema if it does not exist.
    ///
    /// - Parameters:
    ///   - usesVectors: Whether pgvector is needed.
    ///   - statementTimeout: How long a statement may take if the settings do not say it, such as `120s`; nil without a limit.
    ///   - migrations: The statements that create the tables. Later versions add elements.
    ///   - properties: What the schema says about itself, when it is created.
    package init(
        _ settings: String, schema: String, kind: String, isReadOnly: Bool, usesVectors: Bool, statementTimeout: String? = nil,
        migrations: [String],
        properties: [(name: String, value: String)] = []
    ) throws {
        let connection = try PostgreSQLConnection(settings)
        (self.settings, self.isReadOnly, self.statementTimeout) = (settings, isReadOnly, statementTimeout)
        name = "\(connection.place), schema \(schema)"
        queue.maxConcurrentOperationCount = Self.maximumConnections
        let path = PostgreSQLConnection.quoted(schema)
        if usesVectors {
            if !isReadOnly { try Self.createExtension(connection) }
            let rows = try connection.query(
                """
                SELECT nspname, extversion FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
                WHERE extname = 'vector'
                """)
            guard let extensionSchema = rows.text(0, 0), let version = rows.text(0, 1) else { throw Self.noVectors }
            guard version.compare("0.8", options: .numeric) != .orderedAscending else {
                throw PostgreSQLError(kind: .server, message: "it has pgvector \(version), but 0.8 or newer is required")
            }
            searchPath = "\(path), \(PostgreSQLConnection.quoted(extensionSchema))"
        } else {
            searchPath = path
        }
        idle = Mutex([])
        try migrate(connection, schema, kind, migrations, properties)
        idle.withLock { $0.append(connection) }
    }

    private static let noVectors = PostgreSQLError(
        kind: .server,
        message: "the server has no pgvector: install it (https://github.com/pgvector/pgvector) and run CREATE EXTENSION vector")

    private static func createExtension(_ connection: PostgreSQLConnection) throws {
        if try connection.query("SELECT 1 FROM pg_extension WHERE extname = 'vector'").count > 0 { return }
        guard try connection.query("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").count > 0 else {
            throw noVectors
        }
        do { try connection.execute("CREATE EXTENSION IF NOT EXISTS vector") } catch {
            // Another program has created it at the same time.
            guard ["23505", "42710"].contains(error.state) else { throw error }
        }
    }

    private func migrate(
        _ connection: PostgreSQLConnection, _ schema: String, _ kind: String, _ migrations: [String],
        _ properties: [(name: String, value: String)]
    ) throws {
        func exists() throws -> Bool {
            try connection.query("SELECT 1 FROM pg_namespace WHERE nspname = $1", [.text(schema)]).count > 0
        }
        if isReadOnly {
            guard try exists() else {
                throw PostgreSQLError(kind: .server, message: "there is no such schema")
            }
            try connection.execute(begin(.read))
            defer { try? connection.execute("ROLLBACK") }  // the connection is checked before it is used again
            guard try version(connection, schema, kind) == migrations.count else {
                throw PostgreSQLError(kind: .server, message: "it was written by another version of this package")
            }
            return
        }
        try connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE")
        do {
            // One program at a time.
            try connection.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [.text("schema \(schema)")])
            // Creating a schema needs a permission that using one does not.
            if try !exists() { try connection.execute("CREATE SCHEMA \(PostgreSQLConnection.quoted(schema))") }
            try connection.execute("SET LOCAL search_path TO \(searchPath)")
            let version = try version(connection, schema, kind)
            guard version <= migrations.count else {
                throw PostgreSQLError(kind: .server, message: "it was written by a newer version of this package")
            }
            if version == 0 {
                try connection.execute("CREATE TABLE property (name text PRIMARY KEY, value text NOT NULL)")
                try connection.query("INSERT INTO property VALUES ('kind', $1), ('version', '0')", [.text(kind)])
                for (name, value) in properties {
                    try connection.query("INSERT INTO property VALUES ($1, $2)", [.text(name), .text(value)])
                }
            }
            if version < migrations.count {
                for migration in migrations[version...] { try connection.execute(migration) }
                try connection.query("UPDATE property SET value = $1 WHERE name = 'version'", [.text("\(migrations.count)")])
            }
            try connection.execute("COMMIT")
        } catch {
            try? connection.execute("ROLLBACK")  // the error above says more
            throw error
        }
    }

    /// The number of migrations that a schema has; 0 if it is empty.
    private func version(_ connection: PostgreSQLConnection, _ schema: String, _ kind: String) throws -> Int {
        let tables = try connection.query("SELECT tablename FROM pg_tables WHERE schemaname = $1", [.text(schema)])
        if tables.count == 0 { return 0 }
        let other = PostgreSQLError(kind: .server, message: "the schema belongs to another program; choose another one")
        guard (0..<tables.count).contains(where: { tables.text($0, 0) == "property" }) else { throw other }
        let rows = try connection.query(
            "SELECT k.value, v.value FROM property k, property v WHERE k.name = 'kind' AND v.name = 'version'")
        guard rows.count == 1, rows.text(0, 0) == kind, let version = rows.integer(0, 1) else { throw other }
        return Int(version)
    }

    // MARK: - Transactions

    package enum Mode { case read, write }

    private func begin(_ mode: Mode) -> String {
        let mode = mode == .read ? "REPEATABLE READ, READ ONLY" : "READ COMMITTED, READ WRITE"
        // For each transaction: a pool of connections between this program and the server may give each another connection. The
        // formats are those that are read here, whatever the server's settings are.
        return """
            BEGIN ISOLATION LEVEL \(mode); SET LOCAL search_path TO \(searchPath);
            SET LOCAL bytea_output = hex; SET LOCAL extra_float_digits = 1;
            \(Self.limit("lock_timeout", "30s")); \(statementTimeout.map { Self.limit("statement_timeout", $0) } ?? "")
            """
    }

    /// Sets a limit for this transaction unless the settings have one: a program that holds a lock, or a server that does not answer,
    /// must not stop a conversation for ever.
    private static func limit(_ name: String, _ value: String) -> String {
        "SELECT set_config('\(name)', '\(value)', true) WHERE current_setting('\(name)') = '0'"
    }

    /// Runs a transaction on this thread.
    func transaction<Value>(_ mode: Mode, _ body: (PostgreSQLConnection) throws -> Value) throws -> Value {
        let connection = try begun(mode)
        defer {
            if connection.isUsable {
                idle.withLock { if $0.count < Self.maximumConnections { $0.append(connection) } }
            }
        }
        do {
            let value = try body(connection)
            try connection.execute("COMMIT")
            return value
        } catch {
            try? connection.execute("ROLLBACK")  // the error above says more
            throw error
        }
    }

    /// A connection on which a transaction has begun.
    private func begun(_ mode: Mode) throws -> PostgreSQLConnection {
        while let connection = idle.withLock({ $0.popLast() }) {
            do { try connection.execute(begin(mode)) } catch {
                // The server has ended it since it was used: nothing is lost.
                if error.kind == .connection { continue }
                throw error
            }
            return connection
        }
        let connection = try PostgreSQLConnection(settings)
        try connection.execute(begin(mode))
        return connection
    }

    /// Runs a transaction on another thread, so that waiting for the server does not block the tasks of the program.
    package func background<Value: Sendable>(
        _ mode: Mode, _ body: @escaping @Sendable (PostgreSQLConnection) throws -> Value
    ) async throws -> Value {
        try Task.checkCancellation()
        return try await withCheckedThrowingContinuation { continuation in
            queue.addOperation {
                continuation.resume(with: Result { try self.transaction(mode, body) })
            }
        }
    }

    /// Closes the connections that are not in use.
    func close() { idle.withLock { $0 = [] } }
}
#endif
