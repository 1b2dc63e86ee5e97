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
        default: {
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
    {title, NAME(tile), rounded, NAME(train_activate), NAME(train_activate_backward), NAME(train_norm_backward),         \
     NAME(train_exponentials), NAME(train_soft_cap)}
