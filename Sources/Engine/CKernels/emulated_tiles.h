// The tile instructions that amx.c uses, in plain C, to test amx.c on a processor without them: see CONTRIBUTING.md.
#ifndef EMULATED_TILES_H
#define EMULATED_TILES_H

static __thread struct {
    uint8_t rows[8];
    uint16_t row_bytes[8];
    uint8_t data[8][16][64];
} emulated;

static inline void emulated_load_config(const void *shapes) {
    memset(&emulated, 0, sizeof emulated);
    for (int i = 0; i < 8; i++) {
        memcpy(&emulated.row_bytes[i], (const uint8_t *)shapes + 16 + 2 * i, 2);
        emulated.rows[i] = ((const uint8_t *)shapes)[48 + i];
    }
}

static inline void emulated_load(int tile, const void *from, size_t stride) {
    for (int row = 0; row < emulated.rows[tile]; row++)
        memcpy(emulated.data[tile][row], (const uint8_t *)from + (size_t)row * stride, emulated.row_bytes[tile]);
}

static inline void emulated_store(int tile, void *to, size_t stride) {
    for (int row = 0; row < emulated.rows[tile]; row++)
        memcpy((uint8_t *)to + (size_t)row * stride, emulated.data[tile][row], emulated.row_bytes[tile]);
}

/// Signed bytes times unsigned bytes.
static inline void emulated_multiply(int sums, int left, int right) {
    for (int row = 0; row < emulated.rows[sums]; row++)
        for (int step = 0; step < emulated.row_bytes[left] / 4; step++)
            for (int column = 0; column < emulated.row_bytes[sums] / 4; column++) {
                int32_t sum;
                memcpy(&sum, emulated.data[sums][row] + 4 * column, 4);
                for (int i = 0; i < 4; i++)
                    sum += (int8_t)emulated.data[left][row][4 * step + i] * emulated.data[right][step][4 * column + i];
                memcpy(emulated.data[sums][row] + 4 * column, &sum, 4);
            }
}

#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbsud
#define _tile_loadconfig(shapes) emulated_load_config(shapes)
#define _tile_release() ((void)0)
#define _tile_zero(tile) memset(emulated.data[tile], 0, sizeof emulated.data[tile])
#define _tile_loadd(tile, from, stride) emulated_load(tile, from, stride)
#define _tile_stored(tile, to, stride) emulated_store(tile, to, stride)
#define _tile_dpbsud(sums, left, right) emulated_multiply(sums, left, right)

#endif
