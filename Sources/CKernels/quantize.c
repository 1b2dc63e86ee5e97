// Quantisation: the blocks of the tensor types from numbers. See quants.c for the way back.

#define NAME(x) x##_quantize_scalar
#define KERNELS ck_quantize_scalar
#define TARGET

#include "quantize_rows.h"

#include <pthread.h>

#include "grids.h"
#include "quants.h"

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

static const float table_iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
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

/// Types of one group of 32 elements.
static void quantize_group(const ck_quantize_kernels *k, ck_type type, const float *x, const float *w, uint8_t *out) {
    ck_quantized block;
    uint8_t codes[32];
    int offset = 0;
    switch (type) {
        case CK_TYPE_Q4_0: k->one(x, w, -8, 7, false, &block), offset = 8; break;
        case CK_TYPE_Q5_0: k->one(x, w, -16, 15, false, &block), offset = 16; break;
        case CK_TYPE_Q4_1: k->one(x, w, 0, 15, true, &block); break;
        case CK_TYPE_Q5_1: k->one(x, w, 0, 31, true, &block); break;
        case CK_TYPE_IQ4_NL: k->table_block(x, w, 1, table_iq4, 16, &block); break;
        default: out[0] = (uint8_t)k->power(x, w, table_fp4, 15, block.codes);
    }
    for (int i = 0; i < 32; i++) codes[i] = (uint8_t)((int)block.codes[i] + offset);
    if (type == CK_TYPE_MXFP4) {
        for (int i = 0; i < 32; i++) codes[i] = codes_fp4[codes[i]];
        put_nibbles(out + 1, codes);
        return;
    }
    put_half(out, block.d);
    out += 2;
    if (type == CK_TYPE_Q4_1 || type == CK_TYPE_Q5_1) put_half(out, -block.dmin), out += 2;
    if (type == CK_TYPE_Q5_0 || type == CK_TYPE_Q5_1) put_fifth_bits(out, codes), out += 4;
    put_nibbles(out, codes);
}

static void put_k_scales(uint8_t *out, const int *scale, const int *minimum) {
    for (int i = 0; i < 4; i++) {
        out[i] = (uint8_t)(scale[i] | (scale[i + 4] >> 4) << 6);
        out[i + 4] = (uint8_t)(minimum[i] | (minimum[i + 4] >> 4) << 6);
        out[i + 8] = (uint8_t)((scale[i + 4] & 0xF) | (minimum[i + 4] & 0xF) << 4);
    }
}

/// Types of 256 elements.
static void quantize_block(const ck_quantize_kernels *k, ck_type type, const float *x, const float *w, uint8_t *out) {
    ck_quantized block;
    uint8_t codes[256];
    int offset = 0;
    memset(out, 0, (size_t)ck_type_bytes(type));
    switch (type) {
        case CK_TYPE_Q2_K: k->affine_block(x, w, 16, 16, 3, 15, &block); break;
        case CK_TYPE_Q4_K: k->affine_block(x, w, 8, 32, 15, 63, &block); break;
        case CK_TYPE_Q5_K: k->affine_block(x, w, 8, 32, 31, 63, &block); break;
        case CK_TYPE_Q3_K: k->scale_block(x, w, 16, 16, -4, 3, -32, &block), offset = 4; break;
        case CK_TYPE_Q6_K: k->scale_block(x, w, 16, 16, -32, 31, -128, &block), offset = 32; break;
        default: k->table_block(x, w, 8, table_iq4, 16, &block);
    }
    for (int i = 0; i < 256; i++) codes[i] = (uint8_t)((int)block.codes[i] + offset);
    switch (type) {
        case CK_TYPE_Q2_K:
            for (int g = 0; g < 16; g++) out[g] = (uint8_t)(block.scale[g] | block.minimum[g] << 4);
            for (int i = 0; i < 256; i++) out[16 + i / 128 * 32 + i % 32] |= (uint8_t)(codes[i] << (i % 128 / 32 * 2));
            put_half(out + 80, block.d), put_half(out + 82, block.dmin);
            break;
        case CK_TYPE_Q3_K:
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
            break;
        case CK_TYPE_Q4_K: case CK_TYPE_Q5_K: {
            int start = 16;
            put_half(out, block.d), put_half(out + 2, block.dmin);
            put_k_scales(out + 4, block.scale, block.minimum);
            if (type == CK_TYPE_Q5_K) {
                for (int i = 0; i < 256; i++) out[16 + i % 32] |= (uint8_t)((codes[i] >> 4) << (i / 32));
                start += 32;
            }
            for (int i = 0; i < 256; i++) out[start + i / 64 * 32 + i % 32] |= (uint8_t)((codes[i] & 0xF) << (i / 32 % 2 * 4));
            break;
        }
        case CK_TYPE_Q6_K:
            for (int i = 0; i < 256; i++) {
                int g = i / 32;
                out[g / 4 * 64 + g % 2 * 32 + i % 32] |= (uint8_t)((codes[i] & 0xF) << (g % 4 / 2 * 4));
                out[128 + g / 4 * 32 + i % 32] |= (uint8_t)((codes[i] >> 4) << (g % 4 * 2));
            }
            for (int g = 0; g < 16; g++) out[192 + g] = (uint8_t)(int8_t)block.scale[g];
            put_half(out + 208, block.d);
            break;
        default: {
            uint16_t high = 0;
            for (int g = 0; g < 8; g++) {
                int scale = block.scale[g] + 32;
                out[4 + g / 2] |= (uint8_t)((scale & 0xF) << (g % 2 * 4));
                high |= (uint16_t)((scale >> 4) << (2 * g));
                put_nibbles(out + 8 + 16 * g, codes + 32 * g);
            }
            put_half(out, block.d);
            memcpy(out + 2, &high, 2);
        }
    }
}

// MARK: - Grids

typedef struct {
    ck_grid grid;
    float levels[8 * 1024];
} grid_table;

static grid_table grids[5];
static pthread_once_t grids_once = PTHREAD_ONCE_INIT;

static const ck_type grid_types[5] = {CK_TYPE_IQ2_XXS, CK_TYPE_IQ2_XS, CK_TYPE_IQ2_S, CK_TYPE_IQ3_XXS, CK_TYPE_IQ3_S};

/// The levels are those of the decoder (quants.c) divided by the smallest one, with which scales are odd numbers.
static void make_grids(void) {
    static const float two[4] = {1, 25.0f / 8, 43.0f / 8, 0}, three[8] = {1, 3, 5, 7, 9, 11, 13, 15.5f},
                       odd[8] = {1, 3, 5, 7, 9, 11, 13, 15};
    static const uint16_t *const entries[5] = {grid_iq2_xxs, grid_iq2_xs, grid_iq2_s, grid_iq3_xxs, grid_iq3_s};
    static const int counts[5] = {256, 512, 1024, 256, 512}, sizes[5] = {32, 16, 16, 32, 32};
    for (int k = 0; k < 5; k++) {
        bool is_two = k < 3;
        int width = is_two ? 8 : 4, bits = is_two ? 2 : 3;
        const float *levels = is_two ? two : k == 3 ? three : odd;
        int steps = is_two ? 3 : 8;
        grids[k].grid = (ck_grid){grids[k].levels, counts[k], width, sizes[k], levels, steps, levels[steps - 1], k != 2 && k != 4};
        for (int e = 0; e < counts[k]; e++)
            for (int i = 0; i < width; i++) grids[k].levels[i * counts[k] + e] = levels[entries[k][e] >> (bits * i) & ((1 << bits) - 1)];
    }
}

static const ck_grid *grid_of(ck_type type) {
    for (int k = 0; k < 5; k++)
        if (grid_types[k] == type) {
            pthread_once(&grids_once, make_grids);
            return &grids[k].grid;
        }
    return NULL;
}

static void quantize_grid(const ck_quantize_kernels *k, ck_type type, const ck_grid *grid, const float *x, const float *w, uint8_t *out) {
    ck_grid_block block = {0};
    k->grid_block(x, w, grid, &block);
    memset(out, 0, (size_t)ck_type_bytes(type));
    put_half(out, block.d);
    for (int g = 0; g < 8; g++) {
        uint32_t word = 0;
        for (int l = 0; l < 4; l++) word |= (uint32_t)(block.signs[4 * g + l] & 127) << (7 * l);
        switch (type) {
            case CK_TYPE_IQ2_XXS:
                for (int l = 0; l < 4; l++) out[2 + 8 * g + l] = (uint8_t)block.entries[4 * g + l];
                word |= (uint32_t)block.scale[g] << 28;
                memcpy(out + 2 + 8 * g + 4, &word, 4);
                break;
            case CK_TYPE_IQ2_XS:
                for (int l = 0; l < 4; l++) {
                    uint16_t both = (uint16_t)(block.entries[4 * g + l] | (block.signs[4 * g + l] & 127) << 9);
                    memcpy(out + 2 + 8 * g + 2 * l, &both, 2);
                }
                out[66 + g] = (uint8_t)(block.scale[2 * g] | block.scale[2 * g + 1] << 4);
                break;
            case CK_TYPE_IQ2_S:
                for (int l = 0; l < 4; l++) {
                    out[2 + 4 * g + l] = (uint8_t)block.entries[4 * g + l];
                    out[34 + 4 * g + l] = block.signs[4 * g + l];
                    out[66 + g] |= (uint8_t)((block.entries[4 * g + l] >> 8) << (2 * l));
                }
                out[74 + g] = (uint8_t)(block.scale[2 * g] | block.scale[2 * g + 1] << 4);
                break;
            case CK_TYPE_IQ3_XXS:
                for (int l = 0; l < 8; l++) out[2 + 8 * g + l] = (uint8_t)block.entries[8 * g + l];
                word |= (uint32_t)block.scale[g] << 28;
                memcpy(out + 66 + 4 * g, &word, 4);
                break;
            default:
                for (int l = 0; l < 8; l++) {
                    out[2 + 8 * g + l] = (uint8_t)block.entries[8 * g + l];
                    out[66 + g] |= (uint8_t)((block.entries[8 * g + l] >> 8) << l);
                }
                memcpy(out + 74 + 4 * g, block.signs + 4 * g, 4);
                out[106 + g / 2] |= (uint8_t)(block.scale[g] << (g % 2 * 4));
        }
    }
}

bool ck_can_encode(ck_type type) {
    switch (type) {
        case CK_TYPE_F32: case CK_TYPE_F16: case CK_TYPE_BF16: case CK_TYPE_Q8_0: case CK_TYPE_Q4_0: case CK_TYPE_Q4_1:
        case CK_TYPE_Q5_0: case CK_TYPE_Q5_1: case CK_TYPE_IQ4_NL: case CK_TYPE_MXFP4: case CK_TYPE_Q2_K: case CK_TYPE_Q3_K:
        case CK_TYPE_Q4_K: case CK_TYPE_Q5_K: case CK_TYPE_Q6_K: case CK_TYPE_IQ4_XS:
            return true;
        case CK_TYPE_IQ2_XXS: case CK_TYPE_IQ2_XS: case CK_TYPE_IQ2_S: case CK_TYPE_IQ3_XXS: case CK_TYPE_IQ3_S: return true;
        default: return false;
    }
}

void ck_encode_with(ck_isa isa, ck_type type, const float *x, size_t count, const float *importance, uint8_t *out) {
    const ck_quantize_kernels *k = kernels_for(isa);
    size_t block = (size_t)ck_type_block(type), bytes = (size_t)ck_type_bytes(type);
    if (type == CK_TYPE_Q8_0) {
        ck_quantize_q8_0(x, count, out);
        return;
    }
    float weights[256];
    const ck_grid *grid = grid_of(type);
    // Without an offset, the largest weights decide about the scale, if nothing is known of the columns.
    bool is_symmetric = !importance && (type == CK_TYPE_Q3_K || type == CK_TYPE_Q6_K);
    for (size_t start = 0; start < count; start += block, out += bytes) {
        for (size_t group = start; group < start + block; group += 32) {
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
        if (grid) quantize_grid(k, type, grid, x + start, weights, out);
        else if (block == 32) quantize_group(k, type, x + start, weights, out);
        else quantize_block(k, type, x + start, weights, out);
    }
}

void ck_encode(ck_type type, const float *x, size_t count, const float *importance, uint8_t *out) {
    ck_encode_with(ck_kernels_best()->isa, type, x, count, importance, out);
}
