/// What the HTML standard says about elements, as far as the text of a page depends on it
/// (https://html.spec.whatwg.org/multipage/parsing.html#parsing-main-inbody and #rendering).
enum HTMLElements {
    /// Elements without contents.
    static let void: Set<String> = [
        "area", "base", "basefont", "bgsound", "br", "embed", "frame", "hr", "img", "input", "keygen", "link", "meta",
        "param",
        "source", "track", "wbr",
    ]
    /// Elements whose contents are not markup and are not shown.
    static let raw: Set<String> = ["iframe", "noembed", "noframes", "noscript", "script", "style"]
    /// Elements whose contents browsers do not show.
    static let hidden: Set<String> = [
        "annotation", "annotation-xml", "audio", "canvas", "datalist", "svg", "template", "video",
    ]
    /// Elements whose spaces and line breaks are shown.
    static let preformatted: Set<String> = ["listing", "plaintext", "pre", "textarea", "xmp"]
    static let headings: Set<String> = ["h1", "h2", "h3", "h4", "h5", "h6"]
    /// Elements that are shown in a line, but are no part of the word before them.
    static let spaced: Set<String> = ["button", "meter", "object", "progress", "select", "textarea"]

    /// Elements that end an open paragraph.
    static let closingParagraph: Set<String> = headings.union([
        "address", "article", "aside", "blockquote", "center", "dd", "details", "dialog", "dir", "div", "dl", "dt", "fieldset",
        "figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "li", "listing", "main", "menu", "nav", "ol", "p",
        "plaintext", "pre", "search", "section", "summary", "table", "ul", "xmp",
    ])
    /// Elements whose text is not in a line with the text around them.
    static let blocks = closingParagraph.union([
        "caption", "legend", "optgroup", "option", "tbody", "td", "tfoot", "th", "thead", "tr",
    ])
    /// Elements that may overlap with others: their end tags end only them.
    static let formatting: Set<String> = [
        "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
    ]

    /// Elements that need no end tag.
    static let impliedEnds: Set<String> = ["dd", "dt", "li", "optgroup", "option", "p", "rb", "rp", "rt", "rtc"]

    /// Elements outside of which most end tags do not look for what they end.
    static let scopes: Set<String> = [
        "applet", "caption", "html", "marquee", "object", "select", "table", "td", "template", "th",
    ]
    /// Elements outside of which the end tags of all others do not look.
    static let special: Set<String> = closingParagraph.union(scopes).union(raw).union([
        "button", "colgroup", "tbody", "textarea", "tfoot", "thead", "title", "tr",
    ])

    /// Elements of SVG and MathML whose contents are HTML.
    static let integrationPoints: Set<String> = ["desc", "foreignobject", "mi", "mn", "mo", "ms", "mtext", "title"]
    /// Elements that end SVG and MathML.
    static let endingForeign: Set<String> = headings.union([
        "b", "big", "blockquote", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em", "embed", "head", "hr", "i",
        "img",
        "li", "listing", "menu", "meta", "nobr", "ol", "p", "pre", "ruby", "s", "small", "span", "strike", "strong", "sub", "sup",
        "table", "tt", "u", "ul", "var",
    ])

    /// Whether an element with these attributes is not shown.
    static func isHidden(_ tag: HTMLTokenizer.Tag) -> Bool {
        // Browsers show “until-found” to those who search for its text.
        if let value = tag.attributes["hidden"], value.lowercased() != "until-found" { return true }
        if tag.attributes["aria-hidden"]?.lowercased() == "true" { return true }
        if tag.name == "dialog", tag.attributes["open"] == nil { return true }
        return tag.attributes["style"].map(hides) ?? false
    }

    /// The last declaration of a property counts.
    private static func hides(style: String) -> Bool {
        var (isNotDisplayed, isInvisible) = (false, false)
        for declaration in style.utf8.split(separator: UInt8(ascii: ";")) {
            let parts = declaration.split(separator: UInt8(ascii: ":"), maxSplits: 1).map {
                Substring($0).lowercased().filter { !$0.isWhitespace }.replacing("!important", with: "")
            }
            guard parts.count == 2 else { continue }
            if parts[0] == "display" { isNotDisplayed = parts[1] == "none" }
            if parts[0] == "visibility" { isInvisible = parts[1] == "hidden" || parts[1] == "collapse" }
        }
        return isNotDisplayed || isInvisible
    }
}
