#!/usr/bin/env python3
"""Records which types llama.cpp's quantiser gives to tensors: record_mixtures.py LLAMA_CPP/tests/snapshots >mixtures.json

For each model the numbers of its shape, and for each mixture the names by type, those of the mixture's own type left out.
"""
import json
import pathlib
import re
import sys

MODELS = ["qwen3-0.6b", "qwen3-14b", "meta-llama-3.1-70b-instruct", "gemma-3-4b-it"]
MIXTURES = ["F16", "BF16", "Q8_0", "Q6_K", "Q5_K_M", "Q5_K_S", "Q5_1", "Q5_0", "Q4_K_M", "Q4_K_S", "Q4_1", "Q4_0", "IQ4_NL", "IQ4_XS",
            "Q3_K_L", "Q3_K_M", "Q3_K_S", "Q2_K", "Q2_K_S", "IQ3_M", "IQ3_S", "IQ3_XS", "IQ3_XXS", "IQ2_M", "IQ2_S", "IQ2_XS", "IQ2_XXS"]


def read(path):
    text = path.read_text()
    model = {key: int(value) for key, value in re.findall(r"(n_\w+)=(\d+)", text)}
    model["mixtures"] = {}
    for name, body in re.findall(r"^\[(\w+)\] \w+\n((?:.+\n)*)", text, re.M):
        if name not in MIXTURES:
            continue
        types = {}
        for line in body.splitlines():
            tensor, kind = line.split()
            types.setdefault(kind.upper(), []).append(tensor)
        # Layers as numbers: the lists are long.
        model["mixtures"][name] = {
            kind: {part: [int(n) for n in sorted(set(re.findall(rf"blk\.(\d+)\.{re.escape(part)}$", "\n".join(names), re.M)), key=int)]
                   for part in sorted({re.sub(r"^blk\.\d+\.", "", n) for n in names})}
            for kind, names in types.items()}
    return model


def main():
    folder = pathlib.Path(sys.argv[1])
    print(json.dumps({name: read(folder / f"{name}.schema") for name in MODELS}, separators=(",", ":")))


if __name__ == "__main__":
    main()
