"""openai-python against completions, embeddings, models, and errors common to all routes."""
import base64
import math
import struct

import openai
import pytest

from support import (EMBEDDER, MODEL, NO_MODEL, check_openai_error, check_usage, token_ids, too_long)

GREEDY = dict(model=MODEL, temperature=0)
PROMPT = "1, 2, 3, 4,"


def check_completion(reply):
    assert reply.object == "text_completion"
    assert reply.id and reply.created > 1_500_000_000 and reply.model
    check_usage(reply.usage)
    assert [c.index for c in reply.choices] == list(range(len(reply.choices)))
    for c in reply.choices:
        assert isinstance(c.text, str)
        assert c.finish_reason in ("stop", "length")


# ---- completions ----

@pytest.mark.quick
def test_completion(client):
    reply = client.completions.create(**GREEDY, prompt=PROMPT, max_tokens=6)
    check_completion(reply)
    assert len(reply.choices) == 1 and reply.choices[0].logprobs is None
    assert not reply.choices[0].text.startswith(PROMPT)


def test_completion_default_budget(client):
    reply = client.completions.create(**GREEDY, prompt=PROMPT)
    assert reply.usage.completion_tokens <= 16


def test_completion_stream(client):
    plain = client.completions.create(**GREEDY, prompt=PROMPT, max_tokens=6)
    chunks = list(client.completions.create(
        **GREEDY, prompt=PROMPT, max_tokens=6, stream=True, stream_options={"include_usage": True}))
    assert {c.object for c in chunks} == {"text_completion"}
    assert chunks[-1].choices == [] and chunks[-1].usage.prompt_tokens == plain.usage.prompt_tokens
    assert "".join(c.choices[0].text for c in chunks[:-1]) == plain.choices[0].text
    finishes = [c.choices[0].finish_reason for c in chunks[:-1] if c.choices[0].finish_reason]
    assert finishes == [plain.choices[0].finish_reason]


async def test_completion_async(aclient):
    check_completion(await aclient.completions.create(**GREEDY, prompt=PROMPT, max_tokens=2))


def test_completion_batch_and_n(client):
    reply = client.completions.create(model=MODEL, prompt=["1, 2,", "a, b,"], n=2, temperature=1, seed=1, max_tokens=3)
    check_completion(reply)
    assert len(reply.choices) == 4


def test_completion_best_of(client):
    reply = client.completions.create(model=MODEL, prompt=PROMPT, n=1, best_of=3, temperature=1, seed=1, max_tokens=3)
    check_completion(reply)
    assert len(reply.choices) == 1


def test_completion_best_of_below_n(client):
    with pytest.raises(openai.BadRequestError) as e:
        client.completions.create(model=MODEL, prompt=PROMPT, n=3, best_of=2, max_tokens=1)
    check_openai_error(e.value, 400, "best_of")


def test_completion_token_ids(client):
    ids = token_ids(PROMPT)
    text = client.completions.create(**GREEDY, prompt=PROMPT, max_tokens=4)
    one = client.completions.create(**GREEDY, prompt=ids, max_tokens=4)
    assert one.usage.prompt_tokens == len(ids)
    many = client.completions.create(**GREEDY, prompt=[ids, ids[:3]], max_tokens=4)
    check_completion(many)
    assert len(many.choices) == 2
    assert many.choices[0].text == one.choices[0].text
    if text.usage.prompt_tokens == len(ids):
        # No token was put in front of the text, so both prompts are the same.
        assert text.choices[0].text == one.choices[0].text


def test_completion_stop(client):
    plain = client.completions.create(**GREEDY, prompt=PROMPT, max_tokens=12).choices[0].text
    stop = plain[len(plain) // 2:][:2]
    reply = client.completions.create(**GREEDY, prompt=PROMPT, max_tokens=12, stop=[stop])
    assert reply.choices[0].text == plain[:plain.index(stop)]
    assert reply.choices[0].finish_reason == "stop"


def test_completion_logprobs(client):
    choice = client.completions.create(**GREEDY, prompt=PROMPT, max_tokens=4, logprobs=2).choices[0]
    lp = choice.logprobs
    assert "".join(lp.tokens) == choice.text
    assert len(lp.tokens) == len(lp.token_logprobs) == len(lp.top_logprobs) == len(lp.text_offset)
    assert all(x <= 1e-6 for x in lp.token_logprobs)
    for best, chosen in zip(lp.top_logprobs, lp.token_logprobs):
        # Two tokens of equal text may share a key.
        assert 1 <= len(best) <= 3
        assert sum(math.exp(x) for x in best.values()) <= 1 + 1e-3
        assert max(best.values()) == pytest.approx(chosen, abs=1e-3)


@pytest.mark.parametrize("max_tokens", [0, 1])
def test_completion_echo(client, max_tokens):
    # What lm-eval sends: log probabilities over the prompt and the new token.
    ids = token_ids("The cat sat on the mat.")
    reply = client.completions.create(**GREEDY, prompt=ids, max_tokens=max_tokens, echo=True, logprobs=1)
    choice = reply.choices[0]
    lp = choice.logprobs
    assert reply.usage.prompt_tokens == len(ids)
    assert choice.text.startswith("The cat sat on the mat.")
    assert len(lp.tokens) - len(ids) in range(max_tokens + 1)
    assert lp.token_logprobs[0] is None
    assert all(isinstance(x, float) and x <= 1e-6 for x in lp.token_logprobs[1:])
    assert lp.text_offset[0] == 0 and lp.text_offset == sorted(lp.text_offset)
    assert "".join(lp.tokens) == choice.text


def test_completion_echo_is_consistent(client):
    # The prompt's log probability equals the one the token had when it was generated.
    made = client.completions.create(**GREEDY, prompt=token_ids(PROMPT), max_tokens=1, logprobs=1).choices[0]
    ids = token_ids(PROMPT) + token_ids(made.text)
    echoed = client.completions.create(**GREEDY, prompt=ids, max_tokens=0, echo=True, logprobs=1).choices[0]
    if len(token_ids(made.text)) == 1:
        assert echoed.logprobs.token_logprobs[-1] == pytest.approx(made.logprobs.token_logprobs[0], abs=0.02)


@pytest.mark.parametrize("fields,param", [
    ({"logprobs": 99}, "logprobs"), ({"prompt": []}, "prompt"), ({"prompt": {"a": 1}}, "prompt"),
    ({"max_tokens": -1}, "max_tokens"), ({"extra_body": {"frobnicate": 1}}, "frobnicate"),
    ({"prompt": [99999999]}, "prompt"),
])
def test_completion_bad_field(client, fields, param):
    with pytest.raises(openai.BadRequestError) as e:
        client.completions.create(**{"model": MODEL, "prompt": PROMPT, "max_tokens": 1, **fields})
    check_openai_error(e.value, 400, param)


def test_completion_unknown_model(client):
    with pytest.raises(openai.NotFoundError) as e:
        client.completions.create(model=NO_MODEL, prompt="x")
    check_openai_error(e.value, 404, "model", "model_not_found")


def test_completion_context_length(client):
    with pytest.raises(openai.BadRequestError) as e:
        client.completions.create(model=MODEL, prompt=too_long(), max_tokens=1)
    check_openai_error(e.value, 400, code="context_length_exceeded")
    assert "maximum context length is" in e.value.message


# ---- embeddings ----

def norm(v):
    return math.sqrt(sum(x * x for x in v))


@pytest.mark.quick
def test_embedding(client):
    # The SDK asks for base64 and decodes it to floats.
    reply = client.embeddings.create(model=EMBEDDER, input="hello world")
    assert reply.object == "list" and reply.model
    assert reply.usage.prompt_tokens > 0 and reply.usage.total_tokens == reply.usage.prompt_tokens
    (item,) = reply.data
    assert item.object == "embedding" and item.index == 0
    assert norm(item.embedding) == pytest.approx(1, abs=1e-2)


def test_embedding_forms_agree(client):
    floats = client.embeddings.create(model=EMBEDDER, input="hello world", encoding_format="float").data[0].embedding
    text = client.embeddings.create(model=EMBEDDER, input="hello world", encoding_format="base64").data[0].embedding
    assert isinstance(text, str)
    raw = base64.b64decode(text)
    decoded = struct.unpack(f"<{len(raw) // 4}f", raw)
    assert decoded == pytest.approx(floats, abs=1e-5)


def test_embedding_batch(client):
    texts = ["one", "two words", "and three more words"]
    reply = client.embeddings.create(model=EMBEDDER, input=texts)
    assert [d.index for d in reply.data] == [0, 1, 2]
    assert len({len(d.embedding) for d in reply.data}) == 1
    alone = client.embeddings.create(model=EMBEDDER, input=texts[1]).data[0].embedding
    assert reply.data[1].embedding == pytest.approx(alone, abs=1e-2)


async def test_embedding_async(aclient):
    assert (await aclient.embeddings.create(model=EMBEDDER, input="x")).data[0].embedding


@pytest.mark.parametrize("value", ["", [], 5])
def test_embedding_bad_input(client, value):
    with pytest.raises(openai.BadRequestError) as e:
        client.embeddings.create(model=EMBEDDER, input=value)
    check_openai_error(e.value, 400, "input")


def test_embedding_unknown_field(client):
    with pytest.raises(openai.BadRequestError) as e:
        client.embeddings.create(model=EMBEDDER, input="x", extra_body={"frobnicate": 1})
    check_openai_error(e.value, 400, "frobnicate")


def test_embedding_unknown_model(client):
    with pytest.raises(openai.NotFoundError) as e:
        client.embeddings.create(model=NO_MODEL, input="x")
    check_openai_error(e.value, 404, "model", "model_not_found")


# ---- models and routes ----

@pytest.mark.quick
def test_models(client):
    models = client.models.list().data
    assert models
    for m in models:
        assert m.object == "model" and m.id and m.created >= 0 and m.owned_by
    one = client.models.retrieve(models[0].id)
    assert one.id == models[0].id


def test_model_by_the_used_name(client):
    assert client.models.retrieve(MODEL).object == "model"


async def test_models_async(aclient):
    assert [m async for m in aclient.models.list()]


def test_model_unknown(client):
    with pytest.raises(openai.NotFoundError) as e:
        client.models.retrieve(NO_MODEL)
    check_openai_error(e.value, 404, code="model_not_found")


def test_unknown_route(client):
    with pytest.raises(openai.NotFoundError) as e:
        client.post("/no/such/route", body={}, cast_to=object)
    check_openai_error(e.value, 404)


def test_wrong_method(client):
    with pytest.raises(openai.APIStatusError) as e:
        client.get("/chat/completions", cast_to=object)
    check_openai_error(e.value, 405)
