internal import CKernels

/// The sizes on which the scheduler, proposals, the forward pass and its memory must agree. Those of calls of kernels are the constants
/// of C.
package enum EngineLimits {
    /// Tokens of a pass, unless a model needs more at once. The weights are read once for all of them, and with 256 rows that is a small
    /// part of the work already. With more, the activations would leave the processor's cache.
    package static let passTokens = 256

    /// The rows of one sequence in a pass that are still few, so that a pass takes hardly longer for them: a request with as many tokens
    /// need not wait for its turn, a proposal and the token before it are at most as many, and the logits of as many rows are computed in
    /// one product with the output matrix, into memory for one vocabulary each.
    static let fewRows = 16

    /// Sequences of a pass.
    static let sequences = Int(CK_MAX_SEGMENTS)

    /// Positions of a page of a KV cache, which kernels of attention process together.
    static let pagePositions = Int(CK_PAGE)

    /// The rank of an adapter beside the weights: a kernel has a value for each on its stack.
    static let adapterRank = Int(CK_MAX_RANK)
}
