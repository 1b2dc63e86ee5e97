"""Records reference vectors of tiny random encoders from transformers (PyTorch). Run manually, never in CI.

    pip install torch transformers
    python record_encoders.py OUT_DIR

Each model is a recipe: metadata, tensor shapes and ranges. Tensor values are computed from the recipe (see
`architecture_recipe.values`), so that tests in any language can generate the file. Writes OUT_DIR/NAME.json.
"""
import json, pathlib, random, sys

import numpy as np
import torch
from transformers import (BertConfig, BertModel, Gemma3TextConfig, Gemma3TextModel, ModernBertConfig, ModernBertModel,
                          NomicBertConfig, NomicBertModel, Qwen3Config, Qwen3Model)

from architecture_recipe import VOCABULARY, Recipe, values

POSITIONS = 64


def encoder(name, architecture, width, layers, heads, feed_forward, pooling, rms=False, **keys):
    epsilon = keys.pop("epsilon_value", 1e-3)
    r = Recipe(name, architecture, width, layers, context_length=POSITIONS, context=POSITIONS, epsilon=epsilon if rms else 0,
               attention__head_count=heads, feed_forward_length=feed_forward, pooling_type=pooling, **keys)
    if not rms:
        r.key("attention.layer_norm_epsilon", epsilon)
        r.key("attention.causal", False)
    return r


def layer_norm(r, name, bias=True):
    r.norm(name, r.width)
    if bias:
        r.bias(name, r.width)


def bert(name, pooling):
    width, ff = 64, 96
    r = encoder(name, "bert", width, 3, 4, ff, pooling)
    names = {}

    def both(ours, theirs, put):
        put(ours)
        for kind in ("weight", "bias"):
            if any(t["name"] == f"{ours}.{kind}" for t in r.tensors):
                names[f"{ours}.{kind}"] = f"{theirs}.{kind}"

    r.tensor("token_embd.weight", [width, VOCABULARY], -1, 1)
    names["token_embd.weight"] = "embeddings.word_embeddings.weight"
    r.tensor("position_embd.weight", [width, POSITIONS], -0.5, 0.5)
    names["position_embd.weight"] = "embeddings.position_embeddings.weight"
    r.tensor("token_types.weight", [width, 2], -0.3, 0.3)
    names["token_types.weight"] = "embeddings.token_type_embeddings.weight"
    both("token_embd_norm", "embeddings.LayerNorm", lambda n: layer_norm(r, n))
    for i in range(3):
        there = f"encoder.layer.{i}."
        for ours, theirs in (("attn_q", "attention.self.query"), ("attn_k", "attention.self.key"),
                             ("attn_v", "attention.self.value"), ("attn_output", "attention.output.dense")):
            both(f"blk.{i}.{ours}", there + theirs, lambda n: (r.matrix(n, width, width, 1.6), r.bias(n, width)))
        both(f"blk.{i}.attn_output_norm", there + "attention.output.LayerNorm", lambda n: layer_norm(r, n))
        both(f"blk.{i}.ffn_up", there + "intermediate.dense", lambda n: (r.matrix(n, width, ff, 1.6), r.bias(n, ff)))
        both(f"blk.{i}.ffn_down", there + "output.dense", lambda n: (r.matrix(n, ff, width, 1.6), r.bias(n, width)))
        both(f"blk.{i}.layer_output_norm", there + "output.LayerNorm", lambda n: layer_norm(r, n))
    config = BertConfig(vocab_size=VOCABULARY, hidden_size=width, num_hidden_layers=3, num_attention_heads=4,
                        intermediate_size=ff, max_position_embeddings=POSITIONS, layer_norm_eps=1e-3)
    return r, BertModel(config, add_pooling_layer=False), names, {}


def nomic():
    width, ff = 48, 80
    r = encoder("nomic-bert", "nomic-bert", width, 3, 4, ff, 1, rope__freq_base=1000.0)
    names = {"token_embd.weight": "embeddings.word_embeddings.weight", "token_types.weight": "embeddings.token_type_embeddings.weight"}
    r.tensor("token_embd.weight", [width, VOCABULARY], -1, 1)
    r.tensor("token_types.weight", [width, 2], -0.3, 0.3)

    def norm(ours, theirs):
        layer_norm(r, ours)
        names[ours + ".weight"], names[ours + ".bias"] = theirs + ".weight", theirs + ".bias"

    norm("token_embd_norm", "embeddings.LayerNorm")
    fused = {}
    for i in range(3):
        there = f"layers.{i}."
        r.matrix(f"blk.{i}.attn_qkv", width, 3 * width, 1.6)
        fused[f"blk.{i}.attn_qkv.weight"] = [there + f"self_attn.{x}_proj.weight" for x in "qkv"]
        r.matrix(f"blk.{i}.attn_output", width, width, 1.6)
        names[f"blk.{i}.attn_output.weight"] = there + "self_attn.o_proj.weight"
        norm(f"blk.{i}.attn_output_norm", there + "post_attention_layernorm")
        for ours, theirs, a, b in (("ffn_gate", "gate_proj", width, ff), ("ffn_up", "up_proj", width, ff), ("ffn_down", "down_proj", ff, width)):
            r.matrix(f"blk.{i}.{ours}", a, b, 1.6)
            names[f"blk.{i}.{ours}.weight"] = there + f"mlp.{theirs}.weight"
        norm(f"blk.{i}.layer_output_norm", there + "post_mlp_layernorm")
    config = NomicBertConfig(vocab_size=VOCABULARY, hidden_size=width, num_hidden_layers=3, num_attention_heads=4,
                             intermediate_size=ff, max_position_embeddings=POSITIONS, layer_norm_eps=1e-3)
    return r, NomicBertModel(config, add_pooling_layer=False), names, fused


def modern():
    width, ff = 48, 80
    r = encoder("modern-bert", "modern-bert", width, 4, 4, ff, 2, rope__freq_base=160000.0, rope__freq_base_swa=100.0,
                attention__sliding_window=8)
    names = {"token_embd.weight": "embeddings.tok_embeddings.weight", "token_embd_norm.weight": "embeddings.norm.weight",
             "output_norm.weight": "final_norm.weight"}
    r.tensor("token_embd.weight", [width, VOCABULARY], -1, 1)
    r.norm("token_embd_norm", width)
    r.norm("output_norm", width)
    for i in range(4):
        there = f"layers.{i}."
        if i > 0:
            r.norm(f"blk.{i}.attn_norm", width)
            names[f"blk.{i}.attn_norm.weight"] = there + "attn_norm.weight"
        r.norm(f"blk.{i}.ffn_norm", width)
        names[f"blk.{i}.ffn_norm.weight"] = there + "mlp_norm.weight"
        for ours, theirs, a, b in (("attn_qkv", "attn.Wqkv", width, 3 * width), ("attn_output", "attn.Wo", width, width),
                                   ("ffn_up", "mlp.Wi", width, 2 * ff), ("ffn_down", "mlp.Wo", ff, width)):
            r.matrix(f"blk.{i}.{ours}", a, b, 1.6)
            names[f"blk.{i}.{ours}.weight"] = there + theirs + ".weight"
    config = ModernBertConfig(vocab_size=VOCABULARY, hidden_size=width, num_hidden_layers=4, num_attention_heads=4,
                              intermediate_size=ff, max_position_embeddings=POSITIONS, local_attention=8, norm_eps=1e-3,
                              global_attn_every_n_layers=3, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2,
                              rope_parameters={"full_attention": {"rope_theta": 160000.0, "rope_type": "default"},
                                               "sliding_attention": {"rope_theta": 100.0, "rope_type": "default"}})
    return r, ModernBertModel(config), names, {}


def gemma_or_qwen(name, architecture, pooling):
    width, ff, heads, groups, dim, layers = 48, 80, 4, 2, 16, 7 if architecture == "gemma-embedding" else 3
    is_gemma = architecture == "gemma-embedding"
    keys = dict(attention__head_count_kv=groups, attention__key_length=dim, attention__value_length=dim, rope__freq_base=10000.0)
    if is_gemma:
        keys.update(attention__sliding_window=8, rope__freq_base_swa=100.0)
    r = encoder(name, architecture, width, layers, heads, ff, pooling, rms=True, **keys)
    names = {"token_embd.weight": "embed_tokens.weight", "output_norm.weight": "norm.weight"}
    r.tensor("token_embd.weight", [width, VOCABULARY], -1, 1)
    r.norm("output_norm", width)
    for i in range(layers):
        there = f"layers.{i}."
        norms = [("attn_norm", "input_layernorm", width), ("attn_q_norm", "self_attn.q_norm", dim), ("attn_k_norm", "self_attn.k_norm", dim)]
        if is_gemma:
            norms += [("post_attention_norm", "post_attention_layernorm", width), ("ffn_norm", "pre_feedforward_layernorm", width),
                      ("post_ffw_norm", "post_feedforward_layernorm", width)]
        else:
            norms += [("ffn_norm", "post_attention_layernorm", width)]
        for ours, theirs, size in norms:
            r.norm(f"blk.{i}.{ours}", size)
            names[f"blk.{i}.{ours}.weight"] = there + theirs + ".weight"
        for ours, theirs, a, b in (("attn_q", "self_attn.q_proj", width, heads * dim), ("attn_k", "self_attn.k_proj", width, groups * dim),
                                   ("attn_v", "self_attn.v_proj", width, groups * dim), ("attn_output", "self_attn.o_proj", heads * dim, width),
                                   ("ffn_gate", "mlp.gate_proj", width, ff), ("ffn_up", "mlp.up_proj", width, ff), ("ffn_down", "mlp.down_proj", ff, width)):
            r.matrix(f"blk.{i}.{ours}", a, b, 1.6)
            names[f"blk.{i}.{ours}.weight"] = there + theirs + ".weight"
    common = dict(vocab_size=VOCABULARY, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=groups,
                  head_dim=dim, intermediate_size=ff, max_position_embeddings=POSITIONS, rms_norm_eps=1e-3, pad_token_id=0, bos_token_id=1,
                  eos_token_id=2)
    if is_gemma:
        r.matrix("dense_2", width, 72, 1.6)
        r.matrix("dense_3", 72, 40, 1.6)
        config = Gemma3TextConfig(**common, sliding_window=8, use_bidirectional_attention=True, query_pre_attn_scalar=dim,
                                  rope_parameters={"full_attention": {"rope_theta": 10000.0, "rope_type": "default"},
                                                   "sliding_attention": {"rope_theta": 100.0, "rope_type": "default"}})
        return r, Gemma3TextModel(config), names, {}
    return r, Qwen3Model(Qwen3Config(**common, rope_parameters={"rope_theta": 10000.0, "rope_type": "default"})), names, {}


def numbers(r, tensor):
    return values(tensor["name"], tensor["shape"], tensor["low"], tensor["high"], r.seed).reshape(list(reversed(tensor["shape"])))


def record(r, model, names, fused, folder):
    model = model.eval().to(torch.float64)
    state = model.state_dict()
    expected = {k for k in state if "position_ids" not in k and "inv_freq" not in k and "embed_scale" not in k}
    dense = []
    for tensor in r.tensors:
        data = torch.from_numpy(numbers(r, tensor).astype(np.float64))
        if tensor["name"].startswith("dense_"):
            dense.append(data)
            continue
        if tensor["name"] in fused:
            for target, part in zip(fused[tensor["name"]], data.chunk(3)):
                state[target].copy_(part)
                expected.remove(target)
            continue
        target = names[tensor["name"]]
        # The files of Gemma contain 1 + weight.
        state[target].copy_(data - 1 if r.architecture == "gemma-embedding" and "norm" in target else data)
        expected.remove(target)
    assert not expected, expected
    rng = random.Random(r.name)
    texts = [[rng.randrange(3, VOCABULARY) for _ in range(n)] for n in (1, 2, 5, 17, 18, 33, POSITIONS)]
    pooling = next(value for key, _, value in r.metadata if key.endswith("pooling_type"))
    vectors = []
    with torch.no_grad():
        for text in texts:
            h = model(input_ids=torch.tensor([text]), attention_mask=torch.ones(1, len(text))).last_hidden_state[0]
            v = {1: h.mean(0), 2: h[0], 3: h[-1]}[pooling]
            for matrix in dense:
                v = matrix @ v
            vectors.append([round(x, 7) for x in (v / v.norm()).tolist()])
    recipe = {"name": r.name, "seed": r.seed, "context": r.context, "metadata": r.metadata, "tensors": r.tensors, "tokens": [],
              "positions": [], "logits": [], "texts": texts, "vectors": vectors}
    (folder / f"{r.name}.json").write_text(json.dumps(recipe))
    print(r.name, [v[0] for v in vectors])


folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for made in (bert("bert", 1), bert("bert-cls", 2), nomic(), modern(), gemma_or_qwen("gemma-embedding", "gemma-embedding", 1),
             gemma_or_qwen("qwen3-embedding", "qwen3", 3)):
    record(*made, folder)
