internal import Inference

/// A turn that is ready to be generated, by a model of this machine or by another server.
protocol ServedTurn: Sendable {
    var request: TurnRequest { get }
    /// The tokens of the prompt; nil if only the other server knows them, afterwards.
    var promptTokens: Int? { get }
    var leftOutTurns: Int { get }
    var recalledTurns: Int { get }

    /// The prompt as the beginning of the answer.
    ///
    /// - Throws: ``RequestError``, or `CancellationError`.
    func echo() async throws -> TurnOutput

    /// Generates one answer.
    ///
    /// - Parameters:
    ///   - answer: its number, of several to the same request.
    ///   - emit: called in the caller's task; returns false if nobody wants the rest.
    /// - Throws: ``RequestError``, or `CancellationError`.
    func run(answer: Int, emit: (TurnOutput) -> Bool) async throws -> TurnFinish
}
