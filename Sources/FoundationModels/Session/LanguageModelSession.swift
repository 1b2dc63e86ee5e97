public import Observation
internal import Synchronization

/// A conversation with a model: it remembers what was said, and answers one request at a time.
///
/// ```swift
/// let session = LanguageModelSession(instructions: "Answer in one sentence.")
/// let answer = try await session.respond(to: "What is a monad?")
/// print(answer.content)
/// ```
public final class LanguageModelSession: Observable, @unchecked Sendable {  // All state is in `state`, a mutex.
    struct State {
        var transcript: Transcript
        var isResponding = false
        var usage = Usage.zero
        var turn: Turn?
    }

    let state: Mutex<State>
    private let registrar = ObservationRegistrar()

    @_disfavoredOverload
    public convenience init(model: SystemLanguageModel = .default, instructions: String? = nil) {
        self.init(model: model, instructions: instructions.map { Instructions($0) })
    }

    public convenience init(
        model: SystemLanguageModel = .default, @InstructionsBuilder instructions: () throws -> Instructions
    ) rethrows {
        self.init(model: model, instructions: try instructions())
    }

    public convenience init(model: SystemLanguageModel = .default, instructions: Instructions? = nil) {
        let entry = instructions.map {
            Transcript.Entry.instructions(Transcript.Instructions(segments: [.text(.init(content: $0.text))]))
        }
        self.init(transcript: Transcript(entries: entry.map { [$0] } ?? []))
    }

    /// Continues a conversation: the transcript begins with its instructions, if it has any.
    public convenience init(model: SystemLanguageModel = .default, transcript: Transcript) {
        self.init(transcript: transcript)
    }

    private init(transcript: Transcript) { state = Mutex(State(transcript: transcript)) }

    /// Everything said so far. Readable at any time, also after an error.
    public var transcript: Transcript {
        registrar.access(self, keyPath: \.transcript)
        return state.withLock { $0.transcript }
    }

    /// Whether a request is being answered.
    public var isResponding: Bool {
        registrar.access(self, keyPath: \.isResponding)
        return state.withLock { $0.isResponding }
    }

    /// What all requests of this session have cost.
    public var usage: Usage {
        registrar.access(self, keyPath: \.usage)
        return state.withLock { $0.usage }
    }

    /// Changes state and tells observers of everything that a request may change.
    func update<Result>(_ change: (inout State) throws -> Result) rethrows -> Result {
        try registrar.withMutation(of: self, keyPath: \.transcript) {
            try registrar.withMutation(of: self, keyPath: \.isResponding) {
                try registrar.withMutation(of: self, keyPath: \.usage) {
                    try state.withLock { state in try change(&state) }
                }
            }
        }
    }
}
