// AVX2 with FMA: a panel's 16 rows are two registers. `vpmaddubsw` multiplies unsigned by signed bytes and adds pairs
// with saturation at 16 bits, which 8-bit codes could reach: these are made signed first, and the sign moved over.

#if defined(__x86_64__)

#include <immintrin.h>

#define NAME(x) x##_avx2
#define TARGET __attribute__((target("avx2,fma,f16c")))
#define LOAD_HALF16(p) load_half16_avx2(p)
#define STORE_HALF16(p, v) store_half16_avx2(p, v)

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

#include "generic.h"

#include "int8_layout.h"

/// dot += codes · x for four columns of eight rows.
TARGET INLINE __m256i multiply_avx2(ck_layout layout, __m256i dot, __m256i codes, __m256i x) {
    __m256i pairs;
    if (layout == CK_U8_D) {
        __m256i weights = _mm256_xor_si256(codes, _mm256_set1_epi8((char)0x80));
        // The sign goes to the activations: they are never -128, which has no negative.
        pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(x, weights));
    } else {
        pairs = _mm256_maddubs_epi16(codes, x);
    }
    return _mm256_add_epi32(dot, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

TARGET INLINE __m256i codes_avx2(ck_layout layout, const uint8_t *w, int step, int half) {
    if (!layout_is_4_bit(layout)) return _mm256_loadu_si256((const __m256i *)(w + 64 * step + 32 * half));
    __m256i packed = _mm256_loadu_si256((const __m256i *)(w + 64 * (step % 4) + 32 * half));
    if (step >= 4) packed = _mm256_srli_epi16(packed, 4);
    return _mm256_and_si256(packed, _mm256_set1_epi8(0xF));
}

TARGET INLINE void tile_avx2(ck_layout layout, int tokens, const ck_matrix *m, const uint8_t *w, const ck_activations *a,
                             int32_t token, float *y, int32_t ldy, int rows, bool add) {
    size_t columns = (size_t)m->columns, blocks = columns / 32;
    int steps = layout_steps(layout), parts = 8 / steps;
    __m256 total[4][2];
    for (int t = 0; t < tokens; t++) total[t][0] = total[t][1] = _mm256_setzero_ps();
    for (size_t block = 0; block < blocks; block++) {
        for (int part = 0; part < parts; part++, w += layout_block_bytes(layout)) {
            for (int half = 0; half < 2; half++) {
                __m256i dot[4];
                for (int t = 0; t < tokens; t++) {
                    const int32_t *sum = a->sums + ((size_t)(token + t) * blocks + block) * 2;
                    int32_t start = layout == CK_U8_D16 ? sum[part] * 32 : layout == CK_U4_D ? (sum[0] + sum[1]) * 8 : 0;
                    dot[t] = _mm256_set1_epi32(start);
                }
                for (int i = 0; i < steps; i++) {
                    __m256i codes = codes_avx2(layout, w, i, half);
                    for (int t = 0; t < tokens; t++) {
                        int32_t four;
                        memcpy(&four, a->q + (size_t)(token + t) * columns + block * 32 + (size_t)(part * 16 + 4 * i), 4);
                        dot[t] = multiply_avx2(layout, dot[t], codes, _mm256_set1_epi32(four));
                    }
                }
                const uint8_t *scales = w + layout_code_bytes(layout) + 16 * half;
                __m256 scale = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)scales));
                for (int t = 0; t < tokens; t++) {
                    size_t at = (size_t)(token + t) * blocks + block;
                    __m256 product = _mm256_mul_ps(_mm256_cvtepi32_ps(dot[t]), scale);
                    total[t][half] = _mm256_fmadd_ps(product, _mm256_set1_ps(a->d[at]), total[t][half]);
                    if (layout_has_minimum(layout)) {
                        __m256 minimum = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(scales + 32)));
                        total[t][half] = _mm256_fmadd_ps(minimum, _mm256_set1_ps(a->s[at]), total[t][half]);
                    }
                }
            }
        }
    }
    for (int t = 0; t < tokens; t++) {
        union { __m256 half[2]; v16f whole; } sum = {{total[t][0], total[t][1]}};
        store_rows_avx2(y + (size_t)(token + t) * (size_t)ldy, sum.whole * m->scale, rows, add);
    }
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
    if (m->layout >= CK_F16) {
        float_panels_avx2(m, panel, a, y, ldy, add);
        return;
    }
#define BODY(layout) tokens_avx2(layout, m, panel, a, y, ldy, add); return
    FOR_INTEGER_LAYOUT(m->layout, BODY)
#undef BODY
}

const ck_kernels ck_kernels_avx2 = KERNEL_TABLE(CK_AVX2, "AVX2", panel_avx2);

#endif
