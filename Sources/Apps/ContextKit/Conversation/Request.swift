import Foundation
import FoundationModels
import Synchronization

/// What a program asks of the model: a prompt, and the form of the answer.
struct Request: Sendable {
    /// The prompt, as the program made it.
    let prompt: Prompt
    let schema: GenerationSchema?
    let options: GenerationOptions
    let contextOptions: ContextOptions
    let metadata: [String: GeneratedContent]
    /// The parts of the prompt.
    let segments: [Transcript.Segment]

    init(
        _ prompt: some PromptRepresentable, schema: GenerationSchema? = nil, includesSchema: Bool = true,
        options: GenerationOptions = GenerationOptions(), contextOptions: ContextOptions = ContextOptions(),
        metadata: [String: any ConvertibleToGeneratedContent] = [:]
    ) {
        self.prompt = Prompt(prompt)
        self.schema = schema
        self.options = options
        var contextOptions = contextOptions
        if schema != nil { contextOptions.includeSchemaInPrompt = contextOptions.includeSchemaInPrompt ?? includesSchema }
        self.contextOptions = contextOptions
        self.metadata = metadata.mapValues(\.generatedContent)
        segments = (prompt as? String).map { [.text(.init(content: $0))] } ?? PromptReader.segments(of: self.prompt)
    }

    /// The text of the prompt; attachments are named in their places.
    var text: String { segments.plainText }

    // MARK: - Attachments

    /// The maximum number of bytes of all attachments of a prompt. The archive stores them with the turn.
    private static let maximumAttachmentBytes = 16 << 20

    /// - Throws: ``ConversationError/attachment(_:)`` if an attachment cannot be read, or if all together are too large for the archive.
    func checkAttachments() throws {
        var bytes = 0
        for case .attachment(let attachment) in segments {
            func failure(_ reason: String) -> ConversationError {
                .attachment(.init(label: attachment.label, reason: reason))
            }
            switch attachment.content {
            case .data(let data): bytes += data.content.count
            case .image(let image):
                guard let url = image.url else { throw failure("it has no file.") }
                guard url.isFileURL else {
                    bytes += url.absoluteString.utf8.count / 4 * 3
                    continue
                }
                let attributes: [FileAttributeKey: Any]
                do { attributes = try FileManager.default.attributesOfItem(atPath: url.resolvingSymlinksInPath().path) } catch {
                    throw failure("its file “\(url.path)” cannot be read: \(error.localizedDescription)")
                }
                guard attributes[.type] as? FileAttributeType == .typeRegular, let size = attributes[.size] as? Int else {
                    throw failure("“\(url.path)” is not a file.")
                }
                bytes += size
            @unknown default: break
            }
            guard bytes <= Self.maximumAttachmentBytes else {
                throw failure(
                    """
                    with it, the attachments of the prompt have \(bytes) bytes, and a conversation stores at most \
                    \(Self.maximumAttachmentBytes) with a prompt.
                    """)
            }
        }
    }
}

/// A model that answers nothing. A `Prompt` shows its parts only to the model of a session; a prewarm does, without a request, which would
/// be traced.
private final class PromptReader: LanguageModel {
    private let read = Mutex<[Transcript.Segment]>([])

    static func segments(of prompt: Prompt) -> [Transcript.Segment] {
        let reader = PromptReader()
        LanguageModelSession(model: reader).prewarm(promptPrefix: prompt)
        return reader.read.withLock { $0 }
    }

    var capabilities: LanguageModelCapabilities { LanguageModelCapabilities([.vision]) }
    var executorConfiguration: Executor.Configuration { .init() }

    struct Executor: LanguageModelExecutor {
        typealias Model = PromptReader
        struct Configuration: Hashable, Sendable {}

        init(configuration: Configuration) {}

        func prewarm(model: PromptReader, transcript: Transcript) {
            if case .prompt(let prompt)? = transcript.last { model.read.withLock { $0 = prompt.segments } }
        }

        nonisolated(nonsending) func respond(
            to request: LanguageModelExecutorGenerationRequest, model: PromptReader,
            streamingInto channel: LanguageModelExecutorGenerationChannel
        ) async throws {}
    }
}

/// The prompt of a request as it is sent, with what the conversation puts in front of it.
struct Message: Sendable {
    let request: Request
    /// Earlier turns that are recalled for the prompt.
    var recalled: String?
    /// Facts that were pinned since the last compaction.
    var facts: String?

    /// The ids of the segments that the conversation adds. Only segments with them are removed again: anybody may write the same texts.
    static let recalledID = "recalled"
    static let factsID = "facts"

    /// The added texts as segments of their own. A session joins them with the prompt, each beginning a new line.
    var segments: [Transcript.Segment] {
        let added = [(Self.recalledID, recalled), (Self.factsID, facts)]
        return added.compactMap { id, text in text.map { .text(.init(id: id, content: $0)) } } + request.segments
    }

    var hasAdditions: Bool { recalled != nil || facts != nil }

    /// The prompt for a session.
    var prompt: Prompt {
        Prompt {
            for text in [recalled, facts].compactMap(\.self) { text }
            request.prompt
        }
    }

    /// The entry of the prompt, to count its tokens.
    var entry: Transcript.Entry {
        .prompt(
            .init(
                metadata: request.metadata, segments: segments, options: request.options,
                responseFormat: request.schema.map { Transcript.ResponseFormat(schema: $0) },
                contextOptions: request.contextOptions))
    }
}
