// The kernel table of each instruction set; private to this target.
#ifndef KERNEL_SETS_H
#define KERNEL_SETS_H

#include "ckernels.h"

// 64-byte vectors are passed only between functions that are always inlined, so no call depends on their ABI.
#pragma clang diagnostic ignored "-Wpsabi"

typedef float v16f_storage __attribute__((vector_size(64), aligned(4)));

/// The file of an instruction set may define another function.
#define ATTENTION NAME(attention)

#define KERNEL_TABLE(set, title, sums_blocks, panel_function, pair_function)                                               \
    {set, title, sums_blocks, panel_function, pair_function, NAME(quantize), NAME(rmsnorm), NAME(layernorm), NAME(add), NAME(activate), NAME(delta_step),  \
     NAME(mamba_step), ATTENTION, NAME(to_half), NAME(argmax), NAME(soft_cap), NAME(exp_shifted), NAME(low_rank), NAME(low_rank_part), NAME(low_rank_outputs), NAME(dot_rows)}

/// 127 divided by a smaller maximum is infinite: the codes of such a block of activations are zeros.
#define CK_SMALLEST 4e-37f

/// The least scale of 32 activations that has codes of at most 127 and sums of products that fit into 16 bits: the magnitudes of 16 codes
/// add up to at most 1,023, which is multiplied by at most 32 (6-bit codes; for 32 codes of 4 bits the sum is smaller). Rounding adds up
/// to 0.5 for each code. `low` and `high` are the sums of the magnitudes of each half.
#define CK_NEEDS_MAXIMUM (1.0f / 127)
#define CK_NEEDS_HALF (1.0f / 1014)
static inline float ck_block_needs(float maximum, float low, float high) {
    float needs = maximum * CK_NEEDS_MAXIMUM, half = (low > high ? low : high) * CK_NEEDS_HALF;
    return half > needs ? half : needs;
}

/// The unit of the scales of 256 activations: factors are at most 127, and the sum of all code magnitudes, each times its factor, is
/// below 2^19, so that its product with a 6-bit code and an 8-bit scale fits into 32 bits. `total` is the sum of the magnitudes, `needs`
/// the largest of `ck_block_needs`. If an activation is infinite or not a number, so is the unit.
static inline float ck_block_unit(float total, float needs) {
    float unit = total * (1.0f / 507000);
    return needs * (1.0f / 127) > unit ? needs * (1.0f / 127) : unit;
}

/// Prefetches keys or values of a later work item of attention into the second level of the cache. A single row reads the whole KV cache
/// for few operations, and each page is a new range of addresses, which the processor does not prefetch itself.
static inline void ck_prefetch(const uint8_t *p, size_t bytes) {
    for (size_t line = 0; line < bytes; line += 64) __builtin_prefetch(p + line, 0, 2);
}

extern const ck_kernels ck_kernels_scalar;
#if defined(__x86_64__)
extern const ck_kernels ck_kernels_avx2, ck_kernels_avx512, ck_kernels_amx;
/// The matrix product with tiles (amx.c); all other functions of this set use AVX-512.
void ck_panel_amx(const ck_matrix *m, int32_t panel, const ck_activations *a, float *y, int32_t ldy, bool add);
/// Attention with products of bfloat16 (avx512bf16.c), for an even `head_dim` up to `CK_BF16_HEAD_DIM`.
void ck_attention_bf16(const ck_attention *a, int32_t kv_head, int32_t first_head, int32_t head_count, int32_t first_row,
                       int32_t row_count, int32_t from, int32_t to, const ck_attention_next *next, float *partial);
enum { CK_BF16_HEAD_DIM = 640 };
/// Requests permission to use the tile registers from the operating system. Returns false if the processor or the
/// operating system does not support them.
bool ck_amx_enable(void);
#endif
#if defined(__aarch64__)
extern const ck_kernels ck_kernels_neon;
#endif

#endif
