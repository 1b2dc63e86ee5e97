#include "language_table.h"

#include <math.h>
#include <string.h>

#pragma clang diagnostic ignored "-Wc23-extensions"
static const unsigned char table[] __attribute__((aligned(16))) = {
#embed "languages.bin"
};

enum { ORDERS = 4, MAXIMUM_CLASSES = 128 };

// The table is part of the program: its numbers are right.
static uint32_t number(size_t at) {
    uint32_t value;
    memcpy(&value, table + at, 4);
    return value;
}

int32_t lt_class_count(void) { return (int32_t)number(0); }

const char *lt_code(int32_t class_index) { return (const char *)table + 12 + 4 * (size_t)class_index; }

void lt_scores(const uint32_t *text, int32_t count, float *scores) {
    uint32_t classes = number(0), buckets = number(4);
    float scale;
    memcpy(&scale, table + 8, 4);
    const unsigned char *biases = table + 12 + 4 * (size_t)classes;
    const int8_t *weights = (const int8_t *)(biases + 4 * (size_t)classes);
    int32_t sums[MAXIMUM_CLASSES] = {0}, features = 0;
    for (int32_t order = 1; order <= ORDERS; order++) {
        for (int32_t at = 0; at + order <= count; at++, features++) {
            uint32_t hash = 0x811C9DC5u + (uint32_t)order;
            for (int32_t k = 0; k < order; k++) {
                hash = (hash ^ text[at + k]) * 0x9E3779B1u;
                hash ^= hash >> 15;
            }
            const int8_t *row = weights + (size_t)(hash % buckets) * classes;
            for (uint32_t i = 0; i < classes; i++) sums[i] += row[i];
        }
    }
    for (uint32_t i = 0; i < classes; i++) {
        float bias;
        memcpy(&bias, biases + 4 * (size_t)i, 4);
        scores[i] = bias + (features > 0 ? (float)sums[i] * scale / sqrtf((float)features) : 0);
    }
}
