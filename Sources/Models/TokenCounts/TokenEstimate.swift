public import FoundationModels

/// Estimates how many tokens a model reads, for models that do not count them.
public enum TokenEstimate {
    /// An upper estimate of the number of tokens of a text.
    ///
    /// Letters of different scripts take different numbers of tokens: English has about four letters in a token, Chinese about one. Of
    /// texts of ten sentences in 75 languages, of source code and of Markdown, none has more tokens than estimated with the tokenizers of
    /// OpenAI (`cl100k_base`, `o200k_base`) and DeepSeek; English texts have a little more than half. Older tokenizers, and those of
    /// small models for English, may take more for scripts other than Latin.
    public static func count(_ text: String) -> Int {
        (text.unicodeScalars.reduce(0) { $0 + hundredths($1) } + 99) / 100
    }

    /// An upper estimate of the number of tokens of a request that ends with these entries: their texts, schemas and tool definitions, and
    /// what chat templates write around them.
    ///
    /// A picture counts as 1,600 tokens. The texts of a few templates are longer than the estimate has room for, such as default
    /// instructions of several hundred words.
    public static func count(_ transcriptEntries: some Collection<Transcript.Entry>) -> Int {
        RequestTexts(transcriptEntries).estimate
    }

    /// Hundredths of a token.
    private static func hundredths(_ scalar: Unicode.Scalar) -> Int {
        switch scalar.value {
        case 0x20: 8  // usually in the token of the word that follows
        case 0x00..<0x20: 60
        case 0x30...0x39: 100  // some models read each digit alone
        case 0x41...0x5A, 0x61...0x7A: 47
        case 0x21..<0x80: 80
        case 0xC0..<0x250, 0x1E00..<0x1F00: 125  // Latin letters with marks
        case 0x370..<0x400, 0x590..<0x780: 125  // Greek, Hebrew, Arabic
        case 0x400..<0x530: 95  // Cyrillic
        case 0x900..<0x980, 0xE00..<0xE80: 150  // Devanagari, Thai
        case 0x2000..<0x2E00: 150  // punctuation and symbols
        case 0x3000..<0xA000, 0xAC00..<0xD7B0, 0xF900..<0xFB00, 0xFF00..<0xFFF0: 150  // Chinese, Japanese, Korean
        case 0x1_0000...: 300  // emoji, rare Chinese characters
        default: 225
        }
    }
}

/// The texts of a request, and an upper estimate of the tokens around them.
package struct RequestTexts {
    /// All texts that the model reads.
    package private(set) var texts: [String] = []
    /// An upper estimate of the tokens of pictures and other attachments.
    package private(set) var pictures = 0
    /// An upper estimate of the tokens around texts: roles, and what a template writes before everything.
    private var template = Self.beginning
    /// The tokens that are not in the texts.
    package var overhead: Int { template + pictures }

    // Of the chat templates of current models (Qwen, Llama, Gemma, Mistral, DeepSeek, gpt-oss), the largest, with some room.
    /// Before the first message: dates, default instructions; and the beginning of the response.
    private static let beginning = 96
    /// The role and the ends of a message.
    private static let message = 8
    /// How tools are called.
    private static let tools = 350
    /// Around a definition or a call.
    private static let definition = 16
    private static let picture = 1_600

    package init(_ entries: some Collection<Transcript.Entry>) {
        for entry in entries {
            switch entry {
            case .instructions(let instructions):
                add(instructions.segments)
                add(instructions.toolDefinitions)
            case .prompt(let prompt):
                add(prompt.segments)
                if case .schema(let schema)? = prompt.responseFormat?.kind {
                    texts.append(schema.debugDescription)
                    template += Self.definition
                }
            case .toolCalls(let calls):
                template += Self.message
                for call in calls {
                    texts += [call.id, call.toolName, call.arguments.jsonString]
                    template += Self.definition
                }
            case .toolOutput(let output):
                texts += [output.id, output.toolName]
                add(output.segments)
            case .response(let response): add(response.segments)
            case .reasoning(let reasoning): add(reasoning.segments)
            // Models leave out data of types that they do not know.
            case .data: break
            @unknown default: texts.append(entry.description)
            }
        }
    }

    private init() { template = 0 }

    /// An upper estimate of the tokens that the tool definitions in entries add to a request.
    package static func estimate(ofToolsIn entries: some Collection<Transcript.Entry>) -> Int {
        var request = RequestTexts()
        for case .instructions(let instructions) in entries { request.add(instructions.toolDefinitions) }
        return request.estimate
    }

    /// An upper estimate of all tokens.
    var estimate: Int { texts.reduce(overhead) { $0 + TokenEstimate.count($1) } }

    private mutating func add(_ tools: [Transcript.ToolDefinition]) {
        if !tools.isEmpty { template += Self.tools }
        for tool in tools {
            texts += [tool.name, tool.description, tool.parameters.debugDescription]
            template += Self.definition
        }
    }

    private mutating func add(_ segments: [Transcript.Segment]) {
        template += Self.message
        texts.append(segments.modelText)
        for case .attachment(let attachment) in segments {
            switch attachment.content {
            case .image: pictures += Self.picture
            case .data(let data): pictures += data.content.count
            @unknown default: break
            }
        }
    }
}
