// Selects the kernels once, from the features that the processor reports.

#include <pthread.h>

#include "kernel_sets.h"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

const ck_kernels *ck_kernels_for(ck_isa isa) {
    switch (isa) {
        case CK_SCALAR: return &ck_kernels_scalar;
#if defined(__x86_64__)
        case CK_AVX2:
            return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")
                       ? &ck_kernels_avx2
                       : NULL;
        case CK_AVX512:
            return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                           __builtin_cpu_supports("avx512vnni")
                       ? &ck_kernels_avx512
                       : NULL;
        case CK_AMX: return ck_kernels_for(CK_AVX512) && ck_amx_enable() ? &ck_kernels_amx : NULL;
#else
        case CK_AVX2: case CK_AVX512: case CK_AMX: return NULL;
#endif
#if defined(__aarch64__)
        case CK_NEON:
#if defined(__linux__)
            return getauxval(AT_HWCAP) & (1UL << 20) ? &ck_kernels_neon : NULL;  // HWCAP_ASIMDDP
#else
            return &ck_kernels_neon;  // all Apple processors support dotprod
#endif
#else
        case CK_NEON: return NULL;
#endif
    }
    return NULL;
}

static const ck_kernels *best;

static void choose(void) {
    static const ck_isa order[] = {CK_AMX, CK_AVX512, CK_NEON, CK_AVX2, CK_SCALAR};
    for (int i = 0; !best; i++) best = ck_kernels_for(order[i]);
}

const ck_kernels *ck_kernels_best(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose);
    return best;
}
