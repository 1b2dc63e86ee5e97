import Foundation
import Reports
import Synchronization

/// Standard output, unbuffered. Errors are thrown, so that a full disk or a closed pipe ends the command.
///
/// Text of models, documents and files may contain sequences that control a terminal. Everything that the program writes goes through
/// this type, ``print(_:terminator:)`` or ``Message/say(_:terminator:)``, which replace them where a terminal shows the text. Pipes and files get every
/// byte.
struct Output {
    private static let failure = Mutex<(any Error)?>(nil)

    /// Writes what must not end the work of the command. If it cannot be written, the program ends with a failure after that work.
    static func attempt(_ write: (Output) throws -> Void) {
        do { try write(Output()) } catch { failure.withLock { $0 = error } }
    }

    /// - Throws: Why something of ``attempt(_:)`` was not written.
    static func check() throws { if let error = failure.withLock({ $0 }) { throw error } }

    private static let isTerminal = isatty(STDOUT_FILENO) == 1

    func write(_ text: some StringProtocol) throws {
        try writeStyled(Self.isTerminal ? TerminalText.safe(text) : String(text))
    }

    /// Writes a value as a line of JSON, or as several ones with indentation.
    func writeJSON(_ value: some Encodable, isPretty: Bool = false) throws {
        try write(String(decoding: try JSONEncoder.stable(isPretty: isPretty).encode(value), as: UTF8.self) + "\n")
    }

    /// Writes text with colours of the program's own. What it quotes must have passed ``TerminalText/safe(_:)``.
    func writeStyled(_ text: String) throws {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let written = bytes.withUnsafeBytes { Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
            if written < 0 {
                if errno == EINTR { continue }
                throw OutputError(reason: String(cString: strerror(errno)))
            }
            bytes = bytes.dropFirst(written)
        }
    }
}

extension JSONEncoder {
    /// Writes the same value the same way.
    static func stable(isPretty: Bool = false) -> JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        if isPretty { encoder.outputFormatting.insert(.prettyPrinted) }
        return encoder
    }
}

struct OutputError: Error, CustomStringConvertible {
    var reason: String
    var description: String { "Cannot write the answer: \(reason)." }
}

/// Writes a line as ``Output`` does. It hides Swift's function, so that no command writes past ``Output``.
func print(_ text: some StringProtocol, terminator: String = "\n") {
    // What waits in the buffer of C comes first.
    fflush(nil)
    Output.attempt { try $0.write(String(text) + terminator) }
}
