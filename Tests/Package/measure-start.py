#!/usr/bin/env python3
"""Measures how long fm takes to start, and until the first part of an answer, on two cores with files that are in memory.

    Tests/Package/measure-start.py BINARY MODEL [RUNS]
"""
import os
import statistics
import subprocess
import sys
import time

binary, model = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
runs = int(sys.argv[3]) if len(sys.argv) > 3 else 10
environment = dict(os.environ, FM_MODEL=model, FM_ADAPTER="none")


def first(*arguments):
    """Seconds until the first byte of the output, and until the end."""
    begin = time.perf_counter()
    process = subprocess.Popen([binary, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               env=environment)
    os.read(process.stdout.fileno(), 1)
    answered = time.perf_counter() - begin
    process.stdout.read()
    if process.wait() != 0:
        sys.exit(f"measure-start: {arguments} ended with {process.returncode}")
    return answered, time.perf_counter() - begin


os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
for name, arguments in {"fm --version": ["--version"],
                        "first token of a short prompt": ["--greedy", "--max-tokens", "8", "Name three colours."]}.items():
    first(*arguments)  # fills the page cache, and writes the packed weights
    values = sorted(first(*arguments)[0] * 1000 for _ in range(runs))
    print(f"{name}: median {statistics.median(values):.0f} ms, {values[0]:.0f} to {values[-1]:.0f} ms ({runs} runs)")
