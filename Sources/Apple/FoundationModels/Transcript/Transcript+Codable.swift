internal import Foundation
internal import JSON
internal import UniformTypeIdentifiers

/// The JSON format of transcripts: `{"type": "FoundationModels.Transcript", "version": …, "transcript": {"entries":
/// […]}}`.
extension Transcript: Codable {
    private static let typeName = "FoundationModels.Transcript"

    /// - Throws: `DecodingError` if the data is not a transcript.
    public init(from decoder: any Decoder) throws {
        let envelope = try decoder.container(keyedBy: TranscriptKey.self)
        let type = try envelope.decode(String.self, forKey: .type)
        guard type == Self.typeName else {
            throw DecodingError.dataCorruptedError(
                forKey: .type, in: envelope, debugDescription: "“\(type)” is not a transcript.")
        }
        let body = try envelope.nestedContainer(keyedBy: TranscriptKey.self, forKey: .transcript)
        self.init(entries: try body.values(Entry.self, .entries))
    }

    public func encode(to encoder: any Encoder) throws {
        var envelope = encoder.container(keyedBy: TranscriptKey.self)
        try envelope.encode(Self.typeName, forKey: .type)
        try envelope.encode("1.1", forKey: .version)
        var body = envelope.nestedContainer(keyedBy: TranscriptKey.self, forKey: .transcript)
        try body.encode(values: Array(self), .entries)
    }
}

/// All keys used in a transcript's JSON.
private enum TranscriptKey: String, CodingKey {
    case type, version, transcript, entries
    case role, id, contents, tools, options, contextOptions, metadata, responseFormat, toolCalls, assets, toolCallID, toolName
    case reasoning, signature, contentType
    case text, structure, source, content, image, attachment, label, data
    case function, name, description, parameters, arguments, jsonSchema, schema
    case temperature, maximumResponseTokens, topK, probabilityThreshold, randomSeed, greedy, toolCallingMode
    case includeSchemaInPrompt, reasoningLevel
}

/// A type that is coded only as part of a transcript and is not itself `Codable`.
private protocol TranscriptCodable {
    init(inTranscript decoder: any Decoder) throws
    func encode(inTranscript encoder: any Encoder) throws
}

private struct Coded<Value: TranscriptCodable>: Codable {
    let value: Value

    init(_ value: Value) { self.value = value }
    init(from decoder: any Decoder) throws { value = try Value(inTranscript: decoder) }
    func encode(to encoder: any Encoder) throws { try value.encode(inTranscript: encoder) }
}

extension KeyedDecodingContainer<TranscriptKey> {
    fileprivate func corrupted(_ key: TranscriptKey, _ reason: String) -> DecodingError {
        .dataCorruptedError(forKey: key, in: self, debugDescription: reason)
    }

    fileprivate func value<Value: TranscriptCodable>(_ type: Value.Type, _ key: TranscriptKey) throws -> Value {
        try decode(Coded<Value>.self, forKey: key).value
    }

    fileprivate func values<Value: TranscriptCodable>(_ type: Value.Type, _ key: TranscriptKey) throws -> [Value] {
        try decode([Coded<Value>].self, forKey: key).map(\.value)
    }

    fileprivate func metadata() throws -> [String: GeneratedContent] {
        try decodeIfPresent([String: JSONCodable].self, forKey: .metadata)?.mapValues { GeneratedContent($0.value) } ?? [:]
    }
}

extension KeyedEncodingContainer<TranscriptKey> {
    fileprivate mutating func encode<Value: TranscriptCodable>(value: Value, _ key: TranscriptKey) throws {
        try encode(Coded(value), forKey: key)
    }

    fileprivate mutating func encode<Value: TranscriptCodable>(values: [Value], _ key: TranscriptKey) throws {
        try encode(values.map { Coded($0) }, forKey: key)
    }

    fileprivate mutating func encode(metadata: [String: GeneratedContent]) throws {
        guard !metadata.isEmpty else { return }
        try encode(metadata.mapValues { JSONCodable($0.json) }, forKey: .metadata)
    }
}

/// Data with its type. Apple's names of these keys are not published.
extension KeyedDecodingContainer<TranscriptKey> {
    fileprivate func typedData() throws -> (UTType, Data, GeneratedContent) {
        let metadata = try decodeIfPresent(JSONCodable.self, forKey: .metadata).map { GeneratedContent($0.value) }
        return (
            try decode(UTType.self, forKey: .contentType), try decode(Data.self, forKey: .content),
            metadata ?? GeneratedContent(properties: [:])
        )
    }
}

extension KeyedEncodingContainer<TranscriptKey> {
    fileprivate mutating func encode(_ type: UTType, _ content: Data, _ metadata: GeneratedContent) throws {
        try encode(type, forKey: .contentType)
        try encode(content, forKey: .content)
        if metadata.jsonString != "{}" { try encode(JSONCodable(metadata.json), forKey: .metadata) }
    }
}

extension Transcript.Entry: TranscriptCodable {
    fileprivate init(inTranscript decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: TranscriptKey.self)
        let id = try container.decode(String.self, forKey: .id)
        let role = try container.decode(String.self, forKey: .role)
        switch role {
        case "instructions":
            self = .instructions(
                .init(
                    id: id, segments: try container.values(Transcript.Segment.self, .contents),
                    toolDefinitions: container.contains(.tools)
                        ? try container.values(Transcript.ToolDefinition.self, .tools) : []))
        case "user":
            self = .prompt(
                .init(
                    id: id, metadata: try container.metadata(),
                    segments: try container.values(Transcript.Segment.self, .contents),
                    options: try container.value(GenerationOptions.self, .options),
                    responseFormat: container.contains(.responseFormat)
                        ? try container.value(Transcript.ResponseFormat.self, .responseFormat) : nil,
                    // Transcripts of version 1 have no context options.
                    contextOptions: container.contains(.contextOptions)
                        ? try container.value(ContextOptions.self, .contextOptions) : ContextOptions()))
        case "response" where container.contains(.toolCalls):
            self = .toolCalls(.init(id: id, try container.values(Transcript.ToolCall.self, .toolCalls)))
        case "response":
            let segments = try container.values(Transcript.Segment.self, .contents)
            var response = Transcript.Response(id: id, metadata: try container.metadata(), segments: segments)
            let assets = try container.decodeIfPresent([String].self, forKey: .assets) ?? []
            if !assets.isEmpty { response.assetIDs = assets }
            self = .response(response)
        case "tool":
            self = .toolOutput(
                .init(
                    id: try container.decodeIfPresent(String.self, forKey: .toolCallID) ?? id,
                    toolName: try container.decode(String.self, forKey: .toolName),
                    segments: try container.values(Transcript.Segment.self, .contents)))
        case "reasoning":
            let inner = try container.nestedContainer(keyedBy: TranscriptKey.self, forKey: .reasoning)
            self = .reasoning(
                .init(
                    id: id, metadata: try container.metadata(),
                    segments: try inner.values(Transcript.Segment.self, .contents),
                    signature: try inner.decodeIfPresent(Data.self, forKey: .signature)))
        case "data":
            let (type, content, metadata) = try container.nestedContainer(keyedBy: TranscriptKey.self, forKey: .data).typedData()
            self = .data(.init(id: id, contentType: type, content: content, metadata: metadata))
        default: throw container.corrupted(.role, "The role “\(role)” is not known.")
        }
    }

    fileprivate func encode(inTranscript encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: TranscriptKey.self)
        try container.encode(id, forKey: .id)
        switch self {
        case .instructions(let entry):
            try container.encode("instructions", forKey: .role)
            try container.encode(values: entry.segments, .contents)
            if !entry.toolDefinitions.isEmpty { try container.encode(values: entry.toolDefinitions, .tools) }
        case .prompt(let entry):
            try container.encode("user", forKey: .role)
            try container.encode(values: entry.segments, .contents)
            try container.encode(value: entry.options, .options)
            try container.encode(value: entry.contextOptions, .contextOptions)
            try container.encode(metadata: entry.metadata)
            if let format = entry.responseFormat { try container.encode(value: format, .responseFormat) }
        case .toolCalls(let entry):
            try container.encode("response", forKey: .role)
            try container.encode(values: Array(entry), .toolCalls)
        case .response(let entry):
            try container.encode("response", forKey: .role)
            try container.encode(values: entry.segments, .contents)
            if !entry.assetIDs.isEmpty { try container.encode(entry.assetIDs, forKey: .assets) }
            try container.encode(metadata: entry.metadata)
        case .toolOutput(let entry):
            try container.encode("tool", forKey: .role)
            try container.encode(entry.id, forKey: .toolCallID)
            try container.encode(entry.toolName, forKey: .toolName)
            try container.encode(values: entry.segments, .contents)
        case .reasoning(let entry):
            try container.encode("reasoning", forKey: .role)
            try container.encode(metadata: entry.metadata)
            var inner = container.nestedContainer(keyedBy: TranscriptKey.self, forKey: .reasoning)
            try inner.encode(values: entry.segments, .contents)
            try inner.encodeIfPresent(entry.signature, forKey: .signature)
        case .data(let entry):
            try container.encode("data", forKey: .role)
            var inner = container.nestedContainer(keyedBy: TranscriptKey.self, forKey: .data)
            try inner.encode(entry.contentType, entry.content, entry.metadata)
        }
    }
}

extension Transcript.Segment: TranscriptCodable {
    fileprivate init(inTranscript decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: TranscriptKey.self)
        let id = try container.decode(String.self, forKey: .id)
        let type = try container.decode(String.self, forKey: .type)
        switch type {
        case "text": self = .text(.init(id: id, content: try container.decode(String.self, forKey: .text)))
        case "structure":
            let inner = try container.nestedContainer(keyedBy: TranscriptKey.self, forKey: .structure)
            let content = try inner.decode(JSONCodable.self, forKey: .content).value
            // Decoders lose the order of members. The stored text preserves it and is used if it has the same value.
            let text = try inner.decodeIfPresent(String.self, forKey: .text).flatMap { try? JSONParser.parse($0) }
            let ordered = text.flatMap { $0.isEqual(to: content) ? $0 : nil }
            self = .structure(
                .init(
                    id: id, schemaName: try inner.decode(String.self, forKey: .source),
                    content: GeneratedContent(ordered ?? content)))
        case "image":
            let image = try container.decode(String.self, forKey: .image)
            self = .attachment(.init(id: id, content: .image(try Self.image(image, container))))
        case "attachment":
            let inner = try container.nestedContainer(keyedBy: TranscriptKey.self, forKey: .attachment)
            let kind = try inner.decode(String.self, forKey: .type)
            if kind == "data" {
                guard inner.contains(.data) else { throw inner.corrupted(.data, "The attachment has no 'data' payload.") }
                let (type, content, metadata) = try inner.nestedContainer(keyedBy: TranscriptKey.self, forKey: .data).typedData()
                self = .attachment(
                    .init(
                        id: id, content: .data(.init(contentType: type, content: content, metadata: metadata)),
                        label: try inner.decodeIfPresent(String.self, forKey: .label)))
                return
            }
            guard kind == "image" else { throw inner.corrupted(.type, "The attachment type “\(kind)” is not known.") }
            self = .attachment(
                .init(
                    id: id, content: .image(try Self.image(try inner.decode(String.self, forKey: .data), inner)),
                    label: try inner.decodeIfPresent(String.self, forKey: .label)))
        default: throw container.corrupted(.type, "The content type “\(type)” is not known.")
        }
    }

    private static func image(
        _ url: String, _ container: KeyedDecodingContainer<TranscriptKey>
    ) throws -> Transcript.ImageAttachment {
        guard let image = Transcript.ImageAttachment(dataURL: url) else {
            throw container.corrupted(.type, "The image is not a data URL.")
        }
        return image
    }

    fileprivate func encode(inTranscript encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: TranscriptKey.self)
        try container.encode(id, forKey: .id)
        switch self {
        case .text(let segment):
            try container.encode("text", forKey: .type)
            try container.encode(segment.content, forKey: .text)
        case .structure(let segment):
            try container.encode("structure", forKey: .type)
            var inner = container.nestedContainer(keyedBy: TranscriptKey.self, forKey: .structure)
            try inner.encode(segment.schemaName, forKey: .source)
            let content = segment.content.json
            try inner.encode(JSONCodable(content), forKey: .content)
            if !content.isSorted { try inner.encode(content.text, forKey: .text) }
        case .attachment(let segment):
            guard case .image(let image) = segment.content else {
                guard case .data(let data) = segment.content else { return }
                try container.encode("attachment", forKey: .type)
                var inner = container.nestedContainer(keyedBy: TranscriptKey.self, forKey: .attachment)
                try inner.encode("data", forKey: .type)
                try inner.encodeIfPresent(segment.label, forKey: .label)
                var payload = inner.nestedContainer(keyedBy: TranscriptKey.self, forKey: .data)
                return try payload.encode(data.contentType, data.content, data.metadata)
            }
            let url = try image.dataURL()
            if let label = segment.label {
                try container.encode("attachment", forKey: .type)
                var inner = container.nestedContainer(keyedBy: TranscriptKey.self, forKey: .attachment)
                try inner.encode("image", forKey: .type)
                try inner.encode(label, forKey: .label)
                try inner.encode(url, forKey: .data)
            } else {
                try container.encode("image", forKey: .type)
                try container.encode(url, forKey: .image)
            }
        }
    }
}

extension Transcript.ToolDefinition: TranscriptCodable {
    fileprivate init(inTranscript decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: TranscriptKey.self)
        let type = try container.decode(String.self, forKey: .type)
        guard type == "function" else { throw container.corrupted(.type, "The tool type “\(type)” is not known.") }
        let function = try container.nestedContainer(keyedBy: TranscriptKey.self, forKey: .function)
        self.init(
            name: try function.decode(String.self, forKey: .name),
            description: try function.decode(String.self, forKey: .description),
            parameters: try function.decode(GenerationSchema.self, forKey: .parameters))
    }

    fileprivate func encode(inTranscript encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: TranscriptKey.self)
        try container.encode("function", forKey: .type)
        var function = container.nestedContainer(keyedBy: TranscriptKey.self, forKey: .function)
        try function.encode(name, forKey: .name)
        try function.encode(description, forKey: .description)
        try function.encode(parameters, forKey: .parameters)
    }
}

extension Transcript.ToolCall: TranscriptCodable {
    fileprivate init(inTranscript decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: TranscriptKey.self)
        let arguments = try container.decode(String.self, forKey: .arguments)
        let content: GeneratedContent
        do { content = GeneratedContent(try JSONParser.parse(arguments)) } catch {
            throw container.corrupted(.arguments, "The arguments are not JSON: \(error)")
        }
        self.init(
            id: try container.decode(String.self, forKey: .id), metadata: try container.metadata(),
            toolName: try container.decode(String.self, forKey: .name), arguments: content)
    }

    fileprivate func encode(inTranscript encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: TranscriptKey.self)
        try container.encode(id, forKey: .id)
        try container.encode(toolName, forKey: .name)
        try container.encode(arguments.jsonString, forKey: .arguments)
        try container.encode(metadata: metadata)
    }
}

extension Transcript.ResponseFormat: TranscriptCodable {
    fileprivate init(inTranscript decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: TranscriptKey.self)
        let type = try container.decode(String.self, forKey: .type)
        guard type == "jsonSchema" else { throw container.corrupted(.type, "The format “\(type)” is not known.") }
        let inner = try container.nestedContainer(keyedBy: TranscriptKey.self, forKey: .jsonSchema)
        self.init(schema: try inner.decode(GenerationSchema.self, forKey: .schema))
    }

    fileprivate func encode(inTranscript encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: TranscriptKey.self)
        try container.encode("jsonSchema", forKey: .type)
        var inner = container.nestedContainer(keyedBy: TranscriptKey.self, forKey: .jsonSchema)
        try inner.encode(name, forKey: .name)
        if case .object(let object) = schema.root { try inner.encodeIfPresent(object.description, forKey: .description) }
        try inner.encode(schema, forKey: .schema)
    }
}

extension GenerationOptions: TranscriptCodable {
    fileprivate init(inTranscript decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: TranscriptKey.self)
        self.init(
            temperature: try container.decodeIfPresent(Double.self, forKey: .temperature),
            maximumResponseTokens: try container.decodeIfPresent(Int.self, forKey: .maximumResponseTokens))
        let seed = try container.decodeIfPresent(UInt64.self, forKey: .randomSeed)
        if let k = try container.decodeIfPresent(Int.self, forKey: .topK) {
            samplingMode = .random(top: k, seed: seed)
        } else if let threshold = try container.decodeIfPresent(Double.self, forKey: .probabilityThreshold) {
            samplingMode = .random(probabilityThreshold: threshold, seed: seed)
        } else if try container.decodeIfPresent(Bool.self, forKey: .greedy) == true {
            samplingMode = .greedy
        }
        if let mode = try container.decodeIfPresent(String.self, forKey: .toolCallingMode) {
            switch mode {
            case "allowed": toolCallingMode = .allowed
            case "required": toolCallingMode = .required
            case "disallowed": toolCallingMode = .disallowed
            default: throw container.corrupted(.toolCallingMode, "The mode “\(mode)” is not known.")
            }
        }
    }

    fileprivate func encode(inTranscript encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: TranscriptKey.self)
        // JSON has no infinity and no NaN: a transcript with such an option must be savable all the same.
        try container.encodeIfPresent(temperature.flatMap { $0.isFinite ? $0 : nil }, forKey: .temperature)
        try container.encodeIfPresent(maximumResponseTokens, forKey: .maximumResponseTokens)
        switch samplingMode?.kind {
        case .greedy: try container.encode(true, forKey: .greedy)
        case .randomTopK(let k, let seed):
            try container.encode(k, forKey: .topK)
            try container.encodeIfPresent(seed, forKey: .randomSeed)
        case .randomProbabilityThreshold(let threshold, let seed):
            try container.encode(threshold.isFinite ? threshold : 1, forKey: .probabilityThreshold)
            try container.encodeIfPresent(seed, forKey: .randomSeed)
        case nil: break
        }
        switch toolCallingMode?.kind {
        case .allowed: try container.encode("allowed", forKey: .toolCallingMode)
        case .required: try container.encode("required", forKey: .toolCallingMode)
        case .disallowed: try container.encode("disallowed", forKey: .toolCallingMode)
        case nil: break
        }
    }
}

extension ContextOptions: TranscriptCodable {
    fileprivate init(inTranscript decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: TranscriptKey.self)
        let level: ReasoningLevel? =
            switch try container.decodeIfPresent(String.self, forKey: .reasoningLevel) {
            case nil: nil
            case "light": .light
            case "moderate": .moderate
            case "deep": .deep
            case .some(let name): .custom(name)
            }
        self.init(
            includeSchemaInPrompt: try container.decodeIfPresent(Bool.self, forKey: .includeSchemaInPrompt),
            reasoningLevel: level)
    }

    fileprivate func encode(inTranscript encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: TranscriptKey.self)
        try container.encodeIfPresent(includeSchemaInPrompt, forKey: .includeSchemaInPrompt)
        switch reasoningLevel {
        case .light: try container.encode("light", forKey: .reasoningLevel)
        case .moderate: try container.encode("moderate", forKey: .reasoningLevel)
        case .deep: try container.encode("deep", forKey: .reasoningLevel)
        case .custom(let name): try container.encode(name, forKey: .reasoningLevel)
        case nil: break
        }
    }
}
