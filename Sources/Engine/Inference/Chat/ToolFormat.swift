/// The format of tool calls that a family of models was trained for:
///
/// `trigger · beforeName · NAME · afterName · ARGUMENTS · afterArguments`. A further call in the same turn begins
/// either with the trigger again or with `betweenCalls`. `end` follows the last call.
package struct ToolFormat: Sendable, Equatable {
    /// The syntax of arguments.
    package enum Arguments: Sendable, Equatable {
        /// One JSON object.
        case json
        /// Each argument separately: `open NAME middle VALUE close`; strings without quotes, other values as JSON.
        case tagged(open: String, middle: String, close: String)
        /// `name=value`, with values in Python syntax.
        case python
        /// `name:value`, with strings between marks (Gemma 4).
        case marked(String)
    }

    /// The text that begins a call and does not occur in answers. Often one token.
    package var trigger: String
    /// Whether the trigger is a part of the header before an answer rather than text of an answer.
    var isHeader = false
    package var beforeName = ""
    package var afterName: String
    package var arguments = Arguments.json
    package var afterArguments = ""
    /// The text between two calls of one turn; nil if each call has its own trigger.
    package var betweenCalls: String?
    /// The text after the last call; may be empty.
    package var end = ""
    /// Whether a turn may contain several calls.
    package var allowsSeveral = true
    /// The placeholder for the call identifier in the texts above, in formats that have one.
    static let identifierMark = "\u{0}"

    /// The mark after the arguments, such as `</tool_call>`, a control token in most vocabularies; nil if there is none.
    package var endMark: String? {
        guard let open = afterArguments.firstIndex(of: "<"), let close = afterArguments[open...].firstIndex(of: ">") else {
            return nil
        }
        return String(afterArguments[open...close])
    }

    /// The beginning of a call that is written as JSON instead, up to the end of the name.
    package static func plainBeginning(of tool: String) -> String { "{\"name\": \"\(tool)\"" }

    /// Whether calls begin as any JSON object could: only the name of a tool tells them from an answer.
    var beginsAsJSON: Bool { trigger.first == "{" }
}

extension ToolFormat {
    /// Detects the format from the chat template, and from the vocabulary where the template does not mention the
    /// tokens; nil if no known format is found.
    ///
    /// - Parameter hasToken: whether the vocabulary has a special token of this name.
    package init?(template: String, hasToken: (String) -> Bool) {
        // Without the variable `tools`, a template cannot describe the tools to the model.
        guard template.hasBytes(of: "tools"),
            let known = Self.known.first(where: { $0.isFound(in: template, hasToken: hasToken) })
        else { return nil }
        self = known.format
    }
}

extension ToolFormat.Arguments {
    func opening(_ name: String) -> String {
        switch self {
        case .json: ""
        case .tagged(let open, let middle, _): open + name + middle
        case .python: name + "="
        case .marked: name + ":"
        }
    }

    var closing: String { if case .tagged(_, _, let close) = self { close } else { "" } }

    var separator: String {
        switch self {
        case .json, .tagged: ""
        case .python: ", "
        case .marked: ","
        }
    }

    /// The text that follows the last argument.
    var ending: String {
        switch self {
        case .json, .marked: "}"
        case .python: ")"
        case .tagged: "</"
        }
    }

    /// The text before and after a string value.
    var textOpen: String { if case .marked(let mark) = self { mark } else { "" } }

    var textClose: String {
        switch self {
        case .json, .python: ""
        case .tagged(_, _, let close): close
        case .marked(let mark): mark
        }
    }

    /// All text between a string value and the next argument.
    var afterText: String { textOpen.isEmpty ? closing : textClose + closing }
}

extension ToolFormat {
    /// A call identifier of nine letters and digits, as the formats with identifiers require.
    @Sendable package static func identifier() -> String {
        let alphabet = Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
        return String((0..<9).map { _ in alphabet[Int.random(in: 0..<alphabet.count)] })
    }
}

/// The marks around the reasoning of a family of models.
package struct ThinkingFormat: Sendable, Equatable {
    package var open: String
    package var close: String
}

extension ThinkingFormat {
    package init?(template: String) {
        guard let known = Self.known.first(where: { $0.isFound(in: template) { _ in false } }) else { return nil }
        self = known.format
    }
}
