// Scores texts for unsafe content: a linear classifier over words, pairs of words and sequences of letters, whose weights are in
// `guardrail.bin` (see Tests/Tools/Guardrail/train.py for the format and the training).
#ifndef GUARDRAIL_TABLE_H
#define GUARDRAIL_TABLE_H

#include <stdint.h>

/// The maximum number of symbols that are scored at once.
enum { GT_WINDOW = 2000 };

int32_t gt_category_count(void);
const char *gt_category(int32_t index);

/// The log-odds that a text is unsafe, and that it belongs to each category.
///
/// - symbols: folded code points; letters, digits and marks have bit 31 set, separators are spaces.
/// - count: at most GT_WINDOW.
/// - categories: `gt_category_count()` values, or null.
float gt_score(const uint32_t *symbols, int32_t count, float *categories);

/// A hash of the weights. It takes about a millisecond.
uint64_t gt_fingerprint(void);

#endif
