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

import argparse, collections, copy, dataclasses, itertools, json, os, random, re, select, signal, subprocess, sys, time
from decimal import Decimal
from fractions import Fraction
from typing import Any, Callable, Iterator

import jsonschema
from jsonschema import Draft202012Validator, validators

JSON = Any
QUESTION_SECONDS = 20.0
COMPILE_MS = 1000.0
VALIDATION_SECONDS = 2.0

# MARK: - The judge


def _multiple_of(validator: Any, divisor: Any, instance: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
    """Exact, unlike the package's, which divides floating-point numbers."""
    if validator.is_type(instance, "number") and Fraction(instance) % Fraction(divisor) != 0:
        yield jsonschema.ValidationError(f"{instance} is not a multiple of {divisor}")


def _is_number(_: Any, value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _is_integer(checker: Any, value: Any) -> bool:
    return _is_number(checker, value) and value == int(value)


ExactValidator = validators.extend(
    Draft202012Validator,
    {"multipleOf": _multiple_of},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("number", _is_number).redefine("integer", _is_integer),
)


# Departures that are known: integers are not written with an exponent, and zero has no sign where nothing is negative.
SPELLINGS = re.compile(r"-0\.0|\de[+-]?\d|\d\.0\b")


class RepeatedName(Exception):
    """An object has two members of the same name."""


class TooSlow(Exception):
    """The judge needed too long, usually for a regular expression."""


def _members(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise RepeatedName
    return members


def parse(text: str) -> JSON:
    """JSON with exact decimals; refuses repeated names, and NaN and its like."""

    def refuse(constant: str) -> JSON:
        raise ValueError(constant)

    return json.loads(text, parse_float=Decimal, parse_constant=refuse, object_pairs_hook=_members)


def python_pattern(pattern: str) -> str:
    """A pattern of ECMA-262 for Python: `.` and `$` know other ends of lines there."""
    out, index, in_class = [], 0, False
    while index < len(pattern):
        char = pattern[index]
        if char == "\\":
            out.append(pattern[index : index + 2])
            index += 2
            continue
        if in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
        elif char == ".":
            char = "[^\\n\\r\\u2028\\u2029]"
        elif char == "$":
            char = "\\Z"
        out.append(char)
        index += 1
    return "".join(out)


# Keywords whose value is a schema, a list of schemas, or schemas by name.
ONE = ["additionalProperties", "propertyNames", "items", "contains", "not", "if", "then", "else", "unevaluatedProperties", "unevaluatedItems"]
MANY = ["prefixItems", "anyOf", "oneOf", "allOf"]
NAMED = ["properties", "patternProperties", "dependentSchemas", "$defs"]


def for_python(schema: JSON) -> JSON:
    """The schema with its patterns as Python reads them."""
    if not isinstance(schema, dict):
        return schema
    result: dict[str, JSON] = {}
    for keyword, value in schema.items():
        if keyword == "pattern":
            value = python_pattern(value)
        elif keyword in ONE:
            value = for_python(value)
        elif keyword in MANY:
            value = [for_python(part) for part in value]
        elif keyword in NAMED:
            rename = python_pattern if keyword == "patternProperties" else str
            value = {rename(name): for_python(part) for name, part in value.items()}
        result[keyword] = value
    return result


class Judge:
    """Says whether documents validate."""

    def __init__(self, schema: JSON) -> None:
        exact = parse(json.dumps(for_python(schema)))
        self.validator = ExactValidator(exact, format_checker=Draft202012Validator.FORMAT_CHECKER)

    def is_valid(self, value: JSON) -> bool:
        """Raises TooSlow, and RecursionError for schemas that refer to themselves without end."""

        def stop(*_: Any) -> None:
            raise TooSlow

        previous = signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, VALIDATION_SECONDS)
        try:
            return self.validator.is_valid(value)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)


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


# MARK: - Regular expressions


class PatternMaker:
    """Random patterns that mean the same in ECMA-262 and Python, each with a maker of texts that mostly match."""

    Sampler = Callable[[random.Random], str]
    LETTERS = "abcxyz019_ é日😀"
    ESCAPED = ".*+?/$^|()[]{}\\"
    CLASSES = [
        ("[a-c]", "abc"), ("[0-9]", "0159"), ("[^a]", "bz9é"), ("[a-zé-ü]", "aqzéü"), ("[x1_-]", "x1_-"), ("[^0-9a-f]", "gZ 日"),
        ("[😀-😅]", "😀😅"), ("[A-Za-z0-9]", "AZaz09"), (".", "a.é😀"), ("[\\]\\\\]", "]\\"), ("[^\\u0000-\\u007f]", "é日😀"),
    ]  # fmt: skip

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def make(self) -> tuple[str, Sampler]:
        rng = self.rng
        text, sample = self.alternatives(2, unbounded=True)
        before = "^" if rng.random() < 0.6 else ""
        after = "$" if rng.random() < 0.6 else ""
        if (before or after) and "|" in text:
            text = f"(?:{text})"
        if rng.random() < 0.12:
            inner, _ = self.alternatives(1, unbounded=True)
            before += rng.choice(["(?!{})", "(?={})", "(?!{}$)", "(?=.*{})"]).format(f"(?:{inner})")
        return before + text + after, sample

    def alternatives(self, depth: int, unbounded: bool) -> tuple[str, Sampler]:
        parts = [self.sequence(depth, unbounded) for _ in range(self.rng.choice([1, 1, 1, 2, 3]))]
        return "|".join(text for text, _ in parts), lambda rng: rng.choice(parts)[1](rng)

    def sequence(self, depth: int, unbounded: bool) -> tuple[str, Sampler]:
        parts = [self.repetition(depth, unbounded) for _ in range(self.rng.choice([0, 1, 1, 2, 2, 3]))]
        texts = [text for text, _ in parts]
        if parts and self.rng.random() < 0.04:
            texts.insert(self.rng.randrange(len(texts) + 1), self.rng.choice(["^", "$", "(?=a)", "(?!b)"]))
        return "".join(texts), lambda rng: "".join(sample(rng) for _, sample in parts)

    def repetition(self, depth: int, unbounded: bool) -> tuple[str, Sampler]:
        rng = self.rng
        least, most, mark = 1, 1, ""
        if rng.random() < 0.45:
            low = rng.choice([0, 1, 2, 3])
            choices: list[tuple[int, int | None, str]] = [
                (0, 1, "?"), (low, low, f"{{{low}}}"), (low, low + rng.choice([0, 1, 4]), ""), (0, None, "*"), (1, None, "+"),
                (low, None, f"{{{low},}}"),
            ]  # fmt: skip
            # An endless repetition in another makes Python's matcher take for ever.
            low, high, mark = rng.choice([c for c in choices if unbounded or c[1] is not None])
            mark = mark or f"{{{low},{high}}}"
            least, most = low, low + 3 if high is None else high
            unbounded = unbounded and high is not None
            if rng.random() < 0.15:
                mark += "?"
        text, sample = self.atom(depth, unbounded)
        return text + mark, lambda rng: "".join(sample(rng) for _ in range(rng.randint(least, most)))

    def atom(self, depth: int, unbounded: bool) -> tuple[str, Sampler]:
        rng = self.rng
        kind = rng.random()
        if depth > 0 and kind < 0.3:
            text, sample = self.alternatives(depth - 1, unbounded)
            return f"({rng.choice(['', '?:'])}{text})", sample
        if kind < 0.65:
            text, characters = rng.choice(self.CLASSES)
            return text, lambda rng: rng.choice(characters)
        if kind < 0.72:
            char = rng.choice(self.ESCAPED)
            return "\\" + char, lambda rng: char
        letter = rng.choice(self.LETTERS)
        return letter, lambda rng: letter


# MARK: - Schemas

TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]
NAMES = ["a", "b", "c", "name", "é", "x1", "a\"b", "", "日本", "~/\t", "e\u0301", "ab"]
WORDS = ["", "a", "b", "ab", "abc", "x1", "0", "aaaa", "é", "e\u0301", "日本", "😀", 'a"b', "\\", "/", "\t\u0001", "\u007f", "name", "zzzzzzzzzzzz"]
NUMBERS: list[int | float] = [
    0, 1, 2, 3, 5, 7, 10, 12, 99, 100, 1000, -1, -2, -5, -10, -99, 0.5, 1.5, 0.1, 0.3, 0.25, -0.5, -1.25, 2.75, 9.99, 10.01, 0.001, 1e3,
    123456789, -0.07, 1.0, 1e16, 1e-7,
]  # fmt: skip
# Without relative-json-pointer: the judge refuses 702 as having a leading zero.
FORMATS = {
    "date": (["2024-02-29", "1999-12-31"], ["2023-02-29", "1999-13-01", "99-1-1"]),
    "time": (["12:00:00Z", "23:59:59.25+01:30"], ["12:00:00", "24:00:00Z"]),
    "date-time": (["2024-02-29T12:00:00Z", "1999-12-31T23:59:59.5-08:00"], ["2024-02-30T12:00:00Z", "2024-02-29"]),
    "duration": (["P1D", "PT5M", "P1Y2M3DT4H5M6S", "P3W"], ["P", "1D", "PT"]),
    "uuid": (["123e4567-e89b-12d3-a456-426614174000"], ["123e4567e89b12d3a456426614174000"]),
    "email": (["a@b.example", "first.last@example.com"], ["a", "example.com"]),
    "hostname": (["example.com", "a-b.c1"], ["-a.com", "a..b"]),
    "ipv4": (["127.0.0.1", "255.255.255.255"], ["256.0.0.1", "1.2.3"]),
    "ipv6": (["::1", "2001:db8::ff00:42:8329", "::ffff:192.0.2.1"], ["1::2::3", ":1"]),
    "uri": (["http://example.com/a?b#c", "urn:a:b"], ["no uri", "//a"]),
    "uri-reference": (["/a/b", "#x", "http://example.com"], ["a b", "\\"]),
    "iri": (["http://example.com/é"], ["no iri"]),
    "json-pointer": (["", "/a~1b/0"], ["a", "/~2"]),
}
SURE_STRINGS = {text for samples in FORMATS.values() for part in samples for text in part} | {"a", "b", "ab", "abc", "x1", "aaaa", "name"}


class SchemaMaker:
    """Random schemas of all supported keywords."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.samplers: dict[str, PatternMaker.Sampler] = {}
        self.definitions = rng.choice([0, 0, 0, 1, 2])

    def document(self) -> JSON:
        schema = self.schema(self.rng.choice([1, 2, 2, 3]), definition=-1)
        if self.definitions and isinstance(schema, dict):
            schema["$defs"] = {f"d{index}": self.schema(2, definition=index) for index in range(self.definitions)}
        return schema

    def few(self, pool: list[Any], most: int) -> list[Any]:
        return self.rng.sample(pool, self.rng.randint(1, min(most, len(pool))))

    def value(self, depth: int = 1) -> JSON:
        rng = self.rng
        kind = rng.random()
        if depth > 0 and kind < 0.12:
            return [self.value(depth - 1) for _ in range(rng.randint(0, 3))]
        if depth > 0 and kind < 0.24:
            return {name: self.value(depth - 1) for name in rng.sample(NAMES, rng.randint(0, 3))}
        return rng.choice([rng.choice(WORDS), rng.choice(WORDS), rng.choice(NUMBERS), rng.choice([None, True, False])])

    def pattern(self) -> str:
        text, sampler = PatternMaker(self.rng).make()
        text = text or "^"  # The judge overlooks an empty name in `patternProperties`.
        self.samplers[text] = sampler
        return text

    def schema(self, depth: int, definition: int, guarded: bool = False, positive: bool = True) -> JSON:
        """`definition` is the one being made; `guarded`: below a member or an item, where any reference is finite."""
        rng = self.rng
        inner = dict(definition=definition, positive=positive)
        kind = rng.random()
        if kind < 0.05 and guarded:
            return rng.random() < 0.75
        if kind < 0.15 and self.definitions:
            first = 0 if guarded else definition + 1
            targets = [f"#/$defs/d{index}" for index in range(first, self.definitions)] + (["#"] if guarded else [])
            if targets:
                schema = {"$ref": rng.choice(targets)}
                if rng.random() < 0.2:
                    schema.update(self.kind_keywords(rng.choice(TYPES), depth, **inner))
                return schema
        schema: dict[str, JSON] = {}
        if kind < 0.27:
            if rng.random() < 0.4:
                schema["const"] = self.value()
            else:
                schema["enum"] = [self.value() for _ in range(rng.randint(1, 5))]
            if rng.random() < 0.6:
                return schema
        kinds = self.few(TYPES, 2) if rng.random() < 0.3 else [rng.choice(TYPES[2:])]
        if rng.random() < 0.85:
            schema["type"] = kinds[0] if len(kinds) == 1 and rng.random() < 0.8 else kinds
        for name in kinds:
            schema.update(self.kind_keywords(name, depth, **inner))
        if rng.random() < 0.1:
            schema.update(self.kind_keywords(rng.choice(TYPES), depth, **inner))
        if depth > 0 and rng.random() < 0.3:
            schema.update(self.combination(depth, definition, guarded, positive))
        return schema

    def combination(self, depth: int, definition: int, guarded: bool, positive: bool) -> dict[str, JSON]:
        rng = self.rng

        def part(is_positive: bool) -> JSON:
            return self.schema(depth - 1, definition, guarded, positive and is_positive)

        result: dict[str, JSON] = {}
        for keyword in self.few(["anyOf", "oneOf", "allOf", "not", "if"], 2):
            if keyword == "not":
                result[keyword] = part(False)
            elif keyword == "if":
                result["if"] = part(False)
                for branch in self.few(["then", "else"], 2):
                    result[branch] = part(True)
            else:
                result[keyword] = [part(keyword != "oneOf") for _ in range(rng.randint(1, 3))]
        return result

    def kind_keywords(self, kind: str, depth: int, definition: int, positive: bool) -> dict[str, JSON]:
        if kind in ("integer", "number"):
            return self.number_keywords()
        if kind == "string":
            return self.string_keywords(positive)
        if kind == "array":
            return self.array_keywords(depth, definition, positive)
        return self.object_keywords(depth, definition, positive) if kind == "object" else {}

    def number_keywords(self) -> dict[str, JSON]:
        rng = self.rng
        result: dict[str, JSON] = {}
        for keyword in ["minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"]:
            if rng.random() < 0.22:
                result[keyword] = rng.choice(NUMBERS)
        if "minimum" in result and "maximum" in result and result["minimum"] > result["maximum"]:
            result["minimum"], result["maximum"] = result["maximum"], result["minimum"]
        if rng.random() < 0.25:
            result["multipleOf"] = rng.choice([1, 2, 3, 5, 7, 12, 0.1, 0.25, 0.5, 0.01, 1.5, 0.3, 2.5, 0.07, 100])
        return result

    def string_keywords(self, positive: bool) -> dict[str, JSON]:
        rng = self.rng
        result: dict[str, JSON] = {}
        if rng.random() < 0.25:
            result["minLength"] = rng.randint(0, 4)
        if rng.random() < 0.25:
            result["maxLength"] = result.get("minLength", 0) + rng.randint(0, 6)
        if rng.random() < 0.35:
            result["pattern"] = self.pattern()
        elif rng.random() < 0.12 and positive:
            result["format"] = rng.choice(list(FORMATS))
        return result

    def array_keywords(self, depth: int, definition: int, positive: bool) -> dict[str, JSON]:
        rng = self.rng
        result: dict[str, JSON] = {}

        def item(is_positive: bool = True) -> JSON:
            if depth <= 0:
                return rng.choice([True, {"type": rng.choice(TYPES)}, {"enum": [self.value(0), self.value(0)]}])
            return self.schema(depth - 1, definition, True, positive and is_positive)

        if rng.random() < 0.25:
            result["prefixItems"] = [item() for _ in range(rng.randint(1, 3))]
        if rng.random() < 0.6:
            result["items"] = item() if rng.random() < 0.85 else False
        if rng.random() < 0.25:
            result["minItems"] = rng.randint(0, 3)
        if rng.random() < 0.3:
            result["maxItems"] = result.get("minItems", 0) + rng.randint(0, 3)
        if rng.random() < 0.2:
            result["contains"] = item(False)
            if rng.random() < 0.4:
                result["minContains"] = rng.randint(0, 3)
            if rng.random() < 0.4:
                result["maxContains"] = result.get("minContains", 1) + rng.randint(0, 2)
        if rng.random() < 0.15:
            result["uniqueItems"] = True
            if rng.random() < 0.8:
                # Of scalars: what else is not supported.
                kinds = self.few(TYPES[:5], 2)
                result.pop("prefixItems", None)
                result.pop("contains", None)
                result["items"] = rng.choice([
                    {"type": kinds, **self.string_keywords(positive), **self.number_keywords()}, {"type": "boolean"},
                    {"enum": [self.value(0) for _ in range(rng.randint(1, 4))]},
                ])  # fmt: skip
        if rng.random() < 0.03:
            result["unevaluatedItems"] = rng.random() < 0.3
        return result

    def object_keywords(self, depth: int, definition: int, positive: bool) -> dict[str, JSON]:
        rng = self.rng
        result: dict[str, JSON] = {}

        def member(is_positive: bool = True) -> JSON:
            if depth <= 0:
                return rng.choice([True, False, {"type": rng.choice(TYPES)}, {"const": self.value(0)}])
            return self.schema(depth - 1, definition, True, positive and is_positive)

        if rng.random() < 0.75:
            result["properties"] = {name: member() for name in self.few(NAMES, 4)}
        known = list(result.get("properties", {}))
        if rng.random() < 0.45:
            result["required"] = self.few(known or NAMES, 2)
            if rng.random() < 0.15:
                result["required"] = list(dict.fromkeys(result["required"] + [rng.choice(NAMES)]))
        if rng.random() < 0.4:
            result["additionalProperties"] = False if rng.random() < 0.5 else member()
        if rng.random() < 0.2:
            result["patternProperties"] = {self.pattern(): member() for _ in range(rng.randint(1, 2))}
        if rng.random() < 0.12:
            result["propertyNames"] = rng.choice([
                {"pattern": self.pattern()}, {"maxLength": rng.randint(1, 4)}, {"enum": self.few(NAMES, 4)}, {"minLength": 1},
                {"not": {"enum": self.few(NAMES, 3)}}, {"type": "string", **self.string_keywords(False)},
            ])  # fmt: skip
        if rng.random() < 0.15:
            result["minProperties"] = rng.randint(0, 3)
        if rng.random() < 0.15:
            result["maxProperties"] = result.get("minProperties", 0) + rng.randint(0, 3)
        if rng.random() < 0.1:
            result["dependentRequired"] = {rng.choice(known or NAMES): self.few(NAMES, 2)}
        if rng.random() < 0.08 and depth > 0:
            result["dependentSchemas"] = {rng.choice(known or NAMES): self.schema(depth - 1, definition, True, positive)}
        if rng.random() < 0.03:
            result["unevaluatedProperties"] = rng.random() < 0.3
        return result


# MARK: - Documents


class DocumentMaker:
    """Documents that are near a schema: some valid, some not."""

    def __init__(self, rng: random.Random, root: JSON, maker: SchemaMaker) -> None:
        self.rng, self.root, self.maker = rng, root, maker

    def instance(self, schema: JSON, depth: int = 6) -> JSON:
        """Tries to satisfy a schema, without promise."""
        rng = self.rng
        if not isinstance(schema, dict) or depth <= 0:
            return self.maker.value(1 if depth > 0 else 0)
        for keyword in ["$ref", "allOf", "anyOf", "oneOf", "then", "else"]:
            if keyword not in schema or rng.random() > 0.6:
                continue
            # The whole with one of its parts: merged as well as a merge of dictionaries can.
            if keyword == "$ref":
                part = self.root
                for name in schema["$ref"].split("/")[1:]:
                    part = part.get(name, True) if isinstance(part, dict) else True
            else:
                part = schema[keyword] if keyword in ("then", "else") else rng.choice(schema[keyword])
            rest = {key: value for key, value in schema.items() if key != keyword}
            if not isinstance(part, dict):
                return self.instance(rest, depth)
            merged = {**rest, **part}
            if "properties" in rest and "properties" in part:
                merged["properties"] = {**rest["properties"], **part["properties"]}
            merged["required"] = list(rest.get("required", [])) + list(part.get("required", []))
            return self.instance(merged, depth - 1)
        if "const" in schema:
            return copy.deepcopy(schema["const"])
        if "enum" in schema:
            return copy.deepcopy(rng.choice(schema["enum"]))
        kinds = schema.get("type")
        if kinds is None:
            # Without a type, what the keywords speak of is of interest.
            kinds = [
                kind
                for kind, marks in [
                    ("string", ["pattern", "minLength", "maxLength", "format"]), ("number", ["minimum", "maximum", "multipleOf"]),
                    ("object", ["properties", "required", "patternProperties", "additionalProperties", "propertyNames", "minProperties"]),
                    ("array", ["items", "prefixItems", "contains", "minItems", "uniqueItems"]),
                ]
                if any(mark in schema for mark in marks)
            ] or TYPES  # fmt: skip
        kind = kinds if isinstance(kinds, str) else rng.choice(kinds)
        if kind == "null":
            return None
        if kind == "boolean":
            return rng.random() < 0.5
        if kind in ("integer", "number"):
            return self.number(schema, kind)
        if kind == "string":
            return self.string(schema)
        return self.array(schema, depth) if kind == "array" else self.object(schema, depth)

    def number(self, schema: JSON, kind: str) -> JSON:
        rng = self.rng
        near = [schema[k] for k in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum") if k in schema] or NUMBERS
        value = Decimal(repr(rng.choice(near))) + Decimal(rng.choice(["0", "0", "1", "-1", "0.5", "-0.5", "0.01", "-0.01", "10", "3"]))
        divisor = Decimal(repr(schema.get("multipleOf", 1)))
        if "multipleOf" in schema or kind == "integer":
            value = (value / divisor).to_integral_value() * divisor
        return int(value) if value == int(value) and rng.random() < 0.9 else float(value)

    def string(self, schema: JSON) -> str:
        rng = self.rng
        if "pattern" in schema and schema["pattern"] in self.maker.samplers:
            text = self.maker.samplers[schema["pattern"]](rng)
            return text if rng.random() < 0.8 else rng.choice("aé ") + text
        if "format" in schema:
            return rng.choice(FORMATS[schema["format"]][rng.random() < 0.25])
        text = rng.choice(WORDS)
        while len(text) < schema.get("minLength", 0):
            text += rng.choice("abé😀")
        return text[: schema.get("maxLength", len(text))]

    def array(self, schema: JSON, depth: int) -> JSON:
        rng = self.rng
        least = max(schema.get("minItems", 0), schema.get("minContains", 1) if "contains" in schema else 0)
        items: list[JSON] = []
        for index in range(min(least + rng.choice([0, 0, 1, 2]), schema.get("maxItems", 9))):
            prefix = schema.get("prefixItems", [])
            part = prefix[index] if index < len(prefix) else schema.get("items", True)
            if part is False:
                break
            if "contains" in schema and rng.random() < 0.5:
                part = schema["contains"]
            items.append(self.instance(part, depth - 1))
        return items

    def object(self, schema: JSON, depth: int) -> JSON:
        rng = self.rng
        known = schema.get("properties", {})
        patterns = list(schema.get("patternProperties", {}).items())
        extra = schema.get("additionalProperties", True)
        names = [name for name in known if name in schema.get("required", []) or rng.random() < 0.5]
        names += [name for name in schema.get("required", []) if name not in names]
        for name in list(names):
            names += [other for other in schema.get("dependentRequired", {}).get(name, []) if other not in names]
        for pattern, _ in patterns:
            if rng.random() < 0.6 and pattern in self.maker.samplers:
                names.append(self.maker.samplers[pattern](rng))
        while len(set(names)) < schema.get("minProperties", 0) or (extra is not False and rng.random() < 0.2):
            names.append(rng.choice(NAMES) + rng.choice(["", "", "q"]))
        members: dict[str, JSON] = {}
        for name in sorted(dict.fromkeys(names), key=lambda name: list(known).index(name) if name in known else 99):
            matching = [part for pattern, part in patterns if re.search(python_pattern(pattern), name)]
            part = known[name] if name in known else matching[0] if matching else extra
            if part is False:
                continue
            members[name] = self.instance(part, depth - 1)
        return members

    def mutated(self, value: JSON, depth: int = 3) -> JSON:
        """The value with one small change somewhere."""
        rng = self.rng
        if depth > 0 and isinstance(value, (list, dict)) and value and rng.random() < 0.65:
            result = copy.copy(value)
            key = rng.randrange(len(value)) if isinstance(value, list) else rng.choice(list(value))
            result[key] = self.mutated(value[key], depth - 1)
            return result
        if isinstance(value, bool) or value is None or rng.random() < 0.12:
            return self.maker.value()
        if isinstance(value, (int, float, Decimal)):
            change = rng.choice([1, -1, 10, 0.5, -0.5, 0.1, 0.01])
            return -value if rng.random() < 0.2 else value + change if isinstance(change, int) else float(value) + change
        if isinstance(value, str):
            index = rng.randint(0, len(value))
            if value and rng.random() < 0.5:
                return value[: max(0, index - 1)] + value[index:]
            return value[:index] + rng.choice("abx09_ é日😀\"\\") + value[index:]
        if isinstance(value, list):
            items = list(value)
            if items and rng.random() < 0.5:
                items.pop(rng.randrange(len(items)))
            else:
                items.insert(rng.randint(0, len(items)), copy.deepcopy(rng.choice(items)) if items and rng.random() < 0.6 else self.maker.value())
            return items
        members = dict(value)
        if members and rng.random() < 0.5:
            members.pop(rng.choice(list(members)))
        else:
            members[rng.choice(NAMES)] = self.maker.value()
        return members


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
