// Advanced Matrix Extensions, for prompts. A block of a panel is already the right-hand tile that `tdpbsud` wants
// ([4 columns of k][16 rows][4 bytes]), and 16 activation rows are the left-hand one; the 16 × 16 sums are then
// scaled by block in AVX-512. Fewer than 16 tokens go to the AVX-512 kernels: a matrix-vector product reads memory
// no faster with tiles.

#if defined(__x86_64__)

#define _GNU_SOURCE
#include <immintrin.h>
#include <string.h>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "kernel_sets.h"

#include "int8_layout.h"

#define TARGET __attribute__((target("amx-tile,amx-int8,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")))

bool ck_amx_enable(void) {
#if defined(__linux__) && defined(SYS_arch_prctl)
    if (!__builtin_cpu_supports("amx-int8")) return false;
    // ARCH_REQ_XCOMP_PERM for component 18, the tile data (Documentation/arch/x86/xstate.rst of the Linux kernel).
    return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
#else
    return false;
#endif
}

enum {
    CHUNK = 64,    // blocks of 32 columns unpacked at a time: 80 KB of stack
    TOKENS = 16,
    SUMS = 0,      // tile numbers
    LEFT = 1,
    RIGHT = 2,
    LEFT_16 = 3,   // the same for blocks of 16 columns
    RIGHT_16 = 4,
};

typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_shapes;

typedef struct {
    uint8_t codes[2 * CHUNK][512] __attribute__((aligned(64)));
    float scale[2 * CHUNK][16] __attribute__((aligned(64)));
    float minimum[2 * CHUNK][16] __attribute__((aligned(64)));
} unpacked;

TARGET INLINE void unpack_amx(ck_layout layout, const uint8_t *w, int blocks, unpacked *out) {
    for (int block = 0; block < blocks; block++, w += layout_block_bytes(layout)) {
        for (int i = 0; i < layout_steps(layout); i++) {
            __m512i codes;
            if (layout_is_4_bit(layout)) {
                codes = _mm512_loadu_si512(w + 64 * (i % 4));
                if (i >= 4) codes = _mm512_srli_epi16(codes, 4);
                codes = _mm512_and_si512(codes, _mm512_set1_epi8(0xF));
            } else {
                codes = _mm512_loadu_si512(w + 64 * i);
            }
            _mm512_store_si512(out->codes[block] + 64 * i, codes);
        }
        const uint8_t *scales = w + layout_code_bytes(layout);
        __m512 scale = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)scales));
        _mm512_store_ps(out->scale[block], scale);
        if (layout_has_minimum(layout))
            _mm512_store_ps(out->minimum[block], _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(scales + 32))));
    }
}

/// Adds the unpacked columns times 16 rows of activations, from column block `first` on, to `total`.
TARGET INLINE void multiply_amx(ck_layout layout, const unpacked *w, int blocks, size_t first, const ck_activations *a,
                                int32_t token, __m512 *total) {
    size_t columns = (size_t)a->columns, row_blocks = columns / 32;
    int parts = layout == CK_U8_D16 ? 2 : 1;
    int32_t sums[TOKENS][16] __attribute__((aligned(64)));
    for (int block = 0; block < blocks; block++) {
        size_t at = (size_t)token * row_blocks + first + (size_t)(block / parts);
        const int8_t *x = a->q + (size_t)token * columns + first * 32 + (size_t)(block * (32 / parts));
        _tile_zero(SUMS);
        if (layout == CK_U8_D16) {
            _tile_loadd(LEFT_16, x, columns);
            _tile_loadd(RIGHT_16, w->codes[block], 64);
            _tile_dpbsud(SUMS, LEFT_16, RIGHT_16);
        } else {
            _tile_loadd(LEFT, x, columns);
            _tile_loadd(RIGHT, w->codes[block], 64);
            _tile_dpbsud(SUMS, LEFT, RIGHT);
        }
        _tile_stored(SUMS, sums, 64);
        __m512 scale = _mm512_load_ps(w->scale[block]), minimum;
        if (layout_has_minimum(layout)) minimum = _mm512_load_ps(w->minimum[block]);
        const float *d = a->d + at, *s = a->s + at;
        const int32_t *x_sums = a->sums + 2 * at;
#pragma clang loop unroll(full)
        for (int t = 0; t < TOKENS; t++) {
            size_t row = (size_t)t * row_blocks;
            __m512i dot = _mm512_load_si512(sums[t]);
            if (layout == CK_U8_D16)
                dot = _mm512_add_epi32(dot, _mm512_set1_epi32(x_sums[2 * row + (size_t)(block & 1)] * 32));
            else if (layout_offset_shift(layout) >= 0)
                dot = _mm512_add_epi32(
                    dot, _mm512_set1_epi32((x_sums[2 * row] + x_sums[2 * row + 1]) << layout_offset_shift(layout)));
            __m512 product = _mm512_mul_ps(_mm512_cvtepi32_ps(dot), scale);
            total[t] = _mm512_fmadd_ps(product, _mm512_set1_ps(d[row]), total[t]);
            if (layout_has_minimum(layout)) total[t] = _mm512_fmadd_ps(minimum, _mm512_set1_ps(s[row]), total[t]);
        }
    }
}

TARGET INLINE void tokens_amx(ck_layout layout, const ck_matrix *m, int32_t panel, const ck_activations *a, float *y,
                              int32_t ldy, bool add) {
    static const tile_shapes shapes = {
        .palette = 1,
        .row_bytes = {[SUMS] = 64, [LEFT] = 32, [RIGHT] = 64, [LEFT_16] = 16, [RIGHT_16] = 64},
        .rows = {[SUMS] = TOKENS, [LEFT] = TOKENS, [RIGHT] = 8, [LEFT_16] = TOKENS, [RIGHT_16] = 4},
    };
    _tile_loadconfig(&shapes);
    const uint8_t *w = m->data + (size_t)panel * m->panel_bytes;
    int left = m->rows - panel * CK_PANEL, parts = layout == CK_U8_D16 ? 2 : 1, all = m->columns / 32;
    __mmask16 rows = left >= CK_PANEL ? 0xFFFF : (__mmask16)((1 << left) - 1);
    __m512 matrix_scale = _mm512_set1_ps(m->scale);
    unpacked buffer;
    for (int32_t token = 0; token + TOKENS <= a->count; token += TOKENS) {
        __m512 total[TOKENS];
#pragma clang loop unroll(full)
        for (int t = 0; t < TOKENS; t++) total[t] = _mm512_setzero_ps();
        // All columns go into one running sum, in order: the result does not depend on how many tokens come together.
        for (int first = 0; first < all; first += CHUNK) {
            int blocks = all - first < CHUNK ? all - first : CHUNK;
            if (token == 0 || all > CHUNK)
                unpack_amx(layout, w + (size_t)(first * parts) * layout_block_bytes(layout), blocks * parts, &buffer);
            multiply_amx(layout, &buffer, blocks * parts, (size_t)first, a, token, total);
        }
#pragma clang loop unroll(full)
        for (int t = 0; t < TOKENS; t++) {
            float *out = y + (size_t)(token + t) * (size_t)ldy + panel * CK_PANEL;
            __m512 before = add ? _mm512_maskz_loadu_ps(rows, out) : _mm512_setzero_ps();
            _mm512_mask_storeu_ps(out, rows, _mm512_fmadd_ps(total[t], matrix_scale, before));
        }
    }
    _tile_release();
}

TARGET void ck_panel_amx(const ck_matrix *m, int32_t panel, const ck_activations *a, float *y, int32_t ldy, bool add) {
    int32_t tiled = m->layout >= CK_F16 ? 0 : a->count / TOKENS * TOKENS;
    if (tiled > 0) {
#define BODY(layout) tokens_amx(layout, m, panel, a, y, ldy, add); break
        FOR_INTEGER_LAYOUT(m->layout, BODY)
#undef BODY
    }
    if (tiled == a->count) return;
    size_t columns = (size_t)a->columns, at = (size_t)tiled, blocks = columns / 32;
    ck_activations rest = {
        .count = a->count - tiled, .columns = a->columns, .x = a->x + at * columns, .q = a->q + at * columns,
        .d = a->d + at * blocks, .s = a->s + at * blocks, .sums = a->sums + at * 2 * blocks};
    ck_kernels_avx512.panel(m, panel, &rest, y + at * (size_t)ldy, ldy, add);
}

#endif
