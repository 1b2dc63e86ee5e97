#!/usr/bin/env python3
"""Compares the quantisation of rows with ggml's, type by type: compare_types.py LIBCKERNELS.so MODEL-F16.gguf [IMATRIX.gguf]

LIBCKERNELS.so is Sources/Engine/CKernels as a shared library (clang -O2 -fPIC -shared -ISources/Engine/CKernels/include Sources/Engine/CKernels/*.c -lm).
For rows of several matrices of the model: the square error, weighted with the importance, as a share of ggml's, and microseconds per
1,000 numbers of one thread. Needs llama-cpp-python and gguf.
"""
import ctypes
import pathlib
import sys
import time

import gguf
import llama_cpp
import numpy

TYPES = {"Q6_K": 14, "Q5_K": 13, "Q4_K": 12, "Q3_K": 11, "Q2_K": 10, "Q5_1": 7, "Q5_0": 6, "Q4_1": 3, "Q4_0": 2, "IQ4_NL": 20, "IQ4_XS": 23,
         "IQ3_S": 21, "IQ3_XXS": 18, "IQ2_S": 22, "IQ2_XS": 17, "IQ2_XXS": 16}
PARTS = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]
LAYERS, ROWS = [1, 9, 17, 25], 48


def main():
    ours = ctypes.CDLL(sys.argv[1])
    ours.ck_encode.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]
    folder = pathlib.Path(llama_cpp.__file__).parent / "lib"
    ggml = ctypes.CDLL(str(next(folder.glob("libggml-base.so*"))))
    ggml.ggml_quantize_chunk.restype = ctypes.c_size_t
    ggml.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p] + [ctypes.c_int64] * 3 + [ctypes.c_void_p]
    tensors = {t.name: t for t in gguf.GGUFReader(sys.argv[2]).tensors}
    sums = {t.name: t.data for t in gguf.GGUFReader(sys.argv[3]).tensors} if len(sys.argv) > 3 else {}
    print(f"{'type':8s} {'mean':>7s} {'largest':>8s} {'ggml µs':>8s} {'µs':>7s}")
    for name, number in TYPES.items():
        if not sums and (name.startswith("IQ2") or name == "IQ3_XXS"):
            continue  # ggml needs an importance matrix for them
        kind = gguf.GGMLQuantizationType(number)
        random = numpy.random.default_rng(1)
        shares, their_time, our_time, count = [], 0, 0, 0
        for layer in LAYERS:
            for part in PARTS:
                tensor = f"blk.{layer}.{part}.weight"
                x = tensors[tensor].data[:ROWS].astype(numpy.float32)
                # The model's weights were quantised before: noise hides their steps.
                x = numpy.ascontiguousarray(x + 0.1 * x.std() * random.standard_normal(x.shape, dtype=numpy.float32))
                rows, columns = x.shape
                importance = None
                if sums:
                    importance = numpy.ascontiguousarray(sums[tensor + ".in_sum2"].reshape(-1) / sums[tensor + ".counts"].reshape(-1)[0], dtype=numpy.float32)
                size = gguf.GGML_QUANT_SIZES[kind]
                buffers = [numpy.zeros(rows * columns // size[0] * size[1], dtype=numpy.uint8) for _ in range(2)]
                pointer = importance.ctypes.data if importance is not None else None
                ggml.ggml_quantize_init(number)
                start = time.perf_counter()
                ggml.ggml_quantize_chunk(number, x.ctypes.data, buffers[0].ctypes.data, 0, rows, columns, pointer)
                their_time += time.perf_counter() - start
                tiled = numpy.ascontiguousarray(numpy.tile(importance, rows)) if importance is not None else None
                start = time.perf_counter()
                ours.ck_encode(number, x.ctypes.data, x.size, tiled.ctypes.data if tiled is not None else None, buffers[1].ctypes.data)
                our_time += time.perf_counter() - start
                count += x.size
                weights = importance if importance is not None else 1
                error = [float((weights * (x - gguf.quants.dequantize(b, kind).reshape(x.shape)) ** 2).sum(dtype=numpy.float64)) for b in buffers]
                shares.append(error[1] / error[0])
        print(f"{name:8s} {numpy.mean(shares):7.3f} {max(shares):8.3f} {1e9 * their_time / count:8.0f} {1e9 * our_time / count:7.0f}", flush=True)


if __name__ == "__main__":
    main()
