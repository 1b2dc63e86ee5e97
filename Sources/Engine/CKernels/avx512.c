// AVX-512 with VNNI: the 16 rows of a panel fill one register, and `vpdpbusd` multiplies four columns of all 16 rows
// by four activations broadcast from memory. 8 of 12 instructions per group and token are multiplications.

#if defined(__x86_64__)

#include <immintrin.h>

#define NAME(x) x##_avx512
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")))
#define LOAD_HALF16(p) ((v16f_storage)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(p))))
#define STORE_HALF16(p, v) _mm256_storeu_si256((__m256i *)(p), _mm512_cvtps_ph((__m512)(v), _MM_FROUND_TO_NEAREST_INT))

#define LOOK_UP(table, codes) \
    ((v64b)_mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(table))), (__m512i)(codes)))

#include "kernel_sets.h"

#define ACCUMULATORS 12
#define OWN_QUANTIZE
#include "generic.h"

/// Processors that read fastest with different prefetches.
typedef enum { INTEL, ZEN4, ZEN5 } processor;

static inline processor processor_avx512(void) {
    if (!__builtin_cpu_is("amd")) return INTEL;
    // Zen 5 has both. The name of Zen 4 is unknown to the support libraries of older compilers.
    return __builtin_cpu_supports("avx512vp2intersect") || __builtin_cpu_supports("avxvnni") ? ZEN5 : ZEN4;
}

/// Prefetches the weights that a product with few rows reads soon: it is limited by memory, and the prefetcher of the processor fetches
/// too late. Measured: Zen 4 reads a third more with one prefetch into L2 far ahead (24 to 64 KB) than with one into L1, of which it has
/// few outstanding; Zen 5 reads at the limit of the memory with one prefetch 6 to 8 KB ahead, and 15 % slower with two; Intel (Sapphire
/// Rapids) is fastest with one into the L2 cache, which supports more outstanding lines than L1, and one into L1.
TARGET INLINE void prefetch_avx512(processor kind, const uint8_t *at, size_t bytes) {
    for (size_t line = 0; line < bytes; line += 64) {
        if (kind == ZEN4) {
            _mm_prefetch((const char *)at + 32768 + line, _MM_HINT_T1);
        } else if (kind == ZEN5) {
            _mm_prefetch((const char *)at + 6144 + line, _MM_HINT_T0);
        } else {
            _mm_prefetch((const char *)at + 8192 + line, _MM_HINT_T1);
            _mm_prefetch((const char *)at + 512 + line, _MM_HINT_T0);
        }
    }
}

enum { TOGETHER = 6 };  // interleaved tokens of one panel; more need too many registers

/// The activations from a group of 32 columns on. The compiler does not know where the pointers come from, so it computes addresses from
/// them instead of keeping those of all tokens, and broadcast values, in registers and on the stack (up to a third faster).
TARGET INLINE ck_activations activations_avx512(const ck_activations *a, size_t place) {
    ck_activations at = {.q = a->q + place * 32, .d = a->d + place, .s = a->s + place, .sums = a->sums + 2 * place,
                         .factors = a->factors + place, .starts = a->starts + 2 * place};
    __asm__("" : "+r"(at.q), "+r"(at.d), "+r"(at.s), "+r"(at.sums), "+r"(at.factors), "+r"(at.starts));
    return at;
}

#include "avx512_blocks.h"

/// The same arithmetic as the generic function, for finite values. Sums of bytes are products with ones, which take a few instructions.
TARGET static void quantize_avx512(const ck_activations *a, int32_t row) {
    if (a->unit) {
        quantize_blocks_avx512(a, row);
        return;
    }
    size_t columns = (size_t)a->columns, blocks = columns / 32;
    const float *x = a->x + (size_t)row * columns;
    int8_t *q = a->q + (size_t)row * columns;
    float *d = a->d + (size_t)row * blocks, *s = a->s + (size_t)row * blocks;
    int32_t *sums = a->sums + (size_t)row * 2 * blocks;
    __m512 sign = _mm512_set1_ps(-0.0f), rounder = _mm512_set1_ps(12582912.0f);
    __m256i ones = _mm256_set1_epi8(1);
    for (size_t block = 0; block < blocks; block++, x += 32, q += 32) {
        __m512 low = _mm512_loadu_ps(x), high = _mm512_loadu_ps(x + 16);
        __m512 wide = _mm512_max_ps(_mm512_andnot_ps(sign, low), _mm512_andnot_ps(sign, high));
        __m256 half = _mm256_max_ps(_mm512_castps512_ps256(wide), _mm512_extractf32x8_ps(wide, 1));
        __m128 four = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
        four = _mm_max_ps(four, _mm_movehl_ps(four, four));
        four = _mm_max_ss(four, _mm_movehdup_ps(four));
        float largest = _mm_cvtss_f32(four);
        float scale = largest / 127, inverse = largest > CK_SMALLEST && largest < INFINITY ? 127 / largest : 0;
        __m512 factor = _mm512_set1_ps(inverse);
        __m512i offset = _mm512_set1_epi32(0x4B400000);
        __m512i low_codes = _mm512_sub_epi32(_mm512_castps_si512(_mm512_fmadd_ps(low, factor, rounder)), offset);
        __m512i high_codes = _mm512_sub_epi32(_mm512_castps_si512(_mm512_fmadd_ps(high, factor, rounder)), offset);
        __m256i codes =
            _mm256_set_m128i(_mm512_cvtepi32_epi8(high_codes), _mm512_cvtepi32_epi8(low_codes));
        _mm256_storeu_si256((__m256i *)q, codes);
        __m256i partial = _mm256_dpbusd_epi32(_mm256_setzero_si256(), ones, codes);
        partial = _mm256_hadd_epi32(partial, partial);
        partial = _mm256_hadd_epi32(partial, partial);
        int32_t low_sum = _mm256_extract_epi32(partial, 0), high_sum = _mm256_extract_epi32(partial, 4);
        d[block] = scale;
        s[block] = scale * (float)(low_sum + high_sum);
        sums[2 * block] = -low_sum;
        sums[2 * block + 1] = -high_sum;
    }
}

/// The product of one panel with `tokens` activation rows; `layout` and `tokens` are constants at every call.
TARGET INLINE void tile_avx512(ck_layout layout, int tokens, const ck_matrix *m, const uint8_t *w, const ck_activations *a,
                               int32_t token, float *y, int32_t ldy, __mmask16 rows, bool add) {
    size_t columns = (size_t)m->columns, row_groups = columns / 32;
    int groups = layout_columns(layout) / 32, parts = layout_parts(layout), steps = 8 / parts;
    size_t group_bytes = layout_group_bytes(layout), share = (layout_block_bytes(layout) + (size_t)groups - 1) / (size_t)groups;
    processor kind = processor_avx512();
    v16f total[16];
    for (int t = 0; t < tokens; t++) total[t] = splat_avx512(0);
    for (size_t first = 0; first < row_groups; first += (size_t)groups, w += layout_block_bytes(layout)) {
        for (int group = 0; group < groups; group++) {
            const uint8_t *at = w + group_bytes * (size_t)group;
            const uint8_t *share_of_block = w + share * (size_t)group;
            if (tokens <= 8) prefetch_avx512(kind, share_of_block, share);
            // The first of several tiles prefetches the next panel: the tiles leave the memory enough time.
            if (tokens > 8 && token == 0)
                for (size_t line = 0; line < share; line += 64)
                    _mm_prefetch((const char *)share_of_block + m->panel_bytes + line, _MM_HINT_T1);
            v64b codes[8];
            unpack_avx512(layout, at, codes);
#pragma clang loop unroll(full)
            for (int part = 0; part < parts; part++) {
                v16f scale, minimum;
                scales_avx512(layout, w, group, part, &scale, &minimum);
                // Several tokens are interleaved: each product waits for the one before it of the same token.
#pragma clang loop unroll(full)
                for (int t = 0; t < tokens; t += TOGETHER) {
                    ck_activations x = activations_avx512(a, (size_t)(token + t) * row_groups + first + (size_t)group);
                    __m512i dot[TOGETHER];
#pragma clang loop unroll(full)
                    for (int u = 0; u < TOGETHER; u++) {
                        if (t + u >= tokens) break;
                        dot[u] = _mm512_set1_epi32(offset_sum_avx512(layout, &x, (size_t)u * row_groups, part));
                    }
#pragma clang loop unroll(full)
                    for (int i = 0; i < steps; i++) {
#pragma clang loop unroll(full)
                        for (int u = 0; u < TOGETHER; u++) {
                            if (t + u >= tokens) break;
                            int32_t four;
                            memcpy(&four, x.q + (size_t)u * columns + part * 16 + 4 * i, 4);
                            dot[u] = _mm512_dpbusd_epi32(dot[u], (__m512i)codes[part * steps + i], _mm512_set1_epi32(four));
                        }
                    }
#pragma clang loop unroll(full)
                    for (int u = 0; u < TOGETHER; u++) {
                        if (t + u >= tokens) break;
                        size_t place = (size_t)u * row_groups;
                        v16f product = (v16f)_mm512_cvtepi32_ps(dot[u]) * scale;
                        total[t + u] =
                            (v16f)_mm512_fmadd_ps((__m512)product, _mm512_set1_ps(x.d[place]), (__m512)total[t + u]);
                        if (layout_has_minimum(layout))
                            total[t + u] = (v16f)_mm512_fmadd_ps(
                                (__m512)minimum, _mm512_set1_ps(part_sum_avx512(layout, &x, place, part)),
                                (__m512)total[t + u]);
                    }
                }
            }
        }
    }
    __m512 matrix_scale = _mm512_set1_ps(m->scale);
    for (int t = 0; t < tokens; t++) {
        float *out = y + (size_t)(token + t) * (size_t)ldy;
        __m512 before = add ? _mm512_maskz_loadu_ps(rows, out) : _mm512_setzero_ps();
        _mm512_mask_storeu_ps(out, rows, _mm512_fmadd_ps((__m512)total[t], matrix_scale, before));
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
    // Each tile reads and unpacks the panel again, so the rest is divided into as few tiles as possible.
    for (; t + 8 <= a->count; t += 8) tile_avx512(layout, 8, m, w, a, t, y, ldy, rows, add);
    for (; t + 6 <= a->count; t += 6) tile_avx512(layout, 6, m, w, a, t, y, ldy, rows, add);
    for (; t + 4 <= a->count; t += 4) tile_avx512(layout, 4, m, w, a, t, y, ldy, rows, add);
    switch (a->count - t) {
        case 3: tile_avx512(layout, 3, m, w, a, t, y, ldy, rows, add); return;
        case 2: tile_avx512(layout, 2, m, w, a, t, y, ldy, rows, add); return;
        case 1: tile_avx512(layout, 1, m, w, a, t, y, ldy, rows, add); return;
    }
}

/// The products of two panels with `tokens` activation rows: each activation that is read serves both. For layouts with one part and
/// without a minimum.
TARGET INLINE void pair_tile_avx512(ck_layout layout, int tokens, const ck_matrix *m, const uint8_t *w, const ck_activations *a,
                                    int32_t token, float *y, int32_t ldy, __mmask16 rows, bool add) {
    size_t row_groups = (size_t)m->columns / 32;
    int groups = layout_columns(layout) / 32;
    size_t group_bytes = layout_group_bytes(layout);
    const uint8_t *second = w + m->panel_bytes;
    v16f total[2][6];
    for (int t = 0; t < tokens; t++) total[0][t] = total[1][t] = splat_avx512(0);
    for (size_t first = 0; first < row_groups; first += (size_t)groups) {
        for (int group = 0; group < groups; group++) {
            v64b codes[2][8];
            unpack_avx512(layout, w + group_bytes * (size_t)group, codes[0]);
            unpack_avx512(layout, second + group_bytes * (size_t)group, codes[1]);
            size_t place = (size_t)token * row_groups + first + (size_t)group;
            const int8_t *x = a->q + place * 32;
            __m512i dot[2][6];
#pragma clang loop unroll(full)
            for (int t = 0; t < tokens; t++)
                dot[0][t] = dot[1][t] = _mm512_set1_epi32(offset_sum_avx512(layout, a, place + (size_t)t * row_groups, 0));
#pragma clang loop unroll(full)
            for (int i = 0; i < 8; i++) {
                __m512i one = (__m512i)codes[0][i], two = (__m512i)codes[1][i];
#pragma clang loop unroll(full)
                for (int t = 0; t < tokens; t++) {
                    int32_t four;
                    memcpy(&four, x + (size_t)t * row_groups * 32 + 4 * i, 4);
                    __m512i activations = _mm512_set1_epi32(four);
                    dot[0][t] = _mm512_dpbusd_epi32(dot[0][t], one, activations);
                    dot[1][t] = _mm512_dpbusd_epi32(dot[1][t], two, activations);
                }
            }
#pragma clang loop unroll(full)
            for (int panel = 0; panel < 2; panel++) {
                v16f scale, minimum;  // the layouts computed in pairs have no minimum
                scales_avx512(layout, panel ? second : w, group, 0, &scale, &minimum);
#pragma clang loop unroll(full)
                for (int t = 0; t < tokens; t++) {
                    size_t at = place + (size_t)t * row_groups;
                    v16f product = (v16f)_mm512_cvtepi32_ps(dot[panel][t]) * scale;
                    total[panel][t] =
                        (v16f)_mm512_fmadd_ps((__m512)product, _mm512_set1_ps(a->d[at]), (__m512)total[panel][t]);
                }
            }
        }
        w += layout_block_bytes(layout);
        second += layout_block_bytes(layout);
    }
    __m512 matrix_scale = _mm512_set1_ps(m->scale);
    for (int panel = 0; panel < 2; panel++) {
        __mmask16 mask = panel ? rows : 0xFFFF;
        for (int t = 0; t < tokens; t++) {
            float *out = y + (size_t)(token + t) * (size_t)ldy + panel * CK_PANEL;
            __m512 before = add ? _mm512_maskz_loadu_ps(mask, out) : _mm512_setzero_ps();
            _mm512_mask_storeu_ps(out, mask, _mm512_fmadd_ps((__m512)total[panel][t], matrix_scale, before));
        }
    }
}

TARGET INLINE void pair_tokens_avx512(ck_layout layout, const ck_matrix *m, int32_t panel, const ck_activations *a, float *y,
                                      int32_t ldy, bool add) {
    const uint8_t *w = m->data + (size_t)panel * m->panel_bytes;
    int left = m->rows - (panel + 1) * CK_PANEL;
    __mmask16 rows = left >= CK_PANEL ? 0xFFFF : (__mmask16)((1 << left) - 1);
    y += panel * CK_PANEL;
    int32_t t = 0;
    for (; t + 6 <= a->count; t += 6) pair_tile_avx512(layout, 6, m, w, a, t, y, ldy, rows, add);
    switch (a->count - t) {
        case 5: pair_tile_avx512(layout, 5, m, w, a, t, y, ldy, rows, add); return;
        case 4: pair_tile_avx512(layout, 4, m, w, a, t, y, ldy, rows, add); return;
        case 3: pair_tile_avx512(layout, 3, m, w, a, t, y, ldy, rows, add); return;
        case 2: pair_tile_avx512(layout, 2, m, w, a, t, y, ldy, rows, add); return;
        case 1: pair_tile_avx512(layout, 1, m, w, a, t, y, ldy, rows, add); return;
    }
}

TARGET static bool pair_avx512(const ck_matrix *m, int32_t panel, const ck_activations *a, float *y, int32_t ldy, bool add) {
    // A product with few rows is limited by memory, where two streams are not faster.
    if (a->count < 12 || m->layout != CK_LAYOUT_Q8_0) return false;
    pair_tokens_avx512(CK_LAYOUT_Q8_0, m, panel, a, y, ldy, add);
    return true;
}

#define TARGET_BF16 __attribute__((target("avx512bf16,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")))

/// The product of one panel of a BF16 matrix with `tokens` rows of activations that are rounded to bfloat16. `vdpbf16ps` multiplies two
/// columns of 16 rows, twice as many as a product in binary32. `tokens` is a constant at every call.
TARGET_BF16 INLINE void bf16_tile_avx512(int tokens, const ck_matrix *m, const uint8_t *w, const float *x, float *y, int32_t ldy,
                                         __mmask16 rows, bool add) {
    enum { SPAN = 512 };
    size_t columns = (size_t)m->columns;
    uint16_t rounded[12][SPAN] __attribute__((aligned(64)));
    // From two columns of 16 rows to 16 rows of two columns.
    uint16_t order[32];
    for (int i = 0; i < 32; i++) order[i] = (uint16_t)(i / 2 + i % 2 * 16);
    __m512i by_row = _mm512_loadu_si512(order);
    __m512 total[12];
    for (int t = 0; t < tokens; t++) total[t] = _mm512_setzero_ps();
    for (size_t first = 0; first < columns; first += SPAN) {
        size_t span = columns - first < SPAN ? columns - first : SPAN;
        for (int t = 0; t < tokens; t++) {
            const float *row = x + (size_t)t * columns + first;
            for (size_t i = 0; i < span; i += 32)
                _mm512_store_si512(rounded[t] + i,
                                   (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(row + i + 16), _mm512_loadu_ps(row + i)));
        }
        for (size_t k = 0; k < span; k += 2, w += 64) {
            __m512bh weights = (__m512bh)_mm512_permutexvar_epi16(by_row, _mm512_loadu_si512(w));
#pragma clang loop unroll(full)
            for (int t = 0; t < tokens; t++) {
                int32_t two;
                memcpy(&two, rounded[t] + k, 4);
                total[t] = _mm512_dpbf16_ps(total[t], weights, (__m512bh)_mm512_set1_epi32(two));
            }
        }
    }
    __m512 matrix_scale = _mm512_set1_ps(m->scale);
    for (int t = 0; t < tokens; t++) {
        float *out = y + (size_t)t * (size_t)ldy;
        __m512 before = add ? _mm512_maskz_loadu_ps(rows, out) : _mm512_setzero_ps();
        _mm512_mask_storeu_ps(out, rows, _mm512_fmadd_ps(total[t], matrix_scale, before));
    }
}

TARGET_BF16 static void bf16_panel_avx512(const ck_matrix *m, int32_t panel, const ck_activations *a, float *y, int32_t ldy, bool add) {
    const uint8_t *w = m->data + (size_t)panel * m->panel_bytes;
    int left = m->rows - panel * CK_PANEL;
    __mmask16 rows = left >= CK_PANEL ? 0xFFFF : (__mmask16)((1 << left) - 1);
    y += panel * CK_PANEL;
    int32_t t = 0;
#define TILE(tokens) bf16_tile_avx512(tokens, m, w, a->x + (size_t)t * (size_t)m->columns, y + (size_t)t * (size_t)ldy, ldy, rows, add)
    for (; t + 12 <= a->count; t += 12) TILE(12);
    for (; t + 4 <= a->count; t += 4) TILE(4);
    for (; t < a->count; t++) TILE(1);
#undef TILE
}

TARGET static void panel_avx512(const ck_matrix *m, int32_t panel, const ck_activations *a, float *y, int32_t ldy, bool add) {
    if (a->unit) {
        // The preprocessor chooses the layouts whose blocks can be added: the others would take long to compile.
        switch (m->layout) {
#define PRODUCT_GROUPS(layout) break
#define PRODUCT_BLOCKS(layout) panel_blocks_avx512(layout, m, panel, a, y, ldy, add); return
#define CASE(name, bits, values, offset, scales, sums) case CK_LAYOUT_##name: PRODUCT_##sums(CK_LAYOUT_##name);
            CK_LAYOUTS(CASE)
#undef CASE
            CK_FLOAT_CASES break;
        }
    }
    switch (m->layout) {
#define CASE(name, ...) case CK_LAYOUT_##name: tokens_avx512(CK_LAYOUT_##name, m, panel, a, y, ldy, add); return;
        CK_LAYOUTS(CASE)
#undef CASE
        CK_FLOAT_CASES
            // Decided by the matrix alone, so that a row has the same product in every batch.
            if (m->rounds_activations && m->layout == CK_BF16 && m->columns % 32 == 0 && __builtin_cpu_supports("avx512bf16"))
                bf16_panel_avx512(m, panel, a, y, ldy, add);
            else
                float_panels_avx512(m, panel, a, y, ldy, add);
    }
}

TARGET static void own_attention_avx512(const ck_attention *a, int32_t kv_head, int32_t first_head, int32_t head_count,
                                        int32_t first_row, int32_t row_count, int32_t from, int32_t to,
                                        const ck_attention_next *next, float *partial) {
    int32_t exact = row_count;
    // Decided by the processor, the model and the position of the row, so that a row has the same result in every batch.
    if (a->rounds && __builtin_cpu_supports("avx512bf16") && a->head_dim % 2 == 0 && a->head_dim <= CK_BF16_HEAD_DIM) {
        exact = CK_ROUNDED_FROM - (a->length - a->rows + first_row);
        exact = exact < 0 ? 0 : exact > row_count ? row_count : exact;
    }
    if (exact > 0) attention_avx512(a, kv_head, first_head, head_count, first_row, exact, from, to, next, partial);
    partial += (size_t)exact * (size_t)head_count * (size_t)(a->value_stride + 2);
    if (exact < row_count)
        ck_attention_bf16(a, kv_head, first_head, head_count, first_row + exact, row_count - exact, from, to, next, partial);
}

#undef ATTENTION
#define ATTENTION own_attention_avx512
const ck_kernels ck_kernels_avx512 = KERNEL_TABLE(CK_AVX512, "AVX-512 VNNI", true, panel_avx512, pair_avx512);
const ck_kernels ck_kernels_amx = KERNEL_TABLE(CK_AMX, "AMX int8", true, ck_panel_amx, NULL);

#endif
