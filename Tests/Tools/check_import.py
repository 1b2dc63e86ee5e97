#!/usr/bin/env python3
"""Compares “fm model import” with llama.cpp's converter: check_import.py FM LLAMA_CPP [FAMILY …]

LLAMA_CPP is a source tree of llama.cpp (convert_hf_to_gguf.py). For each family a tiny random model is made with transformers, with a
tokenizer of its kind, and converted by both. All tensors must have equal numbers, and the metadata that both write must be equal.
Needs torch, transformers, tokenizers and gguf.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy
import torch
import transformers
from gguf import GGUFReader
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

TEXTS = ["The cat sat on the mat, and 123 dogs didn't care: it's 4.50 euros! Größe, naïve café — привет мир, 你好。\n\n  def f(x):\n\treturn x"] * 4
C = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
END = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
PATTERNS = {
    "llama3": C + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|" + END,
    "qwen2": C + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|" + END,
    "gpt4o": (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + C + "?"
              r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + C + "?"
              r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
}
PRE = {"llama3": "llama-bpe", "qwen2": "qwen2", "gpt4o": "gpt-4o", "digits": "smollm"}
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"

SIZE = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=512)
# model class, tokenizer, settings
FAMILIES = {
    "llama": ("Llama", "llama3", dict(rope_parameters=dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0,
                                                           high_freq_factor=4.0, original_max_position_embeddings=128))),
    "mistral": ("Mistral", "spm", dict(head_dim=32, sliding_window=None)),
    "qwen2": ("Qwen2", "qwen2", dict(tie_word_embeddings=True)),
    "qwen3": ("Qwen3", "qwen2", dict(head_dim=32)),
    "qwen3_moe": ("Qwen3Moe", "qwen2", dict(head_dim=32, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32)),
    "phi3": ("Phi3", "gpt4o", dict(pad_token_id=0)),
    "smollm3": ("SmolLM3", "llama3", dict(pad_token_id=0)),
    "granite": ("Granite", "digits", dict(attention_multiplier=0.2, embedding_multiplier=3.0, residual_multiplier=0.4,
                                          logits_scaling=2.0)),
    "olmo2": ("Olmo2", "digits", {}),
    "ernie4_5": ("Ernie4_5", "spm", dict(head_dim=16)),
    "gemma": ("Gemma", "spm", dict(head_dim=16)),
    "gemma2": ("Gemma2", "spm", dict(head_dim=16, query_pre_attn_scalar=16, sliding_window=64)),
    "gemma3_text": ("Gemma3", "spm", dict(head_dim=16, query_pre_attn_scalar=16, sliding_window=64)),
}


def tokenizer(kind, folder):
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    if kind == "spm":
        special = ["<unk>", "<s>", "</s>"]
        tok = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
        tok.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        tok.decoder = decoders.ByteFallback()
        trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=special + [f"<0x{b:02X}>" for b in range(256)], show_progress=False)
        tok.train_from_iterator(TEXTS, trainer)
        data = json.loads(tok.to_str())
        data["added_tokens"] = [t for t in data["added_tokens"] if t["content"] in special]
        tok = Tokenizer.from_str(json.dumps(data))
    else:
        tok = Tokenizer(models.BPE(ignore_merges=kind == "llama3"))
        level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=kind == "digits")
        first = (pre_tokenizers.Digits(individual_digits=True) if kind == "digits"
                 else pre_tokenizers.Split(Regex(PATTERNS[kind]), "isolated"))
        tok.pre_tokenizer = pre_tokenizers.Sequence([first, level])
        tok.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                      show_progress=False)
        tok.train_from_iterator(TEXTS, trainer)
        tok.add_tokens([AddedToken("<tool>", special=False, normalized=False)])
    names = dict(bos_token=special[1], eos_token=special[2], pad_token=special[0], unk_token=special[0])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tok, chat_template=TEMPLATE, **names)
    fast.save_pretrained(folder)
    return fast


def build(family, folder):
    name, kind, settings = FAMILIES[family]
    fast = tokenizer(kind, folder)
    torch.manual_seed(1)
    settings = {**SIZE, "vocab_size": len(fast) + 3, **settings}
    prefix = name + ("Text" if family == "gemma3_text" else "")
    config = getattr(transformers, prefix + "Config" if hasattr(transformers, prefix + "Config") else name + "Config")(**settings)
    model = getattr(transformers, name + "ForCausalLM")(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.1)
    model.to(torch.float32).save_pretrained(folder)
    return kind


def convert(llama, folder, out, kind):
    # The converter knows published tokenizers by a hash of what they make of a text: here it is told the name.
    code = f"""
import sys
sys.path.insert(0, {str(llama)!r})
sys.argv = ["convert", {str(folder)!r}, "--outfile", {str(out)!r}, "--outtype", "f32"]
import conversion.base as base
base.TextModel.get_vocab_base_pre = lambda self, tokenizer: {PRE.get(kind, "default")!r}
for name in ("llama", "gemma", "ernie", "phi"):
    module = __import__("conversion." + name, fromlist=["x"])
    for item in vars(module).values():
        # Without tokenizer.model, it reads no SentencePiece: then only tensors and shapes are compared.
        if isinstance(item, type) and "set_vocab" in vars(item):
            item.set_vocab = (lambda self: None) if {kind == "spm"!r} else (lambda self: self._set_vocab_gpt2())
import convert_hf_to_gguf
convert_hf_to_gguf.main()
"""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def values(reader, key):
    return reader.fields[key].contents() if key in reader.fields else None


def compare(ours, theirs):
    a, b = GGUFReader(ours), GGUFReader(theirs)
    problems = []
    left, right = {t.name: t for t in a.tensors}, {t.name: t for t in b.tensors}
    if set(left) != set(right):
        problems.append(f"tensors: {sorted(set(left) ^ set(right))}")
    for name in set(left) & set(right):
        rows = min(len(left[name].data), len(right[name].data))
        if name == "token_embd.weight":
            # Rows without a token: Gemma's converter counts added tokens twice.
            if not numpy.array_equal(left[name].data[:rows], right[name].data[:rows]):
                problems.append(name)
        elif list(left[name].shape) != list(right[name].shape) or not numpy.array_equal(left[name].data, right[name].data):
            problems.append(f"{name}: {list(left[name].shape)} {list(right[name].shape)}")
    missing = []
    for key in b.fields:
        if key.startswith(("GGUF.", "general.")) or key.endswith(".vocab_size"):
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
    for family in sys.argv[3:] or FAMILIES:
        root = pathlib.Path(tempfile.mkdtemp())
        try:
            kind = build(family, root / "hf")
            run = subprocess.run([fm, "model", "import", str(root / "hf"), "--type", "f32", "--out", str(root / "ours.gguf"),
                                  "--name", "tiny"], capture_output=True, text=True)
            if run.returncode:
                print(f"{family}: {run.stderr.strip()}")
                failed += 1
                continue
            other = convert(llama, root / "hf", root / "theirs.gguf", kind)
            if other.returncode:
                print(f"{family}: imported; the converter failed: {other.stderr.strip().splitlines()[-1]}")
                continue
            problems, missing = compare(root / "ours.gguf", root / "theirs.gguf")
            failed += bool(problems)
            print(f"{family}: {'equal' if not problems else '; '.join(problems[:6])}" + (f" (only there: {', '.join(missing)})" if missing else ""))
        finally:
            shutil.rmtree(root)
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
