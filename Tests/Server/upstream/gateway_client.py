"""The client side of gateway_test: one HTTP exchange, and a judgement of what the client saw."""
import http.client, json, re, time, urllib.parse
from types import SimpleNamespace as Box

HANG, SECRET = 90, "client-secret-4711"
SENTENCE = "Ein Füchslein 🦊 läuft über 漢字 und naïve cafés, then it stops here. END"
options = Box(gateway=None, model=None, key=None)  # set by gateway_test


def record(properties):
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


SCHEMA = record({"city": {"type": "string"}, "population": {"type": "integer", "minimum": 1000},
                 "tags": {"type": "array", "items": {"enum": ["red", "blue"]}, "minItems": 1, "maxItems": 3},
                 "mayor": record({"name": {"type": "string"}, "elected": {"type": "boolean"}})})
TOOLS = {"get_city": record({"city": {"type": "string"}, "days": {"type": "integer"}}),
         "get_zone": record({"zone": {"enum": ["utc", "local"]}})}
FORMS = [("chat", kind, stream) for kind in ("text", "schema", "tools") for stream in (False, True)] + [
    ("responses", "schema", False), ("responses", "schema", True)]


# HTTP

def call(base, path, body=None, method=None, limit=HANG, stop_after=None):
    """One exchange. `events` has the data of an SSE stream; `fault` says hang or broken connection."""
    url, start = urllib.parse.urlsplit(base), time.monotonic()
    reply = Box(status=0, headers={}, text="", events=[], fault=None, seconds=0)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=limit)
    headers = {"Authorization": "Bearer " + (options.key or SECRET), "x-api-key": options.key or SECRET,
               "Content-Type": "application/json", "anthropic-version": "2023-06-01"}
    try:
        connection.request(method or ("POST" if body is not None else "GET"), path,
                           json.dumps(body) if body is not None else None, headers)
        response = connection.getresponse()
        reply.status, reply.headers = response.status, {k.lower(): v for k, v in response.getheaders()}
        if "text/event-stream" in reply.headers.get("content-type", ""):
            while line := response.readline(30_000_000):
                if time.monotonic() - start > limit:
                    raise TimeoutError
                if line.startswith(b"data:"):
                    reply.events.append(line[5:].strip().decode())
                if stop_after and len(reply.events) >= stop_after:
                    break
        else:
            reply.text = response.read(30_000_000).decode()
    except TimeoutError:
        reply.fault = f"hang: no end within {limit} s"
    except (OSError, http.client.HTTPException, UnicodeDecodeError) as fault:
        reply.fault = f"broken connection or encoding: {fault!r:.80}"
    connection.close()
    reply.seconds = time.monotonic() - start
    return reply


def loads(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


def request(form, text):
    api, kind, stream = form
    body = {"model": options.model, "stream": stream}
    schema = {"name": "city", "strict": True, "schema": SCHEMA}
    if api == "responses":
        return {**body, "input": text, "store": False, "text": {"format": {"type": "json_schema", **schema}}}
    body["messages"] = text if isinstance(text, list) else [{"role": "user", "content": text}]
    if stream:
        body["stream_options"] = {"include_usage": True}
    if kind == "schema":
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if kind == "tools":
        body |= {"tool_choice": "required", "tools": [{"type": "function", "function": {
            "name": name, "parameters": schema, "strict": True}} for name, schema in TOOLS.items()]}
    return body


def send(form, text, base=None, **how):
    path = "/v1/responses" if form[0] == "responses" else "/v1/chat/completions"
    return judge(form, call(base or options.gateway, path, request(form, text), **how))


# What a client saw: ok, http (an error status), event (an error within a stream; `sent` = text was out) or bad

def judge(form, reply):
    seen = Box(kind="bad", why=None, status=reply.status, error=None, sent=False, who=None, seconds=reply.seconds,
               headers=reply.headers)
    try:
        seen.why = judge_reply(form, reply, seen)
    except (KeyError, TypeError, IndexError, AttributeError) as fault:
        seen.why = f"unexpected shape: {fault!r:.80}"
    if seen.why:
        seen.kind = "bad"
    return seen


def judge_reply(form, reply, seen):
    api, kind, stream = form
    if reply.fault:
        return reply.fault
    if reply.status != 200:
        seen.kind, seen.error = "http", (loads(reply.text) or {}).get("error")
        return error_fault(seen.error) or (None if reply.status >= 400 else f"status {reply.status}")
    if stream:
        if not reply.events:
            return "200 without any event"
        return (responses_stream if api == "responses" else chat_stream)(kind, reply.events, seen)
    value = loads(reply.text)
    if value is None:
        return f"200 with a body that is not JSON: {reply.text[:60]!r}"
    seen.kind = "ok"
    if api == "responses":
        return response_fault(value, seen)
    choice = value["choices"][0]
    calls = [call["function"] | {"id": call.get("id")} for call in choice["message"].get("tool_calls") or []]
    return answer_fault(kind, choice["message"].get("content") or "", calls, choice["finish_reason"], seen) or \
        usage_fault(value.get("usage"))


def error_fault(error):
    if not isinstance(error, dict) or {"message", "type", "param", "code"} - error.keys():
        return f"error object without message, type, param and code: {error!r:.80}"
    if not error["message"] or not isinstance(error["type"], str) or not isinstance(error["code"], (str, type(None))):
        return f"error members of a wrong type: {error!r:.120}"
    return "an HTML page within the error message" if "<html" in error["message"].lower() else None


def usage_fault(usage, first="prompt_tokens", second="completion_tokens"):
    counts = [(usage or {}).get(name) for name in (first, second, "total_tokens")]
    if not all(isinstance(count, int) and count > 0 for count in counts) or counts[0] + counts[1] != counts[2]:
        return f"usage missing or wrong: {usage!r:.100}"


def record_fault(text, schema):
    """An own check of the few keywords that this test uses: it must not share faults with any schema library."""
    def visit(value, schema):
        kind = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}.get(schema.get("type"))
        if kind and type(value) is not kind or "enum" in schema and value not in schema["enum"]:
            return False
        if kind is dict:
            return value.keys() == schema["properties"].keys() and all(
                visit(value[name], part) for name, part in schema["properties"].items())
        if kind is list:
            return schema["minItems"] <= len(value) <= schema["maxItems"] and all(
                visit(item, schema["items"]) for item in value)
        return kind is not int or value >= schema.get("minimum", value)
    value = loads(text)
    return None if value is not None and visit(value, schema) else f"invalid document {text[:100]!r}"


def answer_fault(kind, content, calls, finish, seen):
    if kind == "tools":
        ids = {call["id"] for call in calls}
        if finish != "tool_calls" or not calls:
            return f"finish {finish!r} with {len(calls)} calls, content {content[:40]!r}"
        if len(calls) != 2 or len(ids) != 2 or not all(ids):
            return f"two calls with own ids expected, got {[(call['name'], call['id']) for call in calls]}"
        if {call["name"] for call in calls} - TOOLS.keys():
            return f"a tool that was not offered: {[call['name'] for call in calls]}"
        faults = [record_fault(call["arguments"], TOOLS[call["name"]]) for call in calls]
        return next(filter(None, faults), None)
    if finish != "stop" or calls:
        return f"finish {finish!r} with {len(calls)} calls, content {content[:60]!r}"
    if kind == "schema":
        return record_fault(content, SCHEMA)
    found = re.fullmatch(r"\[([AB])\] (.*)", content)
    if not found or found[2] != SENTENCE:
        return f"stop with a wrong or cut text {content[:60]!r}...{content[-20:]!r}"
    seen.who = found[1]


def chat_stream(kind, events, seen):
    content, calls, finish, usage = "", {}, None, None
    for place, text in enumerate(events):
        if text == "[DONE]":
            break
        value = loads(text)
        if not isinstance(value, dict):
            return f"an event that is not a JSON object: {text[:60]!r}"
        if "error" in value and value["error"]:
            seen.kind, seen.error, done = "event", value["error"], events[place + 1:]
            return error_fault(value["error"]) or (
                f"finish {finish!r} before the error" if finish else None if done == ["[DONE]"] else
                f"after the error event: {done!r:.60} instead of [DONE]")
        usage = value.get("usage") or usage
        for choice in value["choices"]:
            delta = choice["delta"]
            if finish and (delta.get("content") or delta.get("tool_calls")):
                return "text after finish_reason"
            finish = choice["finish_reason"] or finish
            content += delta.get("content") or ""
            for part in delta.get("tool_calls") or []:
                function = part.get("function", {})
                if part["index"] not in calls:
                    if part["index"] != len(calls) or not part.get("id") or not function.get("name"):
                        return f"first delta of call {len(calls)} is {part!r:.100}"
                    calls[part["index"]] = {"id": part["id"], "name": function["name"], "arguments": ""}
                elif part.get("id") or function.get("name"):
                    return f"id or name sent twice: {part!r:.100}"
                calls[part["index"]]["arguments"] += function.get("arguments") or ""
            seen.sent = seen.sent or bool(content or calls)
    else:
        return f"stream ended without [DONE] and without error (finish {finish!r}, {len(content)} characters)"
    seen.kind = "ok"
    return answer_fault(kind, content, list(calls.values()), finish, seen) or usage_fault(usage)


def response_text(value):
    return "".join(part.get("text", "") for item in value["output"] if item["type"] == "message"
                   for part in item["content"])


def response_fault(value, seen):
    if value["status"] == "failed" and (value.get("error") or {}).get("message"):
        seen.kind, seen.status, seen.error = "http", 500, value["error"]  # a typed failure in the object itself
        return None
    finish = "stop" if value["status"] == "completed" else value["status"]
    return answer_fault("schema", response_text(value), [], finish, seen) or \
        usage_fault(value["usage"], "input_tokens", "output_tokens")


def responses_stream(kind, events, seen):
    values = [loads(text) for text in events if text != "[DONE]"]
    if not all(isinstance(value, dict) and "type" in value for value in values):
        return "an event without type"
    text = "".join(value["delta"] for value in values if value["type"] == "response.output_text.delta")
    seen.sent, last = bool(text), values[-1]
    if last["type"] in ("error", "response.failed"):
        seen.kind, seen.error = "event", last.get("response", last).get("error") or last
        return None if seen.error.get("message") else f"no message in {last!r:.100}"
    if last["type"] != "response.completed":
        return f"last event is {last['type']}"
    seen.kind = "ok"
    fault = response_fault(last["response"], seen)
    return fault or (None if text == response_text(last["response"]) else "deltas differ from the completed text")
