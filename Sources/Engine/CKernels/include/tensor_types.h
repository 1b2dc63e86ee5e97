// The tensor types of GGUF, and the layouts that matrices are packed into: two tables. Whatever lists types or layouts is generated from
// them, in C and in Swift. Documentation/Adding.md names the places of a new type.
#ifndef TENSOR_TYPES_H
#define TENSOR_TYPES_H

// A switch over an enumeration names all of its values and has no `default`: the compiler finds what a new value is missing from.
#pragma clang diagnostic error "-Wswitch"
#pragma clang diagnostic error "-Wswitch-enum"
#pragma clang diagnostic error "-Wcovered-switch-default"

/// The tensor types: TYPE(name, number, elements, bytes, layout, reads, writes).
///
/// - `number`, `elements`, `bytes`: the type's number in the file, and the elements and bytes of a block.
/// - `layout`: what matrices are packed into.
/// - `reads`: how quants.c decodes the type. NUMBERS: `decode_NAME` decodes any number of elements; BLOCKS: a block; GROUPS: `read_NAME`
///   reads 32 elements as codes and scales. The integer layouts are packed from GROUPS.
/// - `writes`: how quantize.c encodes the type. NUMBERS: `encode_NAME` rounds any number of elements; BLOCKS: `write_NAME` encodes a block
///   with weights for the errors of its elements; SYMMETRIC: the same, for blocks without an offset, where large elements have other
///   weights; NOTHING: it cannot.
#define CK_TYPES(TYPE)                                                \
    TYPE(F32,      0,   1,   4, CK_F32,           NUMBERS, NUMBERS)   \
    TYPE(F16,      1,   1,   2, CK_F16,           NUMBERS, NUMBERS)   \
    TYPE(Q4_0,     2,  32,  18, CK_LAYOUT_Q4_0,   GROUPS,  BLOCKS)    \
    TYPE(Q4_1,     3,  32,  20, CK_LAYOUT_Q4_1,   GROUPS,  BLOCKS)    \
    TYPE(Q5_0,     6,  32,  22, CK_LAYOUT_Q5_0,   GROUPS,  BLOCKS)    \
    TYPE(Q5_1,     7,  32,  24, CK_LAYOUT_Q5_1,   GROUPS,  BLOCKS)    \
    TYPE(Q8_0,     8,  32,  34, CK_LAYOUT_Q8_0,   GROUPS,  NUMBERS)   \
    TYPE(Q2_K,    10, 256,  84, CK_LAYOUT_Q2_K,   GROUPS,  BLOCKS)    \
    TYPE(Q3_K,    11, 256, 110, CK_LAYOUT_Q3_K,   GROUPS,  SYMMETRIC) \
    TYPE(Q4_K,    12, 256, 144, CK_LAYOUT_Q4_K,   GROUPS,  BLOCKS)    \
    TYPE(Q5_K,    13, 256, 176, CK_LAYOUT_Q5_K,   GROUPS,  BLOCKS)    \
    TYPE(Q6_K,    14, 256, 210, CK_LAYOUT_Q6_K,   GROUPS,  SYMMETRIC) \
    TYPE(IQ2_XXS, 16, 256,  66, CK_ROWS,          BLOCKS,  BLOCKS)    \
    TYPE(IQ2_XS,  17, 256,  74, CK_ROWS,          BLOCKS,  BLOCKS)    \
    TYPE(IQ3_XXS, 18, 256,  98, CK_ROWS,          BLOCKS,  BLOCKS)    \
    TYPE(IQ1_S,   19, 256,  50, CK_ROWS,          BLOCKS,  NOTHING)   \
    TYPE(IQ4_NL,  20,  32,  18, CK_LAYOUT_IQ4_NL, GROUPS,  BLOCKS)    \
    TYPE(IQ3_S,   21, 256, 110, CK_ROWS,          BLOCKS,  BLOCKS)    \
    TYPE(IQ2_S,   22, 256,  82, CK_ROWS,          BLOCKS,  BLOCKS)    \
    TYPE(IQ4_XS,  23, 256, 136, CK_LAYOUT_IQ4_XS, GROUPS,  BLOCKS)    \
    TYPE(IQ1_M,   29, 256,  56, CK_ROWS,          BLOCKS,  NOTHING)   \
    TYPE(BF16,    30,   1,   2, CK_BF16,          NUMBERS, NUMBERS)   \
    TYPE(TQ1_0,   34, 256,  54, CK_ROWS,          BLOCKS,  NOTHING)   \
    TYPE(TQ2_0,   35, 256,  66, CK_ROWS,          BLOCKS,  NOTHING)   \
    TYPE(MXFP4,   39,  32,  17, CK_LAYOUT_MXFP4,  GROUPS,  BLOCKS)    \
    TYPE(NVFP4,   40,  64,  36, CK_ROWS,          BLOCKS,  NOTHING)   \
    TYPE(Q1_0,    41, 128,  18, CK_ROWS,          BLOCKS,  NOTHING)   \
    TYPE(Q2_0,    42,  64,  18, CK_ROWS,          BLOCKS,  NOTHING)

/// The integer layouts: LAYOUT(name, bits, values, offset, scales, sums).
///
/// A layout stores unsigned codes; a weight is `scale·(value − offset) + minimum`. A block is 16 rows by 32 or 256 columns, as in the file:
/// codes in groups of 32 columns, then what `scales` says. A group of 4-bit codes is `[step][16 rows][4 columns]`; low nibbles are columns
/// 0–15, high nibbles 16–31. Bits above the fourth follow as bit planes in the same order. Each layout is at most 4 % larger than the
/// tensor in the file.
///
/// - `bits`: the bits of a code: 2, 3, 4, 5, 6 or 8.
/// - `values`: what codes stand for: themselves (CODES) or the values of a table below (IQ4, FP4).
/// - `offset`: the logarithm of the offset of the values, or −1 for none.
/// - `scales`: where scales and minima are: a line of `CK_SCALES`.
/// - `sums`: whether products may add integers over 256 columns (BLOCKS, see blocks512.h) or only over the columns of a scale (GROUPS).
#define CK_LAYOUTS(LAYOUT)                                   \
    LAYOUT(Q4_0,   4, CODES,  3, FACTOR,             GROUPS) \
    LAYOUT(Q4_1,   4, CODES, -1, FACTOR_AND_MINIMUM, GROUPS) \
    LAYOUT(Q5_0,   5, CODES,  4, FACTOR,             GROUPS) \
    LAYOUT(Q5_1,   5, CODES, -1, FACTOR_AND_MINIMUM, GROUPS) \
    LAYOUT(Q8_0,   8, CODES,  7, FACTOR,             GROUPS) \
    LAYOUT(Q2_K,   2, CODES, -1, NIBBLES,            GROUPS) \
    LAYOUT(Q3_K,   3, CODES,  2, HALVES,             GROUPS) \
    LAYOUT(Q4_K,   4, CODES, -1, PAIRS_AND_MINIMA,   BLOCKS) \
    LAYOUT(Q5_K,   5, CODES, -1, PAIRS_AND_MINIMA,   GROUPS) \
    LAYOUT(Q6_K,   6, CODES,  5, PAIRS_OF_HALVES,    BLOCKS) \
    LAYOUT(IQ4_NL, 4, IQ4,    7, FACTOR,             GROUPS) \
    LAYOUT(IQ4_XS, 4, IQ4,    7, BYTES,              GROUPS) \
    LAYOUT(MXFP4,  4, FP4,    4, EXPONENT,           GROUPS)

/// The tables of values: VALUE(value) for each code. Those of FP4 (E2M1) are doubled.
#define CK_IQ4_VALUES(VALUE)                                                                                                      \
    VALUE(-127) VALUE(-104) VALUE(-83) VALUE(-65) VALUE(-49) VALUE(-35) VALUE(-22) VALUE(-10) VALUE(1) VALUE(13) VALUE(25)        \
    VALUE(38) VALUE(53) VALUE(69) VALUE(89) VALUE(113)
#define CK_FP4_VALUES(VALUE)                                                                                                      \
    VALUE(0) VALUE(1) VALUE(2) VALUE(3) VALUE(4) VALUE(6) VALUE(8) VALUE(12) VALUE(0) VALUE(-1) VALUE(-2) VALUE(-3) VALUE(-4)     \
    VALUE(-6) VALUE(-8) VALUE(-12)

/// What follows the codes of a block: SCALES(name, columns, parts, has_minimum, bytes). `columns` are those of a block, `parts` the number
/// of scales for 32 columns of a row.
///
/// - FACTOR: binary16 `[16 rows]`. FACTOR_AND_MINIMUM: both, one after the other. EXPONENT: a power of two, the byte of MXFP4.
/// - All others: 8-bit scales, then their factor as binary16 `[16 rows]`, and that of the minima if there are any.
///   BYTES: `[group][16 rows]`. HALVES: `[group][half][16 rows]`. NIBBLES: the same, with the minimum in the high nibble.
///   PAIRS_OF_HALVES: `[half][pair of groups][16 rows][2 groups]`. PAIRS_AND_MINIMA: scales and minima as
///   `[pair of groups][16 rows][2 groups]`.
#define CK_SCALES(SCALES)                               \
    SCALES(FACTOR,              32, 1, false, 32)       \
    SCALES(FACTOR_AND_MINIMUM,  32, 1, true,  64)       \
    SCALES(EXPONENT,            32, 1, false, 16)       \
    SCALES(BYTES,              256, 1, false, 128 + 32) \
    SCALES(HALVES,             256, 2, false, 256 + 32) \
    SCALES(NIBBLES,            256, 2, true,  256 + 64) \
    SCALES(PAIRS_OF_HALVES,    256, 2, false, 256 + 32) \
    SCALES(PAIRS_AND_MINIMA,   256, 1, true,  256 + 64)

/// The version of files with packed weights (`PackedCache`): increase it when a layout that exists changes, which a test of `KernelTests`
/// notices, and when the order of the tensors or the header changes.
enum { CK_PACKED_VERSION = 7 };

/// The tensor types, by their number in the file.
#define CK_TYPE(name, number, elements, bytes, layout, reads, writes) CK_TYPE_##name = number,
typedef enum { CK_TYPES(CK_TYPE) } ck_type;
#undef CK_TYPE

/// How a matrix stores its weights: an integer layout, or one of the following.
#define CK_LAYOUT(name, bits, values, offset, scales, sums) CK_LAYOUT_##name,
typedef enum {
    CK_LAYOUTS(CK_LAYOUT)
    CK_F16,   ///< binary16 as `[column][16 rows]`
    CK_BF16,  ///< bfloat16 as `[column][16 rows]`
    CK_F32,   ///< binary32 as `[column][16 rows]`
    CK_ROWS,  ///< rows as in the file, decoded to binary32 when they are used; for types without kernels of their own, and for
              ///< tables, of which only single rows are read
} ck_layout;
#undef CK_LAYOUT

#endif
