/// What shows that a model was trained for a format.
enum FormatMark: Sendable, ExpressibleByStringLiteral {
    /// The chat template contains this text.
    case text(String)
    /// The vocabulary has a special token of this name.
    case token(String)

    init(stringLiteral text: String) { self = .text(text) }
}

/// A format, and the marks by which its models are recognised.
struct KnownFormat<Format: Sendable>: Sendable {
    /// A family of models with this format.
    var models: String
    /// One of these lists suffices, if all of its marks are found.
    var marks: [[FormatMark]]
    var format: Format

    func isFound(in template: String, hasToken: (String) -> Bool) -> Bool {
        marks.contains { list in
            list.allSatisfy { mark in
                switch mark {
                case .text(let text): template.hasBytes(of: text)
                case .token(let name): hasToken(name)
                }
            }
        }
    }
}

extension ToolFormat {
    /// All formats of tool calls. The first one counts whose marks are found: variants that have more marks come first.
    static let known: [KnownFormat<ToolFormat>] = [
        KnownFormat(
            models: "Gemma 4", marks: [["<|tool_call>"]],
            format: ToolFormat(
                trigger: "<|tool_call>", beforeName: "call:", afterName: "{", arguments: .marked("<|\"|>"),
                afterArguments: "}<tool_call|>")),
        KnownFormat(
            models: "gpt-oss", marks: [["to=functions."]],
            format: ToolFormat(
                trigger: " to=functions.", isHeader: true, afterName: " <|constrain|>json<|message|>", end: "<|call|>",
                allowsSeveral: false)),
        KnownFormat(
            models: "Qwen3-Coder", marks: [["<function="]],
            format: ToolFormat(
                trigger: "<tool_call>", beforeName: "\n<function=", afterName: ">\n",
                arguments: .tagged(open: "<parameter=", middle: ">\n", close: "\n</parameter>\n"),
                afterArguments: "</function>\n</tool_call>")),
        // With line breaks after keys, which are in the template's own text or in one of its strings.
        KnownFormat(
            models: "GLM-4.5", marks: [["<arg_key>{{ k }}</arg_key>\n"], ["<arg_key>", "</arg_key>\\n"]],
            format: ToolFormat(
                trigger: "<tool_call>", afterName: "\n",
                arguments: .tagged(open: "<arg_key>", middle: "</arg_key>\n<arg_value>", close: "</arg_value>\n"),
                afterArguments: "</tool_call>")),
        KnownFormat(
            models: "GLM-4.7", marks: [["<arg_key>"]],
            format: ToolFormat(
                trigger: "<tool_call>", afterName: "",
                arguments: .tagged(open: "<arg_key>", middle: "</arg_key><arg_value>", close: "</arg_value>"),
                afterArguments: "</tool_call>")),
        KnownFormat(
            models: "MiniCPM5", marks: [["<function name="], ["<param name="]],
            format: ToolFormat(
                trigger: "<function name=\"", afterName: "\">",
                arguments: .tagged(open: "<param name=\"", middle: "\">", close: "</param>"), afterArguments: "</function>")),
        KnownFormat(
            models: "Mistral Small 3.2", marks: [["[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"]],
            format: ToolFormat(trigger: "[TOOL_CALLS]", afterName: "[CALL_ID]\(identifierMark)[ARGS]")),
        KnownFormat(
            models: "Ministral 3", marks: [["[TOOL_CALLS]", "[ARGS]"]],
            format: ToolFormat(trigger: "[TOOL_CALLS]", afterName: "[ARGS]")),
        KnownFormat(
            models: "Mistral Nemo", marks: [["[TOOL_CALLS]"]],
            format: ToolFormat(
                trigger: "[TOOL_CALLS]", beforeName: "[{\"name\": \"", afterName: "\", \"arguments\":",
                afterArguments: ", \"id\": \"\(identifierMark)\"}", betweenCalls: ", {\"name\": \"", end: "]")),
        KnownFormat(
            models: "DeepSeek-R1",
            marks: [
                ["<｜tool▁calls▁begin｜>", "function<｜tool▁sep｜>"], ["<｜tool▁calls▁begin｜>", "'type'] + '<｜tool▁sep｜>'"],
            ],
            format: ToolFormat(
                trigger: "<｜tool▁calls▁begin｜>", beforeName: "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
                afterName: "\n```json\n", afterArguments: "\n```<｜tool▁call▁end｜>",
                betweenCalls: "\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>", end: "<｜tool▁calls▁end｜>")),
        KnownFormat(
            models: "DeepSeek-V3.1", marks: [["<｜tool▁calls▁begin｜>"]],
            format: ToolFormat(
                trigger: "<｜tool▁calls▁begin｜>", beforeName: "<｜tool▁call▁begin｜>", afterName: "<｜tool▁sep｜>",
                afterArguments: "<｜tool▁call▁end｜>", betweenCalls: "<｜tool▁call▁begin｜>", end: "<｜tool▁calls▁end｜>")),
        KnownFormat(
            models: "LFM2", marks: [["<|tool_call_start|>"], [.token("<|tool_call_start|>")]],
            format: ToolFormat(
                trigger: "<|tool_call_start|>", beforeName: "[", afterName: "(", arguments: .python, afterArguments: ")",
                betweenCalls: ", ", end: "]<|tool_call_end|>")),
        KnownFormat(
            models: "OLMo 3", marks: [["<function_calls>"]],
            format: ToolFormat(
                trigger: "<function_calls>", afterName: "(", arguments: .python, afterArguments: ")", betweenCalls: "\n",
                end: "</function_calls>")),
        KnownFormat(
            models: "Phi-4-mini",
            marks: [
                ["<|tool_call|>", .token("<|/tool_call|>")],
                ["<|tool|>", .token("<|tool_call|>"), .token("<|/tool_call|>")],
            ],
            format: ToolFormat(
                trigger: "<|tool_call|>", beforeName: "[{\"name\": \"", afterName: "\", \"arguments\":", afterArguments: "}",
                betweenCalls: ", {\"name\": \"", end: "]<|/tool_call|>")),
        KnownFormat(
            models: "Granite 3.3", marks: [["<|tool_call|>"], ["<|tool|>", .token("<|tool_call|>")]],
            format: ToolFormat(
                trigger: "<|tool_call|>", beforeName: "[{\"name\": \"", afterName: "\", \"arguments\":", afterArguments: "}",
                betweenCalls: ", {\"name\": \"", end: "]")),
        KnownFormat(
            models: "Qwen2.5, Hermes", marks: [["<tool_call>"]],
            format: ToolFormat(
                trigger: "<tool_call>", beforeName: "\n{\"name\": \"", afterName: "\", \"arguments\":",
                afterArguments: "}\n</tool_call>")),
        KnownFormat(
            models: "Llama 3", marks: [["\"parameters\": "], ["python_tag"]],
            format: ToolFormat(
                trigger: "{\"name\": \"", afterName: "\", \"parameters\":", afterArguments: "}", allowsSeveral: false)),
    ]
}

extension ThinkingFormat {
    /// All formats of reasoning. The first one counts whose marks are found.
    static let known: [KnownFormat<ThinkingFormat>] = [
        KnownFormat(
            models: "Gemma 4", marks: [["<|channel>thought"]],
            format: ThinkingFormat(open: "<|channel>thought\n", close: "<channel|>")),
        KnownFormat(
            models: "gpt-oss", marks: [["<|channel|>", "analysis"]],
            format: ThinkingFormat(open: "<|channel|>analysis<|message|>", close: "<|end|>")),
        KnownFormat(
            models: "Magistral", marks: [["[THINK]"]], format: ThinkingFormat(open: "[THINK]", close: "[/THINK]")),
        KnownFormat(
            models: "Qwen3, DeepSeek-R1", marks: [["<think>"], ["</think>"]],
            format: ThinkingFormat(open: "<think>", close: "</think>")),
    ]
}
