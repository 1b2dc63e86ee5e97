// Advanced Matrix Extensions, for prefill. A group of a panel already has the format of the right-hand tile of
// `tdpbsud` ([4 columns of k][16 rows][4 bytes]), and 16 activation rows are the left-hand tile. The 16 × 16 sums are
// then scaled by group with AVX-512. Fewer than 16 tokens use the AVX-512 kernels: tiles do not make a matrix-vector
// product faster, because it is limited by memory bandwidth.

#if defined(__x86_64__)

#define _GNU_SOURCE
#include <immintrin.h>
#include <string.h>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#define NAME(x) x##_amx
#define TARGET __attribute__((target("amx-tile,amx-int8,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")))
#define ACCUMULATORS 12
#define LOAD_HALF16(p) ((v16f_storage)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(p))))
#define STORE_HALF16(p, v) _mm256_storeu_si256((__m256i *)(p), _mm512_cvtps_ph((__m512)(v), _MM_FROUND_TO_NEAREST_INT))
#define LOOK_UP(table, codes) \
    ((v64b)_mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(table))), (__m512i)(codes)))

#include "kernel_sets.h"

#pragma clang diagnostic ignored "-Wunused-function"
#include "generic.h"

#ifdef CK_EMULATED_TILES
#include "emulated_tiles.h"
#endif

bool ck_amx_enable(void) {
#if defined(CK_EMULATED_TILES)
    return true;
#elif defined(__linux__) && defined(SYS_arch_prctl)
    if (!__builtin_cpu_supports("amx-int8")) return false;
    // ARCH_REQ_XCOMP_PERM for component 18, the tile data (Documentation/arch/x86/xstate.rst of the Linux kernel).
    return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
#else
    return false;
#endif
}

enum {
    CHUNK = 32,    // groups of 32 columns unpacked at a time: 24 KB, so that they stay in L1 with the activations
    TOKENS = 16,
    BATCH = 256,   // rows of activations whose sums are kept
};

typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_shapes;

typedef struct {
    uint8_t codes[CHUNK][512] __attribute__((aligned(64)));
    float scale[2 * CHUNK][16] __attribute__((aligned(64)));
    float minimum[2 * CHUNK][16] __attribute__((aligned(64)));
} unpacked;

/// Unpacks `count` groups of 32 columns of a panel, starting at group `first`.
TARGET INLINE void unpack_groups(ck_layout layout, const uint8_t *panel, int first, int count, unpacked *out) {
    int groups = layout_columns(layout) / 32, parts = layout_parts(layout);
    for (int i = 0; i < count; i++) {
        const uint8_t *block = panel + (size_t)((first + i) / groups) * layout_block_bytes(layout);
        int group = (first + i) % groups;
        unpack_amx(layout, block + layout_group_bytes(layout) * (size_t)group, (v64b *)out->codes[i]);
        for (int part = 0; part < parts; part++)
            scales_amx(layout, block, group, part, (v16f *)out->scale[i * parts + part], (v16f *)out->minimum[i * parts + part]);
    }
}

/// Products of 16 rows of activations with 16 rows of the matrix, for one part of a group.
typedef int32_t tile_sums[TOKENS][16] __attribute__((aligned(64)));

/// Issues the product of part `i` with the tiles `left`, `right` and `result`, which must be constants.
#define ISSUE(i, result, left, right)                                                                             \
    do {                                                                                                          \
        int group_ = (i) / parts, part_ = (i) % parts;                                                            \
        _tile_zero(result);                                                                                       \
        _tile_loadd(left, x + group_ * 32 + part_ * 16, columns);                                                 \
        _tile_loadd(right, w->codes[group_] + 256 * part_, 64);                                                   \
        _tile_dpbsud(result, left, right);                                                                        \
        _tile_stored(result, sums[(i) & 1], 64);                                                                  \
    } while (0)

/// The scales and sums of 16 rows of activations, from the first unpacked group on; `stride` groups apart.
typedef struct {
    const float *d, *s;
    const int32_t *sums;
    size_t stride;
} tile_rows;

/// Scales the sums of part `i` and adds them to `total`.
TARGET INLINE void add_sums(ck_layout layout, const unpacked *w, int i, tile_rows rows, const tile_sums *sums, v16f *total) {
    int parts = layout_parts(layout), group = i / parts, part = i % parts, shift = layout_offset_shift(layout);
    const float *d = rows.d + group, *s = rows.s + group;
    const int32_t *offsets = rows.sums + 2 * group;
    v16f scale = *(const v16f *)w->scale[i], minimum;
    if (layout_has_minimum(layout)) minimum = *(const v16f *)w->minimum[i];
    // Pointers that advance need fewer registers than 16 offsets.
#pragma clang loop unroll(full)
    for (int t = 0; t < TOKENS; t++, d += rows.stride, s += rows.stride, offsets += 2 * rows.stride) {
        __m512i dot = _mm512_load_si512((*sums)[t]);
        if (shift >= 0) {
            int32_t sum = parts == 2 ? offsets[part] : offsets[0] + offsets[1];
            dot = _mm512_add_epi32(dot, _mm512_set1_epi32(sum * (1 << shift)));
        }
        v16f product = (v16f)_mm512_cvtepi32_ps(dot) * scale;
        total[t] = (v16f)_mm512_fmadd_ps((__m512)product, _mm512_set1_ps(*d), (__m512)total[t]);
        if (layout_has_minimum(layout)) {
            float sum = parts == 1 ? *s : *d * (float)-offsets[part];
            total[t] = (v16f)_mm512_fmadd_ps((__m512)minimum, _mm512_set1_ps(sum), (__m512)total[t]);
        }
    }
}

/// Multiplies the unpacked groups by 16 rows of activations, starting at group `first`, and adds the products to
/// `total`.
///
/// The next tile product is issued before the sums of the previous one are scaled, in other tile registers: otherwise
/// the latencies of load, product and store would add up.
TARGET INLINE void multiply_amx(ck_layout layout, const unpacked *w, int count, size_t first, const ck_activations *a,
                                int32_t token, v16f *total) {
    size_t columns = (size_t)a->columns, stride = columns / 32, at = (size_t)token * stride + first;
    int parts = layout_parts(layout), last = count * parts;
    const int8_t *x = a->q + (size_t)token * columns + first * 32;
    tile_rows rows = {a->d + at, a->s + at, a->sums + 2 * at, stride};
    tile_sums sums[2];
    ISSUE(0, 0, 2, 4);
    for (int i = 0; i < last; i += 2) {
        if (i + 1 < last) ISSUE(i + 1, 1, 3, 5);
        add_sums(layout, w, i, rows, &sums[0], total);
        if (i + 1 == last) break;
        if (i + 2 < last) ISSUE(i + 2, 0, 2, 4);
        add_sums(layout, w, i + 1, rows, &sums[1], total);
    }
}

// MARK: - Blocks of integer scales

#include "blocks512.h"

/// Issues the products of two groups, for one part of each, with constant tiles.
#define ISSUE_PAIR(i, first, second, sums)                                                                        \
    do {                                                                                                          \
        int pair_ = (i) / parts, part_ = (i) % parts;                                                             \
        _tile_zero(first);                                                                                        \
        _tile_loadd(4, x + pair_ * 64 + part_ * 16, columns);                                                     \
        _tile_loadd(6, codes[2 * pair_] + 256 * part_, 64);                                                       \
        _tile_dpbsud(first, 4, 6);                                                                                \
        _tile_stored(first, (sums)[0], 64);                                                                       \
        _tile_zero(second);                                                                                       \
        _tile_loadd(5, x + pair_ * 64 + 32 + part_ * 16, columns);                                                \
        _tile_loadd(7, codes[2 * pair_ + 1] + 256 * part_, 64);                                                   \
        _tile_dpbsud(second, 5, 7);                                                                               \
        _tile_stored(second, (sums)[1], 64);                                                                      \
    } while (0)

/// Adds the sums of a pair of groups to `sum`. `place` is that of the first group of the first row of activations.
TARGET INLINE void add_pairs_amx(ck_layout layout, const block_scales_amx *scales, int i, const ck_activations *a, size_t place,
                                 const tile_sums *sums, __m512i *sum) {
    int parts = layout_parts(layout), pair = i / parts, part = i % parts;
    size_t stride = (size_t)a->columns / 32;
    const int32_t *starts = a->starts + 2 * place + part;
    const int16_t *factors = a->factors + place;
#pragma clang loop unroll(full)
    for (int t = 0; t < TOKENS; t++, starts += 2 * stride, factors += stride) {
        __m512i first = _mm512_load_si512(sums[0][t]), second = _mm512_load_si512(sums[1][t]);
        if (layout_offset(layout) > 0) {
            first = _mm512_add_epi32(first, _mm512_set1_epi32(starts[0]));
            second = _mm512_add_epi32(second, _mm512_set1_epi32(starts[2]));
        }
        sum[t] = add_pair_amx(sum[t], first, second, scales->scale[part][pair], factors);
    }
}

/// total[t] += the product of a block with 16 rows of activations. The products of the next pair are issued before the sums of the
/// previous one are added, in other tiles.
TARGET INLINE void multiply_block_amx(ck_layout layout, const uint8_t (*codes)[512], const block_scales_amx *scales, size_t block,
                                      const ck_activations *a, int32_t token, v16f *total) {
    size_t columns = (size_t)a->columns, row_blocks = columns / 256, index = (size_t)token * row_blocks + block;
    int parts = layout_parts(layout), last = 4 * parts;
    const int8_t *x = a->q + index * 256;
    tile_sums sums[4];
    __m512i sum[TOKENS];
#pragma clang loop unroll(full)
    for (int t = 0; t < TOKENS; t++) sum[t] = _mm512_setzero_si512();
    ISSUE_PAIR(0, 0, 1, sums);
    for (int i = 0; i < last; i += 2) {
        ISSUE_PAIR(i + 1, 2, 3, sums + 2);
        add_pairs_amx(layout, scales, i, a, index * 8 + 2 * (size_t)(i / parts), sums, sum);
        if (i + 2 < last) ISSUE_PAIR(i + 2, 0, 1, sums);
        add_pairs_amx(layout, scales, i + 1, a, index * 8 + 2 * (size_t)((i + 1) / parts), sums + 2, sum);
    }
#pragma clang loop unroll(full)
    for (int t = 0; t < TOKENS; t++)
        total[t] = (v16f)add_block_sum_amx(layout, (__m512)total[t], sum[t], scales, a, index + (size_t)t * row_blocks);
}

/// Multiplies `count` unpacked groups, whole blocks, by 16 rows of activations.
TARGET INLINE void multiply_blocks_amx(ck_layout layout, const uint8_t *panel, const unpacked *w, int count, size_t first,
                                       const ck_activations *a, int32_t token, v16f *total) {
    for (int group = 0; group < count; group += 8) {
        size_t block = (first + (size_t)group) / 8;
        block_scales_amx scales;
        read_block_scales_amx(layout, panel + block * layout_block_bytes(layout), &scales);
        multiply_block_amx(layout, w->codes + group, &scales, block, a, token, total);
    }
}

TARGET INLINE void tokens_amx(ck_layout layout, const ck_matrix *m, int32_t panel, const ck_activations *a, float *y,
                              int32_t ldy, bool add) {
    // Sums, activations, codes: two tiles of each, with blocks four of sums. A part has 32 or 16 columns.
    enum { BYTES = 32, ROWS = 8 };
    int parts = layout_parts(layout);
    uint8_t rows_of_codes = (uint8_t)(ROWS / parts);
    uint16_t bytes = (uint16_t)(BYTES / parts);
    tile_shapes shapes = {
        .palette = 1,
        .row_bytes = {64, 64, bytes, bytes, 64, 64},
        .rows = {TOKENS, TOKENS, TOKENS, TOKENS, rows_of_codes, rows_of_codes},
    };
    tile_shapes block_shapes = {
        .palette = 1,
        .row_bytes = {64, 64, 64, 64, bytes, bytes, 64, 64},
        .rows = {TOKENS, TOKENS, TOKENS, TOKENS, TOKENS, TOKENS, rows_of_codes, rows_of_codes},
    };
    bool sums_blocks = layout_sums_blocks(layout) && a->unit;
    if (sums_blocks) shapes = block_shapes;
    _tile_loadconfig(&shapes);
    const uint8_t *w = m->data + (size_t)panel * m->panel_bytes;
    int left = m->rows - panel * CK_PANEL, all = m->columns / 32;
    __mmask16 rows = left >= CK_PANEL ? 0xFFFF : (__mmask16)((1 << left) - 1);
    __m512 matrix_scale = _mm512_set1_ps(m->scale);
    unpacked buffer;
    v16f totals[BATCH] __attribute__((aligned(64)));
    for (int32_t start = 0; start + TOKENS <= a->count; start += BATCH) {
        int32_t end = a->count - start < BATCH ? start + (a->count - start) / TOKENS * TOKENS : start + BATCH;
        // All columns are added to one sum in order, so that the result does not depend on the batch size.
        for (int first = 0; first < all; first += CHUNK) {
            int groups = all - first < CHUNK ? all - first : CHUNK;
            unpack_groups(layout, w, first, groups, &buffer);
            for (int32_t token = start; token < end; token += TOKENS) {
                v16f total[TOKENS];
#pragma clang loop unroll(full)
                for (int t = 0; t < TOKENS; t++) total[t] = first == 0 ? splat_amx(0) : totals[token - start + t];
                if (sums_blocks) multiply_blocks_amx(layout, w, &buffer, groups, (size_t)first, a, token, total);
                else multiply_amx(layout, &buffer, groups, (size_t)first, a, token, total);
#pragma clang loop unroll(full)
                for (int t = 0; t < TOKENS; t++) totals[token - start + t] = total[t];
            }
        }
        for (int32_t token = start; token < end; token++) {
            float *out = y + (size_t)token * (size_t)ldy + panel * CK_PANEL;
            __m512 before = add ? _mm512_maskz_loadu_ps(rows, out) : _mm512_setzero_ps();
            _mm512_mask_storeu_ps(out, rows, _mm512_fmadd_ps((__m512)totals[token - start], matrix_scale, before));
        }
    }
    _tile_release();
}

TARGET void ck_panel_amx(const ck_matrix *m, int32_t panel, const ck_activations *a, float *y, int32_t ldy, bool add) {
    int32_t tiled = a->count / TOKENS * TOKENS;
    switch (m->layout) {
#define CASE(name, ...) \
    case CK_LAYOUT_##name: if (tiled > 0) tokens_amx(CK_LAYOUT_##name, m, panel, a, y, ldy, add); break;
        CK_LAYOUTS(CASE)
#undef CASE
        CK_FLOAT_CASES tiled = 0;
    }
    if (tiled == a->count) return;
    size_t columns = (size_t)a->columns, at = (size_t)tiled, blocks = columns / 32;
    ck_activations rest = {
        .count = a->count - tiled, .columns = a->columns, .x = a->x + at * columns, .q = a->q + at * columns,
        .d = a->d + at * blocks, .s = a->s + at * blocks, .sums = a->sums + at * 2 * blocks,
        .unit = a->unit ? a->unit + at * (blocks / 8) : NULL, .factors = a->factors + at * blocks,
        .weighted = a->weighted + at * blocks, .starts = a->starts + at * 2 * blocks};
    ck_kernels_avx512.panel(m, panel, &rest, y + at * (size_t)ldy, ldy, add);
}

#endif
