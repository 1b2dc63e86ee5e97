#!/usr/bin/env python3
"""Compares “fm model import” with llama.cpp's converter: check_import.py FM LLAMA_CPP [FAMILY …]

LLAMA_CPP is a source tree of llama.cpp (convert_hf_to_gguf.py). For each family a tiny random model is made with transformers, with a
tokenizer of its kind, and converted by both. All tensors must have equal numbers, and the metadata that both write must be equal.
Needs torch, transformers, tokenizers and gguf.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy
from gguf import GGUFReader

from import_families import ENCODERS, FAMILIES, PRE, build, build_encoder


EXTRA = {f: ["--no-mtp"] for f in FAMILIES if f.startswith(("qwen3_5", "qwen3_next"))} | {
    "embedding_gemma": ["--sentence-transformers-dense-modules"]}


def convert(llama, folder, out, kind, family=""):
    # The converter knows published tokenizers by a hash of what they make of a text: here it is told the name.
    code = f"""
import sys
sys.path.insert(0, {str(llama)!r})
sys.argv = ["convert", {str(folder)!r}, "--outfile", {str(out)!r}, "--outtype", "f32"] + {EXTRA.get(family, [])}
import conversion.base as base
base.TextModel.get_vocab_base_pre = lambda self, tokenizer: {PRE.get(kind, "default")!r}
for name in ("llama", "gemma", "ernie", "phi", "glm", "minicpm"):
    module = __import__("conversion." + name, fromlist=["x"])
    for item in vars(module).values():
        # Without tokenizer.model, it reads no SentencePiece: then only tensors and shapes are compared.
        if isinstance(item, type) and "set_vocab" in vars(item):
            item.set_vocab = (lambda self: None) if {kind in ("spm", "gemma4")!r} else (lambda self: self._set_vocab_gpt2())
import convert_hf_to_gguf
convert_hf_to_gguf.main()
"""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


# Where the converter is not followed: a model without positions has the context of its configuration, and there are as many tokens as
# embeddings; XLM-R's spaces are those of its pre-tokenizer; Nomic's published settings are unknown to transformers, whose defaults the
# converter takes.
DIFFERENT = {"granitemoehybrid": ("context_length", "ggml.tokens", "ggml.token_type"), "granitemoehybrid_dense": ("head_count_kv",),
             "xlm_roberta": ("add_space_prefix", "remove_extra_whitespaces"),
             "nomic_bert": ("block_count", "embedding_length", "feed_forward_length", "head_count")}


def values(reader, key):
    return reader.fields[key].contents() if key in reader.fields else None


def compare(ours, theirs, different=()):
    a, b = GGUFReader(ours), GGUFReader(theirs)
    problems = []
    left, right = {t.name: t for t in a.tensors}, {t.name: t for t in b.tensors}
    if set(left) != set(right):
        problems.append(f"tensors: {sorted(set(left) ^ set(right))}")
    for name in set(left) & set(right):
        rows = min(len(left[name].data), len(right[name].data))
        if name in ("token_embd.weight", "per_layer_token_embd.weight"):
            # Rows without a token: Gemma's converter counts added tokens twice.
            if not numpy.array_equal(left[name].data[:rows], right[name].data[:rows]):
                problems.append(name)
        elif list(left[name].shape) != list(right[name].shape) or not (
                # The last bit of exp differs.
                numpy.allclose(left[name].data, right[name].data, rtol=1e-6) if name.endswith("ssm_a")
                else numpy.array_equal(left[name].data, right[name].data)):
            problems.append(f"{name}: {list(left[name].shape)} {list(right[name].shape)}")
    missing = []
    for key in b.fields:
        if key.startswith(("GGUF.", "general.")) or key.endswith((".vocab_size",) + different):
            continue
        mine, their = values(a, key), values(b, key)
        if mine is None:
            missing.append(key)
        elif mine != their and not (isinstance(mine, float) and abs(mine - their) <= 1e-6 * abs(their)):
            problems.append(f"{key}: {str(mine)[:150]} / {str(their)[:150]}")
    return problems, missing


def main():
    fm, llama = sys.argv[1], pathlib.Path(sys.argv[2])
    failed = 0
    for family in sys.argv[3:] or list(FAMILIES) + list(ENCODERS) + [f + "+fused" for f in FAMILIES if "moe" in f or f in ("mixtral", "deepseek_v3", "qwen3_next")
                                                        if f not in ("granitemoehybrid_dense", "deepseek_v3_fp8")]:
        family, fused = family.removesuffix("+fused"), family.endswith("+fused")
        root = pathlib.Path(tempfile.mkdtemp())
        try:
            if family in ENCODERS:
                kind = ENCODERS[family][1]
                build_encoder(family, root / "hf")
            else:
                kind = build(family, root / "hf", not fused)
            run = subprocess.run([fm, "model", "import", str(root / "hf"), "--type", "f32", "--out", str(root / "ours.gguf"),
                                  "--name", "tiny"], capture_output=True, text=True)
            if run.returncode:
                print(f"{family}: {run.stderr.strip()}")
                failed += 1
                continue
            other = convert(llama, root / "hf", root / "theirs.gguf", kind, family)
            if fused and (other.returncode or family == "granitemoehybrid" or family == "qwen3_vl_moe"):
                # The converter does not know this form: the import of the published form must be the same.
                build(family, root / "hf2")
                other = subprocess.run([fm, "model", "import", str(root / "hf2"), "--type", "f32", "--out", str(root / "theirs.gguf"),
                                        "--name", "tiny"], capture_output=True, text=True)
            if other.returncode:
                print(f"{family}: imported; the converter failed: {other.stderr.strip().splitlines()[-1]}")
                continue
            problems, missing = compare(root / "ours.gguf", root / "theirs.gguf", DIFFERENT.get(family, ()))
            failed += bool(problems)
            family += " (experts in one tensor)" if fused else ""
            print(f"{family}: {'equal' if not problems else '; '.join(problems[:6])}" + (f" (only there: {', '.join(missing)})" if missing else ""))
        finally:
            shutil.rmtree(root)
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
