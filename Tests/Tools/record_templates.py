#!/usr/bin/env python3
"""Record how Jinja chat templates render a fixed set of conversations.

Usage: record_templates.py FOLDER OUTPUT [--rendered FOLDER]

FOLDER    folder with *.jinja files
OUTPUT    JSON file to write: {"conversations": {NAME: VARIABLES},
          "templates": {FILE: {"hash": …, "renderings": {NAME: RESULT}}}}
          RESULT is {"hash": …, "length": …} of the rendered text in UTF-8,
          {"error": "raised"} if the template called raise_exception, or
          {"error": "failed"} if it did not compile or failed otherwise.
          A failed rendering also has "permissive": {"hash": …, "length": …}
          if the template renders in a more permissive environment: lists may
          be changed, tojson writes a generator as a list, and there is a
          from_json filter. Some engines render such templates.
          The file contains no text of templates and no rendered text.
--rendered FOLDER
          also write each rendered text to FOLDER/FILE/NAME.txt, each error
          message to FOLDER/FILE/NAME.error.txt, and the texts of the permissive
          environment to FOLDER/FILE/NAME.permissive.txt, for debugging

Templates are rendered with jinja2 as the Python package transformers does it:
immutable sandbox, trim_blocks and lstrip_blocks, the loopcontrols extension, a
"generation" block that renders its body, a tojson filter without HTML escaping,
and the functions raise_exception and strftime_now. The time is always
2026-11-21 12:00:00. The variables of a conversation are passed unchanged; a
variable that a conversation does not define is undefined. Requires jinja2 3.1
or later.
"""

import argparse
import datetime
import json
import pathlib
import types

import jinja2
import jinja2.ext
import jinja2.nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEnvironment

NOW = datetime.datetime(2026, 11, 21, 12, 0, 0)

# The conversations, which are also part of the output file, so that tests render the same data.
CONVERSATIONS = (pathlib.Path(__file__).parent / "template_conversations.json").read_text()

# Variables that are added to every conversation.
TOKENS = {"bos_token": "<BOS>", "eos_token": "<EOS>"}


class RaisedByTemplate(jinja2.TemplateError):
    """The template called raise_exception."""


class GenerationBlock(jinja2.ext.Extension):
    """{% generation %} … {% endgeneration %}: renders its body.

    The body becomes a call block, as in transformers: variables set inside are
    not visible outside.
    """

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("render_body"), [], [], body).set_lineno(line)

    def render_body(self, caller):
        return caller()


def raise_exception(message):
    raise RaisedByTemplate(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def strftime_now(format):
    return NOW.strftime(format)


def to_json_permissive(value, **options):
    return to_json(list(value) if isinstance(value, types.GeneratorType) else value, **options)


def make_environment(kind):
    environment = kind(trim_blocks=True, lstrip_blocks=True, extensions=[GenerationBlock, jinja2.ext.loopcontrols])
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = strftime_now
    return environment


def make_permissive_environment():
    environment = make_environment(SandboxedEnvironment)
    environment.filters["tojson"] = to_json_permissive
    environment.filters["from_json"] = json.loads
    return environment


def render_all(environment, template, conversations):
    """Yields for each conversation its name, the text or None, and None or (kind of error, message)."""
    try:
        compiled, failure = environment.from_string(template), None
    except Exception as error:
        failure = ("failed", f"{type(error).__name__}: {error}")
    for name, variables in conversations.items():
        text, error = None, failure
        if not error:
            try:
                # A copy, so that a rendering cannot change the variables of another one.
                text = compiled.render(**json.loads(json.dumps(variables)))
            except RaisedByTemplate as raised:
                error = ("raised", str(raised))
            except Exception as failed:
                error = ("failed", f"{type(failed).__name__}: {failed}")
        yield name, text, error


def summary(text):
    encoded = text.encode("utf-8")
    return {"hash": digest(encoded), "length": len(encoded)}


def digest(data):
    """FNV-1a of 64 bits, which the tests compute without a library."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def main():
    parser = argparse.ArgumentParser(description="Record how chat templates render.")
    parser.add_argument("folder", type=pathlib.Path, help="folder with *.jinja files")
    parser.add_argument("output", type=pathlib.Path, help="JSON file to write")
    parser.add_argument("--rendered", type=pathlib.Path, help="folder for the rendered texts")
    arguments = parser.parse_args()

    conversations = {name: {**variables, **TOKENS} for name, variables in json.loads(CONVERSATIONS).items()}
    environment, permissive = make_environment(ImmutableSandboxedEnvironment), make_permissive_environment()
    templates = {}
    for path in sorted(arguments.folder.glob("*.jinja"), key=lambda path: path.name):
        data = path.read_bytes()
        renderings, files = {}, {}
        for name, text, error in render_all(environment, data.decode("utf-8"), conversations):
            renderings[name] = {"error": error[0]} if error else summary(text)
            if error:
                files[f"{name}.error.txt"] = ": ".join(error) + "\n"
            else:
                files[f"{name}.txt"] = text
        failed = {name: conversations[name] for name, result in renderings.items() if result.get("error") == "failed"}
        for name, text, error in render_all(permissive, data.decode("utf-8"), failed):
            if not error:
                renderings[name]["permissive"] = summary(text)
                files[f"{name}.permissive.txt"] = text
        if arguments.rendered:
            folder = arguments.rendered / path.name
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                (folder / name).write_bytes(text.encode("utf-8"))
        templates[path.name] = {"hash": digest(data), "renderings": renderings}

    result = {"conversations": conversations, "templates": templates}
    arguments.output.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
