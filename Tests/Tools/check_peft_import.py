#!/usr/bin/env python3
"""Imports every PEFT folder here with fm, and prints whether that succeeded; refused-… must fail with a message that names the kind.

    python3 check_import.py FM [--out DIR] [--export]

Adapters are written to DIR (default: imported/ beside this file). --export also writes each as GGUF, for check_llama.py DIR. Exits with 1 if a case is
not as expected.
"""
import argparse, os, pathlib, subprocess, sys

HERE = pathlib.Path(__file__).resolve().parent
# With a tied head, PEFT's adapter changes the embeddings but not the head. Refused, or imported so that the logits are those of the JSON.
EITHER = {"embedding-tied"}
KINDS = {"refused-dora": "use_dora", "refused-modules-to-save": "modules_to_save", "refused-bias": "bias"}

parser = argparse.ArgumentParser()
parser.add_argument("fm")
parser.add_argument("--out", type=pathlib.Path, default=HERE / "imported")
parser.add_argument("--export", action="store_true")
options = parser.parse_args()
options.out.mkdir(parents=True, exist_ok=True)


def run(*arguments):
    result = subprocess.run([options.fm, *map(str, arguments)], capture_output=True, text=True, timeout=120, env={**os.environ, "NO_COLOR": "1"})
    return result.returncode, " ".join((result.stderr + " " + result.stdout).split())


wrong = 0
for config in sorted(HERE.glob("*/*/adapter_config.json")):
    folder = config.parent
    family, case = folder.parent.name, folder.name
    if not (folder.parent / "model.gguf").exists():
        continue
    out = options.out / f"{family}-{case}.fmadapter"
    out.unlink(missing_ok=True)
    code, text = run("adapter", "import", folder, "--model", folder.parent / "model.gguf", "--out", out)
    succeeded = code == 0 and out.exists()
    if case in KINDS:
        good = code > 0 and not out.exists() and KINDS[case] in text
        wanted = f"must be refused with a message that names “{KINDS[case]}”"
    elif case in EITHER:
        good, wanted = succeeded or (code > 0 and not out.exists()), ""
    else:
        good, wanted = succeeded, "must be imported"
    wrong += not good
    print(f"{'WRONG' if not good else 'see  ' if case in EITHER else 'ok   '} {family}/{case}: {'imported' if succeeded else f'failed ({code}): {text[:300]}'}" + ("" if good else f"   [{wanted}]"), flush=True)
    if succeeded and options.export:
        code, text = run("adapter", "export", out, "--gguf", out.with_suffix(".gguf"))
        if code:
            print(f"      export as GGUF failed ({code}): {text[:300]}")
print(f"{wrong} not as expected" if wrong else "all as expected")
sys.exit(1 if wrong else 0)
