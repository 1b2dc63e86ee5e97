// Blocks of the tensor types that have integer kernels, as codes and scales; private to this target.
#ifndef QUANTS_H
#define QUANTS_H

#include "ckernels.h"

/// 32 consecutive elements: x = d·scale·(q − offset) + dmin·minimum, with a scale and a minimum for every 16 elements.
/// For IQ4 and MXFP4, `q` is an index into the table of the format. The scale of MXFP4 is the stored exponent.
typedef struct {
    uint8_t q[32];
    int8_t scale[2];
    uint8_t minimum[2], offset;
    float d, dmin;
} ck_group;

/// Reads elements `32·group ..< 32·group + 32` of the block at `source`.
void ck_read_group(ck_type type, const uint8_t *source, int group, ck_group *out);

#endif
