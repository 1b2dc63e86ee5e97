#!/usr/bin/env python3
"""Writes the rows to train the adapters of content tagging with: prepare.py [--rows N] >rows.jsonl

The rows of train.jsonl with the instructions that requests for content tagging have. Of the rows with JSON, two of three get a
schema (response_format), as guided requests have it. With --rows, that many rows, spread over all texts and kinds of requests.
"""
import argparse
import json
import pathlib
import random
import re

HERE = pathlib.Path(__file__).resolve().parent
# ModelPrompts.tagging
INSTRUCTIONS = ("You tag texts. Name what a text is about: topics, emotions, actions and objects, each in one or two words, in lower "
                "case, the most important first.")


def array(count):
    items = {"type": "array", "items": {"type": "string"}}
    return {**items, "minItems": count, "maxItems": count} if count else items


def schema(expected):
    """The schema of an answer: an object with a property for each kind, or one array."""
    if expected["shape"] == "array":
        return array(expected["counts"].get(expected["kinds"][0]))
    keys = [expected["keys"][kind] for kind in expected["kinds"]]
    properties = {key: array(expected["counts"].get(kind)) for key, kind in zip(keys, expected["kinds"])}
    return {"type": "object", "title": "Tags", "properties": properties, "required": keys, "additionalProperties": False}


def guided(row):
    """The row's prompt without the sentences about JSON, and its schema."""
    prompt = row["messages"][0]["content"]
    return re.sub(r"\s*(Only a plain array of strings\.)?\s*Respond with JSON\.\s*", "\n\n", prompt).strip(), schema(row["expected"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int)
    options = parser.parse_args()
    rows = [json.loads(line) for line in open(HERE / "train.jsonl", encoding="utf-8")]
    generator = random.Random(1)
    generator.shuffle(rows)
    # Prompts that are only a text are easy: a third of them is enough.
    bare = [row for row in rows if row["expected"]["request"] == "bare"]
    rows = [row for row in rows if row["expected"]["request"] != "bare"]
    if options.rows:
        bare = bare[:max(1, options.rows // 16)]
        rows = rows[:options.rows - len(bare)]
    rows += bare
    generator.shuffle(rows)
    number = 0
    for row in rows:
        user, answer = dict(row["messages"][0]), row["messages"][1]
        if row["expected"]["form"] == "json":
            number += 1
            if number % 3:
                prompt, form = guided(row)
                user = {"role": "user", "content": prompt,
                        "response_format": {"type": "json_schema", "json_schema": {"name": "Tags", "schema": form}}}
        print(json.dumps({"messages": [{"role": "system", "content": INSTRUCTIONS}, user, answer]}, ensure_ascii=False))


if __name__ == "__main__":
    main()
