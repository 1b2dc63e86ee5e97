// Functions of training for one instruction set. The includer defines NAME, TARGET, LOAD_HALF16 and TILE_ROWS, the rows of a tile whose
// sums stay in registers: a divisor of 12.

#include <math.h>

#include "formats.h"
#include "kernel_sets.h"
#include "training.h"
#include "vectors.h"

enum { NAME(tile_rows) = TILE_ROWS };

TARGET INLINE void NAME(store_tile)(v16f low, v16f high, int columns, float scale, bool add, float *c) {
    low *= scale;
    high *= scale;
    if (columns == CK_TRAINING_COLUMNS) {
        NAME(store)(c, add ? NAME(load)(c) + low : low);
        NAME(store)(c + 16, add ? NAME(load)(c + 16) + high : high);
        return;
    }
    for (int i = 0; i < columns; i++) {
        float value = i < 16 ? low[i] : high[i - 16];
        c[i] = add ? c[i] + value : value;
    }
}

TARGET INLINE void NAME(tile_of)(int wide, const float *a, const float *b, int32_t ldb, int32_t k, int32_t rows, int32_t columns,
                                 float scale, bool add, float *c, int32_t ldc) {
    for (int first = 0; first < rows; first += TILE_ROWS) {
        v16f sum[2 * TILE_ROWS];
#pragma clang loop unroll(full)
        for (int i = 0; i < 2 * TILE_ROWS; i++) sum[i] = NAME(splat)(0);
        const float *left = a + first, *right = b;
        for (int32_t i = 0; i < k; i++, left += CK_TRAINING_ROWS, right += ldb) {
            v16f low = NAME(load)(right), high = wide ? NAME(load)(right + 16) : low;
#pragma clang loop unroll(full)
            for (int r = 0; r < TILE_ROWS; r++) {
                v16f x = NAME(splat)(left[r]);
                sum[2 * r] += x * low;
                if (wide) sum[2 * r + 1] += x * high;
            }
        }
#pragma clang loop unroll(full)
        for (int r = 0; r < TILE_ROWS; r++)
            if (first + r < rows)
                NAME(store_tile)(sum[2 * r], sum[2 * r + 1], columns, scale, add, c + (size_t)(first + r) * (size_t)ldc);
    }
}

TARGET static void NAME(tile)(const float *a, const float *b, int32_t ldb, int32_t k, int32_t rows, int32_t columns, float scale, bool add,
                              float *c, int32_t ldc) {
    if (columns <= 16) NAME(tile_of)(0, a, b, ldb, k, rows, columns, scale, add, c, ldc);
    else NAME(tile_of)(1, a, b, ldb, k, rows, columns, scale, add, c, ldc);
}

/// The transpose of 16 rows of 16 numbers.
TARGET INLINE void NAME(transpose)(v16i *rows) {
    v16i other[16];
#define ROUND(from, to, distance, LOWER, UPPER)                                                                                \
    for (int i = 0; i < 16; i++)                                                                                               \
        if (!(i & distance)) {                                                                                                 \
            to[i] = LOWER(from[i], from[i + distance]);                                                                        \
            to[i + distance] = UPPER(from[i], from[i + distance]);                                                             \
        }
#define LOWER1(a, b) __builtin_shufflevector(a, b, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30)
#define UPPER1(a, b) __builtin_shufflevector(a, b, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31)
#define LOWER2(a, b) __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define UPPER2(a, b) __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
#define LOWER4(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27)
#define UPPER4(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31)
#define LOWER8(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23)
#define UPPER8(a, b) __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31)
#pragma clang loop unroll(full)
    ROUND(rows, other, 1, LOWER1, UPPER1)
#pragma clang loop unroll(full)
    ROUND(other, rows, 2, LOWER2, UPPER2)
#pragma clang loop unroll(full)
    ROUND(rows, other, 4, LOWER4, UPPER4)
#pragma clang loop unroll(full)
    ROUND(other, rows, 8, LOWER8, UPPER8)
#undef ROUND
}

/// Rounds to the nearest bfloat16, to even if two are equally near; the result is in the high halves.
TARGET INLINE v16i NAME(rounded)(v16f x) {
    v16i bits = (v16i)x;
    return (bits + 0x7FFF + (bits >> 16 & 1)) & (int32_t)0xFFFF0000;
}

/// 16 pairs of successive numbers, rounded.
TARGET INLINE v16i NAME(pairs)(v16f first, v16f second) {
    v16f even = __builtin_shufflevector(first, second, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    v16f odd = __builtin_shufflevector(first, second, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return (v16i)((v16i)NAME(rounded)(odd) | (NAME(rounded)(even) >> 16 & 0xFFFF));
}

/// Writes rows as columns: `out[i · stride + row]`, for k numbers, or k/2 rounded pairs, of up to 16 rows. Missing rows are zeros. If
/// `stride` is less than 16, what follows the last column is kept.
TARGET static void NAME(interleave)(const float *const *rows, int32_t count, int32_t k, bool rounds, int32_t stride, uint32_t *out) {
    int32_t step = rounds ? 32 : 16, columns = rounds ? (k + 1) / 2 : k;
    for (int32_t start = 0; start < k; start += step) {
        v16i block[16];
        for (int r = 0; r < 16; r++) {
            if (r >= count) {
                block[r] = (v16i)NAME(splat)(0);
                continue;
            }
            float part[32];
            const float *x = rows[r] + start;
            if (k - start < step) {
                for (int32_t i = 0; i < step; i++) part[i] = start + i < k ? x[i] : 0;
                x = part;
            }
            block[r] = rounds ? NAME(pairs)(NAME(load)(x), NAME(load)(x + 16)) : (v16i)NAME(load)(x);
        }
        NAME(transpose)(block);
        int32_t first = rounds ? start / 2 : start, wide = columns - first < 16 ? columns - first : 16;
        for (int32_t i = 0; i < wide; i++) {
            uint32_t *at = out + (size_t)(first + i) * (size_t)stride;
            if (first + i + 1 < columns || stride >= 16) {
                *(v16i *)at = block[i];
            } else {
                for (int r = 0; r < stride; r++) at[r] = (uint32_t)block[i][r];
            }
        }
    }
}

/// Pairs of the numbers of two rows, rounded.
TARGET static void NAME(pair_rows)(const float *first, const float *second, int32_t count, uint32_t *out) {
    for (int32_t i = 0; i < count; i += 16) {
        if (count - i >= 16) {
            *(v16i *)(out + i) = NAME(rounded)(NAME(load)(second + i)) | (NAME(rounded)(NAME(load)(first + i)) >> 16 & 0xFFFF);
            continue;
        }
        for (int32_t j = i; j < count; j++) {
            v16f low = NAME(splat)(first[j]), high = NAME(splat)(second[j]);
            out[j] = (uint32_t)((v16i)NAME(rounded)(high) | (NAME(rounded)(low) >> 16 & 0xFFFF))[0];
        }
    }
}

#define SIGMOID(x) (1.0f / (1.0f + NAME(exp16)(-(x))))
#define GELU_FACTOR 0.797884561f
#define GELU_CUBE 0.044715f

/// The function and its derivative.
TARGET INLINE void NAME(activation)(ck_activation kind, v16f x, v16f *value, v16f *derivative) {
    switch (kind) {
        case CK_GELU: {
            v16f t = NAME(tanh16)(GELU_FACTOR * (x + GELU_CUBE * x * x * x));
            *value = 0.5f * x * (1.0f + t);
            *derivative = 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * GELU_FACTOR * (1.0f + 3 * GELU_CUBE * x * x);
            return;
        }
        case CK_RELU_SQUARED: {
            v16f positive = NAME(select)(x > 0.0f, x, NAME(splat)(0));
            *value = positive * positive;
            *derivative = 2.0f * positive;
            return;
        }
        case CK_SILU:
        case CK_GELU_ERF: case CK_SWIGLU_OAI: {  // not trained
            v16f s = SIGMOID(x);
            *value = x * s;
            *derivative = s * (1.0f + x * (1.0f - s));
        }
    }
}

/// The elements of a vector that exist; the others are zeros.
TARGET INLINE v16f NAME(load_part)(const float *x, int32_t left) {
    if (left >= 16) return NAME(load)(x);
    v16f v = NAME(splat)(0);
    for (int i = 0; i < left; i++) v[i] = x[i];
    return v;
}

TARGET INLINE void NAME(store_part)(float *x, v16f v, int32_t left) {
    if (left >= 16) NAME(store)(x, v);
    else for (int i = 0; i < left; i++) x[i] = v[i];
}

TARGET static void NAME(train_activate)(ck_activation kind, const float *gate, const float *up, int32_t n, float *h) {
    for (int32_t i = 0; i < n; i += 16) {
        v16f value, derivative;
        NAME(activation)(kind, NAME(load_part)(gate + i, n - i), &value, &derivative);
        NAME(store_part)(h + i, up ? value * NAME(load_part)(up + i, n - i) : value, n - i);
    }
}

TARGET static void NAME(train_activate_backward)(ck_activation kind, float *gate, float *up, const float *dh, int32_t n) {
    for (int32_t i = 0; i < n; i += 16) {
        v16f value, derivative, d = NAME(load_part)(dh + i, n - i);
        NAME(activation)(kind, NAME(load_part)(gate + i, n - i), &value, &derivative);
        if (up) {
            v16f u = NAME(load_part)(up + i, n - i);
            NAME(store_part)(up + i, d * value, n - i);
            d *= u;
        }
        NAME(store_part)(gate + i, d * derivative, n - i);
    }
}

/// With ρ = (mean x² + ε)^−½ and g = weight · dy: dx = ρ·g − ρ³·x·(g·x)/n.
TARGET static void NAME(train_norm_backward)(const float *x, const float *weight, const float *dy, float epsilon, int32_t n, float *dx) {
    v16f squares = NAME(splat)(0), products = NAME(splat)(0);
    for (int32_t i = 0; i < n; i += 16) {
        v16f v = NAME(load_part)(x + i, n - i), g = NAME(load_part)(dy + i, n - i);
        if (weight) g *= NAME(load_part)(weight + i, n - i);
        squares += v * v;
        products += v * g;
    }
    float rho = 1 / sqrtf(NAME(sum)(squares) / (float)n + epsilon);
    float factor = rho * rho * rho * NAME(sum)(products) / (float)n;
    for (int32_t i = 0; i < n; i += 16) {
        v16f v = NAME(load_part)(x + i, n - i), g = NAME(load_part)(dy + i, n - i);
        if (weight) g *= NAME(load_part)(weight + i, n - i);
        NAME(store_part)(dx + i, NAME(load_part)(dx + i, n - i) + rho * g - factor * v, n - i);
    }
}

TARGET static float NAME(train_exponentials)(float *x, float maximum, int32_t n) {
    double total = 0;
    v16f sum = NAME(splat)(0);
    for (int32_t i = 0; i < n; i += 16) {
        v16f e = NAME(exp16)(NAME(load_part)(x + i, n - i) - maximum);
        NAME(store_part)(x + i, e, n - i);
        if (n - i >= 16) sum += e;
        else for (int32_t j = 0; j < n - i; j++) total += e[j];
        // Partial sums of a large vocabulary stay short, so that they stay exact.
        if ((i & 4095) == 4080) {
            total += NAME(sum)(sum);
            sum = NAME(splat)(0);
        }
    }
    return (float)(total + NAME(sum)(sum));
}

TARGET static void NAME(train_soft_cap)(float *x, float cap, int32_t n) {
    for (int32_t i = 0; i < n; i += 16)
        NAME(store_part)(x + i, cap * NAME(tanh16)(NAME(load_part)(x + i, n - i) / cap), n - i);
}

#define TRAINING_TABLE(title, rounded)                                                                                   \
    {title, NAME(tile), rounded, NAME(interleave), NAME(pair_rows), NAME(train_activate), NAME(train_activate_backward), NAME(train_norm_backward),         \
     NAME(train_exponentials), NAME(train_soft_cap)}
