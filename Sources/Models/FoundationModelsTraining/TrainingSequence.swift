internal import Foundation
package import Inference
internal import InstalledModels

/// The tokens of a row, and which of them are learned.
package struct TrainingSequence: Sendable, Equatable {
    package var line: Int
    package var tokens: [Int32]
    /// Never true for the first token.
    package var isLearned: [Bool]
    /// Where branches begin that have the tokens before the first of them in common, as several questions about the same passages have.
    /// A branch sees these tokens and its own: the sequence is computed as if each branch were a conversation of its own. Empty for one
    /// conversation.
    package var branches: [Int] = []

    package init(line: Int, tokens: [Int32], isLearned: [Bool], branches: [Int] = []) {
        (self.line, self.tokens, self.isLearned, self.branches) = (line, tokens, isLearned, branches)
    }

    package var learnedCount: Int { isLearned.count { $0 } }

    /// A beginning that is shorter is computed again for each conversation.
    private static let minimumPrefix = 48

    /// Conversations of one row that begin alike as sequences with branches, none longer than a limit.
    static func merged(_ sequences: [TrainingSequence], maximumTokens: Int) -> [TrainingSequence] {
        var result: [TrainingSequence] = []
        var group: [TrainingSequence] = []
        var prefix = 0
        func tokens(_ prefix: Int, _ group: [TrainingSequence]) -> Int {
            group.reduce(prefix) { $0 + $1.tokens.count - prefix }
        }
        func finish() {
            if let sequence = branched(group, prefix: prefix) { result.append(sequence) }
            group = []
        }
        for sequence in sequences {
            if let first = group.first {
                let common = commonPrefix(first, sequence, limit: group.count == 1 ? .max : prefix)
                if common >= minimumPrefix, tokens(common, group + [sequence]) <= maximumTokens {
                    group.append(sequence)
                    prefix = common
                    continue
                }
                finish()
            }
            group = [sequence]
            prefix = sequence.tokens.count
        }
        finish()
        return result
    }

    /// The number of tokens at the beginning that are equal, and not learned in either; each has a token after them that is not learned.
    private static func commonPrefix(_ first: TrainingSequence, _ second: TrainingSequence, limit: Int) -> Int {
        let most = min(first.tokens.count, second.tokens.count, limit)
        var count = 0
        while count < most, first.tokens[count] == second.tokens[count], !first.isLearned[count], !second.isLearned[count] {
            count += 1
        }
        while count > 0,
            count == min(first.tokens.count, second.tokens.count) || first.isLearned[count] || second.isLearned[count]
        {
            count -= 1
        }
        return count
    }

    private static func branched(_ group: [TrainingSequence], prefix: Int) -> TrainingSequence? {
        guard var result = group.first, group.count > 1 else { return group.first }
        result.branches = [prefix]
        for sequence in group.dropFirst() {
            result.branches.append(result.tokens.count)
            result.tokens += sequence.tokens[prefix...]
            result.isLearned += sequence.isLearned[prefix...]
        }
        return result
    }
}

/// Renders rows with a model's chat template, as requests are rendered.
package struct SequenceEncoder: Sendable {
    private let tokenizer: Tokenizer
    private let template: ChatTemplate
    private let defaults: ModelDefaults
    /// The tokens around calls, of a model that begins calls as JSON; nil for any other model.
    private let untrainedMarks: (trigger: Int32, end: Int32?)?
    /// Of a row that is longer, only the length matters: it is left out.
    private let maximumTokens: Int

    package init(_ model: GGUFFile, maximumTokens: Int = 1 << 16) throws(TrainingError) {
        self.maximumTokens = maximumTokens
        do {
            tokenizer = try Tokenizer(file: model)
            let embeddings = try ModelShape(file: model).vocabularySize
            guard tokenizer.vocabulary.count <= embeddings else {
                throw ModelError.invalid(
                    field: "tokenizer.ggml.tokens",
                    reason: "has \(tokenizer.vocabulary.count) tokens, more than the \(embeddings) embeddings")
            }
            guard let source = try model.metadata.string("tokenizer.chat_template") else {
                throw ModelError.missing("tokenizer.chat_template")
            }
            template = try ChatTemplate(source: source, beginningText: tokenizer.beginningText, endText: tokenizer.endText)
            defaults = try ModelDefaults(
                file: model, isSmall: model.size < 256 << 20, known: ModelCatalogue.defaults(of: model))
            let vocabulary = tokenizer.vocabulary
            if defaults.beginsCallsAsJSON,
                let format = ToolFormat(template: source, hasToken: { vocabulary.specialToken(named: $0) != nil }),
                let trigger = vocabulary.specialToken(named: format.trigger)
            {
                untrainedMarks = (trigger, format.endMark.flatMap { vocabulary.specialToken(named: $0) })
            } else {
                untrainedMarks = nil
            }
        } catch {
            throw .damagedModel("\(error)")
        }
    }

    package func bytes(of token: Int32) -> ArraySlice<UInt8> { tokenizer.vocabulary.bytes(of: token) }

    /// The tokens of a text that is no conversation.
    func tokens(of text: String) -> [Int32] { tokenizer.encode([.user(text)], addsBoundaryTokens: true) }

    /// The sequences of a row: one, or one for each turn that is learned if the template changes earlier turns.
    ///
    /// - Throws: ``TrainingError/invalidData(line:reason:)`` if the template cannot render the row.
    package func sequences(_ row: TrainingData.Row) throws(TrainingError) -> [TrainingSequence] {
        do {
            switch row.content {
            case .text(let text):
                var tokens = self.tokens(of: text)
                if tokens.last != tokenizer.endOfTurn { tokens.append(tokenizer.endOfTurn) }
                return [TrainingSequence(line: row.line, tokens: tokens, isLearned: tokens.indices.map { $0 > 0 })]
            case .chat(let messages, let tools, let isLearned):
                let sequences = try chat(row.line, messages, tools, isLearned)
                guard let untrainedMarks, !tools.isEmpty else { return sequences }
                let names = zip(messages, isLearned).flatMap { $1 ? $0.toolCalls.map(\.name) : [] }
                return sequences.flatMap { beginningCallsAsJSON($0, untrainedMarks, names) }
            }
        } catch let error as TrainingError {
            throw error
        } catch {
            throw .invalidData(line: row.line, reason: "the model's chat template cannot render it: \(error)")
        }
    }

    /// A sequence in which the tokens around calls are not learned, and one for each call in which its beginning as JSON is learned
    /// instead: requests replace it with the token, so that arguments are written after the token and learned after it. The end is forced.
    ///
    /// - Parameter names: the names of the tools that are called.
    private func beginningCallsAsJSON(
        _ sequence: TrainingSequence, _ marks: (trigger: Int32, end: Int32?), _ names: [String]
    ) -> [TrainingSequence] {
        let places = sequence.tokens.indices.filter { sequence.isLearned[$0] && sequence.tokens[$0] == marks.trigger }
        // Texts may contain the token too: such a row teaches what it says.
        guard places.count == names.count else { return [sequence] }
        var main = sequence
        for place in main.tokens.indices where main.tokens[place] == marks.end { main.isLearned[place] = false }
        var result: [TrainingSequence] = []
        for (place, name) in zip(places, names) {
            main.isLearned[place] = false
            let beginning = ToolFormat.plainBeginning(of: name)
            var tokens = sequence.tokens[..<place]
            var text: [UInt8] = []
            // The token that ends the name has the text after it too.
            for token in tokenizer.encode([.user(beginning + ", \"arguments\": {")]) where text.count < beginning.utf8.count {
                tokens.append(token)
                text += tokenizer.vocabulary.bytes(of: token)
            }
            result.append(
                TrainingSequence(
                    line: sequence.line, tokens: Array(tokens), isLearned: tokens.indices.map { $0 >= place }))
        }
        return [main] + result
    }

    private func chat(_ line: Int, _ list: [ChatMessage], _ tools: [ChatTool], _ isLearned: [Bool]) throws -> [TrainingSequence] {
        var messages = list
        var learned = isLearned
        // The instructions that a request has.
        if messages.first?.role != .system, let own = defaults.instructions {
            messages.insert(ChatMessage(role: .system, content: own), at: 0)
            learned.insert(false, at: 0)
        }
        let all = try tokens(messages, tools, generates: false)
        // The turns of such a row are not looked for: that takes the square of its length.
        if all.count > maximumTokens { return [TrainingSequence(line: line, tokens: all, isLearned: all.indices.map { $0 > 0 })] }
        if let sequence = try marked(line, messages, tools, learned) { return [sequence] }
        var flags = [Bool](repeating: false, count: all.count)
        var separate: [TrainingSequence] = []
        for index in messages.indices where learned[index] {
            let before = try tokens(Array(messages[..<index]), tools, generates: true)
            let whole = index == messages.count - 1 ? all : try tokens(Array(messages[...index]), tools, generates: false)
            guard let end = turnEnd(of: whole, after: before) else {
                separate.append(try alone(line, before, messages[index]))
                continue
            }
            if all.count >= end, all[..<end].elementsEqual(whole[..<end]) {
                for place in before.count..<end where place > 0 { flags[place] = true }
            } else {
                // Later turns change how this one is rendered.
                separate.append(
                    TrainingSequence(
                        line: line, tokens: Array(whole[..<end]), isLearned: (0..<end).map { $0 > 0 && $0 >= before.count }))
            }
        }
        guard let last = flags.lastIndex(of: true) else { return separate }
        // Nothing is learned from what follows the last turn.
        return [TrainingSequence(line: line, tokens: Array(all[...last]), isLearned: Array(flags[...last]))] + separate
    }

    /// The sequence in which the template itself marks what the model generates; nil if it does not, or marks other texts than the
    /// assistant's messages.
    private func marked(
        _ line: Int, _ messages: [ChatMessage], _ tools: [ChatTool], _ learned: [Bool]
    ) throws -> TrainingSequence? {
        let (pieces, ranges) = try template.renderMarked(ChatPrompt(messages, tools: tools))
        let turns = messages.indices.filter { messages[$0].role == .assistant }
        guard !ranges.isEmpty, ranges.count == turns.count else { return nil }
        let all = tokenizer.encode(pieces, addsBoundaryTokens: true)
        var flags = [Bool](repeating: false, count: all.count)
        for (turn, range) in zip(turns, ranges) where learned[turn] {
            let before = tokenizer.encode(Self.prefix(of: pieces, bytes: range.lowerBound), addsBoundaryTokens: true)
            let whole = tokenizer.encode(Self.prefix(of: pieces, bytes: range.upperBound), addsBoundaryTokens: true)
            // A token across the boundary would be learned in part only.
            guard whole.count > before.count, all.starts(with: before), all.starts(with: whole) else { return nil }
            // The end of the turn is learned too, where the marks leave it out.
            let end = whole.count < all.count && tokenizer.stopTokens.contains(all[whole.count]) ? whole.count + 1 : whole.count
            for place in before.count..<end where place > 0 { flags[place] = true }
        }
        guard let last = flags.lastIndex(of: true) else { return nil }
        return TrainingSequence(line: line, tokens: Array(all[...last]), isLearned: Array(flags[...last]))
    }

    /// The first bytes of a text in pieces.
    private static func prefix(of pieces: [PromptPiece], bytes: Int) -> [PromptPiece] {
        var left = bytes
        var result: [PromptPiece] = []
        for piece in pieces where left > 0 {
            switch piece {
            case .template(let text): result.append(.template(String(decoding: text.utf8.prefix(left), as: UTF8.self)))
            case .user(let text): result.append(.user(String(decoding: text.utf8.prefix(left), as: UTF8.self)))
            }
            if case .template(let text) = piece { left -= text.utf8.count }
            if case .user(let text) = piece { left -= text.utf8.count }
        }
        return result
    }

    /// The end of the turn that follows `before`, with the token that ends it; nil if the text before the turn is rendered in another way.
    private func turnEnd(of whole: [Int32], after before: [Int32]) -> Int? {
        guard whole.count > before.count, whole.starts(with: before) else { return nil }
        let end = whole[before.count...].firstIndex { tokenizer.stopTokens.contains($0) }
        return end.map { $0 + 1 } ?? whole.count
    }

    /// A turn as the model generates it: the prompt, the text, the token that ends the turn.
    private func alone(_ line: Int, _ before: [Int32], _ message: ChatMessage) throws -> TrainingSequence {
        guard message.toolCalls.isEmpty else {
            throw TrainingError.invalidData(
                line: line, reason: "the model's chat template renders its calls in another way than it begins turns")
        }
        let tokens = before + tokenizer.encode(continuation: message.content) + [tokenizer.endOfTurn]
        return TrainingSequence(line: line, tokens: tokens, isLearned: tokens.indices.map { $0 > 0 && $0 >= before.count })
    }

    private func tokens(_ messages: [ChatMessage], _ tools: [ChatTool], generates: Bool) throws -> [Int32] {
        tokenizer.encode(
            try template.render(ChatPrompt(messages, tools: tools), addGenerationPrompt: generates), addsBoundaryTokens: true)
    }
}
