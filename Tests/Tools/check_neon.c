// Compares the NEON kernels with the scalar ones on random matrices. See check_neon.sh.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckernels.h"

static uint64_t state = 1;
static uint32_t noise(void) { return (uint32_t)((state = state * 6364136223846793005u + 1442695040888963407u) >> 33); }
static float uniform(float low, float high) { return low + (high - low) * (float)(noise() & 0xFFFFFF) / 16777216; }

int main(void) {
    const ck_kernels *scalar = ck_kernels_for(CK_SCALAR), *neon = ck_kernels_for(CK_NEON);
    if (!neon) return puts("this processor has no dot-product extension"), 1;
    int failures = 0;
    for (int layout = CK_U4_D; layout <= CK_F32; layout++) {
        enum { ROWS = 37, COLUMNS = 256, TOKENS = 9 };
        size_t panel = ck_panel_bytes((ck_layout)layout, COLUMNS), bytes = panel * 3;
        uint8_t *data = malloc(bytes);
        for (size_t i = 0; i < bytes; i++) data[i] = (uint8_t)noise();
        // Every 16-bit word is made a small binary16 (bfloat16, binary32) number where the layout holds floats.
        size_t codes = layout <= CK_U4_DM || layout == CK_U8_D16 ? 256 : 512, tail = layout == CK_U4_DM || layout == CK_U8_DM ? 64 : 32;
        if (layout < CK_F16) {
            for (size_t block = 0; block < bytes; block += codes + tail)
                for (size_t i = 0; i < tail; i += 2) {
                    uint16_t half = ck_float_to_half(uniform(-0.1f, 0.1f));
                    memcpy(data + block + codes + i, &half, 2);
                    if (layout == CK_U8_D16) for (size_t c = 0; c < codes; c++) data[block + c] &= 63;
                    if (layout == CK_U8_DM) for (size_t c = 0; c < codes; c++) data[block + c] &= 31;
                }
        } else {
            for (size_t i = 0; i < bytes; i += layout == CK_F32 ? 4 : 2) {
                float value = uniform(-1, 1);
                uint16_t half = ck_float_to_half(value);
                if (layout == CK_F16) memcpy(data + i, &half, 2);
                else if (layout == CK_BF16) memcpy(data + i, (char *)&value + 2, 2);
                else memcpy(data + i, &value, 4);
            }
        }
        static float x[TOKENS * COLUMNS], d[TOKENS * COLUMNS / 32], s[TOKENS * COLUMNS / 32], y[2][TOKENS * ROWS];
        static int8_t q[TOKENS * COLUMNS];
        static int32_t sums[TOKENS * COLUMNS / 16];
        for (int i = 0; i < TOKENS * COLUMNS; i++) x[i] = uniform(-3, 3);
        ck_activations a = {TOKENS, COLUMNS, x, q, d, s, sums};
        ck_matrix m = {ROWS, COLUMNS, (ck_layout)layout, 1, panel, data};
        float worst = 0, size = 0;
        for (int set = 0; set < 2; set++) {
            const ck_kernels *k = set ? neon : scalar;
            for (int t = 0; t < TOKENS; t++) k->quantize(&a, t);
            for (int p = 0; p < 3; p++) k->panel(&m, p, &a, y[set], ROWS, false);
        }
        for (int i = 0; i < TOKENS * ROWS; i++) worst = fmaxf(worst, fabsf(y[0][i] - y[1][i])), size = fmaxf(size, fabsf(y[0][i]));
        int ok = worst <= 1e-5f * size;
        failures += !ok;
        printf("layout %d: greatest difference %g of %g: %s\n", layout, worst, size, ok ? "equal" : "DIFFERENT");
        free(data);
    }
    // Attention over a random cache, one token and several.
    enum { HEADS = 6, KV = 2, DIM = 20, STRIDE = 32, CAPACITY = 320 };
    uint16_t *keys = malloc(2 * KV * CAPACITY * DIM), *values = malloc(2 * KV * CAPACITY * STRIDE);
    for (int i = 0; i < KV * CAPACITY * DIM; i++) keys[i] = ck_float_to_half(uniform(-1, 1));
    for (int i = 0; i < KV * CAPACITY * STRIDE; i++) values[i] = ck_float_to_half(uniform(-1, 1));
    float *partial = malloc(4 * ck_attention_partial_floats(HEADS, DIM, CAPACITY));
    ck_pool *pool = ck_pool_create(2);
    for (int rows = 1; rows <= 7; rows += 3) {
        float q[7 * HEADS * DIM], out[2][7 * HEADS * DIM], worst = 0;
        for (int i = 0; i < rows * HEADS * DIM; i++) q[i] = uniform(-1, 1);
        for (int set = 0; set < 2; set++) {
            ck_attention a = {q, out[set], keys, values, partial, 0.25f, rows, HEADS, KV, DIM, STRIDE, CAPACITY, 301, 0};
            ck_attend(pool, set ? neon : scalar, &a);
        }
        for (int i = 0; i < rows * HEADS * DIM; i++) worst = fmaxf(worst, fabsf(out[0][i] - out[1][i]));
        int ok = worst < 1e-5f;
        failures += !ok;
        printf("attention of %d rows: greatest difference %g: %s\n", rows, worst, ok ? "equal" : "DIFFERENT");
    }
    ck_pool_destroy(pool);
    return failures != 0;
}
