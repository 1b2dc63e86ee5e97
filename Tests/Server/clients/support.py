"""Address of the server under test, and checks that several test files share."""
import json
import os

import httpx
import jsonschema

URL = os.environ.get("FM_SERVER_URL", "http://127.0.0.1:8080/v1").rstrip("/")
# The Anthropic and Ollama clients add their own path, so they need the address without /v1.
ROOT = URL[:-3] if URL.endswith("/v1") else URL
REAL_KEY = os.environ.get("FM_SERVER_KEY")
KEY = REAL_KEY or "unused"
MODEL = os.environ.get("FM_SERVER_MODEL", "default")
EMBEDDER = os.environ.get("FM_SERVER_EMBEDDER", "embedder")
NO_MODEL = "no-such-model-here"
# A CPU server with one weak core still has to fit; a hang must not last for ever.
TIMEOUT = float(os.environ.get("FM_SERVER_TIMEOUT", "180"))
HEADERS = {"Authorization": f"Bearer {REAL_KEY}"} if REAL_KEY else {}

COUNT = "Count from 1 to 100, separated by commas. Begin with 1."

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "enum": ["Oslo", "Rome", "Lima"]},
        "unit": {"type": "string", "enum": ["C", "F"]},
    },
    "required": ["city", "unit"],
    "additionalProperties": False,
}
ADD = {
    "type": "object",
    "properties": {
        "a": {"type": "integer", "minimum": 0, "maximum": 9},
        "b": {"type": "integer", "minimum": 0, "maximum": 9},
    },
    "required": ["a", "b"],
    "additionalProperties": False,
}


def chat_tool(name, schema=None, strict=None, description=None):
    """A function tool in the form of chat completions."""
    function = {"name": name, "description": description or f"Calls {name}."}
    if schema is not None:
        function["parameters"] = schema
    if strict is not None:
        function["strict"] = strict
    return {"type": "function", "function": function}


def named(name):
    return {"type": "function", "function": {"name": name}}


def check_json(text, schema):
    """The text is one JSON document that is valid by an independent validator."""
    value = json.loads(text)
    jsonschema.Draft202012Validator(
        schema, format_checker=jsonschema.FormatChecker()
    ).validate(value)
    return value


def post(path, body):
    """For routes which the client library has no method for."""
    return httpx.post(ROOT + path, json=body, headers=HEADERS, timeout=TIMEOUT)


def token_ids(text):
    """Ids of a text, by the server's own tokeniser (llama.cpp's form, else vLLM's)."""
    reply = post("/tokenize", {"content": text, "add_special": False})
    if reply.status_code == 400:
        reply = post("/tokenize", {"model": MODEL, "prompt": text, "add_special_tokens": False})
    assert reply.status_code == 200, reply.text
    tokens = reply.json()["tokens"]
    assert tokens and all(isinstance(t, int) for t in tokens)
    return tokens


def too_long():
    """More tokens than the windows of the models used here; well below 1 MiB of body."""
    return "hi " * int(os.environ.get("FM_SERVER_OVERFLOW_WORDS", "140000"))


def check_openai_error(error, status, param=None, code=None):
    """All four keys of the error object are present; the named ones have the expected value."""
    assert error.status_code == status
    assert isinstance(error.body, dict), error.body
    assert {"message", "type", "param", "code"} <= set(error.body), error.body
    assert error.body["message"]
    assert isinstance(error.body["type"], str)
    if param is not None:
        assert error.param is not None and error.param.startswith(param), error.body
    if code is not None:
        assert error.code == code, error.body


def check_usage(usage, prompt="prompt_tokens", completion="completion_tokens"):
    p, c, total = (getattr(usage, k) for k in (prompt, completion, "total_tokens"))
    assert p > 0 and c >= 0
    assert total == p + c
