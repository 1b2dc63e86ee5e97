"""The Ollama client against /api/*."""
import json
import math

import ollama
import pytest

from support import COUNT, EMBEDDER, MODEL, NO_MODEL, WEATHER, check_json

HELLO = [{"role": "user", "content": "Say hello."}]
ASK = [{"role": "user", "content": COUNT}]


def opts(n, **more):
    return {"temperature": 0, "num_predict": n, **more}


def check_done(r):
    assert r.model and r.done is True
    assert r.done_reason in ("stop", "length")
    assert r.created_at
    assert r.prompt_eval_count > 0 and r.eval_count > 0
    # Nanoseconds: even one token takes more than a microsecond.
    assert r.total_duration > 1000
    assert min(r.load_duration or 0, r.prompt_eval_duration or 0, r.eval_duration or 0) >= 0


@pytest.mark.quick
def test_chat(oll):
    r = oll.chat(MODEL, messages=HELLO, options=opts(8))
    check_done(r)
    assert r.message.role == "assistant" and isinstance(r.message.content, str)
    assert not r.message.tool_calls


async def test_chat_async(aoll):
    check_done(await aoll.chat(MODEL, messages=HELLO, options=opts(4)))


def test_chat_budget(oll):
    r = oll.chat(MODEL, messages=ASK, options=opts(5))
    assert r.done_reason == "length" and r.eval_count == 5


@pytest.mark.quick
def test_chat_stream(oll):
    parts = list(oll.chat(MODEL, messages=ASK, options=opts(8), stream=True))
    assert all(p.done is False for p in parts[:-1])
    check_done(parts[-1])
    assert all(p.message.role == "assistant" for p in parts)
    plain = oll.chat(MODEL, messages=ASK, options=opts(8))
    assert "".join(p.message.content or "" for p in parts) == plain.message.content


async def test_chat_stream_async(aoll):
    parts = [p async for p in await aoll.chat(MODEL, messages=ASK, options=opts(4), stream=True)]
    check_done(parts[-1])


def test_chat_options(oll):
    plain = oll.chat(MODEL, messages=ASK, options=opts(16)).message.content
    stop = plain[len(plain) // 2:][:2]
    r = oll.chat(MODEL, messages=ASK, options=opts(16, stop=[stop]))
    assert r.message.content == plain[:plain.index(stop)] and r.done_reason == "stop"
    same = {
        oll.chat(MODEL, messages=HELLO, options={"temperature": 1, "seed": 9, "num_predict": 8, "top_k": 40,
                                                 "top_p": 0.9, "min_p": 0.0, "repeat_penalty": 1.1}).message.content
        for _ in range(2)
    }
    assert len(same) == 1


def test_chat_system_and_history(oll):
    r = oll.chat(MODEL, options=opts(4), messages=[
        {"role": "system", "content": "Be brief."}, *HELLO, {"role": "assistant", "content": "Hello."}, *HELLO])
    check_done(r)


@pytest.mark.parametrize("stream", [False, True])
def test_chat_schema(oll, stream):
    r = oll.chat(MODEL, messages=HELLO, format=WEATHER, options=opts(40), stream=stream)
    parts = list(r) if stream else [r]
    assert parts[-1].done_reason == "stop"
    check_json("".join(p.message.content or "" for p in parts), WEATHER)


def test_chat_json(oll):
    r = oll.chat(MODEL, messages=[{"role": "user", "content": 'Answer with this JSON: {"a": 1}'}], format="json",
                 options=opts(64))
    if r.done_reason == "stop":
        json.loads(r.message.content)


def test_chat_logprobs(oll):
    r = oll.chat(MODEL, messages=ASK, options=opts(4), logprobs=True, top_logprobs=2)
    assert "".join(i.token for i in r.logprobs) == r.message.content
    for i in r.logprobs:
        top = [t.logprob for t in i.top_logprobs]
        assert len(top) == 2 and top == sorted(top, reverse=True)
        assert sum(math.exp(x) for x in top) <= 1 + 1e-3


def get_weather(city: str, unit: str) -> str:
    """Weather of a city.

    Args:
        city: name of the city
        unit: C or F
    """
    return "21"


@pytest.mark.parametrize("stream", [False, True])
def test_chat_tools(oll, stream):
    # This API cannot force a call, so only the form of what comes is fixed.
    r = oll.chat(MODEL, messages=[{"role": "user", "content": "Call get_weather for Rome in C."}],
                 tools=[get_weather], options=opts(64), stream=stream)
    parts = list(r) if stream else [r]
    check_done(parts[-1])
    for call in (c for p in parts for c in p.message.tool_calls or []):
        assert call.function.name == "get_weather"
        assert isinstance(call.function.arguments, dict)
        assert {"city", "unit"} >= set(call.function.arguments)


def test_chat_tool_result(oll):
    r = oll.chat(MODEL, tools=[get_weather], options=opts(6), messages=[
        {"role": "user", "content": "Weather in Rome?"},
        {"role": "assistant", "content": "", "tool_calls": [
            {"function": {"name": "get_weather", "arguments": {"city": "Rome", "unit": "C"}}}]},
        {"role": "tool", "tool_name": "get_weather", "content": "21"}])
    check_done(r)


def test_generate(oll):
    r = oll.generate(MODEL, prompt="Say hello.", system="Be brief.", options=opts(6))
    check_done(r)
    assert isinstance(r.response, str)


def test_generate_raw(oll):
    templated = oll.generate(MODEL, prompt="1, 2, 3,", options=opts(2))
    raw = oll.generate(MODEL, prompt="1, 2, 3,", raw=True, options=opts(2))
    assert raw.prompt_eval_count < templated.prompt_eval_count


def test_generate_stream(oll):
    parts = list(oll.generate(MODEL, prompt=COUNT, options=opts(6), stream=True))
    check_done(parts[-1])
    assert "".join(p.response or "" for p in parts) == oll.generate(MODEL, prompt=COUNT, options=opts(6)).response


def test_generate_schema(oll):
    r = oll.generate(MODEL, prompt="Anything.", format=WEATHER, options=opts(40))
    assert r.done_reason == "stop"
    check_json(r.response, WEATHER)


def test_generate_empty_prompt_loads(oll):
    r = oll.generate(MODEL, prompt="")
    assert r.done is True and r.done_reason == "load"


def test_embed(oll):
    one = oll.embed(EMBEDDER, input="hello world")
    assert len(one.embeddings) == 1 and one.prompt_eval_count > 0
    assert math.sqrt(sum(x * x for x in one.embeddings[0])) == pytest.approx(1, abs=1e-2)
    many = oll.embed(EMBEDDER, input=["hello world", "other"])
    assert len(many.embeddings) == 2
    assert list(many.embeddings[0]) == pytest.approx(list(one.embeddings[0]), abs=1e-2)


@pytest.mark.quick
def test_list_and_show(oll):
    models = oll.list().models
    assert models
    for m in models:
        assert m.model and m.size >= 0 and m.modified_at and m.digest and m.details
    shown = oll.show(models[0].model)
    assert shown.details is not None and shown.capabilities and shown.modelinfo is not None


def test_show_capabilities(oll):
    assert "completion" in oll.show(MODEL).capabilities
    assert "embedding" in oll.show(EMBEDDER).capabilities


def test_ps(oll):
    oll.chat(MODEL, messages=HELLO, options=opts(1))
    models = oll.ps().models
    assert models and all(m.model or m.name for m in models)


@pytest.mark.parametrize("call", ["chat", "generate", "embed", "show"])
def test_unknown_model(oll, call):
    with pytest.raises(ollama.ResponseError) as e:
        {
            "chat": lambda: oll.chat(NO_MODEL, messages=HELLO),
            "generate": lambda: oll.generate(NO_MODEL, prompt="x"),
            "embed": lambda: oll.embed(NO_MODEL, input="x"),
            "show": lambda: oll.show(NO_MODEL),
        }[call]()
    assert e.value.status_code == 404
    # A text and no object; the client shows it as it is.
    assert isinstance(e.value.error, str) and NO_MODEL in e.value.error


def test_unknown_model_stream(oll):
    with pytest.raises(ollama.ResponseError) as e:
        list(oll.chat(NO_MODEL, messages=HELLO, stream=True))
    assert e.value.status_code == 404


def test_bad_schema(oll):
    with pytest.raises(ollama.ResponseError) as e:
        oll.chat(MODEL, messages=HELLO, options=opts(4),
                 format={"type": "object", "properties": {"a": {"type": "strnig"}}})
    assert e.value.status_code == 400 and "/properties/a" in e.value.error


def test_unknown_option(oll):
    # Nothing is dropped in silence.
    with pytest.raises(ollama.ResponseError) as e:
        oll.chat(MODEL, messages=HELLO, options=opts(2, frobnicate=1))
    assert e.value.status_code == 400 and "frobnicate" in e.value.error
