/// The file name of one part of a split model, such as `NAME-00001-of-00003.gguf`.
package struct ShardName {
    private let stem: String
    /// The number of the part; the first is 1.
    package let number: Int
    package let count: Int

    /// Parses a path; nil if it is not the name of a part.
    package init?(_ path: String) {
        guard let match = path.wholeMatch(of: /(.*)-(\d{5})-of-(\d{5})\.gguf/.dotMatchesNewlines()),
            let number = Int(match.output.2), let count = Int(match.output.3), number >= 1, number <= count
        else { return nil }
        (stem, self.number, self.count) = (String(match.output.1), number, count)
    }

    /// The paths of all parts, in order.
    package var all: [String] { (1...count).map { "\(stem)-\(Self.digits($0))-of-\(Self.digits(count)).gguf" } }

    private static func digits(_ number: Int) -> String { String(String(100_000 + number).suffix(5)) }
}
