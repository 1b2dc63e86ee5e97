// AVX2 with FMA: the 16 rows of a panel are two registers. `vpmaddubsw` multiplies unsigned by signed bytes and adds
// pairs with saturation at 16 bits. 8-bit codes could saturate: they are converted to signed values first, and their
// sign is applied to the activations.

#if defined(__x86_64__)

#include <immintrin.h>

#define NAME(x) x##_avx2
#define TARGET __attribute__((target("avx2,fma,f16c")))
#define LOAD_HALF16(p) load_half16_avx2(p)
#define STORE_HALF16(p, v) store_half16_avx2(p, v)
#define LOOK_UP(table, codes) look_up_avx2(table, codes)

#include "kernel_sets.h"

TARGET static inline __attribute__((always_inline)) v16f_storage load_half16_avx2(const uint16_t *p) {
    union { __m256 half[2]; v16f_storage whole; } v;
    v.half[0] = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
    v.half[1] = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 8)));
    return v.whole;
}

TARGET static inline __attribute__((always_inline)) void store_half16_avx2(uint16_t *p, v16f_storage v) {
    union { v16f_storage whole; __m256 half[2]; } parts = {v};
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(parts.half[0], _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128((__m128i *)(p + 8), _mm256_cvtps_ph(parts.half[1], _MM_FROUND_TO_NEAREST_INT));
}

typedef uint8_t v64b_storage __attribute__((vector_size(64), aligned(1)));

TARGET static inline __attribute__((always_inline)) v64b_storage look_up_avx2(const uint8_t *table, v64b_storage codes) {
    union { v64b_storage whole; __m256i half[2]; } v = {codes};
    __m256i values = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
    for (int i = 0; i < 2; i++) v.half[i] = _mm256_shuffle_epi8(values, v.half[i]);
    return v.whole;
}

#include "generic.h"

/// dot += codes · x for four columns of eight rows.
TARGET INLINE __m256i multiply_avx2(ck_layout layout, __m256i dot, __m256i codes, __m256i x) {
    __m256i pairs;
    if (layout_offset_shift(layout) == 7) {
        __m256i weights = _mm256_xor_si256(codes, _mm256_set1_epi8((char)0x80));
        // The activations can take the sign because they are never -128, which cannot be negated.
        pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(x, weights));
    } else {
        pairs = _mm256_maddubs_epi16(codes, x);
    }
    return _mm256_add_epi32(dot, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

TARGET INLINE void tile_avx2(ck_layout layout, int tokens, const ck_matrix *m, const uint8_t *w, const ck_activations *a,
                             int32_t token, float *y, int32_t ldy, int rows, bool add) {
    size_t columns = (size_t)m->columns, row_groups = columns / 32;
    int groups = layout_columns(layout) / 32, parts = layout_parts(layout), steps = 8 / parts;
    v16f total[4];
    for (int t = 0; t < tokens; t++) total[t] = splat_avx2(0);
    for (size_t first = 0; first < row_groups; first += (size_t)groups, w += layout_block_bytes(layout)) {
        for (int group = 0; group < groups; group++) {
            union { v64b whole[8]; __m256i half[16]; } codes;
            unpack_avx2(layout, w + layout_group_bytes(layout) * (size_t)group, codes.whole);
            for (int part = 0; part < parts; part++) {
                v16f scale, minimum;
                scales_avx2(layout, w, group, part, &scale, &minimum);
                for (int t = 0; t < tokens; t++) {
                    size_t place = (size_t)(token + t) * row_groups + first + (size_t)group;
                    const int8_t *x = a->q + (size_t)(token + t) * columns + (first + (size_t)group) * 32 + (size_t)(part * 16);
                    // 8-bit codes are converted to signed values, which have no offset.
                    int32_t start = layout_offset_shift(layout) == 7 ? 0 : offset_sum_avx2(layout, a, place, part);
                    union { v16i whole; __m256i half[2]; } dot;
                    dot.half[0] = dot.half[1] = _mm256_set1_epi32(start);
                    for (int i = 0; i < steps; i++) {
                        int32_t four;
                        memcpy(&four, x + 4 * i, 4);
                        for (int half = 0; half < 2; half++)
                            dot.half[half] = multiply_avx2(layout, dot.half[half], codes.half[2 * (part * steps + i) + half],
                                                           _mm256_set1_epi32(four));
                    }
                    v16f product = __builtin_convertvector(dot.whole, v16f) * scale;
                    total[t] += product * a->d[place];
                    if (layout_has_minimum(layout)) total[t] += minimum * part_sum_avx2(layout, a, place, part);
                }
            }
        }
    }
    for (int t = 0; t < tokens; t++)
        store_rows_avx2(y + (size_t)(token + t) * (size_t)ldy, total[t] * m->scale, rows, add);
}

TARGET INLINE void tokens_avx2(ck_layout layout, const ck_matrix *m, int32_t panel, const ck_activations *a, float *y,
                               int32_t ldy, bool add) {
    const uint8_t *w = m->data + (size_t)panel * m->panel_bytes;
    int rows = m->rows - panel * CK_PANEL < CK_PANEL ? m->rows - panel * CK_PANEL : CK_PANEL;
    y += panel * CK_PANEL;
    int32_t t = 0;
    for (; t + 4 <= a->count; t += 4) tile_avx2(layout, 4, m, w, a, t, y, ldy, rows, add);
    for (; t < a->count; t++) tile_avx2(layout, 1, m, w, a, t, y, ldy, rows, add);
}

TARGET static void panel_avx2(const ck_matrix *m, int32_t panel, const ck_activations *a, float *y, int32_t ldy, bool add) {
    if (!layout_is_integer(m->layout)) {
        float_panels_avx2(m, panel, a, y, ldy, add);
        return;
    }
#define BODY(layout) tokens_avx2(layout, m, panel, a, y, ldy, add); return
    FOR_INTEGER_LAYOUT(m->layout, BODY)
#undef BODY
}

const ck_kernels ck_kernels_avx2 = KERNEL_TABLE(CK_AVX2, "AVX2", panel_avx2, NULL);

#endif
