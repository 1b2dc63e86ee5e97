// Properties of the integer layouts, from the table in tensor_types.h, and access to single codes and scales. Shared by packing, the
// reference kernels and the vectorised kernels. Where speed matters, the functions are called with a constant layout.
#ifndef FORMATS_H
#define FORMATS_H

#include "ckernels.h"

#define INLINE static inline __attribute__((always_inline))

typedef enum { VALUES_CODES, VALUES_IQ4, VALUES_FP4 } layout_values;

#define CK_SCALES_NAME(name, columns, parts, has_minimum, bytes) SCALES_##name,
typedef enum { CK_SCALES(CK_SCALES_NAME) } layout_scales;
#undef CK_SCALES_NAME

#define CK_SCALES_FACTS(name, columns, parts, has_minimum, bytes) {columns, parts, has_minimum, bytes},
static const struct {
    int columns, parts;
    bool has_minimum;
    size_t bytes;
} scales_facts[] = {CK_SCALES(CK_SCALES_FACTS)};
#undef CK_SCALES_FACTS

enum { SUMS_GROUPS, SUMS_BLOCKS };
#define CK_LAYOUT_FACTS(name, bits, values, offset, scales, sums) {bits, VALUES_##values, offset, SCALES_##scales, SUMS_##sums},
static const struct {
    int bits;
    layout_values values;
    int offset_shift;
    layout_scales scales;
    bool sums_blocks;
} layout_facts[] = {CK_LAYOUTS(CK_LAYOUT_FACTS)};
#undef CK_LAYOUT_FACTS

/// What the kernels can read: the widths of codes, and for sums of blocks the scales and the offset.
#define CK_CHECK(name, bits, values, offset, scales, sums)                                                                        \
    _Static_assert(bits == 8 || (bits >= 2 && bits <= 6), #name " has codes of a width that layout_code does not read");          \
    _Static_assert(SUMS_##sums == SUMS_GROUPS || (SCALES_##scales == SCALES_PAIRS_AND_MINIMA && offset < 0) ||                    \
                       (SCALES_##scales == SCALES_PAIRS_OF_HALVES && offset == 5),                                                \
                   #name " has scales or an offset that blocks512.h does not read");
CK_LAYOUTS(CK_CHECK)
#undef CK_CHECK

/// For switches: one `case` for each integer layout, and those of the others.
#define CK_CASE(name, ...) case CK_LAYOUT_##name:
#define CK_FLOAT_CASES case CK_F16: case CK_BF16: case CK_F32: case CK_ROWS:

INLINE bool layout_is_integer(ck_layout layout) { return layout < CK_F16; }

/// Columns of one block.
INLINE int layout_columns(ck_layout layout) { return scales_facts[layout_facts[layout].scales].columns; }

/// Bits of one code in memory.
INLINE int layout_bits(ck_layout layout) { return layout_facts[layout].bits; }

/// Bytes of the codes of 32 columns of 16 rows.
INLINE size_t layout_group_bytes(ck_layout layout) { return (size_t)layout_bits(layout) * 64; }

/// Number of scales for every 32 columns of a row.
INLINE int layout_parts(ck_layout layout) { return scales_facts[layout_facts[layout].scales].parts; }

INLINE bool layout_has_minimum(ck_layout layout) { return scales_facts[layout_facts[layout].scales].has_minimum; }

/// Codes are looked up in a table.
INLINE bool layout_has_table(ck_layout layout) { return layout_facts[layout].values != VALUES_CODES; }

/// log2 of the offset of the codes (of the table's values), or -1 for none.
INLINE int layout_offset_shift(ck_layout layout) { return layout_facts[layout].offset_shift; }

INLINE int layout_offset(ck_layout layout) { return layout_offset_shift(layout) < 0 ? 0 : 1 << layout_offset_shift(layout); }

/// Whether products can add integers over 256 columns.
INLINE bool layout_sums_blocks(ck_layout layout) { return layout_facts[layout].sums_blocks; }

INLINE size_t layout_block_bytes(ck_layout layout) {
    return layout_group_bytes(layout) * (size_t)(layout_columns(layout) / 32) + scales_facts[layout_facts[layout].scales].bytes;
}

/// IQ4_NL's values plus 128; MXFP4's values plus 16.
#define CK_PLUS_128(value) (value) + 128,
#define CK_PLUS_16(value) (value) + 16,
static const uint8_t table_iq4_plus_128[16] = {CK_IQ4_VALUES(CK_PLUS_128)}, table_fp4_plus_16[16] = {CK_FP4_VALUES(CK_PLUS_16)};
#undef CK_PLUS_128
#undef CK_PLUS_16

INLINE const uint8_t *layout_table(ck_layout layout) {
    switch (layout_facts[layout].values) {
        case VALUES_CODES: return NULL;
        case VALUES_IQ4: return table_iq4_plus_128;
        case VALUES_FP4: return table_fp4_plus_16;
    }
}

/// The largest code (or table's value).
INLINE int layout_largest(ck_layout layout) {
    switch (layout_facts[layout].values) {
        case VALUES_CODES: return (1 << layout_bits(layout)) - 1;
        case VALUES_IQ4: return 113 + 128;
        case VALUES_FP4: return 12 + 16;
    }
}

/// The code (or the table's value) at a row and column of a group.
INLINE int layout_code(ck_layout layout, const uint8_t *group, int row, int column) {
    int step = column / 4, lane = row * 4 + column % 4, bits = layout_bits(layout);
    if (bits == 8) return group[step * 64 + lane];
    if (bits < 4) {
        int code = group[step / 4 * 64 + lane] >> (2 * (step % 4)) & 3;
        return bits == 3 ? code | (group[128 + lane] >> step & 1) << 2 : code;
    }
    int code = group[step % 4 * 64 + lane] >> (step / 4 * 4) & 0xF;
    if (bits == 5) code |= (group[256 + lane] >> step & 1) << 4;
    if (bits == 6) code |= (group[256 + step / 4 * 64 + lane] >> (2 * (step % 4)) & 3) << 4;
    return layout_has_table(layout) ? layout_table(layout)[code] : code;
}

INLINE float layout_half(const uint8_t *at, int row) {
    uint16_t half;
    __builtin_memcpy(&half, at + 2 * row, 2);
    return ck_half_to_float(half);
}

/// The place of an 8-bit scale in the layouts whose scales are used as pairs of groups: `[pair][16 rows][2 groups]`.
INLINE int pair_place(int group, int row) { return group / 2 * 32 + 2 * row + group % 2; }

/// The scale and minimum of a row for one part of a group.
INLINE void layout_scale(ck_layout layout, const uint8_t *block, int group, int part, int row, float *scale, float *minimum) {
    const uint8_t *scales = block + layout_group_bytes(layout) * (size_t)(layout_columns(layout) / 32);
    *minimum = 0;
    switch (layout_facts[layout].scales) {
        case SCALES_FACTOR: *scale = layout_half(scales, row); return;
        case SCALES_FACTOR_AND_MINIMUM:
            *scale = layout_half(scales, row);
            *minimum = layout_half(scales + 32, row);
            return;
        case SCALES_EXPONENT: {
            uint32_t bits = (uint32_t)scales[row] << 23;  // 2^(e − 127), halved because the table contains doubled values
            __builtin_memcpy(scale, &bits, 4);
            *scale *= 0.5f;
            return;
        }
        case SCALES_BYTES:
            *scale = layout_half(scales + 128, row) * (float)(int8_t)scales[16 * group + row];
            return;
        case SCALES_HALVES:
            *scale = layout_half(scales + 256, row) * (float)(int8_t)scales[32 * group + 16 * part + row];
            return;
        case SCALES_NIBBLES:
            *scale = layout_half(scales + 256, row) * (float)(scales[32 * group + 16 * part + row] & 0xF);
            *minimum = -layout_half(scales + 288, row) * (float)(scales[32 * group + 16 * part + row] >> 4);
            return;
        case SCALES_PAIRS_OF_HALVES:
            *scale = layout_half(scales + 256, row) * (float)(int8_t)scales[128 * part + pair_place(group, row)];
            return;
        case SCALES_PAIRS_AND_MINIMA:
            *scale = layout_half(scales + 256, row) * (float)scales[pair_place(group, row)];
            *minimum = -layout_half(scales + 288, row) * (float)scales[128 + pair_place(group, row)];
            return;
    }
}

#endif
