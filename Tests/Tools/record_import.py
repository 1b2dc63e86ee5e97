#!/usr/bin/env python3
"""Records tiny random models in the Hugging Face form with what transformers computes: record_import.py FOLDER

Writes FOLDER/NAME with config.json, tokenizer.json, tokenizer_config.json, model.safetensors and expected.json (tokens of lines, and the
logits after some tokens) for four kinds, and FOLDER/Families/NAME.json for the others: their configuration, the names and shapes of their
tensors, whose numbers tests compute (see architecture_recipe.values), and logits. For ImportTests.
"""
import json
import math
import pathlib
import shutil
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file

import import_families
from architecture_recipe import values

LINES = ["Hello, world!", "It's 12345 o'clock  and\tall's well.", "Größe, naïve café", "привет мир", "你好，世界。", "  two  spaces ",
         "line\n\nbreaks\r\n", "def f(x):\n    return x + 1", "🙂 emoji 👩‍👩‍👧", "한국어 텍스트", "नमस्ते दुनिया", "a" * 40, "x\u0301y", ""]


# Rows of the embeddings: those of the tokenizers that ImportTests uses, and some without a token.
ROWS = {"spm": 424, "gemma4": 424}


def limits(name, shape, shifts):
    """The range of a tensor's numbers, such that every part of the model has an effect on the logits."""
    if name.endswith("norm.weight") or "layernorm" in name or name.endswith(("norm_1.weight", "norm_2.weight", "q_norm", "mamba.D")):
        return (-0.5, 0.5) if shifts and "linear_attn.norm" not in name else (0.5, 1.5)
    if name.endswith("A_log"):
        return (-1.0, 1.0)
    if name.endswith(("layer_scalar", "scale")):
        return (0.5, 1.2)
    if "embed_tokens" in name:
        return (-0.9, 0.9)
    if len(shape) == 1 or name.endswith("_bias"):
        return (-0.4, 0.4)
    if "conv" in name and len(shape) == 3:
        return (-0.9, 0.9)
    bound = 1.3 * math.sqrt(3 / shape[-1])
    return (-bound, bound)


def record(family, target):
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        name, kind, settings, *vision = import_families.FAMILIES[family]
        rows = ROWS.get(kind, 360)
        import_families.FAMILIES[family] = (name, kind, {**settings, "vocab_size": rows}, *vision)
        import_families.build(family, folder)
        config = json.loads((folder / "config.json").read_text())
        shifts = family.startswith(("gemma", "qwen3_next", "qwen3_5")) and not family.startswith("gemma4")
        tensors = {}
        for tensor, old in load_file(folder / "model.safetensors").items():
            low, high = limits(tensor, old.shape, shifts)
            low, high = round(low, 4), round(high, 4)
            numbers = values(tensor, list(old.shape), low, high, 1).reshape(tuple(old.shape))
            tensors[tensor] = (torch.from_numpy(numbers), low, high)
        save_file({k: v[0].contiguous() for k, v in tensors.items()}, folder / "model.safetensors", metadata={"format": "pt"})
        kinds = transformers.AutoModelForImageTextToText if vision else transformers.AutoModelForCausalLM
        model, info = kinds.from_pretrained(folder, torch_dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
        assert not info["missing_keys"] and not info["unexpected_keys"], info
        tokens = [(7 * i * i + 3 * i + 11) % (rows - 10) for i in range(40)]
        with torch.no_grad():
            logits = model.eval()(input_ids=torch.tensor([tokens]), use_cache=False).logits[0, -1]
        print(family, "logits", float(logits.std()))
        target.write_text(json.dumps({
            "config": config, "tokenizer": "mistral" if kind in ROWS else "qwen2", "tokens": tokens,
            "tensors": [{"name": k, "shape": list(v[0].shape), "low": v[1], "high": v[2]} for k, v in sorted(tensors.items()) if "visual." not in k],
            "logits": [round(x, 5) for x in logits.tolist()]}, separators=(",", ":")))
    finally:
        shutil.rmtree(folder)


def main():
    families = pathlib.Path(sys.argv[1]) / "Families"
    families.mkdir(parents=True, exist_ok=True)
    for family in sys.argv[2:] or [f for f in import_families.FAMILIES if f not in ("minicpm", "gpt_oss_mxfp4") and not f.endswith("_fp8")]:
        record(family, families / f"{family}.json")
    if sys.argv[2:]:
        return
    root = pathlib.Path(sys.argv[1])
    for family in ["qwen2", "mistral", "llama", "gemma2"]:
        folder = root / family
        shutil.rmtree(folder, ignore_errors=True)
        import_families.SIZE.update(num_hidden_layers=2, hidden_size=32, intermediate_size=48, num_attention_heads=2, num_key_value_heads=1)
        import_families.build(family, folder)
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, torch_dtype=torch.float32, attn_implementation="eager").eval()
        fast = transformers.AutoTokenizer.from_pretrained(folder)
        tokens = fast.encode("The cat sat on the mat, and it's 4.50 euros.", add_special_tokens=False)
        with torch.no_grad():
            logits = model(torch.tensor([tokens])).logits[0, -1].tolist()
        expected = {"lines": [{"text": line, "ids": fast.encode(line, add_special_tokens=False)} for line in LINES],
                    "tokens": tokens, "logits": [round(x, 6) for x in logits]}
        (folder / "expected.json").write_text(json.dumps(expected, ensure_ascii=False))
        for name in ("generation_config.json",):
            (folder / name).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
