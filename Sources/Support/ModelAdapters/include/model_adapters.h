// Adapters that belong to models: part of the programs that use or install them, so that nothing else needs to be downloaded.
#ifndef MODEL_ADAPTERS_H
#define MODEL_ADAPTERS_H

#include <stddef.h>

/// The file of the adapter of the model with a fingerprint for a use ("assistant", "tagging" or "ranker"), and its size in bytes; null if
/// there is none.
const unsigned char *model_adapter(const char *fingerprint, const char *use, size_t *count);

#endif
