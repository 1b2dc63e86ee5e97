// Tensor types of GGUF: block structures, decoding, and packing into panels.
// The block formats are those of ggml (ggml-common.h in the ggml repository); all are little-endian.

#include <math.h>
#include <string.h>

#include "ckernels.h"

typedef struct { uint16_t d; uint8_t q[16]; } block_q4_0;
typedef struct { uint16_t d, m; uint8_t q[16]; } block_q4_1;
typedef struct { uint16_t d; uint8_t high[4], q[16]; } block_q5_0;
typedef struct { uint16_t d, m; uint8_t high[4], q[16]; } block_q5_1;
typedef struct { uint16_t d; int8_t q[32]; } block_q8_0;
typedef struct { uint16_t d, dmin; uint8_t scales[12], q[128]; } block_q4_k;
typedef struct { uint16_t d, dmin; uint8_t scales[12], high[32], q[128]; } block_q5_k;
typedef struct { uint8_t low[128], high[64]; int8_t scales[16]; uint16_t d; } block_q6_k;
_Static_assert(sizeof(block_q4_0) == 18, "q4_0");
_Static_assert(sizeof(block_q4_1) == 20, "q4_1");
_Static_assert(sizeof(block_q5_0) == 22, "q5_0");
_Static_assert(sizeof(block_q5_1) == 24, "q5_1");
_Static_assert(sizeof(block_q8_0) == 34, "q8_0");
_Static_assert(sizeof(block_q4_k) == 144, "q4_k");
_Static_assert(sizeof(block_q5_k) == 176, "q5_k");
_Static_assert(sizeof(block_q6_k) == 210, "q6_k");

uint16_t ck_float_to_half(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
    if (magnitude >= 0x7F800000) return (uint16_t)(sign | 0x7C00 | (magnitude > 0x7F800000 ? 0x200 : 0));
    if (magnitude >= 0x477FF000) return (uint16_t)(sign | 0x7C00);  // rounds past 65504
    if (magnitude < 0x38800000) {                                   // subnormal: let the adder round
        float positive, half_ulp = 0.5f;
        memcpy(&positive, &magnitude, 4);
        positive += half_ulp;
        uint32_t rounded, base;
        memcpy(&rounded, &positive, 4);
        memcpy(&base, &half_ulp, 4);
        return (uint16_t)(sign | (rounded - base));
    }
    uint32_t rounded = magnitude + 0xFFF + (magnitude >> 13 & 1);
    return (uint16_t)(sign | ((rounded - 0x38000000) >> 13));
}

float ck_half_to_float(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 0x1F, mantissa = h & 0x3FF, bits;
    if (exponent == 0) {
        float value = (float)mantissa * 0x1p-24f;
        return sign ? -value : value;
    }
    bits = sign | (exponent == 31 ? 0x7F800000 : (exponent + 112) << 23) | mantissa << 13;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static float bfloat_to_float(uint16_t b) {
    uint32_t bits = (uint32_t)b << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

int32_t ck_type_block(ck_type type) {
    switch (type) {
        case CK_TYPE_F32: case CK_TYPE_F16: case CK_TYPE_BF16: return 1;
        case CK_TYPE_Q4_0: case CK_TYPE_Q4_1: case CK_TYPE_Q5_0: case CK_TYPE_Q5_1: case CK_TYPE_Q8_0: return 32;
        case CK_TYPE_Q4_K: case CK_TYPE_Q5_K: case CK_TYPE_Q6_K: return 256;
    }
    return 0;
}

int32_t ck_type_bytes(ck_type type) {
    switch (type) {
        case CK_TYPE_F32: return 4;
        case CK_TYPE_F16: case CK_TYPE_BF16: return 2;
        case CK_TYPE_Q4_0: return sizeof(block_q4_0);
        case CK_TYPE_Q4_1: return sizeof(block_q4_1);
        case CK_TYPE_Q5_0: return sizeof(block_q5_0);
        case CK_TYPE_Q5_1: return sizeof(block_q5_1);
        case CK_TYPE_Q8_0: return sizeof(block_q8_0);
        case CK_TYPE_Q4_K: return sizeof(block_q4_k);
        case CK_TYPE_Q5_K: return sizeof(block_q5_k);
        case CK_TYPE_Q6_K: return sizeof(block_q6_k);
    }
    return 0;
}

ck_layout ck_type_layout(ck_type type) {
    switch (type) {
        case CK_TYPE_F32: return CK_F32;
        case CK_TYPE_F16: return CK_F16;
        case CK_TYPE_BF16: return CK_BF16;
        case CK_TYPE_Q4_0: return CK_U4_D;
        case CK_TYPE_Q4_1: case CK_TYPE_Q4_K: return CK_U4_DM;
        case CK_TYPE_Q5_0: case CK_TYPE_Q5_1: case CK_TYPE_Q5_K: return CK_U8_DM;
        case CK_TYPE_Q8_0: return CK_U8_D;
        case CK_TYPE_Q6_K: return CK_U8_D16;
    }
    return CK_F32;
}

static int32_t layout_block(ck_layout layout) {
    return layout == CK_U8_D16 ? 16 : layout <= CK_U8_DM ? 32 : 1;
}

/// Bytes of one block of 16 rows.
static size_t layout_bytes(ck_layout layout) {
    switch (layout) {
        case CK_U4_D: return 256 + 32;
        case CK_U4_DM: return 256 + 64;
        case CK_U8_D: return 512 + 32;
        case CK_U8_DM: return 512 + 64;
        case CK_U8_D16: return 256 + 32;
        case CK_F16: case CK_BF16: return 32;
        case CK_F32: return 64;
    }
    return 0;
}

size_t ck_panel_bytes(ck_layout layout, int32_t columns) {
    // Activations are quantised 32 at a time, so that even the layout with blocks of 16 wants whole pairs.
    int32_t block = layout_block(layout), unit = block == 1 ? 1 : 32;
    if (columns <= 0 || columns % unit != 0) return 0;
    return (size_t)(columns / block) * layout_bytes(layout);
}

// MARK: - Decoding

/// 32 consecutive elements as codes, each half with its scale and minimum: x = d·(q − offset) + m.
typedef struct {
    uint8_t q[32];
    float d[2], m[2];
    uint8_t offset;
} decoded;

static void k_scale_min(const uint8_t *scales, int i, float *scale, float *minimum) {
    uint8_t s, m;
    if (i < 4) {
        s = scales[i] & 63;
        m = scales[i + 4] & 63;
    } else {
        s = (uint8_t)((scales[i + 4] & 0xF) | (scales[i - 4] >> 6) << 4);
        m = (uint8_t)((scales[i + 4] >> 4) | (scales[i] >> 6) << 4);
    }
    *scale = s;
    *minimum = m;
}

/// Decodes elements `32·group ..< 32·group + 32` of the block at `source`.
static void decode_group(ck_type type, const uint8_t *source, int group, decoded *out) {
    out->offset = 0;
    out->m[0] = out->m[1] = 0;
    switch (type) {
        case CK_TYPE_Q4_0: case CK_TYPE_Q4_1: {
            bool minimum = type == CK_TYPE_Q4_1;
            const block_q4_0 *plain = (const void *)source;
            const block_q4_1 *with_minimum = (const void *)source;
            const uint8_t *q = minimum ? with_minimum->q : plain->q;
            for (int i = 0; i < 16; i++) out->q[i] = q[i] & 0xF, out->q[i + 16] = q[i] >> 4;
            out->d[0] = out->d[1] = ck_half_to_float(plain->d);
            if (minimum) out->m[0] = out->m[1] = ck_half_to_float(with_minimum->m);
            else out->offset = 8;
            return;
        }
        case CK_TYPE_Q5_0: case CK_TYPE_Q5_1: {
            const block_q5_0 *plain = (const void *)source;
            const block_q5_1 *with_minimum = (const void *)source;
            bool minimum = type == CK_TYPE_Q5_1;
            const uint8_t *q = minimum ? with_minimum->q : plain->q;
            uint32_t high;
            memcpy(&high, minimum ? with_minimum->high : plain->high, 4);
            for (int i = 0; i < 16; i++) {
                out->q[i] = (uint8_t)((q[i] & 0xF) | (high >> i & 1) << 4);
                out->q[i + 16] = (uint8_t)(q[i] >> 4 | (high >> (i + 16) & 1) << 4);
            }
            float d = ck_half_to_float(plain->d);
            out->d[0] = out->d[1] = d;
            out->m[0] = out->m[1] = minimum ? ck_half_to_float(with_minimum->m) : -16 * d;
            return;
        }
        case CK_TYPE_Q8_0: {
            const block_q8_0 *block = (const void *)source;
            for (int i = 0; i < 32; i++) out->q[i] = (uint8_t)block->q[i] ^ 0x80;
            out->d[0] = out->d[1] = ck_half_to_float(block->d);
            out->offset = 128;
            return;
        }
        case CK_TYPE_Q4_K: case CK_TYPE_Q5_K: {
            bool five = type == CK_TYPE_Q5_K;
            const block_q4_k *four_bits = (const void *)source;
            const block_q5_k *five_bits = (const void *)source;
            const uint8_t *q = (five ? five_bits->q : four_bits->q) + group / 2 * 32;
            int shift = group % 2 * 4;
            for (int i = 0; i < 32; i++) {
                out->q[i] = q[i] >> shift & 0xF;
                if (five) out->q[i] |= (five_bits->high[i] >> group & 1) << 4;
            }
            float scale, minimum;
            k_scale_min(four_bits->scales, group, &scale, &minimum);
            out->d[0] = out->d[1] = ck_half_to_float(four_bits->d) * scale;
            out->m[0] = out->m[1] = -ck_half_to_float(four_bits->dmin) * minimum;
            return;
        }
        case CK_TYPE_Q6_K: {
            const block_q6_k *block = (const void *)source;
            const uint8_t *low = block->low + group / 4 * 64 + group % 2 * 32, *high = block->high + group / 4 * 32;
            int low_shift = group % 4 / 2 * 4, high_shift = group % 4 * 2;
            for (int i = 0; i < 32; i++)
                out->q[i] = (uint8_t)((low[i] >> low_shift & 0xF) | (high[i] >> high_shift & 3) << 4);
            float d = ck_half_to_float(block->d);
            out->d[0] = d * block->scales[2 * group];
            out->d[1] = d * block->scales[2 * group + 1];
            out->offset = 32;
            return;
        }
        case CK_TYPE_F32: case CK_TYPE_F16: case CK_TYPE_BF16: return;
    }
}

static float decode_float(ck_type type, const uint8_t *source, size_t index) {
    if (type == CK_TYPE_F32) {
        float value;
        memcpy(&value, source + 4 * index, 4);
        return value;
    }
    uint16_t half;
    memcpy(&half, source + 2 * index, 2);
    return type == CK_TYPE_F16 ? ck_half_to_float(half) : bfloat_to_float(half);
}

void ck_dequantize(ck_type type, const uint8_t *source, size_t count, float *destination) {
    int32_t block = ck_type_block(type);
    if (block == 1) {
        for (size_t i = 0; i < count; i++) destination[i] = decode_float(type, source, i);
        return;
    }
    decoded group;
    for (size_t start = 0; start < count; start += 32) {
        decode_group(type, source + start / (size_t)block * (size_t)ck_type_bytes(type), (int)(start % (size_t)block / 32), &group);
        for (int i = 0; i < 32; i++)
            destination[start + i] = group.d[i / 16] * (float)(group.q[i] - group.offset) + group.m[i / 16];
    }
}

float ck_type_scale(ck_type type, const uint8_t *source, size_t blocks) {
    size_t bytes = (size_t)ck_type_bytes(type);
    float greatest = 0;
    for (size_t i = 0; i < blocks; i++) {
        float d, minimum = 0;
        if (type == CK_TYPE_Q4_K || type == CK_TYPE_Q5_K) {
            const block_q4_k *block = (const void *)(source + i * bytes);
            d = fabsf(ck_half_to_float(block->d)) * 63;
            minimum = fabsf(ck_half_to_float(block->dmin)) * 63;
        } else if (type == CK_TYPE_Q6_K) {
            d = fabsf(ck_half_to_float(((const block_q6_k *)(const void *)(source + i * bytes))->d)) * 128;
        } else {
            return 1;
        }
        if (d > greatest && isfinite(d)) greatest = d;
        if (minimum > greatest && isfinite(minimum)) greatest = minimum;
    }
    if (greatest == 0) return 1;
    int exponent;
    frexpf(greatest, &exponent);
    return ldexpf(1, exponent - 15);
}

// MARK: - Packing

/// Offset of code (row, column) of a 32-column block in its panel block. For 4-bit layouts, of its byte.
static size_t code_offset(int row, int column) { return (size_t)(column / 4 * 64 + row * 4 + column % 4); }

static void put_half(uint8_t *at, float x) {
    uint16_t half = ck_float_to_half(x);
    memcpy(at, &half, 2);
}

static void pack_group(ck_layout layout, const decoded *group, float inverse_scale, int row, uint8_t *block) {
    switch (layout) {
        case CK_U4_D: case CK_U4_DM:
            for (int i = 0; i < 16; i++) block[code_offset(row, i)] = (uint8_t)(group->q[i] | group->q[i + 16] << 4);
            put_half(block + 256 + 2 * row, group->d[0] * inverse_scale);
            if (layout == CK_U4_DM) put_half(block + 288 + 2 * row, group->m[0] * inverse_scale);
            return;
        case CK_U8_D: case CK_U8_DM:
            for (int i = 0; i < 32; i++) block[code_offset(row, i)] = group->q[i];
            put_half(block + 512 + 2 * row, group->d[0] * inverse_scale);
            if (layout == CK_U8_DM) put_half(block + 544 + 2 * row, group->m[0] * inverse_scale);
            return;
        case CK_U8_D16:
            for (int half = 0; half < 2; half++, block += layout_bytes(CK_U8_D16)) {
                for (int i = 0; i < 16; i++) block[code_offset(row, i)] = group->q[16 * half + i];
                put_half(block + 256 + 2 * row, group->d[half] * inverse_scale);
            }
            return;
        case CK_F16: case CK_BF16: case CK_F32: return;
    }
}

/// The types whose codes are already in the layout's order are moved four bytes at a time: this is most of load time.
static void pack_words(ck_type type, const uint8_t *source, int row, uint8_t *block) {
    size_t codes = type == CK_TYPE_Q8_0 ? 32 : 16, header = type == CK_TYPE_Q4_1 ? 4 : 2;
    uint32_t flip = type == CK_TYPE_Q8_0 ? 0x80808080 : 0;
    for (size_t i = 0; i < codes / 4; i++) {
        uint32_t word;
        memcpy(&word, source + header + 4 * i, 4);
        word ^= flip;
        memcpy(block + 64 * i + 4 * (size_t)row, &word, 4);
    }
    uint8_t *scales = block + 16 * codes + 2 * row;
    memcpy(scales, source, 2);
    if (type == CK_TYPE_Q4_1) memcpy(scales + 32, source + 2, 2);
}

void ck_pack(ck_type type, const uint8_t *source, ck_matrix *matrix, uint8_t *destination, int32_t first, int32_t last) {
    ck_layout layout = matrix->layout;
    size_t columns = (size_t)matrix->columns, type_block = (size_t)ck_type_block(type);
    size_t type_bytes = (size_t)ck_type_bytes(type), row_bytes = columns / type_block * type_bytes;
    bool words = type == CK_TYPE_Q4_0 || type == CK_TYPE_Q4_1 || type == CK_TYPE_Q8_0;
    float inverse_scale = 1 / matrix->scale;
    for (int32_t panel = first; panel < last; panel++) {
        uint8_t *out = destination + (size_t)panel * matrix->panel_bytes;
        int rows = matrix->rows - panel * CK_PANEL < CK_PANEL ? matrix->rows - panel * CK_PANEL : CK_PANEL;
        if (rows < CK_PANEL) memset(out, 0, matrix->panel_bytes);
        const uint8_t *panel_source = source + (size_t)panel * CK_PANEL * row_bytes;
        if (layout >= CK_F16) {
            size_t bytes = type_bytes;
            for (size_t column = 0; column < columns; column++)
                for (int row = 0; row < rows; row++)
                    memcpy(out + (column * CK_PANEL + (size_t)row) * bytes,
                           panel_source + (size_t)row * row_bytes + column * bytes, bytes);
            continue;
        }
        size_t step = layout_bytes(layout) * (layout == CK_U8_D16 ? 2 : 1);
        for (size_t group = 0; group < columns / 32; group++) {
            for (int row = 0; row < rows; row++) {
                const uint8_t *at = panel_source + (size_t)row * row_bytes + group * 32 / type_block * type_bytes;
                if (words) {
                    pack_words(type, at, row, out + group * step);
                } else {
                    decoded codes;
                    decode_group(type, at, (int)(group * 32 % type_block / 32), &codes);
                    pack_group(layout, &codes, inverse_scale, row, out + group * step);
                }
            }
        }
    }
}

void ck_matrix_row(const ck_matrix *matrix, int32_t row, float *destination) {
    const uint8_t *panel = matrix->data + (size_t)(row / CK_PANEL) * matrix->panel_bytes;
    int lane = row % CK_PANEL;
    ck_layout layout = matrix->layout;
    int32_t width = layout_block(layout);
    size_t bytes = layout_bytes(layout), codes = layout <= CK_U4_DM ? 256 : layout == CK_U8_D16 ? 256 : 512;
    for (int32_t block = 0; block < matrix->columns / width; block++, panel += bytes) {
        float *out = destination + block * width;
        if (layout >= CK_F16) {
            ck_type type = layout == CK_F32 ? CK_TYPE_F32 : layout == CK_F16 ? CK_TYPE_F16 : CK_TYPE_BF16;
            *out = decode_float(type, panel, (size_t)lane) * matrix->scale;
            continue;
        }
        float d = decode_float(CK_TYPE_F16, panel + codes, (size_t)lane) * matrix->scale, m = 0;
        if (layout == CK_U4_DM || layout == CK_U8_DM)
            m = decode_float(CK_TYPE_F16, panel + codes + 32, (size_t)lane) * matrix->scale;
        int offset = layout == CK_U4_D ? 8 : layout == CK_U8_D ? 128 : layout == CK_U8_D16 ? 32 : 0;
        for (int i = 0; i < width; i++) {
            uint8_t q;
            if (layout <= CK_U4_DM) q = panel[code_offset(lane, i % 16)] >> (i / 16 * 4) & 0xF;
            else q = panel[code_offset(lane, i)];
            out[i] = d * (float)(q - offset) + m;
        }
    }
}

// MARK: - Adapters

void ck_add_low_rank(
    float *weights, const float *b, const float *a, int32_t rows, int32_t rank, int32_t columns, float scale) {
    for (int32_t row = 0; row < rows; row++) {
        float *w = weights + (size_t)row * columns;
        for (int32_t r = 0; r < rank; r++) {
            float factor = scale * b[(size_t)row * rank + r];
            const float *direction = a + (size_t)r * columns;
            for (int32_t column = 0; column < columns; column++) w[column] += factor * direction[column];
        }
    }
}

void ck_quantize_q8_0(const float *x, size_t count, uint8_t *blocks) {
    for (size_t start = 0; start < count; start += 32, blocks += 34) {
        float greatest = 0;
        for (int i = 0; i < 32; i++) greatest = fmaxf(greatest, fabsf(x[start + i]));
        uint16_t scale = ck_float_to_half(greatest / 127);
        float inverse = ck_half_to_float(scale) > 0 ? 1 / ck_half_to_float(scale) : 0;
        memcpy(blocks, &scale, 2);
        for (int i = 0; i < 32; i++) {
            float code = roundf(x[start + i] * inverse);
            ((int8_t *)blocks)[2 + i] = (int8_t)fmaxf(-127, fminf(127, code));
        }
    }
}
