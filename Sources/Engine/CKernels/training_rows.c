// Training: operations on rows and on parameters, split into chunks for the thread pool.

#include <math.h>

#include "training.h"

// As in the functions of an instruction set (vectors.h).
#pragma clang fp contract(fast)

// MARK: - Rows

enum { ROWS_PER_CHUNK = 16 };

typedef struct {
    const ck_kernels *kernels;
    const ck_training_kernels *k;
    ck_activation kind;
    const float *x, *y, *weight, *cosine, *sine;
    const int32_t *targets;
    float *out, *other, *losses;
    bool *is_right;
    size_t ldx, ldy, ldo, total;
    int32_t rows, n, heads, dim, pairs;
    float epsilon, factor, rate, beta1, beta2, decay, correction1, correction2;
    bool halves, inverse;
} rows_job;

static void run_rows(ck_pool *pool, rows_job *job, void (*body)(void *, int)) {
    ck_pool_run(pool, (job->rows + ROWS_PER_CHUNK - 1) / ROWS_PER_CHUNK, body, job);
}

#define FOR_ROWS(job, chunk, row)                                 \
    for (size_t row = (size_t)(chunk) * ROWS_PER_CHUNK; row < (size_t)(job)->rows && row < ((size_t)(chunk) + 1) * ROWS_PER_CHUNK; row++)

static void norm_chunk(void *context, int chunk) {
    const rows_job *job = context;
    FOR_ROWS(job, chunk, row)
        job->kernels->rmsnorm(job->x + row * job->ldx, job->weight, job->epsilon, job->n, job->out + row * job->ldo);
}

void ck_training_norm(ck_pool *pool, const ck_kernels *k, const float *x, int32_t ldx, const float *weight, float epsilon, int32_t rows,
                      int32_t n, float *out, int32_t ldo) {
    rows_job job = {.kernels = k, .x = x, .weight = weight, .out = out, .ldx = (size_t)ldx, .ldo = (size_t)ldo, .rows = rows, .n = n,
                    .epsilon = epsilon};
    run_rows(pool, &job, norm_chunk);
}

static void norm_backward_chunk(void *context, int chunk) {
    const rows_job *job = context;
    FOR_ROWS(job, chunk, row)
        job->k->norm_backward(job->x + row * job->ldx, job->weight, job->y + row * job->ldy, job->epsilon, job->n,
                              job->out + row * job->ldo);
}

void ck_training_norm_backward(ck_pool *pool, const ck_training_kernels *k, const float *x, int32_t ldx, const float *weight,
                               const float *dy, int32_t ldy, float epsilon, int32_t rows, int32_t n, float *dx, int32_t ldd) {
    rows_job job = {.k = k, .x = x, .y = dy, .weight = weight, .out = dx, .ldx = (size_t)ldx, .ldy = (size_t)ldy, .ldo = (size_t)ldd,
                    .rows = rows, .n = n, .epsilon = epsilon};
    run_rows(pool, &job, norm_backward_chunk);
}

static void rotate_chunk(void *context, int chunk) {
    const rows_job *job = context;
    FOR_ROWS(job, chunk, row) {
        const float *cosine = job->cosine + row * (size_t)job->pairs, *sine = job->sine + row * (size_t)job->pairs;
        for (int32_t head = 0; head < job->heads; head++) {
            float *x = job->out + row * job->ldo + (size_t)head * (size_t)job->dim;
            for (int32_t i = 0; i < job->pairs; i++) {
                float *first = x + (job->halves ? i : 2 * i), *second = job->halves ? first + job->pairs : first + 1;
                float s = job->inverse ? -sine[i] : sine[i], a = *first, b = *second;
                *first = a * cosine[i] - b * s;
                *second = a * s + b * cosine[i];
            }
        }
    }
}

void ck_training_rotate(ck_pool *pool, float *x, int32_t ldx, int32_t rows, int32_t heads, int32_t dim, int32_t pairs, bool halves,
                        const float *cosine, const float *sine, bool inverse) {
    rows_job job = {.out = x, .ldo = (size_t)ldx, .rows = rows, .heads = heads, .dim = dim, .pairs = pairs, .halves = halves,
                    .cosine = cosine, .sine = sine, .inverse = inverse};
    run_rows(pool, &job, rotate_chunk);
}

static void activate_chunk(void *context, int chunk) {
    const rows_job *job = context;
    FOR_ROWS(job, chunk, row)
        job->k->activate(job->kind, job->x + row * job->ldx, job->y ? job->y + row * job->ldx : NULL, job->n,
                         job->out + row * (size_t)job->n);
}

void ck_training_activate(ck_pool *pool, const ck_training_kernels *k, ck_activation kind, const float *gate, const float *up, int32_t ld,
                          int32_t rows, int32_t n, float *h) {
    rows_job job = {.k = k, .kind = kind, .x = gate, .y = up, .ldx = (size_t)ld, .rows = rows, .n = n, .out = h};
    run_rows(pool, &job, activate_chunk);
}

static void activate_backward_chunk(void *context, int chunk) {
    const rows_job *job = context;
    FOR_ROWS(job, chunk, row)
        job->k->activate_backward(job->kind, job->out + row * job->ldo, job->other ? job->other + row * job->ldo : NULL,
                                  job->y + row * (size_t)job->n, job->n);
}

void ck_training_activate_backward(ck_pool *pool, const ck_training_kernels *k, ck_activation kind, float *gate, float *up, int32_t ld,
                                   int32_t rows, int32_t n, const float *dh) {
    rows_job job = {.k = k, .kind = kind, .out = gate, .other = up, .y = dh, .ldo = (size_t)ld, .rows = rows, .n = n};
    run_rows(pool, &job, activate_backward_chunk);
}

static void cross_entropy_row(void *context, int chunk) {
    const rows_job *job = context;
    FOR_ROWS(job, chunk, row) {
        float *z = job->out + row * (size_t)job->n;
        if (job->rate > 0) job->k->soft_cap(z, job->rate, job->n);
        int32_t target = job->targets[row];
        float maximum = z[0], logit = z[target];
        for (int32_t i = 1; i < job->n; i++) maximum = z[i] > maximum ? z[i] : maximum;
        // The derivative of the cap needs the capped logits again: they follow from the probabilities.
        float sum = job->k->exponentials(z, maximum, job->n), lse = maximum + logf(sum), inverse = 1 / sum;
        job->losses[row] = lse - logit;
        job->is_right[row] = logit == maximum;
        if (job->rate > 0) {
            for (int32_t i = 0; i < job->n; i++) {
                float capped = z[i] > 0 ? maximum + logf(z[i]) : maximum - 88, share = capped / job->rate;
                float probability = z[i] * inverse - (i == target ? 1 : 0);
                z[i] = job->factor * probability * (1 - share * share);
            }
        } else {
            for (int32_t i = 0; i < job->n; i++) z[i] *= inverse * job->factor;
            z[target] -= job->factor;
        }
    }
}

void ck_training_cross_entropy(ck_pool *pool, const ck_training_kernels *k, float *logits, int32_t rows, int32_t vocabulary,
                               const int32_t *targets, float soft_cap, float factor, float *losses, bool *is_right) {
    rows_job job = {.k = k, .out = logits, .rows = rows, .n = vocabulary, .targets = targets, .rate = soft_cap, .factor = factor,
                    .losses = losses, .is_right = is_right};
    run_rows(pool, &job, cross_entropy_row);
}

static void divergence_row(void *context, int chunk) {
    const rows_job *job = context;
    FOR_ROWS(job, chunk, row) {
        float *z = job->out + row * (size_t)job->n;
        if (job->rate > 0) job->k->soft_cap(z, job->rate, job->n);
        const int32_t *tokens = job->targets + row * (size_t)job->heads;
        const float *expected = job->x + row * (size_t)job->heads;
        float maximum = z[0], capped[CK_TRAINING_LIKELY_TOKENS], own[CK_TRAINING_LIKELY_TOKENS];
        for (int32_t i = 1; i < job->n; i++) maximum = z[i] > maximum ? z[i] : maximum;
        for (int32_t i = 0; i < job->heads; i++) capped[i] = z[tokens[i]];
        float sum = job->k->exponentials(z, maximum, job->n), inverse = 1 / sum, loss = 0, rest = 1, expected_rest = 1;
        for (int32_t i = 0; i < job->heads; i++) {
            own[i] = z[tokens[i]] * inverse;
            rest -= own[i];
            expected_rest -= expected[i];
            // log of the model's probability from the logit: a probability may be 0 in 32 bits.
            if (expected[i] > 0) loss += expected[i] * (logf(expected[i]) - (capped[i] - maximum - logf(sum)));
        }
        rest = rest > 1e-6f ? rest : 1e-6f;
        expected_rest = expected_rest > 1e-6f ? expected_rest : 1e-6f;
        job->losses[row] = loss + expected_rest * logf(expected_rest / rest);
        float share = 1 - expected_rest / rest;
        for (int32_t i = 0; i < job->n; i++) {
            float derivative = 1;
            if (job->rate > 0) {
                float logit = z[i] > 0 ? maximum + logf(z[i]) : maximum - 88;
                derivative = 1 - logit / job->rate * (logit / job->rate);
            }
            z[i] *= inverse * share * derivative * job->factor;
        }
        for (int32_t i = 0; i < job->heads; i++) {
            float derivative = job->rate > 0 ? 1 - capped[i] / job->rate * (capped[i] / job->rate) : 1;
            z[tokens[i]] = (own[i] - expected[i]) * derivative * job->factor;
        }
    }
}

void ck_training_divergence(ck_pool *pool, const ck_training_kernels *k, float *logits, int32_t rows, int32_t vocabulary,
                            const int32_t *tokens, const float *probabilities, int32_t likely, float soft_cap, float factor,
                            float *losses) {
    rows_job job = {.k = k, .out = logits, .rows = rows, .n = vocabulary, .targets = tokens, .x = probabilities, .heads = likely,
                    .rate = soft_cap, .factor = factor, .losses = losses};
    run_rows(pool, &job, divergence_row);
}

// MARK: - Parameters

enum { ELEMENTS_PER_CHUNK = 1 << 14 };

static int chunks_of(size_t count) { return (int)((count + ELEMENTS_PER_CHUNK - 1) / ELEMENTS_PER_CHUNK); }

static void add_chunk(void *context, int chunk) {
    const rows_job *job = context;
    size_t start = (size_t)chunk * ELEMENTS_PER_CHUNK, end = start + ELEMENTS_PER_CHUNK < job->total ? start + ELEMENTS_PER_CHUNK : job->total;
    for (size_t i = start; i < end; i++) job->out[i] += job->x[i];
}

void ck_training_add(ck_pool *pool, float *out, const float *x, size_t count) {
    rows_job job = {.out = out, .x = x, .total = count};
    ck_pool_run(pool, chunks_of(count), add_chunk, &job);
}

static void adam_chunk(void *context, int chunk) {
    const rows_job *job = context;
    size_t start = (size_t)chunk * ELEMENTS_PER_CHUNK, end = start + ELEMENTS_PER_CHUNK < job->total ? start + ELEMENTS_PER_CHUNK : job->total;
    for (size_t i = start; i < end; i++) {
        float g = job->x[i] * job->factor;
        float mean = job->other[i] = job->beta1 * job->other[i] + (1 - job->beta1) * g;
        float square = job->losses[i] = job->beta2 * job->losses[i] + (1 - job->beta2) * g * g;
        float step = mean / job->correction1 / (sqrtf(square / job->correction2) + job->epsilon);
        job->out[i] -= job->rate * (step + job->decay * job->out[i]);
    }
}

void ck_training_adam(ck_pool *pool, float *x, const float *gradient, float *mean, float *square, size_t count, float factor, float rate,
                      float beta1, float beta2, float epsilon, float decay, float correction1, float correction2) {
    rows_job job = {.out = x, .x = gradient, .other = mean, .losses = square, .total = count, .factor = factor, .rate = rate,
                    .beta1 = beta1, .beta2 = beta2, .epsilon = epsilon, .decay = decay, .correction1 = correction1,
                    .correction2 = correction2};
    ck_pool_run(pool, chunks_of(count), adam_chunk, &job);
}

double ck_training_squares(const float *x, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += (double)x[i] * (double)x[i];
    return sum;
}
