// Frozen matrices as the panels of products with integers, and their transposes.

#include "ckernels.h"
#include "training.h"

/// Columns of a matrix that are transposed together: whole blocks of every type.
enum { STRIP = 256 };

typedef struct {
    const uint8_t *weights;
    size_t row_bytes;
    ck_type type;
    int32_t rows, columns;
    const ck_matrix *target;
    uint8_t *panels, *scratch;
} pack_job;

static void pack_panel_chunk(void *context, int chunk) {
    const pack_job *job = context;
    const uint8_t *rows[CK_PANEL];
    int32_t first = chunk * CK_PANEL, count = job->rows - first < CK_PANEL ? job->rows - first : CK_PANEL;
    for (int32_t i = 0; i < count; i++) rows[i] = job->weights + (size_t)(first + i) * job->row_bytes;
    ck_pack(job->target, rows, count, job->panels + (size_t)chunk * job->target->panel_bytes);
}

void ck_training_pack_panels(ck_pool *pool, const uint8_t *weights, size_t row_bytes, const ck_matrix *target, uint8_t *panels) {
    pack_job job = {weights, row_bytes, target->type, target->rows, target->columns, target, panels, NULL};
    ck_pool_run(pool, (target->rows + CK_PANEL - 1) / CK_PANEL, pack_panel_chunk, &job);
}

/// Panels of the transpose: the rows are decoded in parts of 32, which are blocks of the rows of the transpose.
static void transpose_chunk(void *context, int chunk) {
    const pack_job *job = context;
    int32_t first = chunk * STRIP, count = job->columns - first < STRIP ? job->columns - first : STRIP, block = ck_type_block(job->type);
    size_t row_bytes = (size_t)(job->rows / 32) * (size_t)ck_type_bytes(CK_TYPE_Q8_0);
    uint8_t *encoded = job->scratch + (size_t)first * row_bytes;
    float part[32][STRIP], column[32];
    for (int32_t row = 0; row < job->rows; row += 32) {
        for (int32_t i = 0; i < 32; i++)
            ck_dequantize(job->type, job->weights + (size_t)(row + i) * job->row_bytes + (size_t)(first / block) * (size_t)ck_type_bytes(job->type),
                          (size_t)count, part[i]);
        for (int32_t c = 0; c < count; c++) {
            for (int32_t i = 0; i < 32; i++) column[i] = part[i][c];
            ck_encode(CK_TYPE_Q8_0, column, 32, NULL, encoded + (size_t)c * row_bytes + (size_t)(row / 32) * (size_t)ck_type_bytes(CK_TYPE_Q8_0));
        }
    }
    for (int32_t c = 0; c < count; c += CK_PANEL) {
        const uint8_t *rows[CK_PANEL];
        int32_t part_count = count - c < CK_PANEL ? count - c : CK_PANEL;
        for (int32_t i = 0; i < part_count; i++) rows[i] = encoded + (size_t)(c + i) * row_bytes;
        ck_pack(job->target, rows, part_count, job->panels + (size_t)((first + c) / CK_PANEL) * job->target->panel_bytes);
    }
}

void ck_training_pack_transposed(ck_pool *pool, const uint8_t *weights, size_t row_bytes, ck_type type, const ck_matrix *target,
                                 uint8_t *panels, uint8_t *scratch) {
    pack_job job = {weights, row_bytes, type, target->columns, target->rows, target, panels, scratch};
    ck_pool_run(pool, (target->rows + STRIP - 1) / STRIP, transpose_chunk, &job);
}
