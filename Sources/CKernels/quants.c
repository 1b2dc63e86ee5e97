// Block structures and decoding of the tensor types of GGUF.
// The formats are defined by ggml (ggml-common.h and gguf-py's quants.py in the ggml repositories); all are
// little-endian.

#include <math.h>
#include <string.h>

#include "ckernels.h"
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

static float bfloat_to_float(uint16_t b) {
    uint32_t bits = (uint32_t)b << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

int32_t ck_type_block(ck_type type) {
    switch (type) {
        case CK_TYPE_F32: case CK_TYPE_F16: case CK_TYPE_BF16: return 1;
        case CK_TYPE_Q4_0: case CK_TYPE_Q4_1: case CK_TYPE_Q5_0: case CK_TYPE_Q5_1: case CK_TYPE_Q8_0: case CK_TYPE_IQ4_NL:
        case CK_TYPE_MXFP4: return 32;
        case CK_TYPE_NVFP4: case CK_TYPE_Q2_0: return 64;
        case CK_TYPE_Q1_0: return 128;
        case CK_TYPE_Q2_K: case CK_TYPE_Q3_K: case CK_TYPE_Q4_K: case CK_TYPE_Q5_K: case CK_TYPE_Q6_K: case CK_TYPE_IQ2_XXS:
        case CK_TYPE_IQ2_XS: case CK_TYPE_IQ3_XXS: case CK_TYPE_IQ1_S: case CK_TYPE_IQ3_S: case CK_TYPE_IQ2_S:
        case CK_TYPE_IQ4_XS: case CK_TYPE_IQ1_M: case CK_TYPE_TQ1_0: case CK_TYPE_TQ2_0: return 256;
    }
    return 0;
}

int32_t ck_type_bytes(ck_type type) {
    switch (type) {
        case CK_TYPE_F32: return 4;
        case CK_TYPE_F16: case CK_TYPE_BF16: return 2;
        case CK_TYPE_Q4_0: case CK_TYPE_IQ4_NL: case CK_TYPE_Q1_0: case CK_TYPE_Q2_0: return 18;
        case CK_TYPE_Q4_1: return 20;
        case CK_TYPE_Q5_0: return 22;
        case CK_TYPE_Q5_1: return 24;
        case CK_TYPE_Q8_0: return 34;
        case CK_TYPE_MXFP4: return 17;
        case CK_TYPE_NVFP4: return 36;
        case CK_TYPE_Q2_K: return 84;
        case CK_TYPE_Q3_K: return 110;
        case CK_TYPE_Q4_K: return 144;
        case CK_TYPE_Q5_K: return 176;
        case CK_TYPE_Q6_K: return 210;
        case CK_TYPE_IQ2_XXS: case CK_TYPE_TQ2_0: return 66;
        case CK_TYPE_IQ2_XS: return 74;
        case CK_TYPE_IQ2_S: return 82;
        case CK_TYPE_IQ3_XXS: return 98;
        case CK_TYPE_IQ3_S: return 110;
        case CK_TYPE_IQ1_S: return 50;
        case CK_TYPE_IQ1_M: return 56;
        case CK_TYPE_IQ4_XS: return 136;
        case CK_TYPE_TQ1_0: return 54;
    }
    return 0;
}

// MARK: - Types with integer kernels, 32 elements at a time

static float half_at(const uint8_t *at) {
    uint16_t half;
    memcpy(&half, at, 2);
    return ck_half_to_float(half);
}

static void nibbles(const uint8_t *q, uint8_t *codes) {
    for (int i = 0; i < 16; i++) codes[i] = q[i] & 0xF, codes[i + 16] = q[i] >> 4;
}

static void fifth_bits(uint32_t high, uint8_t *codes) {
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

void ck_read_group(ck_type type, const uint8_t *source, int group, ck_group *out) {
    out->offset = 0;
    out->scale[0] = out->scale[1] = out->minimum[0] = out->minimum[1] = 1;
    out->d = out->dmin = 0;
    switch (type) {
        case CK_TYPE_Q4_0: case CK_TYPE_IQ4_NL:
            nibbles(source + 2, out->q);
            out->d = half_at(source);
            out->offset = 8;
            break;
        case CK_TYPE_MXFP4:
            nibbles(source + 1, out->q);
            out->scale[0] = out->scale[1] = (int8_t)source[0];
            // The table contains doubled values, hence 2^(e − 128); e below 2 gives subnormal scales.
            out->d = ldexpf(1, source[0] - 128);
            break;
        case CK_TYPE_Q4_1:
            nibbles(source + 4, out->q);
            out->d = half_at(source);
            out->dmin = half_at(source + 2);
            break;
        case CK_TYPE_Q5_0: case CK_TYPE_Q5_1: {
            bool minimum = type == CK_TYPE_Q5_1;
            uint32_t high;
            memcpy(&high, source + (minimum ? 4 : 2), 4);
            nibbles(source + (minimum ? 8 : 6), out->q);
            fifth_bits(high, out->q);
            out->d = half_at(source);
            if (minimum) out->dmin = half_at(source + 2);
            else out->offset = 16;
            break;
        }
        case CK_TYPE_Q8_0:
            for (int i = 0; i < 32; i++) out->q[i] = source[2 + i] ^ 0x80;
            out->d = half_at(source);
            out->offset = 128;
            break;
        case CK_TYPE_Q4_K: case CK_TYPE_Q5_K: {
            bool five = type == CK_TYPE_Q5_K;
            const uint8_t *q = source + 16 + (five ? 32 : 0) + group / 2 * 32, *high = source + 16;
            int shift = group % 2 * 4;
            for (int i = 0; i < 32; i++) out->q[i] = q[i] >> shift & 0xF;
            if (five)
                for (int i = 0; i < 32; i++) out->q[i] |= (high[i] >> group & 1) << 4;
            uint8_t scale, minimum;
            k_scale(source + 4, group, &scale, &minimum);
            out->scale[0] = out->scale[1] = (int8_t)scale;
            out->minimum[0] = out->minimum[1] = minimum;
            out->d = half_at(source);
            out->dmin = -half_at(source + 2);
            break;
        }
        case CK_TYPE_Q6_K: {
            const uint8_t *low = source + group / 4 * 64 + group % 2 * 32, *high = source + 128 + group / 4 * 32;
            int low_shift = group % 4 / 2 * 4, high_shift = group % 4 * 2;
            for (int i = 0; i < 32; i++)
                out->q[i] = (uint8_t)((low[i] >> low_shift & 0xF) | (high[i] >> high_shift & 3) << 4);
            out->scale[0] = (int8_t)source[192 + 2 * group];
            out->scale[1] = (int8_t)source[192 + 2 * group + 1];
            out->d = half_at(source + 208);
            out->offset = 32;
            break;
        }
        case CK_TYPE_Q2_K: case CK_TYPE_Q3_K: {
            bool three = type == CK_TYPE_Q3_K;
            const uint8_t *q = source + (three ? 32 : 16) + group / 4 * 32;
            for (int i = 0; i < 32; i++) out->q[i] = q[i] >> (group % 4 * 2) & 3;
            if (three) {
                for (int i = 0; i < 32; i++) out->q[i] |= (source[i] >> group & 1) << 2;
                for (int part = 0; part < 2; part++) out->scale[part] = q3_scale(source + 96, 2 * group + part);
                out->d = half_at(source + 108);
                out->offset = 4;
            } else {
                for (int part = 0; part < 2; part++) {
                    out->scale[part] = source[2 * group + part] & 0xF;
                    out->minimum[part] = source[2 * group + part] >> 4;
                }
                out->d = half_at(source + 80);
                out->dmin = -half_at(source + 82);
            }
            break;
        }
        case CK_TYPE_IQ4_XS: {
            uint16_t high;
            memcpy(&high, source + 2, 2);
            nibbles(source + 8 + 16 * group, out->q);
            int scale = (source[4 + group / 2] >> (group % 2 * 4) & 0xF) | (high >> (2 * group) & 3) << 4;
            out->scale[0] = out->scale[1] = (int8_t)(scale - 32);
            out->d = half_at(source);
            break;
        }
        default: memset(out->q, 0, sizeof out->q);
    }
}

static const int8_t values_iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
static const int8_t values_fp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

static void dequantize_group(ck_type type, const uint8_t *source, int group, float *out) {
    ck_group g;
    ck_read_group(type, source, group, &g);
    const int8_t *table = type == CK_TYPE_MXFP4 ? values_fp4 : values_iq4;
    bool looks_up = type == CK_TYPE_MXFP4 || type == CK_TYPE_IQ4_NL || type == CK_TYPE_IQ4_XS;
    for (int half = 0; half < 2; half++) {
        float scale = type == CK_TYPE_MXFP4 ? g.d : g.d * (float)g.scale[half], minimum = g.dmin * (float)g.minimum[half];
        const uint8_t *q = g.q + 16 * half;
        float *at = out + 16 * half;
        int offset = g.offset;
        // Two loops without branches, which the compiler makes vectors of.
        if (looks_up)
            for (int i = 0; i < 16; i++) at[i] = scale * (float)table[q[i]] + minimum;
        else
            for (int i = 0; i < 16; i++) at[i] = scale * (float)(q[i] - offset) + minimum;
    }
}

// MARK: - Types without integer kernels, a block at a time

/// The sign of element `i`. Seven bits encode eight signs: the number of negative signs is even.
static float sign_of(uint32_t id, int i) {
    uint32_t signs = id | (uint32_t)(__builtin_popcount(id) & 1) << 7;
    return signs >> i & 1 ? -1 : 1;
}

static float grid2(uint16_t entry, int i) {
    static const float values[4] = {8, 25, 43, 0};
    return values[entry >> (2 * i) & 3];
}

static void dequantize_iq2(ck_type type, const uint8_t *source, float *out) {
    float d = half_at(source);
    for (int group = 0; group < 8; group++) {
        for (int l = 0; l < 4; l++) {
            uint16_t entry;
            uint32_t signs;
            float scale;
            bool explicit_signs = type == CK_TYPE_IQ2_S;
            if (type == CK_TYPE_IQ2_XXS) {
                uint32_t word;
                memcpy(&word, source + 2 + 8 * group + 4, 4);
                entry = grid_iq2_xxs[source[2 + 8 * group + l]];
                signs = word >> (7 * l) & 127;
                scale = d * (0.5f + (float)(word >> 28)) * 0.25f;
            } else {
                uint8_t pair = source[(type == CK_TYPE_IQ2_XS ? 66 : 74) + group];
                scale = d * (0.5f + (float)(l < 2 ? pair & 0xF : pair >> 4)) * 0.25f;
                if (type == CK_TYPE_IQ2_XS) {
                    uint16_t word;
                    memcpy(&word, source + 2 + 8 * group + 2 * l, 2);
                    entry = grid_iq2_xs[word & 511];
                    signs = word >> 9;
                } else {
                    entry = grid_iq2_s[source[2 + 4 * group + l] | (source[66 + group] >> (2 * l) & 3) << 8];
                    signs = source[34 + 4 * group + l];
                }
            }
            for (int i = 0; i < 8; i++) {
                float sign = explicit_signs ? (signs >> i & 1 ? -1.0f : 1.0f) : sign_of(signs, i);
                out[32 * group + 8 * l + i] = scale * grid2(entry, i) * sign;
            }
        }
    }
}

static void dequantize_iq3(ck_type type, const uint8_t *source, float *out) {
    static const float values_xxs[8] = {4, 12, 20, 28, 36, 44, 52, 62};
    float d = half_at(source);
    for (int group = 0; group < 8; group++) {
        uint32_t word = 0;
        if (type == CK_TYPE_IQ3_XXS) memcpy(&word, source + 66 + 4 * group, 4);
        uint8_t nibble = source[106 * (type == CK_TYPE_IQ3_S) + group / 2] >> (group % 2 * 4) & 0xF;
        float scale = type == CK_TYPE_IQ3_XXS ? d * (0.5f + (float)(word >> 28)) * 0.5f : d * (float)(1 + 2 * nibble);
        for (int l = 0; l < 8; l++) {
            uint8_t index = source[2 + 8 * group + l];
            uint16_t entry = type == CK_TYPE_IQ3_XXS ? grid_iq3_xxs[index]
                                                     : grid_iq3_s[index | (source[66 + group] >> l & 1) << 8];
            for (int i = 0; i < 4; i++) {
                int value = entry >> (3 * i) & 7, at = 4 * l + i;
                float sign = type == CK_TYPE_IQ3_XXS ? sign_of(word >> (7 * (at / 8)) & 127, at % 8)
                                                     : (source[74 + 4 * group + at / 8] >> (at % 8) & 1 ? -1.0f : 1.0f);
                out[32 * group + at] = scale * (type == CK_TYPE_IQ3_XXS ? values_xxs[value] : (float)(2 * value + 1)) * sign;
            }
        }
    }
}

static void dequantize_iq1(ck_type type, const uint8_t *source, float *out) {
    bool m = type == CK_TYPE_IQ1_M;
    uint16_t scales[4];
    if (m) memcpy(scales, source + 48, 8);
    uint16_t packed = m ? (uint16_t)(scales[0] >> 12 | (scales[1] >> 8 & 0xF0) | (scales[2] >> 4 & 0xF00) | (scales[3] & 0xF000)) : 0;
    float d = m ? ck_half_to_float(packed) : half_at(source);
    const uint8_t *q = source + (m ? 0 : 2);
    for (int group = 0; group < 8; group++) {
        for (int l = 0; l < 4; l++) {
            int index = q[4 * group + l];
            float scale, delta;
            if (m) {
                uint8_t high = source[32 + 2 * group + l / 2] >> (l % 2 * 4);
                index |= (high & 7) << 8;
                scale = d * (float)(2 * (scales[group / 2] >> (6 * (group % 2) + 3 * (l / 2)) & 7) + 1);
                delta = high & 8 ? -0.125f : 0.125f;
            } else {
                uint16_t high;
                memcpy(&high, source + 34 + 2 * group, 2);
                index |= (high >> (3 * l) & 7) << 8;
                scale = d * (float)(2 * (high >> 12 & 7) + 1);
                delta = high & 0x8000 ? -0.125f : 0.125f;
            }
            for (int i = 0; i < 8; i++)
                out[32 * group + 8 * l + i] = scale * ((float)((grid_iq1_s[index] >> (2 * i) & 3) - 1) + delta);
        }
    }
}

static void dequantize_ternary(ck_type type, const uint8_t *source, float *out) {
    static const uint8_t powers[5] = {1, 3, 9, 27, 81};
    float d = half_at(source + (type == CK_TYPE_TQ1_0 ? 52 : 64));
    if (type == CK_TYPE_TQ2_0) {
        for (int half = 0; half < 2; half++)
            for (int l = 0; l < 4; l++)
                for (int i = 0; i < 32; i++)
                    *out++ = d * (float)((source[32 * half + i] >> (2 * l) & 3) - 1);
        return;
    }
    static const int first[3] = {0, 32, 48}, count[3] = {32, 16, 4}, trits[3] = {5, 5, 4};
    for (int stretch = 0; stretch < 3; stretch++)
        for (int n = 0; n < trits[stretch]; n++)
            for (int i = 0; i < count[stretch]; i++) {
                uint8_t v = (uint8_t)(source[first[stretch] + i] * powers[n]);
                *out++ = d * (float)((v * 3 >> 8) - 1);
            }
}

/// Decodes an unsigned number with 4 bits of exponent (bias 7) and 3 bits of fraction.
static float ue4m3(uint8_t x) {
    if (x == 0 || x == 0x7F) return 0;
    int exponent = x >> 3 & 0xF, fraction = x & 7;
    return exponent == 0 ? ldexpf((float)fraction, -9) : ldexpf(1 + (float)fraction / 8, exponent - 7);
}

static void dequantize_small(ck_type type, const uint8_t *source, float *out) {
    if (type == CK_TYPE_NVFP4) {
        for (int part = 0; part < 4; part++) {
            float scale = ue4m3(source[part]) * 0.5f;
            for (int i = 0; i < 8; i++) {
                uint8_t pair = source[4 + 8 * part + i];
                out[16 * part + i] = scale * (float)values_fp4[pair & 0xF];
                out[16 * part + 8 + i] = scale * (float)values_fp4[pair >> 4];
            }
        }
    } else if (type == CK_TYPE_Q1_0) {
        float d = half_at(source);
        for (int i = 0; i < 128; i++) out[i] = source[2 + i / 8] >> (i % 8) & 1 ? d : -d;
    } else {
        float d = half_at(source);
        for (int i = 0; i < 64; i++) out[i] = d * (float)((source[2 + i / 4] >> (i % 4 * 2) & 3) - 1);
    }
}

static void dequantize_float(ck_type type, const uint8_t *source, size_t count, float *out) {
    if (type == CK_TYPE_F32) {
        memcpy(out, source, 4 * count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, source + 2 * i, 2);
        out[i] = type == CK_TYPE_F16 ? half_value(half) : bfloat_to_float(half);
    }
}

void ck_dequantize(ck_type type, const uint8_t *source, size_t count, float *destination) {
    size_t block = (size_t)ck_type_block(type), bytes = (size_t)ck_type_bytes(type);
    if (block == 1) {
        dequantize_float(type, source, count, destination);
        return;
    }
    for (size_t start = 0; block > 0 && start < count; start += block, source += bytes, destination += block) {
        switch (type) {
            case CK_TYPE_IQ2_XXS: case CK_TYPE_IQ2_XS: case CK_TYPE_IQ2_S: dequantize_iq2(type, source, destination); break;
            case CK_TYPE_IQ3_XXS: case CK_TYPE_IQ3_S: dequantize_iq3(type, source, destination); break;
            case CK_TYPE_IQ1_S: case CK_TYPE_IQ1_M: dequantize_iq1(type, source, destination); break;
            case CK_TYPE_TQ1_0: case CK_TYPE_TQ2_0: dequantize_ternary(type, source, destination); break;
            case CK_TYPE_NVFP4: case CK_TYPE_Q1_0: case CK_TYPE_Q2_0: dequantize_small(type, source, destination); break;
            default:
                for (size_t group = 0; group < block / 32; group++)
                    dequantize_group(type, source, (int)group, destination + 32 * group);
        }
    }
}

void ck_quantize_q8_0(const float *x, size_t count, uint8_t *blocks) {
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
