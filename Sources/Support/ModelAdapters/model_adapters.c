#include "model_adapters.h"

#include <string.h>

#pragma clang diagnostic ignored "-Wc23-extensions"
static const unsigned char minilm_ranker[] = {
#embed "minilm-l6-v2.ranker.fmadapter"
};
static const unsigned char qwen_assistant[] = {
#embed "qwen2.5-coder-1.5b.assistant.fmadapter"
};
static const unsigned char qwen_tagging[] = {
#embed "qwen2.5-coder-1.5b.tagging.fmadapter"
};
static const unsigned char smollm_tagging[] = {
#embed "smollm2-135m.tagging.fmadapter"
};

#define MINILM_L6_V2 "f9c17c19dfd19b75"
#define QWEN2_5_CODER_1_5B "a8af0622d2358987"
#define SMOLLM2_135M "29c947167a0d71b7"

static const struct {
    const char *fingerprint;
    const char *use;
    const unsigned char *bytes;
    size_t count;
} adapters[] = {
    {MINILM_L6_V2, "ranker", minilm_ranker, sizeof minilm_ranker},
    {QWEN2_5_CODER_1_5B, "assistant", qwen_assistant, sizeof qwen_assistant},
    {QWEN2_5_CODER_1_5B, "tagging", qwen_tagging, sizeof qwen_tagging},
    {SMOLLM2_135M, "tagging", smollm_tagging, sizeof smollm_tagging},
};

const unsigned char *model_adapter(const char *fingerprint, const char *use, size_t *count) {
    for (size_t i = 0; i < sizeof adapters / sizeof *adapters; i++)
        if (!strcmp(fingerprint, adapters[i].fingerprint) && !strcmp(use, adapters[i].use)) {
            *count = adapters[i].count;
            return adapters[i].bytes;
        }
    return NULL;
}
