@preconcurrency import Dispatch  // its signal sources are thread-safe but not marked as Sendable
import Foundation
import Synchronization
import Reports
import ProcessSettings

/// What a terminal may be sent besides text. This is the only place that decides it.
enum Terminal {
    /// Whether a terminal understands sequences that move its cursor.
    static func movesCursor(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 && !isDumb }

    /// Whether text for a file descriptor may have colours.
    static func hasColors(_ descriptor: Int32) -> Bool {
        isatty(descriptor) == 1 && allowsColors(Setting.environment)
    }

    /// `NO_COLOR` (no-color.org) with any text and `CLICOLOR=0` forbid colours, and a terminal without sequences has none.
    static func allowsColors(_ environment: [String: String]) -> Bool {
        Setting.noColor.value(in: environment) == nil && Setting.cliColor.value(in: environment) != "0"
            && Setting.terminal.value(in: environment) != "dumb"
    }

    /// Whether the terminal shows nothing but lines of text.
    static var isDumb: Bool { Setting.terminal.value == "dumb" }

    /// The number of columns of the terminal that a file descriptor refers to; nil if it is not a terminal or does not tell.
    static func columns(of descriptor: Int32) -> Int? {
        var size = winsize()
        return ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0 ? Int(size.ws_col) : nil
    }

    /// How text differs from other text.
    enum Style: String {
        case bold = "1"
        /// Of less importance.
        case grey = "90"
        case green = "32"

        /// What begins the style, and what ends it.
        var begin: String { "\u{1B}[\(rawValue)m" }
        static let end = "\u{1B}[0m"
    }

    /// Text in a style, where it may have one. What it quotes must have passed ``TerminalText/safe(_:)``.
    static func styled(_ text: String, _ style: Style, on descriptor: Int32) -> String {
        hasColors(descriptor) ? style.begin + text + Style.end : text
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
