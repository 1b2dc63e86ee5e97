import ArgumentParser

// Names of before, for files that are being rewritten.
typealias CommandError = CommandFailure

extension Model {
    static func fail(_ error: any Error) -> any Error { error }
}

enum ExitMessage {
    static func of(_ error: any Error) -> (text: String, code: Int32) {
        let failure = CommandFailure(error)
        return (failure.description, failure.code.rawValue)
    }

    static func exit(for error: any Error) -> any Error { error is ValidationError ? error : CommandFailure(error) }
}
