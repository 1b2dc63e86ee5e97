"""Summarizes the measurements of grammar-bench and grammar_peers.py as Markdown tables.

    grammar_summary.py CASES.json RESULTS.jsonl...
"""

import json
import statistics
import sys

# The keywords of most schemas for tool parameters and records. Schemas without other keywords are called ordinary.
ORDINARY = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "description", "title",
    "minimum", "maximum", "minItems", "maxItems", "$schema", "default", "examples",
}


def keywords(schema: object) -> set[str]:
    """The keywords used in a schema, at any depth."""
    if isinstance(schema, list):
        return set().union(*map(keywords, schema)) if schema else set()
    if not isinstance(schema, dict):
        return set()
    found = set(schema)
    for name, value in schema.items():
        if name in ("properties", "patternProperties", "$defs", "definitions") and isinstance(value, dict):
            for inner in value.values():
                found |= keywords(inner)
        elif name not in ("enum", "const", "default", "examples"):
            found |= keywords(value)
    return found


def share(values: list[float], part: float) -> float:
    """The quantile `part` of the values."""
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] if values else float("nan")


def table(title: str, names: set[str], libraries: dict[str, dict[str, dict]], setup: dict[str, dict]) -> None:
    # Masks are compared for schemas that every library compiled and documents that every library accepted.
    common = []
    for name in sorted(names):
        results = [cases.get(name) for cases in libraries.values()]
        if all(r and not r["error"] and r["documents"] for r in results):
            # Each document is measured twice; the masks of the first half have not been computed before.
            count = len(results[0]["documents"]) // 2
            for index in range(count):
                if all(r["documents"][index]["accepted"] for r in results):
                    common.append((name, index))
    masks = sum(len(next(iter(libraries.values()))[n]["documents"][i]["mask_us"]) for n, i in common)
    print(f"\n### {title}: {len(names)} schemas, {len(common)} documents and {masks} masks in common\n")
    print(
        "| | compiled | documents accepted | compile p50 | p99 | maximum | prepare p50 | p99 | mask p50 | mean | p99"
        " | again: p50 | mean | p99 | memory |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for library, cases in libraries.items():
        mine = [cases[n] for n in names if n in cases]
        compiled = [c for c in mine if not c["error"]]
        documents = [d["accepted"] for c in compiled for d in c["documents"][: len(c["documents"]) // 2]]
        total = sum(len(c["documents"]) // 2 for c in libraries["ours"].values() if c["name"] in names and c["documents"])
        times = [c["compile_ms"] for c in compiled]
        values = [t for n, i in common for t in cases[n]["documents"][i]["mask_us"]]
        again = [t for n, i in common for t in cases[n]["documents"][i + len(cases[n]["documents"]) // 2]["mask_us"]]
        # Only ours computes masks before decoding in a separate step; xgrammar does so while it compiles.
        steps = [c["prepare_ms"] for c in compiled if "prepare_ms" in c]
        prepare = f"{share(steps, .5):.2f} ms | {share(steps, .99):.1f} ms" if steps else "– | –"
        memory = max((c["rss_mb"] or 0) for c in mine) if mine else 0
        print(
            f"| {library} {setup[library]['version']} | {len(compiled)} of {len(names)} | {sum(documents)} of {total}"
            f" | {share(times, .5):.2f} ms | {share(times, .99):.1f} ms | {max(times, default=0):.1f} ms | {prepare}"
            f" | {share(values, .5):.2f} µs | {statistics.fmean(values):.1f} µs | {share(values, .99):.1f} µs"
            f" | {share(again, .5):.2f} µs | {statistics.fmean(again):.1f} µs | {share(again, .99):.1f} µs | {memory:.0f} MB |"
        )


def main() -> None:
    schemas = {case["name"]: case["schema"] for case in json.load(open(sys.argv[1]))["cases"]}
    libraries: dict[str, dict[str, dict]] = {}
    setup: dict[str, dict] = {}
    for path in sys.argv[2:]:
        for line in open(path):
            record = json.loads(line)
            if "name" in record:
                libraries.setdefault(record["library"], {})[record["name"]] = record
            else:
                setup[record["library"]] = record
    ordinary = {n for n, s in schemas.items() if keywords(s) <= ORDINARY}
    table("Ordinary schemas", ordinary, libraries, setup)
    table("All schemas", set(schemas), libraries, setup)
    print()
    for library, record in setup.items():
        print(
            f"{library}: vocabulary setup {record['setup_ms']:.0f} ms; a call from Python that does nothing takes"
            f" {record['call_overhead_us']:.2f} µs." if record["call_overhead_us"] else f"{library}: vocabulary setup {record['setup_ms']:.0f} ms."
        )


main()
