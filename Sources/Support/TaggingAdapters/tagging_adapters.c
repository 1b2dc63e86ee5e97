#include "tagging_adapters.h"

#include <string.h>

#pragma clang diagnostic ignored "-Wc23-extensions"
static const unsigned char qwen[] = {
#embed "qwen2.5-coder-1.5b.fmadapter"
};
static const unsigned char smollm[] = {
#embed "smollm2-135m.fmadapter"
};

static const struct {
    const char *fingerprint;
    const unsigned char *bytes;
    size_t count;
} adapters[] = {
    {"a8af0622d2358987", qwen, sizeof qwen},
    {"29c947167a0d71b7", smollm, sizeof smollm},
};

const unsigned char *tagging_adapter(const char *fingerprint, size_t *count) {
    for (size_t i = 0; i < sizeof adapters / sizeof *adapters; i++)
        if (!strcmp(fingerprint, adapters[i].fingerprint)) {
            *count = adapters[i].count;
            return adapters[i].bytes;
        }
    return NULL;
}
