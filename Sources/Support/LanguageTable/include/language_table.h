// Identifies languages by sequences of letters: a linear classifier over hashed sequences, whose weights are in
// `languages.bin` (see Tests/Tools/train_languages.py for the format and the training).
#ifndef LANGUAGE_TABLE_H
#define LANGUAGE_TABLE_H

#include <stdint.h>

/// The number of classes: languages, and one for text in no language.
int32_t lt_class_count(void);
/// The ISO 639 code of a class.
const char *lt_code(int32_t class_index);
/// The unnormalised log-probability of each class for a text.
///
/// - text: Unicode code points of lowercase letters and marks, with one space before, between and after words.
/// - scores: `lt_class_count()` values.
void lt_scores(const uint32_t *text, int32_t count, float *scores);

/// A hash of the weights. It takes about a millisecond.
uint64_t lt_fingerprint(void);

#endif
