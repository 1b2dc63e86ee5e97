// Quantisation with AVX-512.

#if defined(__x86_64__)

#define NAME(x) x##_quantize_avx512
#define KERNELS ck_quantize_avx512
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

#include "quantize_rows.h"

#endif
