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
        case tagged(open: String, middle: String, close: String, separator: String)
        /// `name=value`, with values in Python syntax.
        case python
        /// `name:value`, with strings between marks (Gemma 4).
        case marked(String)
    }

    /// The text that begins a call and does not occur in answers. Often one token.
    package var trigger: String
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

    /// Whether the trigger is a part of the header before an answer rather than text of an answer.
    var isHeader: Bool { trigger == " to=functions." }
    /// Whether calls begin as any JSON object could: only the name of a tool tells them from an answer.
    var beginsAsJSON: Bool { trigger.first == "{" }

    /// The beginnings of calls that are written as JSON instead of the trained format.
    static let plainOpenings = ["{{", "{\"", "{\n", "{"]

    /// The beginnings of blocks of code, in which some models write calls.
    static let fences = ["```json\n", "``"]

    /// Detects the format from the chat template, and from the vocabulary where the template does not mention the
    /// tokens; nil if no known format is found.
    ///
    /// - Parameter hasToken: whether the vocabulary has a special token of this name.
    package init?(template: String, hasToken: (String) -> Bool) {
        func has(_ text: String) -> Bool { template.hasBytes(of: text) }
        // Without the variable `tools`, a template cannot describe the tools to the model.
        guard has("tools") else { return nil }
        if has("<|tool_call>") {
            self.init(
                trigger: "<|tool_call>", beforeName: "call:", afterName: "{", arguments: .marked("<|\"|>"),
                afterArguments: "}<tool_call|>")
        } else if has("to=functions.") {
            self.init(
                trigger: " to=functions.", afterName: " <|constrain|>json<|message|>", end: "<|call|>", allowsSeveral: false)
        } else if has("<function=") {
            self.init(
                trigger: "<tool_call>", beforeName: "\n<function=", afterName: ">\n",
                arguments: .tagged(open: "<parameter=", middle: ">\n", close: "\n</parameter>\n", separator: ""),
                afterArguments: "</function>\n</tool_call>")
        } else if has("<arg_key>") {
            let breaks = has("<arg_key>{{ k }}</arg_key>\n") || has("</arg_key>\\n")
            let line = breaks ? "\n" : ""
            self.init(
                trigger: "<tool_call>", afterName: line,
                arguments: .tagged(
                    open: "<arg_key>", middle: "</arg_key>\(line)<arg_value>", close: "</arg_value>\(line)", separator: ""),
                afterArguments: "</tool_call>")
        } else if has("<function name=") || has("<param name=") {
            self.init(
                trigger: "<function name=\"", afterName: "\">",
                arguments: .tagged(open: "<param name=\"", middle: "\">", close: "</param>", separator: ""),
                afterArguments: "</function>")
        } else if has("[TOOL_CALLS]"), has("[ARGS]") {
            let identifier = has("[CALL_ID]") ? "[CALL_ID]" + Self.identifierMark : ""
            self.init(trigger: "[TOOL_CALLS]", afterName: identifier + "[ARGS]")
        } else if has("[TOOL_CALLS]") {
            self.init(
                trigger: "[TOOL_CALLS]", beforeName: "[{\"name\": \"", afterName: "\", \"arguments\":",
                afterArguments: ", \"id\": \"\(Self.identifierMark)\"}", betweenCalls: ", {\"name\": \"", end: "]")
        } else if has("<｜tool▁calls▁begin｜>") {
            let isOld = has("function<｜tool▁sep｜>") || has("'type'] + '<｜tool▁sep｜>'")
            self.init(
                trigger: "<｜tool▁calls▁begin｜>",
                beforeName: "<｜tool▁call▁begin｜>" + (isOld ? "function<｜tool▁sep｜>" : ""),
                afterName: isOld ? "\n```json\n" : "<｜tool▁sep｜>",
                afterArguments: (isOld ? "\n```" : "") + "<｜tool▁call▁end｜>",
                betweenCalls: (isOld ? "\n" : "") + "<｜tool▁call▁begin｜>" + (isOld ? "function<｜tool▁sep｜>" : ""),
                end: "<｜tool▁calls▁end｜>")
        } else if has("<|tool_call_start|>") || hasToken("<|tool_call_start|>") {
            self.init(
                trigger: "<|tool_call_start|>", beforeName: "[", afterName: "(", arguments: .python, afterArguments: ")",
                betweenCalls: ", ", end: "]<|tool_call_end|>")
        } else if has("<function_calls>") {
            self.init(
                trigger: "<function_calls>", afterName: "(", arguments: .python, afterArguments: ")", betweenCalls: "\n",
                end: "</function_calls>")
        } else if has("<|tool_call|>") || has("<|tool|>") && hasToken("<|tool_call|>") {
            self.init(
                trigger: "<|tool_call|>", beforeName: "[{\"name\": \"", afterName: "\", \"arguments\":", afterArguments: "}",
                betweenCalls: ", {\"name\": \"", end: hasToken("<|/tool_call|>") ? "]<|/tool_call|>" : "]")
        } else if has("<tool_call>") {
            self.init(
                trigger: "<tool_call>", beforeName: "\n{\"name\": \"", afterName: "\", \"arguments\":",
                afterArguments: "}\n</tool_call>")
        } else if has("\"parameters\": ") || has("python_tag") {
            self.init(
                trigger: "{\"name\": \"", afterName: "\", \"parameters\":", afterArguments: "}", allowsSeveral: false)
        } else {
            return nil
        }
    }

    private init(
        trigger: String, beforeName: String = "", afterName: String, arguments: Arguments = .json, afterArguments: String = "",
        betweenCalls: String? = nil, end: String = "", allowsSeveral: Bool = true
    ) {
        self.trigger = trigger
        self.beforeName = beforeName
        self.afterName = afterName
        self.arguments = arguments
        self.afterArguments = afterArguments
        self.betweenCalls = betweenCalls
        self.end = end
        self.allowsSeveral = allowsSeveral
    }
}

extension ToolFormat.Arguments {
    func opening(_ name: String) -> String {
        switch self {
        case .json: ""
        case .tagged(let open, let middle, _, _): open + name + middle
        case .python: name + "="
        case .marked: name + ":"
        }
    }

    var closing: String { if case .tagged(_, _, let close, _) = self { close } else { "" } }

    var separator: String {
        switch self {
        case .json: ""
        case .tagged(_, _, _, let separator): separator
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
        case .tagged(_, _, let close, _): close
        case .marked(let mark): mark
        }
    }
}

extension ToolFormat.Arguments {
    /// All text between a string value and the next argument.
    var afterText: String { textOpen.isEmpty ? closing : textClose + closing }
}

extension ToolFormat {
    /// A call identifier of nine letters and digits, as the formats with identifiers require.
    @Sendable static func identifier() -> String {
        let alphabet = Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
        return String((0..<9).map { _ in alphabet[Int.random(in: 0..<alphabet.count)] })
    }
}

/// The marks around the reasoning of a family of models.
package struct ThinkingFormat: Sendable, Equatable {
    package var open: String
    package var close: String

    package init?(template: String) {
        func has(_ text: String) -> Bool { template.hasBytes(of: text) }
        if has("<|channel>thought") {
            (open, close) = ("<|channel>thought\n", "<channel|>")
        } else if has("<|channel|>analysis") || has("<|channel|>") && has("analysis") {
            (open, close) = ("<|channel|>analysis<|message|>", "<|end|>")
        } else if has("[THINK]") {
            (open, close) = ("[THINK]", "[/THINK]")
        } else if has("<think>") || has("</think>") {
            (open, close) = ("<think>", "</think>")
        } else {
            return nil
        }
    }
}
