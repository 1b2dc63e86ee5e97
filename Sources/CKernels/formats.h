// Properties of the integer layouts, and access to single codes and scales. Shared by packing, the reference kernels
// and the vectorised kernels. Where speed matters, the functions are called with a constant layout.
#ifndef FORMATS_H
#define FORMATS_H

#include "ckernels.h"

#define INLINE static inline __attribute__((always_inline))

INLINE bool layout_is_integer(ck_layout layout) { return layout < CK_F16; }

/// Columns of one block.
INLINE int layout_columns(ck_layout layout) {
    return (layout >= CK_LAYOUT_Q2_K && layout <= CK_LAYOUT_Q6_K) || layout == CK_LAYOUT_IQ4_XS ? 256 : 32;
}

/// Bits of one code in memory.
INLINE int layout_bits(ck_layout layout) {
    switch (layout) {
        case CK_LAYOUT_Q2_K: return 2;
        case CK_LAYOUT_Q3_K: return 3;
        case CK_LAYOUT_Q5_0: case CK_LAYOUT_Q5_1: case CK_LAYOUT_Q5_K: return 5;
        case CK_LAYOUT_Q6_K: return 6;
        case CK_LAYOUT_Q8_0: return 8;
        default: return 4;
    }
}

/// Bytes of the codes of 32 columns of 16 rows.
INLINE size_t layout_group_bytes(ck_layout layout) { return (size_t)layout_bits(layout) * 64; }

/// Number of scales for every 32 columns of a row.
INLINE int layout_parts(ck_layout layout) {
    return layout == CK_LAYOUT_Q2_K || layout == CK_LAYOUT_Q3_K || layout == CK_LAYOUT_Q6_K ? 2 : 1;
}

INLINE bool layout_has_minimum(ck_layout layout) {
    return layout == CK_LAYOUT_Q4_1 || layout == CK_LAYOUT_Q5_1 || layout == CK_LAYOUT_Q2_K || layout == CK_LAYOUT_Q4_K ||
           layout == CK_LAYOUT_Q5_K;
}

/// Codes are looked up in a table.
INLINE bool layout_has_table(ck_layout layout) {
    return layout == CK_LAYOUT_IQ4_NL || layout == CK_LAYOUT_IQ4_XS || layout == CK_LAYOUT_MXFP4;
}

/// log2 of the offset of the codes (of the table's values), or -1 for none.
INLINE int layout_offset_shift(ck_layout layout) {
    switch (layout) {
        case CK_LAYOUT_Q3_K: return 2;
        case CK_LAYOUT_Q4_0: return 3;
        case CK_LAYOUT_Q5_0: case CK_LAYOUT_MXFP4: return 4;
        case CK_LAYOUT_Q6_K: return 5;
        case CK_LAYOUT_Q8_0: case CK_LAYOUT_IQ4_NL: case CK_LAYOUT_IQ4_XS: return 7;
        default: return -1;
    }
}

/// Bytes of the scales that follow the codes of a block.
INLINE size_t layout_scale_bytes(ck_layout layout) {
    switch (layout) {
        case CK_LAYOUT_MXFP4: return 16;
        case CK_LAYOUT_Q4_1: case CK_LAYOUT_Q5_1: return 64;
        case CK_LAYOUT_Q4_K: case CK_LAYOUT_Q5_K: case CK_LAYOUT_Q2_K: return 256 + 64;
        case CK_LAYOUT_Q3_K: case CK_LAYOUT_Q6_K: return 256 + 32;
        case CK_LAYOUT_IQ4_XS: return 128 + 32;
        default: return 32;
    }
}

INLINE size_t layout_block_bytes(ck_layout layout) {
    return layout_group_bytes(layout) * (size_t)(layout_columns(layout) / 32) + layout_scale_bytes(layout);
}

/// IQ4_NL's values plus 128; MXFP4's values (twice E2M1) plus 16.
static const uint8_t ck_table_iq4[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};
static const uint8_t ck_table_mxfp4[16] = {16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4};

INLINE const uint8_t *layout_table(ck_layout layout) {
    return layout == CK_LAYOUT_MXFP4 ? ck_table_mxfp4 : ck_table_iq4;
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
    switch (layout) {
        case CK_LAYOUT_MXFP4: {
            uint32_t bits = (uint32_t)scales[row] << 23;  // 2^(e − 127), halved because the table contains doubled values
            __builtin_memcpy(scale, &bits, 4);
            *scale *= 0.5f;
            return;
        }
        case CK_LAYOUT_Q4_K: case CK_LAYOUT_Q5_K:
            *scale = layout_half(scales + 256, row) * (float)scales[pair_place(group, row)];
            *minimum = -layout_half(scales + 288, row) * (float)scales[128 + pair_place(group, row)];
            return;
        case CK_LAYOUT_Q2_K:
            *scale = layout_half(scales + 256, row) * (float)(scales[32 * group + 16 * part + row] & 0xF);
            *minimum = -layout_half(scales + 288, row) * (float)(scales[32 * group + 16 * part + row] >> 4);
            return;
        case CK_LAYOUT_Q6_K:
            *scale = layout_half(scales + 256, row) * (float)(int8_t)scales[128 * part + pair_place(group, row)];
            return;
        case CK_LAYOUT_Q3_K:
            *scale = layout_half(scales + 256, row) * (float)(int8_t)scales[32 * group + 16 * part + row];
            return;
        case CK_LAYOUT_IQ4_XS:
            *scale = layout_half(scales + 128, row) * (float)(int8_t)scales[16 * group + row];
            return;
        default:
            *scale = layout_half(scales, row);
            if (layout_has_minimum(layout)) *minimum = layout_half(scales + 32, row);
    }
}

/// Calls BODY(layout) with the matrix's integer layout as a constant.
#define FOR_INTEGER_LAYOUT(layout, BODY)                    \
    switch (layout) {                                       \
        case CK_LAYOUT_Q4_0: BODY(CK_LAYOUT_Q4_0);          \
        case CK_LAYOUT_Q4_1: BODY(CK_LAYOUT_Q4_1);          \
        case CK_LAYOUT_Q5_0: BODY(CK_LAYOUT_Q5_0);          \
        case CK_LAYOUT_Q5_1: BODY(CK_LAYOUT_Q5_1);          \
        case CK_LAYOUT_Q8_0: BODY(CK_LAYOUT_Q8_0);          \
        case CK_LAYOUT_Q2_K: BODY(CK_LAYOUT_Q2_K);          \
        case CK_LAYOUT_Q3_K: BODY(CK_LAYOUT_Q3_K);          \
        case CK_LAYOUT_Q4_K: BODY(CK_LAYOUT_Q4_K);          \
        case CK_LAYOUT_Q5_K: BODY(CK_LAYOUT_Q5_K);          \
        case CK_LAYOUT_Q6_K: BODY(CK_LAYOUT_Q6_K);          \
        case CK_LAYOUT_IQ4_NL: BODY(CK_LAYOUT_IQ4_NL);      \
        case CK_LAYOUT_IQ4_XS: BODY(CK_LAYOUT_IQ4_XS);      \
        default: BODY(CK_LAYOUT_MXFP4);                     \
    }

#endif
