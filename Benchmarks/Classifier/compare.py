#!/usr/bin/env python3
"""Compares “fm classify train” with scikit-learn: compare.py FM FOLDER (after prepare.py)

scikit-learn's pipelines are TF-IDF of words and pairs, and of these with letters, with logistic regression whose C is chosen by
cross-validation; the best of them on the test texts counts. Prints accuracy, calibration error, seconds and the size of the file.
"""
import csv
import json
import os
import pathlib
import subprocess
import sys
import time

import numpy
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.pipeline import make_pipeline, make_union


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [r[0] for r in rows], [r[1] for r in rows]


def calibration(probabilities, labels, classes):
    best = probabilities.max(axis=1)
    right = classes[probabilities.argmax(axis=1)] == numpy.array(labels)
    bins = numpy.minimum(9, (best * 10).astype(int))
    return sum(abs(best[bins == b].mean() - right[bins == b].mean()) * (bins == b).mean() for b in set(bins))


def main():
    fm, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    words = dict(sublinear_tf=True, ngram_range=(1, 2))
    characters = dict(sublinear_tf=True, analyzer="char_wb", ngram_range=(3, 5))
    for name, test in [("sentiment", "sentiment-test"), ("topics", "topics-test"), ("small-8", "topics-test"),
                       ("small-16", "topics-test")]:
        train, judged = read(folder / f"{name}.csv"), read(folder / f"{test}.csv")
        print(f"{name}: {len(train[0])} texts, {len(set(train[1]))} classes, {len(judged[0])} to judge")
        for title, features in [("words", TfidfVectorizer(**words)),
                                ("words and letters", make_union(TfidfVectorizer(**words), TfidfVectorizer(**characters)))]:
            start = time.time()
            model = make_pipeline(features, LogisticRegressionCV(Cs=[1, 6.7, 50], cv=3, max_iter=300, n_jobs=2))
            model.fit(*train)
            seconds = time.time() - start
            probabilities = model.predict_proba(judged[0])
            accuracy = (model.classes_[probabilities.argmax(axis=1)] == numpy.array(judged[1])).mean()
            print(f"  scikit-learn, {title}: accuracy {100 * accuracy:.1f} %, calibration error "
                  f"{100 * calibration(probabilities, judged[1], model.classes_):.1f} %, {seconds:.1f} s", flush=True)
        for features in ["words", "characters", "embeddings"]:
            out = folder / f"{name}-{features}.classifier"
            run = subprocess.run([fm, "classify", "train", str(folder / f"{name}.csv"), "--test", str(folder / f"{test}.csv"),
                                  "--features", features, "--out", str(out), "--json"], capture_output=True, text=True)
            report = json.loads(run.stdout)
            print(f"  fm, {features}: accuracy {100 * report['accuracy']:.1f} %, calibration error "
                  f"{100 * report['calibrationError']:.1f} %, {report['seconds']:.1f} s, {os.path.getsize(out) // 1024} KB", flush=True)


if __name__ == "__main__":
    main()
