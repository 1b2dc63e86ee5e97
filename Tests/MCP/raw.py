"""Raw MCP over HTTP and stdio, without the SDK: used by probe.py and client_check.py."""
import base64
import http.client
import json
import os
import queue
import subprocess
import threading
import time
from urllib.parse import urlsplit

MODERN, LEGACY = "2026-07-28", "2025-11-25"
P = "io.modelcontextprotocol/"


def meta(version=MODERN, capabilities=None, **more):
    return {P + "protocolVersion": version, P + "clientCapabilities": capabilities or {},
            P + "clientInfo": {"name": "raw", "version": "1"}, **more}


def request(ident, method, params=None, era="modern", **extra):
    params = dict(params or {})
    if era == "modern":
        params["_meta"] = {**meta(), **params.get("_meta", {})}
    m = {"jsonrpc": "2.0", "id": ident, "method": method, **extra}
    return m | ({"params": params} if params else {})


INITIALIZE = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def encode(value):
    plain = value.isascii() and value.isprintable() and value == value.strip()
    return value if plain else "=?base64?" + base64.b64encode(value.encode()).decode() + "?="


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body
        self.messages = []
        kind = headers.get("content-type", "")
        try:
            if kind.startswith("application/json") and body:
                got = json.loads(body)
                self.messages = got if isinstance(got, list) else [got]
            elif kind.startswith("text/event-stream"):
                for event in body.replace("\r\n", "\n").split("\n\n"):
                    data = "\n".join(l[5:].lstrip() for l in event.split("\n") if l.startswith("data:"))
                    if data:
                        self.messages.append(json.loads(data))
        except ValueError:
            pass

    @property
    def last(self):
        return self.messages[-1] if self.messages else {}

    @property
    def code(self):
        last = self.last
        return (last.get("error") or {}).get("code") if isinstance(last, dict) else None

    def __str__(self):
        kind = self.headers.get("content-type", "-").split(";")[0]
        return f"{self.status} {kind} {self.body.strip()[:230]}"


class Http:
    def __init__(self, url, bearer=None):
        u = urlsplit(url)
        self.host, self.port, self.path = u.hostname, u.port or 80, u.path or "/"
        self.session, self.bearer = None, bearer

    def send(self, body=None, method="POST", headers=None, drop=(), timeout=10, era="modern"):
        """headers override the right ones (None removes); drop names headers to leave out."""
        h = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self.bearer:
            h["Authorization"] = f"Bearer {self.bearer}"
        if isinstance(body, dict) and era == "modern":
            h["MCP-Protocol-Version"] = MODERN
            h["Mcp-Method"] = body.get("method", "")
            p = body.get("params") or {}
            name = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}.get(body.get("method"))
            if name and isinstance(p.get(name), str):
                h["Mcp-Name"] = encode(p[name])
        elif era == "legacy" and self.session:
            h["Mcp-Session-Id"] = self.session
            h["MCP-Protocol-Version"] = LEGACY
        for k, v in (headers or {}).items():
            for old in [o for o in h if o.lower() == k.lower()]:
                del h[old]
            if v is not None:
                h[k] = v
        h = {k: v for k, v in h.items() if k.lower() not in [d.lower() for d in drop]}
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body, ensure_ascii=False).encode()
        c = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        try:
            c.putrequest(method, self.path, skip_host="Host" in h, skip_accept_encoding=True)
            for k, v in h.items():
                for one in v if isinstance(v, list) else [v]:
                    c.putheader(k, one)
            if data is not None:
                c.putheader("Content-Length", str(len(data)))
            c.endheaders(data)
            r = c.getresponse()
            got, end = b"", time.monotonic() + timeout
            try:
                while time.monotonic() < end and (part := r.read1(65536)):
                    got += part
            except (TimeoutError, OSError):
                pass
            return Answer(r.status, {k.lower(): v for k, v in r.getheaders()}, got.decode("utf-8", "replace"))
        finally:
            c.close()

    def initialize(self):
        a = self.send(request(0, "initialize", INITIALIZE, era="legacy"), era="legacy")
        self.session = a.headers.get("mcp-session-id")
        b = self.send(INITIALIZED, era="legacy")
        return a, b


class Stdio:
    def __init__(self, command, env=None):
        self.p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env={**os.environ, **(env or {})})
        self.lines, self.bad, self.seen = queue.Queue(), [], []
        self.err = b""
        threading.Thread(target=self._out, daemon=True).start()
        threading.Thread(target=self._err, daemon=True).start()

    def _out(self):
        for line in iter(self.p.stdout.readline, b""):
            try:
                m = json.loads(line)
                if not isinstance(m, dict):
                    raise ValueError
                self.lines.put(m)
            except (ValueError, RecursionError):
                self.bad.append(line[:200])
        self.lines.put(None)

    def _err(self):
        for line in iter(self.p.stderr.readline, b""):
            self.err = (self.err + line)[-20000:]

    def send(self, message):
        data = message if isinstance(message, bytes) else json.dumps(message, ensure_ascii=False).encode()
        try:
            self.p.stdin.write(data + b"\n")
            self.p.stdin.flush()
        except (BrokenPipeError, OSError):
            pass

    def read(self, until, timeout=5):
        """Messages until `until(message)` is true; returns that message, or None at the end or time-out."""
        end = time.monotonic() + timeout
        while (left := end - time.monotonic()) > 0:
            try:
                m = self.lines.get(timeout=left)
            except queue.Empty:
                return None
            if m is None:
                self.lines.put(None)
                return None
            self.seen.append(m)
            if until(m):
                return m
        return None

    def call(self, message, timeout=5):
        self.send(message)
        return self.read(lambda m: m.get("id") == message.get("id") and "method" not in m, timeout)

    def initialize(self):
        a = self.call(request(0, "initialize", INITIALIZE, era="legacy"), 15)
        self.send(INITIALIZED)
        return a

    def close(self, grace=5):
        """Close stdin; the exit code, or None when the server had to be killed."""
        try:
            self.p.stdin.close()
        except OSError:
            pass
        try:
            return self.p.wait(grace)
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()
            return None
