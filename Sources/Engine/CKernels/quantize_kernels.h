// The kernels of quantisation for an instruction set; private to this target.
#ifndef QUANTIZE_KERNELS_H
#define QUANTIZE_KERNELS_H

#include "ckernels.h"

/// A block as codes and scales: x ≈ d · scale · code − dmin · minimum.
typedef struct {
    float codes[256];
    int scale[16], minimum[16];
    float d, dmin;
} ck_quantized;

/// A grid of the IQ types: vectors of magnitudes.
typedef struct {
    /// The levels of all entries, `[width][count]`.
    const float *levels;
    int count;
    /// The elements of a vector: 4 or 8.
    int width;
    /// The elements with the same scale: 16 or 32.
    int group;
    /// The levels that an element can have, ascending.
    const float *steps;
    int step_count;
    float largest;
    /// Whether the number of negative elements of 8 is even.
    bool has_even_signs;
} ck_grid;

/// A block of 256 elements: x ≈ ± d · (2 · scale + 1) · level.
typedef struct {
    uint16_t entries[64];
    /// The signs of 8 elements each; 1 is negative.
    uint8_t signs[32];
    int scale[16];
    float d;
} ck_grid_block;

typedef struct {
    /// Groups of `n` elements with codes from 0 to `high`, scales and minimums from 0 to `limit`.
    void (*affine_block)(const float *x, const float *w, int groups, int n, float high, float limit, ck_quantized *out);
    /// Groups of `n` elements with codes from `low` to `high`, scales from `least` to −least − 1.
    void (*scale_block)(const float *x, const float *w, int groups, int n, float low, float high, int least, ck_quantized *out);
    /// Groups of 32 elements whose codes are indices into a table of ascending values; of one group, the scale is d.
    void (*table_block)(const float *x, const float *w, int groups, const float *table, int count, ck_quantized *out);
    /// 32 elements with a power of two as scale, whose exponent is returned as it is stored (bias 127; the values are doubled).
    int (*power)(const float *x, const float *w, const float *table, int count, float *codes);
    /// 32 elements with a scale and perhaps an offset.
    void (*one)(const float *x, const float *w, float low, float high, bool has_offset, ck_quantized *out);
    void (*grid_block)(const float *x, const float *w, const ck_grid *grid, ck_grid_block *out);
} ck_quantize_kernels;

/// `ck_encode` with the kernels of an instruction set, which the processor has.
void ck_encode_with(ck_isa isa, ck_type type, const float *x, size_t count, const float *importance, uint8_t *out);

extern const ck_quantize_kernels ck_quantize_scalar;
#if defined(__x86_64__)
extern const ck_quantize_kernels ck_quantize_avx2, ck_quantize_avx512;
#endif

#endif
