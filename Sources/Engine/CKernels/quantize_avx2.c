// Quantisation with AVX2.

#if defined(__x86_64__)

#define NAME(x) x##_quantize_avx2
#define KERNELS ck_quantize_avx2
#define TARGET __attribute__((target("avx2,fma,f16c")))

#include "quantize_rows.h"

#endif
