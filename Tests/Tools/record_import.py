#!/usr/bin/env python3
"""Records tiny random models in the Hugging Face form with what transformers computes: record_import.py FOLDER

Writes FOLDER/NAME with config.json, tokenizer.json, tokenizer_config.json, model.safetensors and expected.json (tokens of lines, and the
logits after some tokens), for ImportTests.
"""
import json
import pathlib
import shutil
import sys

import torch
import transformers

import check_import

LINES = ["Hello, world!", "It's 12345 o'clock  and\tall's well.", "Größe, naïve café", "привет мир", "你好，世界。", "  two  spaces ",
         "line\n\nbreaks\r\n", "def f(x):\n    return x + 1", "🙂 emoji 👩‍👩‍👧", "한국어 텍스트", "नमस्ते दुनिया", "a" * 40, "x\u0301y", ""]


def main():
    root = pathlib.Path(sys.argv[1])
    for family in ["qwen2", "mistral", "llama", "gemma2"]:
        folder = root / family
        shutil.rmtree(folder, ignore_errors=True)
        check_import.SIZE.update(num_hidden_layers=2, hidden_size=32, intermediate_size=48, num_attention_heads=2, num_key_value_heads=1)
        check_import.build(family, folder)
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
