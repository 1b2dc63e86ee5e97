/// Counts the allocations of a thread, by replacing the allocation functions of the C library.
#ifndef ALLOCATION_COUNTER_H
#define ALLOCATION_COUNTER_H

#include <stdint.h>

/// The number of allocations that the calling thread has made; -1 where they are not counted (systems other than Linux with
/// glibc, and builds with a sanitizer, which replaces these functions itself).
int64_t allocation_count(void);

#endif
