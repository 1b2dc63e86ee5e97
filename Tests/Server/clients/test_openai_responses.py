"""openai-python against /v1/responses and /v1/conversations."""
import json
import time

import openai
import pytest
from pydantic import BaseModel, Field

from support import ADD, COUNT, MODEL, NO_MODEL, WEATHER, check_json, check_openai_error, check_usage, too_long
from test_openai_chat import BOUNDED, Discriminated, Enums, Nested, SCHEMA_FAULTS

GREEDY = dict(model=MODEL, temperature=0)
SCHEMAS = {"get_weather": WEATHER, "add": ADD}


def tool(name, strict=None):
    t = {"type": "function", "name": name, "description": f"Calls {name}.", "parameters": SCHEMAS[name]}
    if strict is not None:
        t["strict"] = strict
    return t


TOOLS = [tool(n) for n in SCHEMAS]


def check_response(r, status="completed"):
    assert r.id.startswith("resp_") and r.object == "response"
    assert r.created_at > 1_500_000_000 and r.model
    assert r.status == status
    assert r.error is None
    fields = {"instructions", "metadata", "output", "parallel_tool_calls", "tool_choice", "tools", "text", "temperature",
              "top_p", "truncation", "previous_response_id", "incomplete_details", "error"}
    assert fields <= r.model_fields_set, fields - r.model_fields_set
    for item in r.output:
        if item.type == "message":
            assert item.id.startswith("msg_") and item.role == "assistant"
            for part in item.content:
                assert part.type == "output_text"
                assert part.annotations == []
        elif item.type == "function_call":
            assert item.id and item.call_id and item.id != item.call_id
    if status in ("completed", "incomplete"):
        check_usage(r.usage, "input_tokens", "output_tokens")
        assert r.usage.input_tokens_details.cached_tokens >= 0
        assert r.usage.output_tokens_details.reasoning_tokens >= 0
    if status == "completed":
        assert r.incomplete_details is None
        assert r.output


def check_events(events, terminal="response.completed"):
    """The order of events, and that parts add up; returns the last response object."""
    kinds = [e.type for e in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == terminal
    numbers = [e.sequence_number for e in events]
    assert numbers == sorted(set(numbers))
    final = events[-1].response
    for e in events[:2]:
        # Early events carry the full object: clients read id and created_at from them.
        assert e.response.id == final.id
        assert e.response.created_at == final.created_at
        assert e.response.output == []
        assert e.response.status in ("in_progress", "queued")
    items, part, text, arguments = {}, None, "", ""
    current = None
    for e in events[2:-1]:
        kind = e.type
        if kind == "response.output_item.added":
            assert current is None
            assert e.output_index == len(items)
            assert e.item.id and e.item.status == "in_progress"
            current, arguments = e.item, ""
            continue
        assert current is not None, kind
        assert e.output_index == len(items)
        if kind == "response.output_item.done":
            assert part is None
            assert e.item.id == current.id and e.item.type == current.type
            items[e.output_index] = e.item
            current = None
            continue
        assert e.item_id == current.id
        if kind == "response.content_part.added":
            assert current.type == "message" and part is None and e.content_index == 0
            part, text = e.part, ""
        elif kind == "response.output_text.delta":
            assert part is not None and e.content_index == 0
            text += e.delta
        elif kind == "response.output_text.done":
            assert e.text == text
        elif kind == "response.content_part.done":
            assert e.part.text == text
            part = None
        elif kind == "response.function_call_arguments.delta":
            assert current.type == "function_call"
            arguments += e.delta
        elif kind == "response.function_call_arguments.done":
            assert e.arguments == arguments
        else:
            assert kind.startswith(("response.reasoning", "response.refusal")), kind
    assert current is None
    assert [i.id for i in final.output] == [items[k].id for k in sorted(items)]
    for item, done in zip(final.output, (items[k] for k in sorted(items))):
        if item.type == "message":
            assert item.content[0].text == done.content[0].text
        elif item.type == "function_call":
            assert item.arguments == done.arguments
    return final


# ---- text ----

@pytest.mark.quick
def test_plain(client):
    r = client.responses.create(**GREEDY, input="Say hello.", max_output_tokens=64, store=False)
    # A talkative model may be cut; both ends have the same form.
    assert r.status in ("completed", "incomplete")
    check_response(r, r.status)
    assert isinstance(r.output_text, str) and r.output_text


async def test_plain_async(aclient):
    r = await aclient.responses.create(**GREEDY, input="Say hello.", max_output_tokens=16)
    check_response(r, r.status)


def test_budget(client):
    r = client.responses.create(**GREEDY, input=COUNT, max_output_tokens=16)
    check_response(r, "incomplete")
    assert r.incomplete_details.reason == "max_output_tokens"
    assert r.usage.output_tokens == 16


def test_input_forms(client):
    # Easy messages, parts, a replayed assistant item with id and status, items without "type".
    items = [
        {"role": "developer", "content": "Be brief."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello."}]},
        {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
         "content": [{"type": "output_text", "text": "Hello!", "annotations": []}]},
        {"role": "user", "content": "Once more."},
    ]
    r = client.responses.create(**GREEDY, input=items, instructions="Speak English.", max_output_tokens=16)
    check_response(r, r.status)
    assert r.instructions == "Speak English."


def test_echoed_fields(client):
    r = client.responses.create(
        model=MODEL, input="Hi", temperature=0.5, top_p=0.9, max_output_tokens=16, metadata={"a": "b"},
        parallel_tool_calls=False, truncation="disabled", user="u", prompt_cache_key="k")
    assert (r.temperature, r.top_p, r.metadata, r.parallel_tool_calls) == (0.5, 0.9, {"a": "b"}, False)
    assert r.truncation == "disabled" and r.text.format.type == "text"


def test_logprobs(client):
    r = client.responses.create(
        **GREEDY, input=COUNT, max_output_tokens=16, top_logprobs=2, include=["message.output_text.logprobs"])
    part = r.output[0].content[0]
    assert "".join(i.token for i in part.logprobs) == part.text
    assert all(len(i.top_logprobs) == 2 for i in part.logprobs)


@pytest.mark.quick
def test_stream(client):
    events = list(client.responses.create(**GREEDY, input=COUNT, max_output_tokens=16, stream=True))
    final = check_events(events, "response.incomplete")
    check_response(final, "incomplete")
    plain = client.responses.create(**GREEDY, input=COUNT, max_output_tokens=16)
    assert final.output_text == plain.output_text
    assert final.usage.input_tokens == plain.usage.input_tokens


async def test_stream_async(aclient):
    stream = await aclient.responses.create(**GREEDY, input=COUNT, max_output_tokens=16, stream=True)
    check_events([e async for e in stream], "response.incomplete")


def test_stream_wire(client):
    with client.responses.with_streaming_response.create(
        **GREEDY, input="Hi", max_output_tokens=16, stream=True
    ) as raw:
        assert raw.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in raw.iter_lines() if line and not line.startswith(":")]
    # Each event is named, and the name is the type in its data. No [DONE] here.
    for name, data in zip(lines[::2], lines[1::2], strict=True):
        assert name.startswith("event: ") and data.startswith("data: ")
        assert json.loads(data[6:])["type"] == name[7:]


# ---- structured output ----

@pytest.mark.parametrize("model,example", [
    pytest.param(m, e, id=m.__name__) for m, e in BOUNDED if m in (Nested, Enums, Discriminated)])
def test_parse(client, model, example):
    r = client.responses.parse(
        **GREEDY, input=f"Answer with this JSON and nothing else: {example}", text_format=model,
        max_output_tokens=160, store=False)
    check_response(r)
    assert isinstance(r.output_parsed, model)


async def test_parse_async(aclient):
    r = await aclient.responses.parse(
        **GREEDY, input="Answer with JSON.", text_format=Enums, max_output_tokens=100, store=False)
    assert isinstance(r.output_parsed, Enums)


def test_parse_stream(client):
    with client.responses.stream(
        **GREEDY, input="Answer with JSON.", text_format=Enums, max_output_tokens=100, store=False
    ) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert events[-1].type == "response.completed"
    assert isinstance(final.output_parsed, Enums)


def test_json_object(client):
    r = client.responses.create(
        **GREEDY, input='Answer with this JSON: {"a": 1}', text={"format": {"type": "json_object"}},
        max_output_tokens=64)
    if r.status == "completed":
        assert isinstance(json.loads(r.output_text), dict)
    else:
        check_response(r, "incomplete")


@pytest.mark.parametrize("schema,pointer", SCHEMA_FAULTS[:2])
def test_bad_schema(client, schema, pointer):
    with pytest.raises(openai.BadRequestError) as e:
        client.responses.create(
            model=MODEL, input="x", text={"format": {"type": "json_schema", "name": "x", "schema": schema}})
    check_openai_error(e.value, 400, "text.format")
    assert pointer in e.value.message


# ---- tools ----

def check_calls(r, names):
    calls = [i for i in r.output if i.type == "function_call"]
    assert calls
    for c in calls:
        assert c.name in names and c.status == "completed"
        check_json(c.arguments, SCHEMAS[c.name])
    return calls


@pytest.mark.parametrize("strict", [None, False, True])
def test_tool_required(client, strict):
    r = client.responses.create(
        **GREEDY, input="Weather in Rome?", tools=[tool(n, strict) for n in SCHEMAS], tool_choice="required",
        parallel_tool_calls=False, max_output_tokens=64)
    check_response(r)
    assert len(check_calls(r, SCHEMAS)) == 1
    assert all(i.type == "function_call" for i in r.output)


def test_tool_named(client):
    r = client.responses.create(
        **GREEDY, input="Weather in Rome?", tools=TOOLS, tool_choice={"type": "function", "name": "add"},
        max_output_tokens=48)
    check_calls(r, {"add"})


def test_tool_allowed(client):
    choice = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "add"}]}
    r = client.responses.create(
        **GREEDY, input="Weather in Rome?", tools=TOOLS, tool_choice=choice, parallel_tool_calls=False,
        max_output_tokens=48)
    check_calls(r, {"add"})


def test_tool_none(client):
    r = client.responses.create(
        **GREEDY, input="Weather in Rome?", tools=TOOLS, tool_choice="none", max_output_tokens=16)
    assert [i.type for i in r.output] == ["message"]


def test_tool_auto(client):
    r = client.responses.create(**GREEDY, input="Weather in Rome?", tools=TOOLS, max_output_tokens=64)
    assert r.status in ("completed", "incomplete")
    if r.status == "completed" and any(i.type == "function_call" for i in r.output):
        check_calls(r, SCHEMAS)


def test_tool_without_arguments(client):
    now = {"type": "function", "name": "now", "parameters": {"type": "object", "properties": {}}}
    r = client.responses.create(
        **GREEDY, input="What time is it?", tools=[now], tool_choice={"type": "function", "name": "now"},
        max_output_tokens=32)
    (call,) = r.output
    assert call.arguments == "{}"


def test_tool_stream(client):
    events = list(client.responses.create(
        **GREEDY, input="Weather in Rome?", tools=TOOLS, tool_choice="required", parallel_tool_calls=False,
        max_output_tokens=64, stream=True))
    final = check_events(events)
    check_calls(final, SCHEMAS)
    kinds = [e.type for e in events]
    assert "response.function_call_arguments.delta" in kinds
    assert "response.function_call_arguments.done" in kinds


class Add(BaseModel):
    """Adds two numbers."""
    a: int = Field(ge=0, le=9)
    b: int = Field(ge=0, le=9)


def test_tool_parse(client):
    r = client.responses.parse(
        **GREEDY, input="Add 1 and 2.", tools=[openai.pydantic_function_tool(Add)], tool_choice="required",
        parallel_tool_calls=False, max_output_tokens=48)
    assert isinstance(r.output[0].parsed_arguments, Add)


def test_tool_result_stateless(client):
    # What an agent without a store does: all items go back, with the output of the call.
    items = [{"role": "user", "content": "Weather in Rome?"}]
    r = client.responses.create(
        **GREEDY, input=items, tools=TOOLS, tool_choice={"type": "function", "name": "get_weather"},
        max_output_tokens=48, store=False)
    call = r.output[0]
    items += [i.model_dump(exclude_none=True) for i in r.output]
    items.append({"type": "function_call_output", "call_id": call.call_id, "output": "21 degrees"})
    r2 = client.responses.create(
        **GREEDY, input=items, tools=TOOLS, tool_choice="none", max_output_tokens=16, store=False)
    check_response(r2, r2.status)
    assert r2.usage.input_tokens > r.usage.input_tokens


def test_tool_result_stateful(client):
    r = client.responses.create(
        **GREEDY, input="Weather in Rome?", tools=TOOLS, tool_choice={"type": "function", "name": "get_weather"},
        max_output_tokens=48)
    r2 = client.responses.create(
        **GREEDY, previous_response_id=r.id, tools=TOOLS, tool_choice="none", max_output_tokens=16,
        input=[{"type": "function_call_output", "call_id": r.output[0].call_id, "output": "21 degrees"}])
    check_response(r2, r2.status)
    assert r2.previous_response_id == r.id


def test_unknown_tool_type_is_skipped(client):
    # Codex sends tool types that no local server knows; an error would end that client.
    r = client.responses.create(
        **GREEDY, input="Hi", tools=[{"type": "local_shell"}, tool("add")],
        tool_choice={"type": "function", "name": "add"}, max_output_tokens=48, store=False)
    check_calls(r, {"add"})


# ---- state ----

def test_previous_response(client):
    first = client.responses.create(**GREEDY, input="My name is Ada.", max_output_tokens=16)
    second = client.responses.create(
        **GREEDY, input="What is my name?", previous_response_id=first.id, max_output_tokens=16)
    assert second.previous_response_id == first.id
    alone = client.responses.input_tokens.count(model=MODEL, input="What is my name?")
    # The earlier turn is part of the prompt.
    assert second.usage.input_tokens > alone.input_tokens
    assert second.usage.input_tokens_details.cached_tokens >= 0


def test_instructions_are_not_inherited(client):
    long = "Always be very polite. " * 20
    first = client.responses.create(**GREEDY, input="Hi", instructions=long, max_output_tokens=16)
    second = client.responses.create(**GREEDY, input="Hi", previous_response_id=first.id, max_output_tokens=16)
    assert second.instructions is None
    # A template may put its own system line in; twenty polite sentences are more than that and one turn.
    assert second.usage.input_tokens < first.usage.input_tokens + first.usage.output_tokens


@pytest.mark.quick
def test_retrieve_and_delete(client):
    made = client.responses.create(**GREEDY, input="Hi", max_output_tokens=16)
    got = client.responses.retrieve(made.id)
    assert got.id == made.id and got.output_text == made.output_text and got.status == made.status
    assert got.usage.total_tokens == made.usage.total_tokens
    client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError) as e:
        client.responses.retrieve(made.id)
    check_openai_error(e.value, 404)


def test_streamed_response_is_stored(client):
    events = list(client.responses.create(**GREEDY, input="Hi", max_output_tokens=16, stream=True))
    assert client.responses.retrieve(events[-1].response.id).output_text == events[-1].response.output_text


def test_store_false(client):
    made = client.responses.create(**GREEDY, input="Hi", max_output_tokens=16, store=False)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)


def test_unknown_previous_response(client):
    with pytest.raises(openai.APIStatusError) as e:
        client.responses.create(model=MODEL, input="Hi", previous_response_id="resp_none", max_output_tokens=16)
    assert e.value.status_code in (400, 404)
    check_openai_error(e.value, e.value.status_code, "previous_response_id")


def test_input_items(client):
    made = client.responses.create(
        **GREEDY, max_output_tokens=16,
        input=[{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"},
               {"role": "user", "content": "three"}])
    down = client.responses.input_items.list(made.id).data
    up = client.responses.input_items.list(made.id, order="asc").data
    # Newest first is the default order.
    assert [i.id for i in down] == [i.id for i in reversed(up)]
    assert [i.role for i in up] == ["user", "assistant", "user"]
    assert up[0].content[0].type == "input_text" and up[0].content[0].text == "one"
    page = client.responses.input_items.list(made.id, order="asc", limit=2)
    assert len(page.data) == 2 and page.has_more is True
    assert len(list(page)) == 3


def test_input_tokens(client):
    body = dict(model=MODEL, input="How are you today?", instructions="Be brief.")
    count = client.responses.input_tokens.count(**body)
    assert count.object == "response.input_tokens"
    assert count.input_tokens == client.responses.create(**body, max_output_tokens=16).usage.input_tokens


def test_input_tokens_with_tools(client):
    body = dict(model=MODEL, input="Weather in Rome?", tools=TOOLS)
    count = client.responses.input_tokens.count(**body)
    made = client.responses.create(**body, tool_choice="none", max_output_tokens=16)
    assert count.input_tokens > client.responses.input_tokens.count(model=MODEL, input=body["input"]).input_tokens
    assert made.usage.input_tokens > 0


def wait(client, id, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        r = client.responses.retrieve(id)
        if r.status not in ("queued", "in_progress"):
            return r
        time.sleep(0.25)
    raise AssertionError("still running")


def test_background(client):
    made = client.responses.create(**GREEDY, input="Say hello.", background=True, max_output_tokens=16)
    assert made.background is True
    assert made.status in ("queued", "in_progress", "completed", "incomplete")
    r = wait(client, made.id)
    check_response(r, r.status)
    assert r.status in ("completed", "incomplete") and r.output_text


def test_background_cancel(client):
    made = client.responses.create(**GREEDY, input=COUNT, background=True, max_output_tokens=1024)
    cancelled = client.responses.cancel(made.id)
    assert cancelled.id == made.id
    assert wait(client, made.id, 20).status == "cancelled"
    # A second cancel changes nothing.
    assert client.responses.cancel(made.id).status == "cancelled"


def test_cancel_of_foreground_is_refused(client):
    made = client.responses.create(**GREEDY, input="Hi", max_output_tokens=16)
    with pytest.raises(openai.BadRequestError):
        client.responses.cancel(made.id)


# ---- conversations ----

def test_conversation_crud(client):
    conv = client.conversations.create(
        metadata={"topic": "x"}, items=[{"type": "message", "role": "user", "content": "Hello."}])
    assert conv.id.startswith("conv_") and conv.object == "conversation" and conv.metadata == {"topic": "x"}
    assert client.conversations.retrieve(conv.id).id == conv.id
    assert client.conversations.update(conv.id, metadata={"topic": "y"}).metadata == {"topic": "y"}
    added = client.conversations.items.create(
        conv.id, items=[{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "More."}]}])
    assert len(added.data) == 1
    items = client.conversations.items.list(conv.id, order="asc").data
    assert len(items) == 2
    assert client.conversations.items.retrieve(items[0].id, conversation_id=conv.id).id == items[0].id
    client.conversations.items.delete(items[0].id, conversation_id=conv.id)
    assert [i.id for i in client.conversations.items.list(conv.id)] == [items[1].id]
    gone = client.conversations.delete(conv.id)
    assert gone.deleted is True and gone.id == conv.id
    with pytest.raises(openai.NotFoundError):
        client.conversations.retrieve(conv.id)


def test_conversation_in_responses(client):
    conv = client.conversations.create()
    first = client.responses.create(**GREEDY, input="My name is Ada.", conversation=conv.id, max_output_tokens=16)
    assert first.conversation.id == conv.id
    roles = [i.role for i in client.conversations.items.list(conv.id, order="asc")]
    assert roles == ["user", "assistant"]
    second = client.responses.create(
        **GREEDY, input="What is my name?", conversation={"id": conv.id}, max_output_tokens=16)
    assert second.usage.input_tokens > first.usage.input_tokens
    assert len(list(client.conversations.items.list(conv.id))) == 4
    client.conversations.delete(conv.id)


async def test_conversation_async(aclient):
    conv = await aclient.conversations.create()
    assert (await aclient.conversations.delete(conv.id)).deleted


def test_conversation_excludes_previous(client):
    conv = client.conversations.create()
    made = client.responses.create(**GREEDY, input="Hi", max_output_tokens=16)
    with pytest.raises(openai.BadRequestError) as e:
        client.responses.create(
            model=MODEL, input="Hi", conversation=conv.id, previous_response_id=made.id, max_output_tokens=16)
    check_openai_error(e.value, 400)


def test_unknown_conversation(client):
    with pytest.raises(openai.APIStatusError) as e:
        client.responses.create(model=MODEL, input="Hi", conversation="conv_none", max_output_tokens=16)
    assert e.value.status_code in (400, 404)


# ---- errors ----

@pytest.mark.parametrize("fields,param", [
    ({"temperature": 3}, "temperature"),
    ({"extra_body": {"frobnicate": 1}}, "frobnicate"),
    ({"tool_choice": "required"}, "tool_choice"),
    ({"tools": TOOLS, "tool_choice": {"type": "function", "name": "nothing"}}, "tool_choice"),
    ({"input": [{"type": "smoke_signal"}]}, "input"),
    ({"text": {"format": {"type": "poem"}}}, "text"),
])
def test_bad_field(client, fields, param):
    with pytest.raises(openai.BadRequestError) as e:
        client.responses.create(**{"model": MODEL, "input": "Hi", "max_output_tokens": 16, **fields})
    check_openai_error(e.value, 400, param)


def test_unknown_model(client):
    with pytest.raises(openai.NotFoundError) as e:
        client.responses.create(model=NO_MODEL, input="Hi")
    check_openai_error(e.value, 404, "model", "model_not_found")


def test_context_length(client):
    with pytest.raises(openai.BadRequestError) as e:
        client.responses.create(model=MODEL, input=too_long(), max_output_tokens=16)
    check_openai_error(e.value, 400, code="context_length_exceeded")
