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
#define ACCUMULATORS 6

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

// A panel is unpacked once for a batch of tokens, 256 columns at a time, and multiplied by tiles of four tokens.
enum { TILE = 4, BATCH = 64, GROUPS = 8, PREFETCH = 4096 };

/// Up to eight groups of 32 columns of a panel: signed values where codes have 8 bits, else codes.
typedef struct {
    __m256i codes[GROUPS][8][2];
    __m256 scales[GROUPS][2][2], minima[GROUPS][2][2];  // [group][part][half of the rows]
} unpacked_avx2;

/// The number of steps of four columns whose products can be added as 16-bit integers without overflow, a power of two: each adds two
/// products of a code with at most 127. 8-bit codes are at most 128 as signed values.
INLINE int safe_steps_avx2(ck_layout layout) {
    int largest = layout_offset_shift(layout) == 7 ? 128 : layout_largest(layout), steps = INT16_MAX / (2 * 127 * largest);
    return steps >= 8 ? 8 : steps >= 4 ? 4 : steps >= 2 ? 2 : 1;
}

TARGET INLINE void unpack_group_avx2(ck_layout layout, const uint8_t *block, int group, __m256i (*codes)[2], __m256 (*scales)[2],
                                     __m256 (*minima)[2]) {
    union { v64b whole[8]; __m256i half[8][2]; } all;
    unpack_avx2(layout, block + layout_group_bytes(layout) * (size_t)group, all.whole);
#pragma clang loop unroll(full)
    for (int i = 0; i < 8; i++)
#pragma clang loop unroll(full)
        for (int half = 0; half < 2; half++)
            codes[i][half] = layout_offset_shift(layout) == 7 ? _mm256_xor_si256(all.half[i][half], _mm256_set1_epi8((char)0x80))
                                                              : all.half[i][half];
#pragma clang loop unroll(full)
    for (int part = 0; part < layout_parts(layout); part++) {
        union { v16f whole; __m256 half[2]; } scale, minimum;
        scales_avx2(layout, block, group, part, &scale.whole, &minimum.whole);
        for (int half = 0; half < 2; half++) {
            scales[part][half] = scale.half[half];
            if (layout_has_minimum(layout)) minima[part][half] = minimum.half[half];
        }
    }
}

/// total[token] += the product of a group of 32 columns, for `tokens` tokens from `token` on.
TARGET INLINE void multiply_group_avx2(ck_layout layout, int tokens, const ck_activations *a, size_t token, size_t group,
                                       const __m256i (*codes)[2], const __m256 (*scales)[2], const __m256 (*minima)[2],
                                       __m256 (*total)[2]) {
    size_t columns = (size_t)a->columns, row_groups = columns / 32;
    int parts = layout_parts(layout), steps = 8 / parts, safe = safe_steps_avx2(layout);
    bool is_signed = layout_offset_shift(layout) == 7;
    if (safe > steps) safe = steps;
    const int8_t *x = a->q + token * columns + group * 32;
#pragma clang loop unroll(full)
    for (int part = 0; part < parts; part++) {
        __m256i dot[TILE][2];
#pragma clang loop unroll(full)
        for (int first = 0; first < steps; first += safe) {
            __m256i pairs[TILE][2];
#pragma clang loop unroll(full)
            for (int i = first; i < first + safe; i++) {
                const __m256i *step = codes[part * steps + i];
#pragma clang loop unroll(full)
                for (int t = 0; t < tokens; t++) {
                    int32_t four;
                    memcpy(&four, x + (size_t)t * columns + (size_t)(4 * (part * steps + i)), 4);
                    __m256i activations = _mm256_set1_epi32(four);
#pragma clang loop unroll(full)
                    for (int half = 0; half < 2; half++) {
                        // The activations can take the sign because those of numbers are never -128, which cannot be negated.
                        __m256i product =
                            is_signed ? _mm256_maddubs_epi16(_mm256_abs_epi8(step[half]), _mm256_sign_epi8(activations, step[half]))
                                      : _mm256_maddubs_epi16(step[half], activations);
                        pairs[t][half] = i == first ? product : _mm256_add_epi16(pairs[t][half], product);
                        // The compiler would reorder the additions, for which there are not enough registers.
                        __asm__("" : "+x"(pairs[t][half]));
                    }
                }
            }
#pragma clang loop unroll(full)
            for (int t = 0; t < tokens; t++)
#pragma clang loop unroll(full)
                for (int half = 0; half < 2; half++) {
                    __m256i sum = _mm256_madd_epi16(pairs[t][half], _mm256_set1_epi16(1));
                    dot[t][half] = first == 0 ? sum : _mm256_add_epi32(dot[t][half], sum);
                }
        }
#pragma clang loop unroll(full)
        for (int t = 0; t < tokens; t++) {
            size_t place = (token + (size_t)t) * row_groups + group;
            __m256i offset = _mm256_set1_epi32(is_signed ? 0 : offset_sum_avx2(layout, a, place, part));
            __m256 scale = _mm256_set1_ps(a->d[place]);
#pragma clang loop unroll(full)
            for (int half = 0; half < 2; half++) {
                __m256i sum = layout_offset_shift(layout) < 0 || is_signed ? dot[t][half] : _mm256_add_epi32(dot[t][half], offset);
                __m256 product = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), scales[part][half]);
                total[t][half] = _mm256_fmadd_ps(product, scale, total[t][half]);
                if (layout_has_minimum(layout))
                    total[t][half] = _mm256_fmadd_ps(minima[part][half], _mm256_set1_ps(part_sum_avx2(layout, a, place, part)),
                                                     total[t][half]);
            }
        }
    }
}

/// Up to four tokens: each group is multiplied as it is unpacked.
TARGET INLINE void few_tokens_avx2(ck_layout layout, int tokens, const ck_activations *a, const uint8_t *w, __m256 (*total)[2]) {
    __m256 sums[TILE][2];
#pragma clang loop unroll(full)
    for (int t = 0; t < tokens; t++) sums[t][0] = sums[t][1] = _mm256_setzero_ps();
    size_t row_groups = (size_t)a->columns / 32;
    int groups = layout_columns(layout) / 32;
    for (size_t first = 0; first < row_groups; first += (size_t)groups, w += layout_block_bytes(layout)) {
        for (int group = 0; group < groups; group++) {
            __m256i codes[8][2];
            __m256 scales[2][2], minima[2][2];
            // Memory limits the speed of one token.
            size_t share = layout_block_bytes(layout) / (size_t)groups;
            for (size_t line = 0; line < share; line += 64) __builtin_prefetch(w + share * (size_t)group + PREFETCH + line, 0, 3);
            unpack_group_avx2(layout, w, group, codes, scales, minima);
            multiply_group_avx2(layout, tokens, a, 0, first + (size_t)group, codes, scales, minima, sums);
        }
    }
    memcpy(total, sums, (size_t)tokens * sizeof sums[0]);
}

/// The product of a panel for `count` tokens from `token` on.
TARGET INLINE void batch_avx2(ck_layout layout, const ck_activations *a, size_t token, int count, const uint8_t *w,
                              __m256 (*total)[2]) {
    size_t row_groups = (size_t)a->columns / 32;
    int groups = layout_columns(layout) / 32;
    unpacked_avx2 unpacked;
    memset(total, 0, (size_t)count * sizeof total[0]);
    for (size_t first = 0; first < row_groups; first += GROUPS) {
        int known = row_groups - first < GROUPS ? (int)(row_groups - first) : GROUPS;
        for (int g = 0; g < known; g++) {
            const uint8_t *block = w + (first + (size_t)g) / (size_t)groups * layout_block_bytes(layout);
            unpack_group_avx2(layout, block, g % groups, unpacked.codes[g], unpacked.scales[g], unpacked.minima[g]);
        }
        int t = 0;
#define TILES(size)                                                                                                             \
    for (; t + size <= count; t += size) {                                                                                      \
        __m256 sums[size][2];                                                                                                   \
        memcpy(sums, total[t], sizeof sums);                                                                                    \
        for (int g = 0; g < known; g++)                                                                                         \
            multiply_group_avx2(layout, size, a, token + (size_t)t, first + (size_t)g, unpacked.codes[g], unpacked.scales[g],   \
                                unpacked.minima[g], sums);                                                                      \
        memcpy(total[t], sums, sizeof sums);                                                                                    \
    }
        TILES(4) TILES(3) TILES(2) TILES(1)
#undef TILES
    }
}

TARGET INLINE void tokens_avx2(ck_layout layout, const ck_matrix *m, int32_t panel, const ck_activations *a, float *y,
                               int32_t ldy, bool add) {
    const uint8_t *w = m->data + (size_t)panel * m->panel_bytes;
    int rows = m->rows - panel * CK_PANEL < CK_PANEL ? m->rows - panel * CK_PANEL : CK_PANEL;
    y += panel * CK_PANEL;
    for (int32_t first = 0; first < a->count; first += BATCH) {
        int count = a->count - first < BATCH ? a->count - first : BATCH;
        union { __m256 half[BATCH][2]; v16f whole[BATCH]; } total;
        switch (a->count) {
            case 1: few_tokens_avx2(layout, 1, a, w, total.half); break;
            case 2: few_tokens_avx2(layout, 2, a, w, total.half); break;
            case 3: few_tokens_avx2(layout, 3, a, w, total.half); break;
            case 4: few_tokens_avx2(layout, 4, a, w, total.half); break;
            default: batch_avx2(layout, a, (size_t)first, count, w, total.half);
        }
        for (int t = 0; t < count; t++)
            store_rows_avx2(y + (size_t)(first + t) * (size_t)ldy, total.whole[t] * m->scale, rows, add);
    }
}

TARGET static void panel_avx2(const ck_matrix *m, int32_t panel, const ck_activations *a, float *y, int32_t ldy, bool add) {
    switch (m->layout) {
#define CASE(name, ...) case CK_LAYOUT_##name: tokens_avx2(CK_LAYOUT_##name, m, panel, a, y, ldy, add); return;
        CK_LAYOUTS(CASE)
#undef CASE
        CK_FLOAT_CASES float_panels_avx2(m, panel, a, y, ldy, add);
    }
}

const ck_kernels ck_kernels_avx2 = KERNEL_TABLE(CK_AVX2, "AVX2", false, panel_avx2, NULL);

#endif
