// Products with the low-rank matrices of adapters, divided among the threads. `low_rank.h` has the sums.

#include "ckernels.h"

typedef struct {
    const ck_kernels *kernels;
    const ck_low_rank *terms;
    int32_t count;
} low_rank_job;

static int32_t low_rank_groups(const ck_low_rank *term) { return (term->rows + CK_LOW_RANK_ROWS - 1) / CK_LOW_RANK_ROWS; }

/// The number of terms from `term` on that read the same rows. Their chunks alternate, so that a group of rows is read from the cache
/// for all but the first of them.
static int32_t low_rank_terms(const low_rank_job *job, const ck_low_rank *term) {
    const ck_low_rank *end = job->terms + job->count, *last = term + 1;
    while (last < end && last->x == term->x && last->rows == term->rows) last++;
    return (int32_t)(last - term);
}

static void low_rank_chunk(void *context, int chunk) {
    const low_rank_job *job = context;
    const ck_low_rank *term = job->terms;
    int32_t terms = low_rank_terms(job, term);
    while (chunk >= terms * low_rank_groups(term)) {
        chunk -= terms * low_rank_groups(term);
        term += terms;
        terms = low_rank_terms(job, term);
    }
    int32_t row = chunk / terms * CK_LOW_RANK_ROWS, left = term->rows - row;
    job->kernels->low_rank(term + chunk % terms, row, left < CK_LOW_RANK_ROWS ? left : CK_LOW_RANK_ROWS);
}

// A product of few rows is divided among the threads in two regions: the parts of its columns, then ranges of its outputs.

enum { SPLIT_TERMS = 4, SPLIT_ROWS = 4, SPLIT_RANK = 64 };  // 16 KB of sums

typedef struct {
    const ck_kernels *kernels;
    const ck_low_rank *terms;
    float sums[SPLIT_TERMS][SPLIT_ROWS][CK_LOW_RANK_PARTS * SPLIT_RANK];
} low_rank_split;

static void low_rank_part_chunk(void *context, int chunk) {
    low_rank_split *job = context;
    int index = chunk / CK_LOW_RANK_PARTS, part = chunk % CK_LOW_RANK_PARTS;
    const ck_low_rank *term = &job->terms[index];
    for (int32_t row = 0; row < term->rows; row++)
        job->kernels->low_rank_part(term, row, part, job->sums[index][row] + part * term->rank);
}

static void low_rank_outputs_chunk(void *context, int chunk) {
    low_rank_split *job = context;
    int index = chunk / CK_LOW_RANK_PARTS, part = chunk % CK_LOW_RANK_PARTS;
    const ck_low_rank *term = &job->terms[index];
    int32_t vectors = (term->outputs + 15) / 16, from = vectors * part / CK_LOW_RANK_PARTS, to = vectors * (part + 1) / CK_LOW_RANK_PARTS;
    for (int32_t row = 0; row < term->rows; row++)
        job->kernels->low_rank_outputs(term, row, job->sums[index][row], 16 * from, 16 * to);
}

void ck_add_low_rank_products(ck_pool *pool, const ck_kernels *k, const ck_low_rank *terms, int32_t count) {
    int chunks = 0;
    bool splits = count <= SPLIT_TERMS;
    for (int32_t i = 0; i < count; i++) {
        chunks += low_rank_groups(&terms[i]);
        splits = splits && terms[i].rows <= SPLIT_ROWS && terms[i].rank <= SPLIT_RANK;
    }
    if (chunks == 0) return;
    if (splits && chunks < ck_pool_threads(pool)) {
        low_rank_split job;
        job.kernels = k, job.terms = terms;
        ck_pool_run(pool, count * CK_LOW_RANK_PARTS, low_rank_part_chunk, &job);
        ck_pool_run(pool, count * CK_LOW_RANK_PARTS, low_rank_outputs_chunk, &job);
    } else {
        low_rank_job job = {k, terms, count};
        ck_pool_run(pool, chunks, low_rank_chunk, &job);
    }
}
