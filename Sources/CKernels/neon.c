// NEON with the dot-product extension (Armv8.2 `sdot`): a panel's 16 rows are four registers of four rows,
// and `vdotq_laneq` multiplies four columns of them by four activations of one lane. All codes fit signed bytes.

#if defined(__aarch64__)

#include <arm_neon.h>

#define NAME(x) x##_neon
#define TARGET __attribute__((target("dotprod")))
#define LOAD_HALF16(p) load_half16_neon(p)
#define STORE_HALF16(p, v) store_half16_neon(p, v)

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

#include "generic.h"

#include "int8_layout.h"

TARGET INLINE int8x16_t codes_neon(ck_layout layout, const uint8_t *w, int step, int quarter) {
    if (layout_is_4_bit(layout)) {
        uint8x16_t packed = vld1q_u8(w + 64 * (step % 4) + 16 * quarter);
        return vreinterpretq_s8_u8(step >= 4 ? vshrq_n_u8(packed, 4) : vandq_u8(packed, vdupq_n_u8(0xF)));
    }
    uint8x16_t codes = vld1q_u8(w + 64 * step + 16 * quarter);
    return vreinterpretq_s8_u8(layout == CK_U8_D ? veorq_u8(codes, vdupq_n_u8(0x80)) : codes);
}

TARGET INLINE void tile_neon(ck_layout layout, int tokens, const ck_matrix *m, const uint8_t *w, const ck_activations *a,
                             int32_t token, float *y, int32_t ldy, int rows, bool add) {
    size_t columns = (size_t)m->columns, blocks = columns / 32;
    int steps = layout_steps(layout), parts = 8 / steps;
    union { float32x4_t quarter[4]; v16f whole; } total[4];
    for (int t = 0; t < tokens; t++)
        for (int i = 0; i < 4; i++) total[t].quarter[i] = vdupq_n_f32(0);
    for (size_t block = 0; block < blocks; block++) {
        for (int part = 0; part < parts; part++, w += layout_block_bytes(layout)) {
            for (int quarter = 0; quarter < 4; quarter++) {
                const uint8_t *scales = w + layout_code_bytes(layout) + 8 * quarter;
                float32x4_t scale = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16((const uint16_t *)scales)));
                for (int t = 0; t < tokens; t++) {
                    size_t at = (size_t)(token + t) * blocks + block;
                    int32_t start = layout == CK_U8_D16 ? a->sums[2 * at + (size_t)part] * 32
                                    : layout == CK_U4_D ? (a->sums[2 * at] + a->sums[2 * at + 1]) * 8
                                                        : 0;
                    int32x4_t dot = vdupq_n_s32(start);
                    const int8_t *x = a->q + (size_t)(token + t) * columns + block * 32 + (size_t)part * 16;
                    for (int group = 0; group < steps / 4; group++) {
                        int8x16_t sixteen = vld1q_s8(x + 16 * group);
                        dot = vdotq_laneq_s32(dot, codes_neon(layout, w, 4 * group, quarter), sixteen, 0);
                        dot = vdotq_laneq_s32(dot, codes_neon(layout, w, 4 * group + 1, quarter), sixteen, 1);
                        dot = vdotq_laneq_s32(dot, codes_neon(layout, w, 4 * group + 2, quarter), sixteen, 2);
                        dot = vdotq_laneq_s32(dot, codes_neon(layout, w, 4 * group + 3, quarter), sixteen, 3);
                    }
                    float32x4_t product = vmulq_f32(vcvtq_f32_s32(dot), scale);
                    total[t].quarter[quarter] = vfmaq_n_f32(total[t].quarter[quarter], product, a->d[at]);
                    if (layout_has_minimum(layout)) {
                        float32x4_t minimum = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16((const uint16_t *)(scales + 32))));
                        total[t].quarter[quarter] = vfmaq_n_f32(total[t].quarter[quarter], minimum, a->s[at]);
                    }
                }
            }
        }
    }
    for (int t = 0; t < tokens; t++)
        store_rows_neon(y + (size_t)(token + t) * (size_t)ldy, total[t].whole * m->scale, rows, add);
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
    if (m->layout >= CK_F16) {
        float_panels_neon(m, panel, a, y, ldy, add);
        return;
    }
#define BODY(layout) tokens_neon(layout, m, panel, a, y, ldy, add); return
    FOR_INTEGER_LAYOUT(m->layout, BODY)
#undef BODY
}

const ck_kernels ck_kernels_neon = KERNEL_TABLE(CK_NEON, "NEON dotprod", panel_neon);

#endif
