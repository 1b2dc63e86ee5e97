#if PostgreSQL
internal import CPostgreSQL
package import Foundation

/// A connection to a PostgreSQL server, through libpq. Only one thread may use it at a time.
package final class PostgreSQLConnection: @unchecked Sendable {
    private let connection: OpaquePointer

    /// A parameter of a statement. Types are those that the server infers.
    package enum Parameter {
        case text(String)
        case integer(Int64)
        case double(Double)
        case bytes(Data)
        case null

        /// An array of numbers: `= ANY ($1::bigint[])`.
        static func array(_ numbers: [some BinaryInteger]) -> Parameter {
            .text("{" + numbers.map { "\($0)" }.joined(separator: ",") + "}")
        }

        static func json(_ value: some Encodable) throws -> Parameter {
            .text(String(decoding: try JSONEncoder().encode(value), as: UTF8.self))
        }
    }

    /// Connects to a server.
    ///
    /// - Parameter settings: `postgresql://user@host/database`, or `host=… dbname=…`, as libpq documents.
    /// - Throws: ``PostgreSQLError``.
    init(_ settings: String) throws(PostgreSQLError) {
        try Self.check(settings)
        // libpq takes the last value of a setting. The first ones may be changed by the settings; texts are always UTF-8.
        let keywords = [
            "fallback_application_name", "connect_timeout", "tcp_user_timeout", "keepalives_idle", "keepalives_interval",
            "keepalives_count", "dbname", "client_encoding",
        ]
        let values = ["foundation-models", "10", "30000", "30", "10", "3", settings, "UTF8"]
        let opened = withCStrings(keywords) { keywords in
            withCStrings(values) { values in PQconnectdbParams(keywords, values, 1) }
        }
        guard let opened else { throw PostgreSQLError(kind: .connection, message: "there is not enough memory") }
        guard PQstatus(opened) == CONNECTION_OK else {
            defer { PQfinish(opened) }
            throw PostgreSQLError(kind: .connection, message: Self.message(opened))
        }
        connection = opened
        // Notices, such as that a table exists already, would be printed.
        PQsetNoticeProcessor(opened, { _, _ in }, nil)
        guard PQserverVersion(opened) >= 130_000 else {
            throw PostgreSQLError(kind: .server, message: "PostgreSQL 13 or newer is required")
        }
        guard PQparameterStatus(opened, "server_encoding").map({ String(cString: $0) }) == "UTF8" else {
            throw PostgreSQLError(
                kind: .server, message: "the database does not store texts as UTF-8; create one with ENCODING 'UTF8'")
        }
    }

    /// Reads the settings as libpq does. Its own messages quote parts of them, which may be a part of the password.
    private static func check(_ settings: String) throws(PostgreSQLError) {
        let unreadable = PostgreSQLError(
            kind: .data,
            message:
                "the connection settings cannot be read; write special characters in a password as %XX, or give it in PGPASSWORD")
        guard !settings.utf8.contains(0) else { throw unreadable }
        var message: UnsafeMutablePointer<CChar>?
        let options = PQconninfoParse(settings, &message)
        if let message { PQfreemem(message) }
        guard let options else { throw unreadable }
        defer { PQconninfoFree(options) }
        var option = options
        while let keyword = option.pointee.keyword {
            // A password with “@” or “/” ends too early, and the rest would be taken for the server's name or number.
            let value = option.pointee.val.map { String(cString: $0) } ?? ""
            switch String(cString: keyword) {
            case "host": if value.contains("@") { throw unreadable }
            case "port": if value.contains(where: { !$0.isNumber && $0 != "," }) { throw unreadable }
            default: break
            }
            option += 1
        }
    }

    deinit { PQfinish(connection) }

    /// Whether it can be used again.
    var isUsable: Bool { PQstatus(connection) == CONNECTION_OK && PQtransactionStatus(connection) == PQTRANS_IDLE }

    /// Server and database, without user and password.
    var place: String {
        let host = PQhost(connection).map { String(cString: $0) } ?? ""
        let database = PQdb(connection).map { String(cString: $0) } ?? ""
        return host.isEmpty || host.hasPrefix("/") ? "postgresql:///\(database)" : "postgresql://\(host)/\(database)"
    }

    private static func message(_ connection: OpaquePointer) -> String {
        String(cString: PQerrorMessage(connection)).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Executes statements without parameters.
    func execute(_ sql: String) throws(PostgreSQLError) { try check(PQexec(connection, sql)) }

    /// Executes a statement with the parameters `$1`, `$2` and so on.
    @discardableResult package func query(_ sql: String, _ parameters: [Parameter] = []) throws(PostgreSQLError) -> PostgreSQLRows
    {
        var lengths: [Int32] = []
        var formats: [Int32] = []
        var buffers: [[UInt8]?] = []
        for parameter in parameters {
            var bytes: [UInt8]?
            var format: Int32 = 0
            switch parameter {
            case .text(let text):
                guard !text.utf8.contains(0) else {
                    throw PostgreSQLError(kind: .data, message: "PostgreSQL cannot store text with the character U+0000")
                }
                bytes = Array(text.utf8) + [0]
            case .integer(let value): bytes = Array("\(value)".utf8) + [0]
            case .double(let value): bytes = Array("\(value)".utf8) + [0]
            case .bytes(let data):
                guard data.count <= Int32.max else {
                    throw PostgreSQLError(kind: .data, message: "PostgreSQL cannot store a value of \(data.count) bytes")
                }
                bytes = Array(data)
                format = 1
            case .null: bytes = nil
            }
            lengths.append(format == 1 ? Int32(bytes?.count ?? 0) : 0)
            formats.append(format)
            // An empty array may have no address, which would mean NULL.
            buffers.append(bytes.map { $0.isEmpty ? [0] : $0 })
        }
        let result = withPointers(buffers) { values in
            PQexecParams(connection, sql, Int32(parameters.count), nil, values, lengths, formats, 0)
        }
        return try check(result)
    }

    @discardableResult private func check(_ result: OpaquePointer?) throws(PostgreSQLError) -> PostgreSQLRows {
        guard let result else { throw PostgreSQLError(kind: .connection, message: Self.message(connection)) }
        let rows = PostgreSQLRows(result)
        switch PQresultStatus(result) {
        case PGRES_COMMAND_OK, PGRES_TUPLES_OK: return rows
        default:
            let state = PQresultErrorField(result, Int32(UInt8(ascii: "C"))).map { String(cString: $0) } ?? ""
            let text = PQresultErrorField(result, Int32(UInt8(ascii: "M"))).map { String(cString: $0) }
            let isLost = PQstatus(connection) != CONNECTION_OK
            throw PostgreSQLError(
                kind: isLost ? .connection : .server, state: state, message: text ?? Self.message(connection))
        }
    }

    /// A name in an SQL statement.
    ///
    /// A quotation mark is doubled even if it is a part of a longer character, such as one with an accent.
    static func quoted(_ name: String) -> String {
        var result = "\""
        for scalar in name.unicodeScalars where scalar != "\0" {
            if scalar == "\"" { result.unicodeScalars.append(scalar) }
            result.unicodeScalars.append(scalar)
        }
        return result + "\""
    }
}

/// The rows that a statement returned.
package final class PostgreSQLRows {
    private let result: OpaquePointer
    /// The number of rows.
    package let count: Int
    /// The number of rows that the statement changed.
    package let changed: Int

    fileprivate init(_ result: OpaquePointer) {
        self.result = result
        count = Int(PQntuples(result))
        changed = Int(String(cString: PQcmdTuples(result))) ?? 0
    }

    deinit { PQclear(result) }

    private func field(_ row: Int, _ column: Int) -> UnsafeBufferPointer<UInt8>? {
        let (row, column) = (Int32(row), Int32(column))
        guard PQgetisnull(result, row, column) == 0, let start = PQgetvalue(result, row, column) else { return nil }
        let length = Int(PQgetlength(result, row, column))
        return UnsafeBufferPointer(
            start: UnsafeRawPointer(start).assumingMemoryBound(to: UInt8.self), count: length)
    }

    /// A value as text; nil for NULL.
    package func text(_ row: Int, _ column: Int) -> String? { field(row, column).map { String(decoding: $0, as: UTF8.self) } }

    package func integer(_ row: Int, _ column: Int) -> Int64? { text(row, column).flatMap { Int64($0) } }

    func double(_ row: Int, _ column: Int) -> Double? { text(row, column).flatMap { Double($0) } }

    /// A value of the type `bytea`, which the server sends in hexadecimal digits; nil for NULL.
    package func bytes(_ row: Int, _ column: Int) throws(PostgreSQLError) -> Data? {
        guard let field = field(row, column) else { return nil }
        guard field.count >= 2, field[0] == UInt8(ascii: "\\"), field[1] == UInt8(ascii: "x") else {
            throw PostgreSQLError(kind: .data, message: "the server sends bytes in an unknown form")
        }
        func digit(_ byte: UInt8) -> UInt8 { byte < 0x3A ? byte &- 0x30 : (byte | 0x20) &- 0x57 }
        var data = Data(count: (field.count - 2) / 2)
        data.withUnsafeMutableBytes { bytes in
            for index in bytes.indices { bytes[index] = digit(field[2 + 2 * index]) << 4 | digit(field[3 + 2 * index]) }
        }
        return data
    }
}

/// An error of a PostgreSQL server, or of the connection to it.
package struct PostgreSQLError: Error {
    enum Kind {
        /// There is no server, or it went away.
        case connection
        /// The server refused a statement.
        case server
        /// A value cannot be stored.
        case data
    }

    var kind: Kind
    /// SQLSTATE, five characters.
    var state = ""
    var message: String

    /// What went wrong and what can be done, for people.
    package var reason: String {
        switch (kind, state) {
        case (.connection, _) where message.contains("too many"): "the PostgreSQL server has too many connections: \(message)"
        case (.connection, _): "the PostgreSQL server cannot be reached or has ended the connection: \(message)"
        case (_, "54000"), (_, "54001"):
            "a name or an identifier is too long for PostgreSQL, which can search at most 2,700 bytes"
        case (_, "53100"): "the disk of the PostgreSQL server is full"
        case (_, "42501"), (_, "25006"): "the user of the PostgreSQL server may not do that: \(message)"
        case (_, "57P01"), (_, "57P02"): "the PostgreSQL server is stopping or starting: \(message)"
        default: message
        }
    }
}

/// Calls a function with an array of C strings that ends with a null pointer.
private func withCStrings<Result>(_ strings: [String], _ body: ([UnsafePointer<CChar>?]) -> Result) -> Result {
    withPointers(strings.map { Array($0.utf8) + [0] } + [nil], body)
}

/// Calls a function with pointers to bytes. A null pointer stands for nil. The buffers must not be empty.
private func withPointers<Result>(_ buffers: [[UInt8]?], _ body: ([UnsafePointer<CChar>?]) -> Result) -> Result {
    // All in one buffer, which stays where it is during the call.
    buffers.flatMap { $0 ?? [] }.withUnsafeBufferPointer { bytes in
        var position = 0
        let pointers = buffers.map { buffer -> UnsafePointer<CChar>? in
            defer { position += buffer?.count ?? 0 }
            guard buffer != nil, let start = bytes.baseAddress else { return nil }
            return UnsafeRawPointer(start + position).assumingMemoryBound(to: CChar.self)
        }
        return body(pointers)
    }
}
#endif
