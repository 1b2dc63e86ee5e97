import Logging

extension Logger {
    /// Reports what a conversation can go on without, and therefore does not throw.
    static let contextKit = Logger(label: "ContextKit")
}
