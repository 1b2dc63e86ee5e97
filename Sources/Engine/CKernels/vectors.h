// Vectors of 16 numbers, for `generic.h` and `attention.h`; the includer defines NAME, TARGET and the loads of binary16.

#ifndef CK_GENERIC_TYPES
#define CK_GENERIC_TYPES
typedef float v16f __attribute__((vector_size(64), aligned(4)));
typedef int32_t v16i __attribute__((vector_size(64), aligned(4)));
typedef int8_t v16c __attribute__((vector_size(16), aligned(1)));
typedef uint8_t v16b __attribute__((vector_size(16), aligned(1)));
typedef uint8_t v32b __attribute__((vector_size(32), aligned(1)));
typedef uint8_t v64b __attribute__((vector_size(64), aligned(1)));
typedef uint16_t v32h __attribute__((vector_size(64), aligned(1)));
#endif

#pragma clang fp contract(fast)

TARGET INLINE v16f NAME(load)(const float *p) { return *(const v16f *)p; }
TARGET INLINE void NAME(store)(float *p, v16f v) { *(v16f *)p = v; }
TARGET INLINE v16f NAME(splat)(float x) { return (v16f){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }

TARGET INLINE float NAME(sum)(v16f v) {
#pragma clang fp reassociate(on)
    float total = 0;
    for (int i = 0; i < 16; i++) total += v[i];
    return total;
}

TARGET INLINE v16f NAME(select)(v16i mask, v16f yes, v16f no) {
    return (v16f)(((v16i)yes & mask) | ((v16i)no & ~mask));
}

/// Only for values that are not NaN: `__builtin_reduce_max` takes care of them, which is slow.
TARGET INLINE float NAME(reduce_max)(v16f v) {
#define FOLD(...)                                                  \
    do {                                                           \
        v16f other = __builtin_shufflevector(v, v, __VA_ARGS__);   \
        v = NAME(select)(other > v, other, v);                     \
    } while (0)
    FOLD(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    FOLD(4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    FOLD(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    FOLD(1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
#undef FOLD
    return v[0];
}

/// exp(x) for x in −87…88; other arguments are clamped. Polynomial of degree 6 from Cephes after reduction by ln 2;
/// error below 2 ulp.
TARGET INLINE v16f NAME(exp16)(v16f x) {
    x = NAME(select)(x < -87.0f, NAME(splat)(-87.0f), x);
    x = NAME(select)(x > 88.0f, NAME(splat)(88.0f), x);
    v16f scaled = x * 1.44269504f, shifted = scaled + 12582912.0f;  // + 1.5·2^23 rounds to an integer in the low bits
    v16f n = shifted - 12582912.0f;
    v16f r = x - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    v16f p = NAME(splat)(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    v16i exponent = ((v16i)shifted - 0x4B400000 + 127) << 23;
    return p * (v16f)exponent;
}

/// tanh(x) computed with exp; the clamp keeps exp finite.
TARGET INLINE v16f NAME(tanh16)(v16f x) {
    x = NAME(select)(x < -20.0f, NAME(splat)(-20.0f), NAME(select)(x > 20.0f, NAME(splat)(20.0f), x));
    v16f e = NAME(exp16)(x * 2.0f);
    return (e - 1.0f) / (e + 1.0f);
}

/// 16 keys or values, of 8 bits without their factors, or binary16.
TARGET INLINE v16f NAME(load_cached)(bool bytes, const uint8_t *p) {
    return bytes ? __builtin_convertvector(*(const v16c *)p, v16f) : LOAD_HALF16((const uint16_t *)p);
}
