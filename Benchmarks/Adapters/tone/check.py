#!/usr/bin/env python3
"""Tone. Reads JSON lines {"expected":{"kind","keywords"},"answer"} from stdin, prints the share judged right.
Right = begins with "Could you please " or "Would you mind " (kind request) or "I'm afraid " (kind bad-news),
is one line and one sentence ending in . or ?, has no exclamation mark, and at least half of the keywords occur.
A keyword matches at the start of a word, case-insensitively ("rins" matches "rinsing"); "a/b" means a or b."""
import json, re, sys

BEGIN = {"request": ("Could you please ", "Would you mind "), "bad-news": ("I'm afraid ",)}

def right(expected, answer):
    a = str(answer).strip().replace("\u2019", "'")
    if not a.startswith(BEGIN[expected["kind"]]) or "!" in a or "\n" in a:
        return False
    if a[-1] not in ".?" or len(re.findall(r"[.?…]+(?=[\s\"')]|$)", a)) != 1:
        return False
    hits = sum(any(re.search(r"\b" + re.escape(k), a, re.I) for k in kw.split("/")) for kw in expected["keywords"])
    return 2 * hits >= len(expected["keywords"])

if __name__ == "__main__":
    rows = [json.loads(l) for l in sys.stdin if l.strip()]
    print(f"{sum(right(r['expected'], r['answer']) for r in rows) / max(len(rows), 1):.4f}")
