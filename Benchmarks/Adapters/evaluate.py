#!/usr/bin/env python3
"""Answers the test rows of a task with fm, and prints the share that is right.

    evaluate.py TASK [--fm FM] [--model NAME] [--adapter FILE] [--guided] [--rows N]

TASK is a folder beside this file. With --guided, rows of tagging that ask for JSON get a schema. Answers are those of the inference engine, greedy. The check of each task is its check.py.
"""
import argparse
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task")
    parser.add_argument("--fm", default="fm")
    parser.add_argument("--model")
    parser.add_argument("--adapter", default="none")
    parser.add_argument("--guided", action="store_true")
    parser.add_argument("--rows", type=int)
    options = parser.parse_args()
    answers, failed = [], 0
    if options.task == "tagging":
        sys.path.insert(0, str(HERE / "tagging"))
        import prepare
    for line in list(open(HERE / options.task / "test.jsonl"))[:options.rows]:
        row = json.loads(line)
        command = [options.fm, "--greedy", "--guardrails", "permissive-content-transformations", "--max-tokens", "200",
                   "--adapter", options.adapter]
        if options.model:
            command += ["--model", options.model]
        for message in row["messages"]:
            if message["role"] == "system":
                command += ["-i", message["content"]]
            elif message["role"] == "user":
                prompt = message["content"]
        if options.task == "tagging":
            command += ["-i", prepare.INSTRUCTIONS]
            if options.guided and row["expected"]["form"] == "json":
                prompt, schema = prepare.guided(row)
                command += ["--schema", json.dumps(schema)]
        run = subprocess.run(command + [prompt], capture_output=True, text=True)
        failed += run.returncode != 0
        answers.append(json.dumps({**row, "answer": run.stdout.rstrip("\n")}))
    check = subprocess.run([sys.executable, str(HERE / options.task / "check.py")] + (["-"] if options.task == "tagging" else []),
                           input="\n".join(answers), capture_output=True, text=True)
    print(f"{options.task}, {options.model or 'model in use'}, adapter {options.adapter}: {check.stdout.strip()} ({failed} failed)")
    if check.returncode:
        sys.exit(check.stderr)


if __name__ == "__main__":
    main()
