import ArgumentParser
import Foundation
import TextSearch

/// Text that commands are given, in files and on standard input: in UTF-8, or in UTF-16 with a byte order mark. The mark is no part of the
/// text. Commands read their texts here; ``StandardInput/line()`` reads standard input line by line.
enum TextFile {
    /// All bytes of a file, or of standard input for “-”.
    ///
    /// - Throws: `ValidationError` if there is no such file, ``CommandFailure`` if it cannot be read.
    static func bytes(_ path: String) throws -> Data {
        let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        let problem = errno
        guard descriptor >= 0 else {
            if problem == ENOENT || problem == ENOTDIR { throw ValidationError("There is no file “\(path)”.") }
            throw CommandFailure("\(name(path)) cannot be read: \(String(cString: strerror(problem))).")
        }
        // A file handle can also read pipes.
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: path != "-")
        var status = stat()
        if fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFDIR {
            throw ValidationError("\(name(path)) is a folder. Give a file.")
        }
        do { return try file.readToEnd() ?? Data() } catch {
            throw CommandFailure("\(name(path)) cannot be read: \(error.localizedDescription)")
        }
    }

    /// The text of a file, or of standard input for “-”.
    ///
    /// - Throws: As ``bytes(_:)``, and ``CommandFailure`` if it is no text.
    static func read(_ path: String) throws -> String {
        guard let text = TextDecoder.text(of: try bytes(path)) else {
            throw CommandFailure("\(name(path)) is not text in UTF-8 or UTF-16.")
        }
        return text
    }

    /// The text as UTF-8, for parsers of bytes.
    ///
    /// - Throws: As ``read(_:)``.
    static func data(_ path: String) throws -> Data { Data(try read(path).utf8) }

    private static func name(_ path: String) -> String { path == "-" ? "Standard input" : "“\(path)”" }
}

/// A model answers an empty text all the same, so it is not asked.
///
/// - Parameter what: What the text is, for the message.
/// - Throws: `ValidationError` if a text has nothing but spaces and line ends.
func requireText(_ text: String, _ what: String) throws {
    if text.isBlank { throw ValidationError("The \(what) is empty.") }
}

extension StringProtocol {
    var isBlank: Bool { allSatisfy(\.isWhitespace) }
}

enum StandardInput {
    /// The prompt: the argument, followed by piped input.
    static func prompt(with argument: String?) throws -> String {
        var status = stat()
        fstat(STDIN_FILENO, &status)
        let kind = status.st_mode & S_IFMT
        let isPiped = kind == S_IFIFO || kind == S_IFREG
        if argument == nil, isatty(STDIN_FILENO) == 1 {
            throw ValidationError("There is no prompt. Pass one as an argument or on standard input, or use “fm chat”.")
        }
        let text = argument == nil || isPiped ? try TextFile.read("-") : ""
        let piped = text.hasSuffix("\n") ? String(text.dropLast()) : text
        let prompt = [argument ?? "", piped].filter { !$0.isBlank }.joined(separator: "\n\n")
        try requireText(prompt, "prompt")
        // The command before the pipe may have failed.
        if isPiped, piped.isBlank { Message.say("Standard input is empty: the prompt is the argument alone.") }
        return prompt
    }

    /// The next line; nil at the end. A byte order mark is no part of it.
    static func line() -> String? {
        Swift.readLine().map { $0.unicodeScalars.first == "\u{FEFF}" ? String($0.unicodeScalars.dropFirst()) : $0 }
    }
}
