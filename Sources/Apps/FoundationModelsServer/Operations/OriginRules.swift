/// Which hosts and pages may use the server. A value without I/O.
///
/// A page of any site may send requests to this machine, and a name that its owner lets point here (DNS rebinding) makes them look like
/// requests of the page's own site. So a request must name a host that is this server's, and a page must be of a listed origin.
struct OriginRules: Sendable {
    /// Further names of this server, without ports.
    var hosts: Set<String>
    /// Origins whose pages may use the server, such as `https://app.example.com`; `*` for all.
    var origins: Set<String>
    /// Whether the server listens on this machine only.
    var isLoopback: Bool

    enum Refusal: Equatable {
        case host(String)
        case origin(String)
    }

    /// Why a request is refused; nil if it is not.
    ///
    /// - Parameters:
    ///   - host: the host that the request names, with or without a port; nil if it names none.
    ///   - origin: the origin of the page that sent it; nil if no page did.
    ///   - fetchSite: the browser's `Sec-Fetch-Site`.
    func refusal(host: String?, origin: String?, fetchSite: String?) -> Refusal? {
        if let host, !allowsHost(host) { return .host(host) }
        if let origin {
            if !allowsOrigin(origin, host: host) { return .origin(origin) }
        } else if fetchSite == "cross-site" {
            return .origin(fetchSite ?? "")
        }
        return nil
    }

    private func allowsHost(_ host: String) -> Bool {
        let name = Self.name(of: host)
        if hosts.contains("*") || hosts.contains(name) { return true }
        if Self.isLoopback(name) { return true }
        // On other interfaces, clients use addresses, and names that the server cannot know: the owner lists those.
        return !isLoopback && Self.isAddress(name)
    }

    func allowsOrigin(_ origin: String, host: String?) -> Bool {
        if origins.contains("*") || origins.contains(origin) { return true }
        // The server's own pages.
        guard let host, let authority = origin.split(separator: "/", omittingEmptySubsequences: false).dropFirst(2).first else {
            return false
        }
        return authority == host && (origin == "http://\(host)" || origin == "https://\(host)")
    }

    static func isLoopback(_ name: String) -> Bool {
        name == "localhost" || name.hasSuffix(".localhost") || name == "::1" || isAddress(name) && name.hasPrefix("127.")
    }

    private static func isAddress(_ name: String) -> Bool {
        if name.contains(":") { return name.allSatisfy { $0.isHexDigit || $0 == ":" || $0 == "." || $0 == "%" } }
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts.allSatisfy { UInt8($0) != nil }
    }

    /// A host without its port, in lower case.
    static func name(of host: String) -> String {
        var name = host.lowercased()
        if name.hasPrefix("["), let close = name.firstIndex(of: "]") {
            let rest = name[name.index(after: close)...]
            let isPort = rest.isEmpty || rest.first == ":" && rest.dropFirst().allSatisfy(\.isWholeNumber)
            return isPort ? String(name[..<close].dropFirst()) : name
        }
        if let colon = name.lastIndex(of: ":"), name[name.index(after: colon)...].allSatisfy(\.isWholeNumber),
            name.firstIndex(of: ":") == colon
        {
            name = String(name[..<colon])
        }
        return name.hasSuffix(".") ? String(name.dropLast()) : name
    }
}
