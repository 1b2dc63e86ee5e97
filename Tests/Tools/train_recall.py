#!/usr/bin/env python3
"""Trains the models of recall: whether a prompt needs anything that was said earlier, and which utterances it needs; each by words alone and
with vectors, and the second with the ranker.

    context-bench recall --model FILE --file SET --unrelated PROMPTS --evidence 2 --features SET.features.jsonl
    context-bench recall … --words --features SET.words.jsonl
    context-bench recall … --more SET.more.json --ranker HALF.fmadapter --features SET.pairs.jsonl   (a ranker that has not learned from this set)
    context-bench recall --model FILE --stories first --conversations 3 --evidence 2 --features first.features.jsonl   (also second, --words)
    Tests/Tools/train_recall.py --meaning SET.features.jsonl … --words SET.words.jsonl … --pairs SET.pairs.jsonl … \\
        --stories first.features.jsonl first.words.jsonl second.features.jsonl second.words.jsonl \\
        --ranked-stories first.pairs.jsonl second.pairs.jsonl > Sources/Apps/ContextKit/Recall/RecallWeights.swift

Logistic regressions with a penalty on the squares of the weights. The report on standard error is of cross-validation: each
conversation is judged by models that were trained without it. Needs NumPy.
"""
import argparse
import json
import random
import sys

import numpy

import logistic

PENALTY = 3.0
TOKENS_PER_WORD = 1.45
# Added to the constant of the need by words: likelihoods by words alone are lower, and a missed memory costs more than some tokens.
WORDS_SHIFT = 0.5
# The same with the ranker: questions are two thirds of the prompts there, and rare among those of people. With it, 89 % of the questions and
# 6 % of the exchanges recall something in cross-validation.
PAIRS_SHIFT = -1.1
# The share of the prompts of generated stories. With all of them, 71 instead of 74 % of the evidence of public conversations is found;
# without, 46 % of the ordinary turns of other stories recall something.
STORIES_SHARE = 0.15
BUDGETS = [500, 1000, 2000, 3500]


def read(paths, stories):
    """The lines of files; of those of generated stories only a part, which are many and alike."""
    lines = []
    for path in paths:
        for line in stories.get(path) or open(path):
            item = json.loads(line)
            item["talk"] = f"{path}:{item['talk']}"
            lines.append(item)
    return lines


def thinned(paths):
    """A part of the lines of each file."""
    numbers = random.Random(1)
    return {path: [line for line in open(path) if numbers.random() < STORIES_SHARE] for path in paths}


def fit(features, labels):
    """The weights of a logistic regression, the constant last, for features as they are."""
    mean, deviation = features.mean(0), features.std(0) + 1e-9
    result = logistic.fit((features - mean) / deviation, labels, PENALTY, numpy.ones(len(labels)))
    plain = result[:-1] / deviation
    return numpy.append(plain, result[-1] - (plain * mean).sum())


def value(features, weights):
    return features @ weights[:-1] + weights[-1]


WORDS, MEANING, PAIRS = range(3)


def prompt_features(line, kind):
    return line["words"] + (line["meaning"] if kind else []) + (line["pairs"] if kind == PAIRS else [])


def utterance_features(candidate, kind):
    # What a ranker says of a pair tells more than all the rest, of which only the order of the search adds to it.
    return candidate["pairs"] if kind == PAIRS else candidate["words"] + (candidate["meaning"] if kind else [])


def is_usable(item, kind):
    return bool(item["pairs"] if kind == PAIRS else not kind or item["meaning"])


def usable(lines, kind):
    """Prompts before anything was evicted, or before there were vectors, say nothing."""
    return [line for line in lines if line["candidates"] and is_usable(line["candidates"][0], kind)]


def need_data(lines, kind):
    features = numpy.array([prompt_features(line, kind) for line in lines])
    labels = numpy.array([line["isQuestion"] and is_open(line) for line in lines], float)
    return features, labels


def is_open(line):
    """Whether the answer is not in the context already."""
    return line["missing"] > 0 or any(candidate["isEvidence"] for candidate in line["candidates"])


def relevance_data(lines, kind):
    features, labels = [], []
    for line in lines:
        if not line["isQuestion"]:
            continue
        for candidate in line["candidates"]:
            if not is_usable(candidate, kind):
                continue
            features.append(utterance_features(candidate, kind))
            labels.append(candidate["isEvidence"])
    return numpy.array(features), numpy.array(labels, float)


def report(lines, kind):
    talks = sorted({line["talk"] for line in lines})
    scores, found, simple, kinds = [], numpy.zeros(len(BUDGETS)), numpy.zeros(len(BUDGETS)), []
    asked = 0
    for talk in talks:
        training = [line for line in lines if line["talk"] != talk]
        tested = [line for line in lines if line["talk"] == talk]
        need = fit(*need_data(training, kind))
        relevance = fit(*relevance_data(training, kind))
        features, labels = need_data(tested, kind)
        scores += list(zip(value(features, need), labels, [line["kind"] for line in tested]))
        for line in tested:
            if not line["isQuestion"]:
                continue
            asked += 1
            candidates = [item for item in line["candidates"] if is_usable(item, kind)]
            if not candidates:
                continue
            matrix = numpy.array([utterance_features(item, kind) for item in candidates])
            tokens = (numpy.exp([item["words"][6] for item in candidates]) - 1) * TOKENS_PER_WORD + 5
            evidence = numpy.array([item["isEvidence"] for item in candidates])
            for ranking, total in [(value(matrix, relevance), found), (-numpy.arange(len(matrix), dtype=float), simple)]:
                order = numpy.argsort(-ranking, kind="stable")
                used = numpy.cumsum(tokens[order])
                for index, budget in enumerate(BUDGETS):
                    total[index] += line["missing"] == 0 and (used[evidence[order]] <= budget).all()
    values = numpy.array([score for score, _, _ in scores])
    questions = numpy.array([label == 1 for _, label, _ in scores])
    exchanges = numpy.array([kind == "exchange" for _, _, kind in scores])
    unrelated = numpy.array([kind == "unrelated" for _, _, kind in scores])
    print(f"{['by words', 'with vectors', 'with the ranker'][kind]}: {questions.sum()} questions, {exchanges.sum()} exchanges, "
          f"{unrelated.sum()} unrelated prompts", file=sys.stderr)
    for limit in [0.2, 0.35, 0.5, 0.65, 0.8, 0.9]:
        is_above = values > numpy.log(limit / (1 - limit))
        print(f"  likelihood {limit}: questions {100 * is_above[questions].mean():.1f} %, exchanges "
              f"{100 * is_above[exchanges].mean():.1f} %, unrelated {100 * is_above[unrelated].mean():.1f} %", file=sys.stderr)
    print(f"  all evidence within {BUDGETS} tokens: {numpy.round(100 * found / asked, 1)} %, in the order of the search "
          f"{numpy.round(100 * simple / asked, 1)} %", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--meaning", nargs="*", default=[])
    parser.add_argument("--words", nargs="*", default=[])
    parser.add_argument("--pairs", nargs="*", default=[], help="without some of the three, the others alone are written")
    parser.add_argument("--ranked-stories", nargs="*", default=[], help="files of generated stories, with a ranker")
    parser.add_argument("--stories", nargs="+", default=[], help="files of generated stories, with vectors and by words in turn")
    arguments = parser.parse_args()
    stories = thinned(arguments.stories + arguments.ranked_stories)
    print("// Written by Tests/Tools/train_recall.py.\n\nextension RecallModel {")
    sets = [arguments.words + arguments.stories[1::2], arguments.meaning + arguments.stories[::2],
            arguments.pairs + arguments.ranked_stories]
    for kind, paths in enumerate(sets):
        if not paths:
            continue
        lines = usable(read(paths, stories), kind)
        report(lines, kind)
        suffix = ["Words", "Meaning", "Pairs"][kind]
        for name, data in [("need", need_data(lines, kind)), ("relevance", relevance_data(lines, kind))]:
            weights = fit(*data)
            if name == "need" and kind == WORDS:
                weights[-1] += WORDS_SHIFT
            if name == "need" and kind == PAIRS:
                weights[-1] += PAIRS_SHIFT
            weights = ", ".join(f"{weight:.4f}" for weight in weights)
            print(f"    static let {name}By{suffix}: [Double] = [{weights}]")
    print("}")


if __name__ == "__main__":
    main()
