#!/usr/bin/env python3
"""Records what scikit-learn computes, for TextClassificationTests: record_classifier.py >Tests/TextClassificationTests/Recorded/sklearn.json

Needs scikit-learn. The texts are rows of Benchmarks/Adapters/labels.
"""
import json
import pathlib

import numpy
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline, make_union

ROOT = pathlib.Path(__file__).resolve().parents[2]


def texts(part, count):
    rows = [json.loads(line) for line in open(ROOT / f"Benchmarks/Adapters/labels/{part}.jsonl", encoding="utf-8")][:count]
    users = [[m["content"] for m in row["messages"] if m["role"] == "user"][0] for row in rows]
    return users, [row["messages"][-1]["content"] for row in rows]


def regression(c):
    return LogisticRegression(C=c, tol=1e-10, max_iter=10_000)


def main():
    random = numpy.random.default_rng(5)
    features = numpy.round(random.normal(size=(60, 4)), 3)
    classes = (features @ random.normal(size=(4, 3)) + 0.5 * random.normal(size=(60, 3))).argmax(axis=1)
    several = (features @ random.normal(size=(4, 3)) + 0.5 * random.normal(size=(60, 3))) > 0
    softmax = regression(2).fit(features, classes)
    binary = OneVsRestClassifier(regression(0.5)).fit(features, several.astype(int))
    balanced = LogisticRegression(C=2, tol=1e-10, max_iter=10_000, class_weight="balanced").fit(features, classes)
    learned, labels = texts("train", 150)
    judged, _ = texts("test", 20)
    judged += ["Größe 42 passt nicht – kann ich umtauschen?", "a", "", "返品したい です", "x_1 under_score It's 3.50€"]
    words = dict(sublinear_tf=True, ngram_range=(1, 2))
    characters = dict(sublinear_tf=True, analyzer="char_wb", ngram_range=(3, 5))
    pipelines = {
        "words": make_pipeline(TfidfVectorizer(**words), regression(4)),
        "characters": make_pipeline(make_union(TfidfVectorizer(**words), TfidfVectorizer(**characters)), regression(4)),
    }
    scores = {}
    for name, pipeline in pipelines.items():
        pipeline.fit(learned, labels)
        scores[name] = pipeline.decision_function(judged).tolist()
    print(json.dumps({
        "features": features.tolist(), "classes": classes.tolist(), "several": several.astype(int).tolist(),
        "softmax": {"weights": softmax.coef_.tolist(), "bias": softmax.intercept_.tolist()},
        "balanced": {"weights": balanced.coef_.tolist(), "bias": balanced.intercept_.tolist()},
        "binary": {"weights": [e.coef_[0].tolist() for e in binary.estimators_],
                   "bias": [float(e.intercept_[0]) for e in binary.estimators_]},
        "learned": learned, "labels": labels, "judged": judged, "scores": scores}, ensure_ascii=False))


if __name__ == "__main__":
    main()
