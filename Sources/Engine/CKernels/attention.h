// Attention over the pages of a KV cache, as portable vector code. `generic.h` includes this file once for each instruction
// set; the names and types are explained there. `avx512bf16.c` defines ROUNDS_TO_BFLOAT16 and has products of its own.

enum { NAME(SPAN) = 256 };  // positions per step of the online softmax: 12 KB of scores, which fit in L1

// Several accumulators hide the latency of multiply-add, so a few rows are computed for several blocks (`wide`)
// together. ACCUMULATORS is the number that fits into the registers, at least half of the maximum number of rows.

#define WIDE(rows) ((rows) * 4 <= ACCUMULATORS ? 4 : (rows) * 2 <= ACCUMULATORS ? 2 : 1)

#ifdef ROUNDS_TO_BFLOAT16
#define QUERIES rounded.queries
#define WEIGHTS rounded.weights
#else
#define QUERIES q
#define WEIGHTS scores

TARGET INLINE float NAME(largest_score)(const float *scores, int padded) {
    v16f largest = NAME(load)(scores);
    for (int p = 16; p < padded; p += 16) {
        v16f v = NAME(load)(scores + p);
        largest = NAME(select)(v > largest, v, largest);
    }
    return NAME(reduce_max)(largest);
}

/// Replaces scores by exp(score − maximum), times the factors of values with 8 bits, and returns the sum without factors.
TARGET INLINE float NAME(exponentials)(float *weights, const float *scores, const float *factors, float maximum, int padded) {
    v16f sum = NAME(splat)(0);
    for (int p = 0; p < padded; p += 16) {
        v16f v = NAME(load)(scores + p), e = NAME(exp16)(v - maximum);
        e = NAME(select)(v == -INFINITY, NAME(splat)(0), e);
        sum += e;
        NAME(store)(weights + p, factors ? e * NAME(load)(factors + p) : e);
    }
    return NAME(sum)(sum);
}

/// Scores of `rows` query rows against `wide` blocks of 16 keys. `factors` are those of keys with 8 bits. With `ahead`, `next` is
/// prefetched, which has the shape of `keys`.
TARGET INLINE void NAME(score_blocks)(bool ahead, int rows, int wide, bool bytes, const float *const *q, const uint8_t *keys,
                                      const uint8_t *next, const float *factors, int32_t head_dim, float scale,
                                      float (*scores)[NAME(SPAN)], int column) {
    size_t size = bytes ? 1 : 2;
    v16f sum[ACCUMULATORS];
#pragma clang loop unroll(full)
    for (int i = 0; i < rows * wide; i++) sum[i] = NAME(splat)(0);
    for (int32_t d = 0; d < head_dim; d++) {
#pragma clang loop unroll(full)
        for (int b = 0; b < wide; b++) {
            size_t place = ((size_t)b * 16 * (size_t)head_dim + 16 * (size_t)d) * size;
            if (ahead && place % 64 == 0) ck_prefetch(next + place, 64);
            v16f k = NAME(load_cached)(bytes, keys + place);
#pragma clang loop unroll(full)
            for (int r = 0; r < rows; r++) sum[b * rows + r] += k * q[r][d];
        }
    }
#pragma clang loop unroll(full)
    for (int b = 0; b < wide; b++)
#pragma clang loop unroll(full)
        for (int r = 0; r < rows; r++) {
            v16f score = sum[b * rows + r] * scale;
            NAME(store)(&scores[r][column + 16 * b], bytes ? score * NAME(load)(factors + column + 16 * b) : score);
        }
}

/// accumulators[row][16·wide dims] += Σ scores[row][position] · values[position][16·wide dims]. With `ahead`, `next` is prefetched,
/// which has the shape of `values`.
TARGET INLINE void NAME(mix_blocks)(bool ahead, int rows, int wide, bool bytes, const float (*scores)[NAME(SPAN)], int positions,
                                    const uint8_t *values, const uint8_t *next, int32_t stride, float *accumulators,
                                    int32_t row_stride) {
    size_t size = bytes ? 1 : 2;
    v16f sum[ACCUMULATORS];
#pragma clang loop unroll(full)
    for (int b = 0; b < wide; b++)
#pragma clang loop unroll(full)
        for (int r = 0; r < rows; r++) sum[b * rows + r] = NAME(load)(accumulators + r * row_stride + 16 * b);
    for (int p = 0; p < positions; p++) {
        size_t row = (size_t)p * (size_t)stride * size;
        if (ahead) ck_prefetch(next + row, (size_t)wide * 16 * size);
#pragma clang loop unroll(full)
        for (int b = 0; b < wide; b++) {
            v16f v = NAME(load_cached)(bytes, values + row + 16 * (size_t)b * size);
#pragma clang loop unroll(full)
            for (int r = 0; r < rows; r++) sum[b * rows + r] += v * scores[r][p];
        }
    }
#pragma clang loop unroll(full)
    for (int b = 0; b < wide; b++)
#pragma clang loop unroll(full)
        for (int r = 0; r < rows; r++) NAME(store)(accumulators + r * row_stride + 16 * b, sum[b * rows + r]);
}

#endif

/// Online softmax (Milakov & Gimelshein, arXiv:1805.02867) over spans of positions for `rows` query rows that share
/// one KV head. `partial` is [row][2 + value_stride]: maximum score, sum of exponentials, unnormalised output.
TARGET INLINE void NAME(attend_rows)(int rows, bool bytes, const ck_attention *a, int32_t kv_head, const float *const *q,
                                     const int32_t *first, const int32_t *last, int32_t from, int32_t to,
                                     const ck_attention_next *next, float *partial) {
    size_t size = bytes ? 1 : 2, head_dim = (size_t)a->head_dim, stride = (size_t)a->value_stride;
    const uint8_t *page = a->pages[from / CK_PAGE], *all_keys = page + a->key_offset, *all_values = page + a->value_offset;
    const uint8_t *keys = all_keys + (size_t)kv_head * CK_PAGE * head_dim * size;
    const uint8_t *values = all_values + (size_t)kv_head * CK_PAGE * stride * size;
    const float *key_factors = (const float *)(all_keys + (size_t)a->kv_heads * CK_PAGE * head_dim) + kv_head * CK_PAGE;
    const float *value_factors = (const float *)(all_values + (size_t)a->kv_heads * CK_PAGE * stride) + kv_head * CK_PAGE;
    const uint8_t *next_keys = next ? next->keys : keys, *next_values = next ? next->values : values;
    int32_t row_stride = a->value_stride + 2;
    // More rows than accumulators are two parts.
    int upper = rows < ACCUMULATORS ? rows : ACCUMULATORS, lower = rows - upper;
    float scores[12][NAME(SPAN)] __attribute__((aligned(64)));
#ifdef ROUNDS_TO_BFLOAT16
    NAME(rounded) rounded;
    NAME(round_queries)(&rounded, rows, q, a->head_dim);
#endif
    for (int r = 0; r < rows; r++) {
        memset(partial + r * row_stride, 0, (size_t)row_stride * sizeof(float));
        partial[r * row_stride] = -INFINITY;
    }
    for (int32_t start = from / 16 * 16; start < to; start += NAME(SPAN)) {
        int positions = to - start < NAME(SPAN) ? to - start : NAME(SPAN);
        int padded = (positions + 15) / 16 * 16;
        const uint8_t *span = keys + (size_t)(start % CK_PAGE) * head_dim * size;
        const uint8_t *span_values = values + (size_t)(start % CK_PAGE) * stride * size;
        const float *span_factors = key_factors + start % CK_PAGE;
        int column = 0;
#define SCORE(ahead, first, rows, wide)                                                                                     \
    NAME(score_blocks)(ahead, rows, wide, bytes, QUERIES + (first), span + (size_t)column * head_dim * size,                \
                       next_keys + (span - keys) + (size_t)column * head_dim * size, span_factors, a->head_dim, a->scale,   \
                       scores + (first), column)
#define SCORES(ahead, first, rows)                                                                                          \
    do {                                                                                                                    \
        column = 0;                                                                                                         \
        for (; column + 16 * WIDE(rows) <= padded; column += 16 * WIDE(rows)) SCORE(ahead, first, rows, WIDE(rows));        \
        for (; column < padded; column += 16) SCORE(false, first, rows, 1);                                                 \
    } while (0)
        if (next) SCORES(true, 0, upper);
        else SCORES(false, 0, upper);
        if (lower > 0) SCORES(false, upper, lower);
#undef SCORES
#undef SCORE
        if (a->soft_cap > 0) {
            for (int r = 0; r < rows; r++)
                for (int p = 0; p < padded; p += 16)
                    NAME(store)(&scores[r][p], NAME(tanh16)(NAME(load)(&scores[r][p]) / a->soft_cap) * a->soft_cap);
        }
        for (int r = 0; r < rows; r++) {
            float *row = partial + r * row_stride;
            int low = first[r] > start ? first[r] - start : 0, high = last[r] - start < positions ? last[r] - start : positions;
            for (int p = 0; p < low && p < padded; p++) scores[r][p] = -INFINITY;
            for (int p = high > 0 ? high : 0; p < padded; p++) scores[r][p] = -INFINITY;
            float maximum = NAME(largest_score)(scores[r], padded);
            if (maximum <= row[0]) maximum = row[0];
            if (maximum == -INFINITY) {  // all positions of this span are masked for this row
                memset(WEIGHTS[r], 0, sizeof WEIGHTS[r]);
                continue;
            }
            if (maximum > row[0] && row[0] != -INFINITY) {
                float correction = expf(row[0] - maximum);
                row[1] *= correction;
                for (int32_t i = 0; i < a->value_stride; i += 16)
                    NAME(store)(row + 2 + i, NAME(load)(row + 2 + i) * correction);
            }
            row[0] = maximum;
            row[1] += NAME(exponentials)(WEIGHTS[r], scores[r], bytes ? value_factors + start % CK_PAGE : NULL, maximum, padded);
            // The weight of a second position that does not exist is not a number if its factor, which may be anything, is not.
            if (bytes && positions % 2) WEIGHTS[r][positions] = 0;
        }
        int32_t i;
#define MIX(ahead, first, rows, wide)                                                                                       \
    NAME(mix_blocks)(ahead, rows, wide, bytes, WEIGHTS + (first), positions, span_values + (size_t)i * size,                \
                     next_values + (span_values - values) + (size_t)i * size, a->value_stride,                              \
                     partial + (first) * row_stride + 2 + i, row_stride)
#define MIXES(ahead, first, rows)                                                                                           \
    do {                                                                                                                    \
        i = 0;                                                                                                              \
        for (; i + 16 * WIDE(rows) <= a->value_stride; i += 16 * WIDE(rows)) MIX(ahead, first, rows, WIDE(rows));           \
        for (; i < a->value_stride; i += 16) MIX(ahead, first, rows, 1);                                                    \
    } while (0)
        if (next) MIXES(true, 0, upper);
        else MIXES(false, 0, upper);
        if (lower > 0) MIXES(false, upper, lower);
#undef MIXES
#undef MIX
    }
}

#undef QUERIES
#undef WEIGHTS
#undef WIDE

TARGET static void NAME(attention)(const ck_attention *a, int32_t kv_head, int32_t first_head, int32_t head_count,
                                   int32_t first_row, int32_t row_count, int32_t from, int32_t to,
                                   const ck_attention_next *next, float *partial) {
    const float *q[12];
    int32_t first[12], last[12];
    int n = 0;
    for (int32_t row = first_row; row < first_row + row_count; row++)
        for (int32_t head = first_head; head < first_head + head_count; head++, n++) {
            q[n] = a->q + ((size_t)row * (size_t)a->heads + (size_t)head) * (size_t)a->head_dim;
            if (a->both_sides) {
                int32_t side = a->window > 0 ? a->window / 2 : a->length;
                first[n] = row > side ? row - side : 0;
                last[n] = row + side < a->length ? row + side + 1 : a->length;
            } else {
                last[n] = a->length - a->rows + row + 1;
                first[n] = a->window > 0 && last[n] > a->window ? last[n] - a->window : 0;
                if (a->visible_end && a->visible_end[row] > last[n]) last[n] = a->visible_end[row];
            }
            if (first[n] < from) first[n] = from;
        }
    switch (n) {
#define CASE(rows)                                                                                        \
    case rows:                                                                                            \
        if (a->bytes) NAME(attend_rows)(rows, true, a, kv_head, q, first, last, from, to, next, partial); \
        else NAME(attend_rows)(rows, false, a, kv_head, q, first, last, from, to, next, partial);         \
        return;
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)
#undef CASE
    }
}
