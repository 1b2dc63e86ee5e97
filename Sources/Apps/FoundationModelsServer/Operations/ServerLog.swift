internal import Logging

/// The log of the server. A program that installs no handler sees what the standard one prints.
enum ServerLog {
    static let logger = Logger(label: "FoundationModels.server")
}

enum ServerVersion {
    /// Identifies the software in replies.
    static let number = "0.1.0"
    static let fingerprint = "fm-\(number)"
}

extension ServerLog {
    /// What the framework of the server says: only what is wrong.
    static let framework = {
        var logger = Logger(label: "FoundationModels.server.http")
        logger.logLevel = .warning
        return logger
    }()
}
