"""The four routes that `schemas` asks: what is sent, and how an answer, a stream and a refusal are read and checked.

`Faults` collects what breaks the protocol; what cannot be read at all raises."""

import decimal
import json
import re
import urllib.parse

# A pointer is `/a/b`, `#/a` or `#` alone: at the start of the message, or after a space, a quote or a bracket.
POINTER = re.compile(r"(?:^|[\s'\"`(\[:=])(?:#?/[^\s/]|#(?:[\s'\"`).,:;\]]|$))")


def unique_members(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name twice in an object")
    return found


def no_constant(name):
    raise ValueError(f"{name} is not JSON")


def parse(text):
    return json.loads(text, parse_float=decimal.Decimal, parse_constant=no_constant, object_pairs_hook=unique_members)


class Faults(list):
    """Collects the faults of protocol in an answer."""

    def need(self, condition, text):
        if not condition and text not in self:
            self.append(text)


def events_of(raw, faults):
    """(event, data) of a stream of server-sent events."""
    text = raw.decode("utf-8").replace("\r\n", "\n")
    faults.need(text.endswith("\n\n"), "the stream does not end with an empty line")
    for block in text.split("\n\n"):
        fields = [line.partition(":") for line in block.split("\n") if line and not line.startswith(":")]
        faults.need(all(name in ("event", "data", "id", "retry") for name, _, _ in fields), "unknown line in the stream")
        data = "\n".join(value.removeprefix(" ") for name, _, value in fields if name == "data")
        if data:
            yield next((value.strip() for name, _, value in fields if name == "event"), None), data


def chat_stream(raw, faults):
    """The chunks of chat put together to the answer that would have come without a stream."""
    data = [text for _, text in events_of(raw, faults)]
    faults.need(data and data[-1] == "[DONE]" and data.count("[DONE]") == 1, "[DONE] is not last, or not once")
    chunks = [parse(text) for text in data if text != "[DONE]"]
    for chunk in chunks:
        if chunk.get("error"):
            raise RuntimeError(f"error in the stream: {json.dumps(chunk['error'])[:300]}")
        faults.need(chunk.get("object") == "chat.completion.chunk", "chunk: object")
        faults.need(all(chunk.get(key) is not None and chunk[key] == chunks[0].get(key) for key in ("id", "created", "model")),
                    "chunk: id, created or model is missing or changes")
        faults.need("usage" in chunk, "chunk: no key usage despite include_usage")
    message, calls, finish, role = {"role": None, "content": None, "refusal": None}, [], None, False
    for position, chunk in enumerate(chunks):
        if not chunk["choices"]:
            faults.need(position == len(chunks) - 1 and finish and chunk.get("usage"), "chunk without choices is not usage, last")
            continue
        faults.need(chunk.get("usage") is None, "chunk: usage before the last")
        choice, = chunk["choices"]
        delta = choice["delta"]
        faults.need(choice.get("index") == 0 and "finish_reason" in choice, "chunk: index or finish_reason is missing")
        faults.need(finish is None, "chunk after that with finish_reason")
        faults.need(("role" in delta) != role and (role or position == 0), "role is not in the first delta alone")
        faults.need(role or "content" in delta, "first delta: no content")
        role, message["role"] = True, delta.get("role", message["role"])
        for key in ("content", "refusal"):
            if delta.get(key) is not None:
                message[key] = (message[key] or "") + delta[key]
        for part in delta.get("tool_calls") or []:
            index = part.get("index")
            if index == len(calls):
                faults.need(part.get("id") and part.get("type") == "function" and part["function"].get("name"), "first tool delta: id, type or name")
                calls.append({"id": part.get("id"), "type": part.get("type"), "function": {"name": part["function"].get("name"), "arguments": ""}})
            else:
                faults.need(calls and index == len(calls) - 1, "tool delta: index")
                faults.need(not {"id", "type"} & part.keys() and "name" not in part["function"], "tool delta: id, type or name again")
            faults.need(isinstance(part["function"].get("arguments"), str), "tool delta: arguments are no text")
            calls[-1]["function"]["arguments"] += part["function"].get("arguments") or ""
        if choice.get("finish_reason"):
            finish = choice["finish_reason"]
            faults.need(not delta, "the delta with finish_reason is not empty")
    faults.need(chunks and not chunks[-1]["choices"], "no usage chunk at the end")
    if calls:
        message["tool_calls"] = calls
    return {**chunks[-1], "object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def chat(reply, faults, is_call, limit):
    faults.need(reply.get("object") == "chat.completion" and reply.get("id") and reply.get("created") and reply.get("model"), "object, id, created or model")
    usage = reply.get("usage") or {}
    faults.need(usage.get("prompt_tokens", 0) > 0 and usage["prompt_tokens"] + usage.get("completion_tokens", 0) == usage.get("total_tokens"), "usage")
    faults.need(usage.get("completion_tokens", 0) <= limit, "more completion_tokens than max_tokens")
    choice, = reply["choices"]
    message, calls = choice["message"], choice["message"].get("tool_calls") or []
    faults.need(choice.get("index") == 0 and message.get("role") == "assistant", "choice: index or role")
    faults.need({"content", "refusal"} <= message.keys(), "message without content or refusal")
    if message.get("refusal"):
        raise RuntimeError(f"refusal of the model: {message['refusal'][:200]}")
    if not is_call:
        faults.need(not calls, "calls without tools")
        return choice["finish_reason"], message["content"] or "", usage.get("completion_tokens")
    faults.need(len(calls) == 1 or not calls and choice["finish_reason"] == "length", "not exactly one call")
    faults.need(not message["content"], "content beside a forced call")
    for call in calls:
        faults.need(call.get("id") and call.get("type") == "function" and call["function"]["name"] == "give", "call: id, type or name")
    return choice["finish_reason"], calls[0]["function"]["arguments"] if calls else "", usage.get("completion_tokens")


def typed_events(raw, faults):
    found = []
    for name, data in events_of(raw, faults):
        event = parse(data)
        faults.need(name == event.get("type"), "event line differs from type")
        if name == "error" or event.get("error"):
            raise RuntimeError(f"error in the stream: {data[:300]}")
        found.append(event)
    return found


RESPONSE_ORDER = re.compile(r"created in_progress( output_item\.added( content_part\.added( output_text\.delta)* output_text\.done "
                            r"content_part\.done| reasoning\w*\.\w+)* output_item\.done)* (completed|incomplete|failed)")


def responses_stream(raw, faults):
    events = typed_events(raw, faults)
    order = " ".join(event["type"].removeprefix("response.") for event in events)
    if not RESPONSE_ORDER.fullmatch(order):
        faults.append("order of events: " + re.sub(r"( output_text\.delta)+", r"\1…", order)[:300])
    numbers = [event.get("sequence_number", -1) for event in events]
    faults.need(numbers == sorted(set(numbers)) and numbers[0] >= 0, "sequence_number does not increase")
    last, texts, shown = events[-1]["response"], {}, []
    for event in events:
        kind = event["type"].removeprefix("response.")
        if "response" in event:
            response = event["response"]
            faults.need(response.get("object") == "response" and response.get("created_at") and response.get("id") == last["id"], f"{kind}: not a full response")
            if kind in ("created", "in_progress"):
                faults.need(response.get("status") in ("in_progress", "queued") and response.get("output") == [], f"{kind}: status or output")
        if kind.startswith("output_item."):
            faults.need(event.get("output_index") == len(shown), f"{kind}: output_index")
        if kind == "output_item.done":
            shown.append(event["item"])
        if kind.startswith(("content_part.", "output_text.")):
            faults.need(event.get("item_id") and event.get("output_index") == len(shown) and "content_index" in event, f"{kind}: item_id, output_index or content_index")
            key = event.get("item_id"), event.get("content_index")
            if kind == "output_text.delta":
                texts[key] = texts.get(key, "") + event["delta"]
            elif kind.endswith(".done"):
                faults.need((event["part"]["text"] if "part" in event else event["text"]) == texts.get(key, ""), f"{kind}: text differs from the deltas")
    faults.need(shown == last.get("output"), "output of the last event differs from the items shown")
    faults.need(last.get("status") == events[-1]["type"].removeprefix("response."), "status differs from the last event")
    parts = {(item["id"], index): part["text"] for item in shown if item["type"] == "message" for index, part in enumerate(item["content"]) if part.get("text")}
    faults.need(parts == {key: text for key, text in texts.items() if text}, "text of the items differs from the deltas")
    return last


def responses(reply, faults, is_call, limit):
    faults.need(reply.get("object") == "response" and reply.get("id") and reply.get("created_at") and reply.get("model"), "object, id, created_at or model")
    usage = reply.get("usage") or {}
    faults.need(usage.get("input_tokens", 0) > 0 and usage["input_tokens"] + usage.get("output_tokens", 0) == usage.get("total_tokens"), "usage")
    faults.need(usage.get("output_tokens", 0) <= limit, "more output_tokens than max_output_tokens")
    if reply["status"] == "incomplete":
        faults.need((reply.get("incomplete_details") or {}).get("reason") == "max_output_tokens", "incomplete_details")
    items = [item for item in reply["output"] if item["type"] == "message"]
    faults.need(len(items) == 1 or not items and reply["status"] == "incomplete", "not exactly one message")
    for item in items:
        faults.need(item.get("id") and item.get("role") == "assistant" and item.get("status"), "item: id, role or status")
        for part in item["content"]:
            faults.need(part["type"] == "output_text" and isinstance(part.get("annotations"), list), "part: type or annotations")
    return reply["status"], "".join(part.get("text", "") for item in items for part in item["content"]), usage.get("output_tokens")


MESSAGE_ORDER = re.compile(r"message_start( content_block_start( content_block_delta)* content_block_stop)* message_delta message_stop")


def messages_stream(raw, faults):
    events = [event for event in typed_events(raw, faults) if event["type"] != "ping"]
    order = " ".join(event["type"] for event in events)
    if not MESSAGE_ORDER.fullmatch(order):
        faults.append("order of events: " + re.sub(r"( content_block_delta)+", r"\1…", order)[:300])
    reply = events[0]["message"]
    faults.need(reply.get("content") == [] and reply.get("stop_reason", 0) is None, "message_start: content or stop_reason")
    blocks = []
    for event in events:
        if event["type"] == "content_block_start":
            blocks.append({**event["content_block"], "text": event["content_block"].get("text") or ""})
            faults.need(blocks[-1].get("input", {}) == {}, "content_block_start: input is not empty")
        if event["type"].startswith("content_block"):
            faults.need(event.get("index") == len(blocks) - 1, "content block: index")
        if event["type"] == "content_block_delta":
            kind = {"tool_use": "input_json_delta", "text": "text_delta"}.get(blocks[-1]["type"], event["delta"]["type"])
            faults.need(event["delta"]["type"] == kind, "content_block_delta: type")
            blocks[-1]["text"] += event["delta"].get("partial_json") or event["delta"].get("text") or ""
        if event["type"] == "message_delta":
            faults.need("stop_sequence" in event["delta"], "message_delta: no stop_sequence")
            reply = {**reply, **event["delta"], "usage": {**reply["usage"], **event["usage"]}}
    return {**reply, "content": blocks}


def messages(reply, faults, is_call, limit):
    faults.need(reply.get("type") == "message" and reply.get("role") == "assistant" and reply.get("id") and reply.get("model"), "type, role, id or model")
    faults.need("stop_sequence" in reply, "no stop_sequence")
    usage = reply.get("usage") or {}
    faults.need(usage.get("input_tokens", -1) >= 0 and 0 <= usage.get("output_tokens", -1) <= limit, "usage")
    calls = [block for block in reply["content"] if block["type"] == "tool_use"]
    faults.need(len(calls) == 1 or not calls and reply["stop_reason"] == "max_tokens", "not exactly one tool_use")
    faults.need(all(call.get("id") and call.get("name") == "give" for call in calls), "tool_use: id or name")
    # A stream has the text of the input, where nothing stands for {}; an answer in one piece has the input itself.
    texts = [call["text"] or "{}" if "text" in call else call["input"] for call in calls]
    faults.need(all("text" in call or isinstance(call["input"], dict) for call in calls), "tool_use: input is no object")
    return reply["stop_reason"], texts[0] if texts else "", usage.get("output_tokens")


ROUTES = {"chat": ("/chat/completions", chat, chat_stream), "tools": ("/chat/completions", chat, chat_stream),
          "responses": ("/responses", responses, responses_stream), "messages": ("/messages", messages, messages_stream)}


def body_of(options, route, schema, seed, stream):
    ask = "Give one example." if seed == 0 else f"Give one example, number {seed + 1}."
    body = {"model": options.model, "temperature": options.temperature, "stream": stream}
    if route == "responses":
        return {**body, "input": ask, "max_output_tokens": max(16, options.max_tokens), "store": False,
                "text": {"format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}}}
    body |= {"messages": [{"role": "user", "content": ask}], "max_tokens": options.max_tokens}
    if route == "messages":
        tool = {"name": "give", "description": "Gives an example.", "input_schema": schema, **({} if options.plain_messages else {"strict": True})}
        return {**body, "tools": [tool], "tool_choice": {"type": "tool", "name": "give"}}
    body |= {"seed": seed, **({"stream_options": {"include_usage": True}} if stream else {})}
    if route == "chat":
        return {**body, "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}}
    tool = {"type": "function", "function": {"name": "give", "description": "Gives an example.", "parameters": schema, "strict": True}}
    return {**body, "tools": [tool], "tool_choice": {"type": "function", "function": {"name": "give"}}}


def refusal(route, status, raw, faults):
    """(class, reason, whether it has a pointer) of an answer that is not 200."""
    try:
        reply = parse(raw)
        error = reply["error"]
        message, param, code = error["message"], error.get("param"), error.get("code")
    except (ValueError, KeyError, TypeError):
        return "other", f"HTTP {status} without an error object: {raw[:200]!r}", False
    if route == "messages":
        faults.need(reply.get("type") == "error" and error.get("type"), "error: type")
    else:
        faults.need({"message", "type", "param", "code"} <= error.keys(), "error: a key of the four is missing")
    reason = f"HTTP {status} param={param} code={code}: {message}"[:400]
    if status == 400 and (code == "context_length_exceeded" or "prompt is too long" in message or "maximum context length" in message):
        return "context", reason, False
    if status != 400 or param and not re.match(r"response_format|text|tool|input_schema|json_schema|/|#", param):
        return "other", reason, False
    pointer = bool(POINTER.search(message) or POINTER.search(param or ""))
    named = pointer or param or route == "messages" and re.search(r"tools[.\[]|input_schema", message)
    return ("refused" if named else "refused_without_pointer"), reason, pointer


def takes_object(schema):
    if isinstance(schema, dict) and isinstance(schema.get("$ref"), str) and schema["$ref"].startswith("#/"):
        target = schema
        for key in urllib.parse.unquote(schema["$ref"][2:]).split("/"):
            target = target.get(key.replace("~1", "/").replace("~0", "~"), {}) if isinstance(target, dict) else {}
        return isinstance(target, dict) and target.get("type") == "object"
    return isinstance(schema, dict) and (schema.get("type") == "object" or "type" not in schema and ("properties" in schema or not schema))
