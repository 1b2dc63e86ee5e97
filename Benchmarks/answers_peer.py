#!/usr/bin/env python3
"""The same tasks answered by fm and by llama.cpp (the chat completion of llama-cpp-python), with the same model file, greedy.

    pip install llama-cpp-python jsonschema regex
    Benchmarks/answers_peer.py --model FILE everyday-heldout.jsonl tools.jsonl

Both answers are judged by the code below, by class. llama.cpp uses the file's own chat template and its system line. It receives tools
through the template; its calls are read as the template writes them (<tool_call>{…}</tool_call>), run, and given back as tool messages, up
to four rounds, which is what its users must write themselves. Schemas are given as response_format, and in the prompt.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "Answers")
ROUNDS = 4


def judge(task, text):
    """Whether an answer passes the checks of its task."""
    import jsonschema
    import regex

    if any(part.lower() not in text.lower() for part in task.get("contains", [])):
        return False
    if any(part.lower() in text.lower() for part in task.get("excludes", [])):
        return False
    # Properties of characters are not in Python's own module, and it writes the end of a text differently.
    if "regex" in task and not regex.search(task["regex"].replace(r"\z", r"\Z"), text):
        return False
    if "schema" in task:
        try:
            jsonschema.validate(json.loads(text), task["schema"])
        except (ValueError, jsonschema.ValidationError):
            return False
    declined = not text.strip() or re.match(r"(?i)\s*(i['’]?m sorry|sorry|i can(['’]t|not)|as an ai)", text) is not None
    return declined == task.get("declines", False)


def fm_answers(binary, model, path, parallel):
    with tempfile.TemporaryDirectory() as folder:
        command = [binary, "eval", path, "--model", model, "--run", os.path.join(folder, "run.jsonl"), "--json", "--minimum", "0",
                   "--no-spotlight", "--parallel", str(parallel)]
        result = subprocess.run(command, capture_output=True, text=True)
    if not result.stdout:
        sys.exit(f"fm eval failed: {result.stderr.strip()}")
    return {sample["id"]: sample.get("response") or "" for sample in json.loads(result.stdout)["samples"]}


def calls(text):
    """The calls in an answer, in the format of the template."""
    for part in re.findall(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|$)", text, re.S):
        try:
            call = json.loads(part)
            yield {"name": call["name"], "arguments": call.get("arguments", {})}
        except (ValueError, KeyError, TypeError):
            return


def llama_answer(llama, task):
    """The answer in words, and the calls that were made."""
    prompt = task["prompt"]
    options = {"temperature": 0, "repeat_penalty": 1.0, "max_tokens": task.get("maxTokens", 200)}
    if "schema" in task:
        prompt += "\n\nAnswer with JSON that has this schema:\n" + json.dumps(task["schema"])
        options["response_format"] = {"type": "json_object", "schema": task["schema"]}
    messages = [{"role": role, "content": text} for turn in task.get("turns", []) for role, text in zip(("user", "assistant"), turn)]
    messages.append({"role": "user", "content": prompt})
    if task.get("instructions"):
        messages.insert(0, {"role": "system", "content": task["instructions"]})
    outputs = {tool["name"]: tool["output"] for tool in task.get("tools", [])}
    if outputs:
        options["tools"] = [
            {"type": "function", "function": {"name": tool["name"], "description": tool["description"],
                                              "parameters": tool.get("parameters", {"type": "object", "properties": {}})}}
            for tool in task["tools"]]
    text, every = "", []
    for _ in range(ROUNDS):
        text = llama.create_chat_completion(messages, **options)["choices"][0]["message"]["content"] or ""
        made = list(calls(text)) if outputs else []
        if not made:
            break
        every += made
        messages.append({"role": "assistant", "content": "", "tool_calls": [
            {"id": str(index), "type": "function", "function": call} for index, call in enumerate(made)]})
        messages += [{"role": "tool", "tool_call_id": str(index), "content": outputs.get(call["name"], "There is no such tool.")}
                     for index, call in enumerate(made)]
    return text, every


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="data sets of Benchmarks/Answers")
    parser.add_argument("--model", required=True, help="a model file")
    parser.add_argument("--fm", default=os.path.join(HERE, "..", ".build", "release", "fm"))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--out", help="add the answers of both to a file of JSON Lines")
    parser.add_argument("--every", type=int, default=1, help="only every so many tasks")
    arguments = parser.parse_args()
    import llama_cpp

    llama = llama_cpp.Llama(arguments.model, n_ctx=4096, n_threads=arguments.threads, n_threads_batch=arguments.threads,
                            flash_attn=True, verbose=False)
    out = open(arguments.out, "a") if arguments.out else None
    for name in arguments.files:
        path = name if os.path.exists(name) else os.path.join(DATA, name)
        tasks = [json.loads(line) for line in open(path) if line.strip()][:: arguments.every]
        # A pattern that cannot be read is an error before the work, not after it.
        for task in tasks:
            judge(task, "text")
        start = time.monotonic()
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.writelines(json.dumps(task) + "\n" for task in tasks)
            file.flush()
            ours = fm_answers(arguments.fm, arguments.model, file.name, 1)
        middle = time.monotonic()
        classes = {}
        for task in tasks:
            theirs, _ = llama_answer(llama, task)
            results = [judge(task, answer) for answer in (ours.get(task["id"], ""), theirs)]
            classes.setdefault(task.get("class", ""), []).append(results)
            if out:
                line = {"id": task["id"], "fm": ours.get(task["id"]), "llama.cpp": theirs, "passes": results}
                print(json.dumps(line), file=out, flush=True)
        end = time.monotonic()
        print(f"{os.path.basename(path)}: {len(tasks)} tasks, one after the other; fm {middle - start:.0f} s, llama.cpp {end - middle:.0f} s")
        print(f"  {'class':24}{'tasks':>6}{'fm':>6}{'llama.cpp':>11}")
        everything = [results for kind in classes.values() for results in kind]
        for kind, all_results in sorted(classes.items()) + [("all", everything)]:
            print(f"  {kind:24}{len(all_results):6}{sum(one for one, _ in all_results):6}{sum(other for _, other in all_results):11}", flush=True)


if __name__ == "__main__":
    main()
