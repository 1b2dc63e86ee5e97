/// An HTML page that needs no network and no other file, for light and dark screens.
public struct Page: Sendable {
    /// A cell of a table.
    public enum Cell: Sendable, ExpressibleByStringInterpolation {
        /// A text.
        case text(String)
        /// A text that says what the row is about.
        case name(String)
        /// A number, at the right of its column.
        case number(String)
        /// HTML, whose texts are escaped; see ``Swift/StringProtocol/htmlEscaped``.
        case html(String)

        /// Creates a text.
        public init(stringLiteral value: String) { self = .text(value) }
    }

    private let title: String
    private let style: String
    private let script: String
    private var body = ""

    /// Creates a page with its title as the heading.
    ///
    /// - Parameters:
    ///   - style: Rules in addition to those of all pages.
    ///   - script: JavaScript that runs at the end of the page.
    public init(_ title: String, style: String = "", script: String = "") {
        (self.title, self.style, self.script) = (title, style, script)
    }

    /// Adds HTML, whose texts are escaped.
    public mutating func add(_ html: String) { body += html + "\n" }

    /// Adds a part with a heading; nothing if the part is empty.
    public mutating func add(_ heading: String, _ html: String) {
        if !html.isEmpty { body += "<h2>\(heading.htmlEscaped)</h2>\n\(html)\n" }
    }

    /// A paragraph.
    ///
    /// - Parameter kind: a class of the style sheet: `soft`, `ok` or `bad`.
    public static func paragraph(_ text: String, _ kind: String? = nil) -> String {
        "<p\(kind.map { " class=\"\($0)\"" } ?? "")>\(text.htmlEscaped)</p>"
    }

    /// A table, which can be scrolled if it is wider than the page. Empty without rows.
    public static func table(titles: [String] = [], _ rows: [[Cell]], id: String? = nil) -> String {
        guard !rows.isEmpty else { return "" }
        let head = titles.isEmpty ? "" : "<tr>" + titles.map { "<th>\($0.htmlEscaped)</th>" }.joined() + "</tr>\n"
        let lines = rows.map { row in
            "<tr>"
                + row.map { cell in
                    switch cell {
                    case .text(let text): "<td>\(text.htmlEscaped)</td>"
                    case .name(let text): "<th>\(text.htmlEscaped)</th>"
                    case .number(let text): "<td class=\"n\">\(text.htmlEscaped)</td>"
                    case .html(let html): "<td>\(html)</td>"
                    }
                }.joined() + "</tr>\n"
        }
        return "<div class=\"wide\"><table\(id.map { " id=\"\($0)\"" } ?? "")>\(head)\(lines.joined())</table></div>"
    }

    /// A table of names and their values.
    public static func table(facts: [(name: String, value: String)]) -> String {
        table(facts.map { [.name($0.name), .text($0.value)] })
    }

    /// A text that a click shows.
    public static func details(_ summary: String, _ html: String, isOpen: Bool = false) -> String {
        "<details\(isOpen ? " open" : "")><summary>\(summary)</summary>\(html)</details>"
    }

    private static let style = """
        :root{color-scheme:light dark;--ok:#2a9d5c;--bad:#d1495b;--accent:#3b78e7;--line:#8884}
        body{font:15px/1.45 system-ui,sans-serif;max-width:70rem;margin:2em auto;padding:0 1em}
        h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2em}
        table{border-collapse:collapse}th,td{text-align:left;vertical-align:top;padding:.3em 1em .3em 0}
        tr{border-bottom:1px solid var(--line)}th{font-weight:500}
        .n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}.wide{overflow-x:auto}
        pre{white-space:pre-wrap;font:inherit;margin:.3em 0;overflow-wrap:anywhere}
        .soft{opacity:.7}.ok{color:var(--ok)}.bad{color:var(--bad)}details{margin:.2em 0}summary{cursor:pointer}
        svg{max-width:100%;height:auto}svg text{font-size:12px;fill:currentColor}

        """

    /// The page.
    public var html: String {
        """
        <!doctype html>
        <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
        <title>\(title.htmlEscaped)</title><style>
        \(Self.style)\(style)</style></head><body>
        <h1>\(title.htmlEscaped)</h1>
        \(body)\(script.isEmpty ? "" : "<script>\n\(script)\n</script>\n")</body></html>

        """
    }
}

extension StringProtocol {
    /// The text with the characters replaced that have a meaning in HTML, inside and outside of attributes.
    public var htmlEscaped: String {
        var result = ""
        result.reserveCapacity(utf8.count)
        for character in unicodeScalars {
            switch character {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "'": result += "&#39;"
            default: result.unicodeScalars.append(character)
            }
        }
        return result
    }
}
