import Foundation
import Reports

/// Messages to people, on standard error.
enum Message {
    /// Writes a message to standard error. It may quote text of files and models.
    static func say(_ text: String, terminator: String = "\n") {
        FileHandle.standardError.write(Data((TerminalText.safe(text) + terminator).utf8))
    }
}
