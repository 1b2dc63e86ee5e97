// Quantises rows with all instruction sets, with memory of exactly the sizes that may be used, for check_sanitized.sh: all write the same
// bytes, and what is read back is near to what was written.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quantize_kernels.h"

static uint32_t state = 1;

static float number(void) {
    state = state * 1664525 + 1013904223;
    return (float)(state >> 8) / (float)(1 << 23) - 1;
}

/// The largest root of the mean square error that is allowed, as a share of the root of the mean square, for evenly distributed numbers.
static float tolerance(ck_type type) {
    switch (type) {
        case CK_TYPE_F32: return 0;
        case CK_TYPE_F16: return 0.0003f;
        case CK_TYPE_BF16: return 0.003f;
        case CK_TYPE_Q8_0: return 0.006f;
        case CK_TYPE_Q6_K: return 0.02f;
        case CK_TYPE_Q5_K: case CK_TYPE_Q5_1: return 0.035f;
        case CK_TYPE_Q5_0: return 0.04f;
        case CK_TYPE_Q4_K: case CK_TYPE_Q4_1: return 0.07f;
        case CK_TYPE_Q4_0: return 0.08f;
        case CK_TYPE_IQ4_NL: case CK_TYPE_IQ4_XS: return 0.09f;
        case CK_TYPE_MXFP4: case CK_TYPE_Q3_K: return 0.16f;
        case CK_TYPE_Q2_K: case CK_TYPE_IQ3_XXS: return 0.3f;
        case CK_TYPE_IQ3_S: return 0.25f;
        case CK_TYPE_IQ2_S: return 0.4f;
        case CK_TYPE_IQ2_XS: return 0.45f;
        case CK_TYPE_IQ2_XXS: return 0.5f;
        // Types that cannot be written.
        case CK_TYPE_IQ1_S: case CK_TYPE_IQ1_M: case CK_TYPE_TQ1_0: case CK_TYPE_TQ2_0: case CK_TYPE_NVFP4: case CK_TYPE_Q1_0:
        case CK_TYPE_Q2_0: return 0;
    }
}

int main(void) {
    static const ck_isa sets[] = {CK_SCALAR, CK_AVX2, CK_AVX512};
    int failures = 0;
    for (int32_t t = 0; t < ck_type_count(); t++) {
        ck_type type = ck_type_at(t);
        if (!ck_can_encode(type)) continue;
        for (int round = 0; round < 40; round++) {
            size_t count = 512, bytes = count / (size_t)ck_type_block(type) * (size_t)ck_type_bytes(type);
            float *x = malloc(count * 4), *importance = malloc(count * 4), *back = malloc(count * 4);
            for (size_t i = 0; i < count; i++) {
                x[i] = number() * (round % 4 == 1 ? number() * number() : 1) * (round % 4 == 2 ? 1e-4f : 1);
                // Zeros, equal numbers, and numbers of one sign.
                if (round == 3) x[i] = 0;
                if (round == 7) x[i] = -0.5f;
                if (round == 11) x[i] = fabsf(x[i]);
                importance[i] = round == 15 ? 0 : fabsf(number());
            }
            const float *weights = round % 2 ? importance : NULL;
            uint8_t *first = malloc(bytes), *other = malloc(bytes);
            ck_encode_with(CK_SCALAR, type, x, count, weights, first);
            for (size_t s = 1; s < sizeof sets / sizeof *sets; s++) {
                if (!ck_kernels_for(sets[s])) continue;
                ck_encode_with(sets[s], type, x, count, weights, other);
                if (memcmp(first, other, bytes)) failures++, printf("%s, round %d: instruction sets differ\n", ck_type_name(type), round);
            }
            ck_dequantize(type, first, count, back);
            double error = 0, square = 0;
            for (size_t i = 0; i < count; i++) error += (x[i] - back[i]) * (x[i] - back[i]), square += x[i] * x[i];
            if (round % 4 == 0 && error > tolerance(type) * tolerance(type) * square)
                failures++, printf("%s, round %d: error %.4f\n", ck_type_name(type), round, sqrt(error / square));
            for (size_t i = 0; i < count; i++)
                if (!isfinite(back[i])) failures++, i = count, printf("%s, round %d: no number\n", ck_type_name(type), round);
            if (round == 3 && error > 0) failures++, printf("%s: zeros are not zero\n", ck_type_name(type));
            free(x), free(importance), free(back), free(first), free(other);
        }
    }
    printf(failures ? "%d failures\n" : "quantisation: all instruction sets write the same\n", failures);
    return failures != 0;
}
