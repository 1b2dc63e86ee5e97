// Products with low-rank matrices for one instruction set. The includer defines NAME, TARGET and INLINE.

/// `rows` rows, a constant, so that the numbers of `a` and `b` are read once for all of them. The sums of a row have the same order for any
/// number of rows.
TARGET INLINE void NAME(low_rank_rows)(const ck_low_rank *term, int32_t row, int rows) {
    const float *x = term->x + (size_t)row * (size_t)term->columns;
    float *y = term->y + (size_t)row * (size_t)term->ldy;
    float inner[CK_LOW_RANK_ROWS][CK_MAX_RANK] __attribute__((aligned(64)));
    for (int32_t block = 0; block < term->rank; block += 16) {
        v16f sums[CK_LOW_RANK_ROWS];
#pragma clang loop unroll(full)
        for (int r = 0; r < rows; r++) sums[r] = NAME(splat)(0);
        for (int32_t column = 0; column < term->columns; column++) {
            v16f values = NAME(load)(term->a + (size_t)column * (size_t)term->rank + block);
#pragma clang loop unroll(full)
            for (int r = 0; r < rows; r++) sums[r] += x[(size_t)r * (size_t)term->columns + (size_t)column] * values;
        }
#pragma clang loop unroll(full)
        for (int r = 0; r < rows; r++) NAME(store)(inner[r] + block, sums[r] * term->scale);
    }
    for (int32_t output = 0; output < term->outputs; output += 16) {
        v16f sums[CK_LOW_RANK_ROWS];
#pragma clang loop unroll(full)
        for (int r = 0; r < rows; r++) sums[r] = NAME(splat)(0);
        for (int32_t k = 0; k < term->rank; k++) {
            v16f values = NAME(load)(term->b + (size_t)k * (size_t)term->padded + output);
#pragma clang loop unroll(full)
            for (int r = 0; r < rows; r++) sums[r] += inner[r][k] * values;
        }
#pragma clang loop unroll(full)
        for (int r = 0; r < rows; r++) {
            float *to = y + (size_t)r * (size_t)term->ldy + output;
            if (output + 16 <= term->outputs) {
                NAME(store)(to, NAME(load)(to) + sums[r]);
            } else {
                for (int i = 0; output + i < term->outputs; i++) to[i] += sums[r][i];
            }
        }
    }
}

TARGET static void NAME(low_rank)(const ck_low_rank *term, int32_t row, int32_t rows) {
    if (rows == CK_LOW_RANK_ROWS) {
        NAME(low_rank_rows)(term, row, CK_LOW_RANK_ROWS);
    } else {
        for (int32_t i = 0; i < rows; i++) NAME(low_rank_rows)(term, row + i, 1);
    }
}
