// Attention with products of bfloat16 (AVX-512 BF16): `vdpbf16ps` adds two products at once. Queries, keys, weights of positions and
// values are rounded to 8 significant bits, sums are binary32. BENCHMARKS.md has the gain and the error.

#if defined(__x86_64__)

#include <immintrin.h>
#include <math.h>
#include <string.h>

#define NAME(x) x##_avx512bf16
#define TARGET __attribute__((target("avx512bf16,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")))
#define LOAD_HALF16(p) ((v16f_storage)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(p))))

#include "formats.h"
#include "kernel_sets.h"
#include "vectors.h"

#define ROUNDS_TO_BFLOAT16
#define ACCUMULATORS 12
enum { SPAN_avx512bf16_rounded = 256, DIMENSIONS = CK_BF16_HEAD_DIM };

/// Operands of the products: pairs of successive dimensions of queries, and of weights of successive positions.
typedef struct {
    uint16_t queries[12][DIMENSIONS] __attribute__((aligned(64)));
    uint16_t weights[12][SPAN_avx512bf16_rounded] __attribute__((aligned(64)));
} rounded_avx512bf16;

TARGET INLINE void round_queries_avx512bf16(rounded_avx512bf16 *rounded, int rows, const float *const *q, int32_t head_dim) {
    for (int r = 0; r < rows; r++)
        for (int32_t d = 0; d < head_dim; d += 16) {
            __mmask16 used = head_dim - d >= 16 ? 0xFFFF : (__mmask16)((1 << (head_dim - d)) - 1);
            __m256bh sixteen = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(used, q[r] + d));
            _mm256_store_si256((__m256i *)(rounded->queries[r] + d), (__m256i)sixteen);
        }
}

TARGET INLINE float largest_score_avx512bf16(const float *scores, int padded) {
    __m512 largest = _mm512_load_ps(scores);
    for (int p = 16; p < padded; p += 16) largest = _mm512_max_ps(largest, _mm512_load_ps(scores + p));
    return _mm512_reduce_max_ps(largest);
}

/// exp(score − maximum) = 2^x, where x is rounded to an integer n and 2^(x − n) is a polynomial that is 1 at 0 (our own fit to equal
/// errors; 3·10⁻⁶ at most, while weights are rounded by up to 2·10⁻³). Most of its instructions are executed by units that have no products.
TARGET INLINE __m512 exponential_avx512bf16(__m512 score, __m512 maximum) {
    __m512 log2e = _mm512_set1_ps(1.44269504f);
    // −200 instead of −infinity, of which nothing can be subtracted; the result is zero as well. The second operand is the result if
    // it is not a number.
    __m512 x = _mm512_max_ps(_mm512_set1_ps(-200), _mm512_mul_ps(_mm512_sub_ps(score, maximum), log2e));
    __m512 n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), r = _mm512_sub_ps(x, n);
    __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(9.58257665e-3f), r, _mm512_set1_ps(5.59068300e-2f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(2.40241073e-1f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(6.93124118e-1f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1));
    return _mm512_scalef_ps(p, n);
}

/// Rounded weights exp(score − maximum), times the factors of values with 8 bits; returns the sum without factors and rounding.
TARGET INLINE float exponentials_avx512bf16(uint16_t *weights, const float *scores, const float *factors, float maximum, int padded) {
    __m512 sum = _mm512_setzero_ps(), most = _mm512_set1_ps(maximum);
    for (int p = 0; p < padded; p += 16) {
        __m512 e = exponential_avx512bf16(_mm512_load_ps(scores + p), most);
        sum = _mm512_add_ps(sum, e);
        if (factors) e = _mm512_mul_ps(e, _mm512_loadu_ps(factors + p));
        _mm256_store_si256((__m256i *)(weights + p), (__m256i)_mm512_cvtneps_pbh(e));
    }
    return _mm512_reduce_add_ps(sum);
}

/// Lane i of the result has element i of both vectors.
TARGET INLINE __m512bh pairs_avx512bf16(v16f first, v16f second) {
    __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18,
                                     2, 17, 1, 16, 0);
    return (__m512bh)_mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first));
}

TARGET INLINE __m512bh broadcast_avx512bf16(const uint16_t *pair) {
    int32_t two;
    memcpy(&two, pair, 4);
    return (__m512bh)_mm512_set1_epi32(two);
}

/// See the function in attention.h.
TARGET INLINE void score_blocks_avx512bf16(bool ahead, int rows, int wide, bool bytes, const uint16_t (*q)[DIMENSIONS],
                                           const uint8_t *keys, const uint8_t *next, const float *factors, int32_t head_dim,
                                           float scale, float (*scores)[SPAN_avx512bf16_rounded], int column) {
    size_t size = bytes ? 1 : 2;
    __m512 sum[12];
#pragma clang loop unroll(full)
    for (int i = 0; i < rows * wide; i++) sum[i] = _mm512_setzero_ps();
    for (int32_t d = 0; d < head_dim; d += 2) {
#pragma clang loop unroll(full)
        for (int b = 0; b < wide; b++) {
            size_t place = ((size_t)b * 16 * (size_t)head_dim + 16 * (size_t)d) * size;
            if (ahead && place % 64 == 0) ck_prefetch(next + place, 64);
            __m512bh k = pairs_avx512bf16(load_cached_avx512bf16(bytes, keys + place),
                                          load_cached_avx512bf16(bytes, keys + place + 16 * size));
#pragma clang loop unroll(full)
            for (int r = 0; r < rows; r++)
                sum[b * rows + r] = _mm512_dpbf16_ps(sum[b * rows + r], k, broadcast_avx512bf16(q[r] + d));
        }
    }
#pragma clang loop unroll(full)
    for (int b = 0; b < wide; b++)
#pragma clang loop unroll(full)
        for (int r = 0; r < rows; r++) {
            v16f score = (v16f)sum[b * rows + r] * scale;
            store_avx512bf16(&scores[r][column + 16 * b], bytes ? score * load_avx512bf16(factors + column + 16 * b) : score);
        }
}

/// See the function in attention.h.
TARGET INLINE void mix_blocks_avx512bf16(bool ahead, int rows, int wide, bool bytes,
                                         const uint16_t (*weights)[SPAN_avx512bf16_rounded], int positions, const uint8_t *values,
                                         const uint8_t *next, int32_t stride, float *accumulators, int32_t row_stride) {
    size_t size = bytes ? 1 : 2, row_bytes = (size_t)stride * size;
    __m512 sum[12];
#pragma clang loop unroll(full)
    for (int b = 0; b < wide; b++)
#pragma clang loop unroll(full)
        for (int r = 0; r < rows; r++) sum[b * rows + r] = _mm512_loadu_ps(accumulators + r * row_stride + 16 * b);
    for (int p = 0; p < positions; p += 2) {
        size_t row = (size_t)p * row_bytes;
        if (ahead) {
            ck_prefetch(next + row, (size_t)wide * 16 * size);
            ck_prefetch(next + row + row_bytes, (size_t)wide * 16 * size);
        }
#pragma clang loop unroll(full)
        for (int b = 0; b < wide; b++) {
            const uint8_t *at = values + row + 16 * (size_t)b * size;
            // The memory after the last position may contain anything, also values that are not finite.
            v16f second = p + 1 < positions ? load_cached_avx512bf16(bytes, at + row_bytes) : splat_avx512bf16(0);
            __m512bh v = pairs_avx512bf16(load_cached_avx512bf16(bytes, at), second);
#pragma clang loop unroll(full)
            for (int r = 0; r < rows; r++)
                sum[b * rows + r] = _mm512_dpbf16_ps(sum[b * rows + r], v, broadcast_avx512bf16(weights[r] + p));
        }
    }
#pragma clang loop unroll(full)
    for (int b = 0; b < wide; b++)
#pragma clang loop unroll(full)
        for (int r = 0; r < rows; r++) _mm512_storeu_ps(accumulators + r * row_stride + 16 * b, sum[b * rows + r]);
}

#include "attention.h"

TARGET void ck_attention_bf16(const ck_attention *a, int32_t kv_head, int32_t first_head, int32_t head_count, int32_t first_row,
                              int32_t row_count, int32_t from, int32_t to, const ck_attention_next *next, float *partial) {
    attention_avx512bf16(a, kv_head, first_head, head_count, first_row, row_count, from, to, next, partial);
}

#endif
