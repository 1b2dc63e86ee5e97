// Training: portable functions, and products and attention, which are split into chunks for the thread pool.

#define NAME(x) x##_training
#define TARGET
#define LOAD_HALF16(p) load_half16_training(p)
#define TILE_ROWS 3

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "kernel_sets.h"

static inline __attribute__((always_inline)) v16f_storage load_half16_training(const uint16_t *p) {
    v16f_storage v;
    for (int i = 0; i < 16; i++) v[i] = ck_half_to_float(p[i]);
    return v;
}

#include "training_kernels.h"

static const ck_training_kernels ck_training_scalar = TRAINING_TABLE("portable", NULL);
#if defined(__x86_64__)
extern const ck_training_kernels ck_training_avx2, ck_training_avx512, ck_training_avx512bf16;
#endif

const ck_training_kernels *ck_training_for(ck_isa isa) {
    if (isa == CK_SCALAR) return &ck_training_scalar;
#if defined(__x86_64__)
    if (!ck_kernels_for(isa)) return NULL;
    if (isa == CK_AVX2) return &ck_training_avx2;
    if (isa == CK_AVX512) return __builtin_cpu_supports("avx512bf16") ? &ck_training_avx512bf16 : &ck_training_avx512;
#endif
    return NULL;
}

const ck_training_kernels *ck_training_best(void) {
    const ck_training_kernels *best = ck_training_for(CK_AVX512);
    if (!best) best = ck_training_for(CK_AVX2);
    return best ? best : &ck_training_scalar;
}

enum { ROWS = CK_TRAINING_ROWS, COLUMNS = CK_TRAINING_COLUMNS, DEPTH = 256, WIDEST = 256 };

// MARK: - Operands

static size_t panel_size(int32_t k, bool rounds) { return (size_t)(rounds ? (k + 1) / 2 : k) * ROWS * 4; }

size_t ck_training_panel_bytes(int32_t count, int32_t k, bool rounds) {
    return (size_t)((count + ROWS - 1) / ROWS) * panel_size(k, rounds);
}

/// The panel of rows `first ..< first + rows`.
static void pack_panel(const ck_training_kernels *t, const float *x, size_t ldx, bool transposed, int32_t first, int32_t rows, int32_t k,
                       bool rounds, void *panel) {
    if (!transposed) {
        const float *starts[ROWS];
        for (int32_t r = 0; r < rows; r++) starts[r] = x + (size_t)(first + r) * ldx;
        t->interleave(starts, rows, k, rounds, ROWS, panel);
        return;
    }
    // Columns that are rows already.
    const float *start = x + (size_t)first;
    if (rounds) {
        static const float zeros[ROWS];
        uint32_t *out = panel;
        for (int32_t i = 0; i < k; i += 2, out += ROWS) {
            t->pair_rows(start + (size_t)i * ldx, i + 1 < k ? start + (size_t)(i + 1) * ldx : zeros, rows, out);
            for (int32_t r = rows; r < ROWS; r++) out[r] = 0;
        }
        return;
    }
    float *out = panel;
    for (int32_t i = 0; i < k; i++, out += ROWS) {
        const float *at = start + (size_t)i * ldx;
        for (int r = 0; r < ROWS; r++) out[r] = r < rows ? at[r] : 0;
    }
}

typedef struct {
    const ck_training_kernels *k;
    const float *x;
    size_t ldx;
    bool transposed;
    const ck_training_operand *operand;
} pack_job;

static void pack_chunk(void *context, int chunk) {
    const pack_job *job = context;
    const ck_training_operand *o = job->operand;
    int32_t first = chunk * ROWS, rows = o->count - first < ROWS ? o->count - first : ROWS;
    pack_panel(job->k, job->x, job->ldx, job->transposed, first, rows, o->k, o->rounds,
               (uint8_t *)o->panels + (size_t)chunk * panel_size(o->k, o->rounds));
}

void ck_training_pack(ck_pool *pool, const float *x, int32_t ldx, bool transposed, const ck_training_operand *operand) {
    pack_job job = {ck_training_best(), x, (size_t)ldx, transposed, operand};
    ck_pool_run(pool, (operand->count + ROWS - 1) / ROWS, pack_chunk, &job);
}

// MARK: - Products

typedef struct {
    const ck_training_kernels *k;
    const ck_training_product *products;
    int32_t count, threads;
} product_job;

static int32_t outputs_of(const ck_training_product *p) { return p->transposed ? p->columns : p->rows; }

/// The outputs of one unit of work. With `transposed`, a unit decodes whole blocks of the file: wide units decode each block once.
static int32_t unit_of(const ck_training_product *p, int32_t threads) {
    if (!p->transposed) return COLUMNS;
    int32_t n = outputs_of(p), widest = ck_type_block(p->type) > 64 ? WIDEST : 64;
    while (widest > 64 && (n + widest - 1) / widest < 3 * threads) widest /= 2;
    return widest;
}

static int32_t units_of(const ck_training_product *p, int32_t threads) {
    int32_t unit = unit_of(p, threads);
    return (outputs_of(p) + unit - 1) / unit;
}

/// Few outputs are split over the rows of the left operand.
static int32_t splits_of(const ck_training_product *p, int32_t threads) {
    int32_t panels = (p->x.count + ROWS - 1) / ROWS, wanted = (3 * threads + units_of(p, threads) - 1) / units_of(p, threads);
    return wanted < 1 ? 1 : wanted > panels ? panels : wanted;
}

/// Elements `first ..< first + count` of a row, decoded; `buffer` has space for them and two blocks.
static const float *decoded(const ck_training_product *p, int32_t row, int32_t first, int32_t count, float *buffer) {
    const uint8_t *source = p->weights + (size_t)row * p->row_bytes;
    if (p->type == CK_TYPE_F32) return (const float *)source + first;
    int32_t block = ck_type_block(p->type), begin = first / block * block, end = (first + count + block - 1) / block * block;
    ck_dequantize(p->type, source + (size_t)(begin / block) * (size_t)ck_type_bytes(p->type), (size_t)(end - begin), buffer);
    return buffer + (first - begin);
}

/// Decodes a part of the matrix into tiles of 32 outputs.
static void pack_right(const ck_training_kernels *t, const ck_training_product *p, int32_t output, int32_t outputs, int32_t from, int32_t depth, bool rounds,
                       void *tiles) {
    float buffer[2][DEPTH + 512];
    static const float zeros[COLUMNS];
    float *plain = tiles;
    uint32_t *pairs = tiles;
    size_t tile = (size_t)(rounds ? DEPTH / 2 : DEPTH) * COLUMNS;
    int32_t padded = (outputs + COLUMNS - 1) / COLUMNS * COLUMNS;
    if (!p->transposed) {
        float rows[16][DEPTH + 512];
        for (int32_t first = 0; first < padded; first += 16) {
            const float *starts[16];
            int32_t count = outputs - first < 0 ? 0 : outputs - first < 16 ? outputs - first : 16;
            for (int32_t i = 0; i < count; i++) starts[i] = decoded(p, output + first + i, from, depth, rows[i]);
            t->interleave(starts, count, depth, rounds, COLUMNS, (uint32_t *)tiles + (size_t)(first / COLUMNS) * tile + (size_t)(first % COLUMNS));
        }
        return;
    }
    for (int32_t k = 0; k < depth; k += rounds ? 2 : 1) {
        const float *row = decoded(p, from + k, output, outputs, buffer[0]);
        const float *next = rounds && k + 1 < depth ? decoded(p, from + k + 1, output, outputs, buffer[1]) : NULL;
        for (int32_t first = 0; first < padded; first += COLUMNS) {
            int32_t count = outputs - first < COLUMNS ? outputs - first : COLUMNS;
            size_t at = (size_t)(first / COLUMNS) * tile + (size_t)(rounds ? k / 2 : k) * COLUMNS;
            if (rounds) {
                t->pair_rows(row + first, next ? next + first : zeros, count, pairs + at);
                for (int32_t i = count; i < COLUMNS; i++) pairs[at + (size_t)i] = 0;
            } else {
                for (int32_t i = 0; i < count; i++) plain[at + (size_t)i] = row[first + i];
                for (int32_t i = count; i < COLUMNS; i++) plain[at + (size_t)i] = 0;
            }
        }
    }
}

static void product_chunk(void *context, int chunk) {
    const product_job *job = context;
    const ck_training_product *p = job->products;
    while (chunk >= units_of(p, job->threads) * splits_of(p, job->threads))
        chunk -= units_of(p, job->threads) * splits_of(p, job->threads), p++;
    int32_t splits = splits_of(p, job->threads), unit = unit_of(p, job->threads), split = chunk % splits;
    int32_t output = chunk / splits * unit, n = outputs_of(p), outputs = n - output < unit ? n - output : unit;
    int32_t panels = (p->x.count + ROWS - 1) / ROWS, begin = panels * split / splits, end = panels * (split + 1) / splits;
    int32_t depth = p->transposed ? p->rows : p->columns;
    bool rounds = p->x.rounds;
    // With F32 matrices whose rows are read as they are, nothing needs to be copied.
    bool is_plain = !rounds && p->transposed && p->type == CK_TYPE_F32 && outputs % COLUMNS == 0;
    float tiles[DEPTH * WIDEST] __attribute__((aligned(64)));
    for (int32_t from = 0; from < depth; from += DEPTH) {
        int32_t part = depth - from < DEPTH ? depth - from : DEPTH;
        if (!is_plain) pack_right(job->k, p, output, outputs, from, part, rounds, tiles);
        for (int32_t panel = begin; panel < end; panel++) {
            int32_t rows = p->x.count - panel * ROWS < ROWS ? p->x.count - panel * ROWS : ROWS;
            const uint8_t *left = (const uint8_t *)p->x.panels + (size_t)panel * panel_size(p->x.k, rounds);
            float *y = p->y + (size_t)panel * ROWS * (size_t)p->ldy + output;
            for (int32_t first = 0; first < outputs; first += COLUMNS) {
                int32_t columns = outputs - first < COLUMNS ? outputs - first : COLUMNS;
                bool add = p->add || from > 0;
                if (rounds)
                    job->k->rounded_tile((const uint32_t *)left + (size_t)(from / 2) * ROWS,
                                         (const uint32_t *)tiles + (size_t)first * (DEPTH / 2), (part + 1) / 2, rows, columns, p->scale,
                                         add, y + first, p->ldy);
                else if (is_plain)
                    job->k->tile((const float *)left + (size_t)from * ROWS,
                                 (const float *)(p->weights + (size_t)from * p->row_bytes) + output + first, (int32_t)(p->row_bytes / 4),
                                 part, rows, columns, p->scale, add, y + first, p->ldy);
                else
                    job->k->tile((const float *)left + (size_t)from * ROWS, tiles + (size_t)first * DEPTH, COLUMNS, part, rows, columns,
                                 p->scale, add, y + first, p->ldy);
            }
        }
    }
}

void ck_training_multiply(ck_pool *pool, const ck_training_kernels *k, const ck_training_product *products, int32_t count) {
    product_job job = {k, products, count, ck_pool_threads(pool)};
    int32_t chunks = 0;
    for (int32_t i = 0; i < count; i++) chunks += units_of(&products[i], job.threads) * splits_of(&products[i], job.threads);
    ck_pool_run(pool, chunks, product_chunk, &job);
}

// MARK: - Attention

/// Queries that are computed together.
enum { QUERIES = 48 };

typedef struct {
    const ck_training_kernels *k;
    const ck_training_attention *a;
    bool backward;
    _Atomic int32_t next;
} attention_job;

static int32_t longest_of(const ck_training_attention *a) {
    int32_t longest = 0;
    for (int32_t i = 0; i < a->sequences; i++)
        if (a->starts[i + 1] - a->starts[i] > longest) longest = a->starts[i + 1] - a->starts[i];
    return (longest + COLUMNS - 1) / COLUMNS * COLUMNS;
}

size_t ck_training_attention_floats(const ck_training_attention *a) {
    size_t longest = (size_t)longest_of(a), dims = (size_t)(a->key_dim + a->value_dim);
    // Transposed keys and values; scores, their gradients, and both as panels; queries and gradients of outputs as panels.
    return longest * dims + 3 * QUERIES * (longest + ROWS) + QUERIES * dims + 1024;
}

static void pack_panels(const ck_training_kernels *t, const float *x, size_t ldx, bool transposed, int32_t count, int32_t k,
                        float *panels) {
    for (int32_t first = 0; first < count; first += ROWS)
        pack_panel(t, x, ldx, transposed, first, count - first < ROWS ? count - first : ROWS, k, false,
                   panels + (size_t)first * (size_t)k);
}

/// c[count][n] = scale · a · b, or += if `add`, with packed rows of `a` and rows of `b`.
static void small_product(const ck_training_kernels *k, const float *panels, int32_t count, const float *b, int32_t ldb, int32_t depth,
                          int32_t n, float scale, bool add, float *c, int32_t ldc) {
    for (int32_t first = 0; first < count; first += ROWS)
        for (int32_t column = 0; column < n; column += COLUMNS)
            k->tile(panels + (size_t)first * (size_t)depth, b + column, ldb, depth, count - first < ROWS ? count - first : ROWS,
                    n - column < COLUMNS ? n - column : COLUMNS, scale, add, c + (size_t)first * (size_t)ldc + column, ldc);
}

/// Overwrites the scores of rows of other branches among a row's scores, which begin at row `from` of the sequence.
static void hide_branches(const ck_training_attention *a, int32_t sequence, size_t row, int32_t from, float *scores, float value) {
    if (!a->branches) return;
    for (int32_t i = a->prefixes[sequence]; i < a->branches[row]; i++)
        if (i >= from) scores[i - from] = value;
}

static void attend_head(const attention_job *job, int32_t sequence, int32_t kv, float *scratch) {
    const ck_training_attention *a = job->a;
    const ck_training_kernels *t = job->k;
    int32_t start = a->starts[sequence], length = a->starts[sequence + 1] - start;
    int32_t padded = (length + COLUMNS - 1) / COLUMNS * COLUMNS, group = a->heads / a->kv_heads;
    size_t row = (size_t)start;
    const float *keys = a->k + row * (size_t)a->ldk + (size_t)kv * (size_t)a->key_dim;
    const float *values = a->v + row * (size_t)a->ldv + (size_t)kv * (size_t)a->value_dim;
    float *keys_transposed = scratch, *values_transposed = keys_transposed + (size_t)padded * (size_t)a->key_dim;
    float *scores = values_transposed + (size_t)padded * (size_t)a->value_dim, *gradients = scores + (size_t)QUERIES * (size_t)padded;
    float *panels = gradients + (size_t)QUERIES * (size_t)padded, *small = panels + (size_t)QUERIES * (size_t)(padded + ROWS);
    for (int32_t d = 0; d < a->key_dim; d++)
        for (int32_t i = 0; i < padded; i++)
            keys_transposed[(size_t)d * (size_t)padded + (size_t)i] = i < length ? keys[(size_t)i * (size_t)a->ldk + (size_t)d] : 0;
    float *dk = NULL, *dv = NULL;
    if (job->backward) {
        for (int32_t d = 0; d < a->value_dim; d++)
            for (int32_t i = 0; i < padded; i++)
                values_transposed[(size_t)d * (size_t)padded + (size_t)i] = i < length ? values[(size_t)i * (size_t)a->ldv + (size_t)d] : 0;
        dk = a->dk + row * (size_t)a->ldk + (size_t)kv * (size_t)a->key_dim;
        dv = a->dv + row * (size_t)a->ldv + (size_t)kv * (size_t)a->value_dim;
        for (int32_t i = 0; i < length; i++) {
            memset(dk + (size_t)i * (size_t)a->ldk, 0, (size_t)a->key_dim * 4);
            memset(dv + (size_t)i * (size_t)a->ldv, 0, (size_t)a->value_dim * 4);
        }
    }
    for (int32_t head = kv * group; head < (kv + 1) * group; head++) {
        for (int32_t first = 0; first < length; first += QUERIES) {
            int32_t queries = length - first < QUERIES ? length - first : QUERIES, end = first + queries;
            int32_t from = a->window > 0 && first - a->window + 1 > 0 ? (first - a->window + 1) / COLUMNS * COLUMNS : 0, span = end - from;
            const float *q = a->q + (row + (size_t)first) * (size_t)a->ldq + (size_t)head * (size_t)a->key_dim;
            float *out = a->out + (row + (size_t)first) * (size_t)a->ldo + (size_t)head * (size_t)a->value_dim;
            float *lse = a->lse + (row + (size_t)first) * (size_t)a->heads + head;
            pack_panels(t, q, (size_t)a->ldq, false, queries, a->key_dim, small);
            small_product(t, small, queries, keys_transposed + from, padded, a->key_dim, span, a->scale, false, scores, padded);
            for (int32_t i = 0; i < queries; i++) {
                float *s = scores + (size_t)i * (size_t)padded;
                int32_t last = first + i - from, begin = a->window > 0 ? last - a->window + 1 : 0;
                if (begin < 0) begin = 0;
                if (a->soft_cap > 0) t->soft_cap(s + begin, a->soft_cap, last + 1 - begin);
                hide_branches(a, sequence, row + (size_t)(first + i), from, s, -INFINITY);
                if (!job->backward) {
                    float maximum = s[begin];
                    for (int32_t j = begin; j <= last; j++)
                        if (s[j] > maximum) maximum = s[j];
                    float sum = t->exponentials(s + begin, maximum, last + 1 - begin), inverse = 1 / sum;
                    for (int32_t j = begin; j <= last; j++) s[j] *= inverse;
                    // Zero, not almost zero: arithmetic with denormal numbers takes a hundred times as long.
                    hide_branches(a, sequence, row + (size_t)(first + i), from, s, 0);
                    lse[(size_t)i * (size_t)a->heads] = maximum + logf(sum);
                    for (int32_t j = 0; j < begin; j++) s[j] = 0;
                    for (int32_t j = last + 1; j < span; j++) s[j] = 0;
                }
            }
            if (!job->backward) {
                pack_panels(t, scores, (size_t)padded, false, queries, span, panels);
                small_product(t, panels, queries, values + (size_t)from * (size_t)a->ldv, a->ldv, span, a->value_dim, 1, false, out, a->ldo);
                continue;
            }
            const float *dout = a->dout + (row + (size_t)first) * (size_t)a->ldo + (size_t)head * (size_t)a->value_dim;
            float *dq = a->dq + (row + (size_t)first) * (size_t)a->ldq + (size_t)head * (size_t)a->key_dim;
            pack_panels(t, dout, (size_t)a->ldo, false, queries, a->value_dim, small);
            small_product(t, small, queries, values_transposed + from, padded, a->value_dim, span, 1, false, gradients, padded);
            for (int32_t i = 0; i < queries; i++) {
                float *s = scores + (size_t)i * (size_t)padded, *g = gradients + (size_t)i * (size_t)padded;
                int32_t last = first + i - from, begin = a->window > 0 ? last - a->window + 1 : 0;
                if (begin < 0) begin = 0;
                float delta = 0, *buffer = panels;
                for (int32_t d = 0; d < a->value_dim; d++)
                    delta += dout[(size_t)i * (size_t)a->ldo + (size_t)d] * out[(size_t)i * (size_t)a->ldo + (size_t)d];
                memcpy(buffer, s + begin, (size_t)(last + 1 - begin) * 4);
                t->exponentials(s + begin, lse[(size_t)i * (size_t)a->heads], last + 1 - begin);
                hide_branches(a, sequence, row + (size_t)(first + i), from, s, 0);
                for (int32_t j = begin; j <= last; j++) g[j] = s[j] * (g[j] - delta);
                if (a->soft_cap > 0)
                    for (int32_t j = begin; j <= last; j++) {
                        if (s[j] == 0) continue;
                        float share = buffer[j - begin] / a->soft_cap;
                        g[j] *= 1 - share * share;
                    }
                for (int32_t j = 0; j < begin; j++) s[j] = g[j] = 0;
                for (int32_t j = last + 1; j < span; j++) s[j] = g[j] = 0;
            }
            pack_panels(t, gradients, (size_t)padded, false, queries, span, panels);
            small_product(t, panels, queries, keys + (size_t)from * (size_t)a->ldk, a->ldk, span, a->key_dim, a->scale, false, dq, a->ldq);
            pack_panels(t, gradients, (size_t)padded, true, span, queries, panels);
            small_product(t, panels, span, q, a->ldq, queries, a->key_dim, a->scale, true, dk + (size_t)from * (size_t)a->ldk, a->ldk);
            pack_panels(t, scores, (size_t)padded, true, span, queries, panels);
            small_product(t, panels, span, dout, a->ldo, queries, a->value_dim, 1, true, dv + (size_t)from * (size_t)a->ldv, a->ldv);
        }
    }
}

static void attention_chunk(void *context, int chunk) {
    attention_job *job = context;
    float *scratch = job->a->scratch + (size_t)chunk * ck_training_attention_floats(job->a);
    for (;;) {
        int32_t item = atomic_fetch_add(&job->next, 1);
        if (item >= job->a->sequences * job->a->kv_heads) return;
        attend_head(job, item / job->a->kv_heads, item % job->a->kv_heads, scratch);
    }
}

void ck_training_attend(ck_pool *pool, const ck_training_kernels *k, const ck_training_attention *a) {
    attention_job job = {k, a, false, 0};
    ck_pool_run(pool, ck_pool_threads(pool), attention_chunk, &job);
}

void ck_training_attend_backward(ck_pool *pool, const ck_training_kernels *k, const ck_training_attention *a) {
    attention_job job = {k, a, true, 0};
    ck_pool_run(pool, ck_pool_threads(pool), attention_chunk, &job);
}
