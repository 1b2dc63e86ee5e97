// Layers with a recurrent state of fixed size.

#include <math.h>
#include <string.h>

#include "ckernels.h"

static float sigmoid(float x) { return 1 / (1 + expf(-x)); }
static float silu(float x) { return x * sigmoid(x); }
static float softplus(float x) { return x > 20 ? x : log1pf(expf(x)); }

void ck_multiply(const float *a, int32_t a_stride, const float *b, int32_t b_stride, float *out, int32_t out_stride,
                 int32_t rows, int32_t columns) {
    for (int32_t row = 0; row < rows; row++, a += a_stride, b += b_stride, out += out_stride)
        for (int32_t i = 0; i < columns; i++) out[i] = a[i] * b[i];
}

void ck_copy_rows(const float *from, int32_t from_stride, float *to, int32_t to_stride, int32_t rows, int32_t columns) {
    for (int32_t row = 0; row < rows; row++)
        memcpy(to + (size_t)row * (size_t)to_stride, from + (size_t)row * (size_t)from_stride, (size_t)columns * sizeof(float));
}

// MARK: - Convolution

typedef struct {
    float *x, *state;
    const float *kernel, *bias;
    int32_t rows, channels, stride, width;
    bool silu;
} convolution_job;

enum { CHANNELS = 64, MAXIMUM_WIDTH = 16 };  // channels of one chunk

static void convolve_chunk(void *context, int chunk) {
    const convolution_job *job = context;
    int32_t first = chunk * CHANNELS, last = first + CHANNELS < job->channels ? first + CHANNELS : job->channels;
    int32_t past = job->width - 1;
    for (int32_t channel = first; channel < last; channel++) {
        const float *kernel = job->kernel + (size_t)channel * (size_t)job->width;
        float window[MAXIMUM_WIDTH];
        for (int32_t i = 0; i < past; i++) window[i] = job->state[(size_t)i * (size_t)job->channels + (size_t)channel];
        for (int32_t row = 0; row < job->rows; row++) {
            float *x = job->x + (size_t)row * (size_t)job->stride + channel;
            window[past] = *x;
            float sum = job->bias ? job->bias[channel] : 0;
            for (int32_t i = 0; i < job->width; i++) sum += window[i] * kernel[i];
            *x = job->silu ? silu(sum) : sum;
            for (int32_t i = 0; i < past; i++) window[i] = window[i + 1];
        }
        for (int32_t i = 0; i < past; i++) job->state[(size_t)i * (size_t)job->channels + (size_t)channel] = window[i];
    }
}

void ck_convolve(ck_pool *pool, float *x, float *state, const float *kernel, const float *bias, int32_t rows,
                 int32_t channels, int32_t stride, int32_t width, bool silu) {
    convolution_job job = {x, state, kernel, bias, rows, channels, stride, width, silu};
    ck_pool_run(pool, (channels + CHANNELS - 1) / CHANNELS, convolve_chunk, &job);
}

// MARK: - Gated DeltaNet

typedef struct {
    const ck_kernels *kernels;
    const ck_delta *delta;
} delta_job;

static void unit_length(const float *x, int32_t n, float epsilon, float scale, float *out) {
    float sum = 0;
    for (int32_t i = 0; i < n; i++) sum += x[i] * x[i];
    float inverse = scale / sqrtf(sum + epsilon);
    for (int32_t i = 0; i < n; i++) out[i] = x[i] * inverse;
}

static void delta_chunk(void *context, int head) {
    const delta_job *job = context;
    const ck_delta *d = job->delta;
    size_t key_width = (size_t)d->key_heads * (size_t)d->key_dim, value_width = (size_t)d->value_heads * (size_t)d->value_dim;
    int32_t key_head = d->tiled ? head % d->key_heads : head / (d->value_heads / d->key_heads);
    float *state = d->state + (size_t)head * (size_t)d->value_dim * (size_t)d->key_dim;
    float q[d->key_dim], k[d->key_dim];
    for (int32_t row = 0; row < d->rows; row++) {
        const float *mixed = d->mixed + (size_t)row * (2 * key_width + value_width);
        size_t at = (size_t)row * (size_t)d->value_heads + (size_t)head;
        unit_length(mixed + (size_t)key_head * (size_t)d->key_dim, d->key_dim, d->epsilon, 1 / sqrtf((float)d->key_dim), q);
        unit_length(mixed + key_width + (size_t)key_head * (size_t)d->key_dim, d->key_dim, d->epsilon, 1, k);
        float decay = expf(d->a[head] * softplus(d->alpha[at] + d->dt[head]));
        float *out = d->out + (size_t)row * value_width + (size_t)head * (size_t)d->value_dim;
        job->kernels->delta_step(state, q, k, mixed + 2 * key_width + (size_t)head * (size_t)d->value_dim, decay,
                                 sigmoid(d->beta[at]), d->key_dim, d->value_dim, out);
        job->kernels->rmsnorm(out, d->norm, d->epsilon, d->value_dim, out);
        const float *gate = d->gate + (size_t)row * value_width + (size_t)head * (size_t)d->value_dim;
        for (int32_t i = 0; i < d->value_dim; i++) out[i] *= silu(gate[i]);
    }
}

void ck_delta_net(ck_pool *pool, const ck_kernels *k, const ck_delta *d) {
    delta_job job = {k, d};
    ck_pool_run(pool, d->value_heads, delta_chunk, &job);
}

// MARK: - Mamba-2

typedef struct {
    const ck_kernels *kernels;
    const ck_mamba *mamba;
} mamba_job;

/// Computes one group of heads. The heads of a group share B and C and are normalised together.
static void mamba_chunk(void *context, int group) {
    const mamba_job *job = context;
    const ck_mamba *m = job->mamba;
    int32_t head_dim = m->inner / m->heads, heads = m->heads / m->groups, width = m->inner / m->groups;
    size_t mixed_width = (size_t)m->inner + 2 * (size_t)m->groups * (size_t)m->state_size;
    for (int32_t row = 0; row < m->rows; row++) {
        const float *mixed = m->mixed + (size_t)row * mixed_width;
        const float *b = mixed + m->inner + (size_t)group * (size_t)m->state_size;
        const float *c = b + (size_t)m->groups * (size_t)m->state_size;
        float *out = m->out + (size_t)row * (size_t)m->inner + (size_t)group * (size_t)width;
        const float *z = m->z + (size_t)row * (size_t)m->stride + (size_t)group * (size_t)width;
        for (int32_t i = 0; i < heads; i++) {
            int32_t head = group * heads + i;
            const float *x = mixed + (size_t)head * (size_t)head_dim;
            float delta = softplus(m->dt[(size_t)row * (size_t)m->stride + (size_t)head] + m->dt_bias[head]);
            float *state = m->state + (size_t)head * (size_t)head_dim * (size_t)m->state_size;
            float *y = out + (size_t)i * (size_t)head_dim;
            job->kernels->mamba_step(state, x, b, c, expf(delta * m->a[head]), delta, head_dim, m->state_size, y);
            for (int32_t j = 0; j < head_dim; j++) y[j] += m->d[head] * x[j];
        }
        for (int32_t i = 0; i < width; i++) out[i] *= silu(z[i]);
        if (m->norm) job->kernels->rmsnorm(out, m->norm + (size_t)group * (size_t)width, m->epsilon, width, out);
    }
}

void ck_mamba_scan(ck_pool *pool, const ck_kernels *k, const ck_mamba *m) {
    mamba_job job = {k, m};
    ck_pool_run(pool, m->groups, mamba_chunk, &job);
}
