#!/usr/bin/env python3
"""Extraction. Reads JSON lines {"expected":{name,date,amount,currency},"answer"} from stdin, prints the share judged right.
Right = the whole answer parses as one JSON object with exactly the four keys and all four values are equal
(name, date, currency: same string or null; amount: a JSON number, not a string, or null)."""
import json, sys

KEYS = {"name", "date", "amount", "currency"}

def right(expected, answer):
    try:
        got = json.loads(str(answer).strip())
    except ValueError:
        return False
    if not isinstance(got, dict) or set(got) != KEYS:
        return False
    if any(got[k] != expected[k] for k in ("name", "date", "currency")):
        return False
    a, b = got["amount"], expected["amount"]
    if a is None or b is None:
        return a is None and b is None
    return isinstance(a, (int, float)) and not isinstance(a, bool) and abs(a - b) < 0.005

if __name__ == "__main__":
    rows = [json.loads(l) for l in sys.stdin if l.strip()]
    print(f"{sum(right(r['expected'], r['answer']) for r in rows) / max(len(rows), 1):.4f}")
