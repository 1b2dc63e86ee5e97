"""Hostile HTTP: one function per category, each from a random source to a Case."""
import gzip, json, random, urllib.parse
from hostile_wire import (ASK, CHAT, CHATS, HANG, LIMIT, S, Broken, Case, Connection, Result, ask, bomb, category, exchange, post,
                          request, spoil)

# ------------------------------------------------------------------------------------------------- HTTP itself

@category("request-line", 6)
def _(r):
    line = r.choice([b"GET", b"G E T / HTTP/1.1", b"GET / HTTP/9.9", b"GET / HTTP/1.1 more", b" / HTTP/1.1", b"GET  HTTP/1.1",
        b"get /health HTTP/1.1", b"GET /\x00 HTTP/1.1", b"GET /a b HTTP/1.1", b"GET /" + b"a" * 100_000 + b" HTTP/1.1",
        b"PRI * HTTP/2.0\r\n\r\nSM", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + r.randbytes(200), r.randbytes(r.randint(1, 2000)),
        b"\r\n" * 50, b"GET /health HTTP/1.1\nHost: x\n", b"GET /\xff\xfe HTTP/1.1", b"HTTP/1.1 200 OK", b"A" * 5000])
    return Case(f"request line {line[:30]!r}", "bad-http", [line + b"\r\nHost: " + S.name.encode() + b"\r\n\r\n", "shut"])

@category("headers", 6)
def _(r):
    what, rule, lines = r.choice([("16 KB header", "odd-http", ["X-A: " + "a" * 16_000]),
        ("100 KB header", "bad-http", ["X-A: " + "a" * 100_000]), ("1 MB header", "bad-http", ["X-A: " + "a" * 1_000_000]),
        ("3,000 headers", "odd-http", [f"X-{i}: a" for i in range(3000)]), ("no colon", "bad-http", ["NoColonHere"]),
        ("space before colon", "bad-http", ["X-A : 1"]), ("folded", "odd-http", ["X-A: 1", " 2"]),
        ("NUL in value", "odd-http", ["X-A: a\0b"]), ("bare CR", "odd-http", ["X-A: a\rX-Hostile-Injected: 1"]),
        ("no name", "bad-http", [": x"]), ("bytes above 127", "odd-http", ["X-A: \xff\xfe"]),
        ("two Hosts", "bad-http", [f"Host: {S.name}", f"Host: {S.name}"]), ("name with bytes above 127", "bad-http", ["X-\xe9: 1"]),
        ("bare LF", "odd-http", ["X-A: a\nX-B: 1"]),
        ("request id that injects", "odd-http", ["X-Request-Id: a%0d%0aX-Hostile-Injected: 1"]),
        ("64 KB request id", "odd-http", ["X-Request-Id: " + "a" * 64_000]),
        ("request id of symbols", "odd-http", ["X-Request-Id: ${jndi:ldap://x}'\";<script>"]),
        ("traceparent of nonsense", "odd-http", ["traceparent: 00-zz-zz-zz"]),
        ("odd Connection", "odd-http", ["Connection: close, keep-alive, Host"]),
        ("Range", "odd-http", ["Range: bytes=0-99999999999999999999"]), ("odd Accept", "odd-http", ["Accept: " + "*/*;q=0," * 500])])
    return Case(what, rule, [request("GET", r.choice(["/health", "/v1/models"]), None, *lines)])

@category("injection", 2)
def _(r):      # where the server puts a client's text into its own header or log
    evil = r.choice(["\r\nX-Hostile-Injected: 1\r\n", "\nX-Hostile-Injected: 1", "\rX-Hostile-Injected: 1",
        "\u010d\u010aX-Hostile-Injected: 1"])
    if r.random() < 0.5:
        return Case("encoded line end in the path", "missing", [request("GET", r.choice(["/v1/models/", "/v1/responses/",
            "/"]) + "a" + urllib.parse.quote(evil))], "any")
    path, body = ask(r)
    body[r.choice(["model", "conversation", "previous_response_id", "user", "request_id", "prompt_cache_key"])] = "a" + evil
    return post("line end in a text field", "mutated", path, body)

@category("content-length", 5)
def _(r):
    body = json.dumps({"model": S.model, "messages": []}).encode()
    n = len(body)
    what, rule, lines = r.choice([("negative", "framing", ["-1"]), ("a word", "framing", ["abc"]), ("plus sign", "framing", [f"+{n}"]),
        ("hex", "framing", [hex(n)]), ("1e30", "framing", ["1e30"]), ("beyond 64 bits", "framing", ["9" * 30]),
        ("list", "framing", [f"{n}, {n + 1}"]), ("two, unequal", "framing", [str(n), str(n + 7)]),
        ("two, equal", "framing", [str(n), str(n)]), ("empty", "framing", [""]), ("missing", "framing", []),
        ("too short", "framing", [str(n // 2)]), ("too long", "half-close", [str(n + 50)])])
    lines = [f"Content-Length: {v}" for v in lines]
    if r.random() < 0.3:
        what, rule = "both framings, or an odd Transfer-Encoding", "framing"
        lines = r.choice([[f"Content-Length: {n}", "Transfer-Encoding: chunked"],
            ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"], ["Transfer-Encoding: xchunked"],
            ["Transfer-Encoding: \x0bchunked"], ["Transfer-Encoding: chunked, gzip"], ["Transfer-Encoding : chunked"]])
        body = b"0\r\n\r\nGET /health HTTP/1.1\r\nX-Smuggled: 1\r\n\r\n"
    return Case("Content-Length: " + what, rule, [request("POST", CHAT, body, *lines, drop=["Content-Length"]), "shut"])

@category("chunked", 5)
def _(r):
    body = json.dumps({"model": S.model, "messages": []}).encode()
    good = b"%x\r\n%s\r\n" % (len(body), body)
    what, rule, chunks = r.choice([("size zz", "framing", b"zz\r\n" + body), ("negative size", "framing", b"-5\r\n" + body),
        ("size beyond 64 bits", "framing", b"F" * 17 + b"\r\n" + body), ("huge size", "framing", b"7fffffffffffffff\r\n" + body),
        ("no line end after data", "framing", good[:-2] + b"0\r\n\r\n"), ("size too small", "framing", b"3\r\n" + body + b"\r\n0\r\n\r\n"),
        ("1 MB extension", "framing", b"5;" + b"a" * (1 << 20) + b"\r\nhello\r\n0\r\n\r\n"), ("no last chunk", "framing", good),
        ("empty size line", "framing", b"\r\n" + body),
        ("trailers", "framing", good + b"0\r\nHost: evil.com\r\nContent-Length: 99\r\n\r\n"),
        ("one byte a chunk", "refused", b"".join(b"1\r\n%c\r\n" % c for c in body) + b"0\r\n\r\n"),
        ("100,000 trailers", "framing", good + b"0\r\n" + b"X: 1\r\n" * 100_000 + b"\r\n")])
    return Case("chunks: " + what, rule, [request("POST", CHAT, None, "Transfer-Encoding: chunked",
        "Content-Type: application/json"), chunks, "shut"])

@category("cut-body", 3)
def _(r):
    path, body = ask(r)
    whole = request("POST", path, body)
    head = whole.index(b"\r\n\r\n") + 4
    part = whole[:r.randint(1, len(whole) - 1) if r.random() < 0.3 else r.randint(head, len(whole) - 1)]
    how = r.choice(["close", "reset", ""])
    return Case(f"body cut, then {how or 'half-closed'}", "left" if how else "slow", [part] + ([] if how else ["shut"]), leave=how)

@category("slow", 1)
def _(r):      # honest but slow is served, endless is cut; endless ones cost the server's whole time limit each
    kind = r.choice(["honest", "honest", "reader", "head", "body", "chunks", "silent body"])
    path, body = ask(r, paths=CHATS)
    whole = request("POST", path, spoil(body) if kind == "honest" else body)
    drip = lambda data, wait: [x for i in data for x in (bytes([i]), wait)]
    if kind == "honest": return Case("one byte at a time, 4 s", "refused", [whole[:-40]] + drip(whole[-40:], 0.1), path)
    if kind == "reader": return Case("reads after 5 s only", "served", [whole, 5.0], path, patient=True)
    if kind == "head": send = [b"GET /health HTTP/1.1\r\nHost: " + S.name.encode() + b"\r\n"] + drip(b"X-A: " + b"a" * 200, 1.0)
    elif kind == "body": send = [request("POST", CHAT, b"", "Content-Length: 100000")] + drip(b'{"model":"' + b"a" * 200, 1.0)
    elif kind == "chunks": send = [request("POST", CHAT, None, "Transfer-Encoding: chunked",
        "Content-Type: application/json")] + [b"1\r\na\r\n", 1.0] * 200
    else: send = [request("POST", CHAT, b"", "Content-Length: 1000"), HANG + 1]
    return Case(f"endless {kind}", "slow", send)

@category("too-large", 1)
def _(r):
    path = r.choice([CHAT, "/v1/embeddings", "/v1/messages", "/api/chat", "/v1/responses", "/tokenize"])
    kind = r.choice(["sent", "chunked", "declared", "at the limit", "expect"])
    body = b'{"model":"absent"}' + b" " * (LIMIT + (0 if kind == "at the limit" else r.randint(1, 1 << 20)) - 18)
    if kind == "sent": return Case("body over 8 MiB", "too-large", [request("POST", path, body)], path)
    if kind == "at the limit": return Case("body of exactly 8 MiB", "mutated", [request("POST", path, body)], path)
    if kind == "expect": return Case("100-continue for 9 MiB", "declared", [request("POST", path, b"", f"Content-Length: {9 << 20}",
        "Expect: 100-continue"), HANG + 1], path)
    if kind == "declared": return Case("declares 100 GB", "declared", [request("POST", path, b"",
        "Content-Length: 100000000000"), HANG + 1], path)
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    return Case("chunks over 8 MiB", "too-large", [request("POST", path, None, "Transfer-Encoding: chunked",
        "Content-Type: application/json")] + [chunk] * 140 + [b"0\r\n\r\n"], path)

@category("compressed", 2)
def _(r):
    path, body = ask(r, paths=CHATS + ["/v1/responses"])
    plain = spoil(body).encode()
    small = gzip.compress(plain, 1)
    what, coding, data = r.choice([("gzip bomb", "gzip", lambda: bomb("gzip")), ("deflate bomb", "deflate", lambda: bomb("deflate")),
        ("raw deflate bomb", "deflate", lambda: bomb("raw")), ("bomb in a bomb", "gzip, gzip", lambda: gzip.compress(bomb("gzip"))),
        ("bomb just over the limit", "gzip", lambda: bomb("gzip", 9)), ("gzip of a bad request", "gzip", lambda: small),
        ("cut gzip", "gzip", lambda: small[:len(small) // 2]), ("gzip with a wrong checksum", "gzip", lambda: small[:-8] + b"\0" * 8),
        ("gzip and garbage", "gzip", lambda: small + r.randbytes(100)), ("not gzip", "gzip", lambda: plain),
        ("not deflate", "deflate", lambda: r.randbytes(500)), ("gzip unsaid", "identity", lambda: small),
        ("empty gzip", "gzip", lambda: b""), ("gzip of 1,000 members", "gzip", lambda: gzip.compress(b" ") * 1000)])
    return post(what, "bomb", path, data(), f"Content-Encoding: {coding}")

@category("media", 2)
def _(r):
    path, body = ask(r, paths=CHATS + ["/v1/responses"])
    if r.random() < 0.5:
        coding = r.choice(["br", "zstd", "compress", "x-unknown", "gzip, br", "a" * 5000, "br;q=1", "\xff"])
        return post(f"Content-Encoding {coding[:20]}", "media", path, spoil(body), f"Content-Encoding: {coding}")
    kind = r.choice(["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml", "image/png",
        "application/octet-stream", "text/plain; application/json"])
    return post(f"Content-Type {kind}", "ollama-type" if path.startswith("/api/") else "media", path, body, f"Content-Type: {kind}")

@category("paths", 6)
def _(r):
    bad = r.choice(["/v1/models/..%2f..%2fetc/passwd", "/v1/models/%2e%2e/%2e%2e/etc/passwd", "/v1/models/%00", "/..%2f..%2fetc%2fpasswd",
        "/../../../etc/passwd", "//etc/passwd", "/v1//models", "/v1/models/" + "a" * 5000, "/v1/models/%zz", "/v1/models/%",
        "/v1/models?%ff=%fe", "/v1/models;x=1", "/v1/models/..", "/v1/responses/../../etc/passwd", "/%252e%252e/etc/passwd",
        "/v1/models/%c0%ae%c0%ae/", "/v1/models/..\\..\\x", "/v1/models/file:%2f%2f%2fetc%2fpasswd", "/v1/models/%0d%0a", "/nope",
        "/v1/nope", "/v2/chat/completions", "/.env", "/.git/config", "/api/nope", "/v1/chat/completions/x/y", "/" + "a/" * 2000,
        "/v1/models/" + "%41" * 2000, "/v1/models/%E2%80%AE", "/?" + "a=1&" * 5000, "/V1/MODELS", "*", "http://evil.com/health",
        "/v1/models#x"])
    return Case(f"GET {bad[:50]}", "path" if bad[0] == "/" else "odd-http", [request("GET", bad)], "any" if bad[0] == "/" else "")

@category("model-names", 3)
def _(r):
    name = r.choice(["../../../../etc/passwd", "..%2f..%2fetc%2fpasswd", "file:///etc/passwd", "/etc/passwd", S.canary,
        f"{S.model}/../../x", f"{S.model}\0", "\0", "a" * 100_000, "con:latest", "hf.co/evil/model:Q4", "$(touch /nowhere/x)",
        "'; DROP TABLE models; --", "{{7*7}}", "%s%n%x", "\u202e", "\ud800", f"{S.model}:../x", "~", ".", "..", "-", "--help"])
    path = r.choice(list(ASK) + ["/v1/embeddings", "/api/embed", "/api/show", "/tokenize"])
    body = ASK[path]("x") if path in ASK else {"input": "x", "content": "x"}
    return post(f"model {name[:30]!r}", "missing", path, body | {"model": name})

@category("methods", 3)
def _(r):
    method = r.choice(["TRACE", "CONNECT", "OPTIONS", "PUT", "DELETE", "PATCH", "FOO", "HEAD", "PROPFIND", "A" * 200, "M-SEARCH", "SOURCE"])
    path = r.choice([CHAT, "/v1/models", "/health", "/v1/messages", "/api/chat", "/api/tags", "/api/pull", "/api/delete", "/api/create",
        "*", "example.com:443"])
    secret = "X-Secret: 4711-from-the-client"     # TRACE must not say it back
    ordinary = method in ("PUT", "DELETE", "PATCH") and path[0] == "/"
    return Case(f"{method[:10]} {path}", "options", [request(method, path, None, secret)], "any" if ordinary else "",
        bodiless=method == "HEAD",
                check=lambda reply: "echoes the request" if b"4711-from" in reply.body else None)

@category("origin", 5)
def _(r):
    origin = r.choice(["https://evil.com", "null", "http://localhost.evil.com", "http://127.0.0.1.evil.com", "https://127.0.0.1@evil.com",
        "http://evil.com:80", "http://localhost@evil.com", "chrome-extension://abc"])
    def closed(reply):
        allowed = reply.headers.get("access-control-allow-origin")
        return f"allows the foreign origin ({allowed})" if allowed in ("*", origin) else None
    method, path, body = r.choice([("GET", "/v1/models", None), ("GET", "/health", None), ("POST", CHAT, {}), ("POST", "/api/chat", {}),
        ("POST", "/v1/messages", {})])
    kind = r.choice(["host", "origin", "preflight"])
    if kind == "preflight":
        return Case(f"preflight from {origin}", "preflight", [request("OPTIONS", path, None, f"Origin: {origin}",
            "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: content-type",
                    "Access-Control-Request-Private-Network: true")], "", check=closed)
    if kind == "origin": return Case(f"Origin {origin}", "foreign", [request(method, path, body, f"Origin: {origin}")], "any", check=closed)
    rule, host = r.choice([("foreign", "evil.com"), ("foreign", "127.0.0.1.evil.com"), ("foreign", "localhost.evil.com:80"),
        ("foreign", "evil.com:" + str(S.port)), ("foreign-bad", "127.0.0.1@evil.com"), ("foreign-bad", "a b"),
        ("foreign-bad", "evil.com\t" + S.name), ("foreign-bad", S.name + ",evil.com"), ("foreign-bad", "127.0.0.1#.evil.com"),
        ("foreign-bad", "[::1].evil.com"), ("foreign-bad", "a" * 3000)])
    return Case(f"Host {host[:30]}", rule, [request(method, path, body, f"Host: {host}")], "any" if rule == "foreign" else "")

@category("versions", 4)
def _(r):
    path, body = ask(r, paths=CHATS)
    bad = spoil(body)
    key = [f"Authorization: Bearer {S.key}"] if S.key else []
    plain = lambda reply: "chunked reply to HTTP/1.0" if "chunked" in reply.headers.get("transfer-encoding", "") else None
    kind = r.choice(["1.0", "1.0 without Host", "1.0 stream", "expect", "odd expect", "websocket", "h2c", "pipeline", "pipeline",
        "pipeline"])
    if kind == "1.0": return Case("HTTP/1.0", "served", [request("GET", "/health", version="1.0")], "any", check=plain)
    if kind == "1.0 without Host": return Case("HTTP/1.0 without Host", "odd-http", [request("GET", "/health", version="1.0",
        drop=["Host"])], check=plain)
    if kind == "1.0 stream":
        if r.random() < 0.5: path, body, bad = CHAT, None, json.dumps({"model": S.model, "stream": True} | ASK[CHAT]("Say ok."))
        return Case("HTTP/1.0 POST", "either", [request("POST", path, bad, version="1.0")], path, check=plain)
    if kind == "expect":
        whole = request("POST", path, bad, "Expect: 100-continue")
        return Case("Expect: 100-continue", "refused", [whole[:-len(bad)], 2.0, whole[-len(bad):]], path, patient=True)
    if kind == "odd expect": return Case("Expect: 200-ok", "odd-http", [request("POST", path, bad, "Expect: 200-ok")])
    if kind == "websocket":
        return Case("upgrade to websocket", "odd-http", [request("GET", r.choice(["/health",
            "/v1/realtime", CHAT]), None, "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")])
    if kind == "h2c":
        return Case("upgrade to h2c", "odd-http", [request("GET", "/health", None, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c",
            "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA") + b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"])
    count = r.randint(2, 20)
    wanted = [r.choice([200, 200, 400]) for _ in range(count)]
    def run(case):
        """Replies come in the order of the requests; the server may end the connection early, but not mix them up."""
        connection = None
        try:
            connection = Connection()
            connection.transmit(case.send, patient=True)
            for number, status in enumerate(wanted):
                try: reply = connection.reply()
                except Broken as broken:
                    if number and str(broken) == "closed": break
                    raise
                if reply.status not in (status, 429, 503):
                    wrong = f"reply {number + 1} of {count} is {reply.status}, not {status}"
                    return [Result(reply.status, [wrong], case.what, reply.start())]
            return [Result(reply.status, [], case.what, reply.start())]
        except (Broken, OSError) as error:
            return [Result(str(error) if isinstance(error, Broken) else "refused",
                [f"pipeline of {count}: {error}"], case.what, "(no reply)")]
        finally:
            if connection: connection.close()
    return Case("pipeline", "either", [b"".join(request("GET", "/health") if s == 200 else request("POST", path, bad) for s in wanted)],
        run=run)

@category("gone", 2)
def _(r):
    path, body = ask(r, "Count to ten.", CHATS + ["/v1/responses"])
    stream = r.random() < 0.7
    how, after = r.choice(["close", "reset"]), stream and r.random() < 0.7
    if r.random() < 0.15: return Case("request, then half-closed", "half-close", [request("POST", path, body), "shut"], path)
    wait = [] if after else [r.choice([0.0, 0.05, 0.5])]
    return Case(f"client leaves {'in the middle' if after else 'before the answer'} ({how})", "left",
        [request("POST", path, body | {"stream": stream})] + wait, path, patient=True, leave=how, after=after)
