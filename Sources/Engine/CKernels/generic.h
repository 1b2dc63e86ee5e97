// The kernels as portable vector code. The file of each instruction set includes this file once and defines
//   NAME(x)         the function name with the suffix of the instruction set
//   TARGET          the target attribute
//   LOAD_HALF16(p)  loads 16 binary16 values as v16f
//   STORE_HALF16(p, v)  stores a v16f as 16 binary16 values, rounding to nearest even
//   LOOK_UP(table, codes)  looks up 64 indices in a table of 16 bytes
//   ACCUMULATORS    the number of v16f that stay in registers beside operands, 6 to 12
//   OWN_QUANTIZE    if the file has its own `quantize`
// The compiler maps the 16-lane vectors to the vectors of the target. Kernels that are faster with intrinsics are in
// the file of their instruction set, and tests compare them with the code here.

#include <math.h>
#include <string.h>

#include "ckernels.h"
#include "formats.h"
#include "vectors.h"

#ifndef OWN_QUANTIZE
/// Quantises a row whose scales are multiples of one unit for every 256 columns.
TARGET static void NAME(quantize_blocks)(const ck_activations *a, int32_t row) {
    size_t columns = (size_t)a->columns, first = (size_t)row * columns;
    for (size_t block = first / 256; block < (first + columns) / 256; block++) {
        const float *x = a->x + block * 256;
        int8_t *q = a->q + block * 256;
        float needs[8], total = 0, largest = 0;
        for (int group = 0; group < 8; group++) {
            v16f low = NAME(load)(x + 32 * group), high = NAME(load)(x + 32 * group + 16);
            v16f low_magnitude = (v16f)((v16i)low & 0x7FFFFFFF), high_magnitude = (v16f)((v16i)high & 0x7FFFFFFF);
            float maximum = NAME(reduce_max)(NAME(select)(low_magnitude > high_magnitude, low_magnitude, high_magnitude));
            float low_sum = NAME(sum)(low_magnitude), high_sum = NAME(sum)(high_magnitude);
            needs[group] = ck_block_needs(maximum, low_sum, high_sum);
            largest = needs[group] > largest ? needs[group] : largest;
            total += low_sum + high_sum;
        }
        float unit = ck_block_unit(total, largest);
        bool usable = unit > CK_SMALLEST && unit < INFINITY;
        a->unit[block] = unit;
        for (int group = 0; group < 8; group++) {
            float factor = usable ? ceilf(needs[group] / unit) : 0;
            if (factor > 127) factor = 127;
            float scale = unit * factor, inverse = factor > 0 ? 1 / scale : 0;
            size_t place = block * 8 + (size_t)group;
            int32_t sums[2];
            for (int half = 0; half < 2; half++) {
                v16i codes = (v16i)(NAME(load)(x + 32 * group + 16 * half) * inverse + 12582912.0f) - 0x4B400000;
                if (factor == 0) codes = (v16i)NAME(splat)(0);
                *(v16c *)(q + 32 * group + 16 * half) = __builtin_convertvector(codes, v16c);
                sums[half] = __builtin_reduce_add(codes);
                a->sums[2 * place + (size_t)half] = -sums[half];
                a->starts[2 * place + (size_t)half] = -32 * sums[half];
            }
            // An arithmetic shift rounds towards minus infinity.
            int32_t weighted = ((int32_t)factor * (sums[0] + sums[1]) + 4) >> 3;
            a->factors[place] = (int16_t)factor;
            a->weighted[place] = (int16_t)weighted;
            a->d[place] = usable ? scale : unit;
            a->s[place] = 8 * unit * (float)weighted;
        }
    }
}

TARGET static void NAME(quantize)(const ck_activations *a, int32_t row) {
    if (a->unit) {
        NAME(quantize_blocks)(a, row);
        return;
    }
    size_t columns = (size_t)a->columns, blocks = columns / 32;
    const float *x = a->x + (size_t)row * columns;
    int8_t *q = a->q + (size_t)row * columns;
    float *d = a->d + (size_t)row * blocks, *s = a->s + (size_t)row * blocks;
    int32_t *sums = a->sums + (size_t)row * 2 * blocks;
    for (size_t block = 0; block < blocks; block++, x += 32, q += 32) {
        v16f low = NAME(load)(x), high = NAME(load)(x + 16);
        v16f low_magnitude = (v16f)((v16i)low & 0x7FFFFFFF), high_magnitude = (v16f)((v16i)high & 0x7FFFFFFF);
        float largest = NAME(reduce_max)(NAME(select)(low_magnitude > high_magnitude, low_magnitude, high_magnitude));
        float scale = largest / 127, inverse = largest > CK_SMALLEST && largest < INFINITY ? 127 / largest : 0;
        // Adding 1.5·2^23 rounds to nearest even and leaves the integer in the low bits.
        v16i low_codes = (v16i)(low * inverse + 12582912.0f) - 0x4B400000;
        v16i high_codes = (v16i)(high * inverse + 12582912.0f) - 0x4B400000;
        *(v16c *)q = __builtin_convertvector(low_codes, v16c);
        *(v16c *)(q + 16) = __builtin_convertvector(high_codes, v16c);
        int32_t low_sum = __builtin_reduce_add(low_codes), high_sum = __builtin_reduce_add(high_codes);
        d[block] = scale;
        s[block] = scale * (float)(low_sum + high_sum);
        sums[2 * block] = -low_sum;
        sums[2 * block + 1] = -high_sum;
    }
}
#endif

TARGET static void NAME(rmsnorm)(const float *x, const float *weight, float epsilon, int32_t n, float *out) {
    v16f squares = NAME(splat)(0);
    int32_t i = 0;
    for (; i + 16 <= n; i += 16) {
        v16f v = NAME(load)(x + i);
        squares += v * v;
    }
    float total = NAME(sum)(squares);
    for (; i < n; i++) total += x[i] * x[i];
    float inverse = 1 / sqrtf(total / (float)n + epsilon);
    if (!weight) {
        for (i = 0; i < n; i++) out[i] = x[i] * inverse;
        return;
    }
    for (i = 0; i + 16 <= n; i += 16) NAME(store)(out + i, NAME(load)(x + i) * inverse * NAME(load)(weight + i));
    for (; i < n; i++) out[i] = x[i] * inverse * weight[i];
}

TARGET static void NAME(layernorm)(const float *x, const float *weight, const float *bias, float epsilon, int32_t n,
                                   float *out) {
    v16f sums = NAME(splat)(0), squares = NAME(splat)(0);
    int32_t i = 0;
    for (; i + 16 <= n; i += 16) sums += NAME(load)(x + i);
    float mean = NAME(sum)(sums), variance;
    for (; i < n; i++) mean += x[i];
    mean /= (float)n;
    for (i = 0; i + 16 <= n; i += 16) {
        v16f v = NAME(load)(x + i) - mean;
        squares += v * v;
    }
    variance = NAME(sum)(squares);
    for (; i < n; i++) variance += (x[i] - mean) * (x[i] - mean);
    float inverse = 1 / sqrtf(variance / (float)n + epsilon);
    for (i = 0; i + 16 <= n; i += 16) {
        v16f v = (NAME(load)(x + i) - mean) * inverse * NAME(load)(weight + i);
        NAME(store)(out + i, bias ? v + NAME(load)(bias + i) : v);
    }
    for (; i < n; i++) out[i] = (x[i] - mean) * inverse * weight[i] + (bias ? bias[i] : 0);
}

/// erf(x) with an absolute error below 2e-7 (Abramowitz and Stegun, 7.1.26).
TARGET INLINE v16f NAME(erf16)(v16f x) {
    v16f magnitude = (v16f)((v16i)x & 0x7FFFFFFF), t = 1.0f / (magnitude * 0.3275911f + 1.0f);
    v16f p = t * 1.061405429f - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    v16f y = 1.0f - p * t * NAME(exp16)(-(magnitude * magnitude));
    return (v16f)((v16i)y | ((v16i)x & (int32_t)0x80000000));
}

TARGET INLINE v16f NAME(activated)(ck_activation kind, v16f g, v16f u) {
    switch (kind) {
        case CK_SILU: return g / (NAME(exp16)(-g) + 1.0f) * u;
        case CK_GELU: return g * 0.5f * (NAME(tanh16)(g * 0.79788456080286535588f * (g * g * 0.044715f + 1.0f)) + 1.0f) * u;
        case CK_GELU_ERF: return g * 0.5f * (NAME(erf16)(g * 0.70710678118654752440f) + 1.0f) * u;
        case CK_RELU_SQUARED: {
            v16f positive = NAME(select)(g > 0.0f, g, NAME(splat)(0));
            return positive * positive * u;
        }
        case CK_SWIGLU_OAI:
            g = NAME(select)(g > 7.0f, NAME(splat)(7.0f), g);
            u = NAME(select)(u > 7.0f, NAME(splat)(7.0f), NAME(select)(u < -7.0f, NAME(splat)(-7.0f), u));
            return g / (NAME(exp16)(g * -1.702f) + 1.0f) * (u + 1.0f);
    }
    return g;
}

TARGET static void NAME(activate)(ck_activation kind, float *gate, const float *up, int32_t n) {
    int32_t i = 0;
    for (; i + 16 <= n; i += 16) {
        v16f u = up ? NAME(load)(up + i) : NAME(splat)(1);
        NAME(store)(gate + i, NAME(activated)(kind, NAME(load)(gate + i), u));
    }
    if (i == n) return;
    // The remaining elements are padded to a vector, so that they use the same arithmetic.
    v16f g = NAME(splat)(0), u = NAME(splat)(1);
    for (int32_t j = i; j < n; j++) {
        g[j - i] = gate[j];
        if (up) u[j - i] = up[j];
    }
    v16f result = NAME(activated)(kind, g, u);
    for (int32_t j = i; j < n; j++) gate[j] = result[j - i];
}

TARGET static void NAME(add)(float *out, const float *x, float factor, int32_t n) {
    int32_t i = 0;
    for (; i + 16 <= n; i += 16) NAME(store)(out + i, NAME(load)(out + i) + NAME(load)(x + i) * factor);
    for (; i < n; i++) out[i] += x[i] * factor;
}

TARGET static void NAME(to_half)(const float *x, int32_t n, uint16_t *out) {
    int32_t i = 0;
    for (; i + 16 <= n; i += 16) STORE_HALF16(out + i, NAME(load)(x + i));
    for (; i < n; i++) out[i] = ck_float_to_half(x[i]);
}

TARGET static int32_t NAME(argmax)(const float *x, int32_t n) {
    v16f best = NAME(splat)(-INFINITY);
    int32_t i = 0;
    for (; i + 16 <= n; i += 16) {
        v16f v = NAME(load)(x + i);
        best = NAME(select)(v > best, v, best);
    }
    float maximum = NAME(reduce_max)(best);
    for (; i < n; i++) maximum = x[i] > maximum ? x[i] : maximum;
    for (i = 0; i < n; i++)
        if (x[i] == maximum) return i;
    return 0;
}

TARGET static void NAME(soft_cap)(float *x, float cap, int32_t n) {
    int32_t i = 0;
    for (; i + 16 <= n; i += 16) NAME(store)(x + i, NAME(tanh16)(NAME(load)(x + i) / cap) * cap);
    for (; i < n; i++) x[i] = tanhf(x[i] / cap) * cap;
}

TARGET static float NAME(exp_shifted)(const float *x, float max, float inverse_temperature, int32_t n, float *out) {
    v16f sums = NAME(splat)(0);
    float total = 0;
    int32_t i = 0;
    for (; i + 16 <= n; i += 16) {
        v16f scaled = (NAME(load)(x + i) - max) * inverse_temperature;
        // `exp16` has a minimum above zero, but what is impossible must stay so.
        v16f e = NAME(select)(scaled < -87, NAME(splat)(0), NAME(exp16)(scaled));
        sums += e;
        NAME(store)(out + i, e);
    }
    for (; i < n; i++) total += out[i] = expf((x[i] - max) * inverse_temperature);
    return total + NAME(sum)(sums);
}

// MARK: - Codes of integer layouts

TARGET INLINE v64b NAME(shift)(v64b x, int left) {
    return left >= 0 ? (v64b)((v32h)x << left) : (v64b)((v32h)x >> -left);
}

/// The codes of step `i` of a group of 32 columns, `[16 rows][4 columns]`.
TARGET INLINE v64b NAME(code)(ck_layout layout, const uint8_t *group, int i) {
    const v64b *in = (const v64b *)group;
    int bits = layout_bits(layout);
    if (bits == 8) return in[i];
    if (bits < 4) {
        v64b code = NAME(shift)(in[i / 4], -2 * (i % 4)) & 3;
        return bits == 3 ? code | (NAME(shift)(in[2], 2 - i) & 4) : code;
    }
    v64b code = NAME(shift)(in[i % 4], -4 * (i / 4)) & 0xF;
    if (bits == 5) code |= NAME(shift)(in[4], 4 - i) & 0x10;
    if (bits == 6) code |= NAME(shift)(in[4 + i / 4], 4 - 2 * (i % 4)) & 0x30;
    return layout_has_table(layout) ? LOOK_UP(layout_table(layout), code) : code;
}

/// Unpacks the codes of a group of 32 columns: eight steps.
TARGET INLINE void NAME(unpack)(ck_layout layout, const uint8_t *group, v64b *codes) {
#pragma clang loop unroll(full)
    for (int i = 0; i < 8; i++) codes[i] = NAME(code)(layout, group, i);
}

TARGET INLINE v16f NAME(unsigned_bytes)(v16b bytes) { return __builtin_convertvector(bytes, v16f); }

/// The bytes of a group at `pair_place`.
TARGET INLINE v16b NAME(of_pair)(const uint8_t *scales, int group) {
    v32b both = *(const v32b *)(scales + group / 2 * 32);
    return group % 2 == 0 ? __builtin_shufflevector(both, both, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
                          : __builtin_shufflevector(both, both, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
}

/// Scales and minima of 16 rows for one part of a group; see `layout_scale`.
TARGET INLINE void NAME(scales)(ck_layout layout, const uint8_t *block, int group, int part, v16f *scale, v16f *minimum) {
    const uint8_t *scales = block + layout_group_bytes(layout) * (size_t)(layout_columns(layout) / 32);
    switch (layout_facts[layout].scales) {
        case SCALES_FACTOR: *scale = LOAD_HALF16((const uint16_t *)scales); return;
        case SCALES_FACTOR_AND_MINIMUM:
            *scale = LOAD_HALF16((const uint16_t *)scales);
            *minimum = LOAD_HALF16((const uint16_t *)(scales + 32));
            return;
        case SCALES_EXPONENT:
            *scale = (v16f)(__builtin_convertvector(*(const v16b *)scales, v16i) << 23) * 0.5f;
            return;
        case SCALES_BYTES:
            *scale = LOAD_HALF16((const uint16_t *)(scales + 128)) *
                     __builtin_convertvector(*(const v16c *)(scales + 16 * group), v16f);
            return;
        case SCALES_HALVES:
            *scale = LOAD_HALF16((const uint16_t *)(scales + 256)) *
                     __builtin_convertvector(*(const v16c *)(scales + 32 * group + 16 * part), v16f);
            return;
        case SCALES_NIBBLES: {
            v16b both = *(const v16b *)(scales + 32 * group + 16 * part);
            *scale = LOAD_HALF16((const uint16_t *)(scales + 256)) * NAME(unsigned_bytes)(both & 0xF);
            *minimum = -LOAD_HALF16((const uint16_t *)(scales + 288)) * NAME(unsigned_bytes)(both >> 4);
            return;
        }
        case SCALES_PAIRS_OF_HALVES:
            *scale = LOAD_HALF16((const uint16_t *)(scales + 256)) *
                     __builtin_convertvector((v16c)NAME(of_pair)(scales + 128 * part, group), v16f);
            return;
        case SCALES_PAIRS_AND_MINIMA:
            *scale = LOAD_HALF16((const uint16_t *)(scales + 256)) * NAME(unsigned_bytes)(NAME(of_pair)(scales, group));
            *minimum = -LOAD_HALF16((const uint16_t *)(scales + 288)) * NAME(unsigned_bytes)(NAME(of_pair)(scales + 128, group));
            return;
    }
}

/// The sum of the activations of one part of a group, the factor of `minimum`.
TARGET INLINE float NAME(part_sum)(ck_layout layout, const ck_activations *a, size_t at, int part) {
    return layout_parts(layout) == 1 ? a->s[at] : a->d[at] * (float)-a->sums[2 * at + (size_t)part];
}

/// The integer that corrects a dot product for the offset of the codes: −offset times the sum of the quantised
/// activations.
TARGET INLINE int32_t NAME(offset_sum)(ck_layout layout, const ck_activations *a, size_t at, int part) {
    int shift = layout_offset_shift(layout);
    if (shift < 0) return 0;
    const int32_t *sums = a->sums + 2 * at;
    return (layout_parts(layout) == 2 ? sums[part] : sums[0] + sums[1]) * (1 << shift);
}

// MARK: - Floating-point matrices

TARGET INLINE v16f NAME(load_weights)(ck_layout layout, const uint8_t *p) {
    if (layout == CK_F32) return *(const v16f *)p;
    if (layout == CK_F16) return LOAD_HALF16((const uint16_t *)p);
    v16i bits;
    for (int i = 0; i < 16; i++) bits[i] = (int32_t)((uint32_t)((const uint16_t *)p)[i] << 16);
    return (v16f)bits;
}

/// Stores the rows of the product for one token: 16, or fewer in the last panel.
TARGET INLINE void NAME(store_rows)(float *y, v16f value, int rows, bool add) {
    if (rows == CK_PANEL) {
        NAME(store)(y, add ? NAME(load)(y) + value : value);
    } else {
        for (int i = 0; i < rows; i++) y[i] = add ? y[i] + value[i] : value[i];
    }
}

/// `tokens` and `layout` are constants at every call, so that the accumulators stay in registers.
TARGET INLINE void NAME(float_tile)(ck_layout layout, int tokens, const ck_matrix *m, const uint8_t *w, const float *x,
                                    float *y, int32_t ldy, int rows, bool add) {
    int32_t columns = m->columns;
    size_t bytes = layout == CK_F32 ? 64 : 32;
    v16f sum[8];
    for (int t = 0; t < tokens; t++) sum[t] = NAME(splat)(0);
    for (int32_t k = 0; k < columns; k++, w += bytes) {
        v16f weights = NAME(load_weights)(layout, w);
        for (int t = 0; t < tokens; t++) sum[t] += weights * x[(size_t)t * (size_t)columns + (size_t)k];
    }
    for (int t = 0; t < tokens; t++) NAME(store_rows)(y + (size_t)t * (size_t)ldy, sum[t] * m->scale, rows, add);
}

TARGET INLINE void NAME(float_panel)(ck_layout layout, const ck_matrix *m, int32_t panel, const ck_activations *a,
                                     float *y, int32_t ldy, bool add) {
    const uint8_t *w = m->data + (size_t)panel * m->panel_bytes;
    int rows = m->rows - panel * CK_PANEL < CK_PANEL ? m->rows - panel * CK_PANEL : CK_PANEL;
    size_t columns = (size_t)m->columns;
    int32_t t = 0;
    y += panel * CK_PANEL;
    for (; t + 8 <= a->count; t += 8)
        NAME(float_tile)(layout, 8, m, w, a->x + (size_t)t * columns, y + (size_t)t * (size_t)ldy, ldy, rows, add);
    for (; t < a->count; t++)
        NAME(float_tile)(layout, 1, m, w, a->x + (size_t)t * columns, y + (size_t)t * (size_t)ldy, ldy, rows, add);
}

/// The product of a panel in `CK_ROWS`; each block of a row is decoded once for up to eight tokens.
TARGET static void NAME(rows_panel)(const ck_matrix *m, int32_t panel, const ck_activations *a, float *y, int32_t ldy,
                                    bool add) {
    int rows = m->rows - panel * CK_PANEL < CK_PANEL ? m->rows - panel * CK_PANEL : CK_PANEL;
    size_t columns = (size_t)m->columns, row_bytes = m->panel_bytes / CK_PANEL;
    size_t block = (size_t)ck_type_block(m->type), bytes = (size_t)ck_type_bytes(m->type);
    float values[256];
    for (int row = 0; row < rows; row++) {
        const uint8_t *source = m->data + (size_t)panel * m->panel_bytes + (size_t)row * row_bytes;
        for (int32_t token = 0; token < a->count; token += 8) {
            int tokens = a->count - token < 8 ? a->count - token : 8;
            v16f sum[8];
            for (int t = 0; t < tokens; t++) sum[t] = NAME(splat)(0);
            for (size_t column = 0; column < columns; column += block) {
                ck_dequantize(m->type, source + column / block * bytes, block, values);
                for (int t = 0; t < tokens; t++) {
                    const float *x = a->x + (size_t)(token + t) * columns + column;
                    for (size_t i = 0; i < block; i += 16) sum[t] += NAME(load)(values + i) * NAME(load)(x + i);
                }
            }
            for (int t = 0; t < tokens; t++) {
                float *out = y + (size_t)(token + t) * (size_t)ldy + panel * CK_PANEL + row;
                float value = NAME(sum)(sum[t]) * m->scale;
                *out = add ? *out + value : value;
            }
        }
    }
}

TARGET static void NAME(float_panels)(const ck_matrix *m, int32_t panel, const ck_activations *a, float *y, int32_t ldy,
                                      bool add) {
    switch (m->layout) {
        case CK_ROWS: NAME(rows_panel)(m, panel, a, y, ldy, add); return;
        case CK_F16: NAME(float_panel)(CK_F16, m, panel, a, y, ldy, add); return;
        case CK_BF16: NAME(float_panel)(CK_BF16, m, panel, a, y, ldy, add); return;
        case CK_F32: NAME(float_panel)(CK_F32, m, panel, a, y, ldy, add); return;
        CK_LAYOUTS(CK_CASE) return;  // computed by the file of the instruction set
    }
}

// MARK: - Attention

#include "attention.h"

// MARK: - Recurrent steps

TARGET static void NAME(delta_step)(float *state, const float *q, const float *k, const float *v, float decay, float beta,
                                    int32_t key_dim, int32_t value_dim, float *out) {
    for (int32_t row = 0; row < value_dim; row++, state += key_dim) {
        v16f sums = NAME(splat)(0), products = NAME(splat)(0);
        float sum = 0, product = 0;
        int32_t i = 0;
        for (; i + 16 <= key_dim; i += 16) {
            v16f s = NAME(load)(state + i) * decay;
            NAME(store)(state + i, s);
            sums += s * NAME(load)(k + i);
        }
        for (; i < key_dim; i++) {
            state[i] *= decay;
            sum += state[i] * k[i];
        }
        float delta = beta * (v[row] - (sum + NAME(sum)(sums)));
        for (i = 0; i + 16 <= key_dim; i += 16) {
            v16f s = NAME(load)(state + i) + NAME(load)(k + i) * delta;
            NAME(store)(state + i, s);
            products += s * NAME(load)(q + i);
        }
        for (; i < key_dim; i++) {
            state[i] += k[i] * delta;
            product += state[i] * q[i];
        }
        out[row] = product + NAME(sum)(products);
    }
}

TARGET static void NAME(mamba_step)(float *state, const float *x, const float *b, const float *c, float decay, float delta,
                                    int32_t head_dim, int32_t state_size, float *out) {
    for (int32_t row = 0; row < head_dim; row++, state += state_size) {
        v16f sums = NAME(splat)(0);
        float input = x[row] * delta, sum = 0;
        int32_t i = 0;
        for (; i + 16 <= state_size; i += 16) {
            v16f s = NAME(load)(state + i) * decay + NAME(load)(b + i) * input;
            NAME(store)(state + i, s);
            sums += s * NAME(load)(c + i);
        }
        for (; i < state_size; i++) {
            state[i] = state[i] * decay + b[i] * input;
            sum += state[i] * c[i];
        }
        out[row] = sum + NAME(sum)(sums);
    }
}

// MARK: - Low-rank products

#include "low_rank.h"

// MARK: - Search

TARGET static void NAME(dot_rows)(const int8_t *rows, size_t count, const int8_t *query, int32_t n, int32_t *out) {
    for (size_t row = 0; row < count; row++, rows += n) {
        int32_t sum = 0;
        for (int32_t i = 0; i < n; i++) sum += rows[i] * query[i];
        out[row] = sum;
    }
}
