public import Foundation
public import FoundationModels
internal import Synchronization
public import TokenCounts
public import UniformTypeIdentifiers

/// A model that forwards requests to another model and records its responses.
public struct RecordingLanguageModel<Base: LanguageModel>: LanguageModel {
    /// The recorded exchanges, shared by copies of the model.
    final class Log: Sendable, Hashable {
        let exchanges = Mutex<[Recording.Exchange]>([])

        static func == (a: Log, b: Log) -> Bool { a === b }
        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
    }

    private let base: Base
    private let log = Log()

    /// Creates a model that forwards requests to `base` and has the same capabilities.
    public init(_ base: Base) { self.base = base }

    /// The exchanges recorded so far.
    public var recording: Recording { Recording(exchanges: log.exchanges.withLock { $0 }) }

    public var capabilities: LanguageModelCapabilities { base.capabilities }

    public nonisolated(nonsending) func supportsDataAttachmentType(_ type: UTType) async throws -> Bool {
        try await base.supportsDataAttachmentType(type)
    }

    public nonisolated(nonsending) func supportsDataEntryType(_ type: UTType) async throws -> Bool {
        try await base.supportsDataEntryType(type)
    }

    public var executorConfiguration: Executor.Configuration {
        Executor.Configuration(base: base.executorConfiguration, log: log)
    }

    /// Forwards requests and records the responses. Requests that throw an error are not recorded.
    public struct Executor: LanguageModelExecutor {
        /// The model that this executor runs.
        public typealias Model = RecordingLanguageModel<Base>

        /// The configuration of the other model's executor, and the recorded exchanges.
        public struct Configuration: Hashable, Sendable {
            let base: Base.Executor.Configuration
            let log: Log
        }

        private let base: Base.Executor
        private let log: Log

        /// Called by sessions.
        ///
        /// - Throws: The errors of the other model's executor.
        public init(configuration: Configuration) throws {
            base = try Base.Executor(configuration: configuration.base)
            log = configuration.log
        }

        public func prewarm(model: RecordingLanguageModel<Base>, transcript: Transcript) {
            base.prewarm(model: model.base, transcript: transcript)
        }

        public nonisolated(nonsending) func respond(
            to request: LanguageModelExecutorGenerationRequest, model: RecordingLanguageModel<Base>,
            streamingInto channel: LanguageModelExecutorGenerationChannel
        ) async throws {
            let said = Said()
            let recipient = LanguageModelExecutorGenerationChannel { event in
                said.assembler.withLock { _ = $0.apply(event) }
                channel.emit(event)
            }
            try await base.respond(to: request, model: model.base, streamingInto: recipient)
            let (entries, usage) = try said.assembler.withLock { (try $0.transcriptEntries(), $0.usage) }
            let exchange = Recording.Exchange(
                requestKey: Recording.requestKey(of: request.transcript), response: Transcript(entries: entries),
                inputTokens: usage.input.totalTokenCount, outputTokens: usage.output.totalTokenCount)
            log.exchanges.withLock { $0.append(exchange) }
        }
    }
}

extension RecordingLanguageModel: TokenCounting where Base: TokenCounting {
    public var contextSize: Int { base.contextSize }

    public nonisolated(nonsending) func tokenCount(
        for transcriptEntries: some Collection<Transcript.Entry>
    ) async throws -> Int {
        try await base.tokenCount(for: transcriptEntries)
    }
}

extension RecordingLanguageModel: KVCacheSaving where Base: KVCacheSaving {
    public func saveKVCache(for transcriptEntries: some Collection<Transcript.Entry>, to url: URL) async throws -> Int {
        try await base.saveKVCache(for: transcriptEntries, to: url)
    }

    public func restoreKVCache(from url: URL) async throws -> Int { try await base.restoreKVCache(from: url) }
}

// Requests run as those of the model behind.
extension RecordingLanguageModel: HasLocalModel where Base: HasLocalModel {
    package var localModel: LocalModel { base.localModel }
}

private final class Said: Sendable {
    let assembler = Mutex(ResponseAssembler())
}
