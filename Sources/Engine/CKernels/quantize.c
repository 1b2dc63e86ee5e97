// Quantisation: the blocks of the tensor types from numbers. See quants.c for the way back.

#define NAME(x) x##_quantize_scalar
#define KERNELS ck_quantize_scalar
#define TARGET

#include "quantize_rows.h"

#include <pthread.h>

#include "grids.h"

static const ck_quantize_kernels *kernels_for(ck_isa isa) {
#if defined(__x86_64__)
    if ((isa == CK_AVX512 || isa == CK_AMX) && ck_kernels_for(CK_AVX512)) return &ck_quantize_avx512;
    if (isa != CK_SCALAR && ck_kernels_for(CK_AVX2)) return &ck_quantize_avx2;
#endif
    (void)isa;
    return &ck_quantize_scalar;
}

static void put_half(uint8_t *at, float value) {
    uint16_t half = ck_float_to_half(value);
    memcpy(at, &half, 2);
}

#define VALUE(value) value,
static const float table_iq4[16] = {CK_IQ4_VALUES(VALUE)};
#undef VALUE
/// The values of FP4, ascending.
static const float table_fp4[15] = {-12, -8, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 12};
/// The codes of these values in the file.
static const uint8_t codes_fp4[15] = {15, 14, 13, 12, 11, 10, 9, 0, 1, 2, 3, 4, 5, 6, 7};

static void put_nibbles(uint8_t *out, const uint8_t *codes) {
    for (int i = 0; i < 16; i++) out[i] = (uint8_t)((codes[i] & 0xF) | (codes[i + 16] & 0xF) << 4);
}

static void put_fifth_bits(uint8_t *out, const uint8_t *codes) {
    uint32_t high = 0;
    for (int i = 0; i < 32; i++) high |= (uint32_t)(codes[i] >> 4 & 1) << i;
    memcpy(out, &high, 4);
}

// MARK: - Types of one group of 32 elements

/// Writes a group's factors and codes of 4 or 5 bits.
static void put_group(const ck_quantized *group, int offset, bool has_minimum, bool has_fifth_bits, uint8_t *out) {
    uint8_t codes[32];
    for (int i = 0; i < 32; i++) codes[i] = (uint8_t)((int)group->codes[i] + offset);
    put_half(out, group->d), out += 2;
    if (has_minimum) put_half(out, -group->dmin), out += 2;
    if (has_fifth_bits) put_fifth_bits(out, codes), out += 4;
    put_nibbles(out, codes);
}

static void write_Q4_0(const ck_quantize_kernels *k, const float *x, const float *w, uint8_t *out) {
    ck_quantized group;
    k->one(x, w, -8, 7, false, &group);
    put_group(&group, 8, false, false, out);
}

static void write_Q4_1(const ck_quantize_kernels *k, const float *x, const float *w, uint8_t *out) {
    ck_quantized group;
    k->one(x, w, 0, 15, true, &group);
    put_group(&group, 0, true, false, out);
}

static void write_Q5_0(const ck_quantize_kernels *k, const float *x, const float *w, uint8_t *out) {
    ck_quantized group;
    k->one(x, w, -16, 15, false, &group);
    put_group(&group, 16, false, true, out);
}

static void write_Q5_1(const ck_quantize_kernels *k, const float *x, const float *w, uint8_t *out) {
    ck_quantized group;
    k->one(x, w, 0, 31, true, &group);
    put_group(&group, 0, true, true, out);
}

static void write_IQ4_NL(const ck_quantize_kernels *k, const float *x, const float *w, uint8_t *out) {
    ck_quantized group;
    k->table_block(x, w, 1, table_iq4, 16, &group);
    put_group(&group, 0, false, false, out);
}

static void write_MXFP4(const ck_quantize_kernels *k, const float *x, const float *w, uint8_t *out) {
    float places[32];
    uint8_t codes[32];
    out[0] = (uint8_t)k->power(x, w, table_fp4, 15, places);
    for (int i = 0; i < 32; i++) codes[i] = codes_fp4[(int)places[i]];
    put_nibbles(out + 1, codes);
}

// MARK: - Types of 256 elements; `out` is zero

static void get_codes(const ck_quantized *block, int offset, uint8_t *codes) {
    for (int i = 0; i < 256; i++) codes[i] = (uint8_t)((int)block->codes[i] + offset);
}

static void put_k_scales(uint8_t *out, const int *scale, const int *minimum) {
    for (int i = 0; i < 4; i++) {
        out[i] = (uint8_t)(scale[i] | (scale[i + 4] >> 4) << 6);
        out[i + 4] = (uint8_t)(minimum[i] | (minimum[i + 4] >> 4) << 6);
        out[i + 8] = (uint8_t)((scale[i + 4] & 0xF) | (minimum[i + 4] & 0xF) << 4);
    }
}

static void write_Q2_K(const ck_quantize_kernels *k, const float *x, const float *w, uint8_t *out) {
    ck_quantized block;
    uint8_t codes[256];
    k->affine_block(x, w, 16, 16, 3, 15, &block);
    get_codes(&block, 0, codes);
    for (int g = 0; g < 16; g++) out[g] = (uint8_t)(block.scale[g] | block.minimum[g] << 4);
    for (int i = 0; i < 256; i++) out[16 + i / 128 * 32 + i % 32] |= (uint8_t)(codes[i] << (i % 128 / 32 * 2));
    put_half(out + 80, block.d), put_half(out + 82, block.dmin);
}

static void write_Q3_K(const ck_quantize_kernels *k, const float *x, const float *w, uint8_t *out) {
    ck_quantized block;
    uint8_t codes[256];
    k->scale_block(x, w, 16, 16, -4, 3, -32, &block);
    get_codes(&block, 4, codes);
    for (int i = 0; i < 256; i++) {
        out[i % 32] |= (uint8_t)((codes[i] >> 2) << (i / 32));
        out[32 + i / 128 * 32 + i % 32] |= (uint8_t)((codes[i] & 3) << (i % 128 / 32 * 2));
    }
    for (int g = 0; g < 16; g++) {
        int scale = block.scale[g] + 32;
        out[96 + g % 8] |= (uint8_t)((scale & 0xF) << (g / 8 * 4));
        out[104 + g % 4] |= (uint8_t)((scale >> 4) << (g / 4 * 2));
    }
    put_half(out + 108, block.d);
}

/// What Q4_K and Q5_K share: factors, scales, and four bits of each code from `start` on.
static void put_k(const ck_quantized *block, const uint8_t *codes, int start, uint8_t *out) {
    put_half(out, block->d), put_half(out + 2, block->dmin);
    put_k_scales(out + 4, block->scale, block->minimum);
    for (int i = 0; i < 256; i++) out[start + i / 64 * 32 + i % 32] |= (uint8_t)((codes[i] & 0xF) << (i / 32 % 2 * 4));
}

static void write_Q4_K(const ck_quantize_kernels *k, const float *x, const float *w, uint8_t *out) {
    ck_quantized block;
    uint8_t codes[256];
    k->affine_block(x, w, 8, 32, 15, 63, &block);
    get_codes(&block, 0, codes);
    put_k(&block, codes, 16, out);
}

static void write_Q5_K(const ck_quantize_kernels *k, const float *x, const float *w, uint8_t *out) {
    ck_quantized block;
    uint8_t codes[256];
    k->affine_block(x, w, 8, 32, 31, 63, &block);
    get_codes(&block, 0, codes);
    for (int i = 0; i < 256; i++) out[16 + i % 32] |= (uint8_t)((codes[i] >> 4) << (i / 32));
    put_k(&block, codes, 48, out);
}

static void write_Q6_K(const ck_quantize_kernels *k, const float *x, const float *w, uint8_t *out) {
    ck_quantized block;
    uint8_t codes[256];
    k->scale_block(x, w, 16, 16, -32, 31, -128, &block);
    get_codes(&block, 32, codes);
    for (int i = 0; i < 256; i++) {
        int g = i / 32;
        out[g / 4 * 64 + g % 2 * 32 + i % 32] |= (uint8_t)((codes[i] & 0xF) << (g % 4 / 2 * 4));
        out[128 + g / 4 * 32 + i % 32] |= (uint8_t)((codes[i] >> 4) << (g % 4 * 2));
    }
    for (int g = 0; g < 16; g++) out[192 + g] = (uint8_t)(int8_t)block.scale[g];
    put_half(out + 208, block.d);
}

static void write_IQ4_XS(const ck_quantize_kernels *k, const float *x, const float *w, uint8_t *out) {
    ck_quantized block;
    uint8_t codes[256];
    uint16_t high = 0;
    k->table_block(x, w, 8, table_iq4, 16, &block);
    get_codes(&block, 0, codes);
    for (int g = 0; g < 8; g++) {
        int scale = block.scale[g] + 32;
        out[4 + g / 2] |= (uint8_t)((scale & 0xF) << (g % 2 * 4));
        high |= (uint16_t)((scale >> 4) << (2 * g));
        put_nibbles(out + 8 + 16 * g, codes + 32 * g);
    }
    put_half(out, block.d);
    memcpy(out + 2, &high, 2);
}

// MARK: - Types of 256 elements with grids

/// The levels are those of the decoder (quants.c) divided by the smallest one, with which scales are odd numbers.
static const float levels_iq2[4] = {1, 25.0f / 8, 43.0f / 8, 0}, levels_iq3_xxs[8] = {1, 3, 5, 7, 9, 11, 13, 15.5f},
                   levels_iq3_s[8] = {1, 3, 5, 7, 9, 11, 13, 15};

enum { GRID_IQ2_XXS, GRID_IQ2_XS, GRID_IQ2_S, GRID_IQ3_XXS, GRID_IQ3_S, GRIDS };
/// See `ck_grid`; `bits` are those of an element in an entry.
static const struct {
    const uint16_t *entries;
    int count, width, bits, group;
    const float *levels;
    int level_count;
    bool has_even_signs;
} grid_facts[GRIDS] = {
    [GRID_IQ2_XXS] = {grid_iq2_xxs, 256, 8, 2, 32, levels_iq2, 3, true},
    [GRID_IQ2_XS] = {grid_iq2_xs, 512, 8, 2, 16, levels_iq2, 3, true},
    [GRID_IQ2_S] = {grid_iq2_s, 1024, 8, 2, 16, levels_iq2, 3, false},
    [GRID_IQ3_XXS] = {grid_iq3_xxs, 256, 4, 3, 32, levels_iq3_xxs, 8, true},
    [GRID_IQ3_S] = {grid_iq3_s, 512, 4, 3, 32, levels_iq3_s, 8, false},
};

static struct {
    ck_grid grid;
    float levels[8 * 1024];
} grids[GRIDS];
static pthread_once_t grids_once = PTHREAD_ONCE_INIT;

static void make_grids(void) {
    for (int g = 0; g < GRIDS; g++) {
        int count = grid_facts[g].count, width = grid_facts[g].width, bits = grid_facts[g].bits, steps = grid_facts[g].level_count;
        const float *levels = grid_facts[g].levels;
        grids[g].grid = (ck_grid){grids[g].levels, count, width, grid_facts[g].group, levels, steps, levels[steps - 1],
                                  grid_facts[g].has_even_signs};
        for (int e = 0; e < count; e++)
            for (int i = 0; i < width; i++)
                grids[g].levels[i * count + e] = levels[grid_facts[g].entries[e] >> (bits * i) & ((1 << bits) - 1)];
    }
}

/// Chooses entries, signs and scales, and writes the factor.
static ck_grid_block fit_grid(const ck_quantize_kernels *k, int grid, const float *x, const float *w, uint8_t *out) {
    pthread_once(&grids_once, make_grids);
    ck_grid_block block = {0};
    k->grid_block(x, w, &grids[grid].grid, &block);
    put_half(out, block.d);
    return block;
}

/// The signs of 32 elements, 7 bits for 8 of them, and the scale.
static void put_signs_and_scale(const ck_grid_block *block, int group, uint8_t *out) {
    uint32_t word = (uint32_t)block->scale[group] << 28;
    for (int l = 0; l < 4; l++) word |= (uint32_t)(block->signs[4 * group + l] & 127) << (7 * l);
    memcpy(out, &word, 4);
}

static void write_IQ2_XXS(const ck_quantize_kernels *k, const float *x, const float *w, uint8_t *out) {
    ck_grid_block block = fit_grid(k, GRID_IQ2_XXS, x, w, out);
    for (int g = 0; g < 8; g++) {
        for (int l = 0; l < 4; l++) out[2 + 8 * g + l] = (uint8_t)block.entries[4 * g + l];
        put_signs_and_scale(&block, g, out + 2 + 8 * g + 4);
    }
}

static void write_IQ2_XS(const ck_quantize_kernels *k, const float *x, const float *w, uint8_t *out) {
    ck_grid_block block = fit_grid(k, GRID_IQ2_XS, x, w, out);
    for (int g = 0; g < 8; g++) {
        for (int l = 0; l < 4; l++) {
            uint16_t both = (uint16_t)(block.entries[4 * g + l] | (block.signs[4 * g + l] & 127) << 9);
            memcpy(out + 2 + 8 * g + 2 * l, &both, 2);
        }
        out[66 + g] = (uint8_t)(block.scale[2 * g] | block.scale[2 * g + 1] << 4);
    }
}

static void write_IQ2_S(const ck_quantize_kernels *k, const float *x, const float *w, uint8_t *out) {
    ck_grid_block block = fit_grid(k, GRID_IQ2_S, x, w, out);
    for (int g = 0; g < 8; g++) {
        for (int l = 0; l < 4; l++) {
            out[2 + 4 * g + l] = (uint8_t)block.entries[4 * g + l];
            out[34 + 4 * g + l] = block.signs[4 * g + l];
            out[66 + g] |= (uint8_t)((block.entries[4 * g + l] >> 8) << (2 * l));
        }
        out[74 + g] = (uint8_t)(block.scale[2 * g] | block.scale[2 * g + 1] << 4);
    }
}

static void write_IQ3_XXS(const ck_quantize_kernels *k, const float *x, const float *w, uint8_t *out) {
    ck_grid_block block = fit_grid(k, GRID_IQ3_XXS, x, w, out);
    for (int g = 0; g < 8; g++) {
        for (int l = 0; l < 8; l++) out[2 + 8 * g + l] = (uint8_t)block.entries[8 * g + l];
        put_signs_and_scale(&block, g, out + 66 + 4 * g);
    }
}

static void write_IQ3_S(const ck_quantize_kernels *k, const float *x, const float *w, uint8_t *out) {
    ck_grid_block block = fit_grid(k, GRID_IQ3_S, x, w, out);
    for (int g = 0; g < 8; g++) {
        for (int l = 0; l < 8; l++) {
            out[2 + 8 * g + l] = (uint8_t)block.entries[8 * g + l];
            out[66 + g] |= (uint8_t)((block.entries[8 * g + l] >> 8) << l);
        }
        memcpy(out + 74 + 4 * g, block.signs + 4 * g, 4);
        out[106 + g / 2] |= (uint8_t)(block.scale[g] << (g % 2 * 4));
    }
}

// MARK: - Types of numbers, and Q8_0

static void encode_F32(ck_isa isa, const float *x, size_t count, uint8_t *out) { memcpy(out, x, 4 * count); }

static void encode_F16(ck_isa isa, const float *x, size_t count, uint8_t *out) {
    enum { PART = 1 << 20 };
    for (size_t start = 0; start < count; start += PART)
        ck_kernels_for(isa)->to_half(x + start, (int32_t)(count - start < PART ? count - start : PART), (uint16_t *)out + start);
}

static void encode_BF16(ck_isa isa, const float *x, size_t count, uint8_t *out) {
    for (size_t i = 0; i < count; i++) {
        // Rounded to the nearest, ties to even; adding to a NaN could make it a number.
        uint32_t bits;
        memcpy(&bits, x + i, 4);
        uint16_t rounded = (uint16_t)((x[i] != x[i] ? bits | 0x400000 : bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
        memcpy(out + 2 * i, &rounded, 2);
    }
}

static void encode_Q8_0(ck_isa isa, const float *x, size_t count, uint8_t *blocks) {
    for (size_t start = 0; start < count; start += 32, blocks += 34) {
        float largest = 0;
        for (int i = 0; i < 32; i++) largest = fmaxf(largest, fabsf(x[start + i]));
        uint16_t scale = ck_float_to_half(largest / 127);
        float inverse = ck_half_to_float(scale) > 0 ? 1 / ck_half_to_float(scale) : 0;
        memcpy(blocks, &scale, 2);
        for (int i = 0; i < 32; i++) {
            float code = roundf(x[start + i] * inverse);
            ((int8_t *)blocks)[2 + i] = (int8_t)fmaxf(-127, fminf(127, code));
        }
    }
}

// MARK: - Whole tensors

bool ck_can_encode(ck_type type) {
    enum { NUMBERS = true, BLOCKS = true, SYMMETRIC = true, NOTHING = false };
    switch (type) {
#define CAN_ENCODE(name, number, elements, bytes, layout, reads, writes) case CK_TYPE_##name: return writes;
        CK_TYPES(CAN_ENCODE)
    }
    return false;
}

/// Encodes blocks of a type with weights for the errors of their elements.
static void encode_blocks(void (*write)(const ck_quantize_kernels *, const float *, const float *, uint8_t *), ck_isa isa,
                          size_t elements, size_t bytes, bool is_symmetric, const float *x, size_t count, const float *importance,
                          uint8_t *out) {
    const ck_quantize_kernels *k = kernels_for(isa);
    float weights[256];
    // Without an offset, the largest weights decide about the scale, if nothing is known of the columns.
    is_symmetric = is_symmetric && !importance;
    for (size_t start = 0; start < count; start += elements, out += bytes) {
        for (size_t group = start; group < start + elements; group += 32) {
            float squares = 0, known[2] = {0, 0};
            for (size_t i = group; i < group + 32; i++) squares += x[i] * x[i];
            // Columns that were never used are rounded as if nothing was known; scales are those of 16 or 32 columns.
            for (size_t i = group; importance && i < group + 32; i++) known[(i - group) / 16] += importance[i];
            float usual = sqrtf(squares / 32);
            // Errors of large weights count more. With equal weights, the square error is smaller, but the model diverges more
            // (BENCHMARKS.md, “Quantisation”).
            for (size_t i = group; i < group + 32; i++) {
                float large = is_symmetric ? usual * usual + x[i] * x[i] : usual + fabsf(x[i]);
                weights[i - start] = (known[(i - group) / 16] > 0 ? importance[i] : 1) * large;
            }
        }
        memset(out, 0, bytes);
        write(k, x + start, weights, out);
    }
}

void ck_encode_with(ck_isa isa, ck_type type, const float *x, size_t count, const float *importance, uint8_t *out) {
    switch (type) {
#define ENCODE_NOTHING(name, elements, bytes)
#define ENCODE_NUMBERS(name, elements, bytes) encode_##name(isa, x, count, out);
#define ENCODE_BLOCKS(name, elements, bytes) encode_blocks(write_##name, isa, elements, bytes, false, x, count, importance, out);
#define ENCODE_SYMMETRIC(name, elements, bytes) encode_blocks(write_##name, isa, elements, bytes, true, x, count, importance, out);
#define ENCODE(name, number, elements, bytes, layout, reads, writes) \
    case CK_TYPE_##name: ENCODE_##writes(name, elements, bytes) return;
        CK_TYPES(ENCODE)
    }
}

void ck_encode(ck_type type, const float *x, size_t count, const float *importance, uint8_t *out) {
    ck_encode_with(ck_kernels_best()->isa, type, x, count, importance, out);
}
