// Compares the kernels of the instruction set SET with the scalar kernels on random matrices, and where EQUAL is defined, bit by bit
// with those of that set. See check_neon.sh and check_amx.sh.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckernels.h"

static uint64_t state = 1;
static uint32_t noise(void) { return (uint32_t)((state = state * 6364136223846793005u + 1442695040888963407u) >> 33); }
static float uniform(float low, float high) { return low + (high - low) * (float)(noise() & 0xFFFFFF) / 16777216; }

/// Where a block has binary16 factors, and whether it has them; `value` is any number.
static void put_factors(ck_type type, uint8_t *block, float value) {
    uint16_t half = ck_float_to_half(value), factors[2] = {ck_float_to_half(uniform(-0.1f, 0.1f)), ck_float_to_half(uniform(-0.1f, 0.1f))};
    switch (type) {
        case CK_TYPE_F32: memcpy(block, &value, 4); return;
        case CK_TYPE_F16: memcpy(block, &half, 2); return;
        case CK_TYPE_BF16: memcpy(block, (char *)&value + 2, 2); return;
        case CK_TYPE_MXFP4: block[0] = (uint8_t)(118 + noise() % 8); return;
        case CK_TYPE_Q4_0: case CK_TYPE_Q5_0: case CK_TYPE_Q8_0: case CK_TYPE_IQ4_NL: case CK_TYPE_IQ4_XS: memcpy(block, factors, 2); return;
        case CK_TYPE_Q4_1: case CK_TYPE_Q5_1: case CK_TYPE_Q4_K: case CK_TYPE_Q5_K: memcpy(block, factors, 4); return;
        case CK_TYPE_Q2_K: memcpy(block + 80, factors, 4); return;
        case CK_TYPE_Q3_K: memcpy(block + 108, factors, 2); return;
        case CK_TYPE_Q6_K: memcpy(block + 208, factors, 2); return;
        // Types without kernels of their own, which are not compared.
        case CK_TYPE_IQ1_S: case CK_TYPE_IQ1_M: case CK_TYPE_IQ2_XXS: case CK_TYPE_IQ2_XS: case CK_TYPE_IQ2_S: case CK_TYPE_IQ3_XXS:
        case CK_TYPE_IQ3_S: case CK_TYPE_TQ1_0: case CK_TYPE_TQ2_0: case CK_TYPE_NVFP4: case CK_TYPE_Q1_0: case CK_TYPE_Q2_0: return;
    }
}

/// A random block of a type, as in a file.
static void fill(uint8_t *block, ck_type type) {
    for (int32_t i = 0; i < ck_type_bytes(type); i++) block[i] = (uint8_t)noise();
    put_factors(type, block, uniform(-1, 1));
}

int main(void) {
    const ck_kernels *scalar = ck_kernels_for(CK_SCALAR), *tested = ck_kernels_for(SET);
    if (!tested) return puts("this processor does not have the instructions"), 1;
    int failures = 0;
    for (int index = 0; index < ck_type_count(); index++) {
        enum { ROWS = 37, COLUMNS = 512, TOKENS = 37, PANELS = 3 };
        ck_type type = ck_type_at(index);
        if (ck_type_layout(type) == CK_ROWS) continue;
        size_t panel = ck_panel_bytes(type, COLUMNS);
        size_t row_bytes = (size_t)(COLUMNS / ck_type_block(type)) * (size_t)ck_type_bytes(type);
        uint8_t *file = malloc(ROWS * row_bytes), *data = aligned_alloc(64, (panel * PANELS + 63) / 64 * 64);
        for (size_t at = 0; at < ROWS * row_bytes; at += (size_t)ck_type_bytes(type)) fill(file + at, type);
        ck_matrix m = {.rows = ROWS, .columns = COLUMNS, .layout = ck_type_layout(type), .type = type, .scale = 1,
                       .panel_bytes = panel, .data = data};
        for (int p = 0; p < PANELS; p++) {
            const uint8_t *rows[CK_PANEL];
            int count = ROWS - p * CK_PANEL < CK_PANEL ? ROWS - p * CK_PANEL : CK_PANEL;
            for (int r = 0; r < count; r++) rows[r] = file + (size_t)(p * CK_PANEL + r) * row_bytes;
            ck_pack(&m, rows, count, data + (size_t)p * panel);
        }
        static float x[TOKENS * COLUMNS], d[TOKENS * COLUMNS / 32], s[TOKENS * COLUMNS / 32], y[2][TOKENS * ROWS];
        static float unit[TOKENS * COLUMNS / 256];
        static int8_t q[TOKENS * COLUMNS];
        static int16_t factors[TOKENS * COLUMNS / 32], weighted[TOKENS * COLUMNS / 32];
        static int32_t sums[TOKENS * COLUMNS / 16], starts[TOKENS * COLUMNS / 16];
        // The first row has the largest sums: all activations of a block have one sign.
        for (int i = 0; i < TOKENS * COLUMNS; i++) x[i] = i < COLUMNS ? (i < 256 ? 2 : -2) : uniform(-3, 3) * (i % 97 ? 1 : 20);
        for (int has_unit = 0; has_unit < 2; has_unit++) {
            ck_activations a = {TOKENS, COLUMNS, x, q, d, s, sums, has_unit ? unit : NULL, factors, weighted, starts};
            float worst = 0, size = 0;
            for (int set = 0; set < 2; set++) {
                const ck_kernels *k = set ? tested : scalar;
                for (int t = 0; t < TOKENS; t++) scalar->quantize(&a, t);
                for (int p = 0; p < PANELS; p++) k->panel(&m, p, &a, y[set], ROWS, false);
            }
            for (int i = 0; i < TOKENS * ROWS; i++)
                worst = fmaxf(worst, fabsf(y[0][i] - y[1][i])), size = fmaxf(size, fabsf(y[0][i]));
            int ok = worst <= 1e-5f * size && size > 0;
#ifdef EQUAL
            for (int p = 0; p < PANELS; p++) ck_kernels_for(EQUAL)->panel(&m, p, &a, y[0], ROWS, false);
            ok &= memcmp(y[0], y[1], sizeof y[0]) == 0;
#endif
            failures += !ok;
            printf("%s%s: maximum difference %g of %g: %s\n", ck_type_name(type), has_unit ? " with a common unit" : "", worst, size,
                   ok ? "equal" : "DIFFERENT");
        }
        free(file);
        free(data);
    }
    // Attention over a random KV cache, with one token and with several.
    enum { HEADS = 6, KV = 2, DIM = 20, STRIDE = 32, PAGES = 2, PAGE_VALUES = KV * CK_PAGE * (DIM + STRIDE) };
    uint8_t *pages[PAGES];
    for (int page = 0; page < PAGES; page++) {
        uint16_t *values = malloc(2 * PAGE_VALUES);
        for (int i = 0; i < PAGE_VALUES; i++) values[i] = ck_float_to_half(uniform(-1, 1));
        pages[page] = (uint8_t *)values;
    }
    float *partial = malloc(4 * ck_attention_partial_floats(HEADS, DIM, PAGES * CK_PAGE));
    ck_pool *pool = ck_pool_create(2);
    for (int rows = 1; rows <= 7; rows += 3) {
        float q[7 * HEADS * DIM], out[2][7 * HEADS * DIM], worst = 0;
        for (int i = 0; i < rows * HEADS * DIM; i++) q[i] = uniform(-1, 1);
        for (int set = 0; set < 2; set++) {
            ck_attention a = {
                .q = q, .out = out[set], .pages = pages, .key_offset = 0, .value_offset = 2 * KV * CK_PAGE * DIM,
                .partial = partial, .scale = 0.25f, .rows = rows, .heads = HEADS, .kv_heads = KV, .head_dim = DIM,
                .value_dim = DIM, .value_stride = STRIDE, .length = 301};
            ck_attend(pool, set ? tested : scalar, &a, 1);
        }
        for (int i = 0; i < rows * HEADS * DIM; i++) worst = fmaxf(worst, fabsf(out[0][i] - out[1][i]));
        int ok = worst < 1e-5f;
        failures += !ok;
        printf("attention of %d rows: maximum difference %g: %s\n", rows, worst, ok ? "equal" : "DIFFERENT");
    }
    ck_pool_destroy(pool);
    return failures != 0;
}
