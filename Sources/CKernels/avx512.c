// AVX-512 with VNNI: a panel's 16 rows fill one register, and `vpdpbusd` multiplies four columns of all of them
// by four activations broadcast from memory. 12 of 20 instructions per block and token are multiplications.

#if defined(__x86_64__)

#include <immintrin.h>

#define NAME(x) x##_avx512
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")))
#define LOAD_HALF16(p) ((v16f_storage)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(p))))
#define STORE_HALF16(p, v) _mm256_storeu_si256((__m256i *)(p), _mm512_cvtps_ph((__m512)(v), _MM_FROUND_TO_NEAREST_INT))

#include "kernel_sets.h"

#include "generic.h"

#include "int8_layout.h"

enum { AHEAD = 4096 };  // bytes

/// Codes of one block as eight (four) registers of [16 rows][4 columns] bytes.
TARGET INLINE void unpack_avx512(ck_layout layout, const uint8_t *w, __m512i *codes) {
    if (layout_is_4_bit(layout)) {
        const __m512i nibble = _mm512_set1_epi8(0xF);
        for (int i = 0; i < 4; i++) {
            __m512i packed = _mm512_loadu_si512(w + 64 * i);
            codes[i] = _mm512_and_si512(packed, nibble);
            codes[i + 4] = _mm512_and_si512(_mm512_srli_epi16(packed, 4), nibble);
        }
    } else {
        for (int i = 0; i < layout_steps(layout); i++) codes[i] = _mm512_loadu_si512(w + 64 * i);
    }
}

TARGET INLINE __m512 halves_avx512(const uint8_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }

/// The product of one panel with `tokens` activation rows; `layout` and `tokens` are constants at every call.
TARGET INLINE void tile_avx512(ck_layout layout, int tokens, const ck_matrix *m, const uint8_t *w, const ck_activations *a,
                               int32_t token, float *y, int32_t ldy, __mmask16 rows, bool add) {
    size_t columns = (size_t)m->columns, blocks = columns / 32;
    const int8_t *q = a->q + (size_t)token * columns;
    const float *d = a->d + (size_t)token * blocks, *s = a->s + (size_t)token * blocks;
    const int32_t *sums = a->sums + (size_t)token * 2 * blocks;
    __m512 total[16];
    for (int t = 0; t < tokens; t++) total[t] = _mm512_setzero_ps();
    int steps = layout_steps(layout), parts = 8 / steps;
    for (size_t block = 0; block < blocks; block++) {
        for (int part = 0; part < parts; part++, w += layout_block_bytes(layout)) {
            __m512i codes[8];
            // A matrix–vector product waits for memory: ask for the panel's bytes well before the hardware would.
            if (tokens == 1)
                for (size_t line = 0; line < layout_block_bytes(layout); line += 64)
                    _mm_prefetch((const char *)w + AHEAD + line, _MM_HINT_T0);
            unpack_avx512(layout, w, codes);
            __m512 scale = halves_avx512(w + layout_code_bytes(layout)), minimum;
            if (layout_has_minimum(layout)) minimum = halves_avx512(w + layout_code_bytes(layout) + 32);
            for (int t = 0; t < tokens; t++) {
                const int8_t *x = q + (size_t)t * columns + block * 32 + (size_t)part * 16;
                const int32_t *sum = sums + (size_t)t * 2 * blocks + block * 2;
                __m512i dot = _mm512_setzero_si512();
                if (layout == CK_U8_D16)
                    dot = _mm512_slli_epi32(_mm512_set1_epi32(sum[part]), 5);
                else if (layout_offset_shift(layout) >= 0)
                    dot = _mm512_set1_epi32((sum[0] + sum[1]) << layout_offset_shift(layout));
                for (int i = 0; i < steps; i++) {
                    int32_t four;
                    memcpy(&four, x + 4 * i, 4);
                    dot = _mm512_dpbusd_epi32(dot, codes[i], _mm512_set1_epi32(four));
                }
                __m512 product = _mm512_mul_ps(_mm512_cvtepi32_ps(dot), scale);
                total[t] = _mm512_fmadd_ps(product, _mm512_set1_ps(d[(size_t)t * blocks + block]), total[t]);
                if (layout_has_minimum(layout))
                    total[t] = _mm512_fmadd_ps(minimum, _mm512_set1_ps(s[(size_t)t * blocks + block]), total[t]);
            }
        }
    }
    __m512 matrix_scale = _mm512_set1_ps(m->scale);
    for (int t = 0; t < tokens; t++) {
        float *out = y + (size_t)(token + t) * (size_t)ldy;
        __m512 before = add ? _mm512_maskz_loadu_ps(rows, out) : _mm512_setzero_ps();
        _mm512_mask_storeu_ps(out, rows, _mm512_fmadd_ps(total[t], matrix_scale, before));
    }
}

TARGET INLINE void tokens_avx512(ck_layout layout, const ck_matrix *m, int32_t panel, const ck_activations *a, float *y,
                                 int32_t ldy, bool add) {
    const uint8_t *w = m->data + (size_t)panel * m->panel_bytes;
    int left = m->rows - panel * CK_PANEL;
    __mmask16 rows = left >= CK_PANEL ? 0xFFFF : (__mmask16)((1 << left) - 1);
    y += panel * CK_PANEL;
    int32_t t = 0;
    for (; t + 12 <= a->count; t += 12) tile_avx512(layout, 12, m, w, a, t, y, ldy, rows, add);
    for (; t + 4 <= a->count; t += 4) tile_avx512(layout, 4, m, w, a, t, y, ldy, rows, add);
    for (; t < a->count; t++) tile_avx512(layout, 1, m, w, a, t, y, ldy, rows, add);
}

TARGET static void panel_avx512(const ck_matrix *m, int32_t panel, const ck_activations *a, float *y, int32_t ldy, bool add) {
    if (m->layout >= CK_F16) {
        float_panels_avx512(m, panel, a, y, ldy, add);
        return;
    }
#define BODY(layout) tokens_avx512(layout, m, panel, a, y, ldy, add); return
    FOR_INTEGER_LAYOUT(m->layout, BODY)
#undef BODY
}

const ck_kernels ck_kernels_avx512 = KERNEL_TABLE(CK_AVX512, "AVX-512 VNNI", panel_avx512);
const ck_kernels ck_kernels_amx = KERNEL_TABLE(CK_AMX, "AMX int8", ck_panel_amx);

#endif
