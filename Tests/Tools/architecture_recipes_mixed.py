"""Recipes of models with experts, recurrent layers, convolutions or latent attention."""
import math

from architecture_recipe import VOCABULARY, Recipe, heads, recipe


@recipe
def llama_moe():
    r = Recipe("llama-moe", "llama", 48, 3, feed_forward_length=44, **heads(4, 2, 12, None, 12), expert_count=8, expert_used_count=2, rope__freq_base=20000.0)
    r.ends(False)
    for i in range(3):
        r.norm(f"blk.{i}.attn_norm", 48)
        r.attention(i, 4, 2, 12)
        r.norm(f"blk.{i}.ffn_norm", 48)
        r.experts(i, 8, 44)
    return r


@recipe
def qwen3moe():
    r = Recipe("qwen3moe", "qwen3moe", 56, 3, feed_forward_length=120, **heads(4, 2, 20), rope__freq_base=5000.0, expert_count=10, expert_used_count=3, expert_feed_forward_length=28)
    r.ends(False)
    for i in range(3):
        r.norm(f"blk.{i}.attn_norm", 56)
        r.attention(i, 4, 2, 20, norms="head")
        r.norm(f"blk.{i}.ffn_norm", 56)
        r.experts(i, 10, 28)
    return r


@recipe
def gpt_oss():
    r = Recipe("gpt-oss", "gpt-oss", 48, 4, feed_forward_length=40, **heads(4, 2, 16), rope__freq_base=150.0, rope__scaling__type="yarn", rope__scaling__factor=4.0,
               rope__scaling__original_context_length=32, attention__sliding_window=8, expert_count=6, expert_used_count=2, expert_feed_forward_length=40)
    r.ends(False)
    for i in range(4):
        b = f"blk.{i}."
        r.norm(b + "attn_norm", 48)
        r.attention(i, 4, 2, 16, bias=True, output_bias=True)
        r.tensor(b + "attn_sinks.weight", [4], -1, 1)
        r.norm(b + "post_attention_norm", 48)
        r.experts(i, 6, 40, bias=True, gain=3.5)
    return r


def granitemoe_like(name, shared):
    keys = {"expert_shared_feed_forward_length": 32} if shared else {}
    r = Recipe(name, "granitemoe", 48, 3, feed_forward_length=36, **heads(4, 2, 12, None, 12), rope__freq_base=5000.0, expert_count=7, expert_used_count=3, embedding_scale=3.0,
               residual_scale=0.55, attention__scale=0.2, logit_scale=0.7, **keys)
    r.ends(True)
    for i in range(3):
        r.norm(f"blk.{i}.attn_norm", 48)
        r.attention(i, 4, 2, 12)
        r.norm(f"blk.{i}.ffn_norm", 48)
        r.experts(i, 7, 36)
        if shared:
            r.feed(i, 32, suffix="_shexp")
    return r


@recipe
def granitemoe():
    return granitemoe_like("granitemoe", False)


@recipe
def granitemoe_shared():
    return granitemoe_like("granitemoe-shared", True)


def granitehybrid_like(name, moe, rope):
    kinds = [0, 0, 2, 0, 2]
    keys = {"expert_count": 6, "expert_used_count": 2, "expert_shared_feed_forward_length": 30} if moe else {}
    r = Recipe(name, "granitehybrid", 48, 5, feed_forward_length=36 if moe else 88, attention__head_count=4, attention__head_count_kv=kinds, rope__dimension_count=12, rope__freq_base=5000.0,
               embedding_scale=3.0, residual_scale=0.7, attention__scale=0.2, logit_scale=0.7, ssm__conv_kernel=4, ssm__inner_size=96, ssm__state_size=20, ssm__time_step_rank=6, ssm__group_count=2, **keys)
    if not rope:
        r.key("rope.scaling.finetuned", False)
    r.ends(not moe)
    for i, groups in enumerate(kinds):
        r.norm(f"blk.{i}.attn_norm", 48)
        if groups:
            r.attention(i, 4, groups, 12)
        else:
            r.mamba2(i, 96, 6, 2, 20, 4)
        r.norm(f"blk.{i}.ffn_norm", 48)
        if moe:
            r.experts(i, 6, 36)
            r.feed(i, 30, suffix="_shexp")
        else:
            r.feed(i, 88)
    return r


@recipe
def granitehybrid():
    return granitehybrid_like("granitehybrid", True, True)


@recipe
def granitehybrid_dense_nope():
    return granitehybrid_like("granitehybrid-dense-nope", False, False)


def lfm2_like(name, moe):
    kinds = [0, 0, 2, 0, 2, 0]
    keys = {"expert_count": 8, "expert_used_count": 3, "expert_feed_forward_length": 28, "expert_gating_func": 2, "leading_dense_block_count": 2} if moe else {}
    r = Recipe(name, "lfm2moe" if moe else "lfm2", 56, 6, feed_forward_length=88, attention__head_count=4, attention__head_count_kv=kinds, rope__freq_base=5000.0,
               shortconv__l_cache=4 if moe else 3, **keys)
    r.ends(True, norm="token_embd_norm")
    for i, groups in enumerate(kinds):
        b = f"blk.{i}."
        r.norm(b + "attn_norm", 56)
        if groups:
            r.attention(i, 4, groups, 14, norms="head")
        else:
            r.matrix(b + "shortconv.in_proj", 56, 168, 1.3)
            r.matrix(b + "shortconv.conv", 4 if moe else 3, 56, 1.3)
            r.matrix(b + "shortconv.out_proj", 56, 56, 1.3)
        r.norm(b + "ffn_norm", 56)
        if moe and i >= 2:
            r.experts(i, 8, 28, router=1.5)
            r.tensor(b + "exp_probs_b.bias", [8], -0.3, 0.3)
        else:
            r.feed(i, 88)
    return r


@recipe
def lfm2():
    return lfm2_like("lfm2", False)


@recipe
def lfm2moe():
    return lfm2_like("lfm2moe", True)


def delta(r, i, state, keys, vals, kernel, combined=False):
    b, w = f"blk.{i}.", r.width
    channels = (2 * keys + vals) * state
    r.matrix(b + "attn_qkv", w, channels, 1.5)
    r.matrix(b + "attn_gate", w, vals * state)
    r.matrix(b + "ssm_conv1d", kernel, channels, 1.3)
    r.bias(b + "ssm_dt", vals, 1.0)
    r.tensor(b + "ssm_a", [vals], -0.6, -0.1)
    if combined:
        r.matrix(b + "ssm_ba", w, 2 * vals)
    else:
        r.matrix(b + "ssm_beta", w, vals)
        r.matrix(b + "ssm_alpha", w, vals)
    r.norm(b + "ssm_norm", state)
    r.matrix(b + "ssm_out", vals * state, w, 1.5)


def qwen35_like(name, architecture, layers, moe=False, tied=False, fused=False, sections=True, predict=False, interval=None):
    keys = {"expert_count": 8, "expert_used_count": 3, "expert_feed_forward_length": 24, "expert_shared_feed_forward_length": 32} if moe else {"feed_forward_length": 88}
    r = Recipe(name, architecture, 56, layers, block_count=layers + (1 if predict else 0), **heads(4, 2, 24, None, 16), rope__freq_base=5000.0, ssm__conv_kernel=4, ssm__state_size=16,
               ssm__group_count=2, ssm__time_step_rank=6, ssm__inner_size=96, **keys)
    if sections:
        r.key("rope.dimension_sections", [3, 3, 2, 0])
    if predict:
        r.key("nextn_predict_layers", 1)
    if interval:
        r.key("full_attention_interval", interval)
    r.ends(tied)
    for i in range(layers + (1 if predict else 0)):
        b = f"blk.{i}."
        first = len(r.tensors)
        r.norm(b + "attn_norm", 56)
        if i == layers or (i + 1) % (interval or 4) == 0:
            r.attention(i, 4, 2, 24, norms="head", query=2)
        else:
            delta(r, i, 16, 2, 6, 4, combined=architecture == "qwen3next")
        r.norm(b + "post_attention_norm", 56)
        if moe:
            r.experts(i, 8, 24, fused=fused)
            r.tensor(b + "ffn_gate_inp_shexp.weight", [56], -0.3, 0.3)
            r.feed(i, 32, suffix="_shexp")
        else:
            r.feed(i, 88)
        if i == layers:
            r.matrix(b + "nextn.eh_proj", 112, 56)
            r.norm(b + "nextn.enorm", 56)
            r.norm(b + "nextn.hnorm", 56)
            r.norm(b + "nextn.shared_head_norm", 56)
            r.unused |= {t["name"] for t in r.tensors[first:]}
    return r


@recipe
def qwen35():
    return qwen35_like("qwen35", "qwen35", 5, tied=True)


@recipe
def qwen35_mtp():
    return qwen35_like("qwen35-mtp", "qwen35", 3, predict=True, interval=3)


@recipe
def qwen35moe():
    return qwen35_like("qwen35moe", "qwen35moe", 4, moe=True)


@recipe
def qwen35moe_fused():
    return qwen35_like("qwen35moe-fused", "qwen35moe", 2, moe=True, fused=True, tied=True, interval=2)


@recipe
def qwen3next():
    return qwen35_like("qwen3next", "qwen3next", 4, moe=True, sections=False)


def deepseek2_like(name, lora=0, absorbed=False, sigmoid=False, norm=False, scale=None, yarn=False, groups=0, tied=False, fused=False, layers=4):
    n, nope, rope, val, latent = 4, 14, 8, 18, 24
    keys = {}
    if absorbed:
        keys |= {"attention__head_count_kv": 1, "attention__key_length": latent + rope, "attention__value_length": latent, "attention__key_length_mla": nope + rope, "attention__value_length_mla": val}
    else:
        keys |= {"attention__head_count_kv": n, "attention__key_length": nope + rope, "attention__value_length": val}
    if yarn:
        keys |= {"rope__scaling__type": "yarn", "rope__scaling__factor": 4.0, "rope__scaling__original_context_length": 40, "rope__scaling__yarn_log_multiplier": yarn}
    if scale:
        keys["expert_weights_scale"] = scale
    if norm:
        keys["expert_weights_norm"] = True
    if sigmoid:
        keys["expert_gating_func"] = 2
    if groups:
        keys |= {"expert_group_count": groups, "expert_group_used_count": 2}
    if lora is not None:
        keys["attention__q_lora_rank"] = lora
    r = Recipe(name, "deepseek2", 56, layers, feed_forward_length=88, attention__head_count=n, attention__kv_lora_rank=latent, rope__dimension_count=rope, rope__freq_base=100.0 if yarn else 5000.0,
               leading_dense_block_count=1, expert_count=12, expert_used_count=3, expert_shared_count=2, expert_feed_forward_length=20, **keys)
    r.ends(tied)
    for i in range(layers):
        b = f"blk.{i}."
        r.norm(b + "attn_norm", 56)
        if lora:
            r.matrix(b + "attn_q_a", 56, lora)
            r.norm(b + "attn_q_a_norm", lora)
            r.matrix(b + "attn_q_b", lora, n * (nope + rope), 1.6)
        else:
            r.matrix(b + "attn_q", 56, n * (nope + rope), 1.6)
        r.matrix(b + "attn_kv_a_mqa", 56, latent + rope, 1.3)
        r.norm(b + "attn_kv_a_norm", latent)
        if absorbed:
            # The rows of attn_k_b are indexed by the latent dimension, so its columns are the nope dimensions:
            # otherwise keys would sum over the latent dimension.
            bound = math.sqrt(3 / latent) * 1.4
            r.tensor(b + "attn_k_b.weight", [nope, latent, n], -bound, bound)
            r.matrix(b + "attn_v_b", latent, val, 1, n)
        else:
            r.matrix(b + "attn_kv_b", latent, n * (nope + val), 1.4)
        r.matrix(b + "attn_output", n * val, 56, 1.5)
        r.norm(b + "ffn_norm", 56)
        if i < 1:
            r.feed(i, 88)
        else:
            r.experts(i, 12, 20, router=1.5 if sigmoid else 3.0, fused=fused)
            if sigmoid:
                r.tensor(b + "exp_probs_b.bias", [12], -0.3, 0.3)
            r.feed(i, 40, suffix="_shexp")
    return r


@recipe
def deepseek2_lite():
    return deepseek2_like("deepseek2-lite")


@recipe
def deepseek2_yarn():
    return deepseek2_like("deepseek2-yarn", lora=20, yarn=0.0707, scale=1.7, tied=True)


@recipe
def deepseek2_absorbed():
    return deepseek2_like("deepseek2-absorbed", lora=20, absorbed=True, scale=1.3, sigmoid=True, norm=True)


@recipe
def deepseek2_groups():
    return deepseek2_like("deepseek2-groups", lora=20, absorbed=True, scale=2.5, sigmoid=True, norm=True, groups=4, yarn=0.1, fused=True)


@recipe
def ernie4_5_moe():
    r = Recipe("ernie4-5-moe", "ernie4_5-moe", 56, 4, feed_forward_length=88, **heads(4, 2, 14), rope__freq_base=5000.0, expert_count=8, expert_used_count=3, expert_feed_forward_length=24,
               expert_shared_feed_forward_length=32, interleave_moe_layer_step=1, leading_dense_block_count=1)
    r.ends(True)
    for i in range(4):
        b = f"blk.{i}."
        r.norm(b + "attn_norm", 56)
        r.attention(i, 4, 2, 14)
        r.norm(b + "ffn_norm", 56)
        if i < 1:
            r.feed(i, 88)
        else:
            r.experts(i, 8, 24, router=2.0)
            r.tensor(b + "exp_probs_b.bias", [8], -0.2, 0.2)
            r.feed(i, 32, suffix="_shexp")
    return r


@recipe
def olmoe():
    # attn_k_norm has the full width, so the loader requires as many key heads as query heads.
    r = Recipe("olmoe", "olmoe", 56, 3, feed_forward_length=24, **heads(4, 4), rope__freq_base=5000.0, expert_count=10, expert_used_count=4)
    r.ends(False)
    for i in range(3):
        r.norm(f"blk.{i}.attn_norm", 56)
        r.attention(i, 4, 4, 14, norms="full")
        r.norm(f"blk.{i}.ffn_norm", 56)
        r.experts(i, 10, 24)
    return r


@recipe
def qwen2moe():
    r = Recipe("qwen2moe", "qwen2moe", 60, 3, feed_forward_length=88, **heads(6, 2), rope__freq_base=5000.0, expert_count=8, expert_used_count=3, expert_feed_forward_length=24,
               expert_shared_feed_forward_length=44)
    r.ends(False)
    for i in range(3):
        b = f"blk.{i}."
        r.norm(b + "attn_norm", 60)
        r.attention(i, 6, 2, 10, bias=True)
        r.norm(b + "ffn_norm", 60)
        r.experts(i, 8, 24)
        r.tensor(b + "ffn_gate_inp_shexp.weight", [60], -0.3, 0.3)
        r.feed(i, 44, suffix="_shexp")
    return r


@recipe
def falcon_h1():
    r = Recipe("falcon-h1", "falcon-h1", 48, 3, feed_forward_length=88, **heads(4, 2, 14), rope__freq_base=5000.0, ssm__conv_kernel=4, ssm__inner_size=72, ssm__state_size=20, ssm__time_step_rank=6,
               ssm__group_count=2)
    r.ends(False)
    for i in range(3):
        b = f"blk.{i}."
        r.norm(b + "attn_norm", 48)
        r.attention(i, 4, 2, 14)
        r.mamba2(i, 72, 6, 2, 20, 4)
        r.tensor(b + "ffn_norm", [48], 0.5, 1.5)
        r.feed(i, 88)
    return r


def nemotron_like(name, architecture, moe):
    kinds = "MFMAFM" if not moe else "MEMAEM"
    keys = {"expert_count": 8, "expert_used_count": 3, "expert_feed_forward_length": 28, "expert_shared_feed_forward_length": 36, "expert_shared_count": 1, "expert_weights_norm": True, "expert_weights_scale": 2.5} if moe else {}
    r = Recipe(name, architecture, 48, 6, epsilon=0, feed_forward_length=[88 if k in "FE" else 0 for k in kinds], attention__head_count=4, attention__head_count_kv=[2 if k == "A" else 0 for k in kinds],
               attention__key_length=14, attention__value_length=14, attention__layer_norm_epsilon=0.001, attention__layer_norm_rms_epsilon=0.002, ssm__conv_kernel=4, ssm__inner_size=72, ssm__state_size=20,
               ssm__time_step_rank=6, ssm__group_count=2, **keys)
    r.ends(False)
    for i, k in enumerate(kinds):
        b = f"blk.{i}."
        r.norm(b + "attn_norm", 48)
        if k == "M":
            r.mamba2(i, 72, 6, 2, 20, 4)
        elif k == "A":
            r.attention(i, 4, 2, 14)
        elif k == "F":
            r.feed(i, 88, gate=False)
        else:
            r.experts(i, 8, 28, router=1.5, gate=False)
            r.tensor(b + "exp_probs_b.bias", [8], -0.3, 0.3)
            r.feed(i, 36, gate=False, suffix="_shexp")
    return r


@recipe
def nemotron_h():
    return nemotron_like("nemotron-h", "nemotron_h", False)


@recipe
def nemotron_h_moe():
    return nemotron_like("nemotron-h-moe", "nemotron_h_moe", True)


@recipe
def glm4moe():
    r = Recipe("glm4moe", "glm4moe", 56, 3, feed_forward_length=88, **heads(4, 2, 20, None, 10), rope__freq_base=5000.0, expert_count=8, expert_used_count=3, expert_feed_forward_length=24,
               expert_shared_count=1, leading_dense_block_count=1, expert_weights_scale=1.5, expert_weights_norm=True, expert_gating_func=2)
    r.ends(False)
    for i in range(3):
        b = f"blk.{i}."
        r.norm(b + "attn_norm", 56)
        r.attention(i, 4, 2, 20, bias=True, norms="head")
        r.norm(b + "post_attention_norm", 56)
        if i < 1:
            r.feed(i, 88)
        else:
            r.experts(i, 8, 24, router=1.5)
            r.tensor(b + "exp_probs_b.bias", [8], -0.3, 0.3)
            r.feed(i, 24, suffix="_shexp")
    return r


@recipe
def deepseek2_lite_27():
    # Without the key attention.q_lora_rank the loader requires 26 or 27 layers.
    return deepseek2_like("deepseek2-lite-27", lora=None, layers=27, yarn=0.0707)


def granite_swa_like(name, moe):
    keys = {"expert_count": 6, "expert_used_count": 2, "expert_shared_feed_forward_length": 30} if moe else {}
    r = Recipe(name, "granite_swa", 48, 5, feed_forward_length=36 if moe else 88, **heads(4, 2, 12, None, 12), rope__freq_base=5000.0, embedding_scale=3.0, residual_scale=0.7, attention__scale=0.3,
               logit_scale=0.7, attention__sliding_window=8, attention__sliding_window_pattern=[False, True, True, True, False], attention__rope_pattern=[True, True, False, True, False], **keys)
    r.ends(True)
    for i in range(5):
        b = f"blk.{i}."
        r.norm(b + "attn_norm", 48)
        r.attention(i, 4, 2, 12)
        r.tensor(b + "attn_sinks.weight", [4], -1, 1)
        r.norm(b + "ffn_norm", 48)
        if moe:
            r.experts(i, 6, 36, fused=i > 2)
            r.matrix(b + "ffn_up_shexp", 48, 60, 1.2)
            r.matrix(b + "ffn_down_shexp", 30, 48, 1.4)
        else:
            r.feed(i, 88)
    return r


@recipe
def granite_swa():
    return granite_swa_like("granite-swa", False)


@recipe
def granite_swa_moe():
    return granite_swa_like("granite-swa-moe", True)


@recipe
def phimoe():
    r = Recipe("phimoe", "phimoe", 64, 3, feed_forward_length=36, **heads(4, 2), rope__freq_base=5000.0, expert_count=8, expert_used_count=2, rope__scaling__type="longrope",
               rope__scaling__original_context_length=32, rope__scaling__attn_factor=1.19)
    r.ends(False)
    r.bias("output", VOCABULARY)
    r.bias("output_norm", 64)
    r.tensor("rope_factors_long.weight", [8], 2, 6)
    r.tensor("rope_factors_short.weight", [8], 1, 1.8)
    r.unused = {"rope_factors_short.weight"}
    for i in range(3):
        b = f"blk.{i}."
        r.norm(b + "attn_norm", 64)
        r.bias(b + "attn_norm", 64)
        r.attention(i, 4, 2, 16, bias=True, output_bias=True)
        r.norm(b + "ffn_norm", 64)
        r.bias(b + "ffn_norm", 64)
        r.experts(i, 8, 36)
    return r


@recipe
def qwen3next_legacy():
    """With the older tensor ssm_in instead of attn_qkv and attn_gate: per key head q, k, its v heads, its z heads."""
    r = qwen35_like("qwen3next-legacy", "qwen3next", 2, moe=True, sections=False, interval=2)
    r.tensors = [t for t in r.tensors if t["name"] not in ("blk.0.attn_qkv.weight", "blk.0.attn_gate.weight")]
    r.matrix("blk.0.ssm_in", 56, (2 * 2 + 2 * 6) * 16, 1.3)
    return r
