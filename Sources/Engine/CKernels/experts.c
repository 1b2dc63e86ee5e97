// Mixture of experts: selects the experts of each row, gathers rows for the experts and combines their outputs.

#include <math.h>
#include <string.h>

#include "ckernels.h"

static void softmax(float *x, int32_t n) {
    float maximum = x[0], sum = 0;
    for (int32_t i = 1; i < n; i++) maximum = x[i] > maximum ? x[i] : maximum;
    for (int32_t i = 0; i < n; i++) sum += x[i] = expf(x[i] - maximum);
    for (int32_t i = 0; i < n; i++) x[i] /= sum;
}

/// The value that experts are ranked by for the selection.
static float score(const ck_routing *r, const float *probabilities, int32_t expert) {
    return probabilities[expert] + (r->selection_bias ? r->selection_bias[expert] : 0);
}

/// Whether a group is among the best `used_groups` groups. The score of a group is the sum of its two best experts.
static bool group_is_used(const ck_routing *r, const float *p, int32_t group) {
    int32_t size = r->experts / r->groups, better = 0;
    float own = 0;
    for (int32_t pass = -1; pass < r->groups; pass++) {
        int32_t g = pass < 0 ? group : pass;
        float first = -INFINITY, second = -INFINITY;
        for (int32_t i = g * size; i < (g + 1) * size; i++) {
            float value = score(r, p, i);
            if (value > first) second = first, first = value;
            else if (value > second) second = value;
        }
        float sum = size > 1 ? first + second : first;
        if (pass < 0) own = sum;
        else if (sum > own || (sum == own && g < group)) better++;
    }
    return better < r->used_groups;
}

void ck_route(const ck_routing *r, float *logits, int32_t rows, int32_t *chosen, float *weights) {
    for (int32_t row = 0; row < rows; row++, logits += r->experts, chosen += r->used, weights += r->used) {
        if (r->bias)
            for (int32_t i = 0; i < r->experts; i++) logits[i] += r->bias[i];
        if (r->gating == CK_GATE_SOFTMAX) softmax(logits, r->experts);
        if (r->gating == CK_GATE_SIGMOID)
            for (int32_t i = 0; i < r->experts; i++) logits[i] = 1 / (1 + expf(-logits[i]));
        bool open[1024];
        for (int32_t i = 0; i < r->experts; i++) open[i] = true;
        if (r->groups > 1 && r->used_groups < r->groups) {
            int32_t size = r->experts / r->groups;
            for (int32_t g = 0; g < r->groups; g++) {
                bool used = group_is_used(r, logits, g);
                for (int32_t i = 0; i < size; i++) open[g * size + i] = used;
            }
        }
        for (int32_t slot = 0; slot < r->used; slot++) {
            int32_t best = -1;
            for (int32_t i = 0; i < r->experts; i++)
                if (open[i] && (best < 0 || score(r, logits, i) > score(r, logits, best))) best = i;
            if (best < 0) best = 0;  // all remaining logits are NaN: use any expert
            open[best] = false;
            chosen[slot] = best;
            weights[slot] = logits[best];
        }
        if (r->gating == CK_GATE_SOFTMAX_CHOSEN) softmax(weights, r->used);
        float sum = 0;
        for (int32_t slot = 0; slot < r->used; slot++) sum += weights[slot];
        if (sum < 6.103515625e-5f) sum = 6.103515625e-5f;
        for (int32_t slot = 0; slot < r->used; slot++) weights[slot] *= r->normalizes ? r->scale / sum : r->scale;
    }
}

// MARK: - Gathering and combining rows

typedef struct {
    const ck_activations *from, *to;
    const int32_t *source;
    bool quantized;
} gather_job;

enum { ROWS = 16 };  // rows of one chunk

static void gather_chunk(void *context, int chunk) {
    const gather_job *job = context;
    const ck_activations *from = job->from, *to = job->to;
    size_t columns = (size_t)from->columns, groups = columns / 32;
    for (int32_t row = chunk * ROWS; row < to->count && row < (chunk + 1) * ROWS; row++) {
        size_t out = (size_t)row, in = (size_t)job->source[row];
        memcpy((float *)to->x + out * columns, from->x + in * columns, columns * sizeof(float));
        if (!job->quantized) continue;
        memcpy(to->q + out * columns, from->q + in * columns, columns);
        memcpy(to->d + out * groups, from->d + in * groups, groups * sizeof(float));
        memcpy(to->s + out * groups, from->s + in * groups, groups * sizeof(float));
        memcpy(to->sums + out * 2 * groups, from->sums + in * 2 * groups, 2 * groups * sizeof(int32_t));
        if (!from->unit) continue;
        memcpy(to->unit + out * (groups / 8), from->unit + in * (groups / 8), groups / 8 * sizeof(float));
        memcpy(to->factors + out * groups, from->factors + in * groups, groups * sizeof(int16_t));
        memcpy(to->weighted + out * groups, from->weighted + in * groups, groups * sizeof(int16_t));
        memcpy(to->starts + out * 2 * groups, from->starts + in * 2 * groups, 2 * groups * sizeof(int32_t));
    }
}

void ck_gather(ck_pool *pool, const ck_activations *from, const int32_t *source, const ck_activations *to, bool quantized) {
    gather_job job = {from, to, source, quantized};
    ck_pool_run(pool, (to->count + ROWS - 1) / ROWS, gather_chunk, &job);
}

typedef struct {
    const float *x, *weights;
    const int32_t *place;
    float *y;
    int32_t rows, used, columns;
} combine_job;

static void combine_chunk(void *context, int chunk) {
    const combine_job *job = context;
    for (int32_t row = chunk * ROWS; row < job->rows && row < (chunk + 1) * ROWS; row++) {
        float *y = job->y + (size_t)row * (size_t)job->columns;
        for (int32_t slot = 0; slot < job->used; slot++) {
            size_t at = (size_t)row * (size_t)job->used + (size_t)slot;
            const float *x = job->x + (size_t)job->place[at] * (size_t)job->columns;
            float weight = job->weights[at];
            for (int32_t i = 0; i < job->columns; i++) y[i] += weight * x[i];
        }
    }
}

void ck_combine(ck_pool *pool, const float *x, const int32_t *place, const float *weights, int32_t rows, int32_t used,
                int32_t columns, float *y) {
    combine_job job = {x, weights, place, y, rows, used, columns};
    ck_pool_run(pool, (rows + ROWS - 1) / ROWS, combine_chunk, &job);
}
