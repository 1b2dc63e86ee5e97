// Operations on whole activations, split into chunks for the thread pool.

#include <math.h>
#include <string.h>

#include "ckernels.h"

// MARK: - Products

typedef struct {
    const ck_kernels *kernels;
    const ck_activations *activations;
    const ck_product *products;
    int32_t count, panels, threads;
} matmul_job;

static int32_t panels_of(const ck_matrix *m) { return (m->rows + CK_PANEL - 1) / CK_PANEL; }

enum { ROUNDS = 6 };

/// The first panel of a chunk. Each round has one chunk per thread and takes half of the remaining panels; the last
/// round takes all of them. The first chunks are long contiguous ranges of memory; the last ones are so small that no
/// thread waits long for another (factoring; Hummel, Schonberg and Flynn, doi:10.1145/135226.135232).
static int32_t chunk_start(const matmul_job *job, int chunk) {
    int round = chunk / job->threads;
    if (round >= ROUNDS) return job->panels;
    int32_t left = job->panels >> round, share = round + 1 < ROUNDS ? left - (job->panels >> (round + 1)) : left;
    return job->panels - left + share * (chunk % job->threads) / job->threads;
}

static void matmul_chunk(void *context, int chunk) {
    const matmul_job *job = context;
    int32_t panel = chunk_start(job, chunk), end = chunk_start(job, chunk + 1), base = 0;
    for (int32_t i = 0; i < job->count; i++) {
        const ck_product *product = &job->products[i];
        int32_t panels = panels_of(&product->matrix);
        const ck_activations *a = product->activations ? product->activations : job->activations;
        int32_t last = end < base + panels ? end : base + panels;
        while (panel < last) {
            if (job->kernels->pair && panel + 1 < last &&
                job->kernels->pair(&product->matrix, panel - base, a, product->y, product->ldy, product->add)) {
                panel += 2;
            } else {
                job->kernels->panel(&product->matrix, panel++ - base, a, product->y, product->ldy, product->add);
            }
        }
        base += panels;
    }
}

void ck_matmul(ck_pool *pool, const ck_kernels *k, const ck_activations *a, const ck_product *products, int32_t count) {
    matmul_job job = {k, a, products, count, 0, ck_pool_threads(pool)};
    for (int32_t i = 0; i < count; i++) job.panels += panels_of(&products[i].matrix);
    ck_pool_run(pool, job.threads * ROUNDS, matmul_chunk, &job);
}

void ck_matmul_rows(const ck_kernels *k, const ck_activations *a, const ck_product *product, const int32_t *rows,
                    int32_t count) {
    int32_t done = -1;
    for (int32_t i = 0; i < count; i++) {
        int32_t panel = rows[i] / CK_PANEL;
        if (panel == done) continue;
        k->panel(&product->matrix, panel, product->activations ? product->activations : a, product->y, product->ldy, product->add);
        done = panel;
    }
}

// MARK: - Row-wise operations

typedef struct {
    const ck_kernels *kernels;
    const ck_activations *activations;
    const float *x, *weight;
    float *out;
    float epsilon, scale;
    int32_t rows, columns, rows_per_chunk;
    bool quantize;
    ck_activation activation;
    const float *gate_bias, *up_bias, *bias;
} rows_job;

static void run_rows(ck_pool *pool, rows_job *job, void (*chunk)(void *, int)) {
    int32_t rows = job->rows, chunks = ck_pool_threads(pool) * 4;
    // For a few rows, waking another thread takes longer than the work itself.
    job->rows_per_chunk = rows < 4 ? rows : (rows + chunks - 1) / chunks;
    if (rows > 0) ck_pool_run(pool, (rows + job->rows_per_chunk - 1) / job->rows_per_chunk, chunk, job);
}

#define FOR_ROWS(row)                                                                                    \
    const rows_job *job = context;                                                                       \
    int32_t last = (chunk + 1) * job->rows_per_chunk;                                                    \
    if (last > job->rows) last = job->rows;                                                              \
    for (int32_t row = chunk * job->rows_per_chunk; row < last; row++)

static void normalize_chunk(void *context, int chunk) {
    FOR_ROWS(row) {
        size_t at = (size_t)row * (size_t)job->columns;
        if (job->weight) job->kernels->rmsnorm(job->x + at, job->weight, job->epsilon, job->columns, job->out + at);
        else memcpy(job->out + at, job->x + at, (size_t)job->columns * sizeof(float));
        if (job->quantize) job->kernels->quantize(job->activations, row);
    }
}

static void layer_normalize_chunk(void *context, int chunk) {
    FOR_ROWS(row) {
        size_t at = (size_t)row * (size_t)job->columns;
        job->kernels->layernorm(job->x + at, job->weight, job->bias, job->epsilon, job->columns, job->out + at);
        if (job->quantize) job->kernels->quantize(job->activations, row);
    }
}

static void add_chunk(void *context, int chunk) {
    FOR_ROWS(row) {
        size_t at = (size_t)row * (size_t)job->columns;
        float *x = (float *)job->x + at, *out = job->out + at;
        if (job->bias) job->kernels->add(x, job->bias, 1, job->columns);
        if (job->weight) job->kernels->rmsnorm(x, job->weight, job->epsilon, job->columns, x);
        job->kernels->add(out, x, job->scale, job->columns);
    }
}

void ck_add_bias(const ck_kernels *k, float *x, const float *bias, int32_t rows, int32_t columns) {
    for (int32_t row = 0; row < rows; row++, x += columns) k->add(x, bias, 1, columns);
}

static void activate_chunk(void *context, int chunk) {
    FOR_ROWS(row) {
        size_t at = (size_t)row * (size_t)job->columns;
        if (job->gate_bias) job->kernels->add(job->out + at, job->gate_bias, 1, job->columns);
        if (job->up_bias && job->x) job->kernels->add((float *)job->x + at, job->up_bias, 1, job->columns);
        job->kernels->activate(job->activation, job->out + at, job->x ? job->x + at : NULL, job->columns);
        if (job->quantize) job->kernels->quantize(job->activations, row);
    }
}

static void quantize_chunk(void *context, int chunk) {
    FOR_ROWS(row) job->kernels->quantize(job->activations, row);
}

void ck_normalize(ck_pool *pool, const ck_kernels *k, const float *x, const float *weight, float epsilon, float *out,
                  const ck_activations *a, bool quantize) {
    rows_job job = {.kernels = k, .activations = a, .x = x, .weight = weight, .out = out, .epsilon = epsilon,
                    .rows = a->count, .columns = a->columns, .quantize = quantize};
    run_rows(pool, &job, normalize_chunk);
}

void ck_layer_normalize(ck_pool *pool, const ck_kernels *k, const float *x, const float *weight, const float *bias,
                        float epsilon, float *out, const ck_activations *a, bool quantize) {
    rows_job job = {.kernels = k, .activations = a, .x = x, .weight = weight, .bias = bias, .out = out, .epsilon = epsilon,
                    .rows = a->count, .columns = a->columns, .quantize = quantize};
    run_rows(pool, &job, layer_normalize_chunk);
}

void ck_add_branch(ck_pool *pool, const ck_kernels *k, float *x, const float *bias, const float *weight, float epsilon, float scale,
                   float *residual, int32_t rows, int32_t columns) {
    rows_job job = {.kernels = k, .x = x, .bias = bias, .weight = weight, .out = residual, .epsilon = epsilon, .scale = scale,
                    .rows = rows, .columns = columns};
    run_rows(pool, &job, add_chunk);
}

void ck_activate(ck_pool *pool, const ck_kernels *k, ck_activation kind, float *gate, const float *up, const float *gate_bias,
                 const float *up_bias, const ck_activations *a, bool quantize) {
    rows_job job = {.kernels = k, .activations = a, .x = up, .out = gate, .rows = a->count, .columns = a->columns,
                    .quantize = quantize, .activation = kind, .gate_bias = gate_bias, .up_bias = up_bias};
    run_rows(pool, &job, activate_chunk);
}

void ck_quantize(ck_pool *pool, const ck_kernels *k, const ck_activations *a) {
    rows_job job = {.kernels = k, .activations = a, .rows = a->count, .columns = a->columns, .quantize = true};
    run_rows(pool, &job, quantize_chunk);
}

typedef struct {
    float *x;
    const float *gate;
    int32_t columns;
} sigmoid_job;

static void sigmoid_row(void *context, int row) {
    const sigmoid_job *job = context;
    float *x = job->x + (size_t)row * (size_t)job->columns;
    const float *gate = job->gate + (size_t)row * (size_t)job->columns;
    for (int32_t i = 0; i < job->columns; i++) x[i] /= 1 + expf(-gate[i]);
}

void ck_multiply_sigmoid(ck_pool *pool, float *x, const float *gate, int32_t rows, int32_t columns) {
    sigmoid_job job = {x, gate, columns};
    ck_pool_run(pool, rows, sigmoid_row, &job);
}

void ck_scale_by_gate(float *x, int32_t rows, int32_t columns, const float *input, const float *vector, int32_t width) {
    for (int32_t row = 0; row < rows; row++, x += columns, input += width) {
        float sum = 0;
        for (int32_t i = 0; i < width; i++) sum += input[i] * vector[i];
        float factor = 1 / (1 + expf(-sum));
        for (int32_t i = 0; i < columns; i++) x[i] *= factor;
    }
}

// MARK: - Attention

enum { GROUP = 12 };  // maximum query rows of one work item

/// One of the calls of a region; its first chunk is `first_chunk`.
typedef struct {
    const ck_kernels *kernels;
    const ck_attention *attention;
    int32_t heads_per_group, groups_per_kv, rows_per_item, row_items, parts, from, stride, first_chunk;
} attention_job;

typedef struct {
    const attention_job *jobs;
    int32_t count, chunks, threads;
} attention_region;

static int32_t larger(int32_t a, int32_t b) { return a > b ? a : b; }
static int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }

size_t ck_attention_partial_floats(int32_t heads, int32_t value_dim, int32_t capacity) {
    size_t parts = (size_t)(capacity + CK_PAGE - 1) / CK_PAGE + 1;
    return (size_t)heads * parts * (size_t)((value_dim + 15) / 16 * 16 + 2);
}

/// Merges the next part of a row into its running result (see `attend_rows` for their format). Parts always cover the
/// same ranges of positions and are merged in order, so that the result of a token does not depend on the batch.
static void join(const ck_attention *a, float *running, const float *part) {
    if (part[0] == -INFINITY) return;
    float maximum = running[0] > part[0] ? running[0] : part[0];
    float old = running[0] == -INFINITY ? 0 : expf(running[0] - maximum), new = expf(part[0] - maximum);
    running[0] = maximum;
    running[1] = running[1] * old + part[1] * new;
    for (int32_t d = 0; d < a->value_dim; d++) running[2 + d] = running[2 + d] * old + part[2 + d] * new;
}

static void finish(const ck_attention *a, int32_t head, const float *running, float *out) {
    float scale = 1, sum = running[1];
    if (a->sinks) {  // an additional term of the denominator, without a value
        float maximum = running[0] > a->sinks[head] ? running[0] : a->sinks[head];
        scale = expf(running[0] - maximum);
        sum = sum * scale + expf(a->sinks[head] - maximum);
    }
    for (int32_t d = 0; d < a->value_dim; d++) out[d] = running[2 + d] * scale / sum;
}

/// One work item: some heads of a KV head, and some rows or, of a single row, the positions of one page.
typedef struct {
    const attention_job *job;
    int32_t group, kv_head, rows, part;
} attention_item;

static attention_item locate(const attention_region *region, int32_t chunk) {
    const attention_job *job = region->jobs + region->count - 1;
    while (job->first_chunk > chunk) job--;
    chunk -= job->first_chunk;
    int32_t groups = job->attention->kv_heads * job->groups_per_kv;
    // Successive items of a single row read the same page.
    bool single = job->attention->rows == 1;
    attention_item item = {job, single ? chunk % groups : chunk / job->row_items, 0, 0, single ? chunk / groups : 0};
    // Later rows attend to more positions. They are processed first, so that no thread finishes with the longest item.
    item.rows = job->row_items - 1 - (single ? 0 : chunk % job->row_items);
    item.kv_head = item.group / job->groups_per_kv;
    return item;
}

/// Finds the keys and values that this thread probably reads next. Returns false if there are none of a single row.
static bool find_next(const attention_region *region, int32_t chunk, ck_attention_next *found) {
    if (chunk + region->threads >= region->chunks) return false;
    attention_item item = locate(region, chunk + region->threads);
    const ck_attention *a = item.job->attention;
    if (a->rows > 1) return false;
    const uint8_t *page = a->pages[item.job->from / CK_PAGE + item.part];
    size_t start = (size_t)item.kv_head * CK_PAGE * (a->bytes ? 1 : 2);
    found->keys = page + a->key_offset + start * (size_t)a->head_dim;
    found->values = page + a->value_offset + start * (size_t)a->value_stride;
    return true;
}

static void attention_chunk(void *context, int chunk) {
    const attention_region *region = context;
    attention_item item = locate(region, chunk);
    const attention_job *job = item.job;
    const ck_attention *a = job->attention;
    int32_t group = item.group, kv_head = item.kv_head, repeat = a->heads / a->kv_heads;
    int32_t first_head = kv_head * repeat + group % job->groups_per_kv * job->heads_per_group;
    int32_t head_count = smaller(job->heads_per_group, (kv_head + 1) * repeat - first_head);
    int32_t first_row = item.rows * job->rows_per_item, row_count = smaller(job->rows_per_item, a->rows - first_row);
    if (a->rows == 1) {  // the positions are split among the threads; `ck_attend` merges the parts
        int32_t from = (job->from / CK_PAGE + item.part) * CK_PAGE, to = smaller(from + CK_PAGE, a->length);
        float *partial = a->partial + (size_t)item.part * (size_t)a->heads * (size_t)job->stride +
                         (size_t)first_head * (size_t)job->stride;
        ck_attention_next next;
        bool has_next = find_next(region, chunk, &next);
        job->kernels->attention(a, kv_head, first_head, head_count, first_row, row_count, from, to, has_next ? &next : NULL, partial);
        return;
    }
    int32_t end = a->length - a->rows + first_row + row_count, n = head_count * row_count;
    int32_t start = a->window > 0 ? larger(0, end - row_count + 1 - a->window) : 0;
    if (a->both_sides) {
        int32_t side = a->window > 0 ? a->window / 2 : a->length;
        start = larger(0, first_row - side);
        end = side < a->length - end ? end + side : a->length;
    }
    for (int32_t row = first_row; a->visible_end && row < first_row + row_count; row++) end = larger(end, a->visible_end[row]);
    float running[GROUP * job->stride], partial[GROUP * job->stride];
    for (int32_t from = start / CK_PAGE * CK_PAGE; from < end; from += CK_PAGE) {
        bool first = from <= start;
        job->kernels->attention(a, kv_head, first_head, head_count, first_row, row_count, from, smaller(from + CK_PAGE, end),
                                NULL, first ? running : partial);
        if (first) continue;
        for (int32_t i = 0; i < n; i++) join(a, running + i * job->stride, partial + i * job->stride);
    }
    n = 0;
    for (int32_t row = first_row; row < first_row + row_count; row++)
        for (int32_t head = first_head; head < first_head + head_count; head++, n++)
            finish(a, head, running + n * job->stride,
                   a->out + ((size_t)row * (size_t)a->heads + (size_t)head) * (size_t)a->value_dim);
}

/// Fills in a job. Returns its number of chunks.
static int32_t plan_attention(attention_job *job, const ck_kernels *k, const ck_attention *a) {
    int32_t repeat = a->heads / a->kv_heads;
    *job = (attention_job){.kernels = k, .attention = a, .stride = a->value_stride + 2, .parts = 1};
    job->heads_per_group = smaller(repeat, GROUP);
    job->groups_per_kv = (repeat + job->heads_per_group - 1) / job->heads_per_group;
    job->rows_per_item = a->rows == 1 ? 1 : larger(1, GROUP / job->heads_per_group);
    job->row_items = (a->rows + job->rows_per_item - 1) / job->rows_per_item;
    if (a->rows == 1) {
        job->from = a->window > 0 && a->length > a->window ? a->length - a->window : 0;
        job->parts = (a->length + CK_PAGE - 1) / CK_PAGE - job->from / CK_PAGE;
    }
    return a->kv_heads * job->groups_per_kv * job->row_items * job->parts;
}

void ck_attend(ck_pool *pool, const ck_kernels *k, const ck_attention *calls, int32_t count) {
    attention_job jobs[CK_MAX_SEGMENTS];
    attention_region region = {jobs, smaller(count, CK_MAX_SEGMENTS), 0, ck_pool_threads(pool)};
    for (int32_t i = 0; i < region.count; i++) {
        int32_t added = plan_attention(&jobs[i], k, calls + i);
        jobs[i].first_chunk = region.chunks;
        region.chunks += added;
    }
    ck_pool_run(pool, region.chunks, attention_chunk, &region);
    for (int32_t i = 0; i < region.count; i++) {
        const ck_attention *a = calls + i;
        if (a->rows > 1) continue;
        for (int32_t head = 0; head < a->heads; head++) {
            float *running = a->partial + (size_t)head * (size_t)jobs[i].stride;
            for (int32_t part = 1; part < jobs[i].parts; part++)
                join(a, running, running + (size_t)part * (size_t)a->heads * (size_t)jobs[i].stride);
            finish(a, head, running, a->out + (size_t)head * (size_t)a->value_dim);
        }
    }
}

// MARK: - Positions

typedef struct {
    const ck_kernels *kernels;
    const ck_rotation *calls;
    int32_t count;
} rotation_region;

// A chunk is as long as a key block, to reduce false sharing: neighbouring positions of a block share cache lines.
enum { ROTATION_ROWS = 16 };

/// Rotates one head.
static void rotate(float *x, const ck_rotation *r, const float *cosine, const float *sine) {
    x += r->first;
    for (int32_t i = 0; i < r->pairs; i++) {
        float *first = r->halves ? x + i : x + 2 * i, *second = r->halves ? x + i + r->pairs : first + 1;
        float a = *first, b = *second;
        *first = a * cosine[i] - b * sine[i];
        *second = a * sine[i] + b * cosine[i];
    }
}

/// Applies bias, norm and rotation to the heads of one row, in the order that `r->norm` specifies.
static void prepare_heads(const ck_kernels *k, const ck_rotation *r, float *x, int32_t heads, const float *bias,
                          const float *norm, const float *cosine, const float *sine) {
    int32_t dimension = r->head_dim;
    if (bias) k->add(x, bias, 1, heads * dimension);
    if (r->norm == CK_NORM_WHOLE) k->rmsnorm(x, norm, r->epsilon, heads * dimension, x);
    for (int32_t head = 0; head < heads; head++, x += dimension) {
        if (r->norm == CK_NORM_HEADS) k->rmsnorm(x, norm, r->epsilon, dimension, x);
        rotate(x, r, cosine, sine);
        if (r->norm == CK_NORM_HEADS_ROTATED) k->rmsnorm(x, norm, r->epsilon, dimension, x);
    }
}

/// Rounds a vector to int8, element i into `out[step · i]`, and returns the factor.
static float to_bytes(const float *x, int32_t n, int8_t *out, int32_t step) {
    float largest = 0;
    for (int32_t i = 0; i < n; i++) largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    float inverse = largest > 0 ? 127 / largest : 0;
    for (int32_t i = 0; i < n; i++) out[step * i] = (int8_t)lrintf(x[i] * inverse);
    return largest / 127;
}

static int32_t rotation_chunks(const ck_rotation *r) { return (r->rows + ROTATION_ROWS - 1) / ROTATION_ROWS; }

static void rotation_chunk(void *context, int chunk) {
    const rotation_region *job = context;
    const ck_rotation *r = job->calls;
    for (; chunk >= rotation_chunks(r); r++) chunk -= rotation_chunks(r);
    int32_t last = smaller((chunk + 1) * ROTATION_ROWS, r->rows);
    uint16_t halves[r->head_dim];
    for (int32_t row = chunk * ROTATION_ROWS; row < last; row++) {
        const float *cosine = r->cosine + (size_t)row * (size_t)r->pairs, *sine = r->sine + (size_t)row * (size_t)r->pairs;
        float *q = r->q + (size_t)row * (size_t)r->heads * (size_t)r->head_dim;
        prepare_heads(job->kernels, r, q, r->heads, r->q_bias, r->q_norm, cosine, sine);
        if (r->q_scale)
            for (int32_t i = 0; i < r->heads * r->head_dim; i++) q[i] *= r->q_scale[row];
        if (!r->k) continue;
        float *k = r->k + (size_t)row * (size_t)r->kv_heads * (size_t)r->head_dim;
        float *v = r->v + (size_t)row * (size_t)r->kv_heads * (size_t)r->value_dim;
        if (r->v_bias) job->kernels->add(v, r->v_bias, 1, r->kv_heads * r->value_dim);
        prepare_heads(job->kernels, r, k, r->kv_heads, r->k_bias, r->k_norm, cosine, sine);
        size_t position = (size_t)(r->position + row);
        for (int32_t head = 0; head < r->kv_heads; head++, k += r->head_dim, v += r->value_dim) {
            size_t place = (size_t)head * CK_PAGE + position % CK_PAGE;
            uint8_t *page = r->pages[position / CK_PAGE];
            size_t key_place = place / 16 * 16 * (size_t)r->head_dim + position % 16;
            if (r->normalize_values) job->kernels->rmsnorm(v, NULL, r->epsilon, r->value_dim, v);
            if (r->bytes) {
                int8_t *keys = (int8_t *)(page + r->key_offset), *values = (int8_t *)(page + r->value_offset);
                float *key_factors = (float *)(keys + (size_t)r->kv_heads * CK_PAGE * (size_t)r->head_dim);
                float *value_factors = (float *)(values + (size_t)r->kv_heads * CK_PAGE * (size_t)r->value_stride);
                key_factors[place] = to_bytes(k, r->head_dim, keys + key_place, 16);
                value_factors[place] = to_bytes(v, r->value_dim, values + place * (size_t)r->value_stride, 1);
                continue;
            }
            uint16_t *block = (uint16_t *)(page + r->key_offset) + key_place;
            job->kernels->to_half(k, r->head_dim, halves);
            for (int32_t d = 0; d < r->head_dim; d++) block[16 * d] = halves[d];
            job->kernels->to_half(v, r->value_dim, (uint16_t *)(page + r->value_offset) + place * (size_t)r->value_stride);
        }
    }
}

void ck_rotate_and_store(ck_pool *pool, const ck_kernels *k, const ck_rotation *calls, int32_t count) {
    rotation_region region = {k, calls, count};
    int32_t chunks = 0;
    for (int32_t i = 0; i < count; i++) chunks += rotation_chunks(calls + i);
    ck_pool_run(pool, chunks, rotation_chunk, &region);
}
