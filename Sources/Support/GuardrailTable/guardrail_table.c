#include "guardrail_table.h"

#include <math.h>
#include <string.h>

#pragma clang diagnostic ignored "-Wc23-extensions"
static const unsigned char table[] __attribute__((aligned(16))) = {
#embed "guardrail.bin"
};

enum { MAXIMUM_WORD = 40, MAXIMUM_LENGTH = 5, NAME = 16, BUCKETS = 1 << 20, HEADER = 20, MAXIMUM_LISTS = 16, MAXIMUM_CATEGORIES = 32 };
enum { SEED_WORD = 64, SEED_PAIR, SEED_SKIP, SEED_SIGN, SEED_SEQUENCE };
static const uint32_t IS_WORD = 0x80000000u;

// The table is part of the program: its numbers are right.
static uint32_t number(size_t at) {
    uint32_t value;
    memcpy(&value, table + at, 4);
    return value;
}

static float real(size_t at) {
    float value;
    memcpy(&value, table + at, 4);
    return value;
}

int32_t gt_category_count(void) { return (int32_t)number(8); }

const char *gt_category(int32_t index) { return (const char *)table + HEADER + NAME * (size_t)index; }

/// Where the parts of the table begin.
typedef struct {
    uint32_t slot_count, feature_count, categories, lists, list_words;
    size_t models, model_size, words;
    const uint16_t *slots, *features;
    const int8_t *by_category;
    int shift;
} layout;

static layout find_layout(void) {
    layout at = {number(0), number(4), number(8), number(12), number(16)};
    at.models = HEADER + NAME * (size_t)at.categories;
    at.model_size = 4 * (2 + 2 * (size_t)at.lists + 1);
    at.words = at.models + at.model_size * (at.categories + 1);
    size_t next = at.words + 8 * (size_t)at.list_words;
    at.slots = (const uint16_t *)(table + next);
    at.features = at.slots + 2 * (size_t)at.slot_count;
    at.by_category = (const int8_t *)(at.features + 2 * (size_t)at.feature_count);
    at.shift = __builtin_clz(at.slot_count) + 1;
    return at;
}

static uint32_t mix(uint32_t hash, uint32_t value) {
    hash = (hash ^ value) * 0x9E3779B1u;
    return hash ^ hash >> 15;
}

static uint32_t seeded(uint32_t seed) { return 0x811C9DC5u ^ seed; }

/// The features of a text: their numbers, and how often each occurs.
typedef struct {
    layout at;
    uint8_t counts[65536];
    uint16_t seen[MAXIMUM_LENGTH * (GT_WINDOW + 2) + 4 * GT_WINDOW];
    int32_t seen_count;
} bag;

static void add(bag *bag, uint32_t hash) {
    uint32_t bucket = hash % BUCKETS, key = bucket >> 4, slot = bucket * 0x9E3779B1u >> bag->at.shift;
    for (;; slot = (slot + 1) & (bag->at.slot_count - 1)) {
        uint32_t feature = bag->at.slots[2 * slot + 1];
        if (!feature) return;
        if (bag->at.slots[2 * slot] != key) continue;
        if (!bag->counts[feature]) bag->seen[bag->seen_count++] = (uint16_t)feature;
        if (bag->counts[feature] < 255) bag->counts[feature]++;
        return;
    }
}

/// Adds the features of a word and returns its hash.
static uint32_t add_word(bag *bag, const uint32_t *symbols, int32_t count) {
    uint32_t padded[MAXIMUM_WORD + 2], hash = seeded(SEED_WORD);
    int32_t length = count < MAXIMUM_WORD ? count : MAXIMUM_WORD;
    padded[0] = padded[length + 1] = ' ';
    for (int32_t i = 0; i < length; i++) {
        padded[i + 1] = symbols[i] & ~IS_WORD;
        hash = mix(hash, padded[i + 1]);
    }
    add(bag, hash);
    for (int32_t start = 0; start < length + 2; start++) {
        uint32_t sequence = mix(seeded(SEED_SEQUENCE), padded[start]);
        for (int32_t n = 1; n < MAXIMUM_LENGTH && start + n < length + 2; n++) {
            sequence = mix(sequence, padded[start + n]);
            add(bag, sequence);
        }
    }
    return hash;
}

/// The lists that a word is in, as bits.
static uint32_t lists_of(const layout *at, uint32_t hash, uint32_t *index) {
    // The last word whose hash is not greater. Without branches, because all results are equally likely.
    uint32_t low = 0;
    for (uint32_t count = at->list_words; count > 1;) {
        uint32_t half = count / 2;
        low += number(at->words + 8 * (size_t)(low + half)) <= hash ? half : 0;
        count -= half;
    }
    if (!at->list_words || number(at->words + 8 * (size_t)low) != hash) return 0;
    *index = low;
    return number(at->words + 8 * (size_t)low + 4);
}

/// 1 + ln n for small numbers.
enum { COMMON = 8 };
static const float common[COMMON + 1] = {0, 1, 1.6931472f, 2.0986123f, 2.3862944f, 2.6094379f, 2.7917595f, 2.9459101f, 3.0794415f};

float gt_score(const uint32_t *symbols, int32_t count, float *categories) {
    bag bag;
    bag.at = find_layout();
    memset(bag.counts, 0, sizeof bag.counts);
    bag.seen_count = 0;
    const layout *at = &bag.at;
    uint32_t before = 0, earlier = 0, hits[MAXIMUM_LISTS] = {0}, distinct[MAXIMUM_LISTS] = {0};
    uint32_t known[GT_WINDOW / 2 + 1];
    int32_t words = 0, known_count = 0;
    if (count > GT_WINDOW) count = GT_WINDOW;
    for (int32_t i = 0; i < count;) {
        if (!(symbols[i] & IS_WORD)) {
            if (symbols[i] != ' ') add(&bag, mix(seeded(SEED_SIGN), symbols[i]));
            i++;
            continue;
        }
        int32_t start = i;
        while (i < count && symbols[i] & IS_WORD) i++;
        uint32_t hash = add_word(&bag, symbols + start, i - start), index = 0;
        if (words > 0) add(&bag, mix(mix(seeded(SEED_PAIR), before), hash));
        if (words > 1) add(&bag, mix(mix(seeded(SEED_SKIP), earlier), hash));
        earlier = before;
        before = hash;
        words++;
        uint32_t lists = lists_of(at, hash, &index);
        if (!lists) continue;
        int is_new = 1;
        for (int32_t k = 0; k < known_count; k++) is_new &= known[k] != index;
        if (is_new) known[known_count++] = index;
        for (uint32_t list = 0; list < at->lists; list++) {
            hits[list] += lists >> list & 1;
            distinct[list] += is_new && (lists >> list & 1);
        }
    }

    float sum = 0, norm = 0, sums[MAXIMUM_CATEGORIES] = {0};
    for (int32_t i = 0; i < bag.seen_count; i++) {
        uint32_t feature = bag.seen[i];
        const uint16_t *entry = at->features + 2 * (size_t)(feature - 1);
        uint8_t times = bag.counts[feature];
        float value = (float)entry[1] * (times <= COMMON ? common[times] : 1 + logf(times));
        norm += value * value;
        sum += value * (float)(int16_t)entry[0];
        if (!categories) continue;
        const int8_t *row = at->by_category + (size_t)(feature - 1) * at->categories;
        for (uint32_t c = 0; c < at->categories; c++) sums[c] += value * row[c];
    }
    norm = norm > 0 ? sqrtf(norm) : 1;

    float dense[2 * MAXIMUM_LISTS + 1];
    for (uint32_t list = 0; list < at->lists; list++) {
        dense[2 * list] = log1pf((float)distinct[list]);
        dense[2 * list + 1] = log1pf(30 * (float)hits[list] / ((float)words + 10));
    }
    dense[2 * at->lists] = (log1pf((float)count) - 6) / 2;
    float result = 0;
    for (uint32_t model = 0; model <= (categories ? at->categories : 0); model++) {
        size_t start = at->models + at->model_size * model;
        float score = real(start) + real(start + 4) * (model ? sums[model - 1] : sum) / norm;
        for (uint32_t k = 0; k < 2 * at->lists + 1; k++) score += real(start + 8 + 4 * (size_t)k) * dense[k];
        if (model) categories[model - 1] = score;
        else result = score;
    }
    return result;
}

uint64_t gt_fingerprint(void) {
    // FNV-1a.
    uint64_t hash = 0xCBF29CE484222325u;
    for (size_t i = 0; i < sizeof table; i++) hash = (hash ^ table[i]) * 0x100000001B3u;
    return hash;
}
