internal import JSON

/// What a tool of a server has returned, as text for a model.
struct MCPOutput {
    private let parts: [String]

    /// - Throws: ``MCPError/invalidReply(server:reason:)``
    init(_ result: JSONValue, server: String) throws {
        guard case .array(let content)? = result["content"] else {
            guard let structured = result["structuredContent"] else {
                throw MCPError.invalidReply(server: server, reason: "a result without content")
            }
            parts = [structured.spacedText]
            return
        }
        var parts: [String] = []
        for item in content {
            switch item["type"]?.string {
            case "text": parts.append(item["text"]?.string ?? "")
            case "image", "audio": parts.append("[\(item["type"]?.string ?? ""), \(item["mimeType"]?.string ?? "unknown")]")
            case "resource_link": parts.append("[\(item["uri"]?.string ?? "") \(item["name"]?.string ?? "")]")
            case "resource": parts.append(item["resource"]?["text"]?.string ?? "[\(item["resource"]?["uri"]?.string ?? "")]")
            default: parts.append("[\(item["type"]?.string ?? "unknown")]")
            }
        }
        // Structured results are repeated as text by most servers, but not by all.
        if parts.allSatisfy(\.isEmpty), let structured = result["structuredContent"] { parts = [structured.spacedText] }
        self.parts = parts
    }

    /// - Parameter maximum: the most characters; a mark says how many are missing.
    func text(maximum: Int) -> String {
        let text = parts.joined(separator: "\n").withoutControls
        guard text.unicodeScalars.count > maximum else { return text }
        let kept = String(String.UnicodeScalarView(text.unicodeScalars.prefix(max(0, maximum))))
        return kept + "\n[… \(text.unicodeScalars.count - maximum) more characters were left out]"
    }
}

extension String {
    /// A text of a server within a sentence: in one line, without what controls a terminal, and not long.
    var quotable: String {
        let line = String(String.UnicodeScalarView(unicodeScalars.prefix(4_000))).withoutControls.split(
            whereSeparator: \.isNewline
        )
        .joined(separator: " ").trimmingPrefix { $0.isWhitespace }
        return line.unicodeScalars.count > 300
            ? String(String.UnicodeScalarView(line.unicodeScalars.prefix(300))) + " …" : String(line)
    }

    /// Without characters that control a terminal; line ends and tabulators stay.
    var withoutControls: String {
        var scalars = String.UnicodeScalarView()
        for scalar in unicodeScalars
        where scalar == "\n" || scalar == "\t" || scalar.properties.generalCategory != .control { scalars.append(scalar) }
        return String(scalars)
    }
}
