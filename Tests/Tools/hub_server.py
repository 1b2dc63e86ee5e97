#!/usr/bin/env python3
"""A test server with the API of the Hugging Face hub for files OWNER/REPO/PATH of a folder. The owner selects a fault.

    hub_server.py FOLDER

Prints the port of the hub and the port of the host that files are redirected to, then serves until standard input ends, and removes
the folder.
Each request is recorded as a line of FOLDER/requests.txt. Owners:

    good      responds correctly, in pages of two files
    cut       closes the connection after each 100,000 bytes of a file
    held      after the first 100,000 bytes of a file, sends nothing until the client gives up; then as good
    stuck     closes the connection before the first byte of a file
    whole     ignores range requests
    fresh     has another version of its files in each response, which ETag names
    unnamed   says neither the content nor the version of a file
    longer    sends more bytes than it announces, in chunks
    failing   500 for the first request of each file
    wrong     sends other bytes than its listing specifies
    huge      lists a file larger than any disk
    private   401 without the token “secret”
    gated     lists its files, but responds with 403 for all of them
    limited   429
    broken    lists its files in an invalid format
    many      lists more files than any repository has, in one page
    endless   404 with a text that does not end
    links     has an address of the next page that is very long, and none
"""
import hashlib, http.server, json, os, pathlib, re, shutil, sys, threading, urllib.parse

ROOT = pathlib.Path(sys.argv[1])
REVISION = "0123456789abcdef0123456789abcdef01234567"
lock = threading.Lock()
seen = {}  # number of requests for a file


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, code, body=b"", headers={}):
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def note(self, host):
        with lock, open(ROOT / "requests.txt", "a") as log:
            log.write(f"{host} {self.path} range={self.headers['Range']} authorization={self.headers['Authorization']}\n")


class Hub(Handler):
    def do_GET(self):
        self.note("hub")
        url = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(url.path)
        match = re.fullmatch(r"/api/models/([\w.-]+)/([\w.-]+)(/tree/\w+)?", path)
        file = re.fullmatch(r"/([\w.-]+)/([\w.-]+)/resolve/\w+/(.*)", path)
        if not (match or file):
            return self.answer(404)
        owner, repository = (match or file).group(1, 2)
        folder = ROOT / owner / repository
        if owner == "limited":
            return self.answer(429)
        if owner == "endless":
            self.send_response(404)
            self.end_headers()
            while True:  # until the client closes the connection
                self.wfile.write(b"x" * 65536)
        if owner == "private" and self.headers["Authorization"] != "Bearer secret":
            return self.answer(401)
        if not folder.is_dir():
            return self.answer(404)
        if file:
            if owner == "gated":
                return self.answer(403)
            target = f"http://127.0.0.1:{cdn.server_port}/{owner}/{repository}/{urllib.parse.quote(file[3])}"
            return self.answer(302, headers={"Location": target})
        if not match[3]:
            return self.answer(200, json.dumps({"id": f"{owner}/{repository}", "sha": REVISION}).encode())
        if owner == "broken":
            return self.answer(200, b"<html>Please sign in</html>")
        if owner == "many":
            file = {"type": "file", "path": "tiny-Q8_0.gguf", "size": 1 << 46}
            return self.answer(200, json.dumps([file] * 100_001).encode())
        entries = [self.entry(owner, folder, path) for path in sorted(folder.rglob("*"))]
        start = int(urllib.parse.parse_qs(url.query).get("cursor", ["0"])[0])
        headers = {}
        if len(entries) > start + 2:
            headers["Link"] = f'<http://127.0.0.1:{self.server.server_port}{url.path}?recursive=true&cursor={start + 2}>; rel="next"'
        if owner == "links":
            headers["Link"] = "<" * 60_000
        self.answer(200, json.dumps(entries[start : start + 2]).encode(), headers)

    def entry(self, owner, folder, path):
        name = path.relative_to(folder).as_posix()
        if path.is_dir():
            return {"type": "directory", "path": name, "size": 0, "oid": "0" * 40}
        size = 6 * 10**13 if owner == "huge" else path.stat().st_size
        entry = {"type": "file", "path": name, "size": size, "oid": "0" * 40}
        if name.endswith(".gguf") and owner != "unnamed":
            entry["lfs"] = {"oid": hashlib.sha256(path.read_bytes()).hexdigest(), "size": size, "pointerSize": 135}
        return entry


class Files(Handler):
    def do_GET(self):
        self.note("cdn")
        path = urllib.parse.unquote(self.path)
        owner = path.split("/")[1]
        data = (ROOT / path.lstrip("/")).read_bytes()
        with lock:
            seen[path] = seen.get(path, 0) + 1
            number = seen[path]
        if owner == "failing" and number == 1:
            return self.answer(500)
        if owner == "wrong":
            data = data[::-1]
        tag = None if owner == "unnamed" else f'"{number if owner == "fresh" else 1}"'
        if owner == "fresh":
            data = data[:-1] + bytes([number])
        start, end = 0, len(data)
        range = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers["Range"] or "")
        if owner != "whole" and range and self.headers["If-Range"] in (None, tag):
            start = int(range[1])
            end = min(end, int(range[2]) + 1) if range[2] else end
            if start >= len(data):
                return self.answer(416, headers={"Content-Range": f"bytes */{len(data)}"})
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        else:
            self.send_response(200)
        if tag:
            self.send_header("ETag", tag)
        if owner == "longer":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"%x\r\n%s\r\n1\r\n.\r\n0\r\n\r\n" % (len(data), data))
            return
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        data = data[:end]
        if owner == "held" and number == 1:
            self.wfile.write(data[start : start + 100_000])
            self.wfile.flush()
            self.connection.recv(1)  # returns when the client closes the connection
            self.close_connection = True
            return
        if owner in ("cut", "stuck") or (owner == "fresh" and number == 1):
            data = data[: start + (0 if owner == "stuck" else 100_000)]
            self.close_connection = True
        self.wfile.write(data[start:])


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        pass  # some tests close connections on purpose


hub = Server(("127.0.0.1", 0), Hub)
cdn = Server(("127.0.0.1", 0), Files)
for server in (hub, cdn):
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
print(hub.server_port, cdn.server_port, flush=True)
sys.stdin.read()
shutil.rmtree(ROOT, ignore_errors=True)
os._exit(0)
