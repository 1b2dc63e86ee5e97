public import FoundationModels
package import JSON
internal import ModelPrompts

/// A value whose parts have been decided, with the probabilities of all that each part could have been.
///
/// ```swift
/// @Generable struct Ticket { var team: Team; var isUrgent: Bool; @Guide(.range(1...5)) var mood: Int }
/// let ticket = try await session.decide(about: mail, as: Ticket.self)
/// print(ticket.content.team, ticket[\.team]?.probability(of: .billing) ?? 0)
/// ```
public struct ValueDecision<Content> {
    /// A part of a value of which only a limited number of values is possible.
    public struct Field: Sendable {
        /// The names of the properties, and the positions in arrays, that lead to the part; empty for the value itself.
        public let path: [String]
        /// The probabilities of the possible values, after what comes before the part in the value.
        public let distribution: Distribution<GeneratedContent>
        /// The index of what the value has.
        public let chosen: Int

        /// The probability of what the value has.
        public var probability: Double { distribution.probabilities[chosen] }
        /// How sure the model is, from 0 for chance to 1: see ``Distribution/confidence``.
        public var confidence: Double { distribution.confidence }
        /// The place of the part, as a JSON Pointer.
        public var pointer: String { path.jsonPointer }
    }

    /// The value.
    public let content: Content
    /// The decided parts, in the order of the value.
    public let fields: [Field]

    /// The probabilities of a property whose type is `Generable`; nil if it was not decided. The path names stored properties.
    public subscript<Value: Generable & Sendable>(path: KeyPath<Content, Value>) -> Distribution<Value>? {
        // A key path describes itself as `\Ticket.sender.team`.
        var names = "\(path)".split(separator: ".").dropFirst().map(String.init)
        if names == ["self"] { names = [] }
        guard let field = fields.first(where: { $0.path == names }) else { return nil }
        // An option that is no `Value` means that the path names another type than the one that was decided.
        return try? field.distribution.mapped { try Value($0) }
    }

    /// The least probability of a decided part; 1 if there is none.
    public var leastProbability: Double { fields.map(\.probability).min() ?? 1 }
}

extension ValueDecision: Sendable where Content: Sendable {}

extension LanguageModelSession {
    /// Decides a value: one of an enumeration, true or false, a whole number of a range, or a structure of these. Its parts are decided one after
    /// the other, each after those before it, from the probabilities that the model would have generated them with.
    ///
    /// Optional properties are decided as if they were required. The transcript does not change.
    ///
    /// - Parameters:
    ///   - question: What to decide; nil if the type says it.
    ///   - state: What it is about; nil for what the session knows.
    /// - Throws: ``DecisionError/openValue(pointer:)`` if a part of the type can be anything, `LanguageModelError.contextSizeExceeded(_:)` if
    ///   the question does not fit the window, or `CancellationError`.
    public func decide<Content: Generable>(
        _ question: String? = nil, about state: String? = nil, as type: Content.Type = Content.self,
        options: DecisionOptions = DecisionOptions(), isolation: isolated (any Actor)? = #isolation
    ) async throws -> ValueDecision<Content> {
        let decided = try await decide(
            question, about: state, schema: Content.generationSchema, options: options, isolation: isolation)
        return ValueDecision(content: try Content(decided.content), fields: decided.fields.map { .init($0) })
    }

    /// Decides a value of a schema; see ``decide(_:about:as:options:isolation:)``.
    public func decide(
        _ question: String? = nil, about state: String? = nil, schema: GenerationSchema,
        options: DecisionOptions = DecisionOptions(), isolation: isolated (any Actor)? = #isolation
    ) async throws -> ValueDecision<GeneratedContent> {
        let (model, before) = await nextRequest(isolation: isolation)
        guard let reader = OptionReader(model: model) else { throw DecisionError.unsupportedModel }
        var text = try ValueText(anyValueOf: schema.json)
        let request =
            (state.map { DecisionPrompts.state($0) } ?? "") + (question.map { $0 + "\n\n" } ?? "")
            + SchemaDescription.request(for: schema.json)
        let entries =
            before.withDecisionInstructions + [.prompt(.init(segments: [.text(.init(content: request))]))]
        var fields: [ValueDecision<GeneratedContent>.Field] = []
        for index in text.pieces.indices {
            guard case .field(let field) = text.pieces[index] else { continue }
            let reading = try await reader.read([text.prompt(entries, at: index, field)])
            let made = ValueDecision<GeneratedContent>.Field(
                field, reading.logProbabilities[0], options.calibration ?? .builtIn(for: reading.fingerprint))
            text.choose(made.chosen, at: index)
            fields.append(made)
        }
        return ValueDecision(content: try GeneratedContent(json: text.text(before: text.pieces.count)), fields: fields)
    }

    /// How sure the model is of the parts of a value that it has generated in this session: the probabilities of what each part with a
    /// limited number of values could have been instead, after what it generated before it.
    ///
    /// - Throws: ``DecisionError/unknownResponse`` if the response is not in the transcript any more, or see
    ///   ``decide(_:about:as:options:isolation:)``.
    public func decision<Content: Generable>(
        in response: Response<Content>, options: DecisionOptions = DecisionOptions(),
        isolation: isolated (any Actor)? = #isolation
    ) async throws -> ValueDecision<Content> {
        let (model, entries) = await nextRequest(isolation: isolation)
        guard let last = response.transcriptEntries.last, let place = entries.lastIndex(where: { $0.id == last.id }) else {
            throw DecisionError.unknownResponse
        }
        guard let reader = OptionReader(model: model) else { throw DecisionError.unsupportedModel }
        let value = try JSONParser.parse(response.rawContent.jsonString)
        let fields = try await reader.fields(
            of: value, schema: Content.generationSchema.responseJSON, after: Array(entries[..<place]), options)
        return ValueDecision(content: response.content, fields: fields.map { .init($0) })
    }
}

extension LanguageModelSession {
    /// The probabilities of texts, each as the whole answer, in the place of a response of this session.
    ///
    /// - Parameter texts: at least one; as they are, without a temperature.
    /// - Throws: ``DecisionError/unknownResponse`` if the response is not in the transcript any more, or see
    ///   ``decide(_:about:as:options:isolation:)``.
    public func probabilities(
        of texts: [String], inPlaceOf response: Response<String>, isolation: isolated (any Actor)? = #isolation
    ) async throws -> Distribution<String> {
        let (model, entries) = await nextRequest(isolation: isolation)
        guard let last = response.transcriptEntries.last, let place = entries.lastIndex(where: { $0.id == last.id }) else {
            throw DecisionError.unknownResponse
        }
        guard let reader = OptionReader(model: model) else { throw DecisionError.unsupportedModel }
        let reading = try await reader.read([OptionPrompt(Array(entries[..<place]), options: texts, closing: .endOfTurn)])
        let weights = Calibration.none.weights(reading.logProbabilities[0], kind: "value")
        guard let distribution = Distribution(texts, weights: weights) else { throw DecisionError.noOptions(question: "") }
        return distribution
    }
}

extension OptionReader {
    /// The probabilities of the fields of a value that was generated after some entries; all fields are computed together.
    package func fields(
        of value: JSONValue, schema: JSONValue, after entries: [Transcript.Entry], _ options: DecisionOptions = DecisionOptions()
    ) async throws -> [ValueDecision<GeneratedContent>.Field] {
        let text = try ValueText(value, of: schema)
        let places = text.pieces.indices.filter { if case .field = text.pieces[$0] { true } else { false } }
        let fields = text.fields
        if fields.isEmpty { return [] }
        let reading = try await read(zip(places, fields).map { text.prompt(entries, at: $0, $1) })
        let calibration = options.calibration ?? .builtIn(for: reading.fingerprint)
        return zip(fields, reading.logProbabilities).map { .init($0, $1, calibration) }
    }

    /// The places of a schema's values that have a limited number of values, with these.
    package static func closedFields(of schema: JSONValue) -> [(pointer: String, options: [JSONValue])] {
        ValueText.closedFields(of: schema).map { field in
            (field.path.jsonPointer, field.options)
        }
    }
}

extension ValueText {
    fileprivate func prompt(_ entries: [Transcript.Entry], at index: Int, _ field: Field) -> OptionPrompt {
        OptionPrompt(
            entries, opening: text(before: index), options: field.options.map(\.spacedText),
            closing: character(after: index).map { .text($0) } ?? .endOfTurn)
    }
}

extension ValueDecision.Field {
    fileprivate init(_ field: ValueText.Field, _ logProbabilities: [Double], _ calibration: Calibration) {
        path = field.path
        let values = field.options.map { GeneratedContent($0) }
        // A field has several options.
        distribution =
            Distribution(values, weights: calibration.weights(logProbabilities, kind: "value"))
            ?? .certain(GeneratedContent(kind: .null))
        chosen = field.chosen ?? distribution.indexOfMostLikely
    }

    fileprivate init<Other>(_ other: ValueDecision<Other>.Field) {
        (path, distribution, chosen) = (other.path, other.distribution, other.chosen)
    }
}
