"""Records reference logits of tiny random models of many architectures from llama.cpp. Run by hand, never in CI.

    PYTHONPATH=DIR_WITH_EXACT_GELU_BUILD python record_architectures.py OUT_DIR [NAME …] [--check]

Each model is a recipe: metadata, tensor shapes and ranges. Tensor values follow from the recipe alone (see `values`), so
that a test in any language can rebuild the file. --check also perturbs every tensor and every number of the metadata and
reports those that do not change the logits. Writes OUT_DIR/NAME.json.
"""
import ctypes, json, math, os, pathlib, random, sys, tempfile
import numpy as np
import gguf
import llama_cpp
from llama_cpp import llama_cpp as C

VOCABULARY = 96
MASK = (1 << 64) - 1


# Values of a tensor

def values(name, shape, low, high, seed):
    state = 0xCBF29CE484222325
    for byte in name.encode():
        state = ((state ^ byte) * 0x100000001B3) & MASK
    state ^= seed
    count = int(np.prod(shape))
    with np.errstate(over="ignore"):
        z = np.uint64(state) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    unit = (z >> np.uint64(40)).astype(np.float32) * np.float32(2.0 ** -24)
    low, high = np.float32(low), np.float32(high)
    return low + (high - low) * unit


# Recipes

class Recipe:
    def __init__(self, name, architecture, width, layers, **keys):
        self.name, self.architecture, self.width, self.layers = name, architecture, width, layers
        self.seed, self.context, self.length = 1, keys.pop("context", 256), keys.pop("length", 44)
        self.metadata, self.tensors, self.unused = [], [], set()
        self.put("general.architecture", architecture)
        self.put("tokenizer.ggml.model", "none")
        self.key("vocab_size", VOCABULARY)
        self.key("context_length", keys.pop("context_length", 512))
        self.key("embedding_length", width)
        self.key("block_count", keys.pop("block_count", layers))
        epsilon = keys.pop("epsilon", 0.001)
        if epsilon:
            self.key("attention.layer_norm_rms_epsilon", epsilon)
        for k, v in keys.items():
            self.key(k, v)

    def put(self, key, value, kind=None):
        if kind is None:
            kind = {str: "string", bool: "bool", int: "uint32", float: "float32"}.get(type(value))
            if kind is None:
                kind = {str: "string[]", bool: "bool[]", int: "int32[]", float: "float32[]"}[type(value[0])]
        self.metadata.append([key, kind, value])

    def key(self, key, value, kind=None):
        self.put(self.architecture + "." + key.replace("__", "."), value, kind)

    def tensor(self, name, shape, low, high):
        self.tensors.append({"name": name, "shape": [int(s) for s in shape], "low": round(low, 4), "high": round(high, 4)})

    def fixed(self, name, numbers):
        self.tensors.append({"name": name, "shape": [len(numbers)], "values": numbers})

    def matrix(self, name, columns, rows, gain=1.0, count=None):
        bound = math.sqrt(3 / columns) * gain
        self.tensor(name + ".weight", [columns, rows] + ([count] if count else []), -bound, bound)

    def norm(self, name, size, low=0.5, high=1.5):
        self.tensor(name + ".weight", [size] if isinstance(size, int) else size, low, high)

    def bias(self, name, size, bound=0.3):
        self.tensor(name + ".bias", [size] if isinstance(size, int) else size, -bound, bound)

    def ends(self, tied, gain=1.5, embedding=None, norm="output_norm"):
        bound = embedding or (0.35 if tied else 0.9)
        self.tensor("token_embd.weight", [self.width, VOCABULARY], -bound, bound)
        self.norm(norm, self.width)
        if not tied:
            self.matrix("output", self.width, VOCABULARY, gain)

    def attention(self, i, heads, groups, key, value=None, bias=False, output_bias=False, fused=False, norms=None, gain=1.6, query=1):
        value = value or key
        b, w = f"blk.{i}.", self.width
        if fused:
            self.matrix(b + "attn_qkv", w, heads * key + groups * key + groups * value, gain)
            if bias:
                self.bias(b + "attn_qkv", heads * key + groups * key + groups * value)
        else:
            self.matrix(b + "attn_q", w, heads * key * query, gain)
            self.matrix(b + "attn_k", w, groups * key, gain)
            self.matrix(b + "attn_v", w, groups * value)
            if bias:
                self.bias(b + "attn_q", heads * key)
                self.bias(b + "attn_k", groups * key)
                self.bias(b + "attn_v", groups * value)
        if norms == "head":
            self.norm(b + "attn_q_norm", key, 0.8, 2.4)
            self.norm(b + "attn_k_norm", key)
        elif norms == "full":
            self.norm(b + "attn_q_norm", heads * key, 0.8, 2.4)
            self.norm(b + "attn_k_norm", groups * key)
        self.matrix(b + "attn_output", heads * value, w, 1.5)
        if output_bias:
            self.bias(b + "attn_output", w)

    def feed(self, i, size, bias=False, gate=True, suffix="", fused=False):
        b, w = f"blk.{i}.", self.width
        names = [("ffn_up", w, 2 * size)] if fused else ([("ffn_gate", w, size)] if gate else []) + [("ffn_up", w, size)]
        for n, c, r in names + [("ffn_down", size, w)]:
            self.matrix(b + n + suffix, c, r, 1.4 if n == "ffn_down" else 1.2)
            if bias:
                self.bias(b + n, r)

    def experts(self, i, count, size, router=3.0, fused=False, bias=False, gate=True, gain=1.2, width=None):
        b, w = f"blk.{i}.", self.width
        inner = width or w
        self.matrix(b + "ffn_gate_inp", w, count, router)
        if fused:
            self.matrix(b + "ffn_gate_up_exps", inner, 2 * size, gain, count)
        else:
            if gate:
                self.matrix(b + "ffn_gate_exps", inner, size, gain, count)
            self.matrix(b + "ffn_up_exps", inner, size, gain, count)
        self.matrix(b + "ffn_down_exps", size, inner, 1.4, count)
        if bias:
            self.bias(b + "ffn_gate_inp", count)
            self.bias(b + "ffn_gate_exps", [size, count])
            self.bias(b + "ffn_up_exps", [size, count])
            self.bias(b + "ffn_down_exps", [w, count])

    def mamba2(self, i, inner, heads, groups, state, kernel):
        b, w = f"blk.{i}.", self.width
        channels = inner + 2 * groups * state
        self.matrix(b + "ssm_in", w, inner + channels + heads)
        self.matrix(b + "ssm_conv1d", kernel, channels, 1.3)
        self.bias(b + "ssm_conv1d", channels)
        self.bias(b + "ssm_dt", heads, 1.0)
        self.tensor(b + "ssm_a", [1, heads], -1.5, -0.2)
        self.tensor(b + "ssm_d", [1, heads], 0.3, 1.2)
        self.norm(b + "ssm_norm", [inner // groups, groups])
        self.matrix(b + "ssm_out", inner, w, 1.3)


def heads(architecture_heads, groups, key=None, value=None, rotated=None):
    result = {"attention__head_count": architecture_heads, "attention__head_count_kv": groups}
    if key:
        result["attention__key_length"] = key
        result["attention__value_length"] = value or key
    if rotated:
        result["rope__dimension_count"] = rotated
    return result


RECIPES = {}


def recipe(function):
    RECIPES[function.__name__.replace("_", "-")] = function
    return function


def llama_like(name, architecture, width=56, layers=3, n=4, groups=2, key=20, ff=88, tied=False, biases="", fused=False, norms=None, base=5000.0, rotated=None, fused_ff=False, **keys):
    keys = {"feed_forward_length": ff, **heads(n, groups, key if key else None, None, rotated or (key or None)), "rope__freq_base": base, **keys}
    r = Recipe(name, architecture, width, layers, **keys)
    r.ends(tied)
    key = key or width // n
    for i in range(layers):
        r.norm(f"blk.{i}.attn_norm", width)
        r.attention(i, n, groups, key, bias="q" in biases, output_bias="o" in biases, fused=fused, norms=norms)
        r.norm(f"blk.{i}.ffn_norm", width)
        r.feed(i, ff, bias="f" in biases, fused=fused_ff)
    return r


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
    # The key of old files, without a scaling type.
    return llama_like("llama-scale-linear", "llama", tied=True, rope__scale_linear=2.5)


@recipe
def llama_fused():
    return llama_like("llama-fused", "llama", biases="q", fused=True)


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
                      rope__scaling__yarn_beta_fast=32.0, rope__scaling__yarn_beta_slow=1.0)  # the last three as converters write them: without effect


@recipe
def granite():
    return llama_like("granite", "granite", embedding_scale=3.5, residual_scale=0.6, attention__scale=0.11, logit_scale=0.6, tied=True)


@recipe
def granite_nope():
    r = llama_like("granite-nope", "granite", biases="qof", embedding_scale=2.0, residual_scale=0.7, attention__scale=0.15, logit_scale=1.5)
    r.key("rope.scaling.finetuned", False)
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


@recipe
def mistral3():
    return llama_like("mistral3", "mistral3", base=100.0, rope__scaling__type="yarn", rope__scaling__factor=4.0, rope__scaling__original_context_length=16, rope__scaling__yarn_beta_fast=1.0,
                      rope__scaling__yarn_beta_slow=0.25, rope__scaling__yarn_log_multiplier=1.0, attention__temperature_scale=0.3)


@recipe
def mistral3_mscale():
    return llama_like("mistral3-mscale", "mistral3", tied=True, base=100.0, rope__scaling__type="yarn", rope__scaling__factor=8.0, rope__scaling__original_context_length=24, rope__scaling__yarn_log_multiplier=0.5)


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
            # The rows of attn_k_b are indexed by the latent, so its columns are nope: keys would sum over the latent.
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
    # Its attn_k_norm has the full width, so the loader needs as many key heads as heads.
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
    # Without the key attention.q_lora_rank the loader wants 26 or 27 layers.
    return deepseek2_like("deepseek2-lite-27", lora=None, layers=27, yarn=0.0707)


@recipe
def exaone4_window():
    # The loader windows exaone4 at 64 layers only.
    r = Recipe("exaone4-window", "exaone4", 32, 64, feed_forward_length=40, **heads(4, 2), rope__freq_base=5000.0, attention__sliding_window=8)
    r.ends(True)
    for i in range(64):
        b = f"blk.{i}."
        r.attention(i, 4, 2, 8, norms="head")
        r.norm(b + "post_attention_norm", 32)
        r.feed(i, 40)
        r.norm(b + "post_ffw_norm", 32)
    return r


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
    # The optional multipliers every architecture accepts beside a weight.
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
    r = llama_like("qwen2vl", "qwen2vl", 64, 3, 4, 2, None, biases="q", epsilon=1e-9)  # this version of the loader does not read it
    r.key("rope.dimension_sections", [2, 3, 3, 0])
    return r


@recipe
def qwen3next_legacy():
    """With the older ssm_in in place of attn_qkv and attn_gate: per key head q, k, its v heads, its z heads."""
    r = qwen35_like("qwen3next-legacy", "qwen3next", 2, moe=True, sections=False, interval=2)
    r.tensors = [t for t in r.tensors if t["name"] not in ("blk.0.attn_qkv.weight", "blk.0.attn_gate.weight")]
    r.matrix("blk.0.ssm_in", 56, (2 * 2 + 2 * 6) * 16, 1.3)
    return r


@recipe
def gemma3n():
    # The loader fixes 20 layers with keys and values, 4 streams, rank 64 and 256 inputs per layer.
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


# Files and llama.cpp

KINDS = {"string": gguf.GGUFValueType.STRING, "uint32": gguf.GGUFValueType.UINT32, "int32": gguf.GGUFValueType.INT32, "float32": gguf.GGUFValueType.FLOAT32, "bool": gguf.GGUFValueType.BOOL}


def data(recipe, tensor):
    shape = tensor["shape"]
    if "values" in tensor:
        numbers = np.array(tensor["values"], dtype=np.float32)
    else:
        numbers = values(tensor["name"], shape, tensor["low"], tensor["high"], recipe.seed)
    return numbers.reshape(list(reversed(shape)))


def write(recipe, path, change=None):
    writer = gguf.GGUFWriter(path, recipe.architecture)
    for key, kind, value in recipe.metadata:
        if key == "general.architecture":
            continue
        if kind.endswith("[]"):
            writer.add_key_value(key, value, gguf.GGUFValueType.ARRAY, KINDS[kind[:-2]])
        else:
            writer.add_key_value(key, value, KINDS[kind])
    for tensor in recipe.tensors:
        numbers = data(recipe, tensor)
        if change == tensor["name"]:
            numbers = numbers[..., ::-1].copy() if numbers.size > 1 else numbers * 1.5
            if np.array_equal(numbers, data(recipe, tensor)):
                numbers = numbers * 1.5
        writer.add_tensor(tensor["name"], np.ascontiguousarray(numbers))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


LOG = []


@llama_cpp.llama_log_callback
def logged(level, text, user):
    LOG.append(text.decode(errors="replace"))


llama_cpp.llama_log_set(logged, ctypes.c_void_p(0))
llama_cpp.llama_backend_init()

BASE = ctypes.CDLL(str(pathlib.Path(llama_cpp.__file__).parent / "lib" / "libggml-base.so"))
BASE.ggml_get_name.restype = ctypes.c_char_p
BASE.ggml_get_name.argtypes = [ctypes.c_void_p]
BASE.ggml_nelements.restype = ctypes.c_int64
BASE.ggml_nelements.argtypes = [ctypes.c_void_p]
BASE.ggml_backend_tensor_get.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t]


class Model:
    def __init__(self, path, context, capture=None):
        self.captured = {}

        def evaluated(tensor, ask, user):
            name = BASE.ggml_get_name(tensor).decode()
            wanted = capture is not None and capture(name)
            if ask:
                return wanted
            count = BASE.ggml_nelements(tensor)
            numbers = np.empty(count, dtype=np.float32)
            BASE.ggml_backend_tensor_get(tensor, numbers.ctypes.data, 0, count * 4)
            self.captured[name] = numbers
            return True

        LOG.clear()
        parameters = C.llama_model_default_params()
        parameters.n_gpu_layers = 0
        self.model = C.llama_model_load_from_file(str(path).encode(), parameters)
        if not self.model:
            raise RuntimeError("".join(LOG[-12:]))
        parameters = C.llama_context_default_params()
        parameters.n_ctx, parameters.n_batch, parameters.n_ubatch = context, context, context
        parameters.n_threads = parameters.n_threads_batch = 1
        parameters.type_k = parameters.type_v = 0
        parameters.flash_attn_type = 0
        parameters.swa_full = True
        parameters.offload_kqv = parameters.op_offload = False
        if capture is not None:
            self.callback = C.ggml_backend_sched_eval_callback(evaluated)
            parameters.cb_eval = self.callback
        self.context = C.llama_init_from_model(self.model, parameters)
        if not self.context:
            raise RuntimeError("".join(LOG[-12:]))
        self.size = C.llama_n_ctx(self.context)

    def logits(self, tokens, chunk=None):
        memory = C.llama_get_memory(self.context)
        C.llama_memory_clear(memory, True)
        result = []
        chunk = chunk or len(tokens)
        for start in range(0, len(tokens), chunk):
            part = tokens[start:start + chunk]
            batch = C.llama_batch_init(len(part), 0, 1)
            batch.n_tokens = len(part)
            for j, token in enumerate(part):
                batch.token[j], batch.pos[j], batch.n_seq_id[j], batch.seq_id[j][0], batch.logits[j] = token, start + j, 1, 0, 1
            if C.llama_decode(self.context, batch) != 0:
                raise RuntimeError("decode failed: " + "".join(LOG[-5:]))
            for j in range(len(part)):
                result.append(np.ctypeslib.as_array(C.llama_get_logits_ith(self.context, j), shape=(VOCABULARY,)).copy())
            C.llama_batch_free(batch)
        return np.stack(result)

    def close(self):
        C.llama_free(self.context)
        C.llama_model_free(self.model)


def run(recipe, tokens, change=None):
    with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
        write(recipe, file.name, change)
        model = Model(file.name, recipe.context)
        try:
            return model.logits(tokens)
        finally:
            model.close()


def margin(recipe, captured, tokens):
    """The smallest distance between a chosen and a rejected expert (or group), in units of what is compared."""
    get = {key: value for key, kind, value in recipe.metadata for key in [key.split(".", 1)[-1]]}
    count, used = get.get("expert_count"), get.get("expert_used_count")
    if not count:
        return None
    groups, kept = get.get("expert_group_count", 0), get.get("expert_group_used_count", 0)
    worst = math.inf
    for i in range(recipe.layers):
        logits = captured.get(f"ffn_moe_logits_biased-{i}", captured.get(f"ffn_moe_logits-{i}"))
        scores = captured.get(f"ffn_moe_probs_biased-{i}")
        if scores is None:
            # Softmax and raw logits order the experts alike.
            scores = logits
            if logits is None:
                continue
        scores = scores.reshape(-1, count).astype(np.float64)
        if groups:
            best = np.sort(scores.reshape(len(scores), groups, -1), axis=2)[:, :, -2:].sum(axis=2)
            order = np.argsort(-best, axis=1)
            sorted_best = -np.sort(-best, axis=1)
            worst = min(worst, (sorted_best[:, kept - 1] - sorted_best[:, kept]).min())
            mask = np.zeros_like(best, dtype=bool)
            np.put_along_axis(mask, order[:, :kept], True, axis=1)
            scores = np.where(np.repeat(mask, count // groups, axis=1), scores, -1e9)
        ordered = -np.sort(-scores, axis=1)
        worst = min(worst, (ordered[:, used - 1] - ordered[:, used]).min())
    return worst


def record(name, out, check):
    recipe = RECIPES[name]()
    assert recipe.name == name, (recipe.name, name)
    best = None
    with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
        write(recipe, file.name)
        moe = any(key.endswith(".expert_count") for key, _, _ in recipe.metadata)
        model = Model(file.name, recipe.context, (lambda n: n.startswith(("ffn_moe_logits", "ffn_moe_probs"))) if moe else None)
        # Of several prompts take the one whose choice of experts is clearest.
        for attempt in range(24 if moe else 1):
            rng = random.Random(f"{name}/{attempt}")
            tokens = [rng.randrange(VOCABULARY) for _ in range(recipe.length)]
            model.captured.clear()
            logits = model.logits(tokens)
            clear = margin(recipe, model.captured, tokens)
            if best is None or (clear or 0) > (best[2] or 0):
                best = (tokens, logits, clear)
        tokens, _, clear = best
        context = model.size
        model.close()
        model = Model(file.name, recipe.context)
        logits = model.logits(tokens)
        noise = max(np.abs(model.logits(tokens, chunk) - logits).max() for chunk in (1, 7, 16))
        size = os.path.getsize(file.name)
        model.close()
    spread = float(logits.std(axis=1).mean())
    assert np.isfinite(logits).all()
    changed = list(tokens)
    changed[0] = (changed[0] + 7) % VOCABULARY
    early = float(np.abs(run(recipe, changed)[-1] - logits[-1]).max())
    last = len(tokens) - 1
    positions = sorted({0, 1, 9, 17, 30, last})
    (out / f"{name}.json").write_text(json.dumps({
        "name": name, "seed": recipe.seed, "context": context, "metadata": recipe.metadata, "tensors": recipe.tensors, "tokens": tokens, "positions": positions,
        "logits": [[float(f"{x:.7g}") for x in logits[p]] for p in positions],
    }, separators=(",", ":")))
    probability = np.exp(logits - logits.max(axis=1, keepdims=True))
    probability /= probability.sum(axis=1, keepdims=True)
    print(f"{name:28} spread {spread:6.3f}  max |logit| {np.abs(logits).max():6.2f}  top p {probability.max(axis=1).mean():.3f}  first token moves last logits {early:.2g}  split noise {noise:.1e}"
          f"  expert margin {'-' if clear is None else f'{clear:.1e}'}  {size // 1024} KiB", flush=True)
    if check:
        def effect(change=None):
            return float(np.abs(run(recipe, tokens, change) - logits)[positions].max())

        effects = []
        for tensor in recipe.tensors:
            moved = effect(tensor["name"])
            if tensor["name"] not in recipe.unused:
                effects.append((moved, tensor["name"]))
            elif moved > 1e-3 * spread:
                print(f"    UNEXPECTED EFFECT of {tensor['name']}: {moved:.2g}")
        print("    weakest tensors: " + ", ".join(f"{n} {m:.2g}" for m, n in sorted(effects)[:3]))
        for index, (key, kind, value) in enumerate(list(recipe.metadata)):
            if kind == "float32":
                alternative = value * 1.3 if not key.endswith("epsilon") else value * 2
            elif kind == "uint32" and key.split(".", 1)[1] in ("attention.sliding_window", "expert_used_count", "rope.scaling.original_context_length", "expert_gating_func"):
                alternative = value + 1 if "original" not in key else value * 2
                if key.endswith("gating_func"):
                    alternative = 1
            elif kind == "bool":
                alternative = not value
            else:
                continue
            recipe.metadata[index] = [key, kind, alternative]
            try:
                moved = effect()
                if moved < 2e-2:
                    print(f"    weak: {key} {value} -> {alternative} moves the logits by {moved:.2g}")
            except RuntimeError:
                pass
            recipe.metadata[index] = [key, kind, value]
        sys.stdout.flush()


def main():
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    out = pathlib.Path(arguments[0])
    out.mkdir(parents=True, exist_ok=True)
    for name in arguments[1:] or RECIPES:
        try:
            record(name, out, "--check" in sys.argv)
        except Exception as error:
            print(f"{name:28} FAILED: {error}", flush=True)
            if "--trace" in sys.argv:
                raise


if __name__ == "__main__":
    main()
