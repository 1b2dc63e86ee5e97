internal import Foundation
internal import Grammar
internal import JSON
private import Synchronization

/// An event in a model's turn.
package enum ChatEvent: Sendable {
    /// Part of the answer.
    case text(GeneratedText)
    /// Part of the reasoning before the answer.
    case thought(GeneratedText)
    case call(ChatToolCall)
}

/// Generates one turn of a model in the formats that it was trained for: reasoning, then text, then tool calls.
///
/// Text is unconstrained until the model begins a call. From there on each part is constrained: the name of one of the
/// tools, arguments that the tool's schema accepts, and the marks between them. A turn is a series of generations in
/// one sequence, which share its KV cache.
package struct ChatResponder: Sendable {
    package typealias Emit = @Sendable (ChatEvent) -> Bool

    private let model: LoadedModel
    private let sequence: SequenceState
    private let request: GenerationRequest
    private let tools: [ChatTool]
    private let mayCall: Bool
    private let promptHasTools: Bool
    private let mustCall: Bool
    private let limit: Int
    private let emit: Emit

    /// The tokens of the prompt and of everything generated so far.
    private var tokens: [TokenID]
    private var usage = GenerationUsage()
    private var thoughtTokens = 0
    private var byteCountBeforeLoop: Int?

    /// The maximum number of calls in one turn.
    private static let maximumCalls = 8
    /// The maximum number of tokens for each generated part of a call, independent of the limit for the answer.
    private static let maximumCallTokens = 512

    /// The end of a turn and its usage.
    package struct Outcome: Sendable {
        package var stopReason: StopReason
        package var usage: GenerationUsage
        package var thoughtTokens: Int
        /// After a loop in the answer: the number of bytes of text before the repetitions.
        package var byteCountBeforeLoop: Int?

        package init(stopReason: StopReason, usage: GenerationUsage, thoughtTokens: Int = 0, byteCountBeforeLoop: Int? = nil) {
            self.stopReason = stopReason
            self.usage = usage
            self.thoughtTokens = thoughtTokens
            self.byteCountBeforeLoop = byteCountBeforeLoop
        }
    }

    /// - Parameters:
    ///   - request: the prompt, sampling, the limit for the answer, and a grammar if the answer has one.
    ///   - tools: the tools that may be called in this turn; calls of all others are prevented.
    ///   - promptHasTools: whether the prompt describes tools, callable in this turn or not.
    ///   - mustCall: whether the model must call a tool.
    ///   - emit: called with each event; returns false to end the turn.
    package init(
        _ model: LoadedModel, _ sequence: SequenceState, request: GenerationRequest, tools: [ChatTool], promptHasTools: Bool,
        mustCall: Bool = false, emit: @escaping Emit
    ) {
        self.model = model
        self.sequence = sequence
        self.request = request
        self.tools = tools
        mayCall = !tools.isEmpty && model.toolFormat != nil
        self.promptHasTools = promptHasTools
        self.mustCall = mustCall
        limit = request.maximumTokens ?? .max
        self.emit = emit
        tokens = request.tokens
    }

    package mutating func respond() async throws -> Outcome {
        if let thinking = model.thinkingFormat, let end = try await think(thinking) { return outcome(end) }
        guard mayCall, let format = model.toolFormat else {
            let result = try await answer(until: nil)
            return outcome(result.stopReason)
        }
        var chosen: ChatTool?
        if mustCall {
            append(format.trigger)
        } else {
            let result = try await answer(until: format)
            guard result.stopReason == .stopString else { return outcome(result.stopReason) }
            chosen = tools.first { tool in format.alternativeTriggers.contains { $0 + tool.name + "\"" == result.stopString } }
        }
        let reason = try await call(format, first: chosen)
        return outcome(reason)
    }

    private func outcome(_ reason: StopReason) -> Outcome {
        Outcome(stopReason: reason, usage: usage, thoughtTokens: thoughtTokens, byteCountBeforeLoop: byteCountBeforeLoop)
    }

    // MARK: - Parts of a turn

    /// Generates the reasoning, if the prompt ends with an opening mark or if the model begins its turn with one.
    /// Returns the reason if the turn ends there.
    private mutating func think(_ format: ThinkingFormat) async throws -> StopReason? {
        let open = model.tokenizer.encode([.template(format.open.trimmingCharacters(in: .whitespacesAndNewlines))])
        let tail = tokens.suffix(open.count + 2)
        let isInside = (0...2).contains { tail.dropLast($0).suffix(open.count).elementsEqual(open) }
        if !isInside {
            // Without a grammar or a required call, the model decides whether it begins with reasoning.
            guard request.grammar == nil, !mustCall, let mark = open.first, open.count == 1 else { return nil }
            var first = request
            first.maximumTokens = 1
            first.stopTokens = [mark]
            first.tokens = tokens
            let result = try await model.generate(first, in: sequence) { _ in true }
            guard result.stopToken == mark else { return nil }
            usage.add(result.usage)
            tokens.append(mark)
        }
        var part = request
        part.grammar = nil
        part.tokens = tokens
        part.maximumTokens = left
        let close = model.tokenizer.encode([.template(format.close)])
        if close.count == 1 { part.stopTokens = Set(close) } else { part.stopStrings = [format.close] }
        let emit = emit
        let isFirst = Trimmer()
        let result = try await model.generate(part, in: sequence) { piece in
            guard let piece = isFirst.trim(piece) else { return true }
            return emit(.thought(piece))
        }
        take(result)
        thoughtTokens = usage.generatedTokens
        guard result.stopReason == .stopString else { return result.stopReason }
        tokens += close
        return nil
    }

    /// Generates the answer, until the model begins a call in the given format, if any.
    private mutating func answer(until format: ToolFormat?) async throws -> GenerationResult {
        var part = request
        part.tokens = tokens
        part.maximumTokens = left
        if let format {
            part.stopStrings.append(format.trigger)
            for tool in tools { part.stopStrings += format.alternativeTriggers.map { $0 + tool.name + "\"" } }
            if let token = model.tokenizer.vocabulary.specialToken(named: format.trigger) { part.stopTokens.insert(token) }
        } else if let format = model.toolFormat, promptHasTools {
            // Tools that must not be called now must not be called in the answer text either.
            if let token = model.tokenizer.vocabulary.specialToken(named: format.trigger) { part.bannedTokens.append(token) }
            let openings = Set(format.alternativeTriggers.compactMap { model.tokenizer.encode($0).first })
            part.bannedFirstTokens = request.grammar == nil ? openings.sorted() : []
        }
        let emit = emit
        // Line breaks between the reasoning and the answer belong to neither.
        let leading = thoughtTokens > 0 && request.grammar == nil ? Trimmer() : Trimmer(isDone: true)
        let (said, result) = try await collect(part) { piece in
            guard let piece = leading.trim(piece) else { return true }
            return emit(.text(piece))
        }
        byteCountBeforeLoop = result.byteCountBeforeLoop
        if result.stopString == nil {
            tokens += result.tokens
        } else {
            // The stop string that began the call is not part of the text: the call continues in the trained format.
            tokens += said.tokens
        }
        if let format, result.stopReason == .stopString { append(format.trigger) }
        return result
    }

    /// Generates calls, starting after the trigger.
    ///
    /// - Parameter first: the tool of the first call, if the model has already generated its name.
    private mutating func call(_ format: ToolFormat, first: ChatTool?) async throws -> StopReason {
        var calls: [ChatToolCall] = []
        var start = format.beforeName
        var first = first
        /// The tokens before the trigger of the first call, if the model began that call as a block of JSON; nil
        /// otherwise.
        let block = first == nil ? nil : Array(tokens.dropLast(model.tokenizer.encode([.template(format.trigger)]).count))
        while true {
            append(start)
            let identifier = Self.identifier()
            func marked(_ text: String) -> String { text.replacing(ToolFormat.identifierMark, with: identifier) }
            let afterName = marked(format.afterName)
            let tool: ChatTool
            if let named = first {
                append(named.name + afterName)
                (tool, first) = (named, nil)
            } else {
                let chosen = try await write(.texts(Array(Set(tools.map { $0.name + afterName }))))
                guard let named = tools.first(where: { $0.name + afterName == chosen }) else { return .contextFull }
                tool = named
            }
            let arguments = try await self.arguments(of: tool, format.arguments)
            append(marked(format.afterArguments))
            let call = ChatToolCall(id: identifier, name: tool.name, arguments: arguments)
            // A repeated call indicates that the model has no further calls to make.
            if calls.contains(where: { $0.name == call.name && $0.arguments == call.arguments }) { break }
            guard emit(.call(call)) else { return .unwanted }
            calls.append(call)
            guard format.allowsSeveral, calls.count < Self.maximumCalls else { break }
            if let block, let minimum = model.defaults.minimumNextCallLogOdds, format.betweenCalls == nil {
                guard try await oddsOfAnother(after: calls, in: block) > minimum else { break }
                append("\n" + format.trigger)
            } else {
                guard try await wantsAnother(format) else { break }
            }
            start = format.betweenCalls ?? format.beforeName
        }
        return .endOfTurn
    }

    /// Whether the model continues with another call; the separator or trigger of that call is then appended.
    private mutating func wantsAnother(_ format: ToolFormat) async throws -> Bool {
        if let between = format.betweenCalls {
            // The list either continues or ends; nothing else can follow.
            return try await write(.texts([between, format.end])) == between
        }
        var part = request
        part.grammar = nil
        part.tokens = tokens
        part.maximumTokens = 4
        part.stopStrings.append(format.trigger)
        if let token = model.tokenizer.vocabulary.specialToken(named: format.trigger) { part.stopTokens.insert(token) }
        let result = try await model.generate(part, in: sequence) { _ in true }
        usage.add(result.usage)
        guard result.stopReason == .stopString else { return false }
        tokens += result.tokens
        append(format.trigger)
        return true
    }

    /// The log odds of another call by a model that writes calls as a block of JSON: one more object versus the end of
    /// the block.
    ///
    /// Such models seldom generate the second call by themselves, but its odds are far higher where another call is
    /// needed.
    private func oddsOfAnother(after calls: [ChatToolCall], in block: [TokenID]) async throws -> Double {
        let objects = calls.map { call in
            JSONValue.object([.init("name", .string(call.name)), .init("arguments", call.arguments)]).prettyText + "\n"
        }
        return try await odds(of: "{", against: "```", behind: "```json\n" + objects.joined(), after: block)
    }

    // MARK: - Arguments

    private mutating func arguments(of tool: ChatTool, _ style: ToolFormat.Arguments) async throws -> JSONValue {
        if case .json = style {
            let before = tokens
            let text = try await write(.framed(before: " ", schema: tool.parameters, after: ""))
            return try await mentioned(parsed(text), of: tool, after: before)
        }
        var members: [JSONValue.Member] = []
        var open = tool.properties
        while !open.isEmpty {
            // Required arguments come in declaration order; before each, the model may write optional arguments
            // declared before it.
            let nextRequired = open.firstIndex { $0.isRequired }
            let candidates = Array(open[...(nextRequired ?? open.count - 1)])
            let separator = members.isEmpty ? "" : style.separator
            var choices = candidates.map { separator + style.opening($0.name) }
            if nextRequired == nil { choices.append(style.ending) }
            let chosen = try await write(.texts(choices))
            guard let index = choices.firstIndex(of: chosen), index < candidates.count else {
                removeEnding(style.ending)
                break
            }
            let property = candidates[index]
            members.append(.init(property.name, try await value(property, style)))
            append(style.closing)
            open.removeFirst(index + 1)
        }
        return .object(members)
    }

    /// Returns the arguments without optional ones that the model invented.
    ///
    /// Small models fill in all arguments of a tool. Their probabilities still distinguish them: the odds of an
    /// argument that the user mentioned, versus the end of the list, are far higher.
    private mutating func mentioned(_ arguments: JSONValue, of tool: ChatTool, after prompt: [TokenID]) async throws -> JSONValue
    {
        guard let minimum = model.defaults.minimumOptionalArgumentLogOdds, case .object(let members) = arguments else {
            return arguments
        }
        let optional = tool.droppableArguments
        var kept: [JSONValue.Member] = []
        for member in members {
            if optional.contains(member.name) {
                let text = " " + JSONValue.object(kept).spacedText.dropLast()
                let more = (kept.isEmpty ? "" : ", ") + JSONValue.string(member.name).text + ": "
                if try await odds(of: more, against: "}", behind: text, after: prompt) < minimum { continue }
            }
            kept.append(member)
        }
        if kept.count < members.count {
            tokens = prompt + model.tokenizer.encode([.user(" " + JSONValue.object(kept).spacedText)])
        }
        return .object(kept)
    }

    /// The log odds of one text versus another as the continuation: the natural logarithm of the probability ratio of
    /// the first tokens in which they differ. 0 if one is a prefix of the other or the context is full.
    private func odds(
        of one: String, against other: String, behind text: String, after prompt: [TokenID]
    ) async throws -> Double {
        let (a, b) = (model.tokenizer.encode([.user(text + one)]), model.tokenizer.encode([.user(text + other)]))
        let common = zip(a, b).prefix { $0 == $1 }.count
        guard common < a.count, common < b.count, prompt.count + common < sequence.contextSize else { return 0 }
        return try await model.logOdds(of: a[common], against: b[common], after: prompt + a[..<common], in: sequence)
    }

    /// Removes the ending that the model chose, because it is part of the text that is appended after the arguments.
    private mutating func removeEnding(_ ending: String) {
        let written = model.tokenizer.encode([.template(ending)])
        if tokens.suffix(written.count).elementsEqual(written) { tokens.removeLast(written.count) }
    }

    private mutating func value(_ property: ChatTool.Property, _ style: ToolFormat.Arguments) async throws -> JSONValue {
        guard property.isText else {
            let text = try await write(.framed(before: "", schema: property.schema, after: ""))
            return try parsed(text)
        }
        // Python string literals are generated as JSON strings.
        if case .python = style {
            return try parsed(try await write(.framed(before: "", schema: property.schema, after: "")))
        }
        // A string with choices is one of them; any other string ends at the closing mark.
        let close = style.textClose
        append(style.textOpen)
        defer { append(style.textOpen.isEmpty ? "" : close) }
        if let choices = property.choices { return .string(try await write(.texts(choices))) }
        var part = request
        part.grammar = nil
        part.tokens = tokens
        part.maximumTokens = Self.maximumCallTokens
        part.stopStrings = [close]
        if let token = model.tokenizer.vocabulary.specialToken(named: close) { part.stopTokens = [token] }
        let said = try await collect(part).said
        tokens += said.tokens
        return .string(said.text)
    }

    private func parsed(_ text: String) throws -> JSONValue {
        try JSONParser.parse(text.trimmingCharacters(in: .whitespaces))
    }

    // MARK: - Writing

    private var left: Int { limit == .max ? .max : max(1, limit - usage.generatedTokens) }

    /// Appends fixed text to the tokens.
    private mutating func append(_ text: String) {
        if !text.isEmpty { tokens += model.tokenizer.encode([.template(text)]) }
    }

    private mutating func take(_ result: GenerationResult) {
        usage.add(result.usage)
        tokens += result.tokens
    }

    /// A text without the stop string that ended it.
    private struct Said {
        var text = ""
        var tokens: [TokenID] = []
    }

    /// Generates a part, and returns its whole text.
    private mutating func collect(
        _ part: GenerationRequest, _ emit: @escaping @Sendable (GeneratedText) -> Bool = { _ in true }
    ) async throws -> (said: Said, result: GenerationResult) {
        let collected = Mutex(Said())
        let result = try await model.generate(part, in: sequence) { [tokenizer = model.tokenizer] piece in
            // The last tokens may also contain the beginning of the stop string.
            let isWhole = piece.tokens.flatMap { tokenizer.text(of: $0) }.elementsEqual(piece.text.utf8)
            let tokens = isWhole ? Array(piece.tokens) : tokenizer.encode(continuation: piece.text)
            collected.withLock { said in
                said.text += piece.text
                said.tokens += tokens
            }
            return emit(piece)
        }
        usage.add(result.usage)
        return (collected.withLock { $0 }, result)
    }

    /// Generates text that conforms to a grammar.
    private mutating func write(_ source: GrammarSource) async throws -> String {
        var part = request
        part.grammar = try await GrammarCache.shared.grammar(
            source, vocabulary: await model.grammarVocabulary,
            options: GrammarOptions(isSpaced: true, allowsZeroFraction: false))
        part.tokens = tokens
        part.stopStrings = []
        // The request's limit applies to the answer; calls have a separate limit, which stops endless arguments.
        part.maximumTokens = Self.maximumCallTokens
        let (said, result) = try await collect(part)
        let written = result.tokens.filter { !model.tokenizer.stopTokens.contains($0) }
        tokens += written
        return said.text
    }

    /// A call identifier of nine letters and digits, as the formats with identifiers require.
    private static func identifier() -> String {
        let alphabet = Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
        return String((0..<9).map { _ in alphabet[Int.random(in: 0..<alphabet.count)] })
    }
}

extension ChatTool {
    /// One argument, for formats that write arguments separately.
    struct Property {
        var name: String
        var schema: JSONValue
        var isRequired: Bool

        /// Whether the value is a string that can be written without JSON syntax.
        var isText: Bool {
            if choices != nil { return true }
            guard case .string("string")? = schema["type"] else { return false }
            // Patterns and lengths can be enforced for JSON strings only.
            return ["pattern", "format", "minLength", "maxLength"].allSatisfy { schema[$0] == nil }
        }

        var choices: [String]? {
            guard case .array(let values)? = schema["enum"] else {
                if case .string(let constant)? = schema["const"] { return [constant] }
                return nil
            }
            let texts = values.compactMap { value -> String? in if case .string(let text) = value { text } else { nil } }
            return texts.count == values.count && !texts.isEmpty ? texts : nil
        }
    }

    /// Arguments that can be removed independently of the others: the optional ones, if the schema has no keyword that
    /// could depend on them.
    var droppableArguments: Set<String> {
        let plain: Set = ["type", "properties", "required", "additionalProperties", "title", "description", "$defs", "x-order"]
        guard case .object(let members) = parameters, members.allSatisfy({ plain.contains($0.name) }) else { return [] }
        return Set(properties.filter { !$0.isRequired }.map(\.name))
    }

    var properties: [Property] {
        guard case .object(let members)? = parameters["properties"] else { return [] }
        var required: Set<String> = []
        if case .array(let names)? = parameters["required"] {
            for case .string(let name) in names { required.insert(name) }
        }
        return members.map { member in
            var schema = member.value
            // References are resolved against the definitions of the whole schema.
            if case .object(var own) = schema, let definitions = parameters["$defs"], schema["$defs"] == nil {
                own.append(.init("$defs", definitions))
                schema = .object(own)
            }
            return Property(name: member.name, schema: schema, isRequired: required.contains(member.name))
        }
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

    var textOpen: String { if case .marked(let mark) = self { mark } else { "" } }

    var textClose: String {
        switch self {
        case .json, .python: ""
        case .tagged(_, _, let close, _): close
        case .marked(let mark): mark
        }
    }
}

/// Removes white space before the first other character of a text that arrives in pieces, unless `isDone` is initially
/// true.
private final class Trimmer: Sendable {
    private struct State {
        var isDone: Bool
        /// Tokens of the removed white space.
        var tokens = GeneratedTokens()
    }

    private let state: Mutex<State>

    init(isDone: Bool = false) { state = Mutex(State(isDone: isDone)) }

    /// The rest of a piece; nil if nothing is left of it. The tokens of removed white space count for the first rest.
    func trim(_ piece: GeneratedText) -> GeneratedText? {
        state.withLock { state in
            if state.isDone { return piece }
            for token in piece.tokens { state.tokens.append(token) }
            let rest = piece.text.drop(while: \.isWhitespace)
            if rest.isEmpty { return nil }
            state.isDone = true
            return GeneratedText(text: String(rest), tokens: state.tokens)
        }
    }
}
