#include "sha256.h"

#include <string.h>

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotated(uint32_t value, int bits) { return value >> bits | value << (32 - bits); }

static void compress_portable(uint32_t state[8], const uint8_t *bytes, size_t blocks) {
    for (; blocks > 0; blocks--, bytes += 64) {
        uint32_t words[64];
        for (int i = 0; i < 16; i++) {
            words[i] = (uint32_t)bytes[4 * i] << 24 | (uint32_t)bytes[4 * i + 1] << 16 | (uint32_t)bytes[4 * i + 2] << 8
                | bytes[4 * i + 3];
        }
        for (int i = 16; i < 64; i++) {
            uint32_t x = words[i - 15], y = words[i - 2];
            words[i] = words[i - 16] + (rotated(x, 7) ^ rotated(x, 18) ^ x >> 3) + words[i - 7]
                + (rotated(y, 17) ^ rotated(y, 19) ^ y >> 10);
        }
        uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
        uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
        for (int i = 0; i < 64; i++) {
            uint32_t first = h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + ((e & f) ^ (~e & g)) + constants[i]
                + words[i];
            uint32_t second = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
            h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
        }
        state[0] += a, state[1] += b, state[2] += c, state[3] += d;
        state[4] += e, state[5] += f, state[6] += g, state[7] += h;
    }
}

#if defined(__x86_64__)
#include <immintrin.h>

bool sha256_has_instructions(void) {
    return __builtin_cpu_supports("sha") && __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("ssse3");
}

__attribute__((target("sha,sse4.1,ssse3")))
static void compress_instructions(uint32_t state[8], const uint8_t *bytes, size_t blocks) {
    const __m128i order = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    // The instructions keep the words a, b, e, f in one register, and c, d, g, h in another.
    __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xB1);
    __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1B);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xF0);
    for (; blocks > 0; blocks--, bytes += 64) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i words[4];
        for (int i = 0; i < 4; i++) {
            words[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(bytes + 16 * i)), order);
        }
        for (int i = 0; i < 16; i++) {
            __m128i sums = _mm_add_epi32(words[i & 3], _mm_loadu_si128((const __m128i *)(constants + 4 * i)));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sums);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sums, 0x0E));
            if (i >= 12) continue;
            __m128i next = _mm_add_epi32(
                _mm_sha256msg1_epu32(words[i & 3], words[(i + 1) & 3]),
                _mm_alignr_epi8(words[(i + 3) & 3], words[(i + 2) & 3], 4));
            words[i & 3] = _mm_sha256msg2_epu32(next, words[(i + 3) & 3]);
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    __m128i feba = _mm_shuffle_epi32(abef, 0x1B), dchg = _mm_shuffle_epi32(cdgh, 0xB1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(feba, dchg, 0xF0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

#elif defined(__aarch64__) && defined(__ARM_FEATURE_SHA2)
#include <arm_neon.h>

bool sha256_has_instructions(void) { return true; }

static void compress_instructions(uint32_t state[8], const uint8_t *bytes, size_t blocks) {
    uint32x4_t abcd = vld1q_u32(state), efgh = vld1q_u32(state + 4);
    for (; blocks > 0; blocks--, bytes += 64) {
        const uint32x4_t abcd_before = abcd, efgh_before = efgh;
        uint32x4_t words[4];
        for (int i = 0; i < 4; i++) words[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(bytes + 16 * i)));
        for (int i = 0; i < 16; i++) {
            uint32x4_t sums = vaddq_u32(words[i & 3], vld1q_u32(constants + 4 * i)), before = abcd;
            abcd = vsha256hq_u32(abcd, efgh, sums);
            efgh = vsha256h2q_u32(efgh, before, sums);
            if (i >= 12) continue;
            uint32x4_t next = vsha256su0q_u32(words[i & 3], words[(i + 1) & 3]);
            words[i & 3] = vsha256su1q_u32(next, words[(i + 2) & 3], words[(i + 3) & 3]);
        }
        abcd = vaddq_u32(abcd, abcd_before);
        efgh = vaddq_u32(efgh, efgh_before);
    }
    vst1q_u32(state, abcd);
    vst1q_u32(state + 4, efgh);
}

#else

bool sha256_has_instructions(void) { return false; }

static void compress_instructions(uint32_t state[8], const uint8_t *bytes, size_t blocks) {
    compress_portable(state, bytes, blocks);
}

#endif

void sha256_begin_portable(sha256_context *context) {
    static const uint32_t initial[8] = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
    };
    memset(context, 0, sizeof *context);
    memcpy(context->state, initial, sizeof initial);
}

void sha256_begin(sha256_context *context) {
    sha256_begin_portable(context);
    context->uses_instructions = sha256_has_instructions();
}

static void compress(sha256_context *context, const uint8_t *bytes, size_t blocks) {
    (context->uses_instructions ? compress_instructions : compress_portable)(context->state, bytes, blocks);
}

void sha256_add(sha256_context *context, const void *bytes, size_t count) {
    if (count == 0) return;
    const uint8_t *next = bytes;
    size_t filled = context->length % 64;
    context->length += count;
    if (filled > 0) {
        size_t part = count < 64 - filled ? count : 64 - filled;
        memcpy(context->block + filled, next, part);
        if (filled + part < 64) return;
        compress(context, context->block, 1);
        next += part;
        count -= part;
    }
    compress(context, next, count / 64);
    memcpy(context->block, next + count / 64 * 64, count % 64);
}

void sha256_end(sha256_context *context, uint8_t digest[32]) {
    uint64_t bits = context->length * 8;
    uint8_t padding[72] = {0x80};
    size_t filled = context->length % 64;
    size_t zeros = (filled < 56 ? 56 : 120) - filled;
    for (int i = 0; i < 8; i++) padding[zeros + i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_add(context, padding, zeros + 8);
    for (int i = 0; i < 32; i++) digest[i] = (uint8_t)(context->state[i / 4] >> (24 - 8 * (i % 4)));
}
