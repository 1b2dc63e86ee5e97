// Sums over blocks of 256 columns as integers, for the products of AVX-512 and AMX with matrices whose scales are integers too (Q4_K,
// Q6_K) and activations that have a `unit`. Sums of 5-bit codes would need more than 16 bits. The includer defines NAME, TARGET and LOAD_HALF16.
//
// A sum of 32 codes times activations (16 for Q6_K) fits into 16 bits. Those of two groups are one operand of `vpdpwssd`; the other one
// is the product of the scales of the weights and the factors of the activations.

/// The integer scales of one block as pairs of groups, `[16 rows][2]`, and the factors of all of them. `minimum` is for layouts with one.
typedef struct {
    __m512i scale[2][4], minimum[4];
    __m512 factor, minimum_factor;
} NAME(block_scales);

TARGET INLINE void NAME(read_block_scales)(ck_layout layout, const uint8_t *block, NAME(block_scales) *out) {
    const uint8_t *scales = block + 8 * layout_group_bytes(layout);
#pragma clang loop unroll(full)
    for (int pair = 0; pair < 4; pair++) {
        __m256i first = _mm256_loadu_si256((const __m256i *)(scales + 32 * pair));
        __m256i second = _mm256_loadu_si256((const __m256i *)(scales + 128 + 32 * pair));
        if (layout_has_minimum(layout)) {
            out->scale[0][pair] = _mm512_cvtepu8_epi16(first);
            out->minimum[pair] = _mm512_cvtepu8_epi16(second);
        } else {
            out->scale[0][pair] = _mm512_cvtepi8_epi16(first);
            out->scale[1][pair] = _mm512_cvtepi8_epi16(second);
        }
    }
    out->factor = (__m512)LOAD_HALF16((const uint16_t *)(scales + 256));
    if (layout_has_minimum(layout))
        out->minimum_factor = _mm512_mul_ps((__m512)LOAD_HALF16((const uint16_t *)(scales + 288)), _mm512_set1_ps(-8));
}

/// Two successive elements, for all lanes.
TARGET INLINE __m512i NAME(two)(const int16_t *at) {
    int32_t two;
    memcpy(&two, at, 4);
    return _mm512_set1_epi32(two);
}

/// sum += the sums of two groups, times their scales and factors.
TARGET INLINE __m512i NAME(add_pair)(__m512i sum, __m512i first, __m512i second, __m512i scales, const int16_t *factors) {
    // The low halves of both, alternately. Two instructions that all processors have in several units, instead of a permutation.
    __m512i both = _mm512_mask_blend_epi16(0xAAAAAAAA, first, _mm512_slli_epi32(second, 16));
    // Not the intrinsic function: the compiler would replace it by a product and an addition, and add the pairs in another order, for
    // which there are not enough registers.
    __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(both), "v"(_mm512_mullo_epi16(scales, NAME(two)(factors))));
    return sum;
}

/// total += the sum of a block, in the units of weights and activations. `index` is that of the block among those of all rows.
TARGET INLINE __m512 NAME(add_block_sum)(ck_layout layout, __m512 total, __m512i sum, const NAME(block_scales) *scales,
                                         const ck_activations *a, size_t index) {
    __m512 product = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), scales->factor);
    if (layout_has_minimum(layout)) {
        __m512i minimum = _mm512_setzero_si512();
#pragma clang loop unroll(full)
        for (size_t pair = 0; pair < 4; pair++)
            minimum = _mm512_dpwssd_epi32(minimum, scales->minimum[pair], NAME(two)(a->weighted + index * 8 + 2 * pair));
        product = _mm512_fmadd_ps(_mm512_cvtepi32_ps(minimum), scales->minimum_factor, product);
    }
    return _mm512_fmadd_ps(product, _mm512_set1_ps(a->unit[index]), total);
}
