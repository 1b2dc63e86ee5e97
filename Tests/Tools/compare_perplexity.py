#!/usr/bin/env python3
"""Compares the measurements of “fm model compare” with llama.cpp's: compare_perplexity.py FM A.gguf B.gguf TEXT [CHUNKS]

As llama-perplexity does it: windows of 512 tokens, whose second half is scored; the perplexity of both models, the divergence of B's
distributions from A's, and the share of equal most probable tokens. Needs llama-cpp-python.
"""
import json
import pathlib
import subprocess
import sys

import numpy
from llama_cpp import Llama

WINDOW = 512


def rows(path, text, chunks):
    """The logarithms of probabilities and the tokens that follow, chunk by chunk."""
    model = Llama(path, n_ctx=WINDOW, n_batch=WINDOW, logits_all=True, verbose=False)
    tokens = model.tokenize(text.encode(), add_bos=True, special=False)
    begins = tokens[0] == model.token_bos() and tokens[0] != model.tokenize(text.encode(), add_bos=False, special=False)[0]
    for chunk in range(min(chunks, len(tokens) // WINDOW)):
        window = tokens[chunk * WINDOW:(chunk + 1) * WINDOW]
        if begins:
            window[0] = model.token_bos()
        model.reset()
        model.eval(window)
        logits = numpy.array(model.scores[WINDOW // 2:WINDOW - 1], dtype=numpy.float64)
        logits -= logits.max(axis=1, keepdims=True)
        logits -= numpy.log(numpy.exp(logits).sum(axis=1, keepdims=True))
        yield logits, numpy.array(window[WINDOW // 2 + 1:])


def main():
    fm, a, b, text = sys.argv[1:5]
    chunks = int(sys.argv[5]) if len(sys.argv) > 5 else 20
    content = pathlib.Path(text).read_text()
    losses, divergences, same = [[], []], [], 0
    for (left, tokens), (right, other) in zip(rows(a, content, chunks), rows(b, content, chunks)):
        assert (tokens == other).all()
        for index, log in enumerate((left, right)):
            losses[index] += (-log[numpy.arange(len(tokens)), tokens]).tolist()
        divergences += (numpy.exp(left) * (left - right)).sum(axis=1).tolist()
        same += int((left.argmax(axis=1) == right.argmax(axis=1)).sum())
    d = numpy.array(divergences)
    theirs = {"perplexity A": numpy.exp(numpy.mean(losses[0])), "perplexity B": numpy.exp(numpy.mean(losses[1])), "divergence": d.mean(),
              "median": numpy.median(d), "95 %": numpy.percentile(d, 95), "99 %": numpy.percentile(d, 99), "same": same / len(d)}
    run = subprocess.run([fm, "model", "compare", a, b, "--text", text, "--chunks", str(chunks), "--json"], capture_output=True, text=True, check=True)
    report = json.loads(run.stdout)
    ours = {"perplexity A": report["models"][0]["perplexity"], "perplexity B": report["models"][1]["perplexity"],
            "divergence": report["divergence"], "median": report["median"], "95 %": report["percentile95"], "99 %": report["percentile99"],
            "same": report["sameToken"]}
    print(f"{len(d)} tokens       llama.cpp         fm   difference")
    for name, value in theirs.items():
        print(f"{name:14s} {value:12.5f} {ours[name]:12.5f} {100 * (ours[name] / value - 1):+8.2f} %")


if __name__ == "__main__":
    main()
