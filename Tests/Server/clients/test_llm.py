"""simonw/llm, with the server as extra OpenAI models in a configuration folder of its own."""
import json
import os
import subprocess
import sys

import pytest

from support import COUNT, MODEL, REAL_KEY, TIMEOUT, URL, WEATHER, check_json


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("llm")
    entries = []
    for name, extra in (("fm", {}), ("fm-responses", {"responses": True}), ("fm-text", {"completion": True})):
        entry = {"model_id": name, "model_name": MODEL, "api_base": URL, **extra}
        if name != "fm-text":
            entry |= {"supports_schema": True, "supports_tools": True}
        if REAL_KEY:
            entry["api_key_name"] = "fm"
        entries.append(entry)
    # JSON is YAML.
    (path / "extra-openai-models.yaml").write_text(json.dumps(entries))
    if REAL_KEY:
        (path / "keys.json").write_text(json.dumps({"fm": REAL_KEY}))
    return path


@pytest.fixture
def run(folder):
    def call(*args, ok=True, allow=None):
        # A process per call, as a user has it.
        done = subprocess.run(
            [sys.executable, "-m", "llm", *args], capture_output=True, text=True, timeout=TIMEOUT,
            stdin=subprocess.DEVNULL, env={**os.environ, "LLM_USER_PATH": str(folder)})
        if not (allow and allow.lower() in done.stderr.lower()):
            assert (done.returncode == 0) == ok, done.stderr
        return done.stdout if ok else done.stderr
    return call


def options(n, *more):
    return ["-o", "temperature", "0", "-o", "max_tokens", str(n), *more]


@pytest.fixture(scope="module")
def api(folder):
    """The Python interface, in this process: cheaper than the command."""
    old = os.environ.get("LLM_USER_PATH")
    os.environ["LLM_USER_PATH"] = str(folder)
    import llm
    yield llm
    if old is None:
        del os.environ["LLM_USER_PATH"]
    else:
        os.environ["LLM_USER_PATH"] = old


@pytest.mark.parametrize("name", [pytest.param("fm", marks=pytest.mark.quick), "fm-responses", "fm-text"])
def test_prompt(run, name):
    assert run("-m", name, "Say hello.", *options(16)).strip()


def test_no_stream_equals_stream(run):
    streamed = run("-m", "fm", COUNT, *options(16))
    assert run("-m", "fm", COUNT, "--no-stream", *options(16)) == streamed


def test_system_and_usage(run):
    assert run("-m", "fm", "-s", "Be brief.", "Say hello.", *options(8)).strip()
    (entry,) = json.loads(run("logs", "list", "-n", "1", "--json"))
    assert entry["input_tokens"] > 0 and entry["output_tokens"] > 0


def test_continue_conversation(run):
    run("-m", "fm", "My name is Ada.", *options(6))
    assert run("-c", "What is my name?", *options(6)).strip()


@pytest.mark.quick
def test_schema(run):
    check_json(run("-m", "fm", "--schema", json.dumps(WEATHER), "Weather?", *options(40)), WEATHER)


def test_schema_responses(run):
    check_json(run("-m", "fm-responses", "--schema", json.dumps(WEATHER), "Weather?", *options(40)), WEATHER)


def test_schema_no_stream(run):
    check_json(run("-m", "fm", "--no-stream", "--schema", json.dumps(WEATHER), "Weather?", *options(40)), WEATHER)


def test_schema_dsl_is_enforced(api):
    # llm's short form has unbounded strings: a cut is the model's, an invalid end is not.
    schema = api.schema_dsl("n int, ok bool")
    text = api.get_model("fm").prompt("Give n and ok.", schema=schema, temperature=0, max_tokens=64, stream=False).text()
    if text.rstrip().endswith("}"):
        check_json(text, schema)


@pytest.mark.parametrize("name", ["fm", "fm-responses"])
def test_tool_command(run, name):
    # llm cannot force a call; with or without one the run ends well.
    run("-m", name, "-T", "llm_version", "Which version of llm is this? Use the tool.", "--cl", "4", *options(48),
        allow="Chain limit")


@pytest.mark.parametrize("name", ["fm", "fm-responses"])
@pytest.mark.parametrize("stream", [False, True])
def test_tool_arguments(api, name, stream):
    tool = api.Tool(name="get_weather", description="Weather of a city.", input_schema=WEATHER)
    response = api.get_model(name).prompt(
        "Call get_weather for Rome.", tools=[tool], temperature=0, max_tokens=64, stream=stream)
    response.text()
    for call in response.tool_calls():
        assert call.name == "get_weather"
        check_json(json.dumps(call.arguments), WEATHER)


async def test_async(api):
    response = api.get_async_model("fm").prompt("Say hello.", temperature=0, max_tokens=6)
    assert await response.text()
    assert (await response.usage()).input > 0


def test_options(api):
    model = api.get_model("fm")
    texts = {model.prompt("Say hello.", temperature=1, seed=3, max_tokens=8).text() for _ in range(2)}
    assert len(texts) == 1


def test_error_is_shown(run):
    bad = json.dumps({"type": "object", "properties": {"a": {"type": "strnig"}}})
    assert "/properties/a" in run("-m", "fm", "--schema", bad, "x", *options(4), ok=False)
