"""Tiny random models of each kind that “fm model import” reads, made by transformers; see check_import.py."""
import json

import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

TEXTS = ["The cat sat on the mat, and 123 dogs didn't care: it's 4.50 euros! Größe, naïve café — привет мир, 你好。\n\n  def f(x):\n\treturn x"] * 4
C = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
END = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
LOWER = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
PATTERNS = {
    "llama3": C + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|" + END,
    "qwen2": C + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|" + END,
    "qwen35": C + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "gpt4o": UPPER + C + "?|" + LOWER + C + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "tekken": UPPER + "|" + LOWER + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}
# What llama.cpp calls their pre-tokenizers.
PRE = {"llama3": "llama-bpe", "qwen2": "qwen2", "qwen35": "qwen35", "gpt4o": "gpt-4o", "tekken": "tekken", "digits": "smollm", "gpt2": "gpt-2", "roberta": "gpt-2", "modern": "gpt-2"}
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"

SIZE = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=512)
LLAMA3 = dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=128)
GRANITE = dict(attention_multiplier=0.2, embedding_multiplier=3.0, residual_multiplier=0.4, logits_scaling=2.0)
DELTA = dict(num_hidden_layers=4, linear_num_key_heads=2, linear_num_value_heads=6, linear_key_head_dim=16, linear_value_head_dim=16,
             linear_conv_kernel_dim=4, head_dim=32)
EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=48)
LATENT = dict(q_lora_rank=20, kv_lora_rank=24, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=16, n_routed_experts=8, n_group=4,
              topk_group=2, num_experts_per_tok=3, n_shared_experts=2, moe_intermediate_size=32, first_k_dense_replace=1,
              routed_scaling_factor=1.5, num_key_value_heads=4)
VISION = dict(depth=1, hidden_size=32, intermediate_size=32, num_heads=2, out_hidden_size=64)

# The prefix of the classes of transformers, the tokenizer, settings
FAMILIES = {
    "llama": ("Llama", "llama3", dict(rope_parameters=LLAMA3)),
    "mistral": ("Mistral", "spm", dict(head_dim=32, sliding_window=None)),
    "mixtral": ("Mixtral", "spm", dict(num_local_experts=4, num_experts_per_tok=2, sliding_window=None)),
    "ministral3": ("Ministral3", "tekken", dict(head_dim=32, rope_parameters=dict(
        rope_type="yarn", rope_theta=1000000.0, factor=16.0, original_max_position_embeddings=128, beta_fast=32.0, beta_slow=1.0,
        mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.1))),
    "qwen2": ("Qwen2", "qwen2", dict(tie_word_embeddings=True)),
    "qwen2_moe": ("Qwen2Moe", "qwen2", dict(**EXPERTS, shared_expert_intermediate_size=48, decoder_sparse_step=1)),
    "qwen3": ("Qwen3", "qwen2", dict(head_dim=32)),
    "qwen3_moe": ("Qwen3Moe", "qwen2", dict(head_dim=32, norm_topk_prob=True, **EXPERTS)),
    "qwen2_vl": ("Qwen2VL", "qwen2", dict(rope_parameters=dict(rope_type="default", rope_theta=1000000.0, mrope_section=[2, 3, 3])),
                 dict(depth=1, embed_dim=32, num_heads=2, hidden_size=64)),
    "qwen2_5_vl": ("Qwen2_5_VL", "qwen2", dict(rope_parameters=dict(rope_type="default", rope_theta=1000000.0, mrope_section=[2, 3, 3])),
                   VISION),
    "qwen3_vl": ("Qwen3VL", "qwen2", dict(head_dim=32, rope_parameters=dict(rope_type="default", rope_theta=5000000.0, mrope_section=[6, 5, 5])),
                 dict(**VISION, deepstack_visual_indexes=[0])),
    "qwen3_vl_moe": ("Qwen3VLMoe", "qwen2", dict(head_dim=32, **EXPERTS, rope_parameters=dict(
        rope_type="default", rope_theta=5000000.0, mrope_section=[6, 5, 5])), dict(**VISION, deepstack_visual_indexes=[0])),
    "qwen3_next": ("Qwen3Next", "qwen2", dict(**DELTA, **EXPERTS, shared_expert_intermediate_size=48)),
    "qwen3_5": ("Qwen3_5", "qwen35", DELTA, VISION),
    "qwen3_5_text": ("Qwen3_5", "qwen35", DELTA),
    "qwen3_5_moe": ("Qwen3_5Moe", "qwen35", dict(**DELTA, **EXPERTS, shared_expert_intermediate_size=48), VISION),
    "phi3": ("Phi3", "gpt4o", dict(pad_token_id=0)),
    "phi3_longrope": ("Phi3", "gpt4o", dict(pad_token_id=0, original_max_position_embeddings=128, rope_parameters=dict(
        rope_type="longrope", rope_theta=10000.0, short_factor=[1.0 + 0.1 * i for i in range(8)], long_factor=[2.0 + i for i in range(8)],
        original_max_position_embeddings=128))),
    "smollm3": ("SmolLM3", "llama3", dict(pad_token_id=0)),
    "granite": ("Granite", "digits", GRANITE),
    "granitemoe": ("GraniteMoe", "digits", dict(**GRANITE, num_local_experts=4, num_experts_per_tok=2)),
    "granitemoeshared": ("GraniteMoeShared", "digits", dict(**GRANITE, num_local_experts=4, num_experts_per_tok=2, shared_intermediate_size=48)),
    "granitemoehybrid": ("GraniteMoeHybrid", "digits", dict(
        **GRANITE, num_local_experts=4, num_experts_per_tok=2, shared_intermediate_size=48, mamba_n_heads=8, mamba_d_head=16,
        mamba_n_groups=2, mamba_d_state=16, mamba_expand=2, layer_types=["mamba", "attention", "mamba"], position_embedding_type=None)),
    "granitemoehybrid_dense": ("GraniteMoeHybrid", "digits", dict(
        **GRANITE, num_local_experts=0, num_experts_per_tok=0, shared_intermediate_size=96, mamba_n_heads=8, mamba_d_head=16,
        mamba_n_groups=1, mamba_d_state=16, mamba_expand=2, layer_types=["attention"] * 3, position_embedding_type="rope")),
    "olmo2": ("Olmo2", "digits", {}),
    "olmo3": ("Olmo3", "digits", dict(sliding_window=16, num_hidden_layers=4)),
    "olmoe": ("Olmoe", "gpt2", dict(num_experts=4, num_experts_per_tok=2, num_key_value_heads=4)),
    "ernie4_5": ("Ernie4_5", "spm", dict(head_dim=16)),
    "gemma": ("Gemma", "spm", dict(head_dim=16)),
    "gemma2": ("Gemma2", "spm", dict(head_dim=16, query_pre_attn_scalar=16, sliding_window=16)),
    "gemma3_text": ("Gemma3", "spm", dict(head_dim=16, query_pre_attn_scalar=16, sliding_window=16)),
    "gemma4_text": ("Gemma4", "gemma4", dict(
        head_dim=16, global_head_dim=32, num_hidden_layers=6, sliding_window=16, hidden_size_per_layer_input=8, vocab_size_per_layer_input=512, final_logit_softcapping=30.0, num_kv_shared_layers=2,
        use_double_wide_mlp=True, layer_types=["sliding_attention", "full_attention"] * 3)),
    "gemma4_moe": ("Gemma4", "gemma4", dict(
        head_dim=16, global_head_dim=32, num_global_key_value_heads=1, num_hidden_layers=4, sliding_window=16,
        hidden_size_per_layer_input=0, final_logit_softcapping=30.0, num_kv_shared_layers=0, attention_k_eq_v=True, enable_moe_block=True, num_experts=4,
        top_k_experts=2, moe_intermediate_size=48, expert_intermediate_size=48, layer_types=["sliding_attention", "full_attention"] * 2)),
    "gpt_oss": ("GptOss", "gpt4o", dict(head_dim=16, num_local_experts=4, num_experts_per_tok=2, sliding_window=16, num_hidden_layers=2, rope_parameters=dict(
        rope_type="yarn", rope_theta=150000.0, factor=4.0, original_max_position_embeddings=128, beta_fast=32.0, beta_slow=1.0, truncate=False))),
    "lfm2": ("Lfm2", "llama3", dict(layer_types=["conv", "full_attention", "conv"], conv_L_cache=3, block_multiple_of=16)),
    "lfm2_moe": ("Lfm2Moe", "llama3", dict(**EXPERTS, layer_types=["conv", "full_attention", "conv"], conv_L_cache=3, num_dense_layers=1)),
    "deepseek_v2": ("DeepseekV2", "qwen2", LATENT),
    "deepseek_v3": ("DeepseekV3", "qwen2", dict(**LATENT, rope_parameters=dict(
        rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=128, beta_fast=32, beta_slow=1, mscale=1.0,
        mscale_all_dim=1.0))),
    "glm4_moe_lite": ("Glm4MoeLite", "qwen2", dict(**LATENT, num_nextn_predict_layers=0)),
    "glm4": ("Glm4", "qwen2", dict(head_dim=16, attention_bias=True, pad_token_id=0)),
    "exaone4": ("Exaone4", "qwen2", dict(sliding_window=None, sliding_window_pattern=None, layer_types=["full_attention"] * 3, rope_parameters=LLAMA3)),
    "hunyuan_v1_dense": ("HunYuanDenseV1", "qwen2", dict(head_dim=16, eod_token_id=2)),
    "minicpm": ("Llama", "spm", dict(tie_word_embeddings=True)),
    # Published with 8 and 4 bits
    "qwen3_fp8": ("Qwen3", "qwen2", dict(head_dim=32)),
    "deepseek_v3_fp8": ("DeepseekV3", "qwen2", LATENT),
    "ministral3_fp8": ("Ministral3", "tekken", dict(head_dim=32, rope_parameters=dict(
        rope_type="yarn", rope_theta=1000000.0, factor=16.0, original_max_position_embeddings=128, beta_fast=32.0, beta_slow=1.0,
        mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.1))),
    "gpt_oss_mxfp4": ("GptOss", "gpt4o", dict(head_dim=16, num_local_experts=4, num_experts_per_tok=2, sliding_window=16, num_hidden_layers=2)),
    "seed_oss": ("SeedOss", "qwen2", dict(head_dim=32, attention_bias=True)),
}


def tokenizer(kind, folder):
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    if kind in ("spm", "gemma4"):
        special = ["<unk>", "<s>", "</s>"]
        tok = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
        if kind == "spm":
            tok.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        else:
            tok.normalizer = normalizers.Replace(" ", "▁")
        tok.decoder = decoders.ByteFallback()
        trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=special + [f"<0x{b:02X}>" for b in range(256)], show_progress=False)
        tok.train_from_iterator(TEXTS, trainer)
        data = json.loads(tok.to_str())
        data["added_tokens"] = [t for t in data["added_tokens"] if t["content"] in special]
        tok = Tokenizer.from_str(json.dumps(data))
    else:
        tok = Tokenizer(models.BPE(ignore_merges=kind in ("llama3", "tekken")))
        level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=kind in ("digits", "gpt2"))
        first = (pre_tokenizers.Digits(individual_digits=True) if kind == "digits"
                 else None if kind == "gpt2" else pre_tokenizers.Split(Regex(PATTERNS[kind]), "isolated"))
        tok.pre_tokenizer = pre_tokenizers.Sequence([first, level]) if first else level
        tok.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                      show_progress=False)
        tok.train_from_iterator(TEXTS, trainer)
        tok.add_tokens([AddedToken("<tool>", special=False, normalized=False)])
    names = dict(bos_token=special[1], eos_token=special[2], pad_token=special[0], unk_token=special[0])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tok, chat_template=TEMPLATE, **names)
    fast.save_pretrained(folder)
    return fast


def build(family, folder, original=True):
    """Writes the model to the folder. With original=False, experts are saved as transformers has them in memory."""
    name, kind, settings, *vision = FAMILIES[family]
    fast = tokenizer(kind, folder)
    torch.manual_seed(1)
    settings = {**SIZE, "vocab_size": len(fast) + 3, **settings}
    if "rope_parameters" in settings:
        settings["rope_parameters"] = dict(settings["rope_parameters"])
    if vision:
        # Fields of the tokens of images, which must exist.
        config = getattr(transformers, name + "Config")(
            text_config=settings, vision_config=dict(vision[0]), tie_word_embeddings=False,
            **{f"{x}_token_id": 1 for x in ("image", "video", "vision_start", "vision_end")})
        model = getattr(transformers, name + "ForConditionalGeneration")(config)
    else:
        text = getattr(transformers, name + "TextConfig", None) or getattr(transformers, name + "Config")
        config = text(**settings)
        model = getattr(transformers, name + "ForCausalLM")(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.1)
    model.to(torch.float32).save_pretrained(folder, save_original_format=original)
    if original:
        publish(family, folder)
    return kind


def publish(family, folder):
    """Changes what is published in another form than this version of transformers writes."""
    config = json.loads((folder / "config.json").read_text())
    tensors = load_file(folder / "model.safetensors")
    if family.startswith("granitemoehybrid"):
        config["layer_types"] = ["attention" if t == "full_attention" else "mamba" for t in config["layer_types"]]
    elif family == "qwen3_vl_moe":
        tensors = {k: v.transpose(1, 2).contiguous() if ".experts." in k else v for k, v in tensors.items()}
    elif family == "minicpm":
        config |= dict(model_type="minicpm", architectures=["MiniCPMForCausalLM"], scale_emb=3.0, scale_depth=1.4, dim_model_base=32)
    elif family.endswith("_fp8"):
        block = None if family == "ministral3_fp8" else [32, 16]
        config["quantization_config"] = dict(quant_method="fp8", weight_block_size=block, activation_scheme="dynamic")
        for name in [n for n in tensors if n.endswith("_proj.weight")]:
            rows, columns = tensors[name].shape
            if block:
                # The last blocks may be cut off.
                scale = torch.rand(-(-rows // block[0]), -(-columns // block[1])) * 0.01 + 0.001
                whole = scale.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)[:rows, :columns]
            else:
                whole = scale = torch.tensor(0.0037)
                tensors[name.replace(".weight", ".activation_scale")] = torch.tensor(1.5)
            tensors[name] = (tensors[name] / whole).clamp(-448, 448).to(torch.float8_e4m3fn)
            tensors[name + "_scale_inv"] = scale
    elif family == "gpt_oss_mxfp4":
        config["quantization_config"] = dict(quant_method="mxfp4")
        for name in [n for n in tensors if n.endswith(("experts.gate_up_proj", "experts.down_proj"))]:
            experts, columns, rows = tensors.pop(name).shape
            tensors[name + "_blocks"] = torch.randint(0, 256, (experts, rows, columns // 32, 16), dtype=torch.uint8)
            tensors[name + "_scales"] = torch.randint(115, 125, (experts, rows, columns // 32), dtype=torch.uint8)
    else:
        return
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


# Models for embeddings: class, tokenizer, settings, pooling
ENCODERS = {
    "bert": ("BertModel", "wordpiece", {}, "mean_tokens"),
    "roberta": ("RobertaModel", "roberta", dict(pad_token_id=1), "mean_tokens"),
    "xlm_roberta": ("XLMRobertaModel", "unigram", dict(pad_token_id=1), "cls_token"),
    "nomic_bert": ("NomicBertModel", "wordpiece", {}, "mean_tokens"),
    "modernbert": ("ModernBertModel", "modern", dict(
        pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2, local_attention=8, num_hidden_layers=4), "cls_token"),
    # Reads a question and a text together: a ModernBERT with a head, as cross-encoder/ettin-reranker-17m-v1.
    "modernbert_ranker": ("ModernBertModel", "modern", dict(
        pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2, local_attention=8, num_hidden_layers=4,
        max_position_embeddings=600, rope_parameters=dict(
            full_attention=dict(rope_type="default", rope_theta=160000.0),
            sliding_attention=dict(rope_type="default", rope_theta=160000.0))), "cls"),
    "embedding_gemma": ("Gemma3TextModel", "spm", dict(
        head_dim=16, num_key_value_heads=1, query_pre_attn_scalar=16, use_bidirectional_attention=True, sliding_window=16), "mean_tokens"),
    "qwen3_embedding": ("Qwen3Model", "qwen2", dict(head_dim=32, num_key_value_heads=2), "lasttoken"),
}


def encoder_tokenizer(kind, folder):
    if kind in ("spm", "qwen2"):
        return tokenizer(kind, folder)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"] if kind in ("unigram", "roberta") else ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]
    if kind == "unigram":
        # SentencePiece compiles the rules of the normalizer.
        import io
        import sentencepiece
        rules = folder / "rules.tsv"
        rules.write_text("".join(f"{' '.join(f'{ord(c):X}' for c in a)}\t{' '.join(f'{ord(c):X}' for c in b)}\n"
                                 for a, b in [("\uFF21", "A"), ("\uFB01", "fi"), ("\u2014", "-"), ("e\u0301", "\u00E9"), ("\u3000", " "), ("\t", " "), ("\n", " "),
                                              ("\r", " ")]))
        out = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(TEXTS if len(TEXTS) > 10 else TEXTS[0].splitlines() * 40),
                                                 model_writer=out, hard_vocab_limit=False, minloglevel=2,
                                                 **dict(vocab_size=6000) if len(TEXTS) > 10 else dict(
                                                     vocab_size=110, normalization_rule_tsv=str(rules)))
        rules.unlink()
        from sentencepiece import sentencepiece_model_pb2
        proto = sentencepiece_model_pb2.ModelProto.FromString(out.getvalue())
        pieces = [(t, 0.0) for t in special[:4]] + [(p.piece, p.score) for p in proto.pieces[3:]] + [("<mask>", 0.0)]
        tok = Tokenizer(models.Unigram(pieces, unk_id=3, byte_fallback=False))
        tok.normalizer = normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)
        tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(),
                                                     pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")])
        tok.add_special_tokens(special)
        ids = (0, 2)
    elif kind == "wordpiece":
        tok = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tok.normalizer = normalizers.BertNormalizer(lowercase=True)
        tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tok.train_from_iterator(TEXTS, trainers.WordPieceTrainer(vocab_size=120, special_tokens=special, show_progress=False))
        ids = (1, 2)
    else:
        tok = Tokenizer(models.BPE())
        tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tok.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=340, special_tokens=special,
                                                           initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
        ids = (0, 2) if kind == "roberta" else (1, 2)
    first, last = special[ids[0]], special[ids[1]]
    tok.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}", pair=f"{first} $A {last} $B {last}", special_tokens=[(first, ids[0]), (last, ids[1])])
    names = dict(cls_token=first, sep_token=last, pad_token=special[1 if "s>" in first else 0], unk_token=special[3], mask_token=special[4])
    if kind in ("unigram", "roberta"):
        names |= dict(bos_token=first, eos_token=last)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tok, **names)
    fast.save_pretrained(folder)
    return fast


def build_encoder(family, folder):
    name, kind, settings, pooling = ENCODERS[family]
    folder.mkdir(parents=True, exist_ok=True)
    fast = encoder_tokenizer(kind, folder)
    torch.manual_seed(1)
    size = {k: v for k, v in SIZE.items() if k != "num_key_value_heads"} | dict(max_position_embeddings=66, vocab_size=len(fast))
    config = getattr(transformers, name.replace("Model", "Config"))(**size | settings)
    model = getattr(transformers, name)(config)
    model.to(torch.float32).save_pretrained(folder)
    if family == "nomic_bert":
        # The published configuration has the names of GPT-2.
        config = json.loads((folder / "config.json").read_text())
        names = dict(n_embd="hidden_size", n_layer="num_hidden_layers", n_head="num_attention_heads", n_inner="intermediate_size",
                     layer_norm_epsilon="layer_norm_eps")
        config |= {new: config.pop(old) for new, old in names.items()}
        config |= dict(n_positions=8192, max_trained_positions=2048, activation_function="swiglu", causal=False, qkv_proj_bias=False,
                       mlp_fc1_bias=False, mlp_fc2_bias=False, prenorm=False, rotary_emb_fraction=1.0, rotary_emb_interleaved=False,
                       rotary_emb_scale_base=None, rotary_emb_base=1000)
        for key in ("hidden_act", "rope_parameters", "max_position_embeddings"):
            config.pop(key)
        (folder / "config.json").write_text(json.dumps(config))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    modes = {"pooling_mode": pooling} if family == "modernbert_ranker" else {"pooling_mode_" + pooling: True}
    (folder / "1_Pooling/config.json").write_text(json.dumps(modes))
    if family == "embedding_gemma":
        for module, shape in (("2_Dense", (96, 64)), ("3_Dense", (64, 96))):
            (folder / module).mkdir(exist_ok=True)
            save_file({"linear.weight": torch.randn(*shape) * 0.2}, folder / module / "model.safetensors")
            (folder / module / "config.json").write_text(json.dumps(dict(in_features=shape[1], out_features=shape[0], bias=False)))
        modules = [dict(type="sentence_transformers.models.Dense", path=m, name=m, idx=i) for i, m in enumerate(["2_Dense", "3_Dense"])]
        (folder / "modules.json").write_text(json.dumps(modules))
    return fast


if __name__ == "__main__":
    import pathlib
    import sys
    for family in sys.argv[2:] or FAMILIES:
        try:
            build(family, pathlib.Path(sys.argv[1]) / family)
            print(family)
        except Exception as error:
            print(family, repr(error)[:300])
