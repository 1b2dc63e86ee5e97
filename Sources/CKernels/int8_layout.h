// What the integer kernels of all instruction sets share: how a layout's block is cut up.
#ifndef INT8_LAYOUT_H
#define INT8_LAYOUT_H

#include "ckernels.h"

#define INLINE static inline __attribute__((always_inline))

/// The facts of an integer layout as compile-time constants (every use passes a constant layout).
INLINE bool layout_is_4_bit(ck_layout layout) { return layout <= CK_U4_DM; }
INLINE bool layout_has_minimum(ck_layout layout) { return layout == CK_U4_DM || layout == CK_U8_DM; }
/// Products of 4 columns × 16 rows in a block.
INLINE int layout_steps(ck_layout layout) { return layout == CK_U8_D16 ? 4 : 8; }
INLINE size_t layout_code_bytes(ck_layout layout) { return layout_is_4_bit(layout) || layout == CK_U8_D16 ? 256 : 512; }
INLINE size_t layout_block_bytes(ck_layout layout) {
    return layout_code_bytes(layout) + (layout_has_minimum(layout) ? 64 : 32);
}
/// log2 of the codes' offset, or -1 without one.
INLINE int layout_offset_shift(ck_layout layout) {
    return layout == CK_U4_D ? 3 : layout == CK_U8_D ? 7 : layout == CK_U8_D16 ? 5 : -1;
}

/// Calls BODY(layout) with the matrix's integer layout as a constant.
#define FOR_INTEGER_LAYOUT(layout, BODY) \
    switch (layout) {                    \
        case CK_U4_D: BODY(CK_U4_D);     \
        case CK_U4_DM: BODY(CK_U4_DM);   \
        case CK_U8_D: BODY(CK_U8_D);     \
        case CK_U8_DM: BODY(CK_U8_DM);   \
        default: BODY(CK_U8_D16);        \
    }

#endif
