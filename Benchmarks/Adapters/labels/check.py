#!/usr/bin/env python3
"""Labels. Reads JSON lines {"expected":label,"answer"} from stdin, prints the share judged right.
Right = the answer, stripped of outer white space, is exactly the label."""
import json, sys

def right(expected, answer):
    return str(answer).strip() == expected

if __name__ == "__main__":
    rows = [json.loads(l) for l in sys.stdin if l.strip()]
    print(f"{sum(right(r['expected'], r['answer']) for r in rows) / max(len(rows), 1):.4f}")
