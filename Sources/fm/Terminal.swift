import ArgumentParser
import Embeddings
@preconcurrency import Dispatch  // its signal sources are thread-safe but not marked as Sendable
import Foundation
import FoundationModels
import Inference
import Synchronization

/// Standard output, unbuffered. Errors are thrown, so that a full disk or a closed pipe ends the command.
///
/// Text of models, documents and files may contain sequences that control a terminal. Everything that the program writes goes through
/// this type, ``print(_:terminator:)`` or ``Message/say(_:terminator:)``, which remove them where a terminal shows the text. Pipes and files get every
/// byte.
struct Output {
    private static let isTerminal = isatty(STDOUT_FILENO) == 1

    func write(_ text: some StringProtocol) throws {
        try writeStyled(Self.isTerminal ? TerminalText.safe(text) : String(text))
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

struct OutputError: Error, CustomStringConvertible {
    var reason: String
    var description: String { "Cannot write the answer: \(reason)." }
}

/// Writes a line as ``Output`` does. It hides Swift's function, so that no command writes past ``Output``.
func print(_ text: some StringProtocol, terminator: String = "\n") {
    // What waits in the buffer of C comes first.
    fflush(nil)
    // A command that only shows a list has nothing else to do when standard output is closed.
    try? Output().write(String(text) + terminator)
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
        guard argument == nil || isPiped else { return argument ?? "" }
        let data = try FileHandle.standardInput.readToEnd() ?? Data()
        guard let text = String(validating: data, as: UTF8.self) else {
            throw ValidationError("Standard input is not valid UTF-8 text.")
        }
        let piped = text.hasSuffix("\n") ? String(text.dropLast()) : text
        let parts = [argument, piped].compactMap { $0 }.filter { !$0.isEmpty }
        guard !parts.isEmpty else { throw ValidationError("The prompt is empty.") }
        return parts.joined(separator: "\n\n")
    }
}

/// Whether the terminal shows what is typed while nothing is read. If not, typed text stays in the terminal's queue and
/// appears in the line editor afterwards.
enum TerminalEcho {
    /// The settings of the terminal before it was changed; nil if it was not.
    private static let original = Mutex<termios?>(nil)

    /// Signals that end the process. They restore the terminal first.
    private static let endings = [SIGINT, SIGTERM, SIGHUP].map { number in
        let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
        source.setEventHandler {
            // During an answer, Ctrl-C stops the answer.
            if number == SIGINT, Interrupt.isActive { return }
            show()
            _exit(128 + number)
        }
        return source
    }

    static var isHidden: Bool { original.withLock { $0 != nil } }

    /// Does nothing if standard input is not a terminal. Ctrl-C and Ctrl-Z still work.
    static func hide() {
        var settings = termios()
        guard !isHidden, tcgetattr(STDIN_FILENO, &settings) == 0 else { return }
        original.withLock { $0 = settings }
        for number in [SIGINT, SIGTERM, SIGHUP] { signal(number, SIG_IGN) }
        for source in endings { source.activate() }
        settings.c_lflag &= ~tcflag_t(ECHO | ICANON)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &settings)
    }

    /// Restores the original settings.
    static func show() {
        guard var settings = original.withLock({ $0.take() }) else { return }
        tcsetattr(STDIN_FILENO, TCSADRAIN, &settings)
    }
}

/// Calls a handler on Ctrl-C. A second Ctrl-C ends the process.
final class Interrupt: Sendable {
    private let source: any DispatchSourceSignal
    private let count = Mutex(0)
    private static let active = Mutex(0)

    /// Whether a handler is in effect.
    static var isActive: Bool { active.withLock { $0 > 0 } }

    var happened: Bool { count.withLock { $0 > 0 } }

    init(_ handler: @escaping @Sendable () -> Void) {
        signal(SIGINT, SIG_IGN)
        Self.active.withLock { $0 += 1 }
        source = DispatchSource.makeSignalSource(signal: SIGINT, queue: .global())
        source.setEventHandler { [weak self] in
            let times = self?.count.withLock { count in
                count += 1
                return count
            }
            if times == 2 {
                TerminalEcho.show()
                _exit(130)
            }
            handler()
        }
        source.resume()
    }

    /// Restores the default behaviour of Ctrl-C.
    func stop() {
        source.cancel()
        Self.active.withLock { $0 -= 1 }
        if !TerminalEcho.isHidden { signal(SIGINT, SIG_DFL) }
    }
}

/// The message and the exit code of an error.
enum ExitMessage {
    /// Prints a description of the error and returns the exit code for it.
    static func exit(for error: any Error) -> ExitCode {
        let (message, code): (String, Int32) =
            switch error {
            case LanguageModelError.contextSizeExceeded(let context):
                (context.debugDescription + " “fm read FILE” reads texts of any length, also from a pipe.", 4)
            case SystemLanguageModel.Error.assetsUnavailable(let context): (context.debugDescription, 3)
            case LanguageModelError.unsupportedGenerationGuide(let context): (context.debugDescription, 5)
            // Even the shortest document exceeds the token limit.
            case let error as GeneratedContent.ParsingError where error.underlyingError is GenerationFailure:
                (error.debugDescription, 4)
            case let error as LanguageModelError: (error.debugDescription, 1)
            case let error as EmbeddingError: (error.description, 3)
            case let error as InstallError: (error.description, 3)
            default: ("\(error)", 1)
            }
        Message.say("fm: \(message)")
        return ExitCode(code)
    }
}
