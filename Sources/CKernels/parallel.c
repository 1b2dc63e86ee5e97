// Operations over whole activations, cut into chunks for the pool.

#include <math.h>
#include <string.h>

#include "ckernels.h"

// MARK: - Products

typedef struct {
    const ck_kernels *kernels;
    const ck_activations *activations;
    const ck_product *products;
    int32_t count, panels_per_chunk;
} matmul_job;

static int32_t panels_of(const ck_matrix *m) { return (m->rows + CK_PANEL - 1) / CK_PANEL; }

static void matmul_chunk(void *context, int chunk) {
    const matmul_job *job = context;
    int32_t panel = chunk * job->panels_per_chunk, end = panel + job->panels_per_chunk, base = 0;
    for (int32_t i = 0; i < job->count; i++) {
        const ck_product *product = &job->products[i];
        int32_t panels = panels_of(&product->matrix);
        for (; panel < end && panel < base + panels; panel++)
            job->kernels->panel(&product->matrix, panel - base, job->activations, product->y, product->ldy, product->add);
        base += panels;
    }
}

void ck_matmul(ck_pool *pool, const ck_kernels *k, const ck_activations *a, const ck_product *products, int32_t count) {
    matmul_job job = {k, a, products, count, 1};
    int32_t panels = 0;
    for (int32_t i = 0; i < count; i++) panels += panels_of(&products[i].matrix);
    // Six chunks a thread: enough to even out a disturbed core, few enough that claims cost nothing.
    int32_t chunks = ck_pool_threads(pool) * 6;
    job.panels_per_chunk = (panels + chunks - 1) / chunks;
    if (job.panels_per_chunk < 1) job.panels_per_chunk = 1;
    ck_pool_run(pool, (panels + job.panels_per_chunk - 1) / job.panels_per_chunk, matmul_chunk, &job);
}

void ck_matmul_rows(const ck_kernels *k, const ck_activations *a, const ck_product *product, const int32_t *rows,
                    int32_t count) {
    int32_t done = -1;
    for (int32_t i = 0; i < count; i++) {
        int32_t panel = rows[i] / CK_PANEL;
        if (panel == done) continue;
        k->panel(&product->matrix, panel, a, product->y, product->ldy, product->add);
        done = panel;
    }
}

// MARK: - Row-wise operations

typedef struct {
    const ck_kernels *kernels;
    const ck_activations *activations;
    const float *x, *weight;
    float *out;
    float epsilon;
    int32_t columns, rows_per_chunk;
    bool quantize;
} rows_job;

static void run_rows(ck_pool *pool, rows_job *job, void (*chunk)(void *, int)) {
    int32_t rows = job->activations->count, chunks = ck_pool_threads(pool) * 4;
    // A few rows are done sooner than another thread could join.
    job->rows_per_chunk = rows < 4 ? rows : (rows + chunks - 1) / chunks;
    if (rows > 0) ck_pool_run(pool, (rows + job->rows_per_chunk - 1) / job->rows_per_chunk, chunk, job);
}

#define FOR_ROWS(row)                                                                                    \
    const rows_job *job = context;                                                                       \
    int32_t last = (chunk + 1) * job->rows_per_chunk;                                                    \
    if (last > job->activations->count) last = job->activations->count;                                  \
    for (int32_t row = chunk * job->rows_per_chunk; row < last; row++)

static void normalize_chunk(void *context, int chunk) {
    FOR_ROWS(row) {
        size_t at = (size_t)row * (size_t)job->columns;
        job->kernels->rmsnorm(job->x + at, job->weight, job->epsilon, job->columns, job->out + at);
        if (job->quantize) job->kernels->quantize(job->activations, row);
    }
}

static void swiglu_chunk(void *context, int chunk) {
    FOR_ROWS(row) {
        size_t at = (size_t)row * (size_t)job->columns;
        job->kernels->swiglu(job->out + at, job->x + at, job->columns);
        if (job->quantize) job->kernels->quantize(job->activations, row);
    }
}

static void quantize_chunk(void *context, int chunk) {
    FOR_ROWS(row) job->kernels->quantize(job->activations, row);
}

void ck_normalize(ck_pool *pool, const ck_kernels *k, const float *x, const float *weight, float epsilon, float *out,
                  const ck_activations *a, bool quantize) {
    rows_job job = {k, a, x, weight, out, epsilon, a->columns, 0, quantize};
    run_rows(pool, &job, normalize_chunk);
}

void ck_swiglu(ck_pool *pool, const ck_kernels *k, float *gate, const float *up, const ck_activations *a, bool quantize) {
    rows_job job = {k, a, up, NULL, gate, 0, a->columns, 0, quantize};
    run_rows(pool, &job, swiglu_chunk);
}

void ck_quantize(ck_pool *pool, const ck_kernels *k, const ck_activations *a) {
    rows_job job = {k, a, NULL, NULL, NULL, 0, a->columns, 0, true};
    run_rows(pool, &job, quantize_chunk);
}

// MARK: - Attention

enum { GROUP = 12, SPLIT = 256 };  // query rows of one work item; positions of one part when one token is split

typedef struct {
    const ck_kernels *kernels;
    const ck_attention *attention;
    int32_t heads_per_group, groups_per_kv, rows_per_item, row_items, parts, from, stride;
} attention_job;

static int32_t greatest(int32_t a, int32_t b) { return a > b ? a : b; }
static int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }

size_t ck_attention_partial_floats(int32_t heads, int32_t head_dim, int32_t capacity) {
    size_t parts = (size_t)(capacity + SPLIT - 1) / SPLIT + 1;
    return (size_t)heads * parts * (size_t)((head_dim + 15) / 16 * 16 + 2);
}

/// Joins a row's running result with its next part (see `attend_rows` for their form). Parts are always the same
/// stretches of positions, joined in order, so that a token's result does not depend on what it was computed with.
static void join(const ck_attention *a, float *running, const float *part) {
    if (part[0] == -INFINITY) return;
    float most = running[0] > part[0] ? running[0] : part[0];
    float old = running[0] == -INFINITY ? 0 : expf(running[0] - most), new = expf(part[0] - most);
    running[0] = most;
    running[1] = running[1] * old + part[1] * new;
    for (int32_t d = 0; d < a->head_dim; d++) running[2 + d] = running[2 + d] * old + part[2 + d] * new;
}

static void finish(const ck_attention *a, const float *running, float *out) {
    for (int32_t d = 0; d < a->head_dim; d++) out[d] = running[2 + d] / running[1];
}

static void attention_chunk(void *context, int chunk) {
    const attention_job *job = context;
    const ck_attention *a = job->attention;
    int32_t part = chunk % job->parts;
    // Late rows see the most positions: they go first, so that no thread ends on the longest item.
    int32_t item = job->row_items - 1 - chunk / job->parts % job->row_items;
    int32_t group = chunk / job->parts / job->row_items;
    int32_t kv_head = group / job->groups_per_kv, repeat = a->heads / a->kv_heads;
    int32_t first_head = kv_head * repeat + group % job->groups_per_kv * job->heads_per_group;
    int32_t head_count = least(job->heads_per_group, (kv_head + 1) * repeat - first_head);
    int32_t first_row = item * job->rows_per_item, row_count = least(job->rows_per_item, a->rows - first_row);
    if (a->rows == 1) {  // its positions are cut up over the threads; the parts are joined afterwards
        int32_t from = (job->from / SPLIT + part) * SPLIT, to = least(from + SPLIT, a->length);
        float *partial = a->partial + (size_t)part * (size_t)a->heads * (size_t)job->stride +
                         (size_t)first_head * (size_t)job->stride;
        job->kernels->attention(a, kv_head, first_head, head_count, first_row, row_count, from, to, partial);
        return;
    }
    int32_t end = a->length - a->rows + first_row + row_count, n = head_count * row_count;
    int32_t start = a->window > 0 ? greatest(0, end - row_count + 1 - a->window) : 0;
    float running[GROUP * job->stride], partial[GROUP * job->stride];
    for (int32_t from = start / SPLIT * SPLIT; from < end; from += SPLIT) {
        bool first = from <= start;
        job->kernels->attention(a, kv_head, first_head, head_count, first_row, row_count, from, least(from + SPLIT, end),
                                first ? running : partial);
        if (first) continue;
        for (int32_t i = 0; i < n; i++) join(a, running + i * job->stride, partial + i * job->stride);
    }
    n = 0;
    for (int32_t row = first_row; row < first_row + row_count; row++)
        for (int32_t head = first_head; head < first_head + head_count; head++, n++)
            finish(a, running + n * job->stride, a->out + ((size_t)row * (size_t)a->heads + (size_t)head) * (size_t)a->head_dim);
}

void ck_attend(ck_pool *pool, const ck_kernels *k, const ck_attention *a) {
    int32_t repeat = a->heads / a->kv_heads;
    attention_job job = {.kernels = k, .attention = a, .stride = a->value_stride + 2, .parts = 1};
    job.heads_per_group = least(repeat, GROUP);
    job.groups_per_kv = (repeat + job.heads_per_group - 1) / job.heads_per_group;
    job.rows_per_item = a->rows == 1 ? 1 : greatest(1, GROUP / job.heads_per_group);
    job.row_items = (a->rows + job.rows_per_item - 1) / job.rows_per_item;
    if (a->rows == 1) {
        job.from = a->window > 0 && a->length > a->window ? a->length - a->window : 0;
        job.parts = (a->length + SPLIT - 1) / SPLIT - job.from / SPLIT;
    }
    int32_t groups = a->kv_heads * job.groups_per_kv;
    ck_pool_run(pool, groups * job.row_items * job.parts, attention_chunk, &job);
    if (a->rows > 1) return;
    for (int32_t head = 0; head < a->heads; head++) {
        float *running = a->partial + (size_t)head * (size_t)job.stride;
        for (int32_t part = 1; part < job.parts; part++)
            join(a, running, running + (size_t)part * (size_t)a->heads * (size_t)job.stride);
        finish(a, running, a->out + (size_t)head * (size_t)a->head_dim);
    }
}

// MARK: - Positions

typedef struct {
    const ck_kernels *kernels;
    const ck_rotation *rotation;
    int32_t rows_per_chunk;
} rotation_job;

static void rotate(float *x, int32_t heads, const ck_rotation *r, const float *cosine, const float *sine) {
    for (int32_t head = 0; head < heads; head++, x += r->head_dim) {
        for (int32_t i = 0; i < r->pairs; i++) {
            float *first = r->halves ? x + i : x + 2 * i, *second = r->halves ? x + i + r->pairs : first + 1;
            float a = *first, b = *second;
            *first = a * cosine[i] - b * sine[i];
            *second = a * sine[i] + b * cosine[i];
        }
    }
}

static void rotation_chunk(void *context, int chunk) {
    const rotation_job *job = context;
    const ck_rotation *r = job->rotation;
    int32_t last = least((chunk + 1) * job->rows_per_chunk, r->rows);
    uint16_t halves[r->head_dim];
    for (int32_t row = chunk * job->rows_per_chunk; row < last; row++) {
        const float *cosine = r->cosine + (size_t)row * (size_t)r->pairs, *sine = r->sine + (size_t)row * (size_t)r->pairs;
        size_t kv_width = (size_t)r->kv_heads * (size_t)r->head_dim;
        float *k = r->k + (size_t)row * kv_width;
        const float *v = r->v + (size_t)row * kv_width;
        rotate(r->q + (size_t)row * (size_t)r->heads * (size_t)r->head_dim, r->heads, r, cosine, sine);
        rotate(k, r->kv_heads, r, cosine, sine);
        size_t position = (size_t)(r->position + row);
        for (int32_t head = 0; head < r->kv_heads; head++, k += r->head_dim, v += r->head_dim) {
            size_t base = (size_t)head * (size_t)r->capacity;
            uint16_t *block = r->keys + (base + position / 16 * 16) * (size_t)r->head_dim + position % 16;
            job->kernels->to_half(k, r->head_dim, halves);
            for (int32_t d = 0; d < r->head_dim; d++) block[16 * d] = halves[d];
            job->kernels->to_half(v, r->head_dim, r->values + (base + position) * (size_t)r->value_stride);
        }
    }
}

void ck_rotate_and_store(ck_pool *pool, const ck_kernels *k, const ck_rotation *r) {
    // Whole key blocks a chunk, so that no two threads write one cache line.
    rotation_job job = {k, r, r->rows < 16 ? r->rows : 16};
    if (r->rows > 0) ck_pool_run(pool, (r->rows + job.rows_per_chunk - 1) / job.rows_per_chunk, rotation_chunk, &job);
}
