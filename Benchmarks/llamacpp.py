"""Measures llama.cpp (through llama-cpp-python) on one GGUF file and prints one JSON line per thread count.

Usage: python llamacpp.py MODEL.gguf [--threads 1 2] [--repeat 5]
The token ids are arbitrary because they do not affect the time. Times are medians.
"""
import argparse, ctypes, json, statistics, time, resource
import llama_cpp
import numpy as np


@llama_cpp.llama_log_callback
def silent(level, text, user_data):
    pass


llama_cpp.llama_log_set(silent, ctypes.c_void_p(0))


def decode(context, tokens, position, want_logits_at_end):
    """One batch of tokens from `position` on; n_batch is large enough for all of them."""
    batch = llama_cpp.llama_batch_init(len(tokens), 0, 1)
    batch.n_tokens = len(tokens)
    for i, token in enumerate(tokens):
        batch.token[i] = token
        batch.pos[i] = position + i
        batch.n_seq_id[i] = 1
        batch.seq_id[i][0] = 0
        batch.logits[i] = int(want_logits_at_end and i == len(tokens) - 1)
    code = llama_cpp.llama_decode(context, batch)
    llama_cpp.llama_batch_free(batch)
    assert code == 0, code


def decode_many(context, entries):
    """One batch of entries (token, position, sequence, whether its logits are wanted)."""
    batch = llama_cpp.llama_batch_init(len(entries), 0, 1)
    batch.n_tokens = len(entries)
    for i, (token, position, sequence, wants_logits) in enumerate(entries):
        batch.token[i] = token
        batch.pos[i] = position
        batch.n_seq_id[i] = 1
        batch.seq_id[i][0] = sequence
        batch.logits[i] = int(wants_logits)
    code = llama_cpp.llama_decode(context, batch)
    llama_cpp.llama_batch_free(batch)
    assert code == 0, code


def measure_conversations(arguments, threads, vocabulary=49000, prompt=200, response=128):
    """Several conversations in common batches, as llama.cpp's server processes its slots; one JSON line for each number."""
    model = llama_cpp.llama_model_load_from_file(arguments.model.encode(), llama_cpp.llama_model_default_params())
    for count in arguments.concurrency:
        parameters = llama_cpp.llama_context_default_params()
        parameters.n_ctx = 512 * count
        parameters.n_seq_max = count
        parameters.n_batch = 2048
        parameters.n_ubatch = 512
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.flash_attn_type = 1
        context = llama_cpp.llama_init_from_model(model, parameters)
        best = float("inf")
        for _ in range(arguments.repeat):
            clear(context)
            start = time.perf_counter()
            for first in range(0, count, 8):
                decode_many(context, [
                    ((i * 7919 + 13 + 1009 * s) % vocabulary + 100, i, s, i == prompt - 1)
                    for s in range(first, min(first + 8, count)) for i in range(prompt)
                ])
            for step in range(response):
                for s in range(count):
                    logits = llama_cpp.llama_get_logits_ith(context, s - count)
                    int(np.ctypeslib.as_array(logits, shape=(49152,)).argmax())
                decode_many(context, [(1000 + step + s, prompt + step, s, True) for s in range(count)])
            llama_cpp.llama_synchronize(context)
            best = min(best, time.perf_counter() - start)
        print(json.dumps({"concurrency": count, "threads": threads, "tokens_per_second": count * response / best}), flush=True)
        llama_cpp.llama_free(context)
    llama_cpp.llama_model_free(model)


def clear(context):
    llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(context), True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--prompts", type=int, nargs="+", default=[128, 512, 2048])
    parser.add_argument("--depths", type=int, nargs="+", default=[0, 2048])
    parser.add_argument("--generate", type=int, default=128)
    parser.add_argument("--concurrency", type=int, nargs="+", help="measure this many conversations at once instead")
    arguments = parser.parse_args()

    llama_cpp.llama_backend_init()
    for threads in arguments.threads:
        if arguments.concurrency:
            measure_conversations(arguments, threads)
            continue
        result = {"engine": "llama.cpp", "threads": threads}
        start = time.perf_counter()
        model = llama_cpp.llama_model_load_from_file(
            arguments.model.encode(), llama_cpp.llama_model_default_params()
        )
        result["load_ms"] = (time.perf_counter() - start) * 1e3
        parameters = llama_cpp.llama_context_default_params()
        parameters.n_ctx = max(4096, 256 + max(arguments.prompts + arguments.depths))
        parameters.n_batch = max(2048, *arguments.prompts, *arguments.depths)
        parameters.n_ubatch = 512
        parameters.n_threads = threads
        parameters.n_threads_batch = threads
        parameters.flash_attn_type = 1
        context = llama_cpp.llama_init_from_model(model, parameters)
        result["context_ms"] = (time.perf_counter() - start) * 1e3 - result["load_ms"]
        vocabulary = 49000
        decode(context, [(i * 31 + 500) % vocabulary for i in range(30)], 0, True)
        llama_cpp.llama_get_logits_ith(context, -1)[0]
        result["first_token_ms"] = (time.perf_counter() - start) * 1e3  # load, context and a prompt of 30 tokens
        clear(context)

        def prompt(length):
            return [(i * 7919 + 13) % vocabulary + 100 for i in range(length)]

        decode(context, prompt(16), 0, True)
        for length in arguments.prompts:
            rates = []
            for _ in range(arguments.repeat):
                clear(context)
                start = time.perf_counter()
                decode(context, prompt(length), 0, True)
                llama_cpp.llama_synchronize(context)
                rates.append(length / (time.perf_counter() - start))
            result[f"prompt_{length}"] = statistics.median(rates)
        for depth in arguments.depths:
            clear(context)
            if depth:
                decode(context, prompt(depth), 0, True)
            rates = []
            for _ in range(arguments.repeat):
                llama_cpp.llama_memory_seq_rm(llama_cpp.llama_get_memory(context), 0, depth, -1)
                start = time.perf_counter()
                for i in range(arguments.generate):
                    decode(context, [1000 + i], depth + i, True)
                    logits = llama_cpp.llama_get_logits_ith(context, -1)
                    int(np.ctypeslib.as_array(logits, shape=(49152,)).argmax())
                rates.append(arguments.generate / (time.perf_counter() - start))
            result[f"generate_at_{depth}"] = statistics.median(rates)
        llama_cpp.llama_free(context)
        llama_cpp.llama_model_free(model)
        result["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(result), flush=True)


main()
