#!/usr/bin/env python3
"""Records tokenizations by llama.cpp with a Unigram vocabulary: Tests/InferenceTests/Golden/unigram.json.

    pip install llama-cpp-python==0.3.36
    Tests/Tools/fetch_llama_models.sh .build/llama-models
    Tests/Tools/record_unigram.py

llama.cpp publishes no test vectors for this vocabulary. The texts are those of the vectors of another vocabulary, and
additional texts that the character map changes.
"""
import json, pathlib

from llama_cpp import Llama

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / ".build" / "llama-models"
MORE = [
    "Hello world 你好  Ａ", "ﬁne ½ ㌀ ①", "tabs\tand\u00a0nbsp\u200bzero", "é é e\u0301", "unassigned \U0010ffff and \ue000 \ue000\ue001 x",
    "ΑΒΓ ЖЩ हिन्दी ไทย 한국어 日本語", "  leading and trailing  ", "\r\nline\r\n", "..." + "x" * 200, "🦄🦄🦄 \u200d ", "ﷺ",
]

model = Llama(str(MODELS / "ggml-vocab-nomic-bert-moe.gguf"), vocab_only=True, verbose=False)
texts = (MODELS / "ggml-vocab-llama-bpe.gguf.inp").read_text().split("\n__ggml_vocab_test__\n") + MORE
cases = [{"text": text, "tokens": model.tokenize(text.encode(), add_bos=False, special=False)} for text in texts]
marked = {"text": MORE[0], "tokens": model.tokenize(MORE[0].encode(), add_bos=True, special=False)}
output = ROOT / "Tests" / "InferenceTests" / "Golden" / "unigram.json"
output.write_text(json.dumps({"cases": cases, "marked": marked}) + "\n")
