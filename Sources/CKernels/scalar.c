// The reference: plain C for the integer products, the portable vector form for the rest. Runs anywhere.

#define NAME(x) x##_scalar
#define TARGET
#define LOAD_HALF16(p) load_half16_scalar(p)
#define STORE_HALF16(p, v) store_half16_scalar(p, v)

#include "kernel_sets.h"

static inline __attribute__((always_inline)) v16f_storage load_half16_scalar(const uint16_t *p) {
    v16f_storage v;
    for (int i = 0; i < 16; i++) v[i] = ck_half_to_float(p[i]);
    return v;
}

static inline __attribute__((always_inline)) void store_half16_scalar(uint16_t *p, v16f_storage v) {
    for (int i = 0; i < 16; i++) p[i] = ck_float_to_half(v[i]);
}

#include "generic.h"

static void panel_scalar(const ck_matrix *m, int32_t panel, const ck_activations *a, float *y, int32_t ldy, bool add) {
    if (m->layout >= CK_F16) {
        float_panels_scalar(m, panel, a, y, ldy, add);
        return;
    }
    int rows = m->rows - panel * CK_PANEL < CK_PANEL ? m->rows - panel * CK_PANEL : CK_PANEL;
    bool four_bits = m->layout <= CK_U4_DM, minimum = m->layout == CK_U4_DM || m->layout == CK_U8_DM;
    int width = m->layout == CK_U8_D16 ? 16 : 32, blocks = m->columns / width;
    int offset = m->layout == CK_U4_D ? 8 : m->layout == CK_U8_D ? 128 : m->layout == CK_U8_D16 ? 32 : 0;
    size_t codes = four_bits || width == 16 ? 256 : 512, bytes = codes + (minimum ? 64 : 32);
    for (int32_t t = 0; t < a->count; t++) {
        float *out = y + (size_t)t * (size_t)ldy + panel * CK_PANEL;
        const float *d = a->d + (size_t)t * (size_t)(m->columns / 32), *s = a->s + (size_t)t * (size_t)(m->columns / 32);
        for (int row = 0; row < rows; row++) {
            const uint8_t *w = m->data + (size_t)panel * m->panel_bytes;
            const int8_t *q = a->q + (size_t)t * (size_t)m->columns;
            float total = 0;
            for (int block = 0; block < blocks; block++, w += bytes, q += width) {
                int32_t dot = 0;
                for (int i = 0; i < width; i++) {
                    int code = four_bits ? w[i % 16 / 4 * 64 + row * 4 + i % 4] >> (i / 16 * 4) & 0xF
                                         : w[i / 4 * 64 + row * 4 + i % 4];
                    dot += (code - offset) * q[i];
                }
                uint16_t scale, low;
                memcpy(&scale, w + codes + 2 * row, 2);
                int at = block * width / 32;
                total += ck_half_to_float(scale) * d[at] * (float)dot;
                if (minimum) {
                    memcpy(&low, w + codes + 32 + 2 * row, 2);
                    total += ck_half_to_float(low) * s[at];
                }
            }
            total *= m->scale;
            out[row] = add ? out[row] + total : total;
        }
    }
}

const ck_kernels ck_kernels_scalar = KERNEL_TABLE(CK_SCALAR, "scalar", panel_scalar);
