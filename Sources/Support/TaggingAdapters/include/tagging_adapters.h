// Adapters for content tagging, trained with Benchmarks/Adapters/tagging: part of the program, so that nothing needs to be installed.
#ifndef TAGGING_ADAPTERS_H
#define TAGGING_ADAPTERS_H

#include <stddef.h>

/// The file of the adapter for the model with a fingerprint, and its size in bytes; null if there is none.
const unsigned char *tagging_adapter(const char *fingerprint, size_t *count);

#endif
