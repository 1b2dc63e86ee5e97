// Products with low-rank matrices for one instruction set. The includer defines NAME, TARGET, INLINE, LOAD_HALF16 and ACCUMULATORS.

/// The sums of a row are added in the same order for any number of rows: the columns are four parts, which one row computes together,
/// so that it does not wait for each addition, and several rows one after the other.
enum { NAME(PARTS) = 4 };

/// `rows` rows, a constant, so that the numbers of `a` and `b` are read once for all of them.
TARGET INLINE void NAME(low_rank_rows)(const ck_low_rank *term, int32_t row, int rows) {
    const float *x = term->x + (size_t)row * (size_t)term->columns;
    float *y = term->y + (size_t)row * (size_t)term->ldy;
    float inner[CK_LOW_RANK_ROWS][CK_MAX_RANK] __attribute__((aligned(64)));
    size_t columns = (size_t)term->columns, rank = (size_t)term->rank, part = columns / NAME(PARTS);
    int together = rows == 1 ? NAME(PARTS) : 1;
    for (int32_t block = 0; block < term->rank; block += 16) {
        for (int first = 0; first < NAME(PARTS); first += together) {
            v16f sums[CK_LOW_RANK_ROWS];
#pragma clang loop unroll(full)
            for (int i = 0; i < rows * together; i++) sums[i] = NAME(splat)(0);
            for (size_t column = 0; column < part; column++) {
#pragma clang loop unroll(full)
                for (int p = 0; p < together; p++) {
                    size_t place = (size_t)(first + p) * part + column;
                    v16f values = LOAD_HALF16(term->a + place * rank + block);
#pragma clang loop unroll(full)
                    for (int r = 0; r < rows; r++) sums[r * together + p] += x[(size_t)r * columns + place] * values;
                }
            }
#pragma clang loop unroll(full)
            for (int r = 0; r < rows; r++) {
                v16f sum = first == 0 ? sums[r * together] : NAME(load)(inner[r] + block) + sums[r * together];
#pragma clang loop unroll(full)
                for (int p = 1; p < together; p++) sum += sums[r * together + p];
                NAME(store)(inner[r] + block, sum);
            }
        }
        for (int r = 0; r < rows; r++) {
            v16f sum = NAME(load)(inner[r] + block);
            for (size_t place = NAME(PARTS) * part; place < columns; place++)
                sum += x[(size_t)r * columns + place] * LOAD_HALF16(term->a + place * rank + block);
            NAME(store)(inner[r] + block, sum * term->scale);
        }
    }
    for (int32_t output = 0; output < term->outputs; output += 16) {
        v16f sums[CK_LOW_RANK_ROWS];
#pragma clang loop unroll(full)
        for (int r = 0; r < rows; r++) sums[r] = NAME(splat)(0);
        for (int32_t k = 0; k < term->rank; k++) {
            v16f values = LOAD_HALF16(term->b + (size_t)k * (size_t)term->padded + output);
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
