"""Recipes of models whose layers all consist of attention and a dense feed-forward network."""
from architecture_recipe import VOCABULARY, Recipe, heads, llama_like, recipe


@recipe
def qwen2():
    return llama_like("qwen2", "qwen2", 60, 3, 6, 2, None, biases="q", tied=True)


@recipe
def qwen2_yarn():
    r = llama_like("qwen2-yarn", "qwen2", 56, 3, 4, 2, None, biases="q", base=50.0, rope__scaling__type="yarn", rope__scaling__factor=4.0, rope__scaling__original_context_length=24)
    r.bias("output", VOCABULARY)
    return r


@recipe
def llama():
    return llama_like("llama", "llama")


@recipe
def llama_tied():
    return llama_like("llama-tied", "llama", 84, 2, 6, 2, None, tied=True)


@recipe
def llama_rope_freqs():
    r = llama_like("llama-rope-freqs", "llama", biases="qof", base=500000.0)
    r.tensor("rope_freqs.weight", [10], 1, 4)
    return r


@recipe
def llama_rope_freqs_off():
    r = llama_like("llama-rope-freqs-off", "llama", tied=True, base=10000.0)
    r.fixed("rope_freqs.weight", [1.0, 1.0, 1.5, 2.0, 8.0, 8.0, 1e30, 1e30, 1e30, 1e30])
    return r


@recipe
def llama_linear():
    return llama_like("llama-linear", "llama", rope__scaling__type="linear", rope__scaling__factor=3.0)


@recipe
def llama_scale_linear():
    # The metadata key of old files, without a scaling type.
    return llama_like("llama-scale-linear", "llama", tied=True, rope__scale_linear=2.5)


@recipe
def llama_fused():
    return llama_like("llama-fused", "llama", biases="q", fused=True)


@recipe
def qwen3():
    return llama_like("qwen3", "qwen3", 52, 3, 4, 2, 24, tied=True, norms="head")


@recipe
def qwen3_yarn():
    return llama_like("qwen3-yarn", "qwen3", 60, 3, 6, 2, 20, norms="head", base=100.0, rope__scaling__type="yarn", rope__scaling__factor=3.0, rope__scaling__original_context_length=400, rope__scaling__attn_factor=1.3)


def gemma_like(name, architecture, width, layers, n, groups, key, ff, norms=None, post=True, tied=True, **keys):
    r = Recipe(name, architecture, width, layers, feed_forward_length=ff, **heads(n, groups, key), **keys)
    r.ends(tied)
    for i in range(layers):
        b = f"blk.{i}."
        r.norm(b + "attn_norm", width)
        r.attention(i, n, groups, key, norms=norms)
        if post:
            r.norm(b + "post_attention_norm", width)
        r.norm(b + "ffn_norm", width)
        r.feed(i, ff)
        if post:
            r.norm(b + "post_ffw_norm", width)
    return r


@recipe
def gemma3():
    return gemma_like("gemma3", "gemma3", 48, 7, 4, 2, 20, 88, "head", rope__freq_base=100000.0, rope__freq_base_swa=2000.0, attention__sliding_window=8)


@recipe
def gemma3_linear():
    return gemma_like("gemma3-linear", "gemma3", 54, 4, 4, 1, 16, 76, "head", tied=False, rope__freq_base=50000.0, rope__scaling__type="linear", rope__scaling__factor=8.0,
                      attention__sliding_window=6, attention__sliding_window_pattern=[True, True, False, True], final_logit_softcapping=3.0)


@recipe
def gemma2():
    return gemma_like("gemma2", "gemma2", 48, 4, 4, 2, 20, 88, None, rope__freq_base=5000.0, attention__sliding_window=8, attn_logit_softcapping=2.0, final_logit_softcapping=3.0)


@recipe
def phi3():
    return llama_like("phi3", "phi3", 60, 3, 6, 2, None, fused=True, fused_ff=True)


@recipe
def phi3_partial():
    return llama_like("phi3-partial", "phi3", 64, 3, 4, 2, None, tied=True, fused=True, fused_ff=True, rotated=12)


def phi3_longrope(name, original):
    r = llama_like(name, "phi3", 64, 3, 4, 2, None, tied=True, fused=True, fused_ff=True, rotated=12, context_length=512,
                   rope__scaling__type="longrope", rope__scaling__original_context_length=original, rope__scaling__attn_factor=1.19)
    r.tensor("rope_factors_long.weight", [6], 2, 6)
    r.tensor("rope_factors_short.weight", [6], 1, 1.8)
    r.unused = {"rope_factors_short.weight" if original < 256 else "rope_factors_long.weight"}
    return r


@recipe
def phi3_longrope_short():
    return phi3_longrope("phi3-longrope-short", 320)


@recipe
def phi3_longrope_long():
    return phi3_longrope("phi3-longrope-long", 32)


@recipe
def smollm3():
    return llama_like("smollm3", "smollm3", 52, 5, 4, 2, 14, tied=True)


@recipe
def smollm3_yarn():
    return llama_like("smollm3-yarn", "smollm3", 48, 4, 6, 2, 12, base=50.0, rope__scaling__type="yarn", rope__scaling__factor=2.0, rope__scaling__original_context_length=24)


def olmo2_like(name, layers, **keys):
    r = Recipe(name, "olmo2", 56, layers, feed_forward_length=88, **heads(4, 2), rope__freq_base=100.0, **keys)
    r.ends(False)
    for i in range(layers):
        b = f"blk.{i}."
        r.attention(i, 4, 2, 14, norms="full")
        r.norm(b + "post_attention_norm", 56)
        r.feed(i, 88)
        r.norm(b + "post_ffw_norm", 56)
    return r


@recipe
def olmo2():
    return olmo2_like("olmo2", 3)


@recipe
def olmo2_window_yarn():
    return olmo2_like("olmo2-window-yarn", 5, attention__sliding_window=8, rope__scaling__type="yarn", rope__scaling__factor=4.0, rope__scaling__original_context_length=16, rope__scaling__yarn_attn_factor=1.1386,
                      rope__scaling__yarn_beta_fast=32.0, rope__scaling__yarn_beta_slow=1.0)  # the last three have no effect; converters write them


@recipe
def granite():
    return llama_like("granite", "granite", embedding_scale=3.5, residual_scale=0.6, attention__scale=0.11, logit_scale=0.6, tied=True)


@recipe
def granite_nope():
    r = llama_like("granite-nope", "granite", biases="qof", embedding_scale=2.0, residual_scale=0.7, attention__scale=0.15, logit_scale=1.5)
    r.key("rope.scaling.finetuned", False)
    return r


@recipe
def mistral3():
    return llama_like("mistral3", "mistral3", base=100.0, rope__scaling__type="yarn", rope__scaling__factor=4.0, rope__scaling__original_context_length=16, rope__scaling__yarn_beta_fast=1.0,
                      rope__scaling__yarn_beta_slow=0.25, rope__scaling__yarn_log_multiplier=1.0, attention__temperature_scale=0.3)


@recipe
def mistral3_mscale():
    return llama_like("mistral3-mscale", "mistral3", tied=True, base=100.0, rope__scaling__type="yarn", rope__scaling__factor=8.0, rope__scaling__original_context_length=24, rope__scaling__yarn_log_multiplier=0.5)


def gemma4_like(name, kinds, shared, moe, layered, key=24, window_key=16):
    n, width, layers = 4, 48, len(kinds)
    groups = [2 if k else 1 for k in kinds]
    sizes = [88] * (layers - shared) + [104] * shared
    keys = {"expert_count": 8, "expert_used_count": 3, "expert_feed_forward_length": 28} if moe else {}
    r = Recipe(name, "gemma4", width, layers, feed_forward_length=sizes, attention__head_count=n, attention__head_count_kv=groups, attention__key_length=key, attention__value_length=key,
               attention__key_length_swa=window_key, attention__value_length_swa=window_key, rope__dimension_count=key, rope__dimension_count_swa=window_key, rope__freq_base=50000.0, rope__freq_base_swa=2000.0,
               attention__sliding_window=8, attention__sliding_window_pattern=kinds, attention__shared_kv_layers=shared, embedding_length_per_layer_input=layered, final_logit_softcapping=3.0, **keys)
    r.ends(True)
    r.fixed("rope_freqs.weight", [1.0, 1.5, 1.0, 3.0] + [1e30] * (key // 2 - 4))
    if layered:
        r.tensor("per_layer_token_embd.weight", [layered * layers, VOCABULARY], -0.5, 0.5)
        r.matrix("per_layer_model_proj", width, layered * layers)
        r.norm("per_layer_proj_norm", layered)
    for i, windowed in enumerate(kinds):
        b, d = f"blk.{i}.", window_key if windowed else key
        r.norm(b + "attn_norm", width)
        r.matrix(b + "attn_q", width, n * d)
        r.norm(b + "attn_q_norm", d, 0.3, 0.9)
        if i < layers - shared:
            r.matrix(b + "attn_k", width, groups[i] * d)
            r.norm(b + "attn_k_norm", d)
            if windowed or not moe:
                r.matrix(b + "attn_v", width, groups[i] * d)
        r.matrix(b + "attn_output", n * d, width, 1.5)
        r.norm(b + "post_attention_norm", width)
        r.tensor(b + "layer_output_scale.weight", [1], 0.4, 1.1)
        r.norm(b + "ffn_norm", width)
        r.feed(i, sizes[i])
        r.norm(b + "post_ffw_norm", width)
        if moe:
            r.experts(i, 8, 28, router=18.0, fused=i % 2 == 0)
            r.tensor(b + "ffn_gate_inp.scale", [width], 0.5, 1.5)
            r.tensor(b + "ffn_down_exps.scale", [8], 0.5, 1.5)
            r.norm(b + "pre_ffw_norm_2", width)
            r.norm(b + "post_ffw_norm_1", width)
            r.norm(b + "post_ffw_norm_2", width)
        if layered:
            r.matrix(b + "inp_gate", width, layered)
            r.matrix(b + "proj", layered, width)
            r.norm(b + "post_norm", width)
    return r


@recipe
def gemma4():
    return gemma4_like("gemma4", [True, False, True, False, True, True, False], 3, False, 12)


@recipe
def gemma4_moe():
    return gemma4_like("gemma4-moe", [True, True, False, True], 0, True, 0)


@recipe
def gemma():
    return gemma_like("gemma", "gemma", 48, 3, 4, 1, 20, 88, None, post=False, rope__freq_base=5000.0)


@recipe
def glm4():
    r = Recipe("glm4", "glm4", 56, 3, feed_forward_length=88, **heads(4, 2, 20, None, 10), rope__freq_base=5000.0)
    r.ends(False)
    for i in range(3):
        b = f"blk.{i}."
        r.norm(b + "attn_norm", 56)
        r.attention(i, 4, 2, 20, bias=True)
        r.norm(b + "post_attention_norm", 56)
        r.norm(b + "ffn_norm", 56)
        r.feed(i, 88, fused=True)
        r.norm(b + "post_ffw_norm", 56)
    return r


@recipe
def exaone4():
    r = Recipe("exaone4", "exaone4", 56, 3, feed_forward_length=88, **heads(4, 2), rope__freq_base=50000.0)
    r.ends(True)
    r.tensor("rope_freqs.weight", [7], 1, 4)
    for i in range(3):
        b = f"blk.{i}."
        r.attention(i, 4, 2, 14, norms="head")
        r.norm(b + "post_attention_norm", 56)
        r.feed(i, 88)
        r.norm(b + "post_ffw_norm", 56)
    return r


@recipe
def hunyuan_dense():
    return llama_like("hunyuan-dense", "hunyuan-dense", 56, 3, 4, 2, 20, tied=True, norms="head")


@recipe
def hunyuan_dense_alpha():
    return llama_like("hunyuan-dense-alpha", "hunyuan-dense", 56, 3, 4, 2, 20, norms="head", rope__scaling__alpha=50.0)


@recipe
def ernie4_5():
    return llama_like("ernie4-5", "ernie4_5", 56, 3, 4, 2, 20, tied=True, biases="q")


@recipe
def seed_oss():
    r = Recipe("seed-oss", "seed_oss", 56, 3, feed_forward_length=88, **heads(4, 2, 20), rope__freq_base=5000.0)
    r.ends(False)
    for i in range(3):
        r.norm(f"blk.{i}.attn_norm", 56)
        r.attention(i, 4, 2, 20, bias=True)
        r.norm(f"blk.{i}.post_attention_norm", 56)
        r.feed(i, 88)
    return r


@recipe
def cohere2():
    r = Recipe("cohere2", "cohere2", 56, 5, epsilon=0, feed_forward_length=88, **heads(4, 2), rope__freq_base=5000.0, attention__layer_norm_epsilon=0.001, attention__sliding_window=8, logit_scale=0.6)
    r.ends(True)
    for i in range(5):
        r.norm(f"blk.{i}.attn_norm", 56)
        r.attention(i, 4, 2, 14)
        r.feed(i, 88)
    return r


@recipe
def exaone4_window():
    # llama.cpp uses a sliding window for exaone4 only with 64 layers.
    r = Recipe("exaone4-window", "exaone4", 32, 64, feed_forward_length=40, **heads(4, 2), rope__freq_base=5000.0, attention__sliding_window=8)
    r.ends(True)
    for i in range(64):
        b = f"blk.{i}."
        r.attention(i, 4, 2, 8, norms="head")
        r.norm(b + "post_attention_norm", 32)
        r.feed(i, 40)
        r.norm(b + "post_ffw_norm", 32)
    return r


@recipe
def minicpm():
    return llama_like("minicpm", "minicpm", embedding_scale=3.0, residual_scale=0.6, logit_scale=0.7, tied=True)


def minicpm_longrope(name, original):
    r = llama_like(name, "minicpm", width=64, key=16, embedding_scale=3.0, residual_scale=0.6, logit_scale=0.7, context_length=512, rope__scaling__type="longrope",
                   rope__scaling__original_context_length=original, rope__scaling__attn_factor=1.1)
    r.tensor("rope_factors_long.weight", [8], 2, 6)
    r.tensor("rope_factors_short.weight", [8], 1, 1.8)
    r.unused = {"rope_factors_short.weight" if original < 256 else "rope_factors_long.weight"}
    return r


@recipe
def minicpm_longrope_long():
    return minicpm_longrope("minicpm-longrope-long", 32)


@recipe
def bitnet():
    r = Recipe("bitnet", "bitnet", 56, 3, feed_forward_length=88, **heads(4, 2), rope__freq_base=5000.0)
    r.ends(True)
    for i in range(3):
        b = f"blk.{i}."
        r.norm(b + "attn_norm", 56)
        r.attention(i, 4, 2, 14)
        r.norm(b + "attn_sub_norm", 56)
        r.norm(b + "ffn_norm", 56)
        r.feed(i, 88)
        r.norm(b + "ffn_sub_norm", 88)
        for n in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
            r.tensor(b + n + ".scale", [1], 0.6, 1.4)
    return r


@recipe
def llama_scales():
    # Optional multipliers that every architecture accepts for a weight.
    r = llama_like("llama-scales", "llama", 56, 2)
    for i in range(2):
        for n in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
            r.tensor(f"blk.{i}.{n}.scale", [1], 0.6, 1.4)
    return r


@recipe
def qwen3vl():
    r = llama_like("qwen3vl", "qwen3vl", 52, 3, 4, 2, 24, tied=True, norms="head", n_deepstack_layers=2)
    r.key("rope.dimension_sections", [4, 4, 4, 0])
    return r


@recipe
def qwen2vl():
    r = llama_like("qwen2vl", "qwen2vl", 64, 3, 4, 2, None, biases="q", epsilon=1e-9)  # this version of the loader ignores it
    r.key("rope.dimension_sections", [2, 3, 3, 0])
    return r


@recipe
def gemma3n():
    # The loader requires 20 layers with keys and values, 4 streams, rank 64 and 256 inputs per layer.
    width, layers, streams, rank, layered = 48, 25, 4, 64, 256
    r = Recipe("gemma3n", "gemma3n", width, layers, feed_forward_length=72, **heads(4, 2, 12), rope__freq_base=50000.0, rope__freq_base_swa=2000.0, attention__sliding_window=8,
               attention__shared_kv_layers=5, attention__sliding_window_pattern=[i % 5 != 4 for i in range(layers)], embedding_length_per_layer_input=layered, altup__num_inputs=streams, altup__active_idx=0,
               final_logit_softcapping=30.0)
    r.key("activation_sparsity_scale", [1.6448533535003662 if i < 10 else 0.0 for i in range(layers)])
    r.ends(True)
    r.matrix("altup_proj", width, width, 1, streams - 1)
    r.matrix("altup_unembd_proj", width, width, 1, streams - 1)
    r.tensor("per_layer_token_embd.weight", [layered * layers, VOCABULARY], -0.1, 0.1)
    r.matrix("per_layer_model_proj", width, layered * layers)
    r.norm("per_layer_proj_norm", layered)
    for i in range(layers):
        b = f"blk.{i}."
        r.norm(b + "attn_norm", width)
        r.attention(i, 4, 2, 12)
        r.norm(b + "attn_q_norm", 12, 0.2, 0.6)
        r.norm(b + "attn_k_norm", 12)
        r.norm(b + "post_attention_norm", width)
        r.norm(b + "ffn_norm", width)
        r.feed(i, 72)
        r.norm(b + "post_ffw_norm", width)
        r.matrix(b + "inp_gate", width, layered)
        r.matrix(b + "proj", layered, width)
        r.norm(b + "post_norm", width)
        r.matrix(b + "altup_router", width, streams, 30)
        r.norm(b + "altup_router_norm", width)
        r.tensor(b + "altup_predict_coef.weight", [streams, streams * streams], -0.12, 0.12)
        r.tensor(b + "altup_correct_coef.weight", [streams, streams], -0.3, 0.3)
        r.norm(b + "altup_correct_scale", width)
        r.matrix(b + "laurel_l", width, rank)
        r.matrix(b + "laurel_r", rank, width)
        r.norm(b + "laurel_post_norm", width)
        if i >= 20:
            r.unused |= {b + n + ".weight" for n in ("attn_k", "attn_v", "attn_k_norm")}
    return r
