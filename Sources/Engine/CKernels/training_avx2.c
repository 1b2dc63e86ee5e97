// Training with AVX2.

#if defined(__x86_64__)

#include <immintrin.h>

#define NAME(x) x##_training_avx2
#define TARGET __attribute__((target("avx2,fma,f16c")))
#define LOAD_HALF16(p) load_half16_training_avx2(p)
#define TILE_ROWS 3

#include "kernel_sets.h"

static inline __attribute__((always_inline)) TARGET v16f_storage load_half16_training_avx2(const uint16_t *p) {
    union { __m256 half[2]; v16f_storage whole; } v;
    v.half[0] = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
    v.half[1] = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 8)));
    return v.whole;
}

#include "training_kernels.h"

const ck_training_kernels ck_training_avx2 = TRAINING_TABLE("AVX2", NULL);

#endif
