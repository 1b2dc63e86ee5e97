// Measures the products and the attention of one instruction set alone, without a model, and prints Markdown tables.
//
//     clang -O2 -ISources/Engine/CKernels/include Sources/Engine/CKernels/*.c Benchmarks/kernels.c -o kernels -lm -lpthread
//     ./kernels [THREADS]
//
// Products: 512 rows of 1,536 columns, which fit in the cache, on one thread. Attention: the last token or the last 256 tokens of a
// sequence; keys and values of all layers are read from memory, except for 256 tokens, of which four layers are computed.

#include "ckernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *memory(size_t bytes) {
    void *found = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!found) {
        fprintf(stderr, "There is not enough memory.\n");
        exit(1);
    }
    memset(found, 0, bytes);
    return found;
}

static float uniform(void) { return (float)(rand() % 2001 - 1000) / 1000; }

enum { ROWS = 512, COLUMNS = 1536, TOKENS = 64 };

/// Billions of operations per second for `count` tokens, the best of five runs.
static double products(const ck_kernels *k, ck_type type, int scale_offset, int minimum_offset, int count) {
    size_t block = (size_t)ck_type_bytes(type), row_bytes = COLUMNS / (size_t)ck_type_block(type) * block;
    uint8_t *source = memory(row_bytes * ROWS);
    for (size_t i = 0; i < row_bytes * ROWS; i++) source[i] = (uint8_t)rand();
    uint16_t half = ck_float_to_half(0.001f);
    for (uint8_t *at = source; at < source + row_bytes * ROWS; at += block) {
        memcpy(at + scale_offset, &half, 2);
        if (minimum_offset >= 0) memcpy(at + minimum_offset, &half, 2);
    }
    size_t panel_bytes = ck_panel_bytes(type, COLUMNS), panels = ROWS / CK_PANEL;
    uint8_t *packed = memory(panel_bytes * panels + 65536);
    ck_matrix m = {ROWS, COLUMNS, ck_type_layout(type), type, 1, panel_bytes, packed, false};
    for (size_t panel = 0; panel < panels; panel++) {
        const uint8_t *rows[CK_PANEL];
        for (size_t i = 0; i < CK_PANEL; i++) rows[i] = source + (panel * CK_PANEL + i) * row_bytes;
        ck_pack(&m, rows, CK_PANEL, packed + panel * panel_bytes);
    }
    size_t n = (size_t)TOKENS * COLUMNS;
    float *x = memory(4 * n), *y = memory(4 * (size_t)TOKENS * ROWS);
    for (size_t i = 0; i < n; i++) x[i] = uniform();
    bool sums = k->sums_blocks && ck_layout_sums_blocks(m.layout);
    ck_activations a = {TOKENS, COLUMNS, x, memory(n), memory(n / 8), memory(n / 8), memory(n / 4), sums ? memory(n / 64) : NULL,
                        memory(n / 16), memory(n / 16), memory(n / 4)};
    for (int row = 0; row < TOKENS; row++) k->quantize(&a, row);
    a.count = count;
    double best = INFINITY;
    int repeats = 400 / count + 1;
    for (int run = 0; run < 5; run++) {
        double start = now();
        for (int i = 0; i < repeats; i++)
            for (size_t panel = 0; panel < panels; panel++) k->panel(&m, (int32_t)panel, &a, y, ROWS, false);
        best = fmin(best, (now() - start) / repeats);
    }
    void *all[] = {source, packed, x, y, a.q, a.d, a.s, a.sums, a.unit, a.factors, a.weighted, a.starts};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    return 2.0 * ROWS * COLUMNS * count / best * 1e-9;
}

/// Milliseconds of attention of `rows` tokens in `layers` layers, the best of several runs, of which each reads all keys and values.
static double attention(const ck_kernels *k, ck_pool *pool, int layers, int heads, int kv_heads, int head_dim, int length, int rows) {
    size_t part = (size_t)kv_heads * CK_PAGE * (size_t)head_dim * 2, pages = (size_t)length / CK_PAGE;
    uint8_t **page = memory(pages * sizeof *page);
    for (size_t i = 0; i < pages; i++) {
        page[i] = memory(part * 2 * (size_t)layers);
        uint16_t *at = (uint16_t *)page[i];
        for (size_t j = 0; j < part * (size_t)layers; j++) at[j] = ck_float_to_half(uniform());
    }
    size_t n = (size_t)rows * (size_t)heads * (size_t)head_dim;
    float *q = memory(4 * n), *out = memory(4 * n), *partial = memory(4 * ck_attention_partial_floats(heads, head_dim, length));
    for (size_t i = 0; i < n; i++) q[i] = uniform();
    double best = INFINITY;
    int measured = rows > 1 ? 4 : layers;
    for (int run = 0; run < 6; run++) {
        double start = now();
        for (int layer = 0; layer < measured; layer++) {
            size_t offset = part * 2 * (size_t)layer;
            ck_attention a = {.q = q, .out = out, .pages = page, .key_offset = offset, .value_offset = offset + part, .partial = partial,
                              .scale = 1 / sqrtf((float)head_dim), .rows = rows, .heads = heads, .kv_heads = kv_heads,
                              .head_dim = head_dim, .value_dim = head_dim, .value_stride = head_dim, .length = length, .rounds = true};
            ck_attend(pool, k, &a, 1);
        }
        best = fmin(best, now() - start);
    }
    for (size_t i = 0; i < pages; i++) free(page[i]);
    free(page);
    free(q);
    free(out);
    free(partial);
    return best * 1e3;
}

int main(int count, char **arguments) {
    int threads = count > 1 ? atoi(arguments[1]) : 1;
    ck_pool *pool = ck_pool_create(threads);
    const ck_kernels *k = ck_kernels_best();
    if (!pool || !k) return 1;
    printf("%s\n\n| products, 1 thread (GOP/s) | 1 token | 8 tokens | 64 tokens |\n|---|---|---|---|\n", k->name);
    static const struct { ck_type type; int scale, minimum; } types[] = {
        {CK_TYPE_Q4_1, 0, 2}, {CK_TYPE_Q8_0, 0, -1}, {CK_TYPE_Q4_K, 0, 2}, {CK_TYPE_Q5_K, 0, 2}, {CK_TYPE_Q6_K, 208, -1},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        printf("| %s ", ck_type_name(types[i].type));
        for (int tokens = 1; tokens <= TOKENS; tokens *= 8)
            printf("| %.0f ", products(k, types[i].type, types[i].scale, types[i].minimum, tokens));
        printf("|\n");
    }
    printf("\n| attention, %d thread(s) (ms) | 1 token, %d | 1 token, %d | 256 tokens, %d |\n|---|---|---|---|\n", threads, 2048, 4096, 4096);
    static const struct { const char *name; int layers, heads, kv_heads, head_dim; } models[] = {
        {"small model: 30 layers, 9 heads on 3, 64 dimensions", 30, 9, 3, 64},
        {"default model: 28 layers, 12 heads on 2, 128 dimensions", 28, 12, 2, 128},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        printf("| %s ", models[i].name);
        for (int test = 0; test < 3; test++)
            printf("| %.1f ", attention(k, pool, models[i].layers, models[i].heads, models[i].kv_heads, models[i].head_dim,
                                        test == 0 ? 2048 : 4096, test == 2 ? 256 : 1));
        printf("|\n");
    }
    ck_pool_destroy(pool);
}
