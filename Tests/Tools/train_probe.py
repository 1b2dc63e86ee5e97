"""Trains the guardrail's probe for a model: logistic regression on the state that a prompt leaves in one of its layers.

    fm states prompts.jsonl --layer 15 --layer 18 --layer 21 --out prompts.bin
    Tests/Tools/train_probe.py prompts.jsonl prompts.bin --layers 15 18 21 --layer 18 --model NAME --fingerprint HEX

Each line of prompts.jsonl has `prompt`, `unsafe` (0 or 1), `author` and, for some, `instructions`. Needs numpy. Reports five-fold cross
validation and validation on the prompts of each author after training on the others, and prints a line for GuardrailProbes.swift.
"""
import argparse, base64, json
import numpy as np

import logistic


def fit(x, y, penalty):
    """Classes count equally."""
    return logistic.fit(x, y, penalty, np.where(y == 1, 0.5 / y.mean(), 0.5 / (1 - y.mean())))


def auc(score, y):
    order = np.argsort(score)
    rank = np.empty(len(score))
    rank[order] = np.arange(1, len(score) + 1)
    positive = int(y.sum())
    return (rank[y == 1].sum() - positive * (positive + 1) / 2) / (positive * (len(y) - positive))


def found_at(score, y, alarms):
    threshold = np.quantile(score[y == 0], 1 - alarms)
    return (score[y == 1] > threshold).mean(), threshold


def load(lines, states, count):
    rows = [json.loads(line) for line in open(lines)]
    values = np.fromfile(states, dtype=np.float32).reshape(len(rows), count, -1).astype(np.float64)
    values /= np.sqrt((values**2).mean(axis=2, keepdims=True))
    return rows, values


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lines")
    parser.add_argument("states")
    parser.add_argument("--layers", type=int, nargs="+", required=True)
    parser.add_argument("--layer", type=int)
    parser.add_argument("--penalty", type=float, default=100)
    parser.add_argument("--alarms", type=float, default=0.02)
    parser.add_argument("--test", nargs=2, action="append", default=[])
    parser.add_argument("--model", default="")
    parser.add_argument("--fingerprint", default="")
    arguments = parser.parse_args()
    rows, states = load(arguments.lines, arguments.states, len(arguments.layers))
    y = np.array([row["unsafe"] for row in rows])
    authors = np.array([row["author"] for row in rows])
    folds = np.random.default_rng(1).integers(0, 5, len(y))
    for place, layer in enumerate(arguments.layers):
        x = states[:, place]
        for penalty in [30, 100, 300, 1000]:
            score = np.zeros(len(y))
            for fold in range(5):
                w = fit(x[folds != fold], y[folds != fold], penalty)
                score[folds == fold] = x[folds == fold] @ w[:-1] + w[-1]
            text = f"layer {layer} penalty {penalty}: area {auc(score, y):.4f}, found at 1, 2, 5 %: " + " ".join(
                f"{found_at(score, y, a)[0]:.3f}" for a in (0.01, 0.02, 0.05))
            for author in sorted(set(authors)):
                if len(set(y[authors == author])) < 2:
                    continue
                w = fit(x[authors != author], y[authors != author], penalty)
                other = x[authors == author] @ w[:-1] + w[-1]
                text += f" | {author}: {auc(other, y[authors == author]):.4f} {found_at(other, y[authors == author], 0.02)[0]:.3f}"
            print(text)
    if arguments.layer is None:
        return
    place = arguments.layers.index(arguments.layer)
    x = states[:, place]
    score = np.zeros(len(y))
    for fold in range(5):
        w = fit(x[folds != fold], y[folds != fold], arguments.penalty)
        score[folds == fold] = x[folds == fold] @ w[:-1] + w[-1]
    found, threshold = found_at(score, y, arguments.alarms)
    print(f"cross-validated: {found:.3f} found at {arguments.alarms:.3f}, threshold {threshold:.3f}")
    w = fit(x, y, arguments.penalty)
    scale = np.abs(w[:-1]).max() / 127
    quantised = np.round(w[:-1] / scale).astype(np.int8)
    for lines, other in arguments.test:
        other_rows, other_states = load(lines, other, len(arguments.layers))
        labels = np.array([row["unsafe"] for row in other_rows])
        other_score = other_states[:, place] @ (quantised * scale) + w[-1]
        print(f"{lines}: area {auc(other_score, labels):.4f}, found {(other_score[labels == 1] > threshold).mean():.3f}, "
              f"alarms {(other_score[labels == 0] > threshold).mean():.3f}")
    print(f'GuardrailProbe(model: "{arguments.model}", fingerprint: 0x{arguments.fingerprint}, layer: {arguments.layer}, '
          f"scale: {scale:.6g}, bias: {w[-1]:.5g}, threshold: {threshold:.4g},")
    print(f'    weights: "{base64.b64encode(quantised.tobytes()).decode()}")')


if __name__ == "__main__":
    main()
