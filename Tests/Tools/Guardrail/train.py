#!/usr/bin/env python3
"""Trains the table with which the guardrail scores texts, and prints its quality.

    Tests/Tools/Guardrail/train.py Sources/Support/GuardrailTable/guardrail.bin Tests/TextScreeningTests/Texts/scores.tsv

Trained on samples.jsonl.gz (comments and prompts with labels; see LICENSE-samples), on requests.py and on the words of lexicon.txt.
The model is linear: for "unsafe" and for each category a weight for each word, pair of words, and sequence of two to five letters of a
word that occurs in several texts (weighted by rarity, scaled by the log ratio of naive Bayes; Wang and Manning 2012), and for the
number of words of each list in lexicon.txt. Needs numpy, scipy and scikit-learn.

The file, little-endian: numbers of slots, features, categories, lists and list words as 32-bit integers; for each category its name in 16
bytes; for "unsafe" and each category 32-bit floats: bias, scale, weights of the dense features; for each word of a list its 32-bit
hash and the bits of its lists; a hash table with linear probing, for each slot 16 bits of the bucket and the 16-bit number of a feature,
from 1 (0: empty); for each feature a 16-bit weight and its 16-bit rarity (times 4096); for each feature and category an 8-bit weight.
"""
import gzip, json, pathlib, random, struct, sys, unicodedata
import numpy as np
import scipy.sparse as sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold

import requests

HERE = pathlib.Path(__file__).parent
BUCKETS = 1 << 20
SLOT_BITS = 17
MINIMUM_TEXTS = 4
WINDOW = 2000
MAXIMUM_WORD = 40
CATEGORIES = ["sexual", "hate", "violence", "harassment", "self-harm", "sexual/minors", "weapons", "crime"]
LABELS = {"S": 0, "H": 1, "H2": 1, "V": 2, "V2": 2, "HR": 3, "SH": 4, "S3": 5}
STROKES = {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ŧ": "t", "ƀ": "b", "ɨ": "i", "ʉ": "u", "ɍ": "r", "ɏ": "y", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d", "ı": "i"}
APOSTROPHES = dict.fromkeys(map(ord, "‘’ʼ＇´′"), "'")
DENSE_SCALE = 0.15
# How much words, pairs and signs count beside a sequence of letters.
WORD, PAIR, SIGN = 2, 1, 2
PSEUDO_COUNT = 3
REQUEST_WEIGHT = 0.06
# The part of the weights that is not scaled by the ratios.
PLAIN = 0.5


def fold(text):
    """Like TextFolding without diacritics, for texts in common scripts."""
    out = []
    for c in unicodedata.normalize("NFKD", text.translate(APOSTROPHES)):
        for d in unicodedata.normalize("NFKD", c.upper().lower()):
            category = unicodedata.category(d)
            if "\u0300" <= d <= "\u036f" or (category in ("Cf", "Cc", "Cn", "Cs") and not d.isspace()) or "\ufe00" <= d <= "\ufe0f":
                continue
            out.append(STROKES.get(d, d))
    return "".join(out)


def mix(h, value):
    h = ((h ^ value) * 0x9E3779B1) & 0xFFFFFFFF
    return h ^ (h >> 15)


def hashed(seed, values):
    h = 0x811C9DC5 ^ seed
    for v in values:
        h = mix(h, v)
    return h


SEED_WORD, SEED_PAIR, SEED_SKIP, SEED_SIGN, SEED_SEQUENCE = 64, 65, 66, 67, 68
word_cache = {}


def word(text):
    """Hash of a word, and the buckets of its features."""
    if text not in word_cache:
        letters = [ord(c) for c in text[:MAXIMUM_WORD]]
        h = hashed(SEED_WORD, letters)
        buckets = [(h % BUCKETS, WORD)]
        padded = [32] + letters + [32]
        for start in range(len(padded)):
            for length in range(2, min(5, len(padded) - start) + 1):
                buckets.append((hashed(SEED_SEQUENCE, padded[start:start + length]) % BUCKETS, 1))
        word_cache[text] = (h, buckets)
    return word_cache[text]


def items(text):
    """The items of a folded text: key, buckets; and its words."""
    found, words, current = [], [], ""
    def close():
        nonlocal current
        if current:
            words.append(current)
            h, buckets = word(current)
            found.append((h, buckets))
            for seed, back in ((SEED_PAIR, 2), (SEED_SKIP, 3)):
                if len(words) >= back:
                    k = hashed(seed, [word(words[-back])[0], h])
                    found.append((k, [(k % BUCKETS, PAIR)]))
            current = ""
    for c in text[:WINDOW]:
        if c.isalpha() or c.isdigit() or unicodedata.category(c) in ("Mn", "Mc", "Me"):
            current += c
        else:
            close()
            if not (c.isspace() or c == "_" or unicodedata.category(c) == "Pd"):
                k = hashed(SEED_SIGN, [ord(c)])
                found.append((k, [(k % BUCKETS, SIGN)]))
    close()
    return found, words


lexicon = {line.split(":")[0]: [w for w in line.split(":")[1].split()] for line in (HERE / "lexicon.txt").read_text().splitlines() if line}
LISTS = list(lexicon)
list_bits = {}
for index, name in enumerate(LISTS):
    for term in lexicon[name]:
        for part in fold(term).split("-"):
            list_bits[word(part)[0]] = list_bits.get(word(part)[0], 0) | 1 << index


def dense(words, length):
    result = []
    hits = [word(w)[0] for w in words if word(w)[0] in list_bits]
    for index in range(len(LISTS)):
        mine = [h for h in hits if list_bits[h] >> index & 1]
        result += [np.log1p(len(set(mine))), np.log1p(30 * len(mine) / (len(words) + 10))]
    result.append((np.log1p(length) - 6) / 2)
    return np.array(result) * DENSE_SCALE


class Data:
    """How often each bucket occurs in texts, and their dense features."""

    def __init__(self, texts):
        self.factor = np.ones(BUCKETS)
        columns, values, starts, self.dense = [], [], [0], []
        for text in texts:
            folded = fold(text)
            found, words = items(folded)
            counts = {}
            for key, buckets in found:
                for b, factor in buckets:
                    counts[b] = counts.get(b, 0) + 1
                    self.factor[b] = max(self.factor[b], factor)
            columns += counts.keys()
            values += counts.values()
            starts.append(len(columns))
            self.dense.append(dense(words, min(len(folded), WINDOW)))
        self.counts = sparse.csr_matrix((np.array(values, dtype=np.float64), columns, starts), shape=(len(texts), BUCKETS))
        self.dense = np.array(self.dense)

    def document_counts(self, rows):
        return np.asarray((self.counts[rows] > 0).sum(0)).ravel()

    def matrix(self, rarity):
        result = self.counts.copy()
        result.data = 1 + np.log(np.minimum(result.data, 255))
        result = result.multiply(rarity).tocsr()
        norms = np.sqrt(np.asarray(result.multiply(result).sum(1)).ravel())
        return sparse.diags(1 / np.where(norms > 0, norms, 1)) @ result


def rarity(data, rows, weight):
    """The weights of features by their number of texts; 0 for those that are too rare to learn from."""
    present = data.counts[rows] > 0
    weighted = np.asarray(present.T @ weight[rows]).ravel()
    texts = np.asarray(present.sum(0)).ravel()
    return np.where(texts >= MINIMUM_TEXTS, (np.log((weight[rows].sum() + 1) / (weighted + 1)) + 1) * data.factor, 0)


def fit(X, D, y, weight, extra, C=3.0):
    """Weights of features, weights of dense features, bias."""
    present = X > 0
    positive = 1 + np.asarray(present[y == 1].T @ weight[y == 1]).ravel() + extra
    negative = 1 + np.asarray(present[y == 0].T @ weight[y == 0]).ravel()
    ratio = np.log((positive / positive.sum()) / (negative / negative.sum()))
    balance = weight * np.where(y == 1, weight.sum() / 2 / weight[y == 1].sum(), weight.sum() / 2 / weight[y == 0].sum())
    model = LogisticRegression(C=C, solver="liblinear", max_iter=500, random_state=0)
    w = model.fit(sparse.hstack([X.multiply(ratio), X * PLAIN, D]).tocsr(), y, balance).coef_[0]
    return w[:BUCKETS] * ratio + w[BUCKETS:2 * BUCKETS] * PLAIN, w[2 * BUCKETS:], model.intercept_[0]


def main():
    samples = [json.loads(line) for line in gzip.open(HERE / "samples.jsonl.gz", "rt")]
    labels = np.full((len(samples), len(CATEGORIES)), -1)
    for i, s in enumerate(samples):
        for name, c in LABELS.items():
            if name in s:
                labels[i, c] = max(labels[i, c], s[name])
    unsafe = (labels == 1).any(1).astype(int)
    # The labels of the samples know nothing of these categories.
    labels[:, 6:] = 0
    made = requests.requests()
    random.Random(3).shuffle(made)
    n = len(samples)
    texts = [s["prompt"] for s in samples] + [t for t, _ in made]
    unsafe = np.r_[unsafe, [int(c is not None) for _, c in made]]
    labels = np.vstack([labels, [[int(c == name) for name in CATEGORIES] for _, c in made]])
    weight = np.r_[np.ones(n), np.full(len(made), REQUEST_WEIGHT)]
    data = Data(texts)
    pseudo = np.zeros(BUCKETS)
    for name in LISTS:
        for term in lexicon[name]:
            for part in fold(term).split("-"):
                pseudo[np.unique([b for b, _ in word(part)[1]])] += PSEUDO_COUNT

    # Cross-validation; everything is computed from the training part.
    precisions = []
    for seed in range(3):
        scores = np.zeros(len(texts))
        for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(texts, unsafe * 2 + (weight < 1)):
            X = data.matrix(rarity(data, train, weight))
            w, d, b = fit(X[train], data.dense[train], unsafe[train], weight[train], pseudo)
            scores[test] = X[test] @ w + data.dense[test] @ d + b
        precisions.append(average_precision_score(unsafe[:n], scores[:n]))
        print("area under the precision-recall curve: samples %.4f, requests %.4f" % (precisions[-1], average_precision_score(unsafe[n:], scores[n:])), flush=True)
    print("mean of samples %.4f" % np.mean(precisions))
    for t in (0, 0.5, 1, 1.5, 2, 2.5):
        hit = scores > t
        part = lambda rows, label: hit[rows][unsafe[rows] == label].mean()
        print("over %.1f: samples found %.3f wrong %.3f, requests found %.3f wrong %.4f" % (t, part(slice(0, n), 1), part(slice(0, n), 0), part(slice(n, None), 1), part(slice(n, None), 0)))

    rare = rarity(data, np.arange(len(texts)), weight)
    X, D = data.matrix(rare), data.dense
    models = [fit(X, D, unsafe, weight, pseudo)]
    for c in range(len(CATEGORIES)):
        known = labels[:, c] >= 0
        models.append(fit(X[known], D[known], labels[known, c], weight[known], np.zeros(BUCKETS)))
    used = np.flatnonzero(rare)
    out = bytearray(struct.pack("<5i", 1 << SLOT_BITS, len(used), len(CATEGORIES), len(LISTS), len(list_bits)))
    for name in CATEGORIES:
        out += name.encode().ljust(16, b"\0")
    slots = np.zeros((1 << SLOT_BITS, 2), dtype="<u2")
    for number, bucket in enumerate(used):
        slot = (int(bucket) * 0x9E3779B1 & 0xFFFFFFFF) >> (32 - SLOT_BITS)
        while slots[slot, 1]:
            slot = (slot + 1) % (1 << SLOT_BITS)
        slots[slot] = bucket >> 4, number + 1
    features = np.zeros((len(used), 2), dtype="<u2")
    features[:, 1] = np.round(rare[used] * 4096).clip(0, 65535)
    by_category = np.zeros((len(used), len(CATEGORIES)), dtype="i1")
    for index, (w, d, b) in enumerate(models):
        limit = 32767 if index == 0 else 127
        scale = (np.abs(w[used]).max() if index == 0 else np.quantile(np.abs(w[used]), 0.999)) / limit
        numbers = np.clip(np.round(w[used] / scale), -limit, limit)
        out += struct.pack("<2f", b, scale) + np.array(d * DENSE_SCALE, dtype="<f4").tobytes()
        if index == 0:
            features[:, 0] = numbers.astype("<i2").view("<u2")
        else:
            by_category[:, index - 1] = numbers
    for h, bits in sorted(list_bits.items()):
        out += struct.pack("<2I", h, bits)
    out += slots.tobytes() + features.tobytes() + by_category.tobytes()
    pathlib.Path(sys.argv[1]).write_bytes(out)
    print("%d features, %d bytes" % (len(used), len(out)))
    # Texts with their scores, to compare the program with.
    chosen = random.Random(5).sample([i for i in range(len(texts)) if len(texts[i]) < 300], 60)
    final = X @ models[0][0] + D @ models[0][1] + models[0][2]
    with open(sys.argv[2], "w") as f:
        for i in chosen:
            f.write("%.3f\t%s\n" % (final[i], json.dumps(texts[i])))


if __name__ == "__main__":
    main()
