"""The building blocks of recipes of tiny random models; see record_architectures.py."""
import math

import numpy as np

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
