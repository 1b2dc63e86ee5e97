"""Anthropic's SDK against /v1/messages."""
import json
import re

import anthropic
import pytest
from pydantic import BaseModel, Field

from support import ADD, COUNT, KEY, MODEL, NO_MODEL, REAL_KEY, ROOT, WEATHER, check_json, too_long

# This SDK has no sampling arguments any more; the server still takes the fields.
GREEDY = dict(model=MODEL, extra_body={"temperature": 0})
HELLO = [{"role": "user", "content": "Say hello."}]
ASK = [{"role": "user", "content": COUNT}]
WANT = [{"role": "user", "content": "What is the weather in Rome?"}]
SCHEMAS = {"get_weather": WEATHER, "add": ADD}
TOOLS = [{"name": n, "description": f"Calls {n}.", "input_schema": s} for n, s in SCHEMAS.items()]
REASONS = ("end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal")


def check_message(m):
    assert m.id.startswith("msg_") and m.type == "message" and m.role == "assistant" and m.model
    assert m.stop_reason in REASONS
    assert "stop_sequence" in m.model_fields_set
    assert m.usage.input_tokens >= 0 and m.usage.output_tokens >= 0
    assert prompt_size(m.usage) > 0


def prompt_size(usage):
    # Anthropic counts cached tokens beside input_tokens, not within them.
    return usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)


def check_error(error, kind):
    assert error.body["type"] == "error"
    assert error.body["error"]["type"] == kind, error.body
    assert error.body["error"]["message"]


def check_events(events):
    """Order of raw events; returns text by block, arguments by block, the final stop reason."""
    events = [e for e in events if e.type != "ping"]
    assert events[0].type == "message_start"
    start = events[0].message
    assert start.role == "assistant" and start.content == [] and start.stop_reason is None
    assert prompt_size(start.usage) > 0
    assert [e.type for e in events[-2:]] == ["message_delta", "message_stop"]
    assert events[-2].delta.stop_reason in REASONS
    assert events[-2].usage.output_tokens >= 0
    blocks, current = [], None
    for e in events[1:-2]:
        if e.type == "content_block_start":
            assert current is None and e.index == len(blocks)
            current = {"type": e.content_block.type, "text": "", "json": "", "block": e.content_block}
        elif e.type == "content_block_delta":
            assert current is not None and e.index == len(blocks)
            if e.delta.type == "text_delta":
                assert current["type"] == "text"
                current["text"] += e.delta.text
            elif e.delta.type == "input_json_delta":
                assert current["type"] == "tool_use"
                current["json"] += e.delta.partial_json
        elif e.type == "content_block_stop":
            assert e.index == len(blocks)
            blocks.append(current)
            current = None
        else:
            raise AssertionError(e.type)
    assert current is None
    return blocks, events[-2].delta.stop_reason


@pytest.mark.quick
def test_plain(claude):
    m = claude.messages.create(**GREEDY, messages=HELLO, max_tokens=8)
    check_message(m)
    (block,) = m.content
    assert block.type == "text" and block.text


async def test_plain_async(aclaude):
    check_message(await aclaude.messages.create(**GREEDY, messages=HELLO, max_tokens=4))


def test_budget(claude):
    m = claude.messages.create(**GREEDY, messages=ASK, max_tokens=5)
    assert m.stop_reason == "max_tokens" and m.stop_sequence is None
    assert m.usage.output_tokens == 5


def test_stop_sequence(claude):
    plain = claude.messages.create(**GREEDY, messages=ASK, max_tokens=16).content[0].text
    stop = plain[len(plain) // 2:][:2]
    m = claude.messages.create(**GREEDY, messages=ASK, max_tokens=16, stop_sequences=[stop, "\u2603"])
    assert m.stop_reason == "stop_sequence" and m.stop_sequence == stop
    assert (m.content[0].text if m.content else "") == plain[:plain.index(stop)]


def test_prefill(claude):
    # The last assistant message is continued; the answer is only the new part, within its budget.
    m = claude.messages.create(**GREEDY, messages=[*ASK, {"role": "assistant", "content": "1, 2, 3,"}], max_tokens=6)
    check_message(m)
    assert m.usage.output_tokens <= 6
    assert prompt_size(m.usage) > claude.messages.count_tokens(model=MODEL, messages=ASK).input_tokens


def test_system_forms_are_equal(claude):
    sizes = {
        prompt_size(claude.messages.create(**GREEDY, messages=HELLO, max_tokens=1, system=system).usage)
        for system in ("Be brief.", [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}])
    }
    assert len(sizes) == 1


def test_sampling_fields(claude):
    check_message(claude.messages.create(
        model=MODEL, messages=HELLO, max_tokens=4, metadata={"user_id": "u"},
        extra_body={"temperature": 1.0, "top_k": 5, "top_p": 0.9}))


def test_unknown_fields_of_agents_are_accepted(claude):
    # Coding agents send ?beta=true, beta headers and fields that are newer than the server.
    m = claude.messages.create(
        model=MODEL, messages=HELLO, max_tokens=2, extra_query={"beta": "true"},
        extra_headers={"anthropic-beta": "some-feature-2026-01-01"}, extra_body={"context_hint": {"a": 1}})
    check_message(m)


def test_beta_messages(claude):
    m = claude.beta.messages.create(**GREEDY, messages=HELLO, max_tokens=2, betas=["some-feature-2026-01-01"])
    assert m.type == "message"


def test_bearer_key():
    client = anthropic.Anthropic(base_url=ROOT, auth_token=KEY, max_retries=0)
    check_message(client.messages.create(**GREEDY, messages=HELLO, max_tokens=1))


@pytest.mark.quick
def test_stream(claude):
    plain = claude.messages.create(**GREEDY, messages=ASK, max_tokens=10)
    events = list(claude.messages.create(**GREEDY, messages=ASK, max_tokens=10, stream=True))
    (block,), reason = check_events(events)
    assert block["text"] == plain.content[0].text
    assert reason == plain.stop_reason
    assert prompt_size(events[0].message.usage) == prompt_size(plain.usage)


def test_stream_helper(claude):
    with claude.messages.stream(**GREEDY, messages=ASK, max_tokens=8) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    check_message(final)
    assert final.content[0].text == text
    assert final.usage.output_tokens == 8


async def test_stream_async(aclaude):
    async with aclaude.messages.stream(**GREEDY, messages=ASK, max_tokens=6) as stream:
        kinds = [e.type async for e in stream]
        final = await stream.get_final_message()
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop"
    check_message(final)


def check_tools(m, names):
    blocks = [b for b in m.content if b.type == "tool_use"]
    assert blocks and m.stop_reason == "tool_use"
    assert len({b.id for b in blocks}) == len(blocks)
    for b in blocks:
        assert b.name in names
        check_json(json.dumps(b.input), SCHEMAS[b.name])
    return blocks


@pytest.mark.quick
def test_tool_named(claude):
    m = claude.messages.create(
        **GREEDY, messages=WANT, tools=TOOLS, tool_choice={"type": "tool", "name": "add"}, max_tokens=48)
    check_message(m)
    assert len(check_tools(m, {"add"})) == 1


@pytest.mark.parametrize("strict", [None, True])
def test_tool_any(claude, strict):
    tools = [{**t, "strict": True} for t in TOOLS] if strict else TOOLS
    m = claude.messages.create(
        **GREEDY, messages=WANT, tools=tools, max_tokens=64,
        tool_choice={"type": "any", "disable_parallel_tool_use": True})
    assert len(check_tools(m, SCHEMAS)) == 1


def test_tool_none(claude):
    m = claude.messages.create(**GREEDY, messages=WANT, tools=TOOLS, tool_choice={"type": "none"}, max_tokens=12)
    assert all(b.type == "text" for b in m.content)
    assert m.stop_reason != "tool_use"


def test_tool_auto(claude):
    m = claude.messages.create(**GREEDY, messages=WANT, tools=TOOLS, max_tokens=64)
    check_message(m)
    if m.stop_reason == "tool_use":
        check_tools(m, SCHEMAS)


def test_tool_without_arguments(claude):
    now = {"name": "now", "input_schema": {"type": "object", "properties": {}}}
    m = claude.messages.create(
        **GREEDY, messages=WANT, tools=[now], tool_choice={"type": "tool", "name": "now"}, max_tokens=32)
    assert m.content[-1].input == {}


def test_tool_stream(claude):
    events = list(claude.messages.create(
        **GREEDY, messages=WANT, tools=TOOLS, tool_choice={"type": "tool", "name": "get_weather"}, max_tokens=48,
        stream=True))
    blocks, reason = check_events(events)
    (block,) = [b for b in blocks if b["type"] == "tool_use"]
    assert reason == "tool_use"
    assert block["block"].id and block["block"].name == "get_weather" and block["block"].input == {}
    check_json(block["json"], WEATHER)


def test_tool_stream_helper(claude):
    with claude.messages.stream(
        **GREEDY, messages=WANT, tools=TOOLS, tool_choice={"type": "tool", "name": "add"}, max_tokens=48
    ) as stream:
        final = stream.get_final_message()
    check_tools(final, {"add"})


@pytest.mark.parametrize("content", [
    "21 degrees", [{"type": "text", "text": "21 degrees"}], None], ids=["string", "blocks", "absent"])
def test_tool_result(claude, content):
    result = {"type": "tool_result", "tool_use_id": "toolu_1"}
    if content is not None:
        result["content"] = content
    messages = [
        *WANT,
        {"role": "assistant", "content": [
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Rome", "unit": "C"}}]},
        {"role": "user", "content": [result, {"type": "text", "text": "Go on."}]},
    ]
    check_message(claude.messages.create(
        **GREEDY, messages=messages, tools=TOOLS, tool_choice={"type": "none"}, max_tokens=8))


def test_tool_result_error_flag(claude):
    first = claude.messages.create(
        **GREEDY, messages=WANT, tools=TOOLS, tool_choice={"type": "tool", "name": "get_weather"}, max_tokens=48)
    messages = [*WANT, {"role": "assistant", "content": first.content}, {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": first.content[-1].id, "content": "no such city", "is_error": True}]}]
    check_message(claude.messages.create(**GREEDY, messages=messages, tools=TOOLS, max_tokens=8))


class Sum(BaseModel):
    a: int = Field(description="from 0 to 9")
    sign: bool


def test_parse(claude):
    m = claude.messages.parse(
        **GREEDY, messages=[{"role": "user", "content": 'Answer with this JSON: {"a":1,"sign":true}'}],
        output_format=Sum, max_tokens=64)
    # The SDK drops bounds from the schema, so a digit loop may be cut; it may not be invalid.
    if m.stop_reason == "end_turn":
        assert isinstance(m.parsed_output, Sum)
    else:
        assert m.stop_reason == "max_tokens"


def test_output_config_schema(claude):
    m = claude.messages.create(
        **GREEDY, messages=HELLO, max_tokens=40, output_config={"format": {"type": "json_schema", "schema": WEATHER}})
    assert m.stop_reason == "end_turn"
    check_json(m.content[0].text, WEATHER)


@pytest.mark.quick
def test_count_tokens(claude):
    body = dict(model=MODEL, messages=WANT, system="Be brief.", tools=TOOLS)
    count = claude.messages.count_tokens(**body).input_tokens
    m = claude.messages.create(**body, max_tokens=1)
    assert count == prompt_size(m.usage)


def test_count_tokens_grows(claude):
    small = claude.messages.count_tokens(model=MODEL, messages=HELLO).input_tokens
    large = claude.messages.count_tokens(model=MODEL, messages=[*HELLO, {"role": "assistant", "content": "Hello."},
                                                                *HELLO]).input_tokens
    assert 0 < small < large


def test_billing_header_block_is_left_out(claude):
    # Coding agents put a changing first block in; it must not cost tokens or the prefix.
    plain = [{"type": "text", "text": "Be brief."}]
    noise = [{"type": "text", "text": "x-anthropic-billing-header: cc_version=1.2.3; cch=abc;"}, *plain]
    counts = {claude.messages.count_tokens(model=MODEL, messages=HELLO, system=s).input_tokens for s in (plain, noise)}
    assert len(counts) == 1


def test_cache_read(claude):
    messages = [{"role": "user", "content": " ".join(f"Thing {i} is round." for i in range(40))}]
    claude.messages.create(**GREEDY, messages=messages, max_tokens=1)
    again = claude.messages.create(**GREEDY, messages=messages, max_tokens=1).usage
    assert again.cache_read_input_tokens > 0


def test_unknown_model(claude):
    with pytest.raises(anthropic.NotFoundError) as e:
        claude.messages.create(model=NO_MODEL, messages=HELLO, max_tokens=1)
    check_error(e.value, "not_found_error")


@pytest.mark.parametrize("fields", [
    {"extra_body": {"temperature": 7}}, {"messages": []}, {"max_tokens": -1},
    {"messages": [{"role": "wizard", "content": "x"}]},
    {"tools": TOOLS, "tool_choice": {"type": "tool", "name": "nothing"}},
], ids=["temperature", "no_messages", "max_tokens", "role", "tool_choice"])
def test_bad_request(claude, fields):
    with pytest.raises(anthropic.BadRequestError) as e:
        claude.messages.create(**{"model": MODEL, "messages": HELLO, "max_tokens": 1, **fields})
    check_error(e.value, "invalid_request_error")


def test_bad_tool_schema(claude):
    schema = {"type": "object", "properties": {"a": {"type": "strnig"}}}
    with pytest.raises(anthropic.BadRequestError) as e:
        claude.messages.create(
            model=MODEL, messages=HELLO, max_tokens=8, tools=[{"name": "bad", "input_schema": schema}])
    check_error(e.value, "invalid_request_error")
    assert "/properties/a" in e.value.body["error"]["message"]


def test_prompt_too_long(claude):
    with pytest.raises(anthropic.BadRequestError) as e:
        claude.messages.create(model=MODEL, messages=[{"role": "user", "content": too_long()}], max_tokens=1)
    check_error(e.value, "invalid_request_error")
    # Agents look for these words and numbers.
    assert re.search(r"prompt is too long: \d+ tokens > \d+", e.value.body["error"]["message"])


@pytest.mark.skipif(not REAL_KEY, reason="the server runs without keys")
def test_wrong_key():
    client = anthropic.Anthropic(base_url=ROOT, api_key="wrong", max_retries=0)
    with pytest.raises(anthropic.AuthenticationError) as e:
        client.messages.create(model=MODEL, messages=HELLO, max_tokens=1)
    check_error(e.value, "authentication_error")
