/// Finds the first stop string in a response, and holds back text that could be the beginning of one.
struct StopMatcher {
    private let stops: [[UInt8]]
    /// The stop string that was found.
    private(set) var match: String?
    private var held: [UInt8] = []

    init(_ stops: [String]) { self.stops = stops.filter { !$0.isEmpty }.map { Array($0.utf8) } }

    /// Appends text. Returns the text that is certainly part of the response, and whether a stop string follows it.
    mutating func append(_ text: String) -> (text: String, stopped: Bool) {
        if stops.isEmpty { return (text, false) }
        held.append(contentsOf: text.utf8)
        for start in held.indices {
            if let stop = stops.first(where: { held[start...].starts(with: $0) }) {
                match = String(decoding: stop, as: UTF8.self)
                defer { held.removeAll() }
                return (String(decoding: held[..<start], as: UTF8.self), true)
            }
            if stops.contains(where: { $0.starts(with: held[start...]) }) {
                defer { held.removeFirst(start) }
                return (String(decoding: held[..<start], as: UTF8.self), false)
            }
        }
        defer { held.removeAll() }
        return (String(decoding: held, as: UTF8.self), false)
    }

    /// Returns the text held back, at the end of the response.
    mutating func finish() -> String {
        defer { held.removeAll() }
        return String(decoding: held, as: UTF8.self)
    }
}
