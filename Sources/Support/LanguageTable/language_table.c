#include "language_table.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#pragma clang diagnostic ignored "-Wc23-extensions"
static const unsigned char table[] __attribute__((aligned(16))) = {
#embed "languages.bin"
};

enum { ORDERS = 5, MAXIMUM_CLASSES = 128, WEIGHTS = 16 };

// The table is part of the program: its numbers are right.
static uint32_t number(size_t at) {
    uint32_t value;
    memcpy(&value, table + at, 4);
    return value;
}

int32_t lt_class_count(void) { return (int32_t)number(0); }

const char *lt_code(int32_t class_index) { return (const char *)table + 12 + 4 * (size_t)class_index; }

/// A weight of a bucket that is not zero.
typedef struct {
    uint8_t class_index, weight;
} entry;

/// The entries of bucket i are those from `starts[i]` to `starts[i + 1]`. Null without memory for them.
static entry *entries;
static uint32_t *starts;

/// The bits of the table from `bit` on, at least 57, the first one lowest.
static uint64_t window(const unsigned char *bits, size_t bit) {
    uint64_t found;
    memcpy(&found, bits + bit / 8, 8);
    return found >> bit % 8;
}

/// Takes a Rice code: ones and a zero, as many as the number divided by 4, and the remainder in two bits.
static uint32_t take_number(const unsigned char *bits, size_t *bit) {
    uint64_t next = window(bits, *bit);
    int ones = __builtin_ctzll(~next);
    *bit += (size_t)ones + 3;
    return (uint32_t)ones << 2 | ((uint32_t)(next >> (ones + 1)) & 3);
}

/// Unpacks the table, which takes some milliseconds.
static void unpack(void) {
    uint32_t classes = number(0), buckets = number(4), count = number(8);
    starts = malloc(((size_t)buckets + 1) * sizeof *starts);
    entries = malloc((size_t)count * sizeof *entries);
    if (!starts || !entries) {
        free(starts);
        free(entries);
        starts = NULL;
        return;
    }
    const unsigned char *bits = table + 12 + 8 * (size_t)classes + 4 * WEIGHTS;
    size_t bit = 0;
    uint32_t at = 0;
    for (uint32_t bucket = 0; bucket < buckets; bucket++) {
        starts[bucket] = at;
        uint32_t next = 0;
        for (uint32_t left = take_number(bits, &bit); left > 0; left--, at++) {
            next += take_number(bits, &bit) + 1;
            entries[at] = (entry){(uint8_t)(next - 1), (uint8_t)(window(bits, bit) & (WEIGHTS - 1))};
            bit += 4;
        }
    }
    starts[buckets] = at;
}

typedef struct {
    float sums[MAXIMUM_CLASSES], weights[WEIGHTS];
    uint32_t buckets;
    int32_t features;
} scorer;

static uint32_t mix(uint32_t hash, uint32_t letter) {
    hash = (hash ^ letter) * 0x9E3779B1u;
    return hash ^ hash >> 15;
}

static void add(scorer *s, uint32_t hash) {
    uint32_t bucket = hash % s->buckets;
    s->features++;
    for (uint32_t i = starts[bucket]; i < starts[bucket + 1]; i++) s->sums[entries[i].class_index] += s->weights[entries[i].weight];
}

void lt_scores(const uint32_t *text, int32_t count, float *scores) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, unpack);
    uint32_t classes = number(0);
    const unsigned char *biases = table + 12 + 4 * (size_t)classes;
    scorer s = {.buckets = number(4)};
    memcpy(s.weights, biases + 4 * (size_t)classes, sizeof s.weights);
    for (int32_t order = 1; starts && order <= ORDERS; order++) {
        for (int32_t at = 0; at + order <= count; at++) {
            uint32_t hash = 0x811C9DC5u + (uint32_t)order;
            for (int32_t k = 0; k < order; k++) hash = mix(hash, text[at + k]);
            add(&s, hash);
        }
    }
    // Whole words that no sequence contains, with the space before them.
    for (int32_t at = 0, start = -1; starts && at < count; at++) {
        if (text[at] != 0x20) continue;
        if (start >= 0 && at - start >= ORDERS) {
            uint32_t hash = 0x12345u;
            for (int32_t k = start; k < at; k++) hash = mix(hash, text[k]);
            add(&s, hash);
        }
        start = at;
    }
    for (uint32_t i = 0; i < classes; i++) {
        float bias;
        memcpy(&bias, biases + 4 * (size_t)i, 4);
        scores[i] = bias + (s.features > 0 ? s.sums[i] / sqrtf((float)s.features) : 0);
    }
}

uint64_t lt_fingerprint(void) {
    // FNV-1a.
    uint64_t hash = 0xCBF29CE484222325u;
    for (size_t i = 0; i < sizeof table; i++) hash = (hash ^ table[i]) * 0x100000001B3u;
    return hash;
}
