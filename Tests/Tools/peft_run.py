"""Trains low-rank adapters (LoRA) of two tiny random models with PEFT, as a reference for other implementations. Run manually, never in CI.

    PYTHONPATH=Tests/Tools python peft_run.py OUT_DIR [llama] [qwen2]

The same training is repeated in float64 by the decoder of record_gradients.py, which reads the written GGUF files; the differences show what the
order of float32 sums changes. Writes to OUT_DIR/ARCHITECTURE:

- model.gguf: the model, with 32-bit floats.
- tokens.json: for each step, two sequences: `tokens`, and for each token whether it is a target (`supervised`).
- initial.gguf, final.gguf: the adapter before and after training. final/: the latter as a PEFT folder.
- losses.json: the settings; for each step, `losses`, the sum of the cross-entropy of all targets by their number, before the step's update, and
  `gradient_norms` before clipping; `losses_float64` and `gradient_norms_float64` of the repetition.
"""
import json, os, pathlib, random, shutil, sys

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
import gguf
import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from record_gradients import Decoder

WIDTH, LAYERS, FEED, HEADS, GROUPS, VOCABULARY, CONTEXT = 256, 2, 512, 4, 2, 512, 512
RANK, ALPHA, STEPS, RATE, BETAS, EPSILON, CLIP = 16, 32, 200, 5e-4, (0.9, 0.999), 1e-8, 1.0
BASE, NORM_EPSILON = 10000.0, 1e-5
NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}


# Model and files

def create(architecture):
    torch.manual_seed(7)
    config, model = {"llama": (LlamaConfig, LlamaForCausalLM), "qwen2": (Qwen2Config, Qwen2ForCausalLM)}[architecture]
    model = model(config(
        hidden_size=WIDTH, num_hidden_layers=LAYERS, intermediate_size=FEED, num_attention_heads=HEADS, num_key_value_heads=GROUPS, vocab_size=VOCABULARY,
        max_position_embeddings=CONTEXT, rms_norm_eps=NORM_EPSILON, initializer_range=0.05, tie_word_embeddings=False, attn_implementation="eager",
        rope_parameters={"rope_type": "default", "rope_theta": BASE}, bos_token_id=None, eos_token_id=None, pad_token_id=None)).float()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.uniform_(0.5, 1.5)
            elif name.endswith(".bias"):
                parameter.uniform_(-0.3, 0.3)
        # So that the norms of some steps' gradients are below the limit.
        model.lm_head.weight *= 0.4
    return model


def translate(name):
    """The name in GGUF files of `model.layers.N.PART.weight` and so on."""
    parts = name.removeprefix("model.").split(".")
    if parts[0] == "layers":
        return f"blk.{parts[1]}.{NAMES['.'.join(parts[2:-1])]}.{parts[-1]}"
    return {"embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output"}[parts[0]] + "." + parts[-1]


def ordered(values, name, architecture):
    """Files of llama models contain the rows of each query and key head in another order: a rotated pair is (2i, 2i + 1), not (i, i + half)."""
    heads = HEADS if ".attn_q." in name else GROUPS if ".attn_k." in name else 0
    if architecture != "llama" or not heads:
        return values
    return values.reshape(heads, 2, len(values) // heads // 2, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)


def finish(writer, tensors):
    for name, values in tensors.items():
        writer.add_tensor(name, np.ascontiguousarray(values, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_model(model, architecture, path):
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name(f"tiny {architecture}")
    writer.add_string("tokenizer.ggml.model", "none")
    writer.add_vocab_size(VOCABULARY)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(GROUPS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_rope_freq_base(BASE)
    writer.add_layer_norm_rms_eps(NORM_EPSILON)
    names = [(translate(name), values.detach().numpy()) for name, values in model.named_parameters()]
    finish(writer, {name: ordered(values, name, architecture) for name, values in names})


def write_adapter(model, architecture, path):
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", ALPHA)
    tensors = {}
    for name, values in model.named_parameters():
        if ".lora_" not in name:
            continue
        part, half = name.removeprefix("base_model.model.").split(".lora_")
        target = translate(part + ".weight")
        values = values.detach().numpy()
        tensors[f"{target}.lora_{half[0].lower()}"] = values if half[0] == "A" else ordered(values, target, architecture)
    finish(writer, tensors)


# Training

def steps():
    """Prompts with answers that continue by a rule; some have two turns, some are supervised from the second token on."""
    generator = random.Random(5)
    examples = []
    for index in range(24):
        tokens, supervised = [], []
        for _ in range(2 if index % 4 == 0 else 1):
            prompt = [generator.randrange(VOCABULARY) for _ in range(generator.randrange(3, 13))]
            answer = [(5 * prompt[-1] + index) % VOCABULARY]
            for _ in range(generator.randrange(5, 20)):
                answer.append((5 * answer[-1] + prompt[0] % 3) % VOCABULARY)
            tokens += prompt + answer
            supervised += [False] * len(prompt) + [True] * len(answer)
        if index % 6 == 5:
            supervised = [place > 0 for place in range(len(tokens))]
        examples.append({"tokens": tokens, "supervised": supervised})
    result = []
    while len(result) < STEPS:
        generator.shuffle(examples)
        result += [examples[i:i + 2] for i in range(0, len(examples), 2)]
    return result[:STEPS]


def train(logits, parameters, steps):
    """`logits` computes those of one sequence."""
    optimizer = torch.optim.AdamW(parameters, lr=RATE, betas=BETAS, eps=EPSILON, weight_decay=0)
    losses, norms = [], []
    for step in steps:
        total, count = 0, 0
        for sequence in step:
            tokens, supervised = torch.tensor(sequence["tokens"]), torch.tensor(sequence["supervised"])[1:]
            scores = logits(sequence["tokens"])[:-1][supervised]
            total = total + torch.nn.functional.cross_entropy(scores, tokens[1:][supervised], reduction="sum")
            count += int(supervised.sum())
        optimizer.zero_grad()
        (total / count).backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(parameters, CLIP)))
        optimizer.step()
        losses.append(float(total.detach() / count))
    return losses, norms


def read(path):
    reader = gguf.GGUFReader(path)
    return {key: field.contents() for key, field in reader.fields.items()}, {t.name: torch.from_numpy(np.array(t.data)).double() for t in reader.tensors}


def repeat(out, steps):
    """The same training in float64, of the written files. Returns losses, norms of gradients, and the final adapter."""
    metadata, tensors = read(out / "model.gguf")
    model = Decoder(metadata, tensors, CONTEXT)
    _, halves = read(out / "initial.gguf")
    model.scale = ALPHA / RANK
    model.adapter = {name.removesuffix(".lora_a"): (halves[name], halves[name.removesuffix("a") + "b"]) for name in halves if name.endswith(".lora_a")}
    parameters = [half.requires_grad_() for pair in model.adapter.values() for half in pair]
    return *train(model.logits, parameters, steps), {name: half.detach() for name, half in halves.items()}


def run(architecture, out):
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    model = create(architecture)
    write_model(model, architecture, out / "model.gguf")
    torch.manual_seed(11)
    model = get_peft_model(model, LoraConfig(r=RANK, lora_alpha=ALPHA, lora_dropout=0.0, bias="none", target_modules=[name.split(".")[1] for name in NAMES if name.endswith("_proj")], task_type="CAUSAL_LM"))
    model.train()
    parameters = [p for p in model.parameters() if p.requires_grad]
    assert len(parameters) == LAYERS * 7 * 2
    write_adapter(model, architecture, out / "initial.gguf")
    batches = steps()
    (out / "tokens.json").write_text(json.dumps(batches, separators=(",", ":")) + "\n")
    losses, norms = train(lambda tokens: model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0], parameters, batches)
    write_adapter(model, architecture, out / "final.gguf")
    model.peft_config["default"].base_model_name_or_path = f"tiny-{architecture}"
    model.save_pretrained(out / "final")
    exact, exact_norms, final = repeat(out, batches)
    _, found = read(out / "final.gguf")
    _, initial = read(out / "initial.gguf")
    differences = [abs(a - b) for a, b in zip(losses, exact)]
    moved = max(float((found[name] - final[name]).norm() / (final[name] - initial[name]).norm()) for name in final)
    print(f"{architecture}: loss {losses[0]:.4f} -> {sum(losses[-12:]) / 12:.4f} (mean of the last 12)  norms of gradients {min(norms):.3f}…{max(norms):.3f}, {sum(n > CLIP for n in norms)} clipped")
    print(f"    differences of float32 and float64: losses {differences[0]:.1e} at first, at most {max(differences[:20]):.1e} in 20 steps, {max(differences):.1e} in all;"
          f" final matrices {moved:.1e} of their change")
    (out / "losses.json").write_text(json.dumps({
        "rank": RANK, "alpha": ALPHA, "rate": RATE, "betas": BETAS, "epsilon": EPSILON, "weight_decay": 0, "clip": CLIP,
        "losses": losses, "gradient_norms": norms, "losses_float64": exact, "gradient_norms_float64": exact_norms,
    }, indent=0) + "\n")


def main():
    torch.set_num_threads(1)
    for architecture in sys.argv[2:] or ["llama", "qwen2"]:
        run(architecture, pathlib.Path(sys.argv[1]) / architecture)


if __name__ == "__main__":
    main()
