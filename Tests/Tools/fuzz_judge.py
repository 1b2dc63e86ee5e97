"""Validates JSON documents with the `jsonschema` package, with exact numbers."""
from __future__ import annotations

import json, re, signal
from decimal import Decimal
from fractions import Fraction
from typing import Any, Iterator

import jsonschema
from jsonschema import Draft202012Validator, validators

JSON = Any
VALIDATION_SECONDS = 2.0

def _multiple_of(validator: Any, divisor: Any, instance: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
    """Exact, unlike the implementation of the package, which divides floating-point numbers."""
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


# Known deviations: integers are not generated with an exponent, and zero has no sign if negative numbers are not
# allowed.
SPELLINGS = re.compile(r"-0\.0|\de[+-]?\d|\d\.0\b")


class RepeatedName(Exception):
    """An object has two members of the same name."""


class TooSlow(Exception):
    """Validation took too long, usually because of a regular expression."""


def _members(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise RepeatedName
    return members


def parse(text: str) -> JSON:
    """Parses JSON with exact decimals; rejects duplicate names, NaN and infinities."""

    def refuse(constant: str) -> JSON:
        raise ValueError(constant)

    return json.loads(text, parse_float=Decimal, parse_constant=refuse, object_pairs_hook=_members)


def python_pattern(pattern: str) -> str:
    """Translates an ECMA-262 pattern to Python, where `.` and `$` use different line terminators."""
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


# Keywords whose value is a schema, a list of schemas, or an object of schemas.
ONE = ["additionalProperties", "propertyNames", "items", "contains", "not", "if", "then", "else", "unevaluatedProperties", "unevaluatedItems"]
MANY = ["prefixItems", "anyOf", "oneOf", "allOf"]
NAMED = ["properties", "patternProperties", "dependentSchemas", "$defs"]


def for_python(schema: JSON) -> JSON:
    """The schema with its patterns translated to Python."""
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
    """Validates documents against a schema."""

    def __init__(self, schema: JSON) -> None:
        exact = parse(json.dumps(for_python(schema)))
        self.validator = ExactValidator(exact, format_checker=Draft202012Validator.FORMAT_CHECKER)

    def is_valid(self, value: JSON) -> bool:
        """Raises TooSlow, and RecursionError for schemas with infinite recursion."""

        def stop(*_: Any) -> None:
            raise TooSlow

        previous = signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, VALIDATION_SECONDS)
        try:
            return self.validator.is_valid(value)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)
