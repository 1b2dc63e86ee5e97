"""Records reference logits of tiny random models of many architectures from llama.cpp. Run manually, never in CI.

    PYTHONPATH=DIR_WITH_EXACT_GELU_BUILD python record_architectures.py OUT_DIR [NAME …] [--check]

Each model is a recipe: metadata, tensor shapes and ranges. Tensor values are computed from the recipe (see `values`),
so that tests in any language can generate the file. --check also changes every tensor and every number of the metadata
and reports those that do not affect the logits. Writes OUT_DIR/NAME.json.
"""
import ctypes, json, math, os, pathlib, random, sys, tempfile
import numpy as np
import gguf
import llama_cpp
from llama_cpp import llama_cpp as C

import architecture_recipes_dense
import architecture_recipes_mixed
from architecture_recipe import RECIPES, VOCABULARY, values


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
    """The minimum distance between a chosen and a rejected expert (or group), in units of the compared values."""
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
            # Softmax does not change the order of the experts.
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
        # Of several prompts, use the one with the largest margin in the choice of experts.
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
