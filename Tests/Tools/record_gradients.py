"""Records reference gradients of low-rank adapters (LoRA) of the tiny random models with dense attention layers. Run manually, never in CI.

    PYTHONPATH=Tests/Tools python record_gradients.py RECIPES_DIR OUT_DIR [NAME …] [--check]

RECIPES_DIR contains the files that record_architectures.py wrote. All computations are in float64, by PyTorch. Before anything is recorded, the
logits of the model without an adapter are compared with those of llama.cpp. --check also compares the gradients with differences of the loss.
Writes OUT_DIR/NAME.json:

- `lora`: for every adapted matrix, the norms and 8 elements of the gradients of A `[rank][columns]` and B `[rows][rank]`. The values of A and B
  are `values(NAME.lora_a, [columns, rank], -0.1, 0.1, seed)` and `values(NAME.lora_b, [rank, rows], -0.1, 0.1, seed)`.
- `loss`: the mean cross-entropy of all supervised targets of the two `sequences`; `base_loss` is that of the model without an adapter.
- `targets`: for each sequence, the indices of the tokens that are targets; the logits at the index before predict them. `target_losses` has
  their cross-entropies.
- `logits`: 8 logits with the adapter for the last token of each sequence, and the largest difference from llama.cpp without the adapter.

The factors of long contexts apply if `context`, the capacity that the reference was recorded with, is larger than the original context.
"""
import json, math, pathlib, sys
import numpy as np
import torch

from architecture_recipe import values

RANK, SCALE, SAMPLES = 4, 2.0, 8
MATRICES = ("attn_q", "attn_k", "attn_v", "attn_qkv", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
LENGTHS, TARGETS = (11, 7), (range(4, 11), range(2, 7))


# Families

# halves: a rotated pair is (i, i + half) rather than (2i, 2i + 1).
# heads: the norm of queries and keys: "each" head before rotation, each head after it ("rotated"), or all heads together ("whole").
# period: the last layer of a period has full attention, the others a window, if the file specifies one.
FAMILIES = {
    "llama": {}, "granite": {}, "minicpm": {}, "mistral3": {}, "smollm3": {}, "ernie4_5": {},
    "qwen2": {"halves": True}, "qwen2vl": {"halves": True}, "phi3": {"halves": True},
    "qwen3": {"halves": True, "heads": "each"}, "qwen3vl": {"halves": True, "heads": "each"}, "hunyuan-dense": {"halves": True, "heads": "rotated"},
    "gemma": {"halves": True, "gelu": True},
    "gemma2": {"halves": True, "gelu": True, "post": True, "period": 2},
    "gemma3": {"halves": True, "gelu": True, "post": True, "period": 6, "heads": "each"},
    "glm4": {"post": True},
    "olmo2": {"halves": True, "post": True, "pre": False, "period": 4, "heads": "whole"},
    "exaone4": {"halves": True, "post": True, "pre": False, "period": 4, "heads": "each"},
    "seed_oss": {"halves": True, "ffn_norm": "post_attention_norm"},
}


class Decoder:
    """The forward pass of a model for one sequence. An adapter maps names of matrices to A and B."""

    def __init__(self, metadata, tensors, context):
        self.metadata, self.tensors, self.context, self.adapter, self.scale = metadata, tensors, context, {}, SCALE
        self.architecture = metadata["general.architecture"]
        self.family = FAMILIES[self.architecture]
        self.layers, self.width = self.key("block_count"), self.key("embedding_length")
        self.epsilon = self.key("attention.layer_norm_rms_epsilon")
        self.heads = self.key("attention.head_count")
        self.groups = self.key("attention.head_count_kv", self.heads)
        self.key_size = self.key("attention.key_length", self.width // self.heads)
        self.value_size = self.key("attention.value_length", self.key_size)
        self.large_exaone = self.architecture == "exaone4" and self.layers == 64
        scaled = self.architecture in ("granite", "minicpm")
        self.embedding_scale = self.key("embedding_scale") if scaled else math.sqrt(self.width) if self.architecture.startswith("gemma") else 1
        self.residual_scale = self.key("residual_scale") if scaled else 1
        self.logit_scale = 1 / self.key("logit_scale") if scaled else 1
        self.score_scale = (self.key("attention.scale", 0) if self.architecture == "granite" else 0) or 1 / math.sqrt(self.key_size)
        self.score_cap = self.key("attn_logit_softcapping", 50.0) if self.architecture == "gemma2" else 0
        self.logit_cap = self.key("final_logit_softcapping", 30.0 if self.architecture == "gemma2" else 0) if self.architecture.startswith("gemma") else 0

    def key(self, name, default=None):
        value = self.metadata.get(f"{self.architecture}.{name}", default)
        if value is None:
            raise KeyError(name)
        return value

    # Rotary embedding

    def window(self, layer):
        size, period = self.key("attention.sliding_window", 0), self.family.get("period")
        if not size or not period or self.architecture == "exaone4" and not self.large_exaone:
            return None
        pattern = self.key("attention.sliding_window_pattern", period)
        windowed = pattern[layer] if isinstance(pattern, list) else layer % pattern < pattern - 1
        return size if windowed else None

    def frequencies(self, windowed):
        """Radians per position of each pair, and the factor of sine and cosine."""
        size = self.key("rope.dimension_count", self.key_size)
        base = self.key("rope.freq_base", 10000.0)
        if windowed and self.architecture == "gemma3":
            base = self.key("rope.freq_base_swa", 10000.0)
        alpha = self.key("rope.scaling.alpha", 0)
        if alpha:
            base *= alpha ** (size / (size - 2))
        pairs = torch.arange(size // 2, dtype=torch.float64)
        frequencies = base ** (-2 * pairs / size)
        magnitude = self.key("rope.scaling.attn_factor", 1.0)
        factor = self.key("rope.scaling.factor", self.key("rope.scale_linear", 1.0))
        kind = self.key("rope.scaling.type", "linear" if factor != 1 else "none")
        original = self.key("rope.scaling.original_context_length", self.key("context_length"))
        if windowed and self.architecture in ("gemma3", "olmo2"):
            kind, magnitude = "none", 1.0
        factors = self.tensors.get("rope_freqs.weight")
        if kind == "linear":
            frequencies = frequencies / factor
        elif kind == "longrope":
            factors = self.tensors["rope_factors_long.weight" if self.context > original else "rope_factors_short.weight"]
        elif kind == "yarn":
            fast, slow = (self.key("rope.scaling.yarn_beta_fast", 32.0), self.key("rope.scaling.yarn_beta_slow", 1.0)) if self.architecture == "mistral3" else (32.0, 1.0)
            low, high = (size * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base)) for turns in (fast, slow))
            low, high = max(0, math.floor(low)), min(size - 1, math.ceil(high))
            interpolated = torch.clamp((pairs - low) / max(0.001, high - low), 0, 1)
            frequencies = frequencies * (1 - interpolated) + frequencies / factor * interpolated
            magnitude *= 1 + 0.1 * math.log(factor)
            if self.architecture == "mistral3":
                magnitude /= 1 + 0.1 * self.key("rope.scaling.yarn_log_multiplier", 0.0) * math.log(factor)
        return frequencies if factors is None else frequencies / factors, magnitude

    def rotates(self, layer):
        if self.architecture == "smollm3":
            return (layer + 1) % 4 != 0
        if self.large_exaone:
            return self.window(layer) is not None
        return self.architecture != "granite" or self.key("rope.scaling.finetuned", True)

    def rotate(self, x, layer):
        """x: [positions][heads][size]; only the first dimensions of a head may be rotated."""
        if not self.rotates(layer):
            return x
        frequencies, magnitude = self.frequencies(self.window(layer) is not None)
        angles = torch.arange(len(x), dtype=torch.float64)[:, None] * frequencies
        cosine, sine = (magnitude * angles.cos())[:, None], (magnitude * angles.sin())[:, None]
        count = 2 * len(frequencies)
        rotated, rest = x[..., :count], x[..., count:]
        if self.family.get("halves"):
            first, second = rotated[..., :count // 2], rotated[..., count // 2:]
            result = torch.cat([first * cosine - second * sine, first * sine + second * cosine], -1)
        else:
            first, second = rotated[..., 0::2], rotated[..., 1::2]
            result = torch.stack([first * cosine - second * sine, first * sine + second * cosine], -1).flatten(-2)
        return torch.cat([result, rest], -1)

    # Layers

    def norm(self, x, name):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.epsilon) * self.tensors[name + ".weight"]

    def linear(self, x, name):
        matrix = self.tensors[name + ".weight"]
        if name + ".weight" in self.adapter:
            a, b = self.adapter[name + ".weight"]
            matrix = matrix + self.scale * (b @ a)
        y = x @ matrix.T
        if name + ".scale" in self.tensors:
            y = y * self.tensors[name + ".scale"]
        bias = self.tensors.get(name + ".bias")
        return y if bias is None else y + bias

    def attention(self, x, layer):
        b, n, heads = f"blk.{layer}.", len(x), self.family.get("heads")
        sizes = [self.heads * self.key_size, self.groups * self.key_size, self.groups * self.value_size]
        if b + "attn_qkv.weight" in self.tensors:
            q, k, v = self.linear(x, b + "attn_qkv").split(sizes, -1)
        else:
            q, k, v = (self.linear(x, b + "attn_" + part) for part in "qkv")
        if heads == "whole":
            q, k = self.norm(q, b + "attn_q_norm"), self.norm(k, b + "attn_k_norm")
        q, k, v = q.reshape(n, self.heads, -1), k.reshape(n, self.groups, -1), v.reshape(n, self.groups, -1)
        if heads == "each":
            q, k = self.norm(q, b + "attn_q_norm"), self.norm(k, b + "attn_k_norm")
        q, k = self.rotate(q, layer), self.rotate(k, layer)
        if heads == "rotated":
            q, k = self.norm(q, b + "attn_q_norm"), self.norm(k, b + "attn_k_norm")
        positions = torch.arange(n)
        beta = self.key("attention.temperature_scale", 0) if self.architecture == "mistral3" else 0
        if beta:
            steps = positions // self.key("rope.scaling.original_context_length", self.key("context_length"))
            q = q * (1 + beta * torch.log(1 + steps.double()))[:, None, None]
        repeats = self.heads // self.groups
        k, v = k.repeat_interleave(repeats, 1), v.repeat_interleave(repeats, 1)
        scores = torch.einsum("ihd,jhd->hij", q, k) * self.score_scale
        if self.score_cap:
            scores = self.score_cap * torch.tanh(scores / self.score_cap)
        distance = positions[:, None] - positions
        hidden = (distance < 0) | (distance >= (self.window(layer) or n))
        weights = torch.softmax(scores.masked_fill(hidden, -math.inf), -1)
        return self.linear(torch.einsum("hij,jhd->ihd", weights, v).reshape(n, -1), b + "attn_output")

    def feed_forward(self, x, layer):
        b = f"blk.{layer}."
        if b + "ffn_gate.weight" in self.tensors:
            gate, up = self.linear(x, b + "ffn_gate"), self.linear(x, b + "ffn_up")
        else:
            gate, up = self.linear(x, b + "ffn_up").chunk(2, -1)
        gate = torch.nn.functional.gelu(gate, approximate="tanh") if self.family.get("gelu") else gate * torch.sigmoid(gate)
        return self.linear(gate * up, b + "ffn_down")

    def logits(self, tokens):
        x = self.tensors["token_embd.weight"][torch.tensor(tokens)] * self.embedding_scale
        pre, post = self.family.get("pre", True), self.family.get("post", False)
        for layer in range(self.layers):
            b = f"blk.{layer}."
            branch = self.attention(self.norm(x, b + "attn_norm") if pre else x, layer)
            x = x + self.residual_scale * (self.norm(branch, b + "post_attention_norm") if post else branch)
            branch = self.feed_forward(self.norm(x, b + self.family.get("ffn_norm", "ffn_norm")) if pre else x, layer)
            x = x + self.residual_scale * (self.norm(branch, b + "post_ffw_norm") if post else branch)
        x = self.norm(x, "output_norm")
        logits = x @ self.tensors["output.weight" if "output.weight" in self.tensors else "token_embd.weight"].T * self.logit_scale
        if "output.bias" in self.tensors:
            logits = logits + self.tensors["output.bias"]
        return self.logit_cap * torch.tanh(logits / self.logit_cap) if self.logit_cap else logits


# Recipes

def numbers(name, shape, low, high, seed):
    """Values of a tensor whose shape is in the order of GGUF files, as the file stores them."""
    return torch.from_numpy(values(name, shape, low, high, seed).reshape(list(reversed(shape)))).double()


def single(value):
    """Files store numbers with single precision."""
    return float(np.float32(value)) if isinstance(value, float) else [single(v) for v in value] if isinstance(value, list) else value


def decoder(recipe):
    tensors = {}
    for t in recipe["tensors"]:
        if "values" in t:
            tensors[t["name"]] = torch.tensor(t["values"], dtype=torch.float32).double()
        else:
            tensors[t["name"]] = numbers(t["name"], t["shape"], t["low"], t["high"], recipe["seed"])
    return Decoder({key: single(value) for key, _, value in recipe["metadata"]}, tensors, recipe["context"])


def is_dense(recipe):
    metadata = {key: value for key, _, value in recipe["metadata"]}
    return metadata["general.architecture"] in FAMILIES and not any(key.endswith(".expert_count") for key in metadata)


def adapted(recipe, layers):
    """The names and shapes `[columns, rows]` of the matrices with an adapter. Of many layers, only some have one, so that files remain small."""
    chosen = range(layers) if layers <= 8 else (0, 3, layers // 2, layers - 1)
    wanted = {f"blk.{layer}.{matrix}.weight" for layer in chosen for matrix in MATRICES}
    return [(t["name"], t["shape"]) for t in recipe["tensors"] if t["name"] in wanted]


# Gradients

def losses(model, sequences):
    """The cross-entropy of every target."""
    result = []
    for tokens, targets in zip(sequences, TARGETS):
        scores = torch.log_softmax(model.logits(tokens), -1)
        result += [-scores[t - 1, tokens[t]] for t in targets]
    return torch.stack(result)


def rounded(value):
    return float(f"{float(value):.9g}")


def summary(gradient):
    flat = gradient.flatten()
    # From the first element to the last, so that rows, columns and both ends are covered.
    indices = [i * (len(flat) - 1) // (SAMPLES - 1) for i in range(SAMPLES)]
    return {"norm": rounded(gradient.norm()), "indices": indices, "values": [rounded(flat[i]) for i in indices]}


def record(recipe, out, check):
    model = decoder(recipe)
    with torch.no_grad():
        logits = model.logits(recipe["tokens"])[recipe["positions"]]
    reference = torch.tensor(recipe["logits"], dtype=torch.float64)
    difference = float((logits - reference).abs().max())
    relative = float((logits - reference).square().sum() / reference.square().sum())
    print(f"{recipe['name']:24} logits differ by {difference:.1e} of {reference.abs().max():5.2f} (error {relative:.0e})", end="")
    if difference > 1e-4:
        print("  WRONG", flush=True)
        return
    vocabulary = len(model.tensors["token_embd.weight"])
    sequences = [[(7 * i + 3) % vocabulary for i in range(LENGTHS[0])], [(5 * i + 2) % vocabulary for i in range(LENGTHS[1])]]
    with torch.no_grad():
        base = float(losses(model, sequences).mean())
    for name, (columns, rows) in adapted(recipe, model.layers):
        a = numbers(name + ".lora_a", [columns, RANK], -0.1, 0.1, recipe["seed"])
        b = numbers(name + ".lora_b", [RANK, rows], -0.1, 0.1, recipe["seed"])
        model.adapter[name] = (a.requires_grad_(), b.requires_grad_())
    each = losses(model, sequences)
    loss = each.mean()
    loss.backward()
    each, loss = each.detach(), loss.detach()
    norm = torch.stack([t.grad.norm() for pair in model.adapter.values() for t in pair]).norm()
    print(f"  loss {loss:.6f} (without adapter {base:.6f})  norm of the gradient {norm:.4f}", end="")
    vocabulary_samples = [i * (vocabulary - 1) // (SAMPLES - 1) for i in range(SAMPLES)]
    with torch.no_grad():
        last = [model.logits(tokens)[-1] for tokens in sequences]
    text = json.dumps({
        "name": recipe["name"], "seed": recipe["seed"], "context": recipe["context"], "rank": RANK, "alpha": RANK * SCALE, "sequences": sequences, "targets": [list(t) for t in TARGETS],
        "loss": rounded(loss), "base_loss": rounded(base), "target_losses": [rounded(x) for x in each], "gradient_norm": rounded(norm),
        "logits": {"difference": float(f"{difference:.2g}"), "indices": vocabulary_samples, "last": [[rounded(row[i]) for i in vocabulary_samples] for row in last]},
        "lora": [{"name": name, "a": summary(a.grad), "b": summary(b.grad)} for name, (a, b) in model.adapter.items()],
    }, separators=(",", ":"))
    (out / f"{recipe['name']}.json").write_text(text + "\n")
    if check:
        print(f"  differences of the loss: {check_gradients(model, sequences):.0e}", end="")
    print(f"  {len(model.adapter)} matrices, {len(text) / 1024:.1f} KiB", flush=True)


def check_gradients(model, sequences):
    """The largest relative deviation of each gradient's component in a random direction from a difference of the loss."""
    worst, step = 0.0, 1e-5
    generator = torch.Generator().manual_seed(1)
    for pair in model.adapter.values():
        for tensor in pair:
            direction = tensor.grad / tensor.grad.norm() + torch.randn(tensor.shape, generator=generator, dtype=torch.float64) / math.sqrt(tensor.numel())
            expected = float((tensor.grad * direction).sum())
            with torch.no_grad():
                ends = []
                for sign in (1, -2):
                    tensor += sign * step * direction
                    ends.append(float(losses(model, sequences).mean()))
                tensor += step * direction
            worst = max(worst, abs((ends[0] - ends[1]) / (2 * step) - expected) / abs(expected))
    return worst


def main():
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    torch.set_num_threads(1)
    out = pathlib.Path(arguments[1])
    out.mkdir(parents=True, exist_ok=True)
    for path in sorted(pathlib.Path(arguments[0]).glob("*.json")):
        recipe = json.loads(path.read_text())
        if recipe["name"] in arguments[2:] if arguments[2:] else is_dense(recipe):
            record(recipe, out, "--check" in sys.argv)


if __name__ == "__main__":
    main()
