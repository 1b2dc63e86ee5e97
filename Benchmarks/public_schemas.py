"""Compiles the JSON schemas in a folder of unpacked packages, and validates documents that the grammar generates.

public_schemas.py BENCH FOLDER: BENCH is the program grammar-bench. Each file with a schema, and each of its definitions,
is one schema. Prints what does not compile, what is generated and not valid, and the times of compilation.
"""

import collections
import json
import os
import re
import subprocess
import sys

import jsonschema
import regex
from jsonschema import _keywords, _legacy_keywords, _utils
from jsonschema.validators import validator_for

KEYWORDS = {"properties", "items", "allOf", "anyOf", "oneOf", "definitions", "$defs", "enum", "patternProperties"}


SPACE = "\\t\\n\\v\\f\\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
CLASSES = {"d": "0-9", "w": "A-Za-z0-9_", "s": SPACE}


def translated(pattern):
    """A pattern of ECMA-262 for Python, whose classes are wider and whose `$` matches before a line end."""
    parts, in_class, index = [], False, 0
    while index < len(pattern):
        letter = pattern[index]
        following = pattern[index + 1:index + 2]
        index += 1
        if letter == "\\":
            index += 1
            if following in CLASSES:
                parts.append(CLASSES[following] if in_class else f"[{CLASSES[following]}]")
            elif following.lower() in CLASSES and not in_class:
                parts.append(f"[^{CLASSES[following.lower()]}]")
            elif following == "u" and pattern[index:index + 1] == "{":
                end = pattern.index("}", index)
                parts.append(f"\\U{int(pattern[index + 1:end], 16):08x}")
                index = end + 1
            else:
                parts.append("/" if following == "/" else letter + following)
        elif in_class:
            in_class = letter != "]"
            parts.append("\\[" if letter == "[" else letter)
        elif letter == "[":
            in_class = True
            parts.append(letter)
        else:
            parts.append({"$": "\\Z", ".": "[^\\n\\r\u2028\u2029]"}.get(letter, letter))
    return "".join(parts)


class Patterns:
    """Stands in for the module `re` in the validator."""

    known = {}

    def search(self, pattern, text, flags=0):
        if pattern not in self.known:
            try:
                self.known[pattern] = regex.compile(translated(pattern), regex.V0)
            except regex.error:
                self.known[pattern] = regex.compile(pattern)
        return self.known[pattern].search(text)

    def __getattr__(self, name):
        return getattr(re, name)


for module in (_keywords, _legacy_keywords, _utils):
    module.re = Patterns()


def names(node, found):
    """The definitions that a schema refers to; None in place of references to other documents."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            match = re.fullmatch(r"#/(definitions|\$defs)/([^/%~]+)(/.*)?", node["$ref"])
            found.add((match[1], match[2]) if match else None)
        for value in node.values():
            names(value, found)
    elif isinstance(node, list):
        for value in node:
            names(value, found)


def closure(document, node):
    """The definitions that `node` needs, by keyword; None if it refers to something else."""
    kept, open_names, found = {}, [], set()
    names(node, found)
    open_names += found
    while open_names:
        name = open_names.pop()
        if name is None:
            return None
        keyword, key = name
        if key in kept.setdefault(keyword, {}):
            continue
        if key not in document.get(keyword, {}):
            return None
        kept[keyword][key] = document[keyword][key]
        found = set()
        names(kept[keyword][key], found)
        open_names += found
    return kept


def schemas(folder):
    seen = set()
    for path, _, files in sorted(os.walk(folder)):
        for file in sorted(files):
            if not file.endswith(".json") or os.path.getsize(os.path.join(path, file)) > 3_000_000:
                continue
            try:
                with open(os.path.join(path, file), encoding="utf-8") as text:
                    document = json.load(text)
            except (ValueError, RecursionError):
                continue
            if not isinstance(document, dict) or not KEYWORDS & document.keys():
                continue
            origin = os.path.relpath(path, folder).split(os.sep)[0]
            parts = [("", {key: value for key, value in document.items() if key not in ("definitions", "$defs")})]
            for keyword in ("definitions", "$defs"):
                if isinstance(document.get(keyword), dict):
                    parts += [(key, {"$ref": f"#/{keyword}/{key}"}) for key in document[keyword]]
            for name, part in parts:
                kept = closure(document, part)
                if kept is None:
                    continue
                schema = {**({"$schema": document["$schema"]} if "$schema" in document else {}), **part, **kept}
                key = json.dumps(schema, sort_keys=True)
                if key not in seen and len(key) > 60:
                    seen.add(key)
                    yield origin, f"{os.path.join(os.path.relpath(path, folder), file)}#{name}", schema


def main():
    bench = subprocess.Popen([sys.argv[1], "probe"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    total, compiled = collections.Counter(), collections.Counter()
    reasons, examples, wrong, times = collections.Counter(), {}, [], []
    documents = unchecked = mask_errors = 0
    for origin, name, schema in schemas(sys.argv[2]):
        request = {"schema": schema, "walks": 2, "seed": 1, "documents": []}
        bench.stdin.write((json.dumps(request) + "\n").encode())
        bench.stdin.flush()
        line = bench.stdout.readline()
        if not line:
            sys.exit(f"grammar-bench ended at {name} with {bench.wait()}")
        answer = json.loads(line)
        total[origin] += 1
        if answer["error"]:
            reason = re.sub(r" at /\S*|'[^']*'", "", answer["error"])
            reasons[reason] += 1
            examples.setdefault(reason, name)
            continue
        compiled[origin] += 1
        times.append(answer["compile_ms"])
        mask_errors += answer["mask_errors"]
        kind = validator_for(schema, default=jsonschema.Draft202012Validator)
        for text in answer["walks"] + [answer["example"]]:
            documents += 1
            try:
                problem = next(kind(schema).iter_errors(json.loads(text)), None)
            except Exception:  # the validator does not know the dialect, a pattern or a reference
                unchecked += 1
                continue
            if problem:
                wrong.append((name, text[:200], problem.message[:200]))
    times.sort()
    print(f"{sum(compiled.values())} of {sum(total.values())} schemas compile; {documents} documents generated, of which "
          f"{len(wrong)} are not valid and {unchecked} could not be checked; {mask_errors} errors of masks")
    print("compilation: " + ", ".join(
        f"{label} {times[min(len(times) - 1, int(len(times) * part))]:.2f} ms"
        for label, part in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("maximum", 1))))
    print(", ".join(f"{origin} {compiled[origin]}/{total[origin]}" for origin in sorted(total)))
    for reason, count in reasons.most_common():
        print(f"{count:4}  {reason}  ({examples[reason]})")
    for name, text, problem in wrong[:20]:
        print(f"not valid: {name}: {text}: {problem}")


main()
