#!/usr/bin/env python3
"""A test MCP server made with the official Python SDK (mcp 2.3.0).

  server.py stdio      [--era both|modern|legacy]
  server.py http PORT  [--era both|modern|legacy] [--json] [--stateless] [--cache]

The SDK itself always serves both eras on one endpoint; it has no era switch. `--era` is made here:
  stdio modern  the SDK's modern loop alone: `initialize` -> -32022 naming the versions
  stdio legacy  the SDK's handshake loop alone: `server/discover` -> -32601, as an old server does
  http  modern  a filter in front: a request without a modern MCP-Protocol-Version is refused with 400;
                `initialize` gets -32022 naming the versions
  http  legacy  a filter in front: an unknown MCP-Protocol-Version is refused with 400 (as SDK v1 did)
--json: application/json answers only (no SSE). --stateless: legacy era without session ids.
--cache: ttlMs/cacheScope hints on the lists. Endpoint: http://127.0.0.1:PORT/mcp
Environment: MCP_TEST_LOG=path appends one line for every start, end and cancel of `slow` (proof of cancellation).
"""

import argparse
import json
import os
import struct
import sys
import time
import zlib
from typing import Annotated, Literal

import anyio
import mcp_types as types
from mcp.server import MCPServer
from mcp.server.caching import CacheHint
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.server.mcpserver.utilities.types import Image
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, Field

MODERN = MODERN_PROTOCOL_VERSIONS[-1]


def log(line: str) -> None:
    if path := os.environ.get("MCP_TEST_LOG"):
        with open(path, "a") as f:
            f.write(f"{time.time():.3f} {line}\n")


def png(width: int = 2, height: int = 2, rgb: bytes = b"\xff\x00\x00") -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\x00" + rgb * width for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class Weather(BaseModel):
    city: str
    celsius: float
    sky: Literal["clear", "cloudy", "rain"]
    wind: dict[str, float] = Field(default_factory=dict, description="Wind speed by height in m/s")


class Answer(BaseModel):
    name: str = Field(description="Your name", min_length=1)
    age: int = Field(description="Your age in years", ge=0, le=150)


def build(cache: bool = False) -> MCPServer:
    hints = {m: CacheHint(ttl_ms=60_000, scope="public")
             for m in ("tools/list", "prompts/list", "resources/list")} if cache else None
    mcp = MCPServer("sdk-test", title="SDK test server", version="1.0.0", log_level="WARNING",
                    instructions="A server for tests. Call add for sums.", cache_hints=hints)

    @mcp.tool(annotations=types.ToolAnnotations(title="Add", read_only_hint=True, idempotent_hint=True))
    def add(a: int, b: int) -> int:
        """Add two whole numbers."""
        return a + b

    @mcp.tool(annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=True))
    def weather(city: Annotated[Literal["Berlin", "Oslo", "São Paulo"], Field(description="One of three cities")]) -> Weather:
        """The weather in a city."""
        table = {"Berlin": (11.5, "cloudy"), "Oslo": (3.0, "rain"), "São Paulo": (27.25, "clear")}
        celsius, sky = table[city]
        return Weather(city=city, celsius=celsius, sky=sky, wind={"10m": 4.5})

    @mcp.tool(annotations=types.ToolAnnotations(read_only_hint=False, destructive_hint=True), structured_output=False)
    def delete_note(id: str) -> str:
        """Delete a note for ever."""
        return f"deleted {id}"

    @mcp.tool(structured_output=False)
    async def slow(seconds: float, ctx: Context) -> str:
        """Sleep, and report progress about ten times a second."""
        log(f"slow start {seconds}")
        start = anyio.current_time()
        try:
            while (gone := anyio.current_time() - start) < seconds:
                await ctx.report_progress(round(gone, 2), seconds, f"{gone:.1f} s of {seconds} s")
                await anyio.sleep(min(0.1, seconds - gone))
        except anyio.get_cancelled_exc_class():
            log("slow cancelled")
            raise
        log("slow end")
        return f"slept {seconds} s"

    @mcp.tool(structured_output=False)
    def flood(n: int) -> str:
        """Return n characters."""
        return "x" * n

    @mcp.tool(structured_output=False)
    def broken(how: Literal["crash", "tool", "protocol"] = "crash") -> str:
        """Always fails: a crash (its text stays on the server), a tool error, or a JSON-RPC error."""
        if how == "tool":
            raise ToolError("the disk is full")
        if how == "protocol":
            from mcp.shared.exceptions import MCPError
            raise MCPError(code=-32603, message="backend unreachable", data={"retry": True})
        raise RuntimeError("secret detail")

    @mcp.tool(structured_output=False)
    def picture() -> list:
        """A small PNG image and a text."""
        return [Image(data=png(), format="png"), "a red square, 2x2"]

    @mcp.tool(structured_output=False)
    async def grow(ctx: Context) -> str:
        """Add the tool `later` and tell the client that the list changed."""

        def later() -> str:
            """A tool that was added later."""
            return "later indeed"

        mcp.add_tool(later, structured_output=False)
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            await ctx.notify_tools_changed()  # to subscriptions/listen streams
        else:
            await ctx.session.send_tool_list_changed()  # stdio: the pipe; HTTP: the GET stream
        return "grown"

    def who() -> Elicit[Answer]:
        return Elicit("Who are you?", Answer)

    @mcp.tool(structured_output=False)
    def ask(greeting: str, answer: Annotated[Answer, Resolve(who)]) -> str:
        """Ask the user for name and age (elicitation)."""
        return f"{greeting} {answer.name}, {answer.age}"

    @mcp.tool(structured_output=False)
    def routed(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})], note: str = "") -> str:
        """Modern era over HTTP: the client must mirror `region` into the header Mcp-Param-Region."""
        return f"routed to {region} {note}".strip()

    @mcp.prompt(title="Greeting")
    def greet(name: str, style: str = "friendly") -> str:
        """Ask for a greeting."""
        return f"Write a {style} greeting for {name}."

    @mcp.prompt()
    def review(code: str) -> list:
        """Review code, as a short conversation."""
        return [
            {"role": "user", "content": {"type": "text", "text": f"Review this:\n{code}"}},
            {"role": "assistant", "content": {"type": "text", "text": "I will look at it."}},
        ]

    @mcp.resource("note://readme", name="readme", title="Read me", mime_type="text/markdown", description="A text")
    def readme() -> str:
        return "# Notes\nhello"

    @mcp.resource("note://logo", name="logo", mime_type="image/png")
    def logo() -> bytes:
        return png()

    @mcp.resource("note://item/{id}", name="item", mime_type="text/plain")
    def item(id: str) -> str:
        from mcp.server.mcpserver.exceptions import ResourceNotFoundError
        if not id.isdigit():
            raise ResourceNotFoundError(f"no note {id}")
        return f"note number {id}"

    # The SDK advertises listChanged=false in the handshake era unless told otherwise, and MCPServer has no option for it.
    low = mcp._lowlevel_server
    original = low.create_initialization_options
    low.create_initialization_options = lambda *a, **k: original(NotificationOptions(tools_changed=True))  # type: ignore
    return mcp


async def serve_stdio(mcp: MCPServer, era: str) -> None:
    from mcp.server import runner
    from mcp.server.stdio import stdio_server

    low = mcp._lowlevel_server
    async with stdio_server() as (read, write):
        if era == "both":
            await low.run(read, write, low.create_initialization_options())
            return
        async with low.lifespan(low) as state:
            if era == "legacy":
                await runner.serve_loop(low, read, write, lifespan_state=state)
            else:
                await runner._serve_modern_stream(low, read, write, lifespan_state=state, raise_exceptions=False)


class EraFilter:
    """Refuses the other era's requests, in front of the SDK's two-era endpoint."""

    def __init__(self, app, era: str) -> None:
        self.app, self.era = app, era

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or scope["path"] != "/mcp":
            return await self.app(scope, receive, send)
        version = next((v.decode("latin-1") for k, v in scope["headers"] if k == b"mcp-protocol-version"), None)
        if self.era == "legacy":
            if version is None or version in HANDSHAKE_PROTOCOL_VERSIONS:
                return await self.app(scope, receive, send)
            return await self.refuse(send, -32600, f"Bad Request: Unsupported protocol version: {version}", None)
        if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            return await self.app(scope, receive, send)
        if scope["method"] != "POST":
            await send({"type": "http.response.start", "status": 405, "headers": [(b"allow", b"POST")]})
            return await send({"type": "http.response.body", "body": b""})
        body = b""
        while True:
            part = await receive()
            body += part.get("body", b"")
            if not part.get("more_body"):
                break
        try:
            message = json.loads(body)
            ident = message.get("id")
            requested = (message.get("params") or {}).get("protocolVersion", version or "")
        except Exception:
            ident, requested = None, version or ""
        await self.refuse(send, -32022, "Unsupported protocol version",
                          {"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": requested}, ident)

    async def refuse(self, send, code, message, data, ident=None):
        error = {"code": code, "message": message} | ({"data": data} if data else {})
        body = json.dumps({"jsonrpc": "2.0", "id": ident, "error": error}).encode()
        await send({"type": "http.response.start", "status": 400, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": body})


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("transport", choices=["stdio", "http"])
    p.add_argument("port", type=int, nargs="?", default=8931)
    p.add_argument("--era", choices=["both", "modern", "legacy"], default="both")
    p.add_argument("--json", action="store_true")
    p.add_argument("--stateless", action="store_true")
    p.add_argument("--cache", action="store_true")
    a = p.parse_args()
    mcp = build(a.cache)
    if a.transport == "stdio":
        anyio.run(serve_stdio, mcp, a.era)
        return
    import uvicorn

    app = mcp.streamable_http_app(json_response=a.json, stateless_http=a.stateless, host="127.0.0.1")
    if a.era != "both":
        app = EraFilter(app, a.era)
    print(f"listening on http://127.0.0.1:{a.port}/mcp", file=sys.stderr, flush=True)
    uvicorn.run(app, host="127.0.0.1", port=a.port, log_level="warning", timeout_graceful_shutdown=1)


if __name__ == "__main__":
    main()
