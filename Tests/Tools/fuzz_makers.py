"""Generates random patterns, JSON Schemas and documents similar to valid ones."""
from __future__ import annotations

import copy, random, re
from decimal import Decimal
from typing import Any, Callable

from fuzz_judge import JSON, python_pattern

# MARK: - Regular expressions


class PatternMaker:
    """Random patterns with the same meaning in ECMA-262 and Python, each with a generator of likely matches."""

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
            # Nested unbounded repetitions take exponential time in Python's matcher.
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
# Without relative-json-pointer: the validator rejects 702 because of a leading zero.
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
    """Random schemas with all supported keywords."""

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
        text = text or "^"  # The validator ignores an empty name in `patternProperties`.
        self.samplers[text] = sampler
        return text

    def schema(self, depth: int, definition: int, guarded: bool = False, positive: bool = True) -> JSON:
        """`definition` is the definition being generated. `guarded`: inside a member or an item, where every reference
        is finite."""
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
                # Scalars only, because other values are not supported here.
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
    """Documents similar to those of a schema: some valid, some not."""

    def __init__(self, rng: random.Random, root: JSON, maker: SchemaMaker) -> None:
        self.rng, self.root, self.maker = rng, root, maker

    def instance(self, schema: JSON, depth: int = 6) -> JSON:
        """Tries to satisfy a schema; the result may be invalid."""
        rng = self.rng
        if not isinstance(schema, dict) or depth <= 0:
            return self.maker.value(1 if depth > 0 else 0)
        for keyword in ["$ref", "allOf", "anyOf", "oneOf", "then", "else"]:
            if keyword not in schema or rng.random() > 0.6:
                continue
            # Merges the schema with one of its parts, as far as merging dictionaries allows.
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
            # Without a type, the types that the keywords apply to.
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
        """The value with one small random change."""
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
