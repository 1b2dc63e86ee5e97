"""Requests that `fm eval` answers, for the scripts of this folder and of Training."""
import json
import os
import subprocess
import sys
import tempfile


def samples(fm, requests, *flags):
    """The samples of `fm eval` for a list of requests, in their order. Ends the program with the message of fm if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "requests.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            for request in requests:
                file.write(json.dumps(request, ensure_ascii=False) + "\n")
        command = [fm, "eval", path, "--run", os.path.join(folder, "run.jsonl"), "--json", "--minimum", "0", "--no-spotlight", *flags]
        result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode not in (0, 1) or not result.stdout:
        sys.exit(f"{os.path.basename(sys.argv[0])}: fm eval failed: {result.stderr.strip()}")
    return json.loads(result.stdout)["samples"]
