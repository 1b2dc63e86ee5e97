// Packs rows of a tensor in a file into panels of 16 rows, column by column.

#include <string.h>

#include "ckernels.h"
#include "formats.h"
#include "quants.h"

bool ck_layout_is_integer(ck_layout layout) { return layout_is_integer(layout); }

bool ck_layout_sums_blocks(ck_layout layout) { return layout_is_integer(layout) && layout_sums_blocks(layout); }

size_t ck_panel_bytes(ck_type type, int32_t columns) {
    int32_t block = ck_type_block(type);
    if (block == 0 || columns <= 0 || columns % block != 0) return 0;
    ck_layout layout = ck_type_layout(type);
    if (!layout_is_integer(layout)) return (size_t)(columns / block) * (size_t)ck_type_bytes(type) * CK_PANEL;
    return (size_t)(columns / layout_columns(layout)) * layout_block_bytes(layout);
}

/// Writes the codes of one row of a group.
static void put_codes(ck_layout layout, const uint8_t *q, int row, uint8_t *group) {
    int bits = layout_bits(layout);
    uint8_t *at = group + 4 * row;
    if (bits == 8) {
        for (int step = 0; step < 8; step++) memcpy(at + 64 * step, q + 4 * step, 4);
        return;
    }
    uint8_t bytes[16];
    if (bits >= 4) {
        for (int i = 0; i < 16; i++) bytes[i] = (uint8_t)((q[i] & 0xF) | q[i + 16] << 4);
        for (int step = 0; step < 4; step++) memcpy(at + 64 * step, bytes + 4 * step, 4);
    }
    if (bits == 5) {
        uint8_t plane[4] = {0};
        for (int i = 0; i < 32; i++) plane[i % 4] |= (uint8_t)((q[i] >> 4 & 1) << (i / 4));
        memcpy(at + 256, plane, 4);
    }
    if (bits == 6 || bits < 4) {
        int shift = bits == 6 ? 4 : 0;
        uint8_t planes[8] = {0};
        for (int i = 0; i < 32; i++) planes[i / 16 * 4 + i % 4] |= (uint8_t)((q[i] >> shift & 3) << (2 * (i / 4 % 4)));
        memcpy(at + (bits == 6 ? 256 : 0), planes, 4);
        memcpy(at + (bits == 6 ? 320 : 64), planes + 4, 4);
    }
    if (bits == 3) {
        uint8_t plane[4] = {0};
        for (int i = 0; i < 32; i++) plane[i % 4] |= (uint8_t)((q[i] >> 2 & 1) << (i / 4));
        memcpy(at + 128, plane, 4);
    }
}

static void put_half(uint8_t *at, int row, uint16_t half) { memcpy(at + 2 * row, &half, 2); }

/// Writes the scales of one row and group; with group 0, also the row's binary16 factors.
static void put_scales(ck_layout layout, int group, const ck_group *g, int row, uint8_t *scales) {
    size_t factors = 0;  // where they are, and after them those of the minima
    switch (layout_facts[layout].scales) {
        case SCALES_FACTOR: case SCALES_FACTOR_AND_MINIMUM: break;
        case SCALES_EXPONENT: scales[row] = (uint8_t)g->scale[0]; return;
        case SCALES_BYTES:
            scales[16 * group + row] = (uint8_t)g->scale[0];
            factors = 128;
            break;
        case SCALES_HALVES:
            for (int part = 0; part < 2; part++) scales[32 * group + 16 * part + row] = (uint8_t)g->scale[part];
            factors = 256;
            break;
        case SCALES_NIBBLES:
            for (int part = 0; part < 2; part++)
                scales[32 * group + 16 * part + row] = (uint8_t)(g->scale[part] | g->minimum[part] << 4);
            factors = 256;
            break;
        case SCALES_PAIRS_OF_HALVES:
            for (int part = 0; part < 2; part++) scales[128 * part + pair_place(group, row)] = (uint8_t)g->scale[part];
            factors = 256;
            break;
        case SCALES_PAIRS_AND_MINIMA:
            scales[pair_place(group, row)] = (uint8_t)g->scale[0];
            scales[128 + pair_place(group, row)] = g->minimum[0];
            factors = 256;
            break;
    }
    if (group > 0) return;
    put_half(scales + factors, row, g->d);
    if (layout_has_minimum(layout)) put_half(scales + factors + 32, row, g->dmin);
}

void ck_pack(const ck_matrix *matrix, const uint8_t *const *rows, int32_t count, uint8_t *panel) {
    ck_layout layout = matrix->layout;
    size_t columns = (size_t)matrix->columns, type_bytes = (size_t)ck_type_bytes(matrix->type);
    if (count < CK_PANEL) memset(panel, 0, matrix->panel_bytes);
    if (layout == CK_ROWS) {
        size_t bytes = matrix->panel_bytes / CK_PANEL;
        for (int row = 0; row < count; row++) memcpy(panel + (size_t)row * bytes, rows[row], bytes);
        return;
    }
    if (!layout_is_integer(layout)) {
        for (size_t column = 0; column < columns; column++)
            for (int row = 0; row < count; row++)
                memcpy(panel + (column * CK_PANEL + (size_t)row) * type_bytes, rows[row] + column * type_bytes, type_bytes);
        return;
    }
    int groups = layout_columns(layout) / 32;
    for (size_t block = 0; block < columns / (size_t)layout_columns(layout); block++, panel += layout_block_bytes(layout)) {
        uint8_t *scales = panel + layout_group_bytes(layout) * (size_t)groups;
        for (int row = 0; row < count; row++) {
            const uint8_t *source = rows[row] + block * type_bytes;
            for (int group = 0; group < groups; group++) {
                ck_group g;
                ck_read_group(matrix->type, source, group, &g);
                put_codes(layout, g.q, row, panel + layout_group_bytes(layout) * (size_t)group);
                put_scales(layout, group, &g, row, scales);
            }
        }
    }
}

void ck_matrix_row(const ck_matrix *matrix, int32_t row, float *destination) {
    ck_layout layout = matrix->layout;
    const uint8_t *panel = matrix->data + (size_t)(row / CK_PANEL) * matrix->panel_bytes;
    int lane = row % CK_PANEL, columns = matrix->columns;
    if (layout == CK_ROWS) {
        ck_dequantize(matrix->type, panel + (size_t)lane * (matrix->panel_bytes / CK_PANEL), (size_t)columns, destination);
    } else if (layout == CK_F16) {  // faster than decoding single elements: a row is read for each token
        const uint16_t *halves = (const uint16_t *)panel + lane;
        for (int column = 0; column < columns; column++) destination[column] = ck_half_to_float(halves[column * CK_PANEL]);
    } else if (layout == CK_F32) {
        const float *values = (const float *)panel + lane;
        for (int column = 0; column < columns; column++) destination[column] = values[column * CK_PANEL];
    } else if (!layout_is_integer(layout)) {
        size_t bytes = (size_t)ck_type_bytes(matrix->type);
        for (int column = 0; column < columns; column++)
            ck_dequantize(matrix->type, panel + ((size_t)column * CK_PANEL + (size_t)lane) * bytes, 1, destination + column);
    } else {
        int width = layout_columns(layout), offset = layout_offset(layout);
        for (int column = 0; column < columns; column += 32) {
            const uint8_t *block = panel + (size_t)(column / width) * layout_block_bytes(layout);
            int group = column % width / 32, parts = layout_parts(layout);
            for (int part = 0; part < parts; part++) {
                float scale, minimum;
                layout_scale(layout, block, group, part, lane, &scale, &minimum);
                for (int i = 32 / parts * part; i < 32 / parts * (part + 1); i++) {
                    int code = layout_code(layout, block + layout_group_bytes(layout) * (size_t)group, lane, i);
                    destination[column + i] = scale * (float)(code - offset) + minimum;
                }
            }
        }
    }
    if (matrix->scale != 1)
        for (int column = 0; column < columns; column++) destination[column] *= matrix->scale;
}

// MARK: - Adapters

void ck_add_low_rank(
    float *weights, const float *b, const float *a, int32_t rows, int32_t rank, int32_t columns, float scale) {
    for (int32_t row = 0; row < rows; row++) {
        float *w = weights + (size_t)row * (size_t)columns;
        for (int32_t r = 0; r < rank; r++) {
            float factor = scale * b[(size_t)row * (size_t)rank + (size_t)r];
            const float *direction = a + (size_t)r * (size_t)columns;
            for (int32_t column = 0; column < columns; column++) w[column] += factor * direction[column];
        }
    }
}
