// NEON with the dot-product extension (Armv8.2 `sdot`): the 16 rows of a panel are four registers of four rows,
// and `vdotq_laneq` multiplies four columns of these rows by four activations of one lane. All codes fit in signed
// bytes.

#if defined(__aarch64__)

#include <arm_neon.h>

#define NAME(x) x##_neon
#define TARGET __attribute__((target("dotprod")))
#define LOAD_HALF16(p) load_half16_neon(p)
#define STORE_HALF16(p, v) store_half16_neon(p, v)
#define LOOK_UP(table, codes) look_up_neon(table, codes)
#define ACCUMULATORS 6

#include "kernel_sets.h"

TARGET static inline __attribute__((always_inline)) v16f_storage load_half16_neon(const uint16_t *p) {
    union { float32x4_t quarter[4]; v16f_storage whole; } v;
    for (int i = 0; i < 4; i++) v.quarter[i] = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p + 4 * i)));
    return v.whole;
}

TARGET static inline __attribute__((always_inline)) void store_half16_neon(uint16_t *p, v16f_storage v) {
    union { v16f_storage whole; float32x4_t quarter[4]; } parts = {v};
    for (int i = 0; i < 4; i++) vst1_u16(p + 4 * i, vreinterpret_u16_f16(vcvt_f16_f32(parts.quarter[i])));
}

typedef uint8_t v64b_storage __attribute__((vector_size(64), aligned(1)));

TARGET static inline __attribute__((always_inline)) v64b_storage look_up_neon(const uint8_t *table, v64b_storage codes) {
    union { v64b_storage whole; uint8x16_t quarter[4]; } v = {codes};
    for (int i = 0; i < 4; i++) v.quarter[i] = vqtbl1q_u8(vld1q_u8(table), v.quarter[i]);
    return v.whole;
}

#include "generic.h"

TARGET INLINE void tile_neon(ck_layout layout, int tokens, const ck_matrix *m, const uint8_t *w, const ck_activations *a,
                             int32_t token, float *y, int32_t ldy, int rows, bool add) {
    size_t columns = (size_t)m->columns, row_groups = columns / 32;
    int groups = layout_columns(layout) / 32, parts = layout_parts(layout), steps = 8 / parts;
    bool flips = layout_offset_shift(layout) == 7;  // 8-bit codes are converted to signed values, which have no offset
    v16f total[4];
    for (int t = 0; t < tokens; t++) total[t] = splat_neon(0);
    for (size_t first = 0; first < row_groups; first += (size_t)groups, w += layout_block_bytes(layout)) {
        for (int group = 0; group < groups; group++) {
            union { v64b whole[8]; int8x16_t quarter[32]; } codes;
            unpack_neon(layout, w + layout_group_bytes(layout) * (size_t)group, codes.whole);
            if (flips)
                for (int i = 0; i < 8; i++) codes.whole[i] ^= 0x80;
            for (int part = 0; part < parts; part++) {
                v16f scale, minimum;
                scales_neon(layout, w, group, part, &scale, &minimum);
                for (int t = 0; t < tokens; t++) {
                    size_t place = (size_t)(token + t) * row_groups + first + (size_t)group;
                    const int8_t *x = a->q + (size_t)(token + t) * columns + (first + (size_t)group) * 32 + (size_t)(part * 16);
                    int32_t start = flips ? 0 : offset_sum_neon(layout, a, place, part);
                    union { v16i whole; int32x4_t quarter[4]; } dot;
                    for (int quarter = 0; quarter < 4; quarter++) {
                        int32x4_t sum = vdupq_n_s32(start);
                        const int8x16_t *code = codes.quarter + 4 * part * steps + quarter;
                        for (int sixteen = 0; sixteen < steps / 4; sixteen++, code += 16) {
                            int8x16_t values = vld1q_s8(x + 16 * sixteen);
                            sum = vdotq_laneq_s32(sum, code[0], values, 0);
                            sum = vdotq_laneq_s32(sum, code[4], values, 1);
                            sum = vdotq_laneq_s32(sum, code[8], values, 2);
                            sum = vdotq_laneq_s32(sum, code[12], values, 3);
                        }
                        dot.quarter[quarter] = sum;
                    }
                    v16f product = __builtin_convertvector(dot.whole, v16f) * scale;
                    total[t] += product * a->d[place];
                    if (layout_has_minimum(layout)) total[t] += minimum * part_sum_neon(layout, a, place, part);
                }
            }
        }
    }
    for (int t = 0; t < tokens; t++)
        store_rows_neon(y + (size_t)(token + t) * (size_t)ldy, total[t] * m->scale, rows, add);
}

TARGET INLINE void tokens_neon(ck_layout layout, const ck_matrix *m, int32_t panel, const ck_activations *a, float *y,
                               int32_t ldy, bool add) {
    const uint8_t *w = m->data + (size_t)panel * m->panel_bytes;
    int rows = m->rows - panel * CK_PANEL < CK_PANEL ? m->rows - panel * CK_PANEL : CK_PANEL;
    y += panel * CK_PANEL;
    int32_t t = 0;
    for (; t + 4 <= a->count; t += 4) tile_neon(layout, 4, m, w, a, t, y, ldy, rows, add);
    for (; t < a->count; t++) tile_neon(layout, 1, m, w, a, t, y, ldy, rows, add);
}

TARGET static void panel_neon(const ck_matrix *m, int32_t panel, const ck_activations *a, float *y, int32_t ldy, bool add) {
    switch (m->layout) {
#define CASE(name, ...) case CK_LAYOUT_##name: tokens_neon(CK_LAYOUT_##name, m, panel, a, y, ldy, add); return;
        CK_LAYOUTS(CASE)
#undef CASE
        CK_FLOAT_CASES float_panels_neon(m, panel, a, y, ldy, add);
    }
}

const ck_kernels ck_kernels_neon = KERNEL_TABLE(CK_NEON, "NEON dotprod", false, panel_neon, NULL);

#endif
