// Blocks of the tensor types that have integer kernels, as codes and scales; private to this target.
#ifndef QUANTS_H
#define QUANTS_H

#include "ckernels.h"

/// 32 consecutive elements: x = d·scale·(value of q − offset) ± dmin·minimum, with a scale and a minimum for every 16 elements. Values and
/// offset are those of the layout; `d` and `dmin` are binary16, as in the file. The scale of MXFP4 is the stored exponent.
typedef struct {
    uint8_t q[32];
    int8_t scale[2];
    uint8_t minimum[2];
    uint16_t d, dmin;
} ck_group;

/// Reads elements `32·group ..< 32·group + 32` of the block at `source`, of a type with an integer layout.
void ck_read_group(ck_type type, const uint8_t *source, int group, ck_group *out);

#endif
