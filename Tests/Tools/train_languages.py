#!/usr/bin/env python3
"""Trains the table with which FoundationModels identifies languages, and writes the sentences of the tests.

    Tests/Tools/train_languages.py FOLDER Sources/Support/LanguageTable/languages.bin Tests/FoundationModelsTests/Languages/sentences.tsv

The folder has `sentences.tsv.gz`, `word-pairs.tsv.gz` and `single-words.tsv.gz`: lines of a language code, a tab and a text. A linear
classifier (softmax regression) over hashed sequences of one to five letters and words is trained on sentences, on parts of them, on
pairs of words and on words, of which random features are left out, so that it relies on no single one; every tenth text of a language
is held out, and the first twenty held sentences are written for the tests. A further class, "zxx" (no language), is trained on the
source code of Python's library and on generated data. The weights are the means of several such classifiers, trained on other parts
of the sentences. Then most weights become zero: those that are closest to the median of their bucket, which has the same effect on all
classes. Needs numpy and torch; takes about ten minutes.

The file, little-endian: the number of classes, of buckets and of weights that are not zero as 32-bit integers; for each class its code
in four bytes; the biases as 32-bit floats; the 16 values of weights as 32-bit floats; then bits, the lowest of each byte first. They are
for each bucket the number of its weights, and for each weight the number of classes between this and the previous class, and the index
of its value in four bits. Numbers are Rice codes with the parameter 2: ones and a zero, as many as the number divided by 4, and the remainder in
two bits.
"""
import gzip, pathlib, random, struct, sys, sysconfig, unicodedata
import numpy as np

BUCKETS = 131072
ORDERS = 5
CLASSIFIERS = 3
WEIGHTS = 870_000  # as many as one megabyte has room for
VALUES = 16


def normalized(text):
    """Lowercase letters and marks, with one space around and between words."""
    out = []
    for c in text.lower():
        if c.isalpha() or unicodedata.category(c) in ("Mn", "Mc"):
            out.append(c)
        elif out and out[-1] != " ":
            out.append(" ")
    return " " + "".join(out).strip() + " "


def mixed(h, points):
    h = (h ^ points) * np.uint32(0x9E3779B1)
    return h ^ (h >> np.uint32(15))


def buckets(text):
    points = np.array([ord(c) for c in normalized(text)[:600]], dtype=np.uint32)
    found = []
    with np.errstate(over="ignore"):
        for order in range(1, ORDERS + 1):
            count = len(points) - order + 1
            if count <= 0:
                break
            h = np.full(count, 0x811C9DC5 + order, dtype=np.uint32)
            for k in range(order):
                h = mixed(h, points[k : k + count])
            found.append(h % np.uint32(BUCKETS))
        # Whole words that no sequence contains, with the space before them.
        spaces = np.flatnonzero(points == 32)
        for start, end in zip(spaces[:-1], spaces[1:]):
            if end - start >= ORDERS:
                h = np.uint32(0x12345)
                for point in points[start:end]:
                    h = mixed(h, point)
                found.append(np.array([h % np.uint32(BUCKETS)]))
    return np.concatenate(found).astype(np.int32)


def code_lines(count, rng):
    files = sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    lines = [l.strip() for f in files for l in f.read_text(errors="ignore").splitlines() if len(l.strip()) > 12 and not l.strip().startswith(("#", '"'))]
    lines = rng.sample([l for l in lines if any(c in l for c in "()=[]{}:._")], count - count // 4)
    letters = "abcdefghijklmnopqrstuvwxyz"
    for _ in range(count // 4):
        word = lambda: "".join(rng.choice(letters) for _ in range(rng.randint(2, 12)))
        lines.append(rng.choice([
            "https://{}.{}/{}?{}={}".format(word(), rng.choice(["com", "org", "io"]), word(), word(), rng.randint(0, 9999)),
            '{"%s": %d, "%s": "%s"}' % (word(), rng.randint(0, 999), word(), word()),
            "/usr/%s/%s.%s" % (word(), word(), rng.choice(["so", "py", "txt"])), "".join(rng.choice("0123456789abcdef") for _ in range(32)),
            "%s --%s=%s -%s | %s" % (word(), word(), word(), rng.choice(letters), word()), "".join(rng.choice("ACGT") for _ in range(40)),
        ]))
    return lines


def divided(path):
    """The held texts of a file, and the others."""
    by_language = {}
    for line in gzip.open(path, "rt", encoding="utf-8"):
        code, text = line.rstrip("\n").split("\t", 1)
        by_language.setdefault(code, []).append(text)
    held = [(c, t) for c, lines in by_language.items() for t in lines[::10]]
    return held, [(c, t) for c, lines in by_language.items() for i, t in enumerate(lines) if i % 10]


class Bits:
    """Bits, the lowest first."""

    def __init__(self):
        self.bytes, self.value, self.count = bytearray(), 0, 0

    def plain(self, number, length):
        self.value |= number << self.count
        self.count += length
        while self.count >= 8:
            self.bytes.append(self.value & 255)
            self.value >>= 8
            self.count -= 8

    def rice(self, number):
        ones = number >> 2
        self.plain((1 << ones) - 1, ones + 1)
        self.plain(number & 3, 2)


def values_of(weights):
    """The values to which weights are rounded: the means of clusters (Lloyd's algorithm)."""
    weights = np.sort(weights)
    values = weights[(np.arange(VALUES) * 2 + 1) * len(weights) // (2 * VALUES)].astype(np.float64)
    sums = np.concatenate([[0], np.cumsum(weights, dtype=np.float64)])
    for _ in range(50):
        ends = np.concatenate([[0], np.searchsorted(weights, (values[:-1] + values[1:]) / 2), [len(weights)]])
        values = (sums[ends[1:]] - sums[ends[:-1]]) / np.maximum(1, ends[1:] - ends[:-1])
    return values.astype(np.float32)


def encoded(names, bias, weights):
    used = weights != 0
    values = values_of(weights[used])
    bits = Bits()
    for row, mask in zip(weights, used):
        classes = np.flatnonzero(mask)
        bits.rice(len(classes))
        previous = -1
        for c in classes:
            bits.rice(int(c) - previous - 1)
            bits.plain(int(np.abs(values - row[c]).argmin()), 4)
            previous = int(c)
    bits.plain(0, 72)  # so that eight bytes can be read everywhere
    codes = b"".join(name.encode().ljust(4, b"\0") for name in names)
    header = struct.pack("<III", len(names), len(weights), int(used.sum()))
    return header + codes + bias.astype("<f4").tobytes() + values.astype("<f4").tobytes() + bytes(bits.bytes)


def identifier(table):
    """A function that finds the language of a text with a trained table, as `LanguageIdentifier` does."""
    data = pathlib.Path(table).read_bytes()
    count, rows, _ = struct.unpack_from("<III", data)
    names = [data[12 + 4 * i :][:4].rstrip(b"\0").decode() for i in range(count)]
    bias = np.frombuffer(data, "<f4", count, 12 + 4 * count)
    values = np.frombuffer(data, "<f4", VALUES, 12 + 8 * count)
    stream = np.unpackbits(np.frombuffer(data, np.uint8, offset=12 + 8 * count + 4 * VALUES), bitorder="little").tolist()
    at = 0

    def plain(length):
        nonlocal at
        at += length
        return sum(bit << i for i, bit in enumerate(stream[at - length : at]))

    def rice():
        nonlocal at
        start = at
        while stream[at]:
            at += 1
        at += 1
        return (at - 1 - start) << 2 | plain(2)

    weights = np.zeros((rows, count), dtype=np.float32)
    for row in weights:
        c = -1
        for _ in range(rice()):
            c += rice() + 1
            row[c] = values[plain(4)]

    def identify(text):
        found = buckets(text)
        return names[int((weights[found].sum(0) / len(found) ** 0.5 + bias).argmax())]

    return identify


def main(folder, table, tests):
    import torch

    rng = random.Random(5)
    held, train = divided(f"{folder}/sentences.tsv.gz")
    held_pairs, pairs = divided(f"{folder}/word-pairs.tsv.gz")
    single_words = divided(f"{folder}/single-words.tsv.gz")[1]
    code = code_lines(4000, rng)
    held += [("zxx", t) for t in code[::10]]
    train += [("zxx", t) for i, t in enumerate(code) if i % 10]
    names = sorted({c for c, _ in train})
    index = {c: i for i, c in enumerate(names)}

    def parts():
        """Sentences, and random parts of them."""
        for c, t in train:
            yield from [(c, t)] * 2
            words = t.split()
            if c != "zxx":
                for _ in range(6):
                    size = rng.choice([1, 2, 2, 2, 3, 4, 6])
                    at = rng.randrange(max(1, len(words) - size + 1))
                    part = " ".join(words[at : at + size]) if len(words) > 3 else t[rng.randrange(len(t)) :][: rng.choice([4, 8, 16])]
                    yield c, part
                # Languages are recognised among words of others, such as names.
                if rng.random() < 0.15:
                    yield c, t + " " + " ".join(rng.choice(train)[1].split()[:2])

    def classifier(seed, epochs=4, size=2048, rate=0.06):
        texts = [*parts(), *pairs, *single_words]
        samples = [(index[c], buckets(t)) for c, t in texts if normalized(t).strip()]
        left_out = np.random.default_rng(seed)
        weights = torch.nn.Parameter(torch.zeros(BUCKETS, len(names)))
        bias = torch.nn.Parameter(torch.zeros(len(names)))
        optimizer = torch.optim.Adam([weights, bias], lr=rate)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=epochs * (len(samples) // size + 1))
        for epoch in range(epochs):
            rng.shuffle(samples)
            total = 0.0
            for at in range(0, len(samples), size):
                batch = samples[at : at + size]
                # Up to half of the features are left out.
                kept = [b[left_out.random(len(b)) > 0.5 * left_out.random()] if len(b) > 12 else b for _, b in batch]
                offsets = np.cumsum([0] + [len(b) for b in kept[:-1]])
                sums = torch.nn.functional.embedding_bag(
                    torch.from_numpy(np.concatenate(kept)).long(), weights, torch.from_numpy(offsets), mode="sum")
                # The longer a text, the more certain its language: sums grow with the length, their noise with its root.
                logits = sums / torch.tensor([[max(1, len(b)) ** 0.5] for b in kept]) + bias
                loss = torch.nn.functional.cross_entropy(logits, torch.tensor([c for c, _ in batch]))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                total += loss.item() * len(batch)
            print(f"classifier {seed + 1}, epoch {epoch + 1}: loss {total / len(samples):.4f}", flush=True)
        occurrences = np.ones(BUCKETS)
        for _, b in samples[::2]:
            np.add.at(occurrences, b, 1)
        return weights.detach().numpy(), bias.detach().numpy(), occurrences

    # The mean of linear classifiers is one: it has their mean scores.
    weights, bias, occurrences = (sum(x) / CLASSIFIERS for x in zip(*(classifier(seed) for seed in range(CLASSIFIERS))))
    # Prompts are rarely source code, which is also recognised by its punctuation: an English sentence should not count as code.
    bias[index["zxx"]] -= 1
    weights -= np.median(weights, axis=1, keepdims=True)
    importance = np.abs(weights) * occurrences[:, None] ** 0.2 * np.where(weights < 0, 0.8, 1)
    weights[importance < np.partition(importance, -WEIGHTS, axis=None)[-WEIGHTS]] = 0
    pathlib.Path(table).write_bytes(encoded(names, bias, weights))

    identify = identifier(table)
    cut = []
    for c, t in held:
        words = t.split()
        if len(words) >= 4:
            at = rng.randrange(len(words) - 1)
            cut.append((c, " ".join(words[at : at + 2])))
    for kind, texts in (("sentences", held), ("pairs of words", held_pairs), ("pairs cut from sentences", cut)):
        right, total, wrong = 0, 0, {}
        for c, t in texts:
            if c == "zxx" or not normalized(t).strip():
                continue
            total += 1
            best = identify(t)
            right += best == c
            if best != c:
                wrong[c + ">" + best] = wrong.get(c + ">" + best, 0) + 1
        print(f"{kind}: {100 * right / total:.2f} % of {total}", sorted(wrong.items(), key=lambda x: -x[1])[:12])
    pathlib.Path(tests).parent.mkdir(parents=True, exist_ok=True)
    written = {"zxx": 20}
    with open(tests, "w", encoding="utf-8") as file:
        for c, t in held:
            written[c] = written.get(c, 0) + 1
            if written[c] <= 20:
                file.write(f"{c}\t{t}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
