#!/usr/bin/env python3
"""Measures xgrammar and llguidance on one file of schemas and token sequences, and prints JSON lines.

    python grammar_peers.py CASES.json [--library xgrammar|llguidance] [--timeout 20] [--limit N]

CASES.json: {"tokens": [hex of the token's bytes | null for a special token, ...], "eos": id,
             "cases": [{"name": ..., "schema": {...}, "documents": [[token ids], ...]}, ...]}
First line of a library: library, version, setup_ms (tokenizer tables), call_overhead_us (the time of a call that does
nothing, measured with the same timer; every mask_us contains it once), rss_mb (resident memory with all imports and
tables).
Then one line per case: library, name, compile_ms (cold, until a matcher is ready for its first mask), error,
documents and rss_mb. For each document: accepted (all tokens and then the end token were allowed), mask_us (for each
step the time to fill the mask, including the one before the end token), steps (number of masks), error.
A case that reaches the timeout keeps its measurements until then; rss_mb is the memory when it was stopped.

Installation without torch and transformers (several gigabytes), which the code used here does not need:
    pip install --no-deps xgrammar==0.2.8
    pip install llguidance==1.9.1 apache-tvm-ffi==0.1.15.post2 numpy==2.4.6 pydantic==2.14.3
"""
import argparse
import contextlib
import gc
import importlib.metadata
import importlib.util
import json
import multiprocessing
import multiprocessing.connection
import os
import resource
import statistics
import subprocess
import sys
import time
import types
from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, Iterator, Optional, Protocol

Token = Optional[bytes]  # None: a special token without text
SPECIAL = "<special_{}>"  # llguidance requires a text for special tokens
SETUP_TIMEOUT = 300


@dataclass
class Matcher:
    """One pass over a document. The calls are bound in advance, so that only the time of the library is measured."""

    fill: Callable[[], Any]
    accept: Callable[[int], bool]
    idle: Callable[[], Any]
    failure: Callable[[], str]


class Library(Protocol):
    mask: Any  # int32 words, a bit for each token

    def compile(self, schema: str) -> float:
        """Compiles a schema, which becomes the current one. Returns milliseconds; raises the errors of the library."""

    def matcher(self) -> Matcher:
        """A new matcher for the current schema."""


# xgrammar


class StandIn:
    def __init__(self, *_: Any, **__: Any) -> None:
        pass


@contextlib.contextmanager
def stand_ins(*names: str) -> Iterator[None]:
    """Replaces missing modules, so that importing them succeeds; every name in them is an empty class."""
    absent = [name for name in names if importlib.util.find_spec(name) is None]
    for name in absent:
        module = types.ModuleType(name)
        module.__getattr__ = lambda _: StandIn  # type: ignore[method-assign]
        sys.modules[name] = module
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


def import_xgrammar() -> types.ModuleType:
    """xgrammar refers to torch and transformers only in type hints and in functions that are not called here."""
    import tvm_ffi  # noqa: F401  (imported first: it adapts to an installed torch, so it must not find the stand-in)

    with stand_ins("torch", "transformers"):
        import xgrammar
    return xgrammar


class XGrammar:
    def __init__(self, tokens: list[Token], eos: int) -> None:
        import numpy
        import tvm_ffi

        self.xgrammar = import_xgrammar()
        self.mask = numpy.zeros((1, (len(tokens) + 31) // 32), numpy.int32)
        # Converted to a tensor once; with the array itself, each call would convert it through DLPack.
        self.tensor = tvm_ffi.from_dlpack(self.mask)
        # xgrammar treats a token without bytes as special: it is never allowed, except for the stop token.
        vocabulary = [token or b"" for token in tokens]
        start = time.perf_counter()
        self.tokenizer = self.xgrammar.TokenizerInfo(
            vocabulary, self.xgrammar.VocabType.RAW, stop_token_ids=[eos]
        )
        self.setup_ms = (time.perf_counter() - start) * 1e3

    def compile(self, schema: str) -> float:
        # A new compiler for each schema, so that no results of earlier schemas are reused.
        compiler = self.xgrammar.GrammarCompiler(self.tokenizer, max_threads=1, cache_enabled=False)
        self.grammar = None  # freed here, so that this is not part of the measured time
        start = time.perf_counter()
        # Not strict: undeclared properties are then treated as the schema specifies, not forbidden. The separators
        # affect declared values only: in values of any type, 0.2.8 requires ", " between entries regardless.
        self.grammar = compiler.compile_json_schema(
            schema, any_whitespace=False, separators=(",", ":"), strict_mode=False
        )
        self.xgrammar.GrammarMatcher(self.grammar)
        return (time.perf_counter() - start) * 1e3

    def matcher(self) -> Matcher:
        matcher = self.xgrammar.GrammarMatcher(self.grammar)
        return Matcher(
            partial(matcher.fill_next_token_bitmask, self.tensor),
            matcher.accept_token,
            matcher.is_terminated,
            str,  # the library raises errors instead
        )


# llguidance


class GreedyTokenizer:
    """The tokenizer interface that llguidance requires. No mask depends on how it splits a text: see `unforced`."""

    def __init__(self, tokens: list[Token], eos: int) -> None:
        self.eos_token_id = eos
        self.bos_token_id = None
        self.special_token_ids = [index for index, token in enumerate(tokens) if token is None]
        self.tokens = [SPECIAL.format(index).encode() if token is None else token for index, token in enumerate(tokens)]
        self.ids: dict[bytes, int] = {}
        for index, token in enumerate(tokens):
            if token:
                self.ids.setdefault(token, index)
        self.longest = max(map(len, self.ids))

    def __call__(self, text: bytes) -> list[int]:
        result: list[int] = []
        while text:
            length = next(n for n in range(min(self.longest, len(text)), 0, -1) if text[:n] in self.ids)
            result.append(self.ids[text[:length]])
            text = text[length:]
        return result


def unforced(grammar: str) -> str:
    """The same grammar, with masks that allow every tokenization of a text that the grammar forces.

    By default, llguidance allows only the token that the tokenizer would choose for a forced text: a mask of one bit,
    computed by a call of the tokenizer, which is a Python function here. xgrammar has no such mode. Without it, both
    libraries compute the same masks, and a document may be split into tokens in any way. The option belongs to Lark
    grammars.
    """
    parts = json.loads(grammar)
    start = f'%llguidance {{"no_forcing": true}}\nstart: @{parts["grammars"][0]["name"]}'
    parts["grammars"].insert(0, {"lark_grammar": start})
    return json.dumps(parts)


class LLGuidance:
    def __init__(self, tokens: list[Token], eos: int) -> None:
        import llguidance
        import llguidance.numpy

        self.llguidance = llguidance
        self.mask = llguidance.numpy.allocate_token_bitmask(1, len(tokens))
        tokenizer = GreedyTokenizer(tokens, eos)
        start = time.perf_counter()
        self.tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(tokenizer))
        self.setup_ms = (time.perf_counter() - start) * 1e3

    def compile(self, schema: str) -> float:
        matcher_type = self.llguidance.LLMatcher
        compact: Any = {"item_separator": ",", "key_separator": ":", "whitespace_flexible": False}
        start = time.perf_counter()
        grammar = matcher_type.grammar_from_json_schema(schema, overrides=compact)
        matcher = matcher_type(self.tokenizer, grammar, log_level=0)
        elapsed = (time.perf_counter() - start) * 1e3
        self.check(matcher)
        # Not measured: parsing the line of Lark takes longer than compiling most schemas, and is not part of it.
        self.start = matcher_type(self.tokenizer, unforced(grammar), log_level=0)
        self.check(self.start)
        return elapsed

    def check(self, matcher: Any) -> None:
        if matcher.is_error():
            raise ValueError(matcher.get_error())

    def matcher(self) -> Matcher:
        # Copies share the automaton, which is built lazily while masks are computed: the first document takes longer,
        # as the first request for a schema does, and later ones reuse it. xgrammar builds its tables while compiling.
        matcher = self.start.deep_copy()
        return Matcher(
            # The function that fill_next_token_bitmask of llguidance.numpy calls, without its 2 µs of Python.
            partial(matcher.unsafe_compute_mask_ptr, self.mask.ctypes.data, self.mask.nbytes),
            matcher.consume_token,
            matcher.is_error,
            matcher.get_error,
        )


LIBRARIES: dict[str, Callable[[list[Token], int], Any]] = {"xgrammar": XGrammar, "llguidance": LLGuidance}


# The worker: a process with one library, which can be killed


def resident_mb(process: int) -> float:
    """Resident memory of a process in megabytes; on systems without /proc, the peak of the calling process."""
    try:
        with open(f"/proc/{process}/statm") as file:
            size = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        size = most if sys.platform == "darwin" else most * 1024
    return round(size / 2**20, 1)


def timed_us(call: Callable[[], Any]) -> float:
    start = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - start) / 1e3


def call_overhead_us(library: Library) -> float:
    library.compile('{"type":"null"}')
    idle = library.matcher().idle
    return round(statistics.median(timed_us(idle) for _ in range(10_000)), 3)


def follow(library: Library, document: list[int], eos: int) -> dict[str, Any]:
    """Computes the mask before each token and before the end token, until a token is not allowed."""
    mask_us: list[float] = []
    result: dict[str, Any] = {"accepted": False, "mask_us": mask_us, "steps": 0, "error": None}
    words = library.mask[0]
    try:
        matcher = library.matcher()
        for step, token in enumerate([*document, eos]):
            mask_us.append(round(timed_us(matcher.fill), 3))
            result["steps"] += 1
            if not int(words[token >> 5]) >> (token & 31) & 1:
                result["error"] = matcher.failure() or None  # none: the document does not conform to the schema
                break
            if step == len(document):
                result["accepted"] = True
            elif not matcher.accept(token):
                result["error"] = matcher.failure() or f"token {step} was allowed by the mask and then rejected"
                break
    except Exception as error:
        result["error"] = str(error)
    return result


def work(connection: multiprocessing.connection.Connection, name: str, tokens: list[Token], eos: int) -> None:
    """Sends the setup line; then, for each received case, the parts of its line as they are known, rss_mb last."""
    # No helper threads of numpy; llguidance would not start threads either, but this makes sure.
    os.environ.update(OPENBLAS_NUM_THREADS="1", RAYON_NUM_THREADS="1")
    library = LIBRARIES[name](tokens, eos)
    overhead = call_overhead_us(library)
    gc.disable()  # no collection inside a timed call
    connection.send(
        {
            "library": name,
            "version": importlib.metadata.version(name),
            "setup_ms": round(library.setup_ms, 3),
            "call_overhead_us": overhead,
            "rss_mb": resident_mb(os.getpid()),
        }
    )
    while True:
        try:
            case = connection.recv()
        except EOFError:
            return
        try:
            connection.send(("compile_ms", round(library.compile(json.dumps(case["schema"])), 3)))
        except Exception as error:
            connection.send(("error", str(error).strip() or type(error).__name__))
        else:
            for document in case["documents"]:
                connection.send(("document", follow(library, document, eos)))
        connection.send(("rss_mb", resident_mb(os.getpid())))


# The controller: reads the file, prints the lines, and enforces the timeout


class Worker:
    def __init__(self, library: str, tokens: list[Token], eos: int) -> None:
        # Spawned, not forked, so that its memory contains the library and the tokens, but not all cases.
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=work, args=(other, library, tokens, eos), daemon=True)
        self.process.start()
        other.close()  # so that the connection ends when the worker ends
        try:
            if not self.connection.poll(SETUP_TIMEOUT):
                raise EOFError
            self.setup: dict[str, Any] = self.connection.recv()
        except EOFError:
            self.stop()
            sys.exit(f"{library}: could not be set up")

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()

    def measure(self, case: dict[str, Any], timeout: float) -> tuple[dict[str, Any], bool]:
        """Returns the line of the case, and whether the worker can measure another case."""
        line: dict[str, Any] = {
            "library": self.setup["library"], "name": case["name"],
            "compile_ms": None, "error": None, "documents": [], "rss_mb": None,
        }
        deadline = time.monotonic() + timeout
        try:
            self.connection.send(case)
            while line["rss_mb"] is None:
                if not self.connection.poll(max(0.0, deadline - time.monotonic())):
                    place = "compiling" if line["compile_ms"] is None else f"document {len(line['documents'])}"
                    line["error"] = f"timeout after {timeout:g} s: {place}"
                    line["rss_mb"] = resident_mb(self.process.pid or 0)
                    return line, False
                key, value = self.connection.recv()
                if key == "document":
                    line["documents"].append(value)
                else:
                    line[key] = value
        except (EOFError, ConnectionError):
            self.process.join()
            line["error"] = f"the process ended with code {self.process.exitcode}"
            return line, False
        return line, True


def emit(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


def run(library: str, path: str, timeout: float, limit: Optional[int]) -> None:
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    tokens: list[Token] = [None if token is None else bytes.fromhex(token) for token in content["tokens"]]
    start = partial(Worker, library, tokens, content["eos"])
    worker = start()
    emit(worker.setup)
    for case in content["cases"][:limit]:
        line, usable = worker.measure(case, timeout)
        emit(line)
        if not usable:
            worker.stop()
            worker = start()
    worker.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases")
    parser.add_argument("--library", choices=list(LIBRARIES))
    parser.add_argument("--timeout", type=float, default=20, help="timeout of a case in seconds")
    parser.add_argument("--limit", type=int, help="measure only the first LIMIT cases")
    arguments = parser.parse_args()
    if arguments.library:
        return run(arguments.library, arguments.cases, arguments.timeout, arguments.limit)
    # Libraries are measured one after the other, so that they do not compete for the processor.
    codes = [
        subprocess.run([sys.executable, __file__, *sys.argv[1:], "--library", name]).returncode for name in LIBRARIES
    ]
    sys.exit(max(map(abs, codes)))


if __name__ == "__main__":
    main()
