internal import FoundationModels
internal import JSON
internal import Synchronization
internal import TokenCounts

/// What a server offers for counting tokens.
enum ServerTokenizer: CaseIterable {
    /// vLLM: `/tokenize` counts the tokens of messages.
    case messages
    /// llama-server: `/apply-template` writes the prompt of messages, and `/tokenize` divides it into tokens.
    case prompt
    /// llama-cpp-python: `/extras/tokenize/count` counts the tokens of a text.
    case text
    /// Nothing.
    case none

    /// What became of a request for a count.
    fileprivate enum Result {
        case count(Int)
        /// The server does not offer this.
        case absent
        /// The server did not count these messages, or not now.
        case refused
    }
}

extension ServerConnection {
    /// The number of tokens of a request that ends with these entries, or an upper estimate.
    ///
    /// - Throws: `CancellationError`, or ``LanguageModelError`` if an image cannot be read.
    func tokenCount(of transcript: Transcript) async throws -> Int {
        // Servers do not accept reasoning of earlier responses, so that it is not sent.
        let sent = Array(transcript).filter { if case .reasoning = $0 { false } else { true } }
        let known = tokenizer.withLock { $0 }
        if known != ServerTokenizer.none {
            let request = try RequestTranslator(model: server.model).counted(transcript)
            var mayHaveOne = false
            // Without a response from the server, there is still the estimate; the next request reports the problem.
            do {
                for offer in known.map({ [$0] }) ?? ServerTokenizer.allCases where offer != .none {
                    switch try await count(with: offer, sent, request.request, request.tools) {
                    case .count(let count):
                        if known == nil { tokenizer.withLock { $0 = offer } }
                        return count
                    case .absent: break
                    case .refused: mayHaveOne = true
                    }
                }
                if known == nil, !mayHaveOne { tokenizer.withLock { $0 = ServerTokenizer.none } }
            } catch let error as CancellationError {
                throw error
            } catch {}
        }
        return TokenEstimate.count(sent)
    }

    private func count(
        with offer: ServerTokenizer, _ entries: [Transcript.Entry], _ request: [JSONValue.Member], _ tools: [JSONValue.Member]
    ) async throws -> ServerTokenizer.Result {
        let model = JSONValue.Member("model", .string(server.model))
        switch offer {
        case .messages:
            let result = try await integer("count", at: "/tokenize", [model] + request + tools)
            guard case .count(let count) = result, !tools.isEmpty else { return result }
            // Earlier versions leave out the tools.
            guard case .count(count) = try await integer("count", at: "/tokenize", [model] + request) else { return result }
            return .count(count + RequestTexts.estimate(ofToolsIn: entries))
        case .prompt:
            let (status, body) = try await json(.object(request + tools), to: "/apply-template")
            guard let prompt = body?["prompt"]?.string else { return Self.result(without: status) }
            let yes = JSONValue.bool(true)
            let (next, tokens) = try await json(
                .object([.init("content", .string(prompt)), .init("add_special", yes), .init("parse_special", yes)]),
                to: "/tokenize")
            guard case .array(let tokens)? = tokens?["tokens"] else { return Self.result(without: next) }
            return .count(tokens.count + RequestTexts(entries).pictures)
        case .text:
            let texts = RequestTexts(entries)
            let text = JSONValue.Member("input", .string(texts.texts.joined(separator: "\n")))
            let result = try await integer("count", at: "/extras/tokenize/count", [model, text])
            guard case .count(let count) = result else { return result }
            return .count(count + texts.overhead)
        case .none: return .absent
        }
    }

    private func integer(
        _ name: String, at path: String, _ members: [JSONValue.Member]
    ) async throws -> ServerTokenizer.Result {
        let (status, body) = try await json(.object(members), to: path)
        guard status == 200, case .number(let number)? = body?[name], let count = number.integer, count >= 0 else {
            return Self.result(without: status)
        }
        return .count(min(count, 1 << 40))
    }

    /// A server may have the path for something else, or reject what is beside its API: the key is the same for each request.
    private static func result(without status: Int) -> ServerTokenizer.Result {
        [200, 401, 403, 404, 405, 501].contains(status) ? .absent : .refused
    }
}
