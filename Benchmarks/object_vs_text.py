"""Compares an object of 20 fields generated under a schema with free text of as many tokens by the same model.

    object_vs_text.py FM [ROUNDS]

The two alternate. Prints a Markdown table with medians over the rounds of the time from the first logits to the end.
"""

import json
import statistics
import subprocess
import sys
import tempfile

FIELDS = {
    "first_name": {"type": "string"}, "last_name": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "maximum": 120},
    "email": {"type": "string"}, "phone": {"type": "string", "pattern": "^[0-9]{3}-[0-9]{4}$"}, "street": {"type": "string"},
    "house_number": {"type": "integer", "minimum": 1, "maximum": 999}, "city": {"type": "string"},
    "country": {"enum": ["France", "Germany", "Italy", "Spain"]}, "is_member": {"type": "boolean"},
    "member_since": {"type": "integer", "minimum": 1990, "maximum": 2026}, "plan": {"enum": ["free", "basic", "premium"]},
    "language": {"enum": ["en", "de", "fr", "it", "es"]}, "height_cm": {"type": "integer", "minimum": 50, "maximum": 230},
    "has_children": {"type": "boolean"}, "occupation": {"type": "string"}, "company": {"type": "string"},
    "hobby": {"type": "string"}, "newsletter": {"type": "boolean"}, "rating": {"type": "integer", "minimum": 1, "maximum": 5},
}
SCHEMA = {"type": "object", "properties": FIELDS, "required": list(FIELDS), "additionalProperties": False}
PROMPT = "Invent a customer and write a long text about the life of this person, with all details."
STORY = "Tell a long story about a person."


def run(fm: str, *arguments: str) -> dict:
    output = subprocess.run([fm, "--json", "--greedy", *arguments], check=True, capture_output=True, text=True).stdout
    return json.loads(output)


def main() -> None:
    fm = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(SCHEMA, file)
        file.flush()
        times: dict[str, list[float]] = {"object": [], "text": []}
        for _ in range(rounds):
            # The schema is not included in the prompt, so that both prompts are short.
            made = run(fm, "--no-describe", "--schema", file.name, PROMPT)
            tokens = made["usage"]["completion_tokens"]
            text = run(fm, "--max-tokens", str(tokens), STORY)
            assert len(made["content"]) == len(FIELDS)
            assert text["usage"]["completion_tokens"] == tokens, "the text ended early"
            times["object"].append(made["seconds"]["generation"])
            times["text"].append(text["seconds"]["generation"])
    forced = made["usage"]["forced_tokens"]
    print(f"\n### An object of 20 fields against free text, {tokens} tokens each\n")
    print("| | generation | tokens forced by the grammar |")
    print("|---|---|---|")
    print(f"| object with schema | {statistics.median(times['object']) * 1000:.0f} ms | {forced} tokens ({forced / tokens:.0%}) |")
    print(f"| free text | {statistics.median(times['text']) * 1000:.0f} ms | 0 |")


main()
