// Products with low-rank matrices for one instruction set. The includer defines NAME, TARGET, INLINE, LOAD_HALF16 and ACCUMULATORS.
// The sums of a row are added in the same order for any number of rows and threads: the columns are `CK_LOW_RANK_PARTS` parts.

/// The sums of `parts` parts of the columns from part `first` on, for `rows` rows and 16 of the rank; both are constants. Several sums at
/// once, so that none waits for its last addition, and for several rows, so that the numbers of `a` are read once for all of them.
TARGET INLINE void NAME(low_rank_sums)(const ck_low_rank *term, int32_t row, int rows, int first, int parts, int32_t block, v16f *sums) {
    const float *x = term->x + (size_t)row * (size_t)term->columns;
    size_t columns = (size_t)term->columns, part = columns / CK_LOW_RANK_PARTS;
#pragma clang loop unroll(full)
    for (int i = 0; i < rows * parts; i++) sums[i] = NAME(splat)(0);
    for (size_t column = 0; column < part; column++) {
#pragma clang loop unroll(full)
        for (int p = 0; p < parts; p++) {
            size_t place = (size_t)(first + p) * part + column;
            v16f values = LOAD_HALF16(term->a + place * (size_t)term->rank + block);
#pragma clang loop unroll(full)
            for (int r = 0; r < rows; r++) sums[p * rows + r] += x[(size_t)r * columns + place] * values;
        }
    }
}

/// The product of a row with `a`, from the sum of its parts: what they leave of the columns is added, then the factor is applied.
TARGET INLINE v16f NAME(low_rank_inner)(const ck_low_rank *term, int32_t row, int32_t block, v16f sum) {
    const float *x = term->x + (size_t)row * (size_t)term->columns;
    for (int32_t column = term->columns / CK_LOW_RANK_PARTS * CK_LOW_RANK_PARTS; column < term->columns; column++)
        sum += x[column] * LOAD_HALF16(term->a + (size_t)column * (size_t)term->rank + block);
    return sum * term->scale;
}

/// Adds the product of `b` and `inner` for the outputs from `from` to `to`, for `rows` rows, a constant.
TARGET INLINE void NAME(low_rank_add)(
    const ck_low_rank *term, int32_t row, int rows, const float inner[][CK_MAX_RANK], int32_t from, int32_t to) {
    float *y = term->y + (size_t)row * (size_t)term->ldy;
    for (int32_t output = from; output < to; output += 16) {
        v16f sums[CK_LOW_RANK_ROWS];
#pragma clang loop unroll(full)
        for (int r = 0; r < rows; r++) sums[r] = NAME(splat)(0);
        for (int32_t k = 0; k < term->rank; k++) {
            v16f values = LOAD_HALF16(term->b + (size_t)output * (size_t)term->rank + 16 * (size_t)k);
#pragma clang loop unroll(full)
            for (int r = 0; r < rows; r++) sums[r] += inner[r][k] * values;
        }
#pragma clang loop unroll(full)
        for (int r = 0; r < rows; r++) {
            float *at = y + (size_t)r * (size_t)term->ldy + output;
            if (output + 16 <= term->outputs) {
                NAME(store)(at, NAME(load)(at) + sums[r]);
            } else {
                for (int i = 0; output + i < term->outputs; i++) at[i] += sums[r][i];
            }
        }
    }
}

TARGET INLINE void NAME(low_rank_rows)(const ck_low_rank *term, int32_t row, int rows) {
    float inner[CK_LOW_RANK_ROWS][CK_MAX_RANK] __attribute__((aligned(64)));
    for (int32_t block = 0; block < term->rank; block += 16) {
        v16f all[CK_LOW_RANK_ROWS], sums[CK_LOW_RANK_ROWS];
        if (rows == 1) {
            NAME(low_rank_sums)(term, row, 1, 0, CK_LOW_RANK_PARTS, block, sums);
            all[0] = sums[0];
            for (int p = 1; p < CK_LOW_RANK_PARTS; p++) all[0] += sums[p];
        } else {
            NAME(low_rank_sums)(term, row, rows, 0, 1, block, all);
            for (int p = 1; p < CK_LOW_RANK_PARTS; p++) {
                NAME(low_rank_sums)(term, row, rows, p, 1, block, sums);
                for (int r = 0; r < rows; r++) all[r] += sums[r];
            }
        }
        for (int r = 0; r < rows; r++) NAME(store)(inner[r] + block, NAME(low_rank_inner)(term, row + r, block, all[r]));
    }
    NAME(low_rank_add)(term, row, rows, inner, 0, term->outputs);
}

/// As many rows together as there are registers for their sums.
TARGET static void NAME(low_rank)(const ck_low_rank *term, int32_t row, int32_t rows) {
    while (rows > 0) {
        int together = rows >= 16 && ACCUMULATORS >= 12 ? 16 : rows >= 4 ? 4 : 1;
        switch (together) {
            case 16: NAME(low_rank_rows)(term, row, 16); break;
            case 4: NAME(low_rank_rows)(term, row, 4); break;
            default: NAME(low_rank_rows)(term, row, 1); break;
        }
        row += together, rows -= together;
    }
}

TARGET static void NAME(low_rank_part)(const ck_low_rank *term, int32_t row, int part, float *sums) {
    for (int32_t block = 0; block < term->rank; block += 16) {
        v16f sum;
        NAME(low_rank_sums)(term, row, 1, part, 1, block, &sum);
        NAME(store)(sums + block, sum);
    }
}

TARGET static void NAME(low_rank_outputs)(const ck_low_rank *term, int32_t row, const float *sums, int32_t from, int32_t to) {
    float inner[1][CK_MAX_RANK] __attribute__((aligned(64)));
    for (int32_t block = 0; block < term->rank; block += 16) {
        v16f all = NAME(load)(sums + block);
        for (int p = 1; p < CK_LOW_RANK_PARTS; p++) all += NAME(load)(sums + p * term->rank + block);
        NAME(store)(inner[0] + block, NAME(low_rank_inner)(term, row, block, all));
    }
    NAME(low_rank_add)(term, row, 1, inner, from, to);
}
