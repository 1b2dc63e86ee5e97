public import Foundation

/// Why a server of tools cannot be used, or a call failed.
public enum MCPError: Error, LocalizedError, Equatable {
    /// The program of the server could not be started, or ended.
    case ended(server: String, reason: String)
    /// The server did not answer in time.
    case silent(server: String, method: String)
    /// The server refused a request.
    case refused(server: String, code: Int, message: String)
    /// The server sent something that is not part of the protocol.
    case invalidReply(server: String, reason: String)
    /// The tool says that it has failed.
    case failed(tool: String, reason: String)
    /// The tool is no longer the one that the session was given: its description or its parameters have changed.
    case toolChanged(tool: String)
    /// The user, or the program, does not allow the call.
    case denied(tool: String)
    /// The server asks for something that this client does not do.
    case unsupportedRequest(server: String, request: String)

    public var errorDescription: String? {
        switch self {
        case .ended(let server, let reason): "The tool server “\(server)” has ended\(reason.isEmpty ? "." : ": \(reason)")"
        case .silent(let server, let method): "The tool server “\(server)” did not answer “\(method)” in time."
        case .refused(let server, let code, let message):
            "The tool server “\(server)” refused the request (\(code)): \(message)"
        case .invalidReply(let server, let reason): "The tool server “\(server)” sent an unusable reply: \(reason)"
        case .failed(let tool, let reason): "The tool “\(tool)” failed: \(reason)"
        case .toolChanged(let tool):
            "The tool “\(tool)” was changed by its server since the session began. It was not called."
        case .denied(let tool): "The call of “\(tool)” was not allowed."
        case .unsupportedRequest(let server, let request):
            "The tool server “\(server)” asks for “\(request)”, which this program does not answer."
        }
    }

    public var recoverySuggestion: String? {
        switch self {
        case .ended, .silent: "Run the server's command in a terminal to see what it says."
        case .refused, .invalidReply, .unsupportedRequest: "Look for a newer version of the server."
        case .toolChanged: "Begin a new session, after a look at the tool's description."
        case .denied, .failed: nil
        }
    }
}
