#!/usr/bin/env python3
"""Quantises a model with llama.cpp and with fm, and compares: compare_quantize.py FM MODEL-F16.gguf FOLDER [--imatrix FILE] [TYPE …]

For each type: seconds of both, whether all tensors have the same types, and for each tensor the square error of fm's as a share of
llama.cpp's, weighted with the importance if there is one (mean and largest of all tensors). The files stay in FOLDER, for “fm model
compare”. Needs llama-cpp-python and gguf.
"""
import argparse
import ctypes
import os
import pathlib
import subprocess
import time

import gguf
import llama_cpp
import numpy

FTYPES = {"Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q5_0": 8, "Q5_1": 9, "Q2_K": 10, "Q3_K_S": 11, "Q3_K_M": 12, "Q3_K_L": 13, "Q4_K_S": 14,
          "Q4_K_M": 15, "Q5_K_S": 16, "Q5_K_M": 17, "Q6_K": 18, "IQ2_XXS": 19, "IQ2_XS": 20, "Q2_K_S": 21, "IQ3_XS": 22, "IQ3_XXS": 23,
          "IQ4_NL": 25, "IQ3_S": 26, "IQ3_M": 27, "IQ2_S": 28, "IQ2_M": 29, "IQ4_XS": 30}


def importance(path):
    if not path:
        return {}
    tensors = {t.name: t.data for t in gguf.GGUFReader(path).tensors}
    return {n[:-8]: tensors[n] / numpy.maximum(1, tensors[n[:-8] + ".counts"]) for n in tensors if n.endswith(".in_sum2")}


def theirs(model, out, ftype, imatrix, threads):
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype, params.nthread = ftype, threads
    keep = []
    if imatrix:
        Entry = llama_cpp.llama_model_imatrix_data
        entries = (Entry * (len(imatrix) + 1))()
        for i, (name, values) in enumerate(imatrix.items()):
            array = numpy.ascontiguousarray(values, dtype=numpy.float32)
            keep.append(array)
            entries[i] = Entry(name.encode(), array.ctypes.data_as(ctypes.POINTER(ctypes.c_float)), array.size)
        params.imatrix = ctypes.cast(entries, ctypes.POINTER(Entry))
        keep.append(entries)
    start = time.time()
    assert llama_cpp.llama_model_quantize(str(model).encode(), str(out).encode(), ctypes.byref(params)) == 0
    return time.time() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fm")
    parser.add_argument("model")
    parser.add_argument("folder")
    parser.add_argument("types", nargs="*", default=list(FTYPES))
    parser.add_argument("--imatrix")
    parser.add_argument("--layers", type=int, default=4, help="compare the tensors of so many layers")
    options = parser.parse_args()
    weights = importance(options.imatrix)
    folder = pathlib.Path(options.folder)
    folder.mkdir(exist_ok=True)
    source = {t.name: t for t in gguf.GGUFReader(options.model).tensors}
    mark = "-imatrix" if weights else ""
    print(f"{'type':8s} {'llama.cpp s':>11s} {'fm s':>7s}  types  error, mean   largest")
    for name in options.types or FTYPES:
        paths = folder / f"{name}{mark}-llama.gguf", folder / f"{name}{mark}-fm.gguf"
        devnull, saved = os.open(os.devnull, os.O_WRONLY), os.dup(2)
        os.dup2(devnull, 2)
        their_seconds = theirs(options.model, paths[0], FTYPES[name], weights, os.cpu_count())
        os.dup2(saved, 2)
        start = time.time()
        subprocess.run([options.fm, "model", "quantize", options.model, name, "--out", str(paths[1])]
                       + (["--imatrix", options.imatrix] if weights else []), check=True, capture_output=True)
        seconds = time.time() - start
        left, right = ({t.name: t for t in gguf.GGUFReader(p).tensors} for p in paths)
        same = {n: t.tensor_type for n, t in left.items()} == {n: t.tensor_type for n, t in right.items()}
        shares = []
        for n, t in source.items():
            if len(t.shape) < 2 or not n.startswith("blk.") or int(n.split(".")[1]) >= options.layers:
                continue
            x = t.data.astype(numpy.float32)
            w = weights.get(n, numpy.ones(x.shape[-1], dtype=numpy.float32)).reshape(-1)
            errors = [float((w * (gguf.dequantize(f[n].data, f[n].tensor_type).reshape(x.shape) - x) ** 2).sum()) for f in (left, right)]
            if errors[0] > 0:
                shares.append((errors[1] / errors[0], n))
        mean = sum(s for s, _ in shares) / max(1, len(shares))
        largest = max(shares, default=(0, ""))
        print(f"{name:8s} {their_seconds:11.1f} {seconds:7.1f}  {'equal' if same else 'OTHER'}  {mean:10.3f}  {largest[0]:8.3f} {largest[1]}", flush=True)


if __name__ == "__main__":
    main()
