public import Foundation
public import FoundationModels

/// An input with its expected output.
public protocol SampleProtocol: Decodable, Encodable, Sendable {
    /// The input of the feature.
    associatedtype Input: CustomStringConvertible
    /// The output that the feature should have.
    associatedtype ExpectedValue
    /// The input.
    var input: Self.Input { get }
    /// The expected output; nil if there is no single one.
    var expected: Self.ExpectedValue? { get }
}

/// A sample that reports show by its own id, and count in a class. An addition of this package.
public protocol ReportedSample: SampleProtocol {
    /// The id, which no other sample of the data set has. Runs are compared by it.
    var id: String { get }
    /// What the sample belongs to, such as the topic of its prompt; nil for nothing.
    var `class`: String? { get }
}

/// A sample for a language model.
public protocol ModelSampleProtocol: SampleProtocol
where Self.ExpectedValue: Decodable, Self.ExpectedValue: Encodable, Self.ExpectedValue: Sendable {
    /// What is expected of the way to the output, such as tool calls.
    associatedtype Expectation: Decodable, Encodable, Sendable
    /// The prompt and instructions.
    var input: ModelSampleInput { get }
    /// The expected output.
    var output: ModelSampleOutput<Self.ExpectedValue, Self.Expectation> { get }
}

/// The input of a language model.
public struct ModelSampleInput: CustomStringConvertible, Sendable {
    /// The prompt.
    public var prompt: Prompt
    /// The text of the prompt.
    public var promptDescription: String { prompt.modelText }
    /// Instructions for the model.
    public var instructions: Instructions?
    /// The text of the instructions.
    public var instructionsDescription: String? { instructions?.modelText }
    /// The schema of the response; nil for text.
    public var generationSchema: GenerationSchema?
    public var description: String { promptDescription }

    /// Creates an input.
    public init(prompt: Prompt, instructions: Instructions? = nil, generationSchema: GenerationSchema? = nil) {
        self.prompt = prompt
        self.instructions = instructions
        self.generationSchema = generationSchema
    }
}

// Pictures are not encoded: a sample in a file consists of texts.
extension ModelSampleInput: Codable {
    private enum CodingKeys: CodingKey { case prompt, instructions, generationSchema }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(promptDescription, forKey: .prompt)
        try container.encodeIfPresent(instructionsDescription, forKey: .instructions)
        try container.encodeIfPresent(generationSchema, forKey: .generationSchema)
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            prompt: Prompt(try container.decode(String.self, forKey: .prompt)),
            instructions: try container.decodeIfPresent(String.self, forKey: .instructions).map { Instructions($0) },
            generationSchema: try container.decodeIfPresent(GenerationSchema.self, forKey: .generationSchema))
    }
}

/// The expected output of a language model.
public struct ModelSampleOutput<Value, Expectation>: Sendable, Codable
where Value: Decodable, Value: Encodable, Value: Sendable, Expectation: Decodable, Expectation: Encodable, Expectation: Sendable {
    /// The expected response.
    public var value: Value?
    /// What is expected of the way to it.
    public var expectations: Expectation?

    /// Creates an output.
    public init(value: Value? = nil, expectations: Expectation? = nil) {
        self.value = value
        self.expectations = expectations
    }
}

/// A prompt with the expected response and the expected tool calls.
public struct ModelSample<ExpectedValue>: ModelSampleProtocol
where ExpectedValue: Decodable, ExpectedValue: Encodable, ExpectedValue: Sendable {
    public typealias Expectation = TrajectoryExpectation
    public typealias Input = ModelSampleInput

    public var input: ModelSampleInput
    public var output: ModelSampleOutput<ExpectedValue, TrajectoryExpectation>
    public var expected: ExpectedValue? { output.value }

    /// Creates a sample.
    public init(input: ModelSampleInput, expected: ExpectedValue? = nil as String?, expectations: TrajectoryExpectation? = nil) {
        self.input = input
        output = ModelSampleOutput(value: expected, expectations: expectations)
    }

    /// Creates a sample from texts.
    public init(
        prompt: String, expected: ExpectedValue? = nil as String?, instructions: String? = nil,
        generationSchema: GenerationSchema? = nil, expectations: TrajectoryExpectation? = nil
    ) {
        self.init(
            input: ModelSampleInput(
                prompt: Prompt(prompt), instructions: instructions.map { Instructions($0) }, generationSchema: generationSchema),
            expected: expected, expectations: expectations)
    }

    /// Creates a sample.
    public init(
        prompt: Prompt, expected: ExpectedValue? = nil as String?, instructions: Instructions? = nil,
        generationSchema: GenerationSchema? = nil, expectations: TrajectoryExpectation? = nil
    ) {
        self.init(
            input: ModelSampleInput(prompt: prompt, instructions: instructions, generationSchema: generationSchema),
            expected: expected, expectations: expectations)
    }

    /// The prompt.
    public var prompt: Prompt { input.prompt }
    /// The text of the prompt.
    public var promptDescription: String { input.promptDescription }
    /// Instructions for the model.
    public var instructions: Instructions? { input.instructions }
    /// The text of the instructions.
    public var instructionsDescription: String? { input.instructionsDescription }
    /// The schema of the response; nil for text.
    public var generationSchema: GenerationSchema? { input.generationSchema }
    /// The expected tool calls.
    public var expectations: TrajectoryExpectation? { output.expectations }
}

/// One object with `prompt`, `instructions`, `generationSchema`, `expected` and `expectations`.
extension ModelSample: Codable {
    private enum CodingKeys: CodingKey { case prompt, expected, expectations }

    public func encode(to encoder: any Encoder) throws {
        try input.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(expected, forKey: .expected)
        try container.encodeIfPresent(expectations, forKey: .expectations)
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        input = try ModelSampleInput(from: decoder)
        output = ModelSampleOutput(
            value: try container.decodeIfPresent(ExpectedValue.self, forKey: .expected),
            expectations: try container.decodeIfPresent(TrajectoryExpectation.self, forKey: .expectations))
    }
}

// MARK: - Loaders

/// A source of samples.
public protocol Loader<Sample>: Sendable {
    /// The type of the samples.
    associatedtype Sample: SampleProtocol
    /// The samples, in order.
    var stream: any AsyncSequence<Self.Sample, any Error> { get }
}

/// Samples of an array.
public struct ArrayLoader<Sample>: Loader where Sample: SampleProtocol {
    private let samples: [Sample]

    /// Creates a loader.
    public init(samples: [Sample]) { self.samples = samples }

    public var stream: any AsyncSequence<Sample, any Error> {
        AsyncThrowingStream { continuation in
            for sample in samples { continuation.yield(sample) }
            continuation.finish()
        }
    }
}

/// Samples of a file: a JSON array, or JSON Lines. Elements and lines that are not samples are skipped.
public struct JSONLoader<Sample>: Loader where Sample: SampleProtocol {
    private let url: URL

    /// An element of an array, which may be something else.
    private struct Element: Decodable {
        let value: Sample?
        // What is not a sample is skipped, like lines.
        init(from decoder: any Decoder) throws { value = try? Sample(from: decoder) }
    }

    /// Creates a loader. The file is read when the samples are.
    public init(url: URL) { self.url = url }

    public var stream: any AsyncSequence<Sample, any Error> {
        AsyncThrowingStream { continuation in
            do {
                var data = try Data(contentsOf: url)
                // Some editors begin files with a byte order mark.
                if data.starts(with: [0xEF, 0xBB, 0xBF]) { data = Data(data.dropFirst(3)) }
                let decoder = JSONDecoder()
                if data.first(where: { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }) == UInt8(ascii: "[") {
                    for sample in try decoder.decode([Element].self, from: data) {
                        sample.value.map { _ = continuation.yield($0) }
                    }
                } else {
                    for line in data.split(separator: UInt8(ascii: "\n")) {
                        // Lines that are not samples are skipped, as Apple's loader does.
                        if let sample = try? decoder.decode(Sample.self, from: Data(line)) { continuation.yield(sample) }
                    }
                }
                continuation.finish()
            } catch {
                continuation.finish(throwing: error)
            }
        }
    }
}

/// Samples of an asynchronous sequence.
public struct StreamLoader<Sample>: Loader where Sample: SampleProtocol {
    private let source: any AsyncSequence<Sample, any Error> & Sendable

    /// Creates a loader.
    public init(stream: some AsyncSequence<Sample, any Error> & Sendable) { source = stream }

    public var stream: any AsyncSequence<Sample, any Error> { source }
}
