#!/usr/bin/env python3
"""Checks an MCP server with the official SDK's client, jsonschema and raw requests.

  client_check.py --era modern|legacy|both  (--stdio "COMMAND ARG ..." | --http URL)  [--checks checks.json]
                  [--strict] [--no-raw] [--bearer TOKEN] [--env K=V ...] [--timeout 10] [--log FILE]

One line a check: PASS, FAIL, NOTE (a deviation that is tolerated; --strict makes it FAIL), SKIP. Exit 1 if any failed.
checks.json: a list of calls, or {"tools": [names that must be listed], "checks": [...], "resources": [...], "prompts": [...]}:
  {"tool": "add", "arguments": {"a": 1, "b": 2}, "expect": {...}, "name": "label", "era": "modern", "transport": "stdio"}
  expect: isError (default false) | error: -32602 (a JSON-RPC error) | structured: {partial} | textContains: "..." or [...]
          contentTypes: ["image", "text"] | textLength: n | progress: at least n notifications | listChanged: true
          maxSeconds: n | noStructured: true
  more:   "elicit": {"action": "accept", "content": {...}}   answers elicitations (decline, cancel too)
          "cancelAfter": 0.3                                  cancels; expects the client and server to go on at once
          "progress": true                                    asks for progress
  resources: {"uri": "note://readme", "expect": {"textContains": "...", "mimeType": "...", "error": -32602}}
  prompts:   {"name": "greet", "arguments": {...}, "expect": {"textContains": "...", "error": -32602}}
Raw checks are MUST (FAIL) or SHOULD (NOTE) of the specification; where the SDK's own server deviates it is a NOTE."""
import argparse
import json
import logging
import os
import re
import shlex
import sys
import time
import warnings

import anyio
import jsonschema
import mcp_types as types
from jsonschema.validators import validator_for
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import methods
from referencing import Registry

import raw
from raw import INITIALIZE, INITIALIZED, LEGACY, MODERN, P, Http, Stdio, meta, request

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

ap = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
ap.add_argument("--stdio")
ap.add_argument("--http")
ap.add_argument("--era", choices=["modern", "legacy", "both"], default="both")
ap.add_argument("--checks")
ap.add_argument("--strict", action="store_true")
ap.add_argument("--no-raw", action="store_true")
ap.add_argument("--bearer")
ap.add_argument("--env", action="append", default=[])
ap.add_argument("--timeout", type=float, default=10)
ap.add_argument("--log", default=os.devnull, help="where the server's stderr goes")
A = ap.parse_args()
if bool(A.stdio) == bool(A.http):
    ap.error("give --stdio or --http")
TRANSPORT = "stdio" if A.stdio else "http"
COMMAND = shlex.split(A.stdio) if A.stdio else None
ENV = dict(e.split("=", 1) for e in A.env)
SPEC = json.load(open(A.checks)) if A.checks else []
if isinstance(SPEC, list):
    SPEC = {"checks": SPEC}
count = {"PASS": 0, "FAIL": 0, "NOTE": 0, "SKIP": 0}
era = ""


def say(kind, name, detail=""):
    if kind == "NOTE" and A.strict:
        kind = "FAIL"
    count[kind] += 1
    detail = re.sub(r"\s+", " ", str(detail))[:260]
    print(f"{kind} [{era} {TRANSPORT}] {name}" + (f": {detail}" if detail else ""), flush=True)


def check(ok, name, detail="", soft=False):
    say("PASS" if ok else "NOTE" if soft else "FAIL", name, "" if ok is True and not detail else detail)
    return bool(ok)


def flat(e):
    while isinstance(e, BaseExceptionGroup):
        e = e.exceptions[0]
    return f"MCPError {e.code} {e.message}" if isinstance(e, MCPError) else f"{type(e).__name__} {e}"


def partial(want, got):
    if isinstance(want, dict):
        return isinstance(got, dict) and all(k in got and partial(v, got[k]) for k, v in want.items())
    if isinstance(want, list):
        return isinstance(got, list) and len(want) == len(got) and all(map(partial, want, got))
    if isinstance(want, bool) or isinstance(got, bool):
        return want is got
    return want == got


def walk(node):
    yield node
    for v in (node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()):
        yield from walk(v)


def schema_fault(schema, is_input):
    if not isinstance(schema, dict):
        return f"not an object: {schema!r}"
    if is_input and schema.get("type") != "object":
        return f'type is {schema.get("type")!r}, not "object"'
    cls = validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        cls.check_schema(schema)
    except jsonschema.SchemaError as e:
        return f"{e.message} at {list(e.path)}"
    for n in walk(schema):
        if isinstance(n, dict) and isinstance(r := n.get("$ref"), str) and not r.startswith("#"):
            return f"$ref to {r}"
    try:
        list(cls(schema, registry=Registry()).iter_errors({}))
    except Exception as e:
        return flat(e)
    unknown = [r for r in schema.get("required", []) if r not in schema.get("properties", {})] if is_input else []
    return f"required but not in properties: {unknown}" if unknown else None


# ---------------------------------------------------------------- with the SDK's client

class Hub:
    """What the client's callbacks see and answer."""

    def __init__(self):
        self.elicit, self.asked, self.notifications = None, [], []

    async def on_elicit(self, ctx, params):
        self.asked.append(params)
        a = self.elicit or {"action": "decline"}
        return types.ElicitResult(**a)

    async def on_message(self, message):
        self.notifications.append(message)


def target():
    if A.stdio:
        return stdio_client(StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env={**os.environ, **ENV}), errlog=open(A.log, "a"))
    headers = {"Authorization": f"Bearer {A.bearer}"} if A.bearer else None
    return streamable_http_client(A.http, http_client=create_mcp_http_client(headers=headers))


def client(hub):
    return Client(target(), mode="auto" if era == "modern" else "legacy", read_timeout_seconds=A.timeout, cache=None,
                  elicitation_callback=hub.on_elicit, message_handler=hub.on_message,
                  client_info=types.Implementation(name="client-check", version="1"))


async def all_pages(fetch, field):
    items, cursor, seen = [], None, set()
    for _ in range(300):
        page = await fetch(cursor=cursor)
        items += getattr(page, field)
        cursor = page.next_cursor
        if cursor is None:
            return items
        if cursor in seen:
            raise RuntimeError(f"cursor {cursor!r} came twice")
        seen.add(cursor)
    raise RuntimeError("more than 300 pages")


def text_of(content):
    return "\n".join(c.text for c in content if getattr(c, "type", "") == "text")


def judge(name, expect, result, extra=""):
    faults = []
    if result.is_error != expect.get("isError", False):
        faults.append(f"isError is {result.is_error}: {text_of(result.content)[:120]}")
    if "structured" in expect and not partial(expect["structured"], result.structured_content):
        faults.append(f"structuredContent {result.structured_content!r}")
    if expect.get("noStructured") and result.structured_content is not None:
        faults.append("structuredContent present")
    text = text_of(result.content)
    for needle in [expect["textContains"]] if isinstance(expect.get("textContains"), str) else expect.get("textContains", []):
        if needle not in text:
            faults.append(f"text lacks {needle!r}: {text[:100]!r}")
    if "contentTypes" in expect and [c.type for c in result.content] != expect["contentTypes"]:
        faults.append(f"content {[c.type for c in result.content]}")
    if "textLength" in expect and len(text) != expect["textLength"]:
        faults.append(f"text of {len(text)} characters")
    if result.structured_content is not None and not text:
        faults.append("structuredContent without a text copy")
    check(not faults, name, "; ".join(faults) or extra)


async def one_check(c, hub, spec):
    name = "call " + spec.get("name", spec["tool"])
    expect, args = spec.get("expect", {}), spec.get("arguments", {})
    hub.elicit, hub.asked, seen = spec.get("elicit"), [], []
    started = time.monotonic()

    async def progress(p, total, message):
        seen.append((p, total, message))
    callback = progress if spec.get("progress") or "progress" in expect else None
    if "cancelAfter" in spec:
        with anyio.move_on_after(spec["cancelAfter"]) as scope:
            await c.call_tool(spec["tool"], args, progress_callback=callback)
        took = time.monotonic() - started
        check(scope.cancelled_caught, name + " cancelled", f"after {took:.2f} s" + ("" if scope.cancelled_caught else ", it had ended before"))
        t = time.monotonic()
        await c.list_tools()
        check(True, name + ": the server answers after the cancel", f"{time.monotonic() - t:.2f} s")
        return
    try:
        if expect.get("listChanged"):
            changed = anyio.Event()
            if era == "modern":
                async with c.listen(tools_list_changed=True) as sub:
                    check(sub.honored.tools_list_changed, name + ": listen acknowledged", sub.honored.model_dump(exclude_none=True))
                    result = await c.call_tool(spec["tool"], args)
                    with anyio.move_on_after(3):
                        async for _ in sub:
                            changed.set()
                            break
            else:
                result = await c.call_tool(spec["tool"], args)
                for _ in range(30):
                    if any(isinstance(n, types.ToolListChangedNotification) for n in hub.notifications):
                        changed.set()
                        break
                    await anyio.sleep(0.1)
            check(changed.is_set(), name + ": tools/list_changed arrived")
        else:
            result = await c.call_tool(spec["tool"], args, progress_callback=callback)
    except MCPError as e:
        if "error" in expect:
            check(e.code == expect["error"], name, f"MCPError {e.code} {e.message}")
        else:
            say("FAIL", name, flat(e))
        return
    except Exception as e:
        say("FAIL", name, flat(e))
        return
    took = time.monotonic() - started
    if "error" in expect:
        say("FAIL", name, f"a result where error {expect['error']} was expected: {text_of(result.content)[:100]}")
        return
    judge(name, expect, result)
    if "progress" in expect:
        rising = all(a[0] < b[0] for a, b in zip(seen, seen[1:]))
        check(len(seen) >= expect["progress"] and rising, name + ": progress", f"{len(seen)} notifications" + ("" if rising else ", not rising"))
    if "elicit" in spec:
        ok = len(hub.asked) >= 1 and isinstance(hub.asked[0], types.ElicitRequestFormParams | types.ElicitRequestURLParams)
        check(ok, name + ": the server asked", hub.asked[0].message if hub.asked else "no elicitation came")
        if ok and hasattr(hub.asked[0], "requested_schema"):
            fault = schema_fault(hub.asked[0].requested_schema if isinstance(hub.asked[0].requested_schema, dict) else hub.asked[0].requested_schema.model_dump(by_alias=True, exclude_none=True), True)
            check(fault is None, name + ": requestedSchema is valid", fault or "")
    if "maxSeconds" in expect:
        check(took <= expect["maxSeconds"], name + ": time", f"{took:.2f} s")


async def error_checks(c, tools):
    try:
        r = await c.call_tool("no_such_tool_x", {})
        check(False, "unknown tool gives -32602", f"a result with isError {r.is_error}: {text_of(r.content)[:80]}", soft=r.is_error)
    except MCPError as e:
        check(e.code == -32602, "unknown tool gives -32602", f"{e.code} {e.message}")
    named = {s["tool"] for s in SPEC.get("checks", [])}
    pool = sorted((t for t in tools if t.input_schema.get("required")), key=lambda t: (not (t.annotations and t.annotations.read_only_hint), t.name not in named))
    if not pool:
        say("SKIP", "wrong arguments", "no tool has a required argument")
    else:
        t = pool[0]
        key = t.input_schema["required"][0]
        kind = t.input_schema["properties"][key].get("type")
        for label, args in (("missing", {}), ("of the wrong type", {key: {"x": [1]} if kind != "object" else 7})):
            try:
                r = await c.call_tool(t.name, args)
                text = text_of(r.content)
                check(r.is_error, f"argument {label} ({t.name}.{key}) gives isError", text[:120])
                if r.is_error:
                    check(key in text, f"the error names the argument ({label})", text[:120], soft=True)
            except MCPError as e:
                check(False, f"argument {label} ({t.name}.{key}) gives isError", f"a JSON-RPC error instead: {e.code} {e.message}", soft=e.code == -32602)
            except Exception as e:
                say("FAIL", f"argument {label} ({t.name}.{key})", flat(e))
    for method, want in (("foo/bar", -32601), ("initialize" if era == "modern" else "server/discover", None), ("ping", -32601 if era == "modern" else 0)):
        try:
            await c.session.send_request(types.Request(method=method, params={}), types.EmptyResult)
            check(want == 0, f"method {method}", "a result")
        except MCPError as e:
            check(want in (e.code, None) and e.code != -32001, f"method {method}", f"{e.code} {e.message}")
        except Exception as e:
            say("FAIL", f"method {method}", flat(e))


def content_fault(expect, text, mime=None):
    needles = [expect["textContains"]] if isinstance(expect.get("textContains"), str) else expect.get("textContains", [])
    faults = [f"lacks {n!r}" for n in needles if n not in text]
    if "mimeType" in expect and mime != expect["mimeType"]:
        faults.append(f"mimeType {mime}")
    return "; ".join(faults)


async def resource_checks(c):
    try:
        items = await all_pages(c.list_resources, "resources")
        check(len({r.uri for r in items}) == len(items), "resources/list", f"{len(items)}")
        templates = await all_pages(c.list_resource_templates, "resource_templates")
        say("PASS", "resources/templates/list", f"{len(templates)}")
    except Exception as e:
        return say("FAIL", "resources/list", flat(e))
    for spec in [{"uri": r.uri} for r in items[:5]] + SPEC.get("resources", []):
        expect = spec.get("expect", {})
        try:
            got = (await c.read_resource(spec["uri"])).contents
            text = "\n".join(getattr(x, "text", "") or "" for x in got)
            fault = content_fault(expect, text, got[0].mime_type if got else None)
            check(bool(got) and not fault and "error" not in expect, f"resources/read {spec['uri']}", fault or f"{len(got)} part(s), {got[0].mime_type if got else ''}")
        except MCPError as e:
            check(e.code == expect.get("error"), f"resources/read {spec['uri']}", f"{e.code} {e.message}")
        except Exception as e:
            say("FAIL", f"resources/read {spec['uri']}", flat(e))
    try:
        await c.read_resource("no-such-scheme://nowhere/x")
        say("FAIL", "unknown resource", "a result")
    except MCPError as e:
        want = {"modern": (-32602,), "legacy": (-32602, -32002)}[era]
        check(e.code in want, "unknown resource gives -32602", f"{e.code} {e.message}")


async def prompt_checks(c):
    try:
        items = await all_pages(c.list_prompts, "prompts")
        check(len({p.name for p in items}) == len(items), "prompts/list", f"{len(items)}")
    except Exception as e:
        return say("FAIL", "prompts/list", flat(e))
    auto = [{"name": p.name, "arguments": {a.name: "x" for a in (p.arguments or []) if a.required}} for p in items[:5]]
    for spec in auto + SPEC.get("prompts", []):
        expect = spec.get("expect", {})
        try:
            got = await c.get_prompt(spec["name"], spec.get("arguments"))
            text = "\n".join(getattr(m.content, "text", "") or "" for m in got.messages)
            fault = content_fault(expect, text)
            check(bool(got.messages) and not fault and "error" not in expect, f"prompts/get {spec['name']}", fault or f"{len(got.messages)} message(s)")
        except MCPError as e:
            check(e.code == expect.get("error"), f"prompts/get {spec['name']}", f"{e.code} {e.message}")
        except Exception as e:
            say("FAIL", f"prompts/get {spec['name']}", flat(e))
    for label, name, args in [("unknown prompt", "no_such_prompt_x", {})] + \
            [("prompt without its argument", p.name, {}) for p in items if any(a.required for a in p.arguments or [])][:1]:
        try:
            await c.get_prompt(name, args)
            say("FAIL", f"{label} gives -32602", "a result")
        except MCPError as e:
            check(e.code == -32602, f"{label} gives -32602", f"{e.code} {e.message}", soft=e.code in (0, -32603))
        except Exception as e:
            say("FAIL", label, flat(e))


async def with_client():
    hub = Hub()
    try:
        async with client(hub) as c:
            want = MODERN if era == "modern" else LEGACY
            if not check(c.protocol_version == want, "connect", f"protocol {c.protocol_version}, server {c.server_info.name + ' ' + c.server_info.version if c.server_info else 'anonymous'}"):
                return
            caps = c.server_capabilities
            say("PASS", "capabilities", caps.model_dump(by_alias=True, exclude_none=True))
            tools = []
            if caps.tools is None:
                say("SKIP", "tools", "the server offers none")
            else:
                try:
                    tools = await all_pages(c.list_tools, "tools")
                except Exception as e:
                    say("FAIL", "tools/list", flat(e))
                names = [t.name for t in tools]
                check(len(set(names)) == len(names), "tools/list, unique names", f"{len(names)}: {', '.join(names[:12])}")
                bad = [n for n in names if not re.fullmatch(r"[A-Za-z0-9_.\-]{1,128}", n)]
                check(not bad, "tool names are well formed", bad or "")
                missing = [n for n in SPEC.get("tools", []) if n not in names]
                check(not missing, "the expected tools are listed", missing or "")
                for t in tools:
                    fault = schema_fault(t.input_schema, True)
                    check(fault is None, f"{t.name}: inputSchema is valid", fault or "")
                    if t.output_schema is not None:
                        fault = schema_fault(t.output_schema, False)
                        check(fault is None, f"{t.name}: outputSchema is valid", fault or "")
                nodesc = [t.name for t in tools if not (t.description or "").strip()]
                check(not nodesc, "every tool has a description", nodesc or "", soft=True)
                again = [t.name for t in await all_pages(c.list_tools, "tools")]
                check(again == names, "the order of the list is stable")
                for spec in SPEC.get("checks", []):
                    if spec.get("era", era) != era or spec.get("transport", TRANSPORT) != TRANSPORT:
                        continue
                    try:
                        await one_check(c, hub, spec)
                    except Exception as e:
                        say("FAIL", "call " + spec.get("name", spec["tool"]), flat(e))
                await error_checks(c, tools)
                first = next((s for s in SPEC.get("checks", []) if not (set(s) & {"cancelAfter", "elicit", "progress", "era", "transport"}) and "error" not in s.get("expect", {}) and "listChanged" not in s.get("expect", {})), None)
                if first:
                    t, results = time.monotonic(), []

                    async def go():
                        results.append(await c.call_tool(first["tool"], first.get("arguments", {})))
                    async with anyio.create_task_group() as tg:
                        for _ in range(20):
                            tg.start_soon(go)
                    same = len({r.model_dump_json(exclude={"meta"}) for r in results}) == 1
                    check(len(results) == 20 and same, "20 calls at once", f"{time.monotonic() - t:.2f} s")
            if caps.resources is not None:
                await resource_checks(c)
            else:
                say("SKIP", "resources", "not offered")
            if caps.prompts is not None:
                await prompt_checks(c)
            else:
                say("SKIP", "prompts", "not offered")
            t = time.monotonic()
        took = time.monotonic() - t
        check(took < 1.5 or TRANSPORT == "http", "the server ends with its input", f"{took:.2f} s")
    except Exception as e:
        say("FAIL", "session", flat(e))


# ---------------------------------------------------------------- raw

def shape(name, method, message):
    """The result against the SDK's generated models of the specification's schema."""
    try:
        methods.validate_server_result(method, MODERN if era == "modern" else LEGACY, message["result"])
        say("PASS", name + ": shape of the result")
    except KeyError:
        say("FAIL", name + ": shape of the result", message)
    except Exception as e:
        say("FAIL", name + ": shape of the result", str(e))


def rejects(name, a, status, code, soft=False):
    check(a.status == status and (code is None or a.code == code), f"{name}: {status}" + (f" and {code}" if code else ""), str(a)[:200], soft)


def first_simple():
    for s in SPEC.get("checks", []):
        if not (set(s) & {"cancelAfter", "elicit", "progress", "era", "transport"}) and not s.get("expect", {}).get("isError") and "error" not in s.get("expect", {}) and "listChanged" not in s.get("expect", {}):
            return s


def cancel_spec():
    return next((s for s in SPEC.get("checks", []) if "cancelAfter" in s), None)


def elicit_spec():
    return next((s for s in SPEC.get("checks", []) if s.get("elicit")), None)


def raw_modern_http():
    h = Http(A.http, A.bearer)
    disc = request(1, "server/discover")
    a = h.send(disc)
    if not check(a.status == 200 and "result" in a.last, "raw server/discover", str(a)[:200]):
        return
    shape("raw server/discover", "server/discover", a.last)
    check(MODERN in a.last["result"].get("supportedVersions", []), "supportedVersions has the version")
    check(P + "serverInfo" in (a.last["result"].get("_meta") or {}), "results carry serverInfo in _meta", soft=True)
    check("mcp-session-id" not in a.headers, "no Mcp-Session-Id in the answer")
    a = h.send(request("äö-7", "tools/list"))
    check(a.last.get("id") == "äö-7", "a string id comes back", a.last.get("id"))
    if "result" in a.last:
        shape("raw tools/list", "tools/list", a.last)
    rejects("no _meta", h.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}), 400, -32602)
    rejects("no clientCapabilities", h.send({**disc, "params": {"_meta": {P + "protocolVersion": MODERN}}}), 400, -32602)
    a = h.send({**disc, "params": {"_meta": meta("2099-01-01")}}, headers={"MCP-Protocol-Version": "2099-01-01"})
    rejects("unknown version", a, 400, -32022)
    data = (a.last.get("error") or {}).get("data") or {}
    check(MODERN in data.get("supported", []) and data.get("requested") == "2099-01-01", "the version error names supported and requested", data)
    rejects("MCP-Protocol-Version differs from the body", h.send(disc, headers={"MCP-Protocol-Version": "2099-01-01"}), 400, -32020)
    rejects("no Mcp-Method", h.send(disc, drop=["Mcp-Method"]), 400, -32020)
    rejects("Mcp-Method differs", h.send(disc, headers={"Mcp-Method": "tools/list"}), 400, -32020)
    a = h.send(disc, drop=["MCP-Protocol-Version"])
    check(a.status == 400, "modern body without MCP-Protocol-Version: 400", str(a)[:160])
    s = first_simple()
    if s:
        call = request(2, "tools/call", {"name": s["tool"], "arguments": s.get("arguments", {})})
        a = h.send(call)
        if check(a.status == 200 and "result" in a.last, "raw tools/call", str(a)[:160]):
            shape("raw tools/call", "tools/call", a.last)
        rejects("no Mcp-Name", h.send(call, drop=["Mcp-Name"]), 400, -32020)
        rejects("Mcp-Name differs", h.send(call, headers={"Mcp-Name": "other"}), 400, -32020)
        import base64
        coded = "=?base64?" + base64.b64encode(s["tool"].encode()).decode() + "?="
        check(h.send(call, headers={"Mcp-Name": coded}).status == 200, "Mcp-Name in base64 form is understood")
        check(h.send(call, headers={"Mcp-Session-Id": "x", "Last-Event-ID": "1"}).status == 200, "Mcp-Session-Id and Last-Event-ID are ignored")
        check(h.send(call, headers={"Accept": "application/json"}).status in (200, 406), "Accept of JSON only: 200 or 406")
        check(h.send(call, headers={"Accept": "*/*"}).status == 200, "Accept: */*", soft=True)
        check(h.send(call, headers={"Content-Type": "application/json; charset=utf-8"}).status == 200, "Content-Type with a charset")
    rejects("unknown method", h.send(request(4, "foo/bar")), 404, -32601)
    rejects("tools/call without a name", h.send(request(5, "tools/call", {"arguments": {}})), 400, -32602)
    rejects("not JSON", h.send(b"{oops", headers={"MCP-Protocol-Version": MODERN}), 400, -32700)
    rejects("invalid UTF-8", h.send(b'{"a":"\xff"}', headers={"MCP-Protocol-Version": MODERN}), 400, -32700)
    rejects("batch", h.send(b"[" + json.dumps(disc).encode() + b"]", headers={"MCP-Protocol-Version": MODERN, "Mcp-Method": "server/discover"}), 400, -32600)
    a = h.send(b'{"jsonrpc":"2.0","id":1,"method":"x","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}", headers={"MCP-Protocol-Version": MODERN})
    check(400 <= a.status < 500, "deep JSON is refused", str(a)[:120])
    check(h.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}).status == 202, "a notification: 202")
    for m in ("GET", "DELETE"):
        a = h.send(None, method=m, headers={"MCP-Protocol-Version": MODERN}, timeout=3)
        check(a.status == 405, f"{m}: 405", str(a)[:100])
    check(h.send(disc, headers={"Origin": "http://evil.example"}).status == 403, "a foreign Origin: 403")
    check(h.send(disc, headers={"Origin": "http://localhost.evil.example:80"}).status == 403, "Origin localhost.evil.example: 403")
    check(h.send(disc, headers={"Host": "evil.example"}).status in (400, 403, 421), "a foreign Host is refused", soft=True)
    e = elicit_spec()
    if e:
        a = h.send(request(6, "tools/call", {"name": e["tool"], "arguments": e.get("arguments", {})}))
        rejects("elicitation not declared", a, 400, -32021)
        check("elicitation" in ((a.last.get("error") or {}).get("data") or {}).get("requiredCapabilities", {}), "the error names requiredCapabilities", str(a)[:160])
        can = {P + "clientCapabilities": {"elicitation": {"form": {}, "url": {}}}}
        a = h.send(request(7, "tools/call", {"name": e["tool"], "arguments": e.get("arguments", {}), "_meta": can}))
        r = a.last.get("result") or {}
        if check(r.get("resultType") == "input_required" and r.get("inputRequests"), "input_required", str(a)[:160]):
            shape("raw input_required", "tools/call", a.last)
            if state := r.get("requestState"):
                key = next(iter(r["inputRequests"]))
                forged = state[:-3] + ("AAA" if state[-3:] != "AAA" else "BBB")
                a = h.send(request(8, "tools/call", {"name": e["tool"], "arguments": e.get("arguments", {}), "requestState": forged, "inputResponses": {key: e["elicit"]}, "_meta": can}))
                check(a.code == -32602, "a forged requestState is refused", str(a)[:160])
    c = cancel_spec()
    if c:
        t = time.monotonic()
        import http.client as hc
        conn = hc.HTTPConnection(h.host, h.port, timeout=5)
        body = json.dumps(request(9, "tools/call", {"name": c["tool"], "arguments": c.get("arguments", {}), "_meta": {"progressToken": 9}})).encode()
        conn.request("POST", h.path, body, {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": MODERN,
                                            "Mcp-Method": "tools/call", "Mcp-Name": c["tool"], **({"Authorization": f"Bearer {A.bearer}"} if A.bearer else {})})
        time.sleep(0.4)
        conn.close()
        a = h.send(disc)
        check(a.status == 200, "answers after a closed stream", f"{time.monotonic() - t:.2f} s")
    a = h.send(request("L1", "subscriptions/listen", {"notifications": {"toolsListChanged": True}}), timeout=1.5)
    if a.code == -32601:
        say("SKIP", "subscriptions/listen", "not offered")
    else:
        m = a.messages[0] if a.messages else {}
        ok = m.get("method") == "notifications/subscriptions/acknowledged" and (m.get("params", {}).get("_meta") or {}).get(P + "subscriptionId") == "L1"
        check(ok, "listen: the acknowledgement comes first, with subscriptionId", str(a)[:200])


def raw_legacy_http():
    h, L = Http(A.http, A.bearer), dict(era="legacy")
    a = h.send(request(1, "initialize", {**INITIALIZE, "protocolVersion": "1999-01-01"}, era="legacy"), **L)
    v = (a.last.get("result") or {}).get("protocolVersion")
    check(v in ("2024-11-05", "2025-03-26", "2025-06-18", LEGACY) or a.code in (-32602, -32022), "initialize with an unknown version offers a known one", v or str(a)[:160])
    a, b = h.initialize()
    if not check(a.status == 200 and "result" in a.last, "raw initialize", str(a)[:160]):
        return
    shape("raw initialize", "initialize", a.last)
    check(b.status == 202 and not b.body, "notifications/initialized: 202 without a body", str(b)[:100])
    if h.session:
        check(re.fullmatch(r"[\x21-\x7e]+", h.session) is not None, "Mcp-Session-Id is visible ASCII", h.session)
    else:
        say("SKIP", "session id", "the server gives none")
    a = h.send(request("q-1", "tools/list", era="legacy"), **L)
    check(a.last.get("id") == "q-1", "a string id comes back", a.last.get("id"))
    if "result" in a.last:
        shape("raw tools/list", "tools/list", a.last)
        check(not {"resultType", "ttlMs", "cacheScope"} & set(a.last["result"]), "no modern members in a legacy result", list(a.last["result"]), soft=True)
    s = first_simple()
    if s:
        a = h.send(request(2, "tools/call", {"name": s["tool"], "arguments": s.get("arguments", {})}, era="legacy"), **L)
        if check(a.status == 200 and "result" in a.last, "raw tools/call", str(a)[:160]):
            shape("raw tools/call", "tools/call", a.last)
    a = h.send(request(3, "foo/bar", era="legacy"), **L)
    check(a.code == -32601, "unknown method: -32601", str(a)[:160])
    a = h.send(request(3, "ping", era="legacy"), **L)
    check(a.last.get("result") == {}, "ping: {}", str(a)[:100])
    check(h.send(request(3, "ping", era="legacy"), headers={"MCP-Protocol-Version": "1999-01-01"}, **L).status == 400, "unknown MCP-Protocol-Version: 400")
    check(h.send(request(3, "ping", era="legacy"), drop=["MCP-Protocol-Version"], **L).status == 200, "without MCP-Protocol-Version it works")
    rejects("not JSON", h.send(b"{oops", **L), 400, -32700)
    check(h.send(b'{"jsonrpc":"2.0","id":77,"result":{}}', **L).status in (202, 400), "a response nobody asked for: 202 or 400")
    a = h.send(None, method="GET", timeout=1.5, **L)
    check(a.status == 405 or a.status == 200 and a.headers.get("content-type", "").startswith("text/event-stream"), "GET: a stream or 405", str(a)[:100])
    check(h.send(request(3, "ping", era="legacy"), headers={"Origin": "http://evil.example"}, **L).status == 403, "a foreign Origin: 403")
    if h.session:
        check(h.send(request(3, "ping", era="legacy"), drop=["Mcp-Session-Id"], **L).status == 400, "without the session id: 400")
        check(h.send(request(3, "ping", era="legacy"), headers={"Mcp-Session-Id": "unknown"}, **L).status == 404, "an unknown session id: 404")
        other = Http(A.http, A.bearer)
        other.initialize()
        check(other.session != h.session, "sessions have different ids")
        a = h.send(None, method="DELETE", timeout=3, **L)
        if check(a.status in (200, 202, 204, 405), "DELETE ends the session or 405", str(a)[:80]) and a.status != 405:
            check(h.send(request(3, "ping", era="legacy"), **L).status == 404, "after DELETE: 404")
            check(other.send(request(3, "ping", era="legacy"), **L).status == 200, "the other session lives on")


def raw_stdio():
    modern = era == "modern"

    def start():
        s = Stdio(COMMAND, ENV)
        if not modern:
            s.initialize()
        return s
    s = start()
    ask = lambda ident, method, params=None: request(ident, method, params, era)
    if modern:
        m = s.call(ask(1, "server/discover"), 20)
        if not check(m is not None and "result" in m, "raw server/discover", m):
            s.close()
            return
        shape("raw server/discover", "server/discover", m)
        code = lambda m: ((m or {}).get("error") or {}).get("code")
        m = s.call({**ask(2, "server/discover"), "params": {"_meta": {P + "protocolVersion": MODERN}}})
        check(code(m) == -32602, "no clientCapabilities: -32602", m)
        m = s.call({**ask(3, "server/discover"), "params": {"_meta": meta("2099-01-01")}})
        check(code(m) == -32022 and MODERN in (m["error"].get("data") or {}).get("supported", []), "unknown version: -32022 with supported", m)
        m = s.call(request(4, "tools/list", era="legacy"))
        check(code(m) == -32602, "no _meta: -32602", m, soft=code(m) is not None)
    else:
        first = s.seen[0] if s.seen else None
        if not check(first is not None and "result" in first, "raw initialize", first):
            s.close()
            return
        shape("raw initialize", "initialize", first)
        m = s.call(ask(4, "ping"))
        check(m and m.get("result") == {}, "ping: {}", m)
    m = s.call(ask("äö-7", "tools/list"))
    check(m is not None, "a string id comes back", (m or {}).get("id"))
    if m and "result" in m:
        shape("raw tools/list", "tools/list", m)
        if not modern:
            check(not {"resultType", "ttlMs", "cacheScope"} & set(m["result"]), "no modern members in a legacy result", list(m["result"]), soft=True)
    m = s.call(ask(5, "foo/bar"))
    check(m and (m.get("error") or {}).get("code") == -32601, "unknown method: -32601", m)
    m = s.call(ask(6, "tools/call", {"arguments": {}}))
    check(m and (m.get("error") or {}).get("code") == -32602, "tools/call without a name: -32602", m)
    for label, line in (("a line that is not JSON", b"{oops"), ("invalid UTF-8", b'{"a":"\xff"}'), ("an empty line", b""), ("a JSON array", b"[1,2]"), ("a response nobody asked for", b'{"jsonrpc":"2.0","id":77,"result":{}}'),
                        ("deep JSON", b"[" * 100_000 + b"]" * 100_000), ("CR LF", json.dumps({"jsonrpc": "2.0", "method": "notifications/x"}).encode() + b"\r")):
        s.send(line)
        m = s.call(ask(f"after-{label}", "tools/list"), 6)
        check(m and "result" in m, f"goes on after {label}", m and m.get("error"))
    spec = first_simple()
    if spec:
        m = s.call(ask(8, "tools/call", {"name": spec["tool"], "arguments": spec.get("arguments", {})}))
        if check(m and "result" in m, "raw tools/call", m):
            shape("raw tools/call", "tools/call", m)
    c = cancel_spec()
    if c:
        s.send(ask(40, "tools/call", {"name": c["tool"], "arguments": c.get("arguments", {})}))
        time.sleep(0.4)
        s.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 40, "reason": "test"}})
        m = s.call(ask(41, "tools/list"), 3)
        late = s.read(lambda m: m.get("id") == 40, 1.0) or next((m for m in s.seen if m.get("id") == 40), None)
        check(m is not None, "answers after a cancel")
        check(late is None, "a cancelled call is not answered", late, soft=True)
        s.send(ask(42, "tools/call", {"name": c["tool"], "arguments": c.get("arguments", {})}))
        time.sleep(0.2)
    t = time.monotonic()
    status = s.close()
    check(status == 0, "end of input during a call: exit 0" if c else "end of input: exit 0", f"{'killed after 5 s' if status is None else status}, {time.monotonic() - t:.2f} s")
    check(not s.bad, "stdout carries nothing but JSON", s.bad[:2] or "")
    own = [m for m in s.seen if "method" in m and "id" in m]
    check(not own or not modern, "the server sends no requests", own[:1] or "")
    if modern:
        s = Stdio(COMMAND, ENV)
        m = s.call(request(1, "server/discover"), 20)
        m = s.call(request(2, "initialize", INITIALIZE, era="legacy"))
        check(m and (m.get("error") or {}).get("code") == -32022, "initialize in a modern process: -32022", m, soft=True)
        s.close()


def main():
    global era
    for era in (["modern", "legacy"] if A.era == "both" else [A.era]):
        anyio.run(with_client)
        if not A.no_raw:
            try:
                {("modern", "http"): raw_modern_http, ("legacy", "http"): raw_legacy_http}.get((era, TRANSPORT), raw_stdio)()
            except Exception as e:
                say("FAIL", "raw checks", flat(e))
    print(f"{count['NOTE']} notes")
    print(f"{count['PASS'] + count['NOTE']} passed, {count['FAIL']} failed, {count['SKIP']} skipped")
    sys.exit(1 if count["FAIL"] else 0)


main()
