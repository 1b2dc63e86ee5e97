#!/usr/bin/env python3
"""House format. Reads JSON lines {"expected":{"severity","where"},"answer"} from stdin, prints the share judged right.
Right = exactly four lines WHAT/WHERE/SEVERITY/NEXT in this order, "LABEL: text", WHAT and NEXT 1-8 words,
SEVERITY one of low|medium|high and equal to expected, WHERE equal to expected (case-insensitive)."""
import json, re, sys

def right(expected, answer):
    lines = str(answer).strip().split("\n")
    if len(lines) != 4:
        return False
    vals = []
    for label, line in zip(("WHAT", "WHERE", "SEVERITY", "NEXT"), lines):
        m = re.fullmatch(label + r": (\S(?:.*\S)?)", line.rstrip())
        if not m:
            return False
        vals.append(m.group(1))
    what, where, sev, nxt = vals
    return (len(what.split()) <= 8 and len(nxt.split()) <= 8 and sev in ("low", "medium", "high")
            and sev == expected["severity"] and where.casefold() == expected["where"].casefold())

if __name__ == "__main__":
    rows = [json.loads(l) for l in sys.stdin if l.strip()]
    print(f"{sum(right(r['expected'], r['answer']) for r in rows) / max(len(rows), 1):.4f}")
