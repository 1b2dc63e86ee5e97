"""A proxy before “fm serve”: everything is the server's own, but models named “script:…” answer from a script.

    python scripted.py --upstream http://127.0.0.1:8080 [--port 18090] [--pages Sources/Support/ConsoleFiles/web]

With --pages, the pages come from a folder, with the headers of the server, so that they can be changed while it runs.
"""
import argparse
import http.client
import json
import pathlib
import re
import sys
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SAMPLE = pathlib.Path(__file__).parent / "sample.md"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
# These are of one connection, and not passed on.
OWN = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "accept-encoding"}

HTML = """<img src=x onerror=alert(1)> <script>alert(2)</script>

[x](javascript:alert(3)) and [y](  JaVaScRiPt:alert(4)) and [data](data:text/html,<script>alert(5)</script>) and
[good](https://example.com/a?b=c)

![a](http://evil.invalid/x.png) <iframe src="http://evil.invalid/"></iframe>

<style>body{display:none}</style><a href="javascript:alert(6)" onclick="alert(7)">click</a>

```html" onload="alert(8)
<script>alert(9)</script>
```

| <img src=x onerror=alert(10)> | [z](vbscript:alert(11)) |
|---|---|
| <svg onload=alert(12)> | `<b>` |

<https://example.com/auto> http://evil.invalid/plain.png [rel](/v1/console/features) [//](//evil.invalid/)
"""
SECTION = """## A section

A paragraph with **bold** words, `code` and a [link](https://example.com), which goes on for a while.

- one
- two

```swift
let x = 1
```

"""
CITED = ("Passports are renewed at the **town hall** [1]. Bring a photo [2].\n\nNothing is said about prices [7].", [
    {"number": 1, "source": "offices/town-hall.md", "lines": "10-14", "text": "Passports: second floor.\nClosed on Wednesdays."},
    {"number": 2, "source": "<img src=x onerror=alert(1)>.md", "lines": "3-5", "text": "A photo. <b>This is text, not markup.</b>"}])


# Answers -----------------------------------------------------------------------------------------------------------

def chunk(delta, finish=None):
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {"id": "chatcmpl-x", "object": "chat.completion.chunk", "model": "script", "choices": [choice]}


USAGE = {"id": "chatcmpl-x", "object": "chat.completion.chunk", "choices": [], "usage": {
    "prompt_tokens": 120, "completion_tokens": 80, "total_tokens": 200, "prompt_tokens_details": {"cached_tokens": 48}}}


def text_events(text):
    return [chunk({"content": part}) for part in re.findall(r"\s*\S{1,8}", text)] + [chunk({}, "stop"), USAGE]


def call_events(name, body):
    tools = [tool["function"]["name"] for tool in body.get("tools", [])] or ["get_weather"]
    if name == "mcp":
        tools = [tool for tool in tools if "__" in tool]
    events = []
    for index, tool in enumerate(tools[:2] if name == "tools2" else tools[:1]):
        arguments = json.dumps({"query" if tool.endswith("search") else "text" if name == "mcp" else "city": "Berlin"})
        call = {"index": index, "id": f"call_{time.time_ns()}_{index}", "type": "function"}
        events.append(chunk({"tool_calls": [{**call, "function": {"name": tool, "arguments": ""}}]}))
        events += [chunk({"tool_calls": [{"index": index, "function": {"arguments": arguments[i:i + 3]}}]})
                   for i in range(0, len(arguments), 3)]
    return events + [chunk({}, "tool_calls"), USAGE]


def script(name, body):
    """The events of an answer, and the pause after each."""
    match name:
        case "markdown": return text_events(SAMPLE.read_text()), 0.002
        case "html": return text_events(HTML), 0.001
        case "slow": return text_events("One sentence arrives slowly. " * 60), 0.05
        case "5mb":
            text = SECTION * (5_000_000 // len(SECTION))
            return [chunk({"content": text[i:i + 2000]}) for i in range(0, len(text), 2000)] + [chunk({}, "stop"), USAGE], 0
        case "line": return [chunk({"content": "word*" * 400}) for _ in range(2500)] + [chunk({}, "stop"), USAGE], 0
        case "error-midway":
            return [chunk({"content": "This answer breaks "}), chunk({"content": "off."}),
                    {"error": {"message": "The model ran out of memory.", "code": None}}], 0.05
        case "tools" | "tools2" | "mcp":
            if body["messages"][-1]["role"] == "tool":
                return text_events(f"The tool says: {body['messages'][-1]['content']}. That is all."), 0.01
            return call_events(name, body), 0.03
        case _: return text_events("A short answer. It has two sentences."), 0.01


# The proxy ---------------------------------------------------------------------------------------------------------

class Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream = pages = None

    def log_message(self, *arguments):
        pass

    def do(self):
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urllib.parse.urlsplit(self.path).path
        body = {}
        if self.command == "POST" and data.startswith(b"{"):
            body = json.loads(data)
        name = body.get("model")
        try:
            if self.pages and (path.startswith("/console/") or path == "/" and "text/html" in self.headers.get("Accept", "")):
                self.page(path.rpartition("/")[2] or "index.html")
            elif path == "/v1/console/ask" and body.get("question", "").startswith("script:"):
                text, citations = CITED
                self.events([{"delta": part} for part in re.findall(r"\s*\S+", text)] + [{"citations": citations}], 0.01)
            elif isinstance(name, str) and name.startswith("script:"):
                if path == "/v1/chat/completions":
                    self.answer(name[7:], body)
                else:
                    # The rest of the server knows the real model only.
                    self.forward(json.dumps({**body, "model": "small"}).encode())
            else:
                self.forward(data)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do

    def page(self, name):
        file = self.pages / name
        if not file.is_file():
            return self.send_error(404)
        headers = dict(self.ask("GET", "/console/index.html", None, {}).getheaders())
        self.send_response(200)
        for name in ("Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy", "Cache-Control"):
            self.send_header(name, headers[name])
        self.send_header("Content-Type", TYPES[file.suffix] + "; charset=utf-8")
        self.send_header("Content-Length", str(file.stat().st_size))
        self.end_headers()
        self.wfile.write(file.read_bytes())

    def answer(self, name, body):
        if body.get("response_format"):
            schema = json.dumps({"schema": body["response_format"]["json_schema"]["schema"]}).encode()
            reply = self.ask("POST", "/v1/console/schema", schema, self.passed())
            return self.events(text_events(json.dumps(json.load(reply)["example"], indent=1)), 0.02)
        self.events(*script(name, body))

    def events(self, events, pause):
        self.begin(200, [("Content-Type", "text/event-stream"), ("Cache-Control", "no-store")])
        for event in events:
            self.part(b"data: " + json.dumps(event).encode() + b"\n\n")
            if pause:
                time.sleep(pause)
        self.part(b"data: [DONE]\n\n")
        self.part(b"")

    def passed(self):
        headers = {name: value for name, value in self.headers.items() if name.lower() not in OWN}
        # The server refuses pages of other places; this place is its own.
        if "Origin" in headers:
            headers["Origin"] = self.upstream
        return headers

    def ask(self, method, path, data, headers):
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(self.upstream).netloc, timeout=120)
        try:
            connection.request(method, path, data, headers)
            return connection.getresponse()
        except OSError:
            connection.close()
            raise ConnectionResetError from None

    def forward(self, data):
        reply = self.ask(self.command, self.path, data or None, self.passed())
        headers = [(name, value) for name, value in reply.getheaders() if name.lower() not in OWN | {"date", "server"}]
        if self.command == "HEAD" or reply.status in (204, 304):
            self.send_response(reply.status)
            for header in headers:
                self.send_header(*header)
            return self.end_headers()
        self.begin(reply.status, headers)
        try:
            while part := reply.read1(65_536):
                self.part(part)
        finally:
            # The server stops an answer that nobody reads.
            reply.close()
        self.part(b"")

    def begin(self, status, headers):
        self.send_response(status)
        for header in headers:
            self.send_header(*header)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def part(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))


class Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        # Pages that are closed leave connections behind.
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--upstream", required=True)
    parser.add_argument("--port", type=int, default=18090)
    parser.add_argument("--pages", type=pathlib.Path)
    options = parser.parse_args()
    Proxy.upstream, Proxy.pages = options.upstream.rstrip("/"), options.pages
    server = Server(("127.0.0.1", options.port), Proxy)
    print(f"http://127.0.0.1:{server.server_port}/", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
