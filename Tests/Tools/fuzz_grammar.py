"""Fuzzes the compiler of JSON Schemas: random schemas and documents, judged by the `jsonschema` package.

    python3 -m venv .build-fuzz && .build-fuzz/bin/pip install 'jsonschema[format]'
    .build-fuzz/bin/python Tests/Tools/fuzz_grammar.py --binary PATH_OF_grammar-bench --seed 1 --count 5000

Checked for each schema, over the `probe` command of the binary:
  walks      texts made by walks through the masks, and the example, are JSON without repeated names that validates
  masks      no mask differs from the automaton, and no walk ends in a dead end
  documents  a document is accepted if and only if it validates; one that is refused may be accepted with its members in
             another order, because the order is part of the grammar
  errors     a schema said to be unsatisfiable has no valid document, and no schema made here is said to be invalid
  time       compiling takes at most a second, and nothing crashes or hangs

Failing schemas are made smaller before they are printed. The same seed makes the same schemas. Ends with 1 if anything failed.
"""
from __future__ import annotations

import argparse, collections, dataclasses, itertools, json, os, random, re, select, subprocess, sys, time
from decimal import Decimal
from typing import Iterator

from fuzz_judge import JSON, MANY, NAMED, ONE, SPELLINGS, Judge, RepeatedName, TooSlow, parse, python_pattern
from fuzz_makers import SURE_STRINGS, DocumentMaker, SchemaMaker

QUESTION_SECONDS = 20.0
COMPILE_MS = 1000.0

# MARK: - The probe


class ProbeDied(Exception):
    """The process ended instead of answering."""


class ProbeHung(Exception):
    """No answer in time."""


class Probe:
    """A running `probe` command, started again when it dies."""

    def __init__(self, command: list[str]) -> None:
        self.command = command
        self.process: subprocess.Popen[bytes] | None = None
        self.buffer = b""

    def stop(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process = None

    def ask(self, question: JSON) -> JSON:
        if self.process is None:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
            )
            self.buffer = b""
        assert self.process.stdin and self.process.stdout
        deadline = time.monotonic() + QUESTION_SECONDS
        try:
            self.process.stdin.write(json.dumps(question, separators=(",", ":")).encode() + b"\n")
            while b"\n" not in self.buffer:
                ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
                if not ready:
                    self.stop()
                    raise ProbeHung
                data = os.read(self.process.stdout.fileno(), 1 << 16)
                if not data:
                    raise BrokenPipeError
                self.buffer += data
        except BrokenPipeError:
            self.stop()
            raise ProbeDied from None
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)


# MARK: - Values


def plain(value: JSON) -> JSON:
    """Decimals as the numbers that `json.dumps` writes."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return value


def write(value: JSON, ascii_only: bool) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=ascii_only)


def orders(value: JSON, limit: int) -> list[JSON]:
    """The value with its members in other orders."""
    if isinstance(value, list) and value:
        lists = [orders(item, limit) for item in value]
        return [list(items) for items in itertools.islice(itertools.product(*lists), limit)]
    if isinstance(value, dict) and value:
        result: list[JSON] = []
        for names in itertools.permutations(value):
            parts = [orders(value[name], max(1, limit // 8)) for name in names]
            result += [dict(zip(names, values)) for values in itertools.islice(itertools.product(*parts), limit)]
            if len(result) >= limit:
                break
        return result[:limit]
    return [value]


def strings(value: JSON) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)


# MARK: - Checks


@dataclasses.dataclass
class Failure:
    kind: str
    schema: JSON
    document: str | None = None
    detail: str = ""


class Checker:
    """Asks the probe about schemas and compares its answers with the judge's."""

    SERIOUSNESS = ["crash", "hang", "slow", "walk", "example", "accepts invalid", "refuses valid", "called unsatisfiable", "called invalid", "masks"]

    def __init__(self, probe: Probe, walks: int) -> None:
        self.probe = probe
        self.walks = walks
        self.counts: collections.Counter[str] = collections.Counter()
        self.slowest = 0.0

    def ask(self, schema: JSON, documents: list[str], walks: int, seed: int) -> JSON | Failure:
        start = time.monotonic()
        try:
            answer = self.probe.ask({"schema": schema, "documents": documents, "walks": walks, "seed": seed, "pretty": False})
        except ProbeDied:
            return Failure("crash", schema, json.dumps(documents) if documents else None)
        except ProbeHung:
            return Failure("hang", schema, json.dumps(documents) if documents else None, f"{QUESTION_SECONDS} s")
        compile_ms = answer.get("compile_ms", 0)
        self.slowest = max(self.slowest, compile_ms)
        if compile_ms > COMPILE_MS:
            return Failure("slow", schema, None, f"compiled in {compile_ms} ms: {answer.get('error')}")
        if time.monotonic() - start > 5:
            return Failure("slow", schema, None, f"answered in {time.monotonic() - start:.1f} s, compiled in {compile_ms} ms")
        return answer

    def judged_text(self, judge: Judge, text: str) -> tuple[str, JSON]:
        """'' and the value if a text validates, or why it does not."""
        try:
            value = parse(text)
        except RepeatedName:
            return "a name is repeated", None
        except ValueError as error:
            return f"not JSON: {error}", None
        try:
            return ("" if judge.is_valid(value) else "does not validate"), value
        except (TooSlow, RecursionError):
            self.counts["not judged"] += 1
            return "", None

    def check(self, schema: JSON, seed: int, make: DocumentMaker | None, fixed: list[JSON] = []) -> list[Failure]:
        """All checks with documents made at random, or the given ones."""
        judge = Judge(schema)
        answer = self.ask(schema, [], self.walks, seed)
        if isinstance(answer, Failure):
            return [answer]
        values = list(fixed)
        if make:
            for _ in range(5):
                value = make.instance(schema)
                values += [value, make.mutated(value)]
        failures: list[Failure] = []
        kind = answer.get("kind", "compiled")
        self.counts[kind] += 1
        if answer["error"] is not None:
            if kind == "invalid":
                return [Failure("called invalid", schema, None, answer["error"])]
            if kind == "unsatisfiable":
                for value in values:
                    text = write(value, False)
                    reason, parsed = self.judged_text(judge, text)
                    if not reason and parsed is not None:
                        return [Failure("called unsatisfiable", schema, text, answer["error"])]
            else:
                reason = re.sub(r"at \S+ ", "", answer["error"])
                self.counts[f"  {kind}: {re.sub(r'[0-9]+', 'N', reason)[:100]}"] += 1
            return []
        if answer["mask_errors"]:
            failures.append(Failure("masks", schema, None, f"{answer['mask_errors']} errors"))
        for name, texts in [("walk", answer["walks"]), ("example", [answer["example"]])]:
            for text in texts:
                reason, value = self.judged_text(judge, text)
                if reason:
                    failures.append(Failure(name, schema, text, reason))
                    break
                # What was read from a walk is written again the usual way, and changed a little.
                if make and value is not None:
                    value = plain(value)
                    values += [value, make.mutated(value)]
        return failures + self.check_documents(schema, judge, values, seed)

    def check_documents(self, schema: JSON, judge: Judge, values: list[JSON], seed: int) -> list[Failure]:
        texts: list[str] = []
        wanted: list[tuple[JSON, bool]] = []
        seen: set[str] = set()
        for value in values:
            for ascii_only in (False, True):
                text = write(value, ascii_only)
                if text in seen or "Infinity" in text or len(text) > 5000:
                    continue
                seen.add(text)
                try:
                    exact = parse(text)
                    is_valid = judge.is_valid(exact)
                except (TooSlow, RecursionError, ValueError):
                    self.counts["not judged"] += 1
                    continue
                texts.append(text)
                wanted.append((exact, is_valid))
        if not texts:
            return []
        answer = self.ask(schema, texts, 0, seed)
        if isinstance(answer, Failure):
            return [answer]
        failures: list[Failure] = []
        uses_format = '"format"' in json.dumps(schema)
        for text, (value, is_valid), accepted in zip(texts, wanted, answer["accepted"]):
            self.counts["valid documents" if is_valid else "invalid documents"] += 1
            if accepted and not is_valid:
                failures.append(Failure("accepts invalid", schema, text))
            elif is_valid and not accepted:
                # Formats are looser in the judge.
                if uses_format and not all(part in SURE_STRINGS for part in strings(value)):
                    continue
                if self.accepts_in_other_order(schema, json.loads(text), seed, text.isascii()):
                    self.counts["valid in another order"] += 1
                    continue
                if SPELLINGS.search(text):
                    self.counts["refused for the spelling of a number"] += 1
                    continue
                failures.append(Failure("refuses valid", schema, text))
        return failures

    def accepts_in_other_order(self, schema: JSON, value: JSON, seed: int, ascii_only: bool) -> bool:
        variants = [write(variant, ascii_only) for variant in orders(value, 400)]
        answer = self.ask(schema, variants, 0, seed)
        return not isinstance(answer, Failure) and any(answer.get("accepted", [True]))


# MARK: - Making failures smaller


def smaller_schemas(schema: JSON) -> Iterator[JSON]:
    """Schemas with one thing less: keywords taken away, lists shortened, parts put in place of the whole."""
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        rest = {key: other for key, other in schema.items() if key != keyword}
        yield rest
        if keyword in ONE and value is not True:
            yield {**rest, keyword: True}
        if keyword in ("allOf", "anyOf", "oneOf") and len(value) == 1 and isinstance(value[0], dict):
            yield {**rest, **value[0]}
        if keyword == "type" and isinstance(value, list) and len(value) == 1:
            yield {**schema, "type": value[0]}
        if keyword == "pattern":
            for index in range(len(value)):
                for length in (1, 3, 6):
                    shorter = value[:index] + value[index + length :]
                    try:
                        re.compile(python_pattern(shorter))
                    except (re.error, OverflowError):
                        continue
                    yield {**schema, keyword: shorter}
        if isinstance(value, list):
            for index in range(len(value)):
                if len(value) > 1:
                    yield {**schema, keyword: value[:index] + value[index + 1 :]}
                if keyword in MANY:
                    for part in smaller_schemas(value[index]):
                        yield {**schema, keyword: value[:index] + [part] + value[index + 1 :]}
        elif keyword in NAMED or keyword == "dependentRequired":
            for name, part in value.items():
                yield {**schema, keyword: {key: other for key, other in value.items() if key != name}}
                if keyword in NAMED:
                    if part is not True:
                        yield {**schema, keyword: {**value, name: True}}
                    for smaller in smaller_schemas(part):
                        yield {**schema, keyword: {**value, name: smaller}}
        elif keyword in ONE:
            for part in smaller_schemas(value):
                yield {**schema, keyword: part}


def smaller_values(value: JSON) -> Iterator[JSON]:
    if isinstance(value, (list, str)):
        for index in range(len(value)):
            yield value[:index] + value[index + 1 :]
    if isinstance(value, list):
        for index, item in enumerate(value):
            for part in smaller_values(item):
                yield value[:index] + [part] + value[index + 1 :]
    if isinstance(value, dict):
        for name in value:
            yield {key: other for key, other in value.items() if key != name}
        for name, item in value.items():
            for part in smaller_values(item):
                yield {**value, name: part}


def shrink(checker: Checker, failure: Failure, seed: int, seconds: float) -> Failure:
    """Takes away from the schema, and from the document, while the same kind of failure stays."""
    deadline = time.monotonic() + seconds

    def attempt(schema: JSON, document: JSON | None) -> Failure | None:
        try:
            found = checker.check(schema, seed, None, [] if document is None else [document])
        except Exception:  # A reference without its definition, and the like.
            checker.probe.stop()
            return None
        return next((other for other in found if other.kind == failure.kind), None)

    document: JSON | None = None
    if failure.kind in ("accepts invalid", "refuses valid", "called unsatisfiable") and failure.document is not None:
        document = json.loads(failure.document)
    has_changed = True
    while has_changed and time.monotonic() < deadline:
        has_changed = False
        tries = [(schema, document) for schema in smaller_schemas(failure.schema)]
        if document is not None:
            tries += [(failure.schema, value) for value in smaller_values(document)]
        for schema, value in tries:
            if time.monotonic() > deadline:
                break
            if (found := attempt(schema, value)) is not None:
                failure, document, has_changed = found, value, True
                break
    return failure


def keywords(schema: JSON) -> Iterator[str]:
    if isinstance(schema, dict):
        for keyword, value in schema.items():
            yield keyword
            if keyword in ONE:
                yield from keywords(value)
            elif keyword in MANY:
                for part in value:
                    yield from keywords(part)
            elif keyword in NAMED:
                for part in value.values():
                    yield from keywords(part)


# MARK: - Running


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzzes the compiler of JSON Schemas.")
    parser.add_argument("--binary", required=True, help="the benchmark program with the probe command")
    parser.add_argument("--model", help="a GGUF file whose vocabulary is used; single bytes if there is none")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first schema, to begin again where a run stopped")
    parser.add_argument("--count", type=int, default=1000, help="schemas")
    parser.add_argument("--walks", type=int, default=5, help="walks through each")
    parser.add_argument("--length", type=int, default=40, help="tokens of a walk before it is led to its end")
    parser.add_argument("--checks", type=int, default=20, help="tokens compared at each step of a walk")
    parser.add_argument("--shrink-seconds", type=float, default=8, help="time to make one failure smaller")
    parser.add_argument("--most", type=int, default=40, help="failures after which to stop")
    parser.add_argument("--seconds", type=float, help="time after which to stop")
    parser.add_argument("--ignore", help="a regular expression: failures whose kind, detail, document or schema match are known")
    options = parser.parse_args()
    sys.setrecursionlimit(3000)

    command = [options.binary, "probe", "--length", str(options.length), "--checks", str(options.checks)]
    checker = Checker(Probe(command + (["--model", options.model] if options.model else [])), options.walks)
    found: dict[str, Failure] = {}
    repeats: collections.Counter[str] = collections.Counter()
    start = time.monotonic()
    done = 0
    for index in range(options.first, options.first + options.count):
        if options.seconds and time.monotonic() - start > options.seconds or len(found) >= options.most:
            break
        rng = random.Random(f"{options.seed}:{index}")
        maker = SchemaMaker(rng)
        schema = maker.document()
        seed = rng.randrange(1 << 30)
        failures = checker.check(schema, seed, DocumentMaker(rng, schema, maker))
        done += 1
        for kind in dict.fromkeys(failure.kind for failure in failures):
            failure = next(other for other in failures if other.kind == kind)
            if options.ignore and re.search(options.ignore, f"{kind}: {failure.detail} {failure.document} {json.dumps(failure.schema)}"):
                checker.counts["ignored"] += 1
                continue
            failure = shrink(checker, failure, seed, options.shrink_seconds)
            # Failures of the same kind with the same keywords are most often one.
            key = f"{kind}: {' '.join(sorted(set(keywords(failure.schema))))}"
            repeats[key] += 1
            if key not in found or len(json.dumps(failure.schema)) < len(json.dumps(found[key].schema)):
                found[key] = failure
            print(f"[{options.seed}:{index}] {key}\n    {json.dumps(failure.schema, ensure_ascii=False)}", flush=True)
            print(f"    {failure.document} {failure.detail}", flush=True)
    checker.probe.stop()

    print(f"\n{done} schemas in {time.monotonic() - start:.0f} s; slowest compiled in {checker.slowest:.0f} ms")
    for name, count in sorted(checker.counts.items()):
        print(f"  {count:8} {name}")
    for key, failure in sorted(found.items(), key=lambda pair: (Checker.SERIOUSNESS.index(pair[1].kind), pair[0])):
        print(f"\n{key} ({repeats[key]} times)\n  schema:   {json.dumps(failure.schema, ensure_ascii=False)}")
        print(f"  document: {failure.document}\n  {failure.detail}")
    print("\nnothing failed" if not found else f"\n{len(found)} kinds of failures")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
