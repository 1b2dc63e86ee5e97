// Runs the functions of training with memory of exactly the sizes that they may use, for check_sanitized.sh.
#include <stdio.h>
#include <stdlib.h>

#include "ckernels.h"

static uint32_t state = 1;

static float number(void) {
    state = state * 1664525 + 1013904223;
    return (float)(state >> 8) / (float)(1 << 23) - 1;
}

/// Numbers with the 32 that kernels may read after the last one.
static float *numbers(size_t count) {
    float *x = malloc((count + 32) * 4);
    for (size_t i = 0; i < count + 32; i++) x[i] = i < count ? number() : 0;
    return x;
}

static void products(ck_pool *pool, const ck_training_kernels *k) {
    static const ck_type types[] = {CK_TYPE_F32, CK_TYPE_F16, CK_TYPE_Q4_1, CK_TYPE_Q4_K, CK_TYPE_Q6_K, CK_TYPE_IQ4_XS};
    static const int32_t shapes[][3] = {{1, 256, 1}, {37, 256, 29}, {300, 512, 13}, {16, 1280, 40}};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int way = 0; way < 8; way++) {
                bool transposed = way & 1, rounds = way & 2 && k->rounded_tile, x_transposed = way & 4;
                int32_t rows = shapes[s][0], columns = shapes[s][1], count = shapes[s][2];
                int32_t n = transposed ? columns : rows, depth = transposed ? rows : columns;
                size_t row_bytes = (size_t)columns / (size_t)ck_type_block(types[t]) * (size_t)ck_type_bytes(types[t]);
                // F32 rows are read as they are, with the numbers after the last one.
                uint8_t *weights = calloc(row_bytes * (size_t)rows + (types[t] == CK_TYPE_F32 ? 128 : 0), 1);
                float *x = numbers((size_t)count * (size_t)depth), *y = numbers((size_t)count * (size_t)n);
                ck_training_operand operand = {malloc(ck_training_panel_bytes(count, depth, rounds)), count, depth, rounds};
                ck_training_pack(pool, x, x_transposed ? count : depth, x_transposed, &operand);
                ck_training_product product = {weights, row_bytes, types[t], rows, columns, transposed, operand, y, n, 1, way > 3};
                ck_training_multiply(pool, k, &product, 1);
                free(weights), free(x), free(y), free(operand.panels);
            }
}

static void attention(ck_pool *pool, const ck_training_kernels *k, int32_t window, float cap) {
    int32_t starts[] = {0, 1, 60, 190}, rows = 190, heads = 6, kv = 2, dim = 10, values = 40;
    ck_training_attention a = {.starts = starts, .sequences = 3, .heads = heads, .kv_heads = kv, .key_dim = dim, .value_dim = values,
                               .ldq = heads * dim, .ldk = kv * dim, .ldv = kv * values, .ldo = heads * values, .scale = 0.3f,
                               .soft_cap = cap, .window = window};
    size_t q = (size_t)(rows * heads * dim), key = (size_t)(rows * kv * dim), v = (size_t)(rows * kv * values),
           o = (size_t)(rows * heads * values);
    float *buffers[] = {numbers(q), numbers(key), numbers(v), numbers(o), numbers((size_t)(rows * heads)), numbers(o),
                        numbers(q), numbers(key), numbers(v),
                        malloc(ck_training_attention_floats(&a) * (size_t)ck_pool_threads(pool) * 4)};
    a.q = buffers[0], a.k = buffers[1], a.v = buffers[2], a.out = buffers[3], a.lse = buffers[4], a.dout = buffers[5];
    a.dq = buffers[6], a.dk = buffers[7], a.dv = buffers[8], a.scratch = buffers[9];
    ck_training_attend(pool, k, &a);
    ck_training_attend_backward(pool, k, &a);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) free(buffers[i]);
}

static void rows_of(ck_pool *pool, const ck_training_kernels *k) {
    for (int32_t n = 1; n < 70; n += 13) {
        int32_t rows = 19;
        float *x = malloc((size_t)(rows * n) * 4), *y = malloc((size_t)(rows * n) * 4), *z = malloc((size_t)(rows * n) * 4);
        for (int32_t i = 0; i < rows * n; i++) x[i] = number(), y[i] = number(), z[i] = number();
        float *weight = malloc((size_t)n * 4), losses[19];
        bool right[19];
        int32_t targets[19] = {0};
        for (int32_t i = 0; i < n; i++) weight[i] = 1;
        ck_training_norm_backward(pool, k, x, n, weight, y, n, 1e-5f, rows, n, z, n);
        ck_training_activate(pool, k, CK_GELU, x, y, n, rows, n, z);
        ck_training_activate_backward(pool, k, CK_SILU, x, y, n, rows, n, z);
        ck_training_cross_entropy(pool, k, x, rows, n, targets, 3, 1, losses, right);
        ck_training_add(pool, x, y, (size_t)(rows * n));
        ck_training_adam(pool, x, y, z, x, (size_t)(rows * n), 1, 1e-3f, 0.9f, 0.999f, 1e-8f, 0, 0.1f, 0.1f);
        free(x), free(y), free(z), free(weight);
    }
}

int main(void) {
    ck_pool *pool = ck_pool_create(2);
    static const ck_isa sets[] = {CK_SCALAR, CK_AVX2, CK_AVX512};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        const ck_training_kernels *k = ck_training_for(sets[i]);
        if (!k) continue;
        printf("training: %s\n", k->name);
        products(pool, k);
        attention(pool, k, 0, 0);
        attention(pool, k, 20, 5);
        rows_of(pool, k);
    }
    ck_pool_destroy(pool);
    return 0;
}
