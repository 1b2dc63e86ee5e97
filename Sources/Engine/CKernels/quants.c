// Block structures and decoding of the tensor types of GGUF.
// The formats are defined by ggml (ggml-common.h and gguf-py's quants.py in the ggml repositories); all are
// little-endian.

#include <math.h>
#include <string.h>

#include "ckernels.h"
#include "formats.h"
#include "grids.h"
#include "quants.h"

uint16_t ck_float_to_half(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
    if (magnitude >= 0x7F800000) return (uint16_t)(sign | 0x7C00 | (magnitude > 0x7F800000 ? 0x200 : 0));
    if (magnitude >= 0x477FF000) return (uint16_t)(sign | 0x7C00);  // rounds to more than 65504, the maximum
    if (magnitude < 0x38800000) {                                   // subnormal: the floating-point addition rounds
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

/// The exponent is corrected by a product, which also makes denormal numbers normal: without branches, loops are vectorized.
static inline float half_value(uint16_t half) {
    uint32_t bits = (uint32_t)(half & 0x7FFF) << 13;
    float value;
    memcpy(&value, &bits, 4);
    value *= 0x1p112f;
    memcpy(&bits, &value, 4);
    bits |= (uint32_t)(half & 0x8000) << 16 | ((half & 0x7C00) == 0x7C00 ? 0x7F800000 : 0);
    memcpy(&value, &bits, 4);
    return value;
}

float ck_half_to_float(uint16_t h) { return half_value(h); }

// MARK: - The table of types

#define TYPE(name, number, elements, bytes, layout, reads, writes) CK_TYPE_##name,
static const ck_type all_types[] = {CK_TYPES(TYPE)};
#undef TYPE

int32_t ck_type_count(void) { return sizeof all_types / sizeof *all_types; }
ck_type ck_type_at(int32_t index) { return all_types[index]; }

const char *ck_type_name(ck_type type) {
#define NAME_OF(name, ...) case CK_TYPE_##name: return #name;
    switch (type) { CK_TYPES(NAME_OF) }
    return NULL;
}

int32_t ck_type_block(ck_type type) {
#define ELEMENTS(name, number, elements, ...) case CK_TYPE_##name: return elements;
    switch (type) { CK_TYPES(ELEMENTS) }
    return 0;
}

int32_t ck_type_bytes(ck_type type) {
#define BYTES(name, number, elements, bytes, ...) case CK_TYPE_##name: return bytes;
    switch (type) { CK_TYPES(BYTES) }
    return 0;
}

// The integer layouts are packed from groups of codes and scales.
enum { READS_NUMBERS, READS_BLOCKS, READS_GROUPS };
#define CHECK(name, number, elements, bytes, layout, reads, writes) \
    _Static_assert((layout < CK_F16) == (READS_##reads == READS_GROUPS), #name " is not read as its layout is packed");
CK_TYPES(CHECK)

ck_layout ck_type_layout(ck_type type) {
#define LAYOUT(name, number, elements, bytes, layout, ...) case CK_TYPE_##name: return layout;
    switch (type) { CK_TYPES(LAYOUT) }
    return CK_ROWS;
}

// MARK: - Groups of 32 elements, for types with integer layouts

static uint16_t half_bits(const uint8_t *at) {
    uint16_t half;
    memcpy(&half, at, 2);
    return half;
}

static float half_at(const uint8_t *at) { return half_value(half_bits(at)); }

static void nibbles(const uint8_t *q, uint8_t *codes) {
    for (int i = 0; i < 16; i++) codes[i] = q[i] & 0xF, codes[i + 16] = q[i] >> 4;
}

static void fifth_bits(const uint8_t *planes, uint8_t *codes) {
    uint32_t high;
    memcpy(&high, planes, 4);
    for (int i = 0; i < 32; i++) codes[i] |= (high >> i & 1) << 4;
}

/// Scale and minimum of a group of Q4_K or Q5_K, 6 bits each.
static void k_scale(const uint8_t *scales, int i, uint8_t *scale, uint8_t *minimum) {
    if (i < 4) {
        *scale = scales[i] & 63;
        *minimum = scales[i + 4] & 63;
    } else {
        *scale = (uint8_t)((scales[i + 4] & 0xF) | (scales[i - 4] >> 6) << 4);
        *minimum = (uint8_t)((scales[i + 4] >> 4) | (scales[i] >> 6) << 4);
    }
}

/// Scale of 16 elements of Q3_K: 6 bits with an offset of 32.
static int8_t q3_scale(const uint8_t *scales, int i) {
    int low = i < 8 ? scales[i] & 0xF : scales[i - 8] >> 4;
    return (int8_t)((low | (scales[8 + i % 4] >> (2 * (i / 4)) & 3) << 4) - 32);
}

static void read_Q4_0(const uint8_t *source, int group, ck_group *out) {
    nibbles(source + 2, out->q);
    out->d = half_bits(source);
}

static void read_IQ4_NL(const uint8_t *source, int group, ck_group *out) { read_Q4_0(source, group, out); }

static void read_MXFP4(const uint8_t *source, int group, ck_group *out) {
    nibbles(source + 1, out->q);
    out->scale[0] = out->scale[1] = (int8_t)source[0];
}

static void read_Q4_1(const uint8_t *source, int group, ck_group *out) {
    nibbles(source + 4, out->q);
    out->d = half_bits(source);
    out->dmin = half_bits(source + 2);
}

static void read_Q5_0(const uint8_t *source, int group, ck_group *out) {
    nibbles(source + 6, out->q);
    fifth_bits(source + 2, out->q);
    out->d = half_bits(source);
}

static void read_Q5_1(const uint8_t *source, int group, ck_group *out) {
    nibbles(source + 8, out->q);
    fifth_bits(source + 4, out->q);
    out->d = half_bits(source);
    out->dmin = half_bits(source + 2);
}

static void read_Q8_0(const uint8_t *source, int group, ck_group *out) {
    for (int i = 0; i < 32; i++) out->q[i] = source[2 + i] ^ 0x80;
    out->d = half_bits(source);
}

static void read_Q2_K(const uint8_t *source, int group, ck_group *out) {
    const uint8_t *q = source + 16 + group / 4 * 32;
    for (int i = 0; i < 32; i++) out->q[i] = q[i] >> (group % 4 * 2) & 3;
    for (int part = 0; part < 2; part++) {
        out->scale[part] = source[2 * group + part] & 0xF;
        out->minimum[part] = source[2 * group + part] >> 4;
    }
    out->d = half_bits(source + 80);
    out->dmin = half_bits(source + 82);
}

static void read_Q3_K(const uint8_t *source, int group, ck_group *out) {
    const uint8_t *q = source + 32 + group / 4 * 32;
    for (int i = 0; i < 32; i++) out->q[i] = (uint8_t)((q[i] >> (group % 4 * 2) & 3) | (source[i] >> group & 1) << 2);
    for (int part = 0; part < 2; part++) out->scale[part] = q3_scale(source + 96, 2 * group + part);
    out->d = half_bits(source + 108);
}

/// What Q4_K and Q5_K share: four bits at `q`, scales and factors.
static void read_k(const uint8_t *source, const uint8_t *q, int group, ck_group *out) {
    int shift = group % 2 * 4;
    for (int i = 0; i < 32; i++) out->q[i] = q[group / 2 * 32 + i] >> shift & 0xF;
    uint8_t scale, minimum;
    k_scale(source + 4, group, &scale, &minimum);
    out->scale[0] = out->scale[1] = (int8_t)scale;
    out->minimum[0] = out->minimum[1] = minimum;
    out->d = half_bits(source);
    out->dmin = half_bits(source + 2);
}

static void read_Q4_K(const uint8_t *source, int group, ck_group *out) { read_k(source, source + 16, group, out); }

static void read_Q5_K(const uint8_t *source, int group, ck_group *out) {
    read_k(source, source + 48, group, out);
    for (int i = 0; i < 32; i++) out->q[i] |= (source[16 + i] >> group & 1) << 4;
}

static void read_Q6_K(const uint8_t *source, int group, ck_group *out) {
    const uint8_t *low = source + group / 4 * 64 + group % 2 * 32, *high = source + 128 + group / 4 * 32;
    int low_shift = group % 4 / 2 * 4, high_shift = group % 4 * 2;
    for (int i = 0; i < 32; i++) out->q[i] = (uint8_t)((low[i] >> low_shift & 0xF) | (high[i] >> high_shift & 3) << 4);
    for (int part = 0; part < 2; part++) out->scale[part] = (int8_t)source[192 + 2 * group + part];
    out->d = half_bits(source + 208);
}

static void read_IQ4_XS(const uint8_t *source, int group, ck_group *out) {
    nibbles(source + 8 + 16 * group, out->q);
    int scale = (source[4 + group / 2] >> (group % 2 * 4) & 0xF) | (half_bits(source + 2) >> (2 * group) & 3) << 4;
    out->scale[0] = out->scale[1] = (int8_t)(scale - 32);
    out->d = half_bits(source);
}

static inline void clear(ck_group *group) {
    group->scale[0] = group->scale[1] = group->minimum[0] = group->minimum[1] = 1;
    group->d = group->dmin = 0;
}

void ck_read_group(ck_type type, const uint8_t *source, int group, ck_group *out) {
    clear(out);
    switch (type) {
#define READ_NUMBERS(name)
#define READ_BLOCKS(name)
#define READ_GROUPS(name) read_##name(source, group, out);
#define READ(name, number, elements, bytes, layout, reads, writes) case CK_TYPE_##name: READ_##reads(name) return;
        CK_TYPES(READ)
    }
}

/// Decodes a group of a type with this layout, which is a constant at every call.
INLINE void decode_group(ck_layout layout, const ck_group *g, float *out) {
    const uint8_t *table = layout_table(layout);
    int offset = layout_offset(layout);
    // The minima of blocks of 256 elements are subtracted.
    float d = half_value(g->d), dmin = layout_has_minimum(layout) ? half_value(g->dmin) : 0;
    if (layout_columns(layout) == 256 && layout_has_minimum(layout)) dmin = -dmin;
    for (int half = 0; half < 2; half++) {
        // The table contains doubled values, hence 2^(e − 128); e below 2 gives subnormal scales.
        float scale = layout_facts[layout].scales == SCALES_EXPONENT ? ldexpf(1, (uint8_t)g->scale[half] - 128) : d * (float)g->scale[half];
        float minimum = dmin * (float)g->minimum[half];
        const uint8_t *q = g->q + 16 * half;
        float *at = out + 16 * half;
        if (table) {
            for (int i = 0; i < 16; i++) at[i] = scale * (float)(table[q[i]] - offset) + minimum;
        } else {
            // The compiler makes vectors of the loop only if it does not unroll it before.
#pragma clang loop unroll(disable)
            for (int i = 0; i < 16; i++) at[i] = scale * (float)(q[i] - offset) + minimum;
        }
    }
}

// MARK: - Blocks, for types without integer layouts

/// Seven bits encode eight signs: the number of negative signs is even.
static uint32_t even_signs(uint32_t id) { return (id & 127) | (uint32_t)(__builtin_popcount(id & 127) & 1) << 7; }

static float sign_of(uint32_t signs, int i) { return signs >> i & 1 ? -1 : 1; }

/// Eight elements of the IQ2 types. `scale` is that of the block's 16 or 32 elements.
static void put_iq2(uint16_t entry, uint32_t signs, float d, uint32_t scale, float *out) {
    static const float values[4] = {8, 25, 43, 0};
    float factor = d * (0.5f + (float)scale) * 0.25f;
    for (int i = 0; i < 8; i++) out[i] = factor * values[entry >> (2 * i) & 3] * sign_of(signs, i);
}

static void decode_IQ2_XXS(const uint8_t *source, float *out) {
    float d = half_at(source);
    for (int group = 0; group < 8; group++) {
        uint32_t word;
        memcpy(&word, source + 2 + 8 * group + 4, 4);
        for (int l = 0; l < 4; l++, out += 8)
            put_iq2(grid_iq2_xxs[source[2 + 8 * group + l]], even_signs(word >> (7 * l)), d, word >> 28, out);
    }
}

static void decode_IQ2_XS(const uint8_t *source, float *out) {
    float d = half_at(source);
    for (int group = 0; group < 8; group++)
        for (int l = 0; l < 4; l++, out += 8) {
            uint16_t word = half_bits(source + 2 + 8 * group + 2 * l);
            put_iq2(grid_iq2_xs[word & 511], even_signs(word >> 9), d, source[66 + group] >> (l / 2 * 4) & 0xF, out);
        }
}

static void decode_IQ2_S(const uint8_t *source, float *out) {
    float d = half_at(source);
    for (int group = 0; group < 8; group++)
        for (int l = 0; l < 4; l++, out += 8) {
            uint16_t entry = grid_iq2_s[source[2 + 4 * group + l] | (source[66 + group] >> (2 * l) & 3) << 8];
            put_iq2(entry, source[34 + 4 * group + l], d, source[74 + group] >> (l / 2 * 4) & 0xF, out);
        }
}

/// Eight elements of the IQ3 types, with two entries of the grid.
static void put_iq3(const uint16_t *entries, uint32_t signs, float scale, const float *values, float *out) {
    for (int i = 0; i < 8; i++) out[i] = scale * values[entries[i / 4] >> (3 * (i % 4)) & 7] * sign_of(signs, i);
}

static void decode_IQ3_XXS(const uint8_t *source, float *out) {
    static const float values[8] = {4, 12, 20, 28, 36, 44, 52, 62};
    float d = half_at(source);
    for (int group = 0; group < 8; group++) {
        uint32_t word;
        memcpy(&word, source + 66 + 4 * group, 4);
        for (int l = 0; l < 4; l++, out += 8) {
            const uint8_t *index = source + 2 + 8 * group + 2 * l;
            uint16_t entries[2] = {grid_iq3_xxs[index[0]], grid_iq3_xxs[index[1]]};
            put_iq3(entries, even_signs(word >> (7 * l)), d * (0.5f + (float)(word >> 28)) * 0.5f, values, out);
        }
    }
}

static void decode_IQ3_S(const uint8_t *source, float *out) {
    static const float values[8] = {1, 3, 5, 7, 9, 11, 13, 15};
    float d = half_at(source);
    for (int group = 0; group < 8; group++) {
        float scale = d * (float)(1 + 2 * (source[106 + group / 2] >> (group % 2 * 4) & 0xF));
        for (int l = 0; l < 4; l++, out += 8) {
            const uint8_t *index = source + 2 + 8 * group + 2 * l;
            uint16_t entries[2];
            for (int i = 0; i < 2; i++) entries[i] = grid_iq3_s[index[i] | (source[66 + group] >> (2 * l + i) & 1) << 8];
            put_iq3(entries, source[74 + 4 * group + l], scale, values, out);
        }
    }
}

/// Eight elements of the IQ1 types.
static void put_iq1(uint16_t entry, float scale, bool is_negative, float *out) {
    float delta = is_negative ? -0.125f : 0.125f;
    for (int i = 0; i < 8; i++) out[i] = scale * ((float)((entry >> (2 * i) & 3) - 1) + delta);
}

static void decode_IQ1_S(const uint8_t *source, float *out) {
    float d = half_at(source);
    for (int group = 0; group < 8; group++) {
        uint16_t high = half_bits(source + 34 + 2 * group);
        float scale = d * (float)(2 * (high >> 12 & 7) + 1);
        for (int l = 0; l < 4; l++, out += 8)
            put_iq1(grid_iq1_s[source[2 + 4 * group + l] | (high >> (3 * l) & 7) << 8], scale, high & 0x8000, out);
    }
}

static void decode_IQ1_M(const uint8_t *source, float *out) {
    uint16_t scales[4];
    memcpy(scales, source + 48, 8);
    float d = half_value((uint16_t)(scales[0] >> 12 | (scales[1] >> 8 & 0xF0) | (scales[2] >> 4 & 0xF00) | (scales[3] & 0xF000)));
    for (int group = 0; group < 8; group++)
        for (int l = 0; l < 4; l++, out += 8) {
            uint8_t high = source[32 + 2 * group + l / 2] >> (l % 2 * 4);
            float scale = d * (float)(2 * (scales[group / 2] >> (6 * (group % 2) + 3 * (l / 2)) & 7) + 1);
            put_iq1(grid_iq1_s[source[4 * group + l] | (high & 7) << 8], scale, high & 8, out);
        }
}

static void decode_TQ1_0(const uint8_t *source, float *out) {
    static const uint8_t powers[5] = {1, 3, 9, 27, 81};
    static const int first[3] = {0, 32, 48}, count[3] = {32, 16, 4}, trits[3] = {5, 5, 4};
    float d = half_at(source + 52);
    for (int stretch = 0; stretch < 3; stretch++)
        for (int n = 0; n < trits[stretch]; n++)
            for (int i = 0; i < count[stretch]; i++) {
                uint8_t v = (uint8_t)(source[first[stretch] + i] * powers[n]);
                *out++ = d * (float)((v * 3 >> 8) - 1);
            }
}

static void decode_TQ2_0(const uint8_t *source, float *out) {
    float d = half_at(source + 64);
    for (int half = 0; half < 2; half++)
        for (int l = 0; l < 4; l++)
            for (int i = 0; i < 32; i++) *out++ = d * (float)((source[32 * half + i] >> (2 * l) & 3) - 1);
}

/// Decodes an unsigned number with 4 bits of exponent (bias 7) and 3 bits of fraction.
static float ue4m3(uint8_t x) {
    if (x == 0 || x == 0x7F) return 0;
    int exponent = x >> 3 & 0xF, fraction = x & 7;
    return exponent == 0 ? ldexpf((float)fraction, -9) : ldexpf(1 + (float)fraction / 8, exponent - 7);
}

static void decode_NVFP4(const uint8_t *source, float *out) {
    for (int part = 0; part < 4; part++) {
        float scale = ue4m3(source[part]) * 0.5f;
        for (int i = 0; i < 8; i++) {
            uint8_t pair = source[4 + 8 * part + i];
            out[16 * part + i] = scale * (float)(table_fp4_plus_16[pair & 0xF] - 16);
            out[16 * part + 8 + i] = scale * (float)(table_fp4_plus_16[pair >> 4] - 16);
        }
    }
}

static void decode_Q1_0(const uint8_t *source, float *out) {
    float d = half_at(source), values[2] = {-d, d};
    for (int i = 0; i < 128; i++) out[i] = values[source[2 + i / 8] >> (i % 8) & 1];
}

static void decode_Q2_0(const uint8_t *source, float *out) {
    float d = half_at(source);
    for (int i = 0; i < 64; i++) out[i] = d * (float)((source[2 + i / 4] >> (i % 4 * 2) & 3) - 1);
}

// MARK: - Numbers

static void decode_F32(const uint8_t *source, size_t count, float *out) { memcpy(out, source, 4 * count); }

static void decode_F16(const uint8_t *source, size_t count, float *out) {
    for (size_t i = 0; i < count; i++) out[i] = half_at(source + 2 * i);
}

static void decode_BF16(const uint8_t *source, size_t count, float *out) {
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)half_bits(source + 2 * i) << 16;
        memcpy(out + i, &bits, 4);
    }
}

void ck_dequantize(ck_type type, const uint8_t *source, size_t count, float *destination) {
    const float *end = destination + count;
    switch (type) {
#define DECODE_NUMBERS(name, elements, bytes, layout) decode_##name(source, count, destination);
#define DECODE_BLOCKS(name, elements, bytes, layout)                                                              \
    for (; destination < end; source += bytes, destination += elements) decode_##name(source, destination);
#define DECODE_GROUPS(name, elements, bytes, layout)                                                              \
    for (; destination < end; source += bytes)                                                                    \
        for (int group = 0; group < elements / 32; group++, destination += 32) {                                  \
            ck_group read;                                                                                        \
            clear(&read);                                                                                         \
            read_##name(source, group, &read);                                                                    \
            decode_group(layout, &read, destination);                                                             \
        }
#define DECODE(name, number, elements, bytes, layout, reads, writes) \
    case CK_TYPE_##name: DECODE_##reads(name, elements, bytes, layout) return;
        CK_TYPES(DECODE)
    }
}
