"""Speed of training low-rank adapters with PyTorch and PEFT on this machine.

    python torch_speed.py small|default f32|bf16 [--keep] [--rows 1024] [--length 256]

The model has the shape of the real one and random weights. Every batch consists of sequences of the same length, so that nothing is padded;
half of the tokens are learned. --keep keeps all activations instead of checkpointing each layer.
"""
import sys, time, resource, torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM
from peft import LoraConfig, get_peft_model
which, kind = sys.argv[1:3]
keep = "--keep" in sys.argv
def option(name, usual):
    return int(sys.argv[sys.argv.index(name) + 1]) if name in sys.argv else usual
rows, length = option("--rows", 1024), option("--length", 256)
torch.set_num_threads(2)
torch.manual_seed(0)
dtype = torch.float32 if kind == "f32" else torch.bfloat16
torch.set_default_dtype(dtype)
if which == "small":
    model = LlamaForCausalLM(LlamaConfig(hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9, num_key_value_heads=3, vocab_size=49152, tie_word_embeddings=True, max_position_embeddings=2048, attn_implementation="sdpa"))
else:
    model = Qwen2ForCausalLM(Qwen2Config(hidden_size=1536, intermediate_size=8960, num_hidden_layers=28, num_attention_heads=12, num_key_value_heads=2, vocab_size=151936, tie_word_embeddings=True, max_position_embeddings=2048, attn_implementation="sdpa"))
torch.set_default_dtype(torch.float32)
model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"), autocast_adapter_dtype=False)
model.train()
if not keep:
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.enable_input_require_grads()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
for step in range(4):
    tokens = torch.randint(0, 49152, (rows // length, length))
    labels = tokens.clone()
    labels[torch.rand(labels.shape) < 0.5] = -100
    start = time.time()
    loss = model(input_ids=tokens, labels=labels).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    seconds = time.time() - start
    print(f"{which} {kind}{' keep' if keep else ''}: {rows / seconds:.1f} tokens/s, loss {loss.item():.3f}", flush=True)
print("peak resident memory:", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10, "MB")
