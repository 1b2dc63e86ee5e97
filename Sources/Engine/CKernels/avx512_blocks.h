// Products of AVX-512 with matrices whose scales are integers; see blocks512.h. Included by avx512.c.
//
// 64 columns of 16 rows take 20 instructions for each token, 16 of which multiply codes. Scaled one by one in binary32, the sums took 8
// instructions beside these 16.

#include "blocks512.h"

enum { TILE = 8 };  // tokens whose sums stay in registers

/// total[t] += the product of one block with `tokens` rows of activations from `token` on. `layout` and `tokens` are constants at every
/// call. Codes are unpacked where they are used: the eight codes of a group would need as many registers.
TARGET INLINE void add_block_avx512(ck_layout layout, int tokens, const uint8_t *block, const block_scales_avx512 *scales,
                                    const ck_activations *a, size_t token, size_t index, __m512 *total) {
    size_t columns = (size_t)a->columns, row_groups = columns / 32, row_blocks = columns / 256;
    int parts = layout_parts(layout), steps = 8 / parts;
    __m512i sum[TILE];
#pragma clang loop unroll(full)
    for (int t = 0; t < tokens; t++) sum[t] = _mm512_setzero_si512();
#pragma clang loop unroll(full)
    for (int pair = 0; pair < 4; pair++) {
        ck_activations x = activations_avx512(a, token * row_groups + index * 8 + (size_t)(2 * pair));
#pragma clang loop unroll(full)
        for (int part = 0; part < parts; part++) {
            __m512i dot[2][TILE];
#pragma clang loop unroll(full)
            for (int side = 0; side < 2; side++) {
                const uint8_t *group = block + layout_group_bytes(layout) * (size_t)(2 * pair + side);
#pragma clang loop unroll(full)
                for (int t = 0; t < tokens; t++)
                    dot[side][t] = layout_offset(layout) > 0
                                       ? _mm512_set1_epi32(x.starts[2 * ((size_t)t * row_groups + (size_t)side) + (size_t)part])
                                       : _mm512_setzero_si512();
#pragma clang loop unroll(full)
                for (int i = 0; i < steps; i++) {
                    __m512i code = (__m512i)code_avx512(layout, group, part * steps + i);
#pragma clang loop unroll(full)
                    for (int t = 0; t < tokens; t++) {
                        int32_t four;
                        memcpy(&four, x.q + (size_t)t * columns + 32 * side + 16 * part + 4 * i, 4);
                        dot[side][t] = _mm512_dpbusd_epi32(dot[side][t], code, _mm512_set1_epi32(four));
                    }
                }
            }
#pragma clang loop unroll(full)
            for (int t = 0; t < tokens; t++)
                sum[t] = add_pair_avx512(sum[t], dot[0][t], dot[1][t], scales->scale[part][pair], x.factors + (size_t)t * row_groups);
        }
    }
#pragma clang loop unroll(full)
    for (int t = 0; t < tokens; t++)
        total[t] = add_block_sum_avx512(layout, total[t], sum[t], scales, a, (token + (size_t)t) * row_blocks + index);
}

/// The product of a panel with `tokens` rows of activations from `token` on.
TARGET INLINE void tile_blocks_avx512(ck_layout layout, int tokens, const uint8_t *w, const ck_activations *a, size_t token,
                                      size_t panel_bytes, __m512 *total) {
    size_t blocks = (size_t)a->columns / 256, bytes = layout_block_bytes(layout);
    processor kind = processor_avx512();
    __m512 sums[TILE];
    for (int t = 0; t < tokens; t++) sums[t] = _mm512_setzero_ps();
    for (size_t block = 0; block < blocks; block++, w += bytes) {
        if (a->count <= TILE) prefetch_avx512(kind, w, bytes);
        // The first of several tiles prefetches the next panel: the tiles leave the memory enough time.
        else if (token == 0)
            for (size_t line = 0; line < bytes; line += 64) _mm_prefetch((const char *)w + panel_bytes + line, _MM_HINT_T1);
        block_scales_avx512 scales;
        read_block_scales_avx512(layout, w, &scales);
        add_block_avx512(layout, tokens, w, &scales, a, token, block, sums);
    }
    for (int t = 0; t < tokens; t++) total[t] = sums[t];
}

/// The maxima (or sums) of the lanes of eight vectors.
#define REDUCE8(OP, v)                                                                                                        \
    __extension__({                                                                                                           \
        __m256 r_[8], s_[4], t_[2];                                                                                           \
        for (int i_ = 0; i_ < 8; i_++)                                                                                        \
            r_[i_] = _mm256_##OP##_ps(_mm512_castps512_ps256((v)[i_]), _mm512_extractf32x8_ps((v)[i_], 1));                   \
        for (int i_ = 0; i_ < 4; i_++)                                                                                        \
            s_[i_] = _mm256_##OP##_ps(_mm256_unpacklo_ps(r_[2 * i_], r_[2 * i_ + 1]),                                         \
                                      _mm256_unpackhi_ps(r_[2 * i_], r_[2 * i_ + 1]));                                        \
        for (int i_ = 0; i_ < 2; i_++)                                                                                        \
            t_[i_] = _mm256_##OP##_ps(_mm256_shuffle_ps(s_[2 * i_], s_[2 * i_ + 1], 0x44),                                    \
                                      _mm256_shuffle_ps(s_[2 * i_], s_[2 * i_ + 1], 0xEE));                                   \
        _mm256_##OP##_ps(_mm256_permute2f128_ps(t_[0], t_[1], 0x20), _mm256_permute2f128_ps(t_[0], t_[1], 0x31));             \
    })

/// The arithmetic of the generic function, with the eight groups of a block together; sums of floats are added in another order.
TARGET static void quantize_blocks_avx512(const ck_activations *a, int32_t row) {
    size_t columns = (size_t)a->columns, start = (size_t)row * columns;
    __m512 sign = _mm512_set1_ps(-0.0f), rounder = _mm512_set1_ps(12582912.0f);
    __m256i ones = _mm256_set1_epi8(1);
    for (size_t block = start / 256; block < (start + columns) / 256; block++) {
        const float *x = a->x + block * 256;
        int8_t *q = a->q + block * 256;
        __m512 maxima[8], lows[8], highs[8];
#pragma clang loop unroll(full)
        for (int group = 0; group < 8; group++) {
            __m512 low = _mm512_loadu_ps(x + 32 * group), high = _mm512_loadu_ps(x + 32 * group + 16);
            lows[group] = _mm512_andnot_ps(sign, low);
            highs[group] = _mm512_andnot_ps(sign, high);
            maxima[group] = _mm512_max_ps(lows[group], highs[group]);
        }
        __m256 maximum = REDUCE8(max, maxima), low = REDUCE8(add, lows), high = REDUCE8(add, highs);
        __m256 magnitude = _mm256_add_ps(low, high);
        // `ck_block_needs` of eight groups.
        __m256 needs = _mm256_mul_ps(maximum, _mm256_set1_ps(CK_NEEDS_MAXIMUM));
        needs = _mm256_max_ps(needs, _mm256_mul_ps(_mm256_max_ps(low, high), _mm256_set1_ps(CK_NEEDS_HALF)));
        float all[8], total = 0, largest = 0;
        _mm256_storeu_ps(all, magnitude);
        for (int group = 0; group < 8; group++) total += all[group];
        _mm256_storeu_ps(all, needs);
        for (int group = 0; group < 8; group++) largest = all[group] > largest ? all[group] : largest;
        float unit = ck_block_unit(total, largest);
        bool usable = unit > CK_SMALLEST && unit < INFINITY;
        __m256 factor = _mm256_setzero_ps(), scale = _mm256_set1_ps(unit), inverse = factor;
        if (usable) {
            factor = _mm256_round_ps(_mm256_div_ps(needs, scale), _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
            factor = _mm256_min_ps(factor, _mm256_set1_ps(127));
            __mmask8 used = _mm256_cmp_ps_mask(factor, _mm256_setzero_ps(), _CMP_GT_OQ);
            scale = _mm256_mul_ps(scale, factor);
            inverse = _mm256_maskz_div_ps(used, _mm256_set1_ps(1), scale);
        }
        a->unit[block] = unit;
        _mm256_storeu_ps(a->d + block * 8, scale);
        _mm256_storeu_ps(all, inverse);
        __m256i partial[8];
#pragma clang loop unroll(full)
        for (int group = 0; group < 8; group++) {
            __m512 by = _mm512_set1_ps(all[group]);
            __m512i offset = _mm512_set1_epi32(0x4B400000);
            // An infinite value times zero is not a number, but its code must be zero.
            __mmask16 used = all[group] > 0 ? 0xFFFF : 0;
            __m512i first = _mm512_maskz_sub_epi32(
                used, _mm512_castps_si512(_mm512_fmadd_ps(_mm512_loadu_ps(x + 32 * group), by, rounder)), offset);
            __m512i second = _mm512_maskz_sub_epi32(
                used, _mm512_castps_si512(_mm512_fmadd_ps(_mm512_loadu_ps(x + 32 * group + 16), by, rounder)), offset);
            __m256i codes = _mm256_set_m128i(_mm512_cvtepi32_epi8(second), _mm512_cvtepi32_epi8(first));
            _mm256_storeu_si256((__m256i *)(q + 32 * group), codes);
            partial[group] = _mm256_dpbusd_epi32(_mm256_setzero_si256(), ones, codes);
        }
        // The sums of halves: in order, those of two groups are [low 0, low 1, high 0, high 1] after the last step.
        __m256i order = _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0), weighted[2];
        for (int i = 0; i < 2; i++) {
            __m256i *p = partial + 4 * i;
            __m256i four = _mm256_hadd_epi32(_mm256_hadd_epi32(p[0], p[1]), _mm256_hadd_epi32(p[2], p[3]));
            weighted[i] = _mm256_permutevar8x32_epi32(four, order);
            __m256i negated = _mm256_sub_epi32(_mm256_setzero_si256(), weighted[i]);
            _mm256_storeu_si256((__m256i *)(a->sums + block * 16 + 8 * (size_t)i), negated);
            _mm256_storeu_si256((__m256i *)(a->starts + block * 16 + 8 * (size_t)i), _mm256_slli_epi32(negated, 5));
        }
        __m256i whole = _mm256_permute4x64_epi64(_mm256_hadd_epi32(weighted[0], weighted[1]), 0xD8);
        __m256i factors = _mm256_cvtps_epi32(factor);
        whole = _mm256_srai_epi32(_mm256_add_epi32(_mm256_mullo_epi32(whole, factors), _mm256_set1_epi32(4)), 3);
        _mm_storeu_si128((__m128i *)(a->factors + block * 8), _mm256_cvtepi32_epi16(factors));
        _mm_storeu_si128((__m128i *)(a->weighted + block * 8), _mm256_cvtepi32_epi16(whole));
        _mm256_storeu_ps(a->s + block * 8, _mm256_mul_ps(_mm256_cvtepi32_ps(whole), _mm256_set1_ps(8 * unit)));
    }
}

/// The product of a panel in a layout for which `ck_layout_sums_blocks` is true.
TARGET INLINE void panel_blocks_avx512(ck_layout layout, const ck_matrix *m, int32_t panel, const ck_activations *a, float *y,
                                       int32_t ldy, bool add) {
    const uint8_t *w = m->data + (size_t)panel * m->panel_bytes;
    int left = m->rows - panel * CK_PANEL;
    __mmask16 rows = left >= CK_PANEL ? 0xFFFF : (__mmask16)((1 << left) - 1);
    __m512 matrix_scale = _mm512_set1_ps(m->scale);
    y += panel * CK_PANEL;
    int32_t t = 0;
#define TILES(size)                                                                             \
    for (; t + size <= a->count; t += size) {                                                   \
        __m512 total[size];                                                                     \
        tile_blocks_avx512(layout, size, w, a, (size_t)t, m->panel_bytes, total);               \
        for (int u = 0; u < size; u++) {                                                        \
            float *out = y + (size_t)(t + u) * (size_t)ldy;                                     \
            __m512 before = add ? _mm512_maskz_loadu_ps(rows, out) : _mm512_setzero_ps();       \
            _mm512_mask_storeu_ps(out, rows, _mm512_fmadd_ps(total[u], matrix_scale, before));  \
        }                                                                                       \
    }
    TILES(8) TILES(6) TILES(5) TILES(4) TILES(3) TILES(2) TILES(1)
#undef TILES
}
