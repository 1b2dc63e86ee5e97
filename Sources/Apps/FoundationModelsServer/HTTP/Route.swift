internal import HTTPTypes
internal import Hummingbird

/// An address and what answers there.
struct Route: Sendable {
    let method: HTTPRequest.Method
    /// With `{name}` or `{name+}` for what differs.
    let paths: [String]
    let name: String
    var style = APIStyle.openAI
    /// Whether no key is needed.
    var isPublic = false
    let handle: @Sendable (Exchange) async throws -> Response

    /// A route of OpenAI's API, with and without `/v1` before its path.
    static func api(
        _ method: HTTPRequest.Method, _ path: String, style: APIStyle = .openAI,
        _ handle: @escaping @Sendable (Exchange) async throws -> Response
    ) -> Route {
        Route(method: method, paths: ["/v1" + path, path], name: path, style: style, handle: handle)
    }

    /// Whether a path of a request is one of a pattern's.
    static func matches(_ pattern: String, _ path: String) -> Bool {
        let parts = pattern.split(separator: "/")
        let own = path.split(separator: "/")
        if parts.last == "**", own.count >= parts.count { return zip(parts.dropLast(), own).allSatisfy { fits($0, $1) } }
        return parts.count == own.count && zip(parts, own).allSatisfy { fits($0, $1) }
    }

    private static func fits(_ part: Substring, _ text: Substring) -> Bool { part.hasPrefix("{") || part == text }
}
