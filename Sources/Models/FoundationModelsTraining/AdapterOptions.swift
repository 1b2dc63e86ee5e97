/// How an adapter is trained. The defaults work for most tasks.
public struct AdapterOptions: Sendable, Codable, Equatable {
    /// Which matrices of each layer are trained.
    public enum Matrices: String, Sendable, Codable, CaseIterable {
        /// All of attention and of the feed-forward network: learns most.
        case all
        /// The projections of attention.
        case attention
        /// The feed-forward network.
        case feedForward = "feed-forward"
    }

    /// The rank of the adapter, 1 to 256.
    public var rank = 16
    /// The change of a matrix is multiplied by alpha / rank; nil for twice the rank.
    public var alpha: Double?
    /// The learning rate after the warm-up; nil for 5e-4 for models below 0.5 billion parameters, 2e-4 for larger ones.
    public var rate: Double?
    /// How often each row is learned; nil for at least 3, and more if the data is small.
    public var epochs: Int?
    /// The number of steps, instead of epochs.
    public var steps: Int?
    /// The number of learned tokens of a step; nil for a sixteenth of the data, at least eight rows, at most 2,000.
    public var stepTokens: Int?
    /// The longest row in tokens. Longer rows are left out.
    public var length = 1024
    /// The share of the steps in which the rate rises to its value. Then it falls to a tenth as a cosine.
    public var warmup = 0.05
    public var weightDecay = 0.0
    /// The maximum norm of the gradient of a step; larger ones are scaled down. 0 for none.
    public var clip = 1.0
    /// The share of the rows that the loss is measured with and that are not learned, chosen by a hash of the row.
    public var validationShare = 0.1
    /// Training ends after this many epochs in which the loss of these rows did not fall; the adapter with the smallest is kept. 0 for never.
    public var patience = 2
    /// How much the model's predictions for texts of other kinds, and for answers that are to be kept, count: the factor of the divergence
    /// from them in the loss. 0 for not, which saves a tenth of the time; more with answers.
    public var keep = 2.0
    public var seed: UInt64 = 1
    public var matrices = Matrices.all
    /// The number of last layers whose matrices are trained; nil for all. Nothing is computed backwards below them, and the adapter is
    /// smaller by as much.
    public var layers: Int?
    /// The maximum memory in bytes beyond the model's file; nil for 6 GB, or less if less is free.
    public var memory: Int?
    /// Whether products with quantised weights have operands of 8 bits, as inference has them, if there is memory for copies of the
    /// weights (SwitchBack, arXiv:2304.13013). Several times as fast; the factors and their gradients have 32 bits all the same.
    public var integers = true
    /// Whether products are computed with operands of 16 bits (bfloat16), where the processor has such products; sums always have 32.
    public var rounds = true

    /// Creates the default options.
    public init() {}

    func check() throws(TrainingError) {
        func require(_ condition: Bool, _ text: String) throws(TrainingError) { if !condition { throw .invalidOption(text) } }
        try require((1...256).contains(rank), "The rank must be from 1 to 256.")
        try require(alpha ?? 1 > 0 && (alpha ?? 1) <= 1e6, "Alpha must be greater than 0 and at most 1,000,000.")
        try require(rate ?? 1e-4 > 0 && rate ?? 1e-4 <= 1, "The learning rate must be greater than 0 and at most 1.")
        try require((1...100_000).contains(layers ?? 1), "The number of layers must be at least 1.")
        try require((1...10_000).contains(epochs ?? 1), "The number of epochs must be from 1 to 10,000.")
        try require((1...10_000_000).contains(steps ?? 1), "The number of steps must be from 1 to 10,000,000.")
        try require((1...100_000_000).contains(stepTokens ?? 1), "The number of tokens of a step must be from 1 to 100,000,000.")
        try require((8...65_536).contains(length), "The length must be from 8 to 65,536 tokens.")
        try require((0..<1).contains(warmup), "The share of the warm-up must be from 0 to less than 1.")
        try require((0...1).contains(weightDecay), "Weight decay must be from 0 to 1.")
        try require((0...1e9).contains(clip), "The maximum norm of a gradient must not be negative.")
        try require((0...1000).contains(keep), "The factor of the predictions that are kept must be from 0 to 1,000.")
        try require(patience >= 0, "The patience must not be negative.")
        try require((0...0.5).contains(validationShare), "The share of validation rows must be from 0 to 0.5.")
    }
}
