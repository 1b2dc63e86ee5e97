"""Trains the guardrail's probe for a model: logistic regression on the states that a prompt leaves in some of its layers.

    fm states prompts.jsonl --layer 14 --layer 18 --layer 22 --out prompts.bin
    Tests/Tools/train_probe.py prompts.jsonl prompts.bin --layers 14 18 22 --width 1536 --model NAME --fingerprint HEX

Each line of prompts.jsonl has `prompt`, `unsafe` (0 or 1), `author`, and `kind`: `ordinary` for requests of people, `pairs` for unsafe
requests and their harmless twins, which count three times, `long` for long texts, anything else. Needs numpy and scipy.

A model with an adapter for general use has a probe of its own, with `usesAssistant: true`: `fm states --adapter FILE` reads its states.

Each prompt is scored by a probe that was trained without its author. The threshold is the one with the given share of ordinary requests
above it, or --threshold. Prints what it finds, and a line for GuardrailProbes.swift.
"""
import argparse, base64, json
import numpy as np
from scipy.optimize import minimize


def load(lines, states, layers, width=None):
    rows = [json.loads(line) for line in open(lines)]
    values = np.fromfile(states, dtype=np.float32).reshape(len(rows), layers, -1)
    # A wrong number of layers may divide the file as well.
    if width and values.shape[2] != width:
        raise SystemExit(f"{states}: {values.shape[2]} values for each of {layers} layers, not {width}: were these the layers?")
    values /= np.sqrt((values**2).mean(axis=2, keepdims=True))
    return rows, values


def fit(x, y, counts, penalty):
    """The weights of several divisions of the samples at once, `[features + 1, divisions]`; the constant last, without a penalty.

    counts: `[samples, divisions]`: what each sample counts in each division."""
    shape = (x.shape[1] + 1, counts.shape[1])

    def loss(flat):
        w = flat.reshape(shape).astype(np.float32)
        z = x @ w[:-1] + w[-1]
        error = counts * (1 / (1 + np.exp(-np.clip(z, -30, 30))) - y[:, None])
        value = (counts * (np.logaddexp(0, z) - y[:, None] * z)).sum() + 0.5 * penalty * (w[:-1] ** 2).sum()
        gradient = np.concatenate([x.T @ error + penalty * w[:-1], error.sum(0, keepdims=True)])
        return float(value), gradient.astype(np.float64).ravel()

    return minimize(loss, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 250}).x.reshape(shape)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lines")
    parser.add_argument("states")
    parser.add_argument("--layers", type=int, nargs="+", required=True)
    parser.add_argument("--width", type=int, required=True, help="the width of the model's states: 1536 for the default model, 576 for the small one")
    parser.add_argument("--use", type=int, nargs="+", help="the layers of the probe; all by default")
    parser.add_argument("--penalty", type=float, default=20, help="for each layer")
    parser.add_argument("--pairs", type=float, default=3)
    parser.add_argument("--alarms", type=float, default=0.0005)
    parser.add_argument("--threshold", type=float)
    parser.add_argument("--model", default="")
    parser.add_argument("--fingerprint", default="")
    arguments = parser.parse_args()
    rows, states = load(arguments.lines, arguments.states, len(arguments.layers), arguments.width)
    used = arguments.use or arguments.layers
    x = np.ascontiguousarray(states[:, [arguments.layers.index(layer) for layer in used]].reshape(len(rows), -1))
    y = np.array([row["unsafe"] for row in rows], dtype=np.float32)
    authors = np.array([row["author"] for row in rows])
    kinds = np.array([row.get("kind", "") for row in rows])
    names = sorted(set(authors))
    # One division without each author, and one with all.
    counts = np.stack([authors != name for name in names] + [np.ones(len(rows), bool)], 1).astype(np.float32)
    counts *= np.where(kinds == "pairs", arguments.pairs, 1)[:, None].astype(np.float32)
    w = fit(x, y, counts, arguments.penalty * len(used))
    all_scores = x @ w[:-1].astype(np.float32) + w[-1]
    score = np.array([all_scores[row, names.index(author)] for row, author in enumerate(authors)])
    ordinary = np.sort(score[(y == 0) & (kinds == "ordinary")])[::-1]
    threshold = arguments.threshold or ordinary[int(len(ordinary) * arguments.alarms)]
    above = score > threshold
    print(f"threshold {threshold:.3f}: found {above[y == 1].mean():.3f}, of pairs {above[(y == 1) & (kinds == 'pairs')].mean():.3f}; alarms: "
          + ", ".join(f"{kind} {above[(y == 0) & (kinds == kind)].mean():.4f}" for kind in ["ordinary", "pairs", "long"]))
    weights = w[:-1, -1]
    scale = np.abs(weights).max() / 127
    quantised = np.round(weights / scale).astype(np.int8)
    print(f'GuardrailProbe(model: "{arguments.model}", fingerprint: "{arguments.fingerprint}", layers: {used}, '
          f"scale: {scale:.6g}, bias: {w[-1, -1]:.5g}, threshold: {threshold:.4g},")
    print(f'    weights: "{base64.b64encode(quantised.tobytes()).decode()}")')


if __name__ == "__main__":
    main()
