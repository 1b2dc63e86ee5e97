public import FoundationModels
internal import ModelPrompts
internal import Synchronization

/// Generates samples like those that a person has written.
public actor SampleGenerator<SampleType> where SampleType: ModelSampleProtocol {
    /// Which samples the model sees as examples.
    public enum SamplingStrategy: Sendable {
        /// Some of the samples that a person has written. After samples that are not valid or already known, the model is asked
        /// again.
        case random(retries: Int = 5)
        /// The latest samples, also generated ones.
        case slidingWindow
    }

    /// Which samples the model sees as examples; nil for none.
    public let samplingStrategy: SampleGenerator<SampleType>.SamplingStrategy?
    /// Decides whether a generated sample is kept.
    public let validator: (nonisolated(nonsending) @Sendable (SampleType) async throws -> Bool)?
    /// The samples that a person has written and those that were generated.
    public private(set) var samples: [SampleType]
    /// The generated samples that were not valid.
    public private(set) var invalidSamples: [SampleType] = []

    private let prompt: Prompt
    private let targetCount: Int
    private let session: @Sendable () -> LanguageModelSession
    private let generate: @Sendable (LanguageModelSession, Prompt) async throws -> SampleType
    private let describe: @Sendable (SampleType) -> String
    private let seedCount: Int

    /// The number of examples in a prompt.
    private static var exampleCount: Int { 3 }
    private static var defaultRetries: Int { 5 }

    private init(
        _ prompt: Prompt, _ samples: [SampleType], _ targetCount: Int, _ sessionProvider: (@Sendable () -> LanguageModelSession)?,
        _ samplingStrategy: SamplingStrategy?,
        _ validator: (nonisolated(nonsending) @Sendable (SampleType) async throws -> Bool)?,
        describe: @escaping @Sendable (SampleType) -> String,
        generate: @escaping @Sendable (LanguageModelSession, Prompt) async throws -> SampleType
    ) {
        self.prompt = prompt
        self.samples = samples
        self.targetCount = targetCount
        self.samplingStrategy = samplingStrategy
        self.validator = validator
        self.generate = generate
        self.describe = describe
        session = sessionProvider ?? { LanguageModelSession() }
        seedCount = samples.count
    }

    /// Creates a generator of prompts with expected values.
    ///
    /// - Parameters:
    ///   - prompt: What the samples should be like.
    ///   - samples: Samples that a person has written.
    ///   - targetCount: The number of samples, including those.
    public init<T>(
        _ prompt: Prompt, samples: [SampleType], targetCount: Int, sessionProvider: (@Sendable () -> LanguageModelSession)? = nil,
        samplingStrategy: SampleGenerator<SampleType>.SamplingStrategy? = .random(),
        validator: (nonisolated(nonsending) @Sendable (SampleType) async throws -> Bool)? = nil
    ) where SampleType == ModelSample<T>, T: Generable, T: Decodable, T: Encodable, T: Sendable {
        self.init(
            prompt, samples, targetCount, sessionProvider, samplingStrategy, validator,
            describe: { sample in
                var properties: [(String, any ConvertibleToGeneratedContent)] = [("prompt", sample.promptDescription)]
                if let expected = sample.expected { properties.append(("expected", expected)) }
                return GeneratedContent(properties: properties, uniquingKeysWith: { $1 }).jsonString
            },
            generate: { session, prompt in
                let schema = GenerationSchema(
                    type: GeneratedContent.self,
                    properties: [.init(name: "prompt", type: String.self), .init(name: "expected", type: T.self)])
                let content = try await session.respond(to: prompt, schema: schema).content
                return ModelSample(
                    prompt: try content.value(String.self, forProperty: "prompt"),
                    expected: try content.value(T.self, forProperty: "expected"))
            })
    }

    /// Creates a generator of samples of a type that models can generate.
    public init(
        _ prompt: Prompt, samples: [SampleType], targetCount: Int, sessionProvider: (@Sendable () -> LanguageModelSession)? = nil,
        samplingStrategy: SampleGenerator<SampleType>.SamplingStrategy? = .random(),
        validator: (nonisolated(nonsending) @Sendable (SampleType) async throws -> Bool)? = nil
    ) where SampleType: Generable {
        self.init(
            prompt, samples, targetCount, sessionProvider, samplingStrategy, validator,
            describe: { $0.generatedContent.jsonString },
            generate: { session, prompt in try await session.respond(to: prompt, generating: SampleType.self).content })
    }

    /// Generates samples until there are enough. Ends early if the model has no new ideas.
    public nonisolated func run() -> some AsyncSequence<SampleType, any Error> {
        AsyncThrowingStream { continuation in
            let task = Task {
                do {
                    while let sample = try await self.next() { continuation.yield(sample) }
                    continuation.finish()
                } catch {
                    continuation.finish(throwing: error)
                }
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    /// The next sample; nil if there are enough, or after several attempts without a new one.
    private func next() async throws -> SampleType? {
        guard samples.count < targetCount else { return nil }
        var attempts = Self.defaultRetries
        if case .random(let retries)? = samplingStrategy { attempts = retries }
        var failure: GeneratedContent.ParsingError?
        for _ in 0...max(0, attempts) {
            try Task.checkCancellation()
            let sample: SampleType
            do { sample = try await generate(session(), request()) } catch let error as GeneratedContent.ParsingError {
                // Such as a sample that was not complete.
                failure = error
                continue
            }
            failure = nil
            let text = describe(sample)
            if samples.contains(where: { describe($0) == text }) { continue }
            if let validator, try await !validator(sample) {
                invalidSamples.append(sample)
                continue
            }
            // Another run may have added samples in the meantime.
            guard samples.count < targetCount else { return nil }
            if samples.contains(where: { describe($0) == text }) { continue }
            samples.append(sample)
            return sample
        }
        if let failure { throw failure }
        return nil
    }

    private func request() -> Prompt {
        let examples: [SampleType] =
            switch samplingStrategy {
            case nil: []
            case .random: Array(samples.prefix(seedCount).shuffled().prefix(Self.exampleCount))
            case .slidingWindow: samples.suffix(Self.exampleCount)
            }
        if examples.isEmpty { return prompt }
        let list = examples.map { "- \(describe($0))" }.joined(separator: "\n")
        return Prompt {
            prompt
            ModelPrompts.anotherSample(list)
        }
    }
}

extension Array where Element: ModelSampleProtocol, Element: Generable {
    /// Generates samples like these.
    public func makeSamples(
        _ prompt: Prompt, targetCount: Int, sessionProvider: (@Sendable () -> LanguageModelSession)? = nil,
        validator: (nonisolated(nonsending) @Sendable (Element) async throws -> Bool)? = nil
    ) -> some AsyncSequence<Element, any Error> {
        SampleGenerator<Element>(
            prompt, samples: self, targetCount: targetCount, sessionProvider: sessionProvider, validator: validator
        ).run()
    }
}

extension Array {
    /// Generates samples like these.
    public func makeSamples<T>(
        _ prompt: Prompt, targetCount: Int, sessionProvider: (@Sendable () -> LanguageModelSession)? = nil,
        validator: (nonisolated(nonsending) @Sendable (ModelSample<T>) async throws -> Bool)? = nil
    ) -> some AsyncSequence<ModelSample<T>, any Error>
    where Element == ModelSample<T>, T: Generable, T: Decodable, T: Encodable, T: Sendable {
        SampleGenerator<ModelSample<T>>(
            prompt, samples: self, targetCount: targetCount, sessionProvider: sessionProvider, validator: validator
        ).run()
    }
}
