import Foundation
import Grammar
import JSON
import Synchronization
import TestSupport
import Testing

@testable import Inference

/// What the decoder promises: with greedy sampling each token is the most probable one that the request allows.
///
/// A plain loop computes one token at a time and takes the maximum over the mask. The engine, with proposed tokens, batches of several
/// sequences, shared prefixes, forced tokens and the detection of loops, must write the same tokens for 300 requests of all kinds by
/// an author who has not seen the engine: chats whose answers repeat, lists of equal elements, code, tables, poems with a refrain,
/// guided values, other languages.
@Suite struct ContractTests {
    private struct Request: Decodable {
        var prompt: String
        var turns: [String]?
    }

    /// One token after another, without anything that the engine does.
    private struct PlainLoop {
        let model: NeuralModel
        let tokenizer: Tokenizer

        init(path: String) throws {
            let file = try GGUFFile(path: path)
            model = try NeuralModel(file: file, pool: WorkerPool(threads: 2))
            tokenizer = try Tokenizer(file: file)
        }

        private func best(_ isAllowed: (Int) -> Bool) -> TokenID? {
            var best: Int?
            for token in 0..<model.shape.vocabularySize
            where isAllowed(token) && model.logits[token] > best.map({ model.logits[$0] }) ?? -.infinity {
                best = token
            }
            return best.map { TokenID($0) }
        }

        func text(after prompt: [TokenID], limit: Int, format: CacheFormat) throws -> [TokenID] {
            let cache = try KVCache(shape: model.shape, capacity: prompt.count + limit + 1, format: format)
            try model.forward(prompt[...], cache: cache)
            var written: [TokenID] = []
            while written.count < limit {
                // An answer is not empty.
                let token = try #require(best { !written.isEmpty || !tokenizer.stopTokens.contains(TokenID($0)) })
                if tokenizer.stopTokens.contains(token) { break }
                written.append(token)
                try model.forward([token], cache: cache)
            }
            return written
        }

        /// The most probable token after which the value can be completed within the limit.
        private func chosen(
            _ decoder: inout GrammarCursor, _ remaining: Int, _ isAllowed: (Int) -> Bool
        ) throws -> TokenID? {
            var refused: Set<Int> = []
            while let token = best({ !refused.contains($0) && isAllowed($0) }) {
                if let settled = try decoder.validated(token, remaining: remaining) { return settled }
                refused.insert(Int(token))
            }
            return try decoder.closingToken
        }

        func value(_ grammar: Grammar, after prompt: [TokenID], limit: Int, format: CacheFormat) throws -> [TokenID] {
            let cache = try KVCache(shape: model.shape, capacity: prompt.count + limit + 1, format: format)
            try model.forward(prompt[...], cache: cache)
            var decoder = GrammarCursor(grammar) { [tokenizer] in tokenizer.encode(bytes: $0) }
            var written: [TokenID] = []
            var mask = [UInt32](repeating: 0, count: grammar.vocabulary.maskWords)
            while written.count < limit {
                var token: TokenID?
                let remaining = limit - written.count
                switch try decoder.next(remaining: remaining) {
                case .end: return written
                case .forced(let forced): token = forced.first
                case .few(let few): token = try chosen(&decoder, remaining) { few.contains(TokenID($0)) }
                case .many:
                    try mask.withUnsafeMutableBufferPointer { try decoder.fillMask($0) }
                    token = try chosen(&decoder, remaining) {
                        $0 / 32 < mask.count && mask[$0 / 32] >> UInt32($0 % 32) & 1 == 1
                    }
                }
                let next = try #require(token)
                if tokenizer.stopTokens.contains(next) { break }
                let isAccepted = try decoder.accept(next)
                try #require(isAccepted)
                written.append(next)
                try model.forward([next], cache: cache)
            }
            return written
        }
    }

    /// The tokens of an answer of the engine.
    private func answer(_ request: GenerationRequest, _ model: LoadedModel, _ format: CacheFormat) async throws -> [TokenID] {
        let sequence = try model.makeSequence(contextSize: 1_024, format: format)
        return try await model.generateTurn(request, in: sequence) { _ in true }.tokens
    }

    @Test func greedyIsTheMaximumOverTheMask() async throws {
        let url = try #require(Bundle.module.url(forResource: "Golden/requests", withExtension: "jsonl"))
        let lines = try String(contentsOf: url, encoding: .utf8).split(separator: "\n")
        #expect(lines.count == 300)
        let model = try await SmallModel.load()
        let loop = try PlainLoop(path: SmallModel.path)
        let vocabulary = try await model.grammarVocabulary

        struct Case: Sendable {
            var tokens: [TokenID]
            var limit: Int
            var grammar: Grammar?
            var format: CacheFormat
            var line: String
        }
        /// What the engine writes, with four requests at a time.
        func answers(_ cases: [Case]) async throws -> [[TokenID]] {
            var found = [[TokenID]](repeating: [], count: cases.count)
            try await withThrowingTaskGroup(of: (Int, [TokenID]).self) { group in
                for (index, one) in cases.enumerated() {
                    if index >= 4, let (done, tokens) = try await group.next() { found[done] = tokens }
                    group.addTask {
                        var request = GenerationRequest(
                            tokens: one.tokens, sampling: .greedy, maximumTokens: one.limit, grammar: one.grammar)
                        if one.grammar == nil { request.bannedFirstTokens = model.tokenizer.stopTokens.sorted() }
                        return (index, try await answer(request, model, one.format))
                    }
                }
                for try await (index, tokens) in group { found[index] = tokens }
            }
            return found
        }
        func check(_ cases: [Case], _ found: [[TokenID]]) throws {
            for (one, tokens) in zip(cases, found) {
                let expected =
                    if let grammar = one.grammar {
                        try loop.value(grammar, after: one.tokens, limit: one.limit, format: one.format)
                    } else {
                        try loop.text(after: one.tokens, limit: one.limit, format: one.format)
                    }
                #expect(tokens == expected, "\(one.line)")
            }
        }

        var cases: [Case] = []
        for (index, line) in lines.enumerated() {
            let request = try JSONDecoder().decode(Request.self, from: Data(line.utf8))
            let format: CacheFormat = index % 4 == 3 ? .int8 : .binary16
            let instructions = ChatMessage(role: .system, content: "You are a helpful assistant.")
            if let turns = request.turns {
                // The answers of a chat become part of its next prompts.
                var messages = [instructions]
                for prompt in turns + [request.prompt] {
                    messages.append(ChatMessage(role: .user, content: prompt))
                    let one = Case(
                        tokens: try model.tokens(for: ChatPrompt(messages)), limit: 8, format: format, line: String(line))
                    let found = try await answers([one])
                    try check([one], found)
                    messages.append(
                        ChatMessage(
                            role: .assistant,
                            content: String(decoding: found[0].flatMap { model.tokenizer.text(of: $0) }, as: UTF8.self)))
                }
                continue
            }
            var grammar: Grammar?
            var prompt = request.prompt
            if let schema = try JSONParser.parse(String(line))["schema"] {
                grammar = try Grammar(
                    .schema(schema), vocabulary: vocabulary, options: GrammarOptions(isSpaced: true, allowsZeroFraction: false))
                prompt += "\n" + schema.text
            }
            let tokens = try model.tokens(for: ChatPrompt([instructions, ChatMessage(role: .user, content: prompt)]))
            cases.append(
                Case(
                    tokens: tokens, limit: grammar.map { max(80, $0.matcher().shortestTokens.count + 40) } ?? 24,
                    grammar: grammar, format: format, line: String(line)))
        }
        try check(cases, try await answers(cases))
    }
}
