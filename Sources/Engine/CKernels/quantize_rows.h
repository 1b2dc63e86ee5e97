// Quantisation of rows; included once for each instruction set, with NAME(x) and TARGET.
//
// All types are fitted in the same way. For each group, several scales are tried; for each, the elements are rounded to codes, and the
// scale (and offset) with the smallest weighted square error for these codes follows from linear equations. The best is refined by
// rounding and solving in turn. In blocks of several groups, the scales of the groups are rounded to a few bits: their neighbours are
// tried too, and the scale of the block is solved with all codes known.
//
// Sums have a fixed order and products are not fused with sums, so that every instruction set gives the same bits.

#include <math.h>
#include <string.h>

#include "quantize_kernels.h"

#pragma clang fp contract(off)
// All functions with vectors are inlined.
#pragma clang diagnostic ignored "-Wpsabi"

typedef float v16 __attribute__((vector_size(64)));
typedef int32_t m16 __attribute__((vector_size(64)));

#define INLINE static inline __attribute__((always_inline)) TARGET

INLINE v16 NAME(load)(const float *p) {
    v16 v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE float NAME(sum)(v16 v) {
    float lanes[16];
    memcpy(lanes, &v, sizeof v);
    for (int width = 8; width; width /= 2)
        for (int i = 0; i < width; i++) lanes[i] += lanes[i + width];
    return lanes[0];
}

/// To the nearest integer, ties to even, for magnitudes below 2²².
INLINE v16 NAME(rounded)(v16 x) { return (x + 12582912.0f) - 12582912.0f; }

INLINE v16 NAME(clamped)(v16 x, float low, float high) {
    v16 lows = low - (v16){0}, highs = high - (v16){0};
    return __builtin_elementwise_min(__builtin_elementwise_max(x, lows), highs);
}

INLINE v16 NAME(select)(m16 mask, float value) {
    v16 values = value - (v16){0};
    m16 bits;
    memcpy(&bits, &values, sizeof bits);
    bits &= mask;
    memcpy(&values, &bits, sizeof bits);
    return values;
}

// MARK: - Codes with equal distances

/// Sums over a group with the weights w: of 1, x, x², q, q², x·q.
typedef struct { float w, x, xx, q, qq, xq; } NAME(sums);

INLINE NAME(sums) NAME(constant_sums)(const float *x, const float *w, int n) {
    v16 sw = {0}, sx = {0}, sxx = {0};
    for (int i = 0; i < n; i += 16) {
        v16 xi = NAME(load)(x + i), wi = NAME(load)(w + i), wx = wi * xi;
        sw += wi, sx += wx, sxx += wx * xi;
    }
    return (NAME(sums)){NAME(sum)(sw), NAME(sum)(sx), NAME(sum)(sxx), 0, 0, 0};
}

/// The sums for the codes round((x − offset) · inverse), from low to high.
INLINE void NAME(code_sums)(const float *x, const float *w, int n, float inverse, float offset, float low, float high, NAME(sums) *s) {
    v16 sq = {0}, sqq = {0}, sxq = {0};
    for (int i = 0; i < n; i += 16) {
        v16 xi = NAME(load)(x + i), wi = NAME(load)(w + i);
        v16 q = NAME(clamped)(NAME(rounded)(NAME(clamped)((xi - offset) * inverse, -1e6f, 1e6f)), low, high), wq = wi * q;
        sq += wq, sqq += wq * q, sxq += wq * xi;
    }
    s->q = NAME(sum)(sq), s->qq = NAME(sum)(sqq), s->xq = NAME(sum)(sxq);
}

typedef struct { float scale, offset, error; } NAME(fit);

/// The scale and offset with the smallest error for codes with these sums.
INLINE NAME(fit) NAME(solve)(NAME(sums) s, bool has_offset, bool offset_is_negative) {
    NAME(fit) f = {0, 0, s.xx};
    float determinant = s.w * s.qq - s.q * s.q;
    if (has_offset && determinant > 1e-7f * s.w * s.qq) {
        f.scale = (s.w * s.xq - s.x * s.q) / determinant;
        f.offset = (s.qq * s.x - s.q * s.xq) / determinant;
    } else if (has_offset && s.w > 0) {
        f.offset = s.x / s.w;  // all codes are equal
    }
    if (!has_offset || (offset_is_negative && f.offset > 0) || (has_offset && f.scale < 0)) {
        f.offset = 0;
        f.scale = s.qq > 0 ? s.xq / s.qq : 0;
    }
    f.error = s.xx - 2 * (f.scale * s.xq + f.offset * s.x) + f.scale * f.scale * s.qq + 2 * f.scale * f.offset * s.q +
              f.offset * f.offset * s.w;
    return f;
}

INLINE NAME(fit) NAME(refine)(const float *x, const float *w, int n, float low, float high, NAME(sums) s, NAME(fit) best, bool has_offset,
                              bool negative) {
    for (int step = 0; step < 6 && best.scale != 0; step++) {
        NAME(code_sums)(x, w, n, 1 / best.scale, best.offset, low, high, &s);
        NAME(fit) next = NAME(solve)(s, has_offset, negative);
        if (!(next.error < best.error)) break;
        best = next;
    }
    return best;
}

/// x ≈ scale · q + offset with q from 0 to `high`. With `negative`, the offset is not above 0.
INLINE NAME(fit) NAME(fit_affine)(const float *x, const float *w, int n, float high, bool negative) {
    float least = negative ? 0 : x[0], most = negative ? 0 : x[0];
    for (int i = 0; i < n; i++) {
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
    }
    NAME(sums) s = NAME(constant_sums)(x, w, n);
    NAME(fit) best = {0, least, s.xx - 2 * least * s.x + least * least * s.w};
    if (!(most > least)) return best;
    for (int step = -6; step <= 8; step++) {
        float inverse = (high + 0.15f * (float)step) / (most - least);
        NAME(code_sums)(x, w, n, inverse, least, 0, high, &s);
        NAME(fit) next = NAME(solve)(s, true, negative);
        if (next.error < best.error) best = next;
    }
    return NAME(refine)(x, w, n, 0, high, s, best, true, negative);
}

/// x ≈ scale · q with q from `low` to `high`. The scale may be negative.
INLINE NAME(fit) NAME(fit_scale)(const float *x, const float *w, int n, float low, float high) {
    float largest = 0;
    for (int i = 0; i < n; i++)
        if (x[i] * x[i] > largest * largest) largest = x[i];
    NAME(sums) s = NAME(constant_sums)(x, w, n);
    NAME(fit) best = {0, 0, s.xx};
    if (largest == 0) return best;
    for (int side = 0; side < 2; side++)
        for (int step = -6; step <= 6; step++) {
            float inverse = ((side ? high : low) + 0.15f * (float)step) / largest;
            NAME(code_sums)(x, w, n, inverse, 0, low, high, &s);
            NAME(fit) next = NAME(solve)(s, false, false);
            if (next.error < best.error) best = next;
        }
    return NAME(refine)(x, w, n, low, high, s, best, false, false);
}

/// Writes the codes of x ≈ scale · q + offset and returns the error.
INLINE float NAME(assign)(const float *x, const float *w, int n, float scale, float offset, float low, float high, float *codes) {
    float inverse = scale != 0 ? 1 / scale : 0;
    v16 errors = {0};
    for (int i = 0; i < n; i += 16) {
        v16 xi = NAME(load)(x + i);
        v16 q = NAME(clamped)(NAME(rounded)(NAME(clamped)((xi - offset) * inverse, -1e6f, 1e6f)), low, high);
        v16 difference = xi - offset - scale * q;
        errors += NAME(load)(w + i) * difference * difference;
        memcpy(codes + i, &q, sizeof q);
    }
    return NAME(sum)(errors);
}

static float NAME(half)(float x) { return ck_half_to_float(ck_float_to_half(x)); }

/// A block of groups: x ≈ d · scale · q − dmin · minimum, with scales and minimums from 0 to `limit`.
static TARGET void NAME(fit_affine_block)(const float *x, const float *w, int groups, int n, float high, float limit, ck_quantized *out) {
    float scales[16], minimums[16], d = 0, dmin = 0, codes[32];
    for (int g = 0; g < groups; g++) {
        NAME(fit) f = NAME(fit_affine)(x + g * n, w + g * n, n, high, true);
        scales[g] = f.scale, minimums[g] = -f.offset;
        d = scales[g] > d ? scales[g] : d;
        dmin = minimums[g] > dmin ? minimums[g] : dmin;
    }
    d = NAME(half)(d / limit), dmin = NAME(half)(dmin / limit);
    for (int g = 0; g < groups; g++) {
        float s = d > 0 ? scales[g] / d + 0.5f : 0, m = dmin > 0 ? minimums[g] / dmin + 0.5f : 0;
        out->scale[g] = (int)(s < limit ? s : limit), out->minimum[g] = (int)(m < limit ? m : limit);
    }
    // First the scale of the block is solved, then the neighbours of the scales are tried with it.
    for (int pass = 0; pass < 2; pass++) {
        float aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;
        for (int g = 0; g < groups; g++) {
            const float *xg = x + g * n, *wg = w + g * n;
            int scale = out->scale[g], minimum = out->minimum[g], best_scale = scale, best_minimum = minimum;
            float best = -1;
            for (int s = scale - pass; s <= scale + pass; s++)
                for (int m = minimum - pass; m <= minimum + pass; m++) {
                    if (s < 0 || m < 0 || s > (int)limit || m > (int)limit) continue;
                    float error = NAME(assign)(xg, wg, n, d * (float)s, -dmin * (float)m, 0, high, codes);
                    if (best < 0 || error < best) best = error, best_scale = s, best_minimum = m;
                }
            out->scale[g] = best_scale, out->minimum[g] = best_minimum;
            NAME(assign)(xg, wg, n, d * (float)best_scale, -dmin * (float)best_minimum, 0, high, out->codes + g * n);
            NAME(sums) c = NAME(constant_sums)(xg, wg, n);
            v16 sq = {0}, sqq = {0}, sxq = {0};
            for (int i = 0; i < n; i += 16) {
                v16 q = NAME(load)(out->codes + g * n + i), wq = NAME(load)(wg + i) * q;
                sq += wq, sqq += wq * q, sxq += wq * NAME(load)(xg + i);
            }
            float s = (float)best_scale, m = (float)best_minimum;
            aa += s * s * NAME(sum)(sqq), ab += s * m * NAME(sum)(sq), bb += m * m * c.w, xa += s * NAME(sum)(sxq), xb += m * c.x;
        }
        if (pass) break;
        float determinant = aa * bb - ab * ab, next = d, next_minimum = dmin;
        if (determinant > 1e-6f * aa * bb) {
            next = NAME(half)((xa * bb - xb * ab) / determinant);
            next_minimum = NAME(half)((ab * xa - aa * xb) / determinant);
        } else if (aa > 0 && bb == 0) {
            next = NAME(half)(xa / aa);
        }
        if (next > 0 && next_minimum >= 0) d = next, dmin = next_minimum;
    }
    out->d = d, out->dmin = dmin;
}

/// A block of groups: x ≈ d · scale · q, with scales from `least` to −least − 1.
static TARGET void NAME(fit_scale_block)(const float *x, const float *w, int groups, int n, float low, float high, int least,
                                         ck_quantized *out) {
    float scales[16], largest = 0, codes[32];
    for (int g = 0; g < groups; g++) {
        scales[g] = NAME(fit_scale)(x + g * n, w + g * n, n, low, high).scale;
        if (scales[g] * scales[g] > largest * largest) largest = scales[g];
    }
    float d = NAME(half)(largest / (float)least);
    for (int g = 0; g < groups; g++) {
        float s = d != 0 ? scales[g] / d : 0;
        s = s < (float)least ? (float)least : s > (float)(-least - 1) ? (float)(-least - 1) : s;
        out->scale[g] = (int)(s < 0 ? s - 0.5f : s + 0.5f);
    }
    for (int pass = 0; pass < 2; pass++) {
        float aa = 0, xa = 0;
        for (int g = 0; g < groups; g++) {
            const float *xg = x + g * n, *wg = w + g * n;
            int scale = out->scale[g], chosen = scale;
            float best = -1;
            for (int s = scale - pass; s <= scale + pass; s++) {
                if (s < least || s > -least - 1) continue;
                float error = NAME(assign)(xg, wg, n, d * (float)s, 0, low, high, codes);
                if (best < 0 || error < best) best = error, chosen = s;
            }
            out->scale[g] = chosen;
            NAME(assign)(xg, wg, n, d * (float)chosen, 0, low, high, out->codes + g * n);
            v16 sqq = {0}, sxq = {0};
            for (int i = 0; i < n; i += 16) {
                v16 q = NAME(load)(out->codes + g * n + i), wq = NAME(load)(wg + i) * q;
                sqq += wq * q, sxq += wq * NAME(load)(xg + i);
            }
            aa += (float)(chosen * chosen) * NAME(sum)(sqq), xa += (float)chosen * NAME(sum)(sxq);
        }
        if (pass || aa <= 0) break;
        float next = NAME(half)(xa / aa);
        if (next != 0) d = next;
    }
    out->d = d, out->dmin = 0;
}

/// A single group with a scale and, with `has_offset`, an offset of 16 bits each: d and dmin, where the offset is −dmin.
static TARGET void NAME(fit_one)(const float *x, const float *w, float low, float high, bool has_offset, ck_quantized *out) {
    NAME(fit) f = has_offset ? NAME(fit_affine)(x, w, 32, high, false) : NAME(fit_scale)(x, w, 32, low, high);
    out->d = NAME(half)(f.scale), out->dmin = -NAME(half)(f.offset);
    NAME(assign)(x, w, 32, out->d, -out->dmin, low, high, out->codes);
}

// MARK: - Codes of a table

/// The table's values nearest to x · inverse, and the error of x ≈ scale · value. Codes may be null.
INLINE float NAME(look_up)(const float *x, const float *w, int n, float scale, const float *table, int count, float *codes, float *xq,
                           float *qq) {
    float inverse = scale != 0 ? 1 / scale : 0;
    v16 errors = {0}, sxq = {0}, sqq = {0};
    for (int i = 0; i < n; i += 16) {
        v16 xi = NAME(load)(x + i), wi = NAME(load)(w + i), at = xi * inverse, value = table[0] - (v16){0}, index = {0};
        for (int k = 1; k < count; k++) {
            v16 middle = 0.5f * (table[k - 1] + table[k]) - (v16){0};
            m16 above = at > middle;
            value += NAME(select)(above, table[k] - table[k - 1]);
            index += NAME(select)(above, 1);
        }
        v16 difference = xi - scale * value, wq = wi * value;
        errors += wi * difference * difference, sxq += wq * xi, sqq += wq * value;
        if (codes) memcpy(codes + i, &index, sizeof index);
    }
    *xq = NAME(sum)(sxq), *qq = NAME(sum)(sqq);
    return NAME(sum)(errors);
}

static TARGET float NAME(fit_table)(const float *x, const float *w, int n, const float *table, int count) {
    float largest = 0, best = -1, scale = 0, xq, qq;
    for (int i = 0; i < n; i++)
        if (x[i] * x[i] > largest * largest) largest = x[i];
    if (largest == 0) return 0;
    for (int side = 0; side < 2; side++)
        for (int step = -8; step <= 8; step++) {
            float candidate = largest / (table[side ? count - 1 : 0] * (1 + 0.02f * (float)step));
            NAME(look_up)(x, w, n, candidate, table, count, NULL, &xq, &qq);
            if (qq > 0 && (best < 0 || xq * xq > best * qq)) best = xq * xq / qq, scale = xq / qq;
        }
    for (int step = 0; step < 5; step++) {
        NAME(look_up)(x, w, n, scale, table, count, NULL, &xq, &qq);
        if (!(qq > 0) || !(xq * xq > best * qq)) break;
        best = xq * xq / qq, scale = xq / qq;
    }
    return scale;
}

static TARGET void NAME(fit_table_block)(const float *x, const float *w, int groups, const float *table, int count, ck_quantized *out) {
    float scales[8], largest = 0, xq, qq;
    for (int g = 0; g < groups; g++) {
        scales[g] = NAME(fit_table)(x + 32 * g, w + 32 * g, 32, table, count);
        if (scales[g] * scales[g] > largest * largest) largest = scales[g];
    }
    if (groups == 1) {
        out->d = NAME(half)(largest);
        NAME(look_up)(x, w, 32, out->d, table, count, out->codes, &xq, &qq);
        return;
    }
    float d = NAME(half)(largest / -32);
    for (int g = 0; g < groups; g++) {
        float s = d != 0 ? scales[g] / d : 0;
        s = s < -32 ? -32 : s > 31 ? 31 : s;
        out->scale[g] = (int)(s < 0 ? s - 0.5f : s + 0.5f);
    }
    for (int pass = 0; pass < 2; pass++) {
        float aa = 0, xa = 0;
        for (int g = 0; g < groups; g++) {
            const float *xg = x + 32 * g, *wg = w + 32 * g;
            int scale = out->scale[g], chosen = scale;
            float best = -1;
            for (int s = scale - pass; s <= scale + pass; s++) {
                if (s < -32 || s > 31) continue;
                float error = NAME(look_up)(xg, wg, 32, d * (float)s, table, count, NULL, &xq, &qq);
                if (best < 0 || error < best) best = error, chosen = s;
            }
            out->scale[g] = chosen;
            NAME(look_up)(xg, wg, 32, d * (float)chosen, table, count, out->codes + 32 * g, &xq, &qq);
            aa += (float)(chosen * chosen) * qq, xa += (float)chosen * xq;
        }
        if (pass || aa <= 0) break;
        float next = NAME(half)(xa / aa);
        if (next != 0) d = next;
    }
    out->d = d;
}

/// A group of MXFP4: the power of two with the smallest error. Returns the exponent as it is stored.
static TARGET int NAME(fit_power)(const float *x, const float *w, const float *table, int count, float *codes) {
    float largest = 0, best = -1, xq, qq;
    for (int i = 0; i < 32; i++) largest = x[i] > largest ? x[i] : -x[i] > largest ? -x[i] : largest;
    int exponent = 0, chosen = 0;
    if (largest > 0) frexpf(largest, &exponent);
    for (int e = exponent - 4; e <= exponent - 1; e++) {
        // The table has doubled values: the scale is half of 2^e.
        if (largest == 0 || e + 127 < 0 || e + 127 > 254) continue;
        float error = NAME(look_up)(x, w, 32, ldexpf(0.5f, e), table, count, NULL, &xq, &qq);
        if (best < 0 || error < best) best = error, chosen = e + 127;
    }
    NAME(look_up)(x, w, 32, ldexpf(0.5f, chosen - 127), table, count, codes, &xq, &qq);
    return chosen;
}

#include "quantize_grids.h"

const ck_quantize_kernels KERNELS = {
    NAME(fit_affine_block), NAME(fit_scale_block), NAME(fit_table_block), NAME(fit_power), NAME(fit_one), NAME(grid_block),
};
