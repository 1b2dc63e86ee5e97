#ifndef SHA256_H
#define SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// The state of a computation of SHA-256 (FIPS 180-4). Copies of it continue independently.
typedef struct {
    uint32_t state[8];
    /// The bytes that were added. The last `length % 64` of them are in `block`.
    uint64_t length;
    uint8_t block[64];
    bool uses_instructions;
} sha256_context;

/// Whether this processor has instructions for SHA-256 that this code uses.
bool sha256_has_instructions(void);

/// Begins a computation, with the instructions of the processor if it has them.
void sha256_begin(sha256_context *context);

/// Begins a computation that uses no special instructions.
void sha256_begin_portable(sha256_context *context);

void sha256_add(sha256_context *context, const void *bytes, size_t count);

/// Writes the hash of all bytes that were added. The context cannot be continued afterwards.
void sha256_end(sha256_context *context, uint8_t digest[32]);

#endif
