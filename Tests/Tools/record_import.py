#!/usr/bin/env python3
"""Records tiny random models in the Hugging Face form with what transformers computes: record_import.py FOLDER

Writes FOLDER/NAME with config.json, tokenizer.json, tokenizer_config.json, model.safetensors and expected.json (tokens of lines, and the
logits after some tokens) for four kinds, and FOLDER/Families/NAME.json for the others: their configuration, the names and shapes of their
tensors, whose numbers tests compute (see architecture_recipe.values), and logits; FOLDER/Encoders/NAME.json likewise for models for
embeddings, with a vector. For ImportTests and FamilyImportTests.
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


def record_encoder(family, target):
    """As record, with the vector of a text as Sentence Transformers computes it, and tokens of lines."""
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        fast = import_families.build_encoder(family, folder)
        pooling = import_families.ENCODERS[family][3]
        tensors = {}
        for tensor, old in load_file(folder / "model.safetensors").items():
            low, high = (round(x, 4) for x in limits(tensor, old.shape, family == "embedding_gemma"))
            if "norm" in tensor.lower() or "_ln" in tensor:
                low, high = (-0.5, 0.5) if family == "embedding_gemma" or tensor.endswith("bias") else (0.5, 1.5)
            if "embeddings" in tensor and len(old.shape) == 2:
                low, high = -0.8, 0.8
            tensors[tensor] = (torch.from_numpy(values(tensor, list(old.shape), low, high, 1).reshape(tuple(old.shape))), low, high)
        save_file({k: v[0].contiguous() for k, v in tensors.items()}, folder / "model.safetensors", metadata={"format": "pt"})
        config = json.loads((folder / "config.json").read_text())
        dense = []
        for module in ("2_Dense", "3_Dense"):
            if (folder / module).exists():
                old = load_file(folder / module / "model.safetensors")["linear.weight"]
                low, high = (round(x, 4) for x in limits(module, old.shape, False))
                dense.append((module, torch.from_numpy(values(module, list(old.shape), low, high, 1).reshape(tuple(old.shape))), low, high))
        if family == "nomic_bert":
            # transformers has its own names of the settings.
            own = dict(config, hidden_size=config["n_embd"], num_hidden_layers=config["n_layer"], num_attention_heads=config["n_head"],
                       intermediate_size=config["n_inner"], layer_norm_eps=config["layer_norm_epsilon"], max_position_embeddings=66)
            (folder / "config.json").write_text(json.dumps(own))
        model = transformers.AutoModel.from_pretrained(folder, torch_dtype=torch.float32, attn_implementation="eager").eval()
        tokens = [(5 * i * i + 3 * i + 11) % (len(fast) - 6) + 5 for i in range(24)]
        with torch.no_grad():
            output = model(input_ids=torch.tensor([tokens])).last_hidden_state[0]
            vector = {"mean_tokens": output.mean(0), "cls_token": output[0], "cls": output[0], "lasttoken": output[-1]}[pooling]
            head = []
            if family == "modernbert_ranker":
                # The modules that Sentence Transformers computes after the pooling.
                def part(name, shape, low, high):
                    head.append({"name": name, "shape": shape, "low": low, "high": high})
                    return torch.from_numpy(values(name, shape, low, high, 1).reshape(tuple(shape)))
                width = len(vector)
                middle = torch.nn.functional.gelu(part("2_Dense/linear.weight", [width, width], -0.3, 0.3) @ vector)
                middle = torch.nn.functional.layer_norm(middle, (width,), part("3_LayerNorm/norm.weight", [width], 0.5, 1.5),
                                                        part("3_LayerNorm/norm.bias", [width], -0.5, 0.5))
                vector = part("4_Dense/linear.weight", [1, width], -0.5, 0.5) @ middle + part("4_Dense/linear.bias", [1], 0.1, 0.9)
            for _, weight, _, _ in dense:
                vector = weight @ vector
            if not head:
                vector = vector / vector.norm()
        # Tokens of each text's own boundaries are added by the model's tokenizer.
        lines = [{"text": line, "ids": fast.encode(line)} for line in LINES + ["ﬁne Ａ e\u0301\u3000x  — y"]]
        kind = import_families.ENCODERS[family][1]
        shared = {"spm": "mistral", "qwen2": "qwen2"}.get(kind)
        print(family, "tokens", lines[0]["ids"][:5], "vector", vector[:3].tolist())
        target.write_text(json.dumps({
            "config": config, "tokenizer": shared or "", "pooling": json.loads((folder / "1_Pooling/config.json").read_text()),
            "tokens": tokens,
            "tokenizerFiles": {} if shared else {
                name: json.loads((folder / name).read_text()) for name in ("tokenizer.json", "tokenizer_config.json")},
            "tensors": [{"name": k, "shape": list(v[0].shape), "low": v[1], "high": v[2]} for k, v in sorted(tensors.items())],
            "dense": [{"name": m, "shape": list(w.shape), "low": low, "high": high} for m, w, low, high in dense],
            **({"head": head, "question": LINES[0], "text": LINES[1], "pair": fast.encode(LINES[0], LINES[1])} if head else {}),
            "lines": [] if shared else lines, "vector": [round(x, 6) for x in vector.tolist()]}, separators=(",", ":")))
    finally:
        shutil.rmtree(folder)


def main():
    encoders = pathlib.Path(sys.argv[1]) / "Encoders"
    encoders.mkdir(parents=True, exist_ok=True)
    for family in import_families.ENCODERS:
        if not sys.argv[2:] or family in sys.argv[2:]:
            record_encoder(family, encoders / f"{family}.json")
    families = pathlib.Path(sys.argv[1]) / "Families"
    families.mkdir(parents=True, exist_ok=True)
    for family in [f for f in sys.argv[2:] if f in import_families.FAMILIES] or [] if sys.argv[2:] else [f for f in import_families.FAMILIES if f not in ("minicpm", "gpt_oss_mxfp4") and not f.endswith("_fp8")]:
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
