// Training with AVX-512, and with products of bfloat16 where the processor has them.

#if defined(__x86_64__)

#include <immintrin.h>

#define NAME(x) x##_training_avx512
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")))
#define LOAD_HALF16(p) ((v16f_storage)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(p))))
#define TILE_ROWS 12

#include "training_kernels.h"

#define TARGET_BF16 __attribute__((target("avx512bf16,avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")))

TARGET_BF16 INLINE void rounded_tile_of(int wide, const uint32_t *a, const uint32_t *b, int32_t pairs, int32_t rows, int32_t columns,
                                        float scale, bool add, float *c, int32_t ldc) {
    __m512 sum[24];
#pragma clang loop unroll(full)
    for (int i = 0; i < 24; i++) sum[i] = _mm512_setzero_ps();
    for (int32_t i = 0; i < pairs; i++, a += CK_TRAINING_ROWS, b += CK_TRAINING_COLUMNS) {
        __m512bh low = (__m512bh)_mm512_loadu_si512(b), high = wide ? (__m512bh)_mm512_loadu_si512(b + 16) : low;
#pragma clang loop unroll(full)
        for (int r = 0; r < 12; r++) {
            __m512bh x = (__m512bh)_mm512_set1_epi32((int)a[r]);
            sum[2 * r] = _mm512_dpbf16_ps(sum[2 * r], low, x);
            if (wide) sum[2 * r + 1] = _mm512_dpbf16_ps(sum[2 * r + 1], high, x);
        }
    }
#pragma clang loop unroll(full)
    for (int r = 0; r < 12; r++)
        if (r < rows)
            store_tile_training_avx512((v16f)sum[2 * r], (v16f)sum[2 * r + 1], columns, scale, add, c + (size_t)r * (size_t)ldc);
}

TARGET_BF16 static void rounded_tile_avx512(const uint32_t *a, const uint32_t *b, int32_t pairs, int32_t rows, int32_t columns, float scale,
                                            bool add, float *c, int32_t ldc) {
    if (columns <= 16) rounded_tile_of(0, a, b, pairs, rows, columns, scale, add, c, ldc);
    else rounded_tile_of(1, a, b, pairs, rows, columns, scale, add, c, ldc);
}

const ck_training_kernels ck_training_avx512 = TRAINING_TABLE("AVX-512", NULL);
const ck_training_kernels ck_training_avx512bf16 = TRAINING_TABLE("AVX-512 BF16", rounded_tile_avx512);

#endif
