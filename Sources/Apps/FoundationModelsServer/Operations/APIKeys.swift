public import Foundation
internal import SHA256

/// A key that clients identify themselves with. The server keeps its hash only.
public struct APIKey: Sendable, Hashable {
    /// The name of the client, for logs and limits.
    public var name: String
    /// The SHA-256 of the key, in hexadecimal digits.
    public var hash: String
    /// Requests in a minute; nil for no limit.
    public var requestsPerMinute: Int?
    /// Tokens of prompts and answers in a minute; nil for no limit.
    public var tokensPerMinute: Int?

    /// Creates a key from its text.
    public init(name: String, key: String, requestsPerMinute: Int? = nil, tokensPerMinute: Int? = nil) {
        self.init(
            name: name, hash: Self.hash(of: key), requestsPerMinute: requestsPerMinute, tokensPerMinute: tokensPerMinute)
    }

    /// Creates a key from its hash.
    public init(name: String, hash: String, requestsPerMinute: Int? = nil, tokensPerMinute: Int? = nil) {
        (self.name, self.hash) = (name, hash.lowercased())
        (self.requestsPerMinute, self.tokensPerMinute) = (requestsPerMinute, tokensPerMinute)
    }

    /// The SHA-256 of a key's text, as files of keys have it.
    public static func hash(of key: String) -> String {
        var context = sha256_context()
        sha256_begin(&context)
        var text = key
        text.withUTF8 { sha256_add(&context, $0.baseAddress, $0.count) }
        var digest = [UInt8](repeating: 0, count: 32)
        sha256_end(&context, &digest)
        return digest.map { String(format: "%02x", $0) }.joined()
    }

    /// Why a file of keys cannot be read.
    public struct FileError: Error, LocalizedError {
        /// The problem and its line.
        public var errorDescription: String?
    }

    /// Reads a file of keys. Each line has a name and a key, or `sha256:` and its hash, and limits if there are any; lines that begin with
    /// `#` say nothing:
    ///
    ///     alice  sha256:9f86d0…   requests=60 tokens=100000
    ///     bob    sk-b0b-…
    ///
    /// - Throws: ``FileError``, or an error of reading the file.
    public static func read(_ file: URL) throws -> [APIKey] {
        let text = try String(contentsOf: file, encoding: .utf8)
        var keys: [APIKey] = []
        for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let words = line.split(whereSeparator: \.isWhitespace).map(String.init)
            if words.isEmpty || words[0].hasPrefix("#") { continue }
            func failure(_ reason: String) -> FileError {
                FileError(errorDescription: "Line \(number + 1) of \(file.path): \(reason)")
            }
            guard words.count >= 2 else { throw failure("a name and a key are expected.") }
            var key =
                words[1].hasPrefix("sha256:")
                ? APIKey(name: words[0], hash: String(words[1].dropFirst(7))) : APIKey(name: words[0], key: words[1])
            guard key.hash.count == 64, key.hash.allSatisfy(\.isHexDigit) else {
                throw failure("“sha256:” is followed by 64 hexadecimal digits.")
            }
            for word in words.dropFirst(2) {
                let parts = word.split(separator: "=").map(String.init)
                guard parts.count == 2, let value = Int(parts[1]), value > 0 else { throw failure("“\(word)” is not a limit.") }
                switch parts[0] {
                case "requests": key.requestsPerMinute = value
                case "tokens": key.tokensPerMinute = value
                default: throw failure("“\(parts[0])” is not known: limits are requests=N and tokens=N.")
                }
            }
            if keys.contains(where: { $0.name == key.name }) { throw failure("“\(key.name)” has a key already.") }
            keys.append(key)
        }
        return keys
    }
}

/// The requests and tokens of clients in the last minute: two buckets for each, which fill up evenly. A value without a clock.
struct KeyLimits {
    private struct Buckets {
        var requests: Double
        var tokens: Double
        var time: Double
    }

    private var buckets: [String: Buckets] = [:]

    /// Takes a request from the buckets of a key.
    ///
    /// - Parameter now: seconds.
    /// - Returns: the seconds until the next one may come; nil if this one may.
    mutating func take(_ key: APIKey, now: Double) -> Double? {
        var own = filled(key, now)
        defer { buckets[key.name] = own }
        let requestWait = key.requestsPerMinute.map { (1 - own.requests) / (Double($0) / 60) } ?? 0
        // Tokens are known afterwards: a bucket that is empty fills up first.
        let tokenWait = key.tokensPerMinute.map { own.tokens > 0 ? 0 : (1 - own.tokens) / (Double($0) / 60) } ?? 0
        let wait = max(requestWait, tokenWait)
        if wait > 0 { return wait }
        own.requests -= 1
        return nil
    }

    /// Takes the tokens of a request, once they are known.
    mutating func take(tokens: Int, _ key: APIKey, now: Double) {
        var own = filled(key, now)
        own.tokens -= Double(tokens)
        buckets[key.name] = own
    }

    private func filled(_ key: APIKey, _ now: Double) -> Buckets {
        let requests = Double(key.requestsPerMinute ?? 0)
        let tokens = Double(key.tokensPerMinute ?? 0)
        guard let own = buckets[key.name] else { return Buckets(requests: requests, tokens: tokens, time: now) }
        let minutes = max(0, now - own.time) / 60
        return Buckets(
            requests: min(requests, own.requests + minutes * requests), tokens: min(tokens, own.tokens + minutes * tokens),
            time: now)
    }
}
