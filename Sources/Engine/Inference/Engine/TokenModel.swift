/// A model as the engine uses it: sequences that it keeps in memory, passes over the next tokens of some of them, and the logits after
/// rows of the last pass. Engine, turns and pool know nothing else of how a model computes; ``NeuralModel`` computes on the processor.
///
/// Not thread-safe: one call at a time. Only ``limits`` and ``makeMemory(capacity:format:adapter:)`` may be used on any thread.
protocol TokenModel: AnyObject {
    /// The sizes of the model, which never change.
    var limits: TokenModelLimits { get }

    /// Makes the memory of an empty sequence.
    ///
    /// - Parameter capacity: the least maximum number of tokens.
    /// - Throws: ``ModelError/outOfMemory(bytes:)``
    func makeMemory(
        capacity: Int, format: CacheFormat, adapter: LowRankAdapter?
    ) throws(ModelError) -> any SequenceMemory

    /// Appends tokens to several sequences, in one pass.
    ///
    /// - Parameters:
    ///   - tokens: the tokens of all parts, at most ``TokenModelLimits/passTokens``. Their places are the rows of the pass.
    ///   - parts: the sequences, each one once, in the order of `tokens`. Their memory is of this model and has been reserved: see
    ///     ``SequenceMemory/reserve(_:in:withCheckpoint:)``.
    ///   - states: rows whose residual stream after a layer is copied.
    ///   - isCancelled: called several times; if it returns true, the call throws `CancellationError`, and no token is appended (with
    ///     recurrent layers, sequences are rewound to their last checkpoint).
    func forward(
        _ tokens: UnsafeBufferPointer<TokenID>, parts: [PassPart], states: inout [RowState], isCancelled: () -> Bool
    ) throws(CancellationError)

    /// Computes the logits after some rows of the last pass.
    ///
    /// - Parameters:
    ///   - rows: at most ``TokenModelLimits/logitRows``.
    ///   - candidates: the tokens whose logits are computed, in ascending order; all others are meaningless. Nil for all tokens.
    func computeLogits(ofRows rows: ArraySlice<Int>, candidates: [TokenID]?)

    /// The residual stream of the rows of the last pass after the last layer, `[rows][width]`, from a row on; nil if the model does not
    /// show it. Valid until the next pass.
    func hiddenRows(from row: Int) -> UnsafePointer<Float>?

    /// The logits of one of the rows of the last call, `[vocabulary]`; valid until the next one, and may be overwritten.
    func logits(_ index: Int) -> HostLogits
}

extension TokenModel {
    func hiddenRows(from row: Int) -> UnsafePointer<Float>? { nil }
}

/// The tokens of a sequence in a pass.
struct PassPart {
    let cache: any SequenceMemory
    /// The number of tokens.
    let count: Int
    /// The input that the sequence begins with, if it has vectors in the place of tokens, or rows that see each other. A pass has all of
    /// such rows, or none.
    let input: ModelInput?

    init(_ cache: any SequenceMemory, _ count: Int, of input: ModelInput? = nil) {
        (self.cache, self.count, self.input) = (cache, count, input)
    }
}

/// The sizes of a model.
struct TokenModelLimits: Sendable {
    /// Tokens of a pass.
    var passTokens: Int
    /// Sequences of a pass.
    var sequences: Int
    /// Rows whose logits are computed in one call.
    var logitRows: Int
    /// Tokens that have logits.
    var vocabularySize: Int
    /// Positions that the model was trained for.
    var contextLength: Int
    /// The numbers of a vector in the place of a token's embedding; 0 if the model takes none.
    var width = 0
}

/// The residual stream of a row after a layer.
struct RowState {
    /// The index of the layer.
    let layer: Int
    /// The row of the pass.
    let row: Int
    /// `[width]`; empty until the pass has computed it.
    var values: [Float] = []
}

/// What a model keeps of one sequence: its tokens, and what it has computed of them. Sequences with equal beginnings share pages of memory.
///
/// Not thread-safe: used by one thread at a time, on the engine's executor.
protocol SequenceMemory: AnyObject {
    /// What has been processed, in order.
    var rows: InputRows { get }
    /// The maximum number of tokens.
    var capacity: Int { get }
    var format: CacheFormat { get }
    /// The adapter that the sequence is processed with; nil for the weights alone.
    var adapter: LowRankAdapter? { get }
    /// Whether tokens can be removed only back to a checkpoint, because the model has recurrent layers.
    var isRecurrent: Bool { get }
    /// The number under which the memory of the pool knows it; nil if it does not.
    var registration: Int? { get set }
    /// Memories copy prefixes only from those of the same domain: what one client has computed shows in no time that another one measures.
    var domain: UInt64 { get set }

    // MARK: Tokens

    /// The number of leading rows of `other`, at most `limit`, that need not be processed again.
    func reusablePrefix(of other: InputRows, limit: Int) -> Int
    /// Removes the tokens from `length` on; with recurrent layers, those after the last checkpoint at or before `length`. Rows that see
    /// each other are removed together.
    ///
    /// - Returns: the number of remaining tokens.
    @discardableResult func rewind(to length: Int) -> Int
    /// Makes it possible to rewind to the current position. Does nothing without recurrent layers.
    func addCheckpoint()
    /// Whether what is known of equal tokens in the other memory is equal.
    func isCompatible(with other: any SequenceMemory) -> Bool
    /// Replaces the contents by the first `count` tokens of a compatible memory, or fewer if the capacity or the checkpoints of the other one
    /// do not allow as many. The two share their pages, and each continues as if it were alone.
    ///
    /// - Parameter room: the bytes that ``bytesToCopy(_:)`` says; nil if nobody counts them.
    func copyPrefix(of other: any SequenceMemory, count: Int, in room: MemoryReservation?) throws(ModelError)

    // MARK: Pages

    /// The bytes that ``reserve(_:in:withCheckpoint:)`` needs for the next `count` tokens.
    func bytesToReserve(_ count: Int, withCheckpoint: Bool) -> Int
    /// Makes room for the next `count` tokens.
    ///
    /// - Parameters:
    ///   - room: the bytes that ``bytesToReserve(_:withCheckpoint:)`` says; nil if nobody counts them.
    ///   - withCheckpoint: whether ``addCheckpoint()`` follows.
    /// - Throws: ``GenerationFailure/promptTooLong(tokens:contextSize:)`` if they exceed the capacity, or
    ///   ``ModelError/outOfMemory(bytes:)``.
    func reserve(_ count: Int, in room: MemoryReservation?, withCheckpoint: Bool) throws
    /// The bytes that ``copyPrefix(of:count:in:)`` needs at most.
    func bytesToCopy(_ count: Int) -> Int
    /// Whether nothing is in memory, not even of tokens that were removed.
    var isEmpty: Bool { get }
    /// Removes all tokens without freeing anything.
    ///
    /// - Returns: what was in memory, which is freed with this value.
    func takeContents() -> Any

    // MARK: Contents, for files

    /// The sizes that determine what ``forEachPart(_:)`` visits.
    var layout: SequenceLayout { get }
    /// The positions of the checkpoints, in ascending order.
    var checkpointPositions: [Int] { get }
    /// Replaces the contents by rows whose parts the caller fills next.
    ///
    /// - Parameter reserve: receives the bytes of their memory; nil if nobody counts them.
    func begin(_ rows: InputRows, checkpoints: [Int], reserve: (Int) throws -> MemoryReservation?) throws
    /// Calls `body` with the memory of all tokens, in parts and in a fixed order.
    func forEachPart(_ body: (UnsafeMutableRawBufferPointer) throws -> Void) rethrows
}

extension SequenceMemory {
    /// The token of each row.
    var tokens: [TokenID] { rows.ids }

    func reusablePrefix(of other: InputRows) -> Int { reusablePrefix(of: other, limit: .max) }

    /// Copies and reserves without counting.
    func copyPrefix(of other: any SequenceMemory, count: Int) throws(ModelError) {
        try copyPrefix(of: other, count: count, in: nil)
    }
    func reserve(_ count: Int) throws { try reserve(count, in: nil, withCheckpoint: false) }

    func isOf(_ format: CacheFormat, _ adapter: LowRankAdapter?) -> Bool {
        self.format == format && self.adapter?.identity == adapter?.identity
    }
}

/// The sizes of a sequence's memory, by which a file shows that it fits.
struct SequenceLayout: Equatable {
    var pageBytes: Int
    /// Of the recurrent states.
    var stateBytes: Int
    /// Of one element of keys and values.
    var elementBits: Int
    /// Whether positions are rotated with the factors for long contexts.
    var usesLongFactors: Bool

    /// As files contain it.
    var words: [Int] { [pageBytes, stateBytes, elementBits, usesLongFactors ? 1 : 0] }
}
