internal import Inference

/// What quantisation knows of a type, besides the table of `CKernels`.
private struct TypeChoice {
    /// The type for rows that are no whole blocks of this one, as llama.cpp's.
    var smallerBlocks: TensorType?
    /// Whether it has so few bits that llama.cpp requires the importance of the columns.
    var needsImportance = false
    /// Whether a mixture that is made for a size has it (``MixtureSearch``).
    var isStep = false

    static let all: [TensorType: TypeChoice] = [
        .q2_K: .init(smallerBlocks: .q4_0, isStep: true),
        .q3_K: .init(smallerBlocks: .q4_0, isStep: true),
        .q4_K: .init(smallerBlocks: .q5_0, isStep: true),
        .q5_K: .init(smallerBlocks: .q5_1, isStep: true),
        .q6_K: .init(smallerBlocks: .q8_0, isStep: true),
        .q8_0: .init(isStep: true),
        .iq4_XS: .init(smallerBlocks: .iq4_NL),
        .iq3_S: .init(smallerBlocks: .iq4_NL),
        .iq3_XXS: .init(smallerBlocks: .iq4_NL, needsImportance: true),
        .iq2_S: .init(smallerBlocks: .iq4_NL, needsImportance: true),
        .iq2_XS: .init(smallerBlocks: .iq4_NL, needsImportance: true),
        .iq2_XXS: .init(smallerBlocks: .iq4_NL, needsImportance: true),
    ]
}

extension TensorType {
    var smallerBlocks: TensorType? { TypeChoice.all[self]?.smallerBlocks }
    var needsImportance: Bool { TypeChoice.all[self]?.needsImportance ?? false }
    var isStep: Bool { TypeChoice.all[self]?.isStep ?? false }
    /// Bits for each weight, times 256: the order of the types.
    var rank: Int { 8 * 256 * blockBytes / blockElements }
}
