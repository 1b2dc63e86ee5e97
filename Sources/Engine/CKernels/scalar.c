// The reference implementation: plain C for the integer products, the portable vector code for the rest. Runs on any
// processor.

#define NAME(x) x##_scalar
#define TARGET
#define LOAD_HALF16(p) load_half16_scalar(p)
#define STORE_HALF16(p, v) store_half16_scalar(p, v)
#define LOOK_UP(table, codes) look_up_scalar(table, codes)
#define ACCUMULATORS 6

#include "kernel_sets.h"

static inline __attribute__((always_inline)) v16f_storage load_half16_scalar(const uint16_t *p) {
    v16f_storage v;
    for (int i = 0; i < 16; i++) v[i] = ck_half_to_float(p[i]);
    return v;
}

static inline __attribute__((always_inline)) void store_half16_scalar(uint16_t *p, v16f_storage v) {
    for (int i = 0; i < 16; i++) p[i] = ck_float_to_half(v[i]);
}

typedef uint8_t v64b_storage __attribute__((vector_size(64), aligned(1)));

static inline __attribute__((always_inline)) v64b_storage look_up_scalar(const uint8_t *table, v64b_storage codes) {
    for (int i = 0; i < 64; i++) codes[i] = table[codes[i]];
    return codes;
}

#pragma clang diagnostic ignored "-Wunused-function"
#include "generic.h"

static void panel_scalar(const ck_matrix *m, int32_t panel, const ck_activations *a, float *y, int32_t ldy, bool add) {
    ck_layout layout = m->layout;
    if (!layout_is_integer(layout)) {
        float_panels_scalar(m, panel, a, y, ldy, add);
        return;
    }
    int rows = m->rows - panel * CK_PANEL < CK_PANEL ? m->rows - panel * CK_PANEL : CK_PANEL;
    int groups = layout_columns(layout) / 32, parts = layout_parts(layout), width = 32 / parts;
    int offset = layout_offset(layout);
    size_t row_groups = (size_t)m->columns / 32;
    for (int32_t t = 0; t < a->count; t++) {
        float *out = y + (size_t)t * (size_t)ldy + panel * CK_PANEL;
        for (int row = 0; row < rows; row++) {
            const uint8_t *block = m->data + (size_t)panel * m->panel_bytes;
            float total = 0;
            for (size_t first = 0; first < row_groups; first += (size_t)groups, block += layout_block_bytes(layout)) {
                for (int group = 0; group < groups; group++) {
                    size_t place = (size_t)t * row_groups + first + (size_t)group;
                    const int8_t *x = a->q + (size_t)t * (size_t)m->columns + (first + (size_t)group) * 32;
                    for (int part = 0; part < parts; part++) {
                        int32_t dot = 0, sum = 0;
                        for (int i = width * part; i < width * (part + 1); i++) {
                            int code = layout_code(layout, block + layout_group_bytes(layout) * (size_t)group, row, i);
                            dot += (code - offset) * x[i];
                            sum += x[i];
                        }
                        float scale, minimum;
                        layout_scale(layout, block, group, part, row, &scale, &minimum);
                        // The sum of a whole group may be rounded.
                        float weighted = parts == 1 ? a->s[place] : a->d[place] * (float)sum;
                        total += scale * a->d[place] * (float)dot + minimum * weighted;
                    }
                }
            }
            total *= m->scale;
            out[row] = add ? out[row] + total : total;
        }
    }
}

const ck_kernels ck_kernels_scalar = KERNEL_TABLE(CK_SCALAR, "scalar", false, panel_scalar, NULL);
