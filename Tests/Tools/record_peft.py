"""Tiny random models of eight families, PEFT adapters for them, and the logits of transformers + peft in float32. CPU only, about a minute.

    python record_peft.py [FAMILY …]

Writes FAMILY/model.gguf (F32, as llama.cpp's converter writes it), FAMILY/CASE/ (save_pretrained) and FAMILY/CASE.json with "tokens", "logits" (512
values of the last position) and "base_logits". Cases named refused-… have no JSON. With --keep, FAMILY is also saved as tmp/FAMILY for check_gguf.py.
"""
import json, os, pathlib, shutil, sys, warnings

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
warnings.filterwarnings("ignore")
import gguf
import numpy as np
import torch
from peft import LoraConfig, PeftModel, get_peft_model
import transformers as T

torch.set_num_threads(1)
HERE = pathlib.Path(__file__).resolve().parent
WIDTH, LAYERS, FEED, HEADS, GROUPS, VOCABULARY, CONTEXT = 256, 2, 512, 4, 2, 512, 512
TOKENS = [17, 301, 5, 488, 42, 256, 99, 410, 7, 333, 128, 64]
LINEAR = "all-linear"

# The configuration of each family beside the common sizes; "tied" heads as in the family's published models.
FAMILIES = {
    "llama": ("Llama", {"tie_word_embeddings": False, "rms_norm_eps": 1e-5}),
    "qwen2": ("Qwen2", {"tie_word_embeddings": False, "rms_norm_eps": 1e-6}),
    "qwen3": ("Qwen3", {"tie_word_embeddings": False, "rms_norm_eps": 1e-6, "head_dim": 96}),
    "gemma3": ("Gemma3", {"tie_word_embeddings": True, "rms_norm_eps": 1e-6, "head_dim": 64, "query_pre_attn_scalar": 64, "sliding_window": 8}),
    "phi3": ("Phi3", {"tie_word_embeddings": False, "rms_norm_eps": 1e-5, "original_max_position_embeddings": CONTEXT}),
    "granite": ("Granite", {"tie_word_embeddings": True, "rms_norm_eps": 1e-5, "embedding_multiplier": 3.5, "residual_multiplier": 0.6, "attention_multiplier": 0.11, "logits_scaling": 1.7}),
    "smollm3": ("SmolLM3", {"tie_word_embeddings": True, "rms_norm_eps": 1e-6}),
    "olmo2": ("Olmo2", {"tie_word_embeddings": False, "rms_norm_eps": 1e-6}),
}
PERMUTED = {"llama", "granite", "smollm3"}


# Models

def create(family):
    name, own = FAMILIES[family]
    config = (getattr(T, name + "TextConfig") if family == "gemma3" else getattr(T, name + "Config"))(
        hidden_size=WIDTH, num_hidden_layers=LAYERS, intermediate_size=FEED, num_attention_heads=HEADS, num_key_value_heads=GROUPS, vocab_size=VOCABULARY,
        max_position_embeddings=CONTEXT, initializer_range=0.05, bos_token_id=508, eos_token_id=509, pad_token_id=None, **own)
    config._attn_implementation = "eager"
    torch.manual_seed(7)
    model = getattr(T, name + "ForCausalLM")(config).float().eval()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if "norm" in key:
                parameter.uniform_(-0.5, 0.5) if family == "gemma3" else parameter.uniform_(0.5, 1.5)
            elif key.endswith(".bias"):
                parameter.uniform_(-0.3, 0.3)
            elif "embed_tokens" in key or "lm_head" in key:
                parameter.normal_(0, 0.1)
            else:
                parameter.normal_(0, 0.06)
    return model


def tokenizer(writer):
    """Bytes, pairs of letters, and four special tokens: a minimal "gpt2" vocabulary."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, extra = {}, 256
    for byte in range(256):
        letters[byte] = chr(byte) if byte in visible else chr(extra)
        extra += byte not in visible
    tokens = [letters[b] for b in range(256)]
    merges = []
    for a in "etaoinshrdlu":
        for b in "etaoinshrdluycfmgpwbv":
            merges.append((a, b))
    merges = merges[:252]
    tokens += [a + b for a, b in merges]
    special = ["<|endoftext|>", "<|im_end|>", "<|im_start|>", "<|pad|>"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens + special)
    writer.add_token_types([gguf.TokenType.NORMAL] * 508 + [gguf.TokenType.CONTROL] * 4)
    writer.add_token_merges([" ".join(m) for m in merges])
    writer.add_bos_token_id(508)
    writer.add_eos_token_id(509)
    writer.add_pad_token_id(511)
    writer.add_add_bos_token(False)
    writer.add_chat_template("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
    assert len(tokens) == 508 and len(set(tokens)) == 508


def permuted(values, heads):
    """LlamaModel.permute of the converter: a rotated pair is (2i, 2i + 1), not (i, i + half)."""
    return values.reshape(heads, 2, len(values) // heads // 2, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)


def write(model, family, path):
    c = model.config
    writer = gguf.GGUFWriter(path, family)
    writer.add_type(gguf.GGUFType.MODEL)
    writer.add_name("tiny-phi" if family == "phi3" else f"tiny-{family}")  # llama.cpp wants special tokens of files named “phi3”
    writer.add_block_count(LAYERS)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(FEED)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(GROUPS)
    rope = c.rope_parameters.get("full_attention", c.rope_parameters)
    writer.add_rope_freq_base(float(rope["rope_theta"]))
    if "sliding_attention" in c.rope_parameters:
        writer.add_rope_freq_base_swa(float(c.rope_parameters["sliding_attention"]["rope_theta"]))
    writer.add_layer_norm_rms_eps(c.rms_norm_eps)
    head = getattr(c, "head_dim", None)
    if head is not None and family != "granite":
        writer.add_key_length(head)
        writer.add_value_length(head)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    if family in PERMUTED:
        writer.add_vocab_size(VOCABULARY)
        writer.add_rope_dimension_count(head or WIDTH // HEADS)
    if family == "granite":
        writer.add_attention_scale(c.attention_multiplier)
        writer.add_embedding_scale(c.embedding_multiplier)
        writer.add_residual_scale(c.residual_multiplier)
        writer.add_logit_scale(c.logits_scaling)
    if family == "gemma3":
        writer.add_sliding_window(c.sliding_window)
    if family == "phi3":
        writer.add_rope_scaling_orig_ctx_len(c.original_max_position_embeddings)
        writer.add_rope_dimension_count(WIDTH // HEADS)
        writer.add_sliding_window(c.sliding_window or 0)
    tokenizer(writer)
    names = gguf.get_tensor_name_map(writer_architecture(family), LAYERS)
    for key, parameter in model.named_parameters():
        values = parameter.detach().numpy()
        if key == "lm_head.weight" and c.tie_word_embeddings:
            continue
        if family in PERMUTED and ".q_proj." in key:
            values = permuted(values, HEADS)
        if family in PERMUTED and ".k_proj." in key:
            values = permuted(values, GROUPS)
        if family == "gemma3" and key.endswith("norm.weight"):
            values = values + np.float32(1)
        name = names.get_name(key, try_suffixes=(".weight", ".bias"))
        assert name, key
        writer.add_tensor(name, np.ascontiguousarray(values, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def writer_architecture(family):
    return next(a for a, name in gguf.MODEL_ARCH_NAMES.items() if name == family)


# Adapters

def cases(family):
    """Name: (settings of LoraConfig, arguments of save_pretrained)."""
    def settings(r=8, alpha=16, target=LINEAR, **own):
        return dict(r=r, lora_alpha=alpha, target_modules=target, lora_dropout=0.0, task_type="CAUSAL_LM", **own)

    result = {"plain": (settings(), {})}
    if family == "llama":
        parts = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
        result |= {
            "rslora": (settings(use_rslora=True), {}),
            "patterns": (settings(rank_pattern={"q_proj": 4, "down_proj": 12}, alpha_pattern={"q_proj": 24, "down_proj": 6}), {}),
            # The first matching pattern counts, also if a later one matches as well; patterns are regular expressions.
            "patterns-order": (settings(use_rslora=True, rank_pattern={r"layers\.0\..*\.q_proj": 16, "q_proj": 4, r"model\.layers\.1\.mlp\..*": 6},
                                        alpha_pattern={r"layers\.0\..*\.q_proj": 5, "q_proj": 24, "(k|v)_proj": 40}), {}),
            # PEFT also saves the table itself (“base_layer”) if it has an adapter, unless told not to.
            "embedding": (settings(target=parts + ["embed_tokens"]), {}),
            "embedding-alone": (settings(target=["embed_tokens"]), {"save_embedding_layers": False}),
            "head": (settings(target=["q_proj", "lm_head"]), {"save_embedding_layers": False}),
            "refused-dora": (settings(use_dora=True), {}),
            "refused-modules-to-save": (settings(modules_to_save=["lm_head"]), {}),
            "refused-bias": (settings(bias="all"), {}),
        }
    if family == "qwen2":
        result |= {"refused-bias": (settings(bias="all"), {})}  # here there are biases, which are saved
    if family == "gemma3":
        result |= {"embedding-tied": (settings(target=["q_proj", "embed_tokens"]), {"save_embedding_layers": False})}  # tied head, scaled embeddings
    return result


def logits(model):
    with torch.no_grad():
        return model(input_ids=torch.tensor([TOKENS]), use_cache=False).logits[0, -1].numpy()


def record(family, case, config, saving, base):
    model = create(family)
    model.config._name_or_path = model.name_or_path = f"tiny-{family}"
    model = get_peft_model(model, LoraConfig(**config)).eval()
    generator = torch.Generator().manual_seed(1000 + sum(case.encode()))
    with torch.no_grad():
        for key, parameter in sorted(model.named_parameters()):
            if "lora_A" in key or "lora_embedding_B" in key:  # (rank, inputs) or (outputs, rank)
                parameter.normal_(0, (WIDTH if "lora_A" in key else 100) ** -0.5, generator=generator)
            elif "lora_B" in key or "lora_embedding_A" in key:
                parameter.normal_(0, 0.1, generator=generator)
            elif "lora_magnitude_vector" in key or ("modules_to_save" in key and parameter.requires_grad):
                parameter.mul_(1.1)
            elif key.endswith(".bias") and parameter.requires_grad:
                parameter.add_(0.05)
    out = HERE / family / case
    model.peft_config["default"].base_model_name_or_path = f"tiny-{family}"
    model.save_pretrained(out, **saving)
    (out / "README.md").unlink(missing_ok=True)
    found = logits(model)
    line = f"  {family}/{case}: largest change of a logit {abs(found - base).max():.3f}"
    if not case.startswith("refused"):
        (HERE / family / f"{case}.json").write_text(json.dumps({"tokens": TOKENS, "logits": [float(x) for x in found], "base_logits": [float(x) for x in base]}) + "\n")
        again = logits(PeftModel.from_pretrained(create(family), out).eval())
        assert abs(again - found).max() < 1e-5, (line, abs(again - found).max())
        merged = logits(model.merge_and_unload())
        line += f"; after reading it again {abs(again - found).max():.1e}, with merged weights {abs(merged - found).max():.1e}"
        # Merging into a tied table changes the head too; beside it, as trained, the head is unchanged.
        assert abs(merged - found).max() < 1e-4 or (family, case) == ("gemma3", "embedding-tied"), line
    print(line, flush=True)


def main():
    keep = "--keep" in sys.argv
    for family in [a for a in sys.argv[1:] if a != "--keep"] or FAMILIES:
        shutil.rmtree(HERE / family, ignore_errors=True)
        (HERE / family).mkdir()
        model = create(family)
        base = logits(model)
        assert np.isfinite(base).all()
        write(model, family, HERE / family / "model.gguf")
        print(f"{family}: {sum(p.numel() for p in model.parameters())} parameters, base logits {base.min():.2f}…{base.max():.2f}")
        if keep:
            model.save_pretrained(HERE / "tmp" / family)
        for case, (config, saving) in cases(family).items():
            record(family, case, config, saving, base)


main()
