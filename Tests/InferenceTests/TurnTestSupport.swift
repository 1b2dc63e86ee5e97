import Grammar
import JSON
import Synchronization
import Testing

@testable import Inference

/// A vocabulary of bytes and some control tokens.
enum TurnTestBytes {
    static let names = [
        "<tool_call>", "</tool_call>", "<think>", "</think>", "<|tool_call>", "<tool_call|>", "<|\"|>", "[TOOL_CALLS]",
        "[CALL_ID]", "[ARGS]",
        "<|tool_call_start|>", "<|tool_call_end|>",
    ]

    static let request = GenerationRequest(tokens: plain("Hi"), sampling: .greedy, maximumTokens: 50)

    static let vocabulary = TurnVocabulary(
        encode: { TurnTestBytes.encode($0) }, encodePlain: { TurnTestBytes.plain($0) },
        specialToken: { TurnTestBytes.special($0) })

    /// The same for grammars, in which the token 256 ends a document.
    static let grammarVocabulary = TokenVocabulary(
        texts: (UInt8.min...UInt8.max).map { [$0] } + [nil], endTokens: [256])

    static func special(_ name: String) -> TokenID? { names.firstIndex(of: name).map { TokenID(300 + $0) } }

    static func plain(_ text: String) -> [TokenID] { text.utf8.map { TokenID($0) } }

    static func encode(_ text: String) -> [TokenID] {
        var tokens: [TokenID] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.first {
            let name = names.first { rest.starts(with: $0.utf8) }
            tokens.append(name.flatMap { special($0) } ?? TokenID(byte))
            rest = rest.dropFirst(name?.utf8.count ?? 1)
        }
        return tokens
    }

    static func text(_ tokens: [TokenID]) -> String {
        let bytes = tokens.flatMap { token -> [UInt8] in
            if let byte = UInt8(exactly: token) { return [byte] }
            let index = Int(token) - 300
            return Array((names.indices.contains(index) ? names[index] : "?").utf8)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// The parts of chat templates by which their formats are recognised.
enum TurnTestTemplate {
    static let hermes = "tools <tool_call>"
    static let tagged = "tools <function="
    static let marked = "tools <|tool_call>"
    static let mistral = "tools [TOOL_CALLS] [CALL_ID] [ARGS]"
    static let list = "tools [TOOL_CALLS]"
    static let python = "tools <|tool_call_start|>"
    static let single = "tools python_tag"
}

enum TurnTestTools {
    static func tool(_ name: String, _ parameters: String) throws -> ChatTool {
        ChatTool(name: name, description: "", parameters: try JSONParser.parse(parameters))
    }

    /// A tool with one required argument, between optional ones.
    static func weather() throws -> ChatTool {
        try tool(
            "get_weather",
            """
            {"type": "object", "required": ["place"], "additionalProperties": false, "properties": {
              "day": {"type": "string"}, "place": {"type": "string"},
              "units": {"type": "string", "enum": ["celsius", "fahrenheit"]}, "days": {"type": "integer"}}}
            """)
    }

    static func mail() throws -> ChatTool {
        try tool(
            "send_mail",
            """
            {"type": "object", "required": ["to"], "additionalProperties": false, "properties": {"to": {"type": "string"}}}
            """)
    }

    static func grammar(_ source: GrammarSource) throws -> PendingGrammar {
        let options = GrammarOptions(isSpaced: true, allowsZeroFraction: false)
        return PendingGrammar(try Grammar(source, vocabulary: TurnTestBytes.grammarVocabulary, options: options))
    }

    /// A turn in the format of a template, with the grammars that a model gives it.
    static func chat(_ template: String, _ tools: [ChatTool]) throws -> ChatTurn {
        var chat = ChatTurn()
        let detected = ToolFormat(template: template) { _ in false }
        let format = try #require(detected)
        chat.toolFormat = format
        chat.tools.callable = tools
        chat.tools.areInPrompt = true
        chat.contextSize = 4_096
        let known = Mutex<[GrammarSource: PendingGrammar]>([:])
        chat.grammar = { tool, property, after in
            let source = GrammarSource.framed(
                before: property == nil ? " " : "", schema: property?.schema ?? tool.parameters, after: after)
            return known.withLock { known in
                // Without a grammar, a turn ends, which the test notices.
                if known[source] == nil { known[source] = try? grammar(source) }
                return known[source]
            }
        }
        return chat
    }

    static func chat(_ template: String) throws -> ChatTurn { try chat(template, [try weather(), try mail()]) }
}

extension TurnPhase {
    var isFree: Bool { if case .free = kind { true } else { false } }
    var grammar: PendingGrammar? { if case .constrained(let grammar) = kind { grammar } else { nil } }
    var options: [String]? {
        if case .choice(let options) = kind { options.map { TurnTestBytes.text($0) } } else { nil }
    }
    var question: TurnQuestion? { if case .question(let question) = kind { question } else { nil } }
}

/// A turn whose phases end as a test says.
struct TestTurn {
    private(set) var plan: TurnPlan
    private(set) var step: TurnStep
    /// All tokens of the turn.
    private(set) var written: [TokenID]
    /// All calls so far.
    private(set) var calls: [ChatToolCall] = []

    init(
        _ request: GenerationRequest = TurnTestBytes.request, chat: ChatTurn = ChatTurn(),
        makeIdentifier: @escaping @Sendable () -> String = { "id" }
    ) {
        var plan = TurnPlan(request, chat, TurnTestBytes.vocabulary, makeIdentifier: makeIdentifier)
        step = plan.begin()
        written = step.append
        self.plan = plan
    }

    mutating func ends(_ end: PhaseEnd) throws {
        written += end.tokens
        step = try plan.next(after: end)
        written = Array(written.prefix(step.keep)) + step.append
        calls += step.events.compactMap { event -> ChatToolCall? in if case .call(let call) = event { call } else { nil } }
    }

    /// The model writes text: up to a control token or a string that ends the phase, or else to the end of its turn.
    mutating func writes(_ text: String, until mark: String? = nil, location: SourceLocation = #_sourceLocation) throws {
        let phase = try #require(step.phase, sourceLocation: location)
        #expect(phase.isFree, sourceLocation: location)
        var end = PhaseEnd(reason: .endOfTurn, tokens: TurnTestBytes.plain(text), text: text)
        end.isBlank = !text.contains { !$0.isWhitespace }
        if let mark {
            end.reason = .stopString
            end.stopToken = TurnTestBytes.special(mark)
            if let token = end.stopToken {
                let isStop = phase.stopTokens.contains(token) || text.isEmpty && phase.firstStopToken == token
                #expect(isStop, "\(mark)", sourceLocation: location)
            } else {
                end.stopString = mark
                #expect((phase.stopStrings + phase.openings).contains(mark), sourceLocation: location)
            }
        }
        try ends(end)
    }

    /// The model chooses an option.
    mutating func chooses(_ text: String, location: SourceLocation = #_sourceLocation) throws {
        let options = try #require(step.phase?.options, sourceLocation: location)
        #expect(options.contains(text), sourceLocation: location)
        #expect(step.phase?.output == .call, sourceLocation: location)
        try ends(PhaseEnd(reason: .endOfTurn, tokens: TurnTestBytes.encode(text), text: text))
    }

    /// The model writes text that the grammar of the phase accepts.
    mutating func fills(_ text: String, tokens: [TokenID]? = nil, location: SourceLocation = #_sourceLocation) throws {
        let pending = try #require(step.phase?.grammar, sourceLocation: location)
        let grammar = try #require(try pending.value, sourceLocation: location)
        var matcher = grammar.matcher()
        let isAccepted = matcher.advance(text.utf8)
        #expect(isAccepted, "\(text)", sourceLocation: location)
        // The text that follows a JSON object belongs to its phase.
        let whole = text + String(decoding: matcher.completion, as: UTF8.self)
        try ends(PhaseEnd(reason: .endOfTurn, tokens: tokens ?? TurnTestBytes.plain(whole), text: whole))
    }

    /// Checks all tokens of the turn.
    func expectWritten(_ text: String, location: SourceLocation = #_sourceLocation) {
        #expect(TurnTestBytes.text(written) == text, sourceLocation: location)
        #expect(written == TurnTestBytes.encode(text), sourceLocation: location)
    }

    func expectEnd(_ reason: StopReason = .endOfTurn, location: SourceLocation = #_sourceLocation) {
        let hasEnded = step.phase == nil
        #expect(hasEnded, sourceLocation: location)
        #expect(step.reason == reason, sourceLocation: location)
    }
}

/// A call of `get_weather` in the Hermes format.
enum HermesCall {
    // Parts of it: up to the name, the name, up to the arguments, all of it.
    static let opening = "<tool_call>\n{\"name\": \""
    static let named = #"get_weather", "arguments":"#
    static let begun = opening + named

    static func whole(_ arguments: String) -> String { begun + arguments + "}\n</tool_call>" }

    /// A turn in which the model has begun the arguments.
    static func turn(_ change: (inout ChatTurn) -> Void = { _ in }) throws -> TestTurn {
        var chat = try TurnTestTools.chat(TurnTestTemplate.hermes)
        change(&chat)
        var turn = TestTurn(chat: chat)
        try turn.writes("", until: "<tool_call>")
        try turn.chooses(named)
        return turn
    }
}
