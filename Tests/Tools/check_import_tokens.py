#!/usr/bin/env python3
"""Compares imported tokenizers with the tokenizers library on many lines: check_import_tokens.py SENTENCES.TSV.GZ FOLDER [KIND …]

SENTENCES has lines of a language code and a text. Of each kind of tokenizer, one is trained on some of the texts; others, and random
lines of 40 scripts, are tokenized. Writes FOLDER/KIND with a tiny model and lines.json; then run the tests named ImportedTokens with
FM_IMPORT_TOKENS=FOLDER. Needs transformers, tokenizers, sentencepiece.
"""
import gzip
import json
import pathlib
import random
import shutil
import sys
import unicodedata

import transformers
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

import import_families
from import_families import ENCODERS, PATTERNS, encoder_tokenizer

# Blocks of scripts: the first and last code point
SCRIPTS = [(0x41, 0x7A), (0xC0, 0x24F), (0x370, 0x3FF), (0x400, 0x52F), (0x531, 0x586), (0x5D0, 0x5EA), (0x620, 0x652), (0x710, 0x72F),
           (0x780, 0x7B1), (0x7CA, 0x7EA), (0x904, 0x94D), (0x985, 0x9CD), (0xA05, 0xA4D), (0xA85, 0xACD), (0xB05, 0xB4D), (0xB85, 0xBCD),
           (0xC05, 0xC4D), (0xC85, 0xCCD), (0xD05, 0xD4D), (0xD85, 0xDCA), (0xE01, 0xE4E), (0xE81, 0xECD), (0xF40, 0xFBC), (0x1000, 0x104F),
           (0x10A0, 0x10FF), (0x1100, 0x11FF), (0x1200, 0x137C), (0x13A0, 0x13F5), (0x1401, 0x1676), (0x16A0, 0x16EA), (0x1780, 0x17D3),
           (0x1820, 0x1877), (0x2D30, 0x2D67), (0x3041, 0x309F), (0x30A1, 0x30FF), (0x3105, 0x312F), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3),
           (0x1F300, 0x1FAFF), (0x1D400, 0x1D7FF)]
SEED = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
            r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""]


def lines(path):
    texts = [line.rstrip("\n").split("\t", 1)[1] for line in gzip.open(path, "rt", encoding="utf-8")]
    random.Random(7).shuffle(texts)
    rng = random.Random(8)
    made = []
    extra = [" ", "  ", "\t", "\n", "\r\n", "\n\n", "'s", "'LL", "12345", "٣٤٥", "½", "...", "—", "?!", "/", "_", "\u00a0", "\u200d", "\ufeff", "x", "don't"]
    for _ in range(4000):
        low, high = rng.choice(SCRIPTS)
        parts = []
        while len(parts) < rng.randint(3, 30):
            c = chr(rng.randint(low, high))
            parts.append(rng.choice(extra) if rng.random() < 0.25 else c if unicodedata.category(c) != "Cn" else " ")
        made.append("".join(parts))
    return texts[:3000], texts[3000:9000] + made


def byte_level(patterns, ignore, train):
    tok = Tokenizer(models.BPE(ignore_merges=ignore))
    parts = ([pre_tokenizers.Digits(individual_digits=True)] if patterns == "digits" else []) if isinstance(patterns, str) else [
        pre_tokenizers.Split(Regex(p), "isolated") for p in patterns]
    tok.pre_tokenizer = pre_tokenizers.Sequence(parts + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=isinstance(patterns, str))])
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(train, trainers.BpeTrainer(vocab_size=6000, special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
                                                       initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    return tok


def characters(kind, train):
    tok = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tok.normalizer = (normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]) if kind == "llama"
                      else normalizers.Replace(" ", "▁"))
    tok.decoder = decoders.ByteFallback()
    tok.train_from_iterator(train, trainers.BpeTrainer(
        vocab_size=6000, special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)], show_progress=False))
    data = json.loads(tok.to_str())
    data["added_tokens"] = [t for t in data["added_tokens"] if not t["content"].startswith("<0x")]
    return Tokenizer.from_str(json.dumps(data))


def main():
    train, texts = lines(sys.argv[1])
    root = pathlib.Path(sys.argv[2])
    kinds = {
        "gpt2": lambda: byte_level("gpt2", False, train), "digits": lambda: byte_level("digits", False, train),
        "llama3": lambda: byte_level([PATTERNS["llama3"]], True, train), "smaug": lambda: byte_level([PATTERNS["llama3"]], False, train),
        "qwen2": lambda: byte_level([PATTERNS["qwen2"]], False, train), "qwen35": lambda: byte_level([PATTERNS["qwen35"]], False, train),
        "gpt4o": lambda: byte_level([PATTERNS["gpt4o"]], False, train), "tekken": lambda: byte_level([PATTERNS["tekken"]], True, train),
        "seed": lambda: byte_level([SEED], False, train), "deepseek": lambda: byte_level(DEEPSEEK, False, train),
        "llama2": lambda: characters("llama", train), "gemma": lambda: characters("gemma", train), "gemma4": lambda: characters("gemma", train),
        "wordpiece": None, "unigram": None,
    }
    for kind, make in kinds.items():
        if sys.argv[3:] and kind not in sys.argv[3:]:
            continue
        folder = root / kind
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if make is None:
            import_families.TEXTS = train
            fast = encoder_tokenizer(kind, folder)
            name, _, settings, _ = ENCODERS["bert" if kind == "wordpiece" else "xlm_roberta"]
            config = getattr(transformers, name.replace("Model", "Config"))(
                hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, max_position_embeddings=66, vocab_size=len(fast), **settings)
            getattr(transformers, name)(config).save_pretrained(folder)
        else:
            tok = make()
            names = ["<s>", "</s>", "<unk>"] if kind in ("llama2", "gemma", "gemma4") else ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
            fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tok, bos_token=names[0], eos_token=names[1], unk_token=names[2])
            fast.save_pretrained(folder)
            size = dict(hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, vocab_size=len(fast))
            if kind == "gemma4":
                config = transformers.Gemma4TextConfig(**{**size, "num_hidden_layers": 2}, head_dim=16, global_head_dim=16, sliding_window=16, hidden_size_per_layer_input=0,
                                                       num_kv_shared_layers=0, layer_types=["sliding_attention", "full_attention"])
                transformers.Gemma4ForCausalLM(config).save_pretrained(folder)
            else:
                transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**size)).save_pretrained(folder)
        data = [{"text": t, "ids": fast.encode(t, add_special_tokens=False)} for t in texts]
        (folder / "lines.json").write_text(json.dumps(data))
        print(kind, len(data), "lines,", len(fast), "tokens", flush=True)


if __name__ == "__main__":
    main()
