#!/usr/bin/env python3
"""Trains the table with which FoundationModels identifies languages, and writes the sentences of the tests.

    Tests/Tools/train_languages.py FOLDER Sources/LanguageTable/languages.bin Tests/FoundationModelsTests/Languages/sentences.tsv

The folder has `sentences.tsv.gz`, `word-pairs.tsv.gz` and `single-words.tsv.gz`: lines of a language code, a tab and a text. A linear
classifier (softmax regression) over hashed sequences of one to four letters is trained on sentences, on parts of them, on pairs of
words and on words; every tenth text of a language is held out, and the first twenty held sentences are written for the tests. A further class, "zxx" (no language), is trained on the source code of Python's library and on generated
data. Needs numpy and torch.

The file: the number of classes and of buckets as 32-bit integers, the scale of the weights as a 32-bit float, then for each class its
code in four bytes, then the biases as 32-bit floats, then the weights as bytes, [buckets][classes]. Little-endian.
"""
import gzip, pathlib, random, struct, sys, sysconfig, unicodedata
import numpy as np

BUCKETS = 13056
ORDERS = 4


def normalized(text):
    """Lowercase letters and marks, with one space around and between words."""
    out = []
    for c in text.lower():
        if c.isalpha() or unicodedata.category(c) in ("Mn", "Mc"):
            out.append(c)
        elif out and out[-1] != " ":
            out.append(" ")
    return " " + "".join(out).strip() + " "


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
                h = (h ^ points[k : k + count]) * np.uint32(0x9E3779B1)
                h ^= h >> np.uint32(15)
            found.append(h % np.uint32(BUCKETS))
    return np.concatenate(found).astype(np.int64)


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


def identifier(table):
    """A function that finds the language of a text with a trained table, as `LanguageIdentifier` does."""
    data = pathlib.Path(table).read_bytes()
    count, rows, scale = struct.unpack_from("<IIf", data)
    names = [data[12 + 4 * i :][:4].rstrip(b"\0").decode() for i in range(count)]
    bias = np.frombuffer(data, "<f4", count, 12 + 4 * count)
    codes = np.frombuffer(data, np.int8, rows * count, 12 + 8 * count).reshape(rows, count)

    def identify(text):
        found = buckets(text)
        return names[int((codes[found].astype(np.float32).sum(0) * (scale / len(found) ** 0.5) + bias).argmax())]

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

    samples = []
    for c, t in train:
        samples += [(c, t)] * 2
        words = t.split()
        if c != "zxx":
            for _ in range(6):
                size = rng.choice([1, 2, 2, 2, 3, 4, 6])
                at = rng.randrange(max(1, len(words) - size + 1))
                part = " ".join(words[at : at + size]) if len(words) > 3 else t[rng.randrange(len(t)) :][: rng.choice([4, 8, 16])]
                samples.append((c, part))
            # Languages are recognised among words of others, such as names.
            if rng.random() < 0.15:
                samples.append((c, t + " " + " ".join(rng.choice(train)[1].split()[:2])))
    samples = [(index[c], buckets(t)) for c, t in samples + pairs + single_words if normalized(t).strip()]
    torch.manual_seed(1)
    weights = torch.nn.EmbeddingBag(BUCKETS, len(names), mode="sum")
    torch.nn.init.zeros_(weights.weight)
    bias = torch.nn.Parameter(torch.zeros(len(names)))
    optimizer = torch.optim.Adam([*weights.parameters(), bias], lr=0.06)
    epochs, size = 14, 2048
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.06, total_steps=epochs * (len(samples) // size + 1))
    for epoch in range(epochs):
        rng.shuffle(samples)
        total = 0.0
        for at in range(0, len(samples), size):
            batch = samples[at : at + size]
            offsets = np.cumsum([0] + [len(b) for _, b in batch[:-1]])
            # The longer a text, the more certain its language: sums grow with the length, their noise with its root.
            roots = torch.tensor([[len(b) ** 0.5] for _, b in batch])
            logits = weights(torch.from_numpy(np.concatenate([b for _, b in batch])), torch.from_numpy(offsets)) / roots + bias
            loss = torch.nn.functional.cross_entropy(logits, torch.tensor([c for c, _ in batch]))
            optimizer.zero_grad()
            (loss + 3e-7 * weights.weight.square().sum()).backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(batch)
        print(f"epoch {epoch + 1}: loss {total / len(samples):.4f}", flush=True)

    w = weights.weight.detach().numpy()
    scale = float(np.quantile(np.abs(w), 0.9995) / 127)
    codes = np.clip(np.rint(w / scale), -127, 127).astype(np.int8)
    with open(table, "wb") as file:
        file.write(struct.pack("<IIf", len(names), BUCKETS, scale))
        for name in names:
            file.write(name.encode().ljust(4, b"\0"))
        file.write(bias.detach().numpy().astype("<f4").tobytes())
        file.write(codes.tobytes())

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
