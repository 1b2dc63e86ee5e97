"""openai-python against /v1/chat/completions."""
import asyncio
import json
import math
import uuid
from datetime import datetime
from enum import Enum
from typing import Annotated, Literal, Optional, Union

import openai
import pytest
from pydantic import BaseModel, ConfigDict, Field

from support import (
    ADD,
    COUNT,
    MODEL,
    NO_MODEL,
    REAL_KEY,
    URL,
    WEATHER,
    chat_tool,
    check_json,
    check_openai_error,
    check_usage,
    named,
    token_ids,
    too_long,
)

ASK = [{"role": "user", "content": COUNT}]
HELLO = [{"role": "user", "content": "Say hello."}]
GREEDY = dict(model=MODEL, temperature=0)


def check_completion(reply, max_tokens=None):
    assert reply.object == "chat.completion"
    assert reply.id.startswith("chatcmpl-")
    assert reply.created > 1_500_000_000
    assert reply.model
    check_usage(reply.usage)
    for choice in reply.choices:
        message = choice.message
        assert message.role == "assistant"
        # Strict clients want both keys, null or not.
        assert {"content", "refusal"} <= message.model_fields_set
        assert "logprobs" in choice.model_fields_set
        assert choice.finish_reason in ("stop", "length", "tool_calls")
        assert message.tool_calls is None or message.tool_calls
    if max_tokens:
        assert reply.usage.completion_tokens <= max_tokens * len(reply.choices)


def check_chunks(chunks, usage=False):
    """Keys and order of a stream; returns text, calls by index, finish reason for choice 0."""
    first = chunks[0]
    for c in chunks:
        assert c.object == "chat.completion.chunk"
        assert (c.id, c.created, c.model) == (first.id, first.created, first.model)
    if usage:
        assert chunks[-1].choices == []
        check_usage(chunks[-1].usage)
        body = chunks[:-1]
        assert all("usage" in c.model_fields_set and c.usage is None for c in body)
    else:
        body = chunks
        assert all("usage" not in c.model_fields_set for c in body)
    assert all(c.choices for c in body)
    body = [c.choices[0] for c in body if c.choices[0].index == 0]
    assert body[0].delta.role == "assistant"
    assert "content" in body[0].delta.model_fields_set
    assert not body[0].delta.content
    assert all(c.delta.role is None for c in body[1:])
    assert all(c.finish_reason is None for c in body[:-1])
    last = body[-1]
    assert last.finish_reason in ("stop", "length", "tool_calls")
    assert not last.delta.content and not last.delta.tool_calls
    text, calls = "", {}
    for c in body:
        text += c.delta.content or ""
        for t in c.delta.tool_calls or []:
            if t.index not in calls:
                # A new call is the next index and brings id, type and name once.
                assert t.index == len(calls)
                assert t.id and t.type == "function" and t.function.name
                calls[t.index] = {"id": t.id, "name": t.function.name, "arguments": ""}
            else:
                assert t.id is None and t.function.name is None
            calls[t.index]["arguments"] += t.function.arguments or ""
    return text, calls, last.finish_reason


# ---- plain answers ----

@pytest.mark.quick
def test_plain(client):
    reply = client.chat.completions.create(**GREEDY, messages=HELLO, max_tokens=8)
    check_completion(reply, 8)
    assert len(reply.choices) == 1 and reply.choices[0].index == 0
    assert isinstance(reply.choices[0].message.content, str)


async def test_plain_async_several_at_once(aclient):
    # Greedy answers must not depend on what else is in the batch.
    replies = await asyncio.gather(*(
        aclient.chat.completions.create(**GREEDY, messages=ASK, max_tokens=12) for _ in range(3)
    ))
    for reply in replies:
        check_completion(reply, 12)
    assert len({r.choices[0].message.content for r in replies}) == 1


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_budget(client, field):
    reply = client.chat.completions.create(**GREEDY, messages=ASK, **{field: 5})
    assert reply.choices[0].finish_reason == "length"
    assert reply.usage.completion_tokens == 5


def test_message_forms(client):
    # Roles and content forms which the SDK types allow for text.
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Say "}, {"type": "text", "text": "hello."}],
         "name": "someone"},
        {"role": "assistant", "content": "hello"},
        {"role": "assistant", "content": [{"type": "text", "text": "hello again"}]},
        {"role": "user", "content": "And once more."},
    ]
    check_completion(client.chat.completions.create(**GREEDY, messages=messages, max_tokens=4), 4)


def test_system_equals_developer(client):
    counts = set()
    for role in ("system", "developer"):
        messages = [{"role": role, "content": "Be brief."}, *HELLO]
        counts.add(client.chat.completions.create(**GREEDY, messages=messages, max_tokens=1).usage.prompt_tokens)
    assert len(counts) == 1


def test_prefill(client):
    # The last assistant message is continued; the answer is still one assistant message.
    messages = [*ASK, {"role": "assistant", "content": "1, 2, 3,"}]
    check_completion(client.chat.completions.create(**GREEDY, messages=messages, max_tokens=6), 6)


def test_harmless_fields_are_accepted(client):
    reply = client.chat.completions.create(
        **GREEDY, messages=HELLO, max_tokens=2, user="u", metadata={"a": "b"}, store=False,
        service_tier="auto", safety_identifier="s", prompt_cache_key="k", top_p=1.0,
        frequency_penalty=0.0, presence_penalty=0.0, response_format={"type": "text"},
    )
    check_completion(reply, 2)


def test_request_id_header(client):
    raw = client.chat.completions.with_raw_response.create(**GREEDY, messages=HELLO, max_tokens=1)
    assert raw.headers["content-type"].startswith("application/json")
    assert raw.headers.get("x-request-id")


# ---- streaming ----

@pytest.mark.quick
def test_stream_equals_plain(client):
    plain = client.chat.completions.create(**GREEDY, messages=ASK, max_tokens=12)
    chunks = list(client.chat.completions.create(**GREEDY, messages=ASK, max_tokens=12, stream=True))
    text, calls, finish = check_chunks(chunks)
    assert not calls
    assert text == plain.choices[0].message.content
    assert finish == plain.choices[0].finish_reason


def test_stream_usage(client):
    plain = client.chat.completions.create(**GREEDY, messages=ASK, max_tokens=6)
    chunks = list(client.chat.completions.create(
        **GREEDY, messages=ASK, max_tokens=6, stream=True, stream_options={"include_usage": True}))
    check_chunks(chunks, usage=True)
    usage = chunks[-1].usage
    assert usage.prompt_tokens == plain.usage.prompt_tokens
    assert usage.completion_tokens == plain.usage.completion_tokens


def test_stream_usage_off(client):
    chunks = list(client.chat.completions.create(
        **GREEDY, messages=ASK, max_tokens=3, stream=True, stream_options={"include_usage": False}))
    check_chunks(chunks, usage=False)


async def test_stream_async(aclient):
    stream = await aclient.chat.completions.create(**GREEDY, messages=ASK, max_tokens=6, stream=True)
    text, _, finish = check_chunks([c async for c in stream])
    assert text and finish == "length"


def test_stream_wire(client):
    with client.chat.completions.with_streaming_response.create(
        **GREEDY, messages=HELLO, max_tokens=3, stream=True
    ) as raw:
        assert raw.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in raw.iter_lines() if line and not line.startswith(":")]
    assert all(line.startswith("data: ") for line in lines)
    assert lines[-1] == "data: [DONE]"
    for line in lines[:-1]:
        chunk = json.loads(line[6:])
        assert {"id", "object", "created", "model", "choices"} <= set(chunk)
        assert all("index" in c and "delta" in c and "finish_reason" in c for c in chunk["choices"])


def test_stream_helper(client):
    # The helper raises for a cut answer, so this one has to end: an enumeration does.
    form = {"type": "json_schema", "json_schema": {"name": "w", "schema": WEATHER}}
    with client.chat.completions.stream(**GREEDY, messages=ASK, max_tokens=40, response_format=form) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    assert "content.delta" in kinds and kinds.count("content.done") == 1
    assert final.choices[0].message.content


def test_abandoned_stream_frees_the_server(client):
    for _ in range(3):
        stream = client.chat.completions.create(**GREEDY, messages=ASK, max_tokens=512, stream=True)
        next(iter(stream))
        stream.close()
    # With the slots still held, this would wait behind 1,500 tokens.
    reply = client.with_options(timeout=60).chat.completions.create(**GREEDY, messages=HELLO, max_tokens=2)
    check_completion(reply, 2)


# ---- sampling ----

def test_stop_string(client):
    plain = client.chat.completions.create(**GREEDY, messages=ASK, max_tokens=16).choices[0].message.content
    at = len(plain) // 2
    stop = plain[at:at + 2]
    cut = plain[:plain.index(stop)]
    for stops in (stop, ["\u2603never", stop]):
        reply = client.chat.completions.create(**GREEDY, messages=ASK, max_tokens=16, stop=stops)
        assert reply.choices[0].message.content == cut
        assert reply.choices[0].finish_reason == "stop"
    chunks = list(client.chat.completions.create(**GREEDY, messages=ASK, max_tokens=16, stop=stop, stream=True))
    text, _, finish = check_chunks(chunks)
    assert text == cut and finish == "stop"


def test_seed_repeats(client):
    texts = {
        client.chat.completions.create(model=MODEL, messages=HELLO, temperature=1, seed=7, max_tokens=12)
        .choices[0].message.content
        for _ in range(2)
    }
    assert len(texts) == 1


def test_n(client):
    reply = client.chat.completions.create(model=MODEL, messages=HELLO, n=3, temperature=1, seed=3, max_tokens=4)
    check_completion(reply, 4)
    assert [c.index for c in reply.choices] == [0, 1, 2]


def test_n_stream(client):
    chunks = list(client.chat.completions.create(
        model=MODEL, messages=HELLO, n=2, temperature=1, seed=3, max_tokens=4, stream=True,
        stream_options={"include_usage": True}))
    check_chunks(chunks, usage=True)
    done = [c.choices[0].index for c in chunks if c.choices and c.choices[0].finish_reason]
    assert sorted(done) == [0, 1]


@pytest.mark.quick
def test_logprobs(client):
    reply = client.chat.completions.create(**GREEDY, messages=ASK, max_tokens=6, logprobs=True, top_logprobs=3)
    choice = reply.choices[0]
    items = choice.logprobs.content
    assert "".join(i.token for i in items) == choice.message.content
    raw = [i.token.encode() if i.bytes is None else bytes(i.bytes) for i in items]
    assert b"".join(raw).decode() == choice.message.content
    # The end token may be counted although it has no text.
    assert reply.usage.completion_tokens - len(items) in (0, 1)
    for item in items:
        top = [t.logprob for t in item.top_logprobs]
        assert len(top) == 3
        assert top == sorted(top, reverse=True)
        assert item.logprob <= 1e-6
        assert sum(math.exp(x) for x in top) <= 1 + 1e-3
        # Greedy takes the best token.
        assert item.logprob == pytest.approx(top[0], abs=1e-3)
        assert item.token == item.top_logprobs[0].token


def test_logprobs_sum_to_one(client):
    reply = client.chat.completions.create(
        model=MODEL, temperature=1, seed=1, messages=ASK, max_tokens=1, logprobs=True, top_logprobs=20)
    item = reply.choices[0].logprobs.content[0]
    assert len(item.top_logprobs) == 20
    # After such a prompt twenty tokens hold a visible part of the mass, and never more than all.
    assert 0.05 < sum(math.exp(t.logprob) for t in item.top_logprobs) <= 1 + 1e-3


def test_logprobs_without_top(client):
    choice = client.chat.completions.create(**GREEDY, messages=ASK, max_tokens=3, logprobs=True).choices[0]
    assert all(i.top_logprobs == [] for i in choice.logprobs.content)
    choice = client.chat.completions.create(**GREEDY, messages=ASK, max_tokens=3).choices[0]
    assert choice.logprobs is None


def test_logprobs_stream(client):
    chunks = list(client.chat.completions.create(
        **GREEDY, messages=ASK, max_tokens=5, logprobs=True, top_logprobs=2, stream=True))
    text, _, _ = check_chunks(chunks)
    items = [i for c in chunks for x in c.choices if x.logprobs for i in x.logprobs.content or []]
    assert "".join(i.token for i in items) == text
    assert all(len(i.top_logprobs) == 2 for i in items)


def test_logit_bias_force(client):
    (wanted,) = token_ids("A")
    reply = client.chat.completions.create(**GREEDY, messages=HELLO, max_tokens=4, logit_bias={str(wanted): 100})
    assert reply.choices[0].message.content == "AAAA"
    assert reply.choices[0].finish_reason == "length"


def test_logit_bias_ban(client):
    first = client.chat.completions.create(**GREEDY, messages=ASK, max_tokens=1).choices[0].message.content
    ban = {str(t): -100 for t in token_ids(first)}
    other = client.chat.completions.create(**GREEDY, messages=ASK, max_tokens=1, logit_bias=ban)
    assert other.choices[0].message.content != first


def test_cached_tokens(client):
    # A fresh first word makes the first prompt cold.
    text = f"{uuid.uuid4()} " + " ".join(f"Item {i} is blue." for i in range(40))
    messages = [{"role": "user", "content": text}]
    first, second = (
        client.chat.completions.create(**GREEDY, messages=messages, max_tokens=2).usage for _ in range(2)
    )
    assert first.prompt_tokens == second.prompt_tokens
    assert first.prompt_tokens_details.cached_tokens < first.prompt_tokens // 2
    assert 0 < second.prompt_tokens_details.cached_tokens <= second.prompt_tokens


def test_extra_sampling_fields(client):
    reply = client.chat.completions.create(
        model=MODEL, messages=HELLO, temperature=1, seed=5, max_tokens=4, presence_penalty=0.5, frequency_penalty=0.5,
        extra_body={"top_k": 1, "min_p": 0.05, "repetition_penalty": 1.1})
    check_completion(reply, 4)


# ---- errors ----

@pytest.mark.quick
def test_unknown_field(client):
    with pytest.raises(openai.BadRequestError) as e:
        client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=1, extra_body={"frobnicate": 1})
    check_openai_error(e.value, 400, "frobnicate")
    assert e.value.type == "invalid_request_error"


@pytest.mark.quick
def test_unknown_model(client):
    with pytest.raises(openai.NotFoundError) as e:
        client.chat.completions.create(model=NO_MODEL, messages=HELLO, max_tokens=1)
    check_openai_error(e.value, 404, "model", "model_not_found")


@pytest.mark.parametrize("fields,param", [
    ({"temperature": 3}, "temperature"),
    ({"temperature": "hot"}, "temperature"),
    ({"top_p": 1.5}, "top_p"),
    ({"n": 0}, "n"),
    ({"presence_penalty": 9}, "presence_penalty"),
    ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    ({"top_logprobs": 2}, "top_logprobs"),
    ({"max_tokens": "many"}, "max_tokens"),
    ({"logit_bias": {"5": 101}}, "logit_bias"),
    ({"tool_choice": "required"}, "tool_choice"),
    ({"tools": [chat_tool("f", ADD)], "tool_choice": named("g")}, "tool_choice"),
    ({"tools": [chat_tool("bad name!", ADD)]}, "tools"),
    ({"response_format": {"type": "poem"}}, "response_format"),
    ({"messages": [{"role": "wizard", "content": "x"}]}, "messages"),
    ({"messages": [{"role": "user"}]}, "messages"),
    ({"messages": [{"role": "user", "content": [{"type": "smell", "smell": "x"}]}]}, "messages"),
])
def test_bad_field(client, fields, param):
    body = {"model": MODEL, "messages": HELLO, "max_tokens": 1, **fields}
    with pytest.raises(openai.BadRequestError) as e:
        client.chat.completions.create(**body)
    check_openai_error(e.value, 400, param)


def test_empty_messages(client):
    with pytest.raises(openai.BadRequestError) as e:
        client.chat.completions.create(model=MODEL, messages=[])
    check_openai_error(e.value, 400)


def test_error_before_stream(client):
    # An error known before the first byte is a status, not an event.
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model=MODEL, messages=HELLO, temperature=3, stream=True)


def test_context_length(client):
    with pytest.raises(openai.BadRequestError) as e:
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": too_long()}], max_tokens=1)
    check_openai_error(e.value, 400, "messages", "context_length_exceeded")
    assert "maximum context length is" in e.value.message


@pytest.mark.skipif(not REAL_KEY, reason="the server runs without keys")
def test_wrong_key():
    bad = openai.OpenAI(base_url=URL, api_key="sk-wrong", max_retries=0)
    with pytest.raises(openai.AuthenticationError) as e:
        bad.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=1)
    check_openai_error(e.value, 401)
    assert "Bearer" in e.value.response.headers.get("www-authenticate", "")


SCHEMA_FAULTS = [
    ({"type": "object", "properties": {"a": {"type": "strnig"}}}, "/properties/a"),
    ({"type": "object", "properties": {"a": {"$ref": "#/$defs/missing"}}}, "/properties/a"),
    ({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}, "/properties/a"),
    ({"type": "object", "properties": {"a": {"items": {"type": "integer", "minimum": "low"}}}}, "/properties/a/items"),
]


@pytest.mark.parametrize("schema,pointer", SCHEMA_FAULTS)
@pytest.mark.parametrize("stream", [False, True])
def test_bad_schema(client, schema, pointer, stream):
    with pytest.raises(openai.BadRequestError) as e:
        client.chat.completions.create(
            model=MODEL, messages=HELLO, max_tokens=8, stream=stream,
            response_format={"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}})
    check_openai_error(e.value, 400, "response_format")
    assert pointer in e.value.message


@pytest.mark.parametrize("strict", [None, True])
def test_bad_tool_schema(client, strict):
    tools = [chat_tool("good", ADD), chat_tool("bad", SCHEMA_FAULTS[0][0], strict)]
    with pytest.raises(openai.BadRequestError) as e:
        client.chat.completions.create(model=MODEL, messages=HELLO, tools=tools, max_tokens=8)
    check_openai_error(e.value, 400, "tools")
    assert "/properties/a" in e.value.message


# ---- structured output ----

class Colour(str, Enum):
    red = "red"
    green = "green"


class Level(int, Enum):
    low = 1
    high = 2


class Point(BaseModel):
    x: int = Field(ge=0, le=9)
    y: int = Field(ge=0, le=9)


class Nested(BaseModel):
    """Nested objects, one of them used twice."""
    start: Point
    end: Point
    colour: Colour


class Enums(BaseModel):
    colour: Colour
    level: Level
    kind: Literal["a", "b", 3]
    fixed: Literal["only"]
    flag: bool


class Unions(BaseModel):
    value: Union[Point, Colour, bool]
    number: Union[Annotated[int, Field(ge=0, le=9)], Literal["none"]]


class Optionals(BaseModel):
    colour: Optional[Colour] = None
    point: Optional[Point]
    n: Annotated[int, Field(ge=0, le=9)] = 4


class Lists(BaseModel):
    points: list[Point] = Field(min_length=1, max_length=2)
    colours: list[Colour] = Field(min_length=2, max_length=2)
    empty: list[Colour] = Field(max_length=1)


class Formats(BaseModel):
    at: datetime
    id: uuid.UUID


class Strings(BaseModel):
    code: str = Field(pattern=r"^[A-Z]{2}-\d{3}$")
    word: str = Field(min_length=2, max_length=8)
    even: int = Field(multiple_of=2, ge=0, le=8)


class Tree(BaseModel):
    colour: Colour
    children: list["Tree"] = Field(max_length=1)


class Chain(BaseModel):
    n: int = Field(ge=0, le=9)
    next: Optional["Chain"]


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(ge=1, le=9)


class Dog(BaseModel):
    kind: Literal["dog"]
    good: bool


class RootUnion(BaseModel):
    item: Union[Cat, Dog]


class Discriminated(BaseModel):
    pet: Annotated[Union[Cat, Dog], Field(discriminator="kind")]
    pets: list[Annotated[Union[Cat, Dog], Field(discriminator="kind")]] = Field(max_length=1)


class Mapping(BaseModel):
    counts: dict[str, int] = Field(max_length=2)


class Tuples(BaseModel):
    pair: tuple[Annotated[int, Field(ge=0, le=9)], Colour]
    same: tuple[Point, Point]


class Sets(BaseModel):
    colours: set[Colour] = Field(min_length=1, max_length=2)


class Described(BaseModel):
    """Annotations which the validator must leave alone."""
    model_config = ConfigDict(title="A title", json_schema_extra={"$comment": "x", "examples": [{"colour": "red"}]})
    colour: Colour = Field(description="A colour.", examples=["red"], title="Colour", deprecated=True)


def ask(model, example):
    return [{"role": "user", "content": f"Answer with this JSON and nothing else: {example}"}]


# Everything here has a bounded length, so a cut answer would be a fault.
BOUNDED = [
    (Nested, '{"start":{"x":1,"y":2},"end":{"x":3,"y":4},"colour":"red"}'),
    (Enums, '{"colour":"red","level":1,"kind":"a","fixed":"only","flag":true}'),
    (Unions, '{"value":{"x":1,"y":2},"number":3}'),
    (Optionals, '{"colour":null,"point":{"x":1,"y":2},"n":3}'),
    (Lists, '{"points":[{"x":1,"y":2}],"colours":["red","green"],"empty":[]}'),
    (Strings, '{"code":"AB-123","word":"hello","even":4}'),
    (RootUnion, '{"item":{"kind":"dog","good":true}}'),
    (Discriminated, '{"pet":{"kind":"cat","lives":9},"pets":[]}'),
    (Tuples, '{"pair":[1,"red"],"same":[{"x":1,"y":2},{"x":3,"y":4}]}'),
    (Sets, '{"colours":["red","green"]}'),
    (Described, '{"colour":"green"}'),
]
# These can go on for ever with an unlucky model: a cut is legal, an invalid answer is not.
UNBOUNDED = [
    (Tree, '{"colour":"red","children":[{"colour":"green","children":[]}]}'),
    (Chain, '{"n":1,"next":{"n":2,"next":null}}'),
    (Mapping, '{"counts":{"apples":3,"pears":4}}'),
    (Formats, '{"at":"2024-05-06T07:08:09Z","id":"123e4567-e89b-12d3-a456-426614174000"}'),
]


def named_models(pairs):
    return [pytest.param(m, e, id=m.__name__, marks=[pytest.mark.quick] if m is Enums else []) for m, e in pairs]


@pytest.mark.parametrize("model,example", named_models(BOUNDED))
def test_parse(client, model, example):
    reply = client.chat.completions.parse(
        **GREEDY, messages=ask(model, example), response_format=model, max_tokens=160)
    choice = reply.choices[0]
    assert choice.finish_reason == "stop"
    assert isinstance(choice.message.parsed, model)
    json.loads(choice.message.content)


@pytest.mark.parametrize("model,example", named_models(UNBOUNDED))
def test_parse_unbounded(client, model, example):
    try:
        reply = client.chat.completions.parse(
            **GREEDY, messages=ask(model, example), response_format=model, max_tokens=128)
    except openai.LengthFinishReasonError as e:
        assert e.completion.choices[0].finish_reason == "length"
        assert e.completion.choices[0].message.content.lstrip().startswith("{")
        return
    assert reply.choices[0].finish_reason == "stop"
    assert isinstance(reply.choices[0].message.parsed, model)


@pytest.mark.parametrize("model,example", named_models([BOUNDED[0], BOUNDED[7]]))
def test_parse_at_temperature(client, model, example):
    # Validity may not depend on a helpful prompt or on greedy sampling.
    for seed in (1, 2):
        reply = client.chat.completions.parse(
            model=MODEL, temperature=1, seed=seed, messages=HELLO, response_format=model, max_tokens=160)
        assert reply.choices[0].finish_reason == "stop"
        assert isinstance(reply.choices[0].message.parsed, model)


def test_parse_cut(client):
    # Three tokens cannot hold the object: the SDK must learn that the answer was cut.
    with pytest.raises(openai.LengthFinishReasonError):
        client.chat.completions.parse(**GREEDY, messages=HELLO, response_format=Nested, max_tokens=3)


async def test_parse_async(aclient):
    reply = await aclient.chat.completions.parse(
        **GREEDY, messages=ask(*BOUNDED[1]), response_format=Enums, max_tokens=80)
    assert isinstance(reply.choices[0].message.parsed, Enums)


def test_parse_stream(client):
    with client.chat.completions.stream(
        **GREEDY, messages=ask(*BOUNDED[0]), response_format=Nested, max_tokens=120
    ) as stream:
        events = list(stream)
        final = stream.get_final_completion()
    assert isinstance(final.choices[0].message.parsed, Nested)
    deltas = [e for e in events if e.type == "content.delta"]
    assert "".join(e.delta for e in deltas) == final.choices[0].message.content
    (done,) = [e for e in events if e.type == "content.done"]
    assert isinstance(done.parsed, Nested)


async def test_parse_stream_async(aclient):
    async with aclient.chat.completions.stream(
        **GREEDY, messages=ask(*BOUNDED[1]), response_format=Enums, max_tokens=80
    ) as stream:
        final = await stream.get_final_completion()
    assert isinstance(final.choices[0].message.parsed, Enums)


@pytest.mark.parametrize("strict", [None, False, True])
@pytest.mark.parametrize("stream", [False, True])
def test_schema_is_enforced_with_and_without_strict(client, strict, stream):
    wrapper = {"name": "weather", "schema": WEATHER}
    if strict is not None:
        wrapper["strict"] = strict
    body = dict(model=MODEL, temperature=1, seed=4, messages=HELLO, max_tokens=40,
                response_format={"type": "json_schema", "json_schema": wrapper})
    if stream:
        text, _, finish = check_chunks(list(client.chat.completions.create(**body, stream=True)))
    else:
        choice = client.chat.completions.create(**body).choices[0]
        text, finish = choice.message.content, choice.finish_reason
    assert finish == "stop"
    check_json(text, WEATHER)


# Schemas as other SDKs and MCP servers write them.
FOREIGN = {
    "zod": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": False,
            "properties": {"a": {"type": ["string", "null"], "enum": ["x", None]}, "b": {"const": "y"}},
            "required": ["a", "b"]},
    "draft4": {"$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "required": ["n"],
               "properties": {"n": {"$ref": "#/definitions/n"}}, "additionalProperties": False,
               "definitions": {"n": {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "maximum": 9}}},
    "openapi": {"type": "object", "additionalProperties": False, "required": ["n"],
                "properties": {"n": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 9}}},
    "no_type": {"properties": {"c": {"enum": ["p", "q"]}}, "required": ["c"], "additionalProperties": False},
    "root_ref": {"$ref": "#/$defs/R", "$defs": {"R": WEATHER}},
    "root_array": {"type": "array", "items": {"enum": ["p", "q"]}, "minItems": 1, "maxItems": 2},
    "root_enum": {"enum": ["p", "q"]},
    "boolean_member": {"type": "object", "properties": {"a": {"type": "boolean"}, "b": False}, "required": ["a"],
                       "additionalProperties": False},
    "all_of": {"allOf": [WEATHER, {"properties": {"unit": {"const": "C"}}}]},
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_schema(client, name):
    schema = FOREIGN[name]
    choice = client.chat.completions.create(
        **GREEDY, messages=HELLO, max_tokens=64,
        response_format={"type": "json_schema", "json_schema": {"name": name, "schema": schema}}).choices[0]
    if name == "no_type" and choice.finish_reason == "length":
        # Without a type the schema also allows a string without end.
        return
    assert choice.finish_reason == "stop"
    if name == "draft4":
        assert 0 < json.loads(choice.message.content)["n"] <= 9
    elif name != "no_type":
        check_json(choice.message.content, schema)
    else:
        value = json.loads(choice.message.content)
        assert not isinstance(value, dict) or value["c"] in ("p", "q")


def test_json_object(client):
    messages = [{"role": "user", "content": 'Answer with this JSON: {"a": 1}'}]
    choice = client.chat.completions.create(
        **GREEDY, messages=messages, max_tokens=64, response_format={"type": "json_object"}).choices[0]
    if choice.finish_reason == "stop":
        assert isinstance(json.loads(choice.message.content), dict)
    else:
        assert choice.finish_reason == "length"
        assert choice.message.content.lstrip().startswith("{")


# ---- tools ----

TOOLS = [chat_tool("get_weather", WEATHER), chat_tool("add", ADD)]
SCHEMAS = {"get_weather": WEATHER, "add": ADD}
WANT = [{"role": "user", "content": "What is the weather in Rome?"}]


def check_calls(choice, names, forced=True):
    calls = choice.message.tool_calls
    assert calls
    # Under auto a model may say something before it calls.
    assert not forced or choice.message.content is None
    assert len({c.id for c in calls}) == len(calls)
    for call in calls:
        assert call.type == "function"
        assert call.function.name in names
        check_json(call.function.arguments, SCHEMAS[call.function.name])
    return calls


def test_tool_choice_none(client):
    choice = client.chat.completions.create(
        **GREEDY, messages=WANT, tools=TOOLS, tool_choice="none", max_tokens=16).choices[0]
    assert choice.message.tool_calls is None
    assert isinstance(choice.message.content, str)
    assert choice.finish_reason in ("stop", "length")


@pytest.mark.parametrize("choice", [{}, {"tool_choice": "auto"}])
def test_tool_choice_auto(client, choice):
    answer = client.chat.completions.create(
        **GREEDY, messages=WANT, tools=[chat_tool(n, s, True) for n, s in SCHEMAS.items()], max_tokens=64,
        **choice).choices[0]
    # Which of the two the model takes is its affair; the form is not.
    if answer.finish_reason == "tool_calls":
        check_calls(answer, SCHEMAS, forced=False)
    elif answer.finish_reason == "stop":
        assert answer.message.tool_calls is None and isinstance(answer.message.content, str)


@pytest.mark.parametrize("strict", [None, False, True])
def test_tool_choice_required(client, strict):
    tools = [chat_tool(n, s, strict) for n, s in SCHEMAS.items()]
    choice = client.chat.completions.create(
        **GREEDY, messages=WANT, tools=tools, tool_choice="required", parallel_tool_calls=False,
        max_tokens=64).choices[0]
    assert len(check_calls(choice, SCHEMAS)) == 1
    assert choice.finish_reason == "tool_calls"


@pytest.mark.quick
def test_tool_choice_named(client):
    choice = client.chat.completions.create(
        **GREEDY, messages=WANT, tools=TOOLS, tool_choice=named("add"), max_tokens=48).choices[0]
    assert len(check_calls(choice, {"add"})) == 1
    # OpenAI and vLLM say stop, other servers tool_calls.
    assert choice.finish_reason in ("stop", "tool_calls")


def test_tool_choice_allowed(client):
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named("add")]}}
    choice = client.chat.completions.create(
        **GREEDY, messages=WANT, tools=TOOLS, tool_choice=allowed, parallel_tool_calls=False, max_tokens=48).choices[0]
    check_calls(choice, {"add"})


def test_tool_choice_allowed_auto(client):
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [named("add")]}}
    choice = client.chat.completions.create(
        **GREEDY, messages=WANT, tools=TOOLS, tool_choice=allowed, max_tokens=32).choices[0]
    assert all(c.function.name == "add" for c in choice.message.tool_calls or [])


def test_parallel_calls_form(client):
    choice = client.chat.completions.create(
        model=MODEL, temperature=0, messages=[{"role": "user", "content": "Weather in Rome and in Oslo, please."}],
        tools=TOOLS, tool_choice="required", parallel_tool_calls=True, max_tokens=120).choices[0]
    if choice.finish_reason == "tool_calls":
        check_calls(choice, SCHEMAS)
    else:
        assert choice.finish_reason == "length"


@pytest.mark.parametrize("parameters", [None, {}, {"type": "object"}, {"type": "object", "properties": {}}],
                         ids=["absent", "empty", "object", "no_properties"])
def test_tool_without_arguments(client, parameters):
    choice = client.chat.completions.create(
        **GREEDY, messages=WANT, tools=[chat_tool("now", parameters)], tool_choice=named("now"),
        max_tokens=32).choices[0]
    (call,) = choice.message.tool_calls
    assert call.function.name == "now"
    assert call.function.arguments == "{}"


def test_tool_call_cut(client):
    choice = client.chat.completions.create(
        **GREEDY, messages=WANT, tools=TOOLS, tool_choice=named("get_weather"), max_tokens=2).choices[0]
    assert choice.finish_reason == "length"


@pytest.mark.parametrize("choice", ["required", named("get_weather")], ids=["required", "named"])
def test_tool_stream(client, choice):
    body = dict(**GREEDY, messages=WANT, tools=TOOLS, tool_choice=choice, parallel_tool_calls=False, max_tokens=64)
    chunks = list(client.chat.completions.create(**body, stream=True))
    text, calls, finish = check_chunks(chunks)
    assert text == "" and len(calls) == 1
    check_json(calls[0]["arguments"], SCHEMAS[calls[0]["name"]])
    plain = client.chat.completions.create(**body).choices[0]
    assert calls[0]["arguments"] == plain.message.tool_calls[0].function.arguments
    assert finish == plain.finish_reason


async def test_tool_stream_async(aclient):
    stream = await aclient.chat.completions.create(
        **GREEDY, messages=WANT, tools=TOOLS, tool_choice=named("add"), max_tokens=48, stream=True)
    _, calls, _ = check_chunks([c async for c in stream])
    check_json(calls[0]["arguments"], ADD)


class Add(BaseModel):
    """Adds two numbers."""
    a: int = Field(ge=0, le=9)
    b: int = Field(ge=0, le=9)


def test_tool_parse(client):
    reply = client.chat.completions.parse(
        **GREEDY, messages=WANT, tools=[openai.pydantic_function_tool(Add)], tool_choice=named("Add"), max_tokens=48)
    (call,) = reply.choices[0].message.tool_calls
    assert isinstance(call.function.parsed_arguments, Add)


def test_tool_parse_stream(client):
    with client.chat.completions.stream(
        **GREEDY, messages=WANT, tools=[openai.pydantic_function_tool(Add)], tool_choice=named("Add"), max_tokens=48
    ) as stream:
        events = list(stream)
        final = stream.get_final_completion()
    assert isinstance(final.choices[0].message.tool_calls[0].function.parsed_arguments, Add)
    deltas = [e.arguments_delta for e in events if e.type == "tool_calls.function.arguments.delta"]
    (done,) = [e for e in events if e.type == "tool_calls.function.arguments.done"]
    assert "".join(deltas) == done.arguments


def history(arguments='{"city":"Rome","unit":"C"}', result='{"degrees":21}'):
    return [
        *WANT,
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": result},
    ]


@pytest.mark.parametrize("messages", [
    history(),
    history(result=[{"type": "text", "text": "21 "}, {"type": "text", "text": "degrees"}]),
    history(arguments='{"city": "Ro'),
    [*history(), {"role": "user", "content": "Thanks."}],
], ids=["string", "parts", "malformed_arguments", "more"])
def test_tool_result(client, messages):
    reply = client.chat.completions.create(
        **GREEDY, messages=messages, tools=TOOLS, tool_choice="none", max_tokens=8)
    check_completion(reply, 8)
    assert isinstance(reply.choices[0].message.content, str)


def test_tool_round_trip(client):
    # The message of the SDK goes back as it came.
    choice = client.chat.completions.create(
        **GREEDY, messages=WANT, tools=TOOLS, tool_choice=named("get_weather"), max_tokens=48).choices[0]
    messages = [*WANT, choice.message, {
        "role": "tool", "tool_call_id": choice.message.tool_calls[0].id, "content": "21 degrees"}]
    check_completion(client.chat.completions.create(**GREEDY, messages=messages, tools=TOOLS, max_tokens=8), 8)


def test_tool_result_counts(client):
    # A long result must reach the prompt.
    short = client.chat.completions.create(**GREEDY, messages=history(), tools=TOOLS, max_tokens=1).usage
    long = client.chat.completions.create(
        **GREEDY, messages=history(result="warm " * 100), tools=TOOLS, max_tokens=1).usage
    assert long.prompt_tokens >= short.prompt_tokens + 80


def test_tools_and_schema_together(client):
    choice = client.chat.completions.create(
        **GREEDY, messages=WANT, tools=TOOLS, max_tokens=64, parallel_tool_calls=False,
        response_format={"type": "json_schema", "json_schema": {"name": "p", "schema": ADD, "strict": True}}).choices[0]
    if choice.finish_reason == "tool_calls":
        check_calls(choice, SCHEMAS, forced=False)
    else:
        assert choice.finish_reason == "stop"
        check_json(choice.message.content, ADD)
