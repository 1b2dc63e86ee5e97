/// The text of HTML pages, as browsers show it: without tags, scripts and hidden parts, with the headings as structure and a line for
/// each row of a table. Any input gives some text, as in browsers, in time that grows with its length.
enum HTMLText {
    static func extracted(_ text: String) -> ExtractedText {
        var reader = HTMLReader(text)
        return reader.read()
    }
}

/// Follows the tags of a page with a stack of the open elements, by the rules of the HTML standard on which tags end which elements.
private struct HTMLReader {
    /// The places in the stack of the innermost elements of some kinds, −1 for none: some tags do not look further for an element that
    /// they end. Without them, a search through the stack for each tag would take quadratic time.
    private struct Bounds {
        var scope = -1
        var buttonScope = -1
        var listScope = -1
        var table = -1
        var special = -1
        /// Of the special elements, but those that list items may be in.
        var item = -1
        /// The innermost element that is not one of SVG or MathML.
        var html = -1
    }

    private struct Element {
        var name: String
        var bounds: Bounds
        /// Whether its contents are SVG or MathML.
        var isForeign: Bool
        var isHidden: Bool
        /// Whether it is an element of HTML, and neither it nor an element around it is hidden.
        var isShown: Bool
        /// Whether it is still open. A formatting element may end before the elements in it.
        var isOpen = true
    }

    /// A table, with the row that is being read.
    private struct Table {
        var isLayout: Bool
        /// Whether the row is not one of values, but a part of the page: its cells are texts like others.
        var isLayoutRow: Bool
        var cells: [ExtractedText.Block] = []
        var isInCell = false
    }

    private var tokenizer: HTMLTokenizer
    private var result = ExtractedText(blocks: [])
    private let isXML: Bool

    private var stack: [Element] = []
    /// The places of the open elements in the stack, by name.
    private var open: [String: [Int]] = [:]
    /// The numbers of open elements that are hidden, and that are preformatted.
    private var (hidden, preformatted) = (0, 0)
    private var tables: [Table] = []
    /// Forms are not in forms.
    private var isInForm = false

    /// The line of the place up to which lines were counted.
    private var (line, counted) = (1, 0)
    /// The text of the block that is being read, and its lines.
    private var text: [UInt8] = []
    private var (firstLine, lastLine) = (1, 1)
    /// Whether it is more than spaces.
    private var hasContent = false

    private var headings: [(level: Int, text: String)] = []
    /// The levels of the headings that are being read.
    private var levels: [Int] = []
    /// Whether there is text below the last heading, and the line of that.
    private var (hasText, headingLine) = (true, 1)
    private var hasTitleElement = false

    init(_ text: String) {
        let bytes = Array(text.utf8)
        tokenizer = HTMLTokenizer(bytes: bytes)
        isXML = bytes.prefix(64).drop { $0 <= 0x20 }.starts(with: "<?xml".utf8)
    }

    mutating func read() -> ExtractedText {
        while true {
            tokenizer.hasSections = isXML || stack.last.map { $0.bounds.html < stack.count - 1 } ?? false
            guard let token = tokenizer.next() else { break }
            switch token {
            case .text(let range): append(range)
            case .reference(let text):
                advance(to: tokenizer.position)
                append(text)
            case .tag(let tag):
                advance(to: tokenizer.position)
                if tag.isEnd { end(tag.name) } else { start(tag) }
            }
        }
        close(to: 0)
        flush()
        endHeading()
        return result
    }

    // MARK: - Tags

    private mutating func start(_ tag: HTMLTokenizer.Tag) {
        if stack.last?.isForeign ?? false {
            guard HTMLElements.endingForeign.contains(tag.name) else {
                if !tag.isSelfClosing { push(tag, isForeign: !HTMLElements.integrationPoints.contains(tag.name)) }
                return
            }
            while stack.last?.isForeign ?? false { close(to: stack.count - 1) }
        }
        var tag = tag
        if tag.name == "image" { tag.name = "img" }
        let bounds = stack.last?.bounds ?? Bounds()
        switch tag.name {
        case "html", "head", "body", "frameset": return
        case "br", "img", "input", "hr":
            if tag.name == "hr" { closeParagraph() }
            if hidden == 0, !HTMLElements.isHidden(tag), tag.attributes["type"]?.lowercased() != "hidden" { show(tag) }
            return
        case let name where HTMLElements.void.contains(name): return
        case let name where name == "title" || HTMLElements.raw.contains(name):
            // Pages in XML have empty elements.
            if !tag.isSelfClosing { readRaw(tag.name) }
            return
        case "svg", "math":
            if !tag.isSelfClosing { push(tag, isForeign: true) }
            return
        case "a", "nobr": if let place = open[tag.name]?.last, place > bounds.scope { end(tag.name) }
        case "button": if let place = open["button"]?.last, place > bounds.scope { close(to: place) }
        case "option", "optgroup":
            if stack.last?.name == "option" { close(to: stack.count - 1) }
            if tag.name == "optgroup", stack.last?.name == "optgroup" { close(to: stack.count - 1) }
        case "li": if bounds.item >= 0, stack[bounds.item].name == "li" { close(to: bounds.item) }
        case "dd", "dt":
            if bounds.item >= 0, stack[bounds.item].name == "dd" || stack[bounds.item].name == "dt" { close(to: bounds.item) }
        case "form":
            if isInForm { return }
            isInForm = (open["template"] ?? []).isEmpty
        case "caption", "col", "colgroup", "tbody", "thead", "tfoot", "tr", "td", "th":
            guard startTablePart(tag.name, in: bounds.table) else { return }
        case "table":
            // Directly in a table, a table ends that.
            if bounds.table >= 0, stack[bounds.table].name == "table",
                !["td", "th", "caption"].contains(where: { open[$0]?.last ?? -1 > bounds.table })
            {
                close(to: bounds.table)
            }
        default: break
        }
        if HTMLElements.closingParagraph.contains(tag.name) { closeParagraph() }
        if HTMLElements.headings.contains(tag.name), let last = stack.last, HTMLElements.headings.contains(last.name) {
            close(to: stack.count - 1)
        }
        let isOpen = push(tag, isForeign: false)
        switch tag.name {
        case "textarea" where !isXML, "xmp" where !isXML:
            var range = tokenizer.rawText(of: tag.name)
            if tag.name == "xmp" { return append(range) }
            // A line break at the beginning is not shown.
            if range.first.map({ tokenizer.bytes[$0] == 0x0A }) ?? false { range.removeFirst() }
            append(tokenizer.decoded(range, isAttribute: false))
        case "plaintext": append(tokenizer.rest())
        default: if isXML, tag.isSelfClosing, isOpen { close(to: stack.count - 1) }
        }
    }

    /// Ends what a part of a table ends.
    ///
    /// - Returns: Whether there is a table for it.
    private mutating func startTablePart(_ name: String, in table: Int) -> Bool {
        guard table >= 0, stack[table].name == "table" else { return false }
        func innermost(_ names: [String]) -> Int? { names.compactMap { open[$0]?.last }.filter { $0 > table }.max() }
        switch name {
        case "td", "th":
            if innermost(["tr"]) == nil {
                _ = startTablePart("tr", in: table)
                push(HTMLTokenizer.Tag(name: "tr"), isForeign: false)
            }
            close(to: (innermost(["tr"]) ?? table) + 1)
        case "tr":
            if innermost(["tbody", "thead", "tfoot"]) == nil {
                close(to: table + 1)
                push(HTMLTokenizer.Tag(name: "tbody"), isForeign: false)
            }
            close(to: (innermost(["tbody", "thead", "tfoot"]) ?? table) + 1)
        default: close(to: table + 1)
        }
        return name != "colgroup" && name != "col"
    }

    private mutating func end(_ name: String) {
        let bounds = stack.last?.bounds ?? Bounds()
        let place = open[name]?.last ?? -1
        // In SVG and MathML, end tags end their elements.
        if bounds.html < stack.count - 1, place > bounds.html { return close(to: place) }
        switch name {
        case "html", "head", "body": break
        case "br": if hidden == 0 { breakLine() }
        case "p":
            // An end alone is an empty paragraph.
            if place > bounds.buttonScope { close(to: place) } else { separate() }
        case "li": if place > bounds.listScope { close(to: place) }
        case _ where HTMLElements.headings.contains(name):
            // Any heading ends.
            let place = HTMLElements.headings.compactMap { open[$0]?.last }.max() ?? -1
            if place > bounds.scope { close(to: place) }
        case "form":
            isInForm = false
            guard place > bounds.scope else { break }
            while let last = stack.last, HTMLElements.impliedEnds.contains(last.name) { close(to: stack.count - 1) }
            if place == stack.count - 1 { close(to: place) } else { endAlone(place) }
        case _ where HTMLElements.formatting.contains(name):
            guard place > bounds.scope else { break }
            // Blocks in it go on.
            if place > bounds.special { close(to: place) } else { endAlone(place) }
        case "table", "caption", "tbody", "thead", "tfoot", "tr", "td", "th":
            if place >= bounds.table, place >= 0 { close(to: place) }
        case "template": if place >= 0 { close(to: place) }
        case _ where HTMLElements.special.contains(name): if place >= bounds.scope, place >= 0 { close(to: place) }
        default: if place > bounds.special { close(to: place) }
        }
    }

    private mutating func closeParagraph() {
        if let place = open["p"]?.last, place > stack.last?.bounds.buttonScope ?? -1 { close(to: place) }
    }

    // MARK: - Elements

    /// As in browsers, pages are no deeper: a page of a few megabytes may have a million open elements.
    private static let maximumDepth = 512

    /// Opens an element.
    ///
    /// - Returns: Whether it is open. At the maximum depth its contents are those of the element around it, and only its place in the
    ///   text is kept.
    @discardableResult private mutating func push(_ tag: HTMLTokenizer.Tag, isForeign: Bool) -> Bool {
        let (name, place) = (tag.name, stack.count)
        guard place < Self.maximumDepth else {
            if HTMLElements.blocks.contains(name) { separate() } else if HTMLElements.spaced.contains(name) { space() }
            return false
        }
        var bounds = stack.last?.bounds ?? Bounds()
        let isInForeign = stack.last?.isForeign ?? false
        if isInForeign ? HTMLElements.integrationPoints.contains(name) : HTMLElements.scopes.contains(name) {
            (bounds.scope, bounds.buttonScope, bounds.listScope) = (place, place, place)
        }
        if !isInForeign, !isForeign {
            bounds.html = place
            if name == "button" { bounds.buttonScope = place }
            if name == "ol" || name == "ul" { bounds.listScope = place }
            if name == "table" || name == "template" { bounds.table = place }
            if HTMLElements.special.contains(name) {
                bounds.special = place
                if name != "address", name != "div", name != "p" { bounds.item = place }
            }
        } else if isInForeign, !isForeign {
            (bounds.special, bounds.item) = (place, place)
        }
        let isHidden = HTMLElements.hidden.contains(name) || HTMLElements.isHidden(tag)
        let isShown = hidden == 0 && !isHidden && !isInForeign
        if isShown { enter(tag) }
        stack.append(Element(name: name, bounds: bounds, isForeign: isForeign, isHidden: isHidden, isShown: isShown))
        open[name, default: []].append(place)
        if isHidden { hidden += 1 }
        if HTMLElements.preformatted.contains(name) { preformatted += 1 }
        return true
    }

    /// Ends all elements but the first ones.
    private mutating func close(to count: Int) {
        while stack.count > count {
            let element = stack.removeLast()
            if element.isOpen { leave(element) }
        }
        while let last = stack.last, !last.isOpen { stack.removeLast() }
    }

    /// Ends an element without those in it.
    private mutating func endAlone(_ place: Int) {
        (stack[place].isOpen, stack[place].isShown) = (false, false)
        leave(stack[place])
        if place == stack.count - 1 { stack.removeLast() }
    }

    private mutating func enter(_ tag: HTMLTokenizer.Tag) {
        switch tag.name {
        case _ where HTMLElements.headings.contains(tag.name):
            startLayout()
            flush()
            levels.append(tag.name.utf8.last.map { Int($0) - 0x30 } ?? 1)
        case "table":
            startLayout()
            flush()
            let isLayout = ["presentation", "none"].contains(tag.attributes["role"]?.lowercased())
            tables.append(Table(isLayout: isLayout, isLayoutRow: isLayout))
        case "td", "th":
            flush()
            if !tables.isEmpty { tables[tables.count - 1].isInCell = true }
        case "pre", "listing", "xmp", "plaintext":
            startLayout()
            separate()
        case _ where HTMLElements.blocks.contains(tag.name): separate()
        case _ where HTMLElements.spaced.contains(tag.name): space()
        default: break
        }
    }

    private mutating func leave(_ element: Element) {
        open[element.name]?.removeLast()
        if element.isShown {
            switch element.name {
            case _ where HTMLElements.headings.contains(element.name):
                flush()
                levels.removeLast()
            case "table":
                flush()
                tables.removeLast()
            case "tr":
                flush()
                endRow()
            case "td", "th":
                flush(endsCell: true)
                if !tables.isEmpty { tables[tables.count - 1].isInCell = false }
            case let name where HTMLElements.blocks.contains(name): separate()
            case let name where HTMLElements.spaced.contains(name): space()
            default: break
            }
        }
        if element.isHidden { hidden -= 1 }
        if HTMLElements.preformatted.contains(element.name) { preformatted -= 1 }
    }

    /// Shows an element without contents.
    private mutating func show(_ tag: HTMLTokenizer.Tag) {
        switch tag.name {
        case "br": breakLine()
        case "hr": separate()
        default:
            space()
            guard tag.name == "img" || tag.attributes["type"]?.lowercased() == "image" else { break }
            append((tag.attributes["alt"] ?? "").split(whereSeparator: \.isWhitespace).joined(separator: " "))
            space()
        }
    }

    private mutating func readRaw(_ name: String) {
        let range = tokenizer.rawText(of: name)
        guard name == "title" else { return }
        let title = tokenizer.decoded(range, isAttribute: false).split(whereSeparator: \.isWhitespace).joined(separator: " ")
        if !hasTitleElement, !title.isEmpty { (result.title, hasTitleElement) = (title, true) }
    }

    // MARK: - Text

    /// Counts the lines up to a place.
    private mutating func advance(to place: Int) {
        while counted < place {
            if tokenizer.bytes[counted] == 0x0A { line += 1 }
            counted += 1
        }
    }

    /// Adds a text of the page.
    private mutating func append(_ range: Range<Int>) {
        advance(to: range.lowerBound)
        if hidden == 0 { append(tokenizer.bytes[range], isInPage: true) }
        advance(to: range.upperBound)
    }

    private mutating func append(_ added: String) {
        if hidden == 0 { append(Array(added.utf8)[...], isInPage: false) }
    }

    private mutating func append(_ bytes: ArraySlice<UInt8>, isInPage: Bool) {
        let keepsSpaces = preformatted > 0 && levels.isEmpty && !isInRow
        var index = bytes.startIndex
        while index < bytes.endIndex {
            var byte = bytes[index]
            index += 1
            if isInPage, byte == 0x0A {
                line += 1
                counted = index
            }
            // A space that does not break lines is a space; a soft hyphen is no part of a word.
            if byte == 0xC2, index < bytes.endIndex, bytes[index] == 0xA0 || bytes[index] == 0xAD {
                index += 1
                if bytes[index - 1] == 0xAD { continue }
                byte = 0x20
            }
            if byte == 0x20 || (0x09...0x0D).contains(byte) {
                if !keepsSpaces {
                    space()
                } else if byte == 0x0A, !hasContent {
                    // An empty line before the text.
                    text.removeAll()
                } else if byte != 0x0D {
                    text.append(byte)
                }
                continue
            }
            if !hasContent { (firstLine, hasContent) = (line, true) }
            lastLine = line
            text.append(byte)
        }
    }

    private mutating func space() {
        if hidden == 0, let last = text.last, last != 0x20, last != 0x0A { text.append(0x20) }
    }

    private mutating func breakLine() {
        if !levels.isEmpty || isInRow { return space() }
        if text.isEmpty { return }
        if preformatted == 0, text.last == 0x20 { text.removeLast() }
        text.append(0x0A)
    }

    // MARK: - Blocks

    /// Whether the text is in a cell of a row of values.
    private var isInRow: Bool { levels.isEmpty && tables.last.map { $0.isInCell && !$0.isLayoutRow } ?? false }

    /// Ends a block where one begins or ends. Headings and cells are in one line.
    private mutating func separate() {
        if hidden > 0 { return }
        if !levels.isEmpty || isInRow { space() } else { flush() }
    }

    /// A row with a heading, a table or code in it is a part of the page.
    private mutating func startLayout() {
        guard var table = tables.last, table.isInCell, !table.isLayoutRow else { return }
        for cell in table.cells where !cell.text.isEmpty { add(cell) }
        (table.isLayoutRow, table.cells) = (true, [])
        tables[tables.count - 1] = table
        flush()
    }

    private mutating func endRow() {
        guard var table = tables.last else { return }
        if table.cells.count > 1, table.cells.contains(where: { !$0.text.isEmpty }) {
            let shown = table.cells.filter { !$0.text.isEmpty }
            var row = ExtractedText.Block(
                text: table.cells.map { $0.text.isEmpty ? "|" : "| \($0.text)" }.joined(separator: " ") + " |",
                line: shown.first?.line ?? line, lastLine: shown.last?.lastLine)
            row.isRow = true
            add(row)
        } else {
            for cell in table.cells where !cell.text.isEmpty { add(cell) }
        }
        (table.isLayoutRow, table.cells) = (table.isLayout, [])
        tables[tables.count - 1] = table
    }

    private mutating func add(_ block: ExtractedText.Block) {
        var block = block
        block.headings = headings.map(\.text)
        hasText = true
        result.blocks.append(block)
    }

    /// A heading without text below it is a text of its own.
    private mutating func endHeading() {
        if !hasText, let last = headings.last {
            result.blocks.append(
                .init(text: last.text, headings: headings.dropLast().map(\.text), line: headingLine, lastLine: headingLine))
        }
        hasText = true
    }

    /// Ends the text that is being read.
    private mutating func flush(endsCell: Bool = false) {
        while let last = text.last, last == 0x0A || last == 0x20 || last == 0x09 { text.removeLast() }
        let content = String(decoding: text, as: UTF8.self)
        (text, hasContent) = ([], false)
        if endsCell, isInRow {
            tables[tables.count - 1].cells.append(.init(text: content, line: firstLine, lastLine: lastLine))
            return
        }
        if content.isEmpty { return }
        if let level = levels.last {
            if headings.last.map({ $0.level >= level }) ?? false { endHeading() }
            headings.removeAll { $0.level >= level }
            headings.append((level, content))
            (hasText, headingLine) = (false, firstLine)
            if result.title == nil { result.title = content }
        } else {
            add(.init(text: content, line: firstLine, lastLine: lastLine))
        }
    }
}
