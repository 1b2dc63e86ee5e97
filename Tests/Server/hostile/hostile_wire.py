"""The client's half of `hostile`: raw connections, what counts as an acceptable end of a case, and the verdict on a reply."""
import argparse, functools, json, re, select, socket, struct, time, urllib.parse, zlib
from dataclasses import dataclass, field

LIMIT = 8 << 20       # the server's body limit, in bytes
CHAT = "/v1/chat/completions"
HANG = 90.0           # no exchange may take longer than this, in seconds
S = argparse.Namespace(model="default", key=None, host="127.0.0.1", port=80, name="127.0.0.1:80", canary="")

# What a case may end with, and why. Statuses are numbers; the words are the connection's fate: "closed" = hung up
# before a reply. 429 and 503 with Retry-After are allowed everywhere: the server is under load during all of this.
RULES = {"bad-http": ({400, 403, 404, 405, 408, 414, 431, 505, "closed"}, "not HTTP: the parser refuses it, with or without body"),
    "odd-http": ({200, 400, 403, 404, 405, 408, 414, 417, 426, 431, "closed"}, "on the edge of HTTP: served or refused, not hung"),
    "framing": ({400, 408, 411, 413, "closed"}, "where the body ends is unclear: serving it would allow smuggling"),
    "slow": ({400, 408, "closed"}, "a client that never finishes is cut off"),
    "too-large": ({413, "closed"}, "over the body limit; the reply may be lost when the server closes under our upload"),
    "declared": ({413, 417}, "the size is known from the header: no byte need be read, so the reply cannot be lost"),
    "bomb": ({400, 413, 415}, "small on the wire, huge when unpacked: the limit holds for what comes out"),
    "media": ({400, 415}, "an encoding or type the server does not read"),
    "ollama-type": ({200, 400, 415}, "curl -d without a header sends a form type, and Ollama's users do just that"),
    "refused": ({400}, "a client's fault, named by a 400"),
    "refused-big": ({400, 413}, "a client's fault; a limit of size or depth may notice first"),
    "either": ({200, 400}, "may be honoured or refused, both are fine"),
    "mutated": ({200, 400, 404}, "one field swapped: honoured if harmless, else a 400; 404 for a model's name"),
    "served": ({200}, "a valid request"), "missing": ({400, 404}, "names something that does not exist"),
    "no-route": ({400, 404, 405, 414}, "no such route or method"),
    "path": ({200, 400, 404, 405, 414}, "200 only where it normalises to a real route; the leak rules see files"),
    "options": ({200, 204, 400, 403, 404, 405, "closed"}, "an odd method: refused, or the plain OPTIONS/HEAD reply"),
    "foreign": ({403}, "DNS rebinding or another site's page"),
    "foreign-bad": ({400, 403, "closed"}, "a foreign Host that is malformed as well"),
    "preflight": ({204, 403, 404, 405}, "a preflight from a foreign site: no status matters, but no allowing header"),
    "no-key": ({401}, "no key, or not a valid one"), "left": ({"left"}, "we hung up: only the server's life after it matters"),
    "half-close": ({200, 400, 408, "closed"}, "one side is closed: answer or take it as gone"),
    "idle": ({200, 408, "closed"}, "idle sockets are kept or cut, and harm nobody"),
    "burst": ({200}, "200 at once: served, or (allowed everywhere) 429/503 with Retry-After")}

# ---------------------------------------------------------------------------------------------- the connection

class Broken(Exception):
    """An exchange that ended without a whole reply; its text is the outcome: closed, cut, garbage or hang."""

@dataclass
class Reply:
    status: int
    head: str
    headers: dict
    body: bytes
    def json(self):
        try: return json.loads(self.body)
        except (ValueError, RecursionError): return None
    def start(self):
        return f"{self.head.splitlines()[0]} | {self.headers.get('x-request-id', '-')} | {self.body[:160]!r}"

class Connection:
    def __init__(self):
        self.socket = socket.create_connection((S.host, S.port), timeout=10)
        self.socket.setblocking(False)
        self.buffer, self.deadline, self.ended = b"", time.monotonic() + HANG, False
    def close(self, reset=False):
        if reset: self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()
    def left(self, most=HANG):
        rest = self.deadline - time.monotonic()
        if rest <= 0: raise Broken("hang")
        return min(rest, most)
    def transmit(self, items, patient=False):
        """Bytes are sent, numbers are waited, "shut" closes our side. Stops early when the server speaks or is gone:
        an early refusal is the right reply to a body that should not be sent. `patient` goes on (100-continue)."""
        for item in items:
            if item == "shut": self.socket.shutdown(socket.SHUT_WR)
            elif isinstance(item, (int, float)):
                if select.select([self.socket], [], [], self.left(item))[0] and not patient: return
            else:
                view = memoryview(item)
                while len(view):
                    readable, writable, _ = select.select([self.socket], [self.socket], [], self.left())
                    if readable and not patient: return
                    try:
                        if writable: view = view[self.socket.send(view[:65536]):]
                    except BlockingIOError: pass
                    except OSError: return            # reset while we send; a reply may still be in the buffer
    def fill(self):
        """Reads once; False at the end of the connection."""
        while not self.ended:
            if not select.select([self.socket], [], [], self.left())[0]: continue
            try: data = self.socket.recv(262144)
            except BlockingIOError: continue
            except OSError: data = b""
            self.buffer += data
            self.ended = not data
            return bool(data)
        return False
    def take(self, count):
        parts, missing = [], count                    # a list, because += on megabytes is quadratic
        while missing > 0:
            if not self.buffer and not self.fill(): raise Broken("cut")
            parts.append(self.buffer[:missing])
            self.buffer = self.buffer[missing:]
            missing -= len(parts[-1])
        return b"".join(parts)
    def until(self, mark):
        while mark not in self.buffer:
            if not self.fill(): raise Broken("cut" if self.buffer else "closed")
        found, self.buffer = self.buffer.split(mark, 1)
        return found
    def reply(self, bodiless=False):
        while True:
            head = self.until(b"\r\n\r\n").decode("latin-1")
            if not re.match(r"HTTP/1\.[01] [1-5]\d\d", head): raise Broken("garbage")
            status = int(head[9:12])
            headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in head.split("\r\n")[1:])}
            if status >= 200 or status == 101: break  # other 1xx replies are only announcements
        body = b""
        if bodiless or status in (101, 204, 304): pass
        elif "chunked" in headers.get("transfer-encoding", ""):
            while True:
                try: size = int(self.until(b"\r\n").split(b";")[0], 16)
                except (ValueError, Broken) as error: raise (error if str(error) == "hang" else Broken("cut"))
                body += self.take(size)
                if self.take(2) != b"\r\n": raise Broken("cut")
                if size == 0: break
        elif headers.get("content-length", "").isdigit(): body = self.take(int(headers["content-length"]))
        else:
            while self.fill(): pass
            body, self.buffer = self.buffer, b""
        return Reply(status, head, headers, body)

# -------------------------------------------------------------------------------------------- cases and verdicts

@dataclass
class Case:
    what: str
    rule: str
    send: list                      # see Connection.transmit
    path: str = ""                  # decides the shape of the error object; "" = none demanded
    patient: bool = False
    leave: str = ""                 # "close" or "reset": hang up instead of reading the reply
    after: bool = False             # ... but only when the reply has begun
    bodiless: bool = False          # the reply to HEAD has no body
    check: object = None            # an extra rule: Reply -> complaint or None
    run: object = None              # a case of several exchanges: Case -> [Result]
    def sent(self): return b"".join(i for i in self.send if isinstance(i, bytes))

@dataclass
class Result:
    outcome: object
    problems: list = field(default_factory=list)
    what: str = ""
    start: str = ""
    generated: bool = False         # this one reached the model

LEAKS = re.compile(rb"(?i:\bfatal(error|\b))|(?i:stack ?trace|backtrace)|Thread \d+ crashed|\.swift:\d+|0x[0-9a-f]{8,}"
                   rb"|\b(FoundationModels|Swift|Foundation|Hummingbird\w*|_?NIO\w*|HTTPTypes)\.\w+|\bNIO[A-Z]\w+"
                   rb"|DecodingError|EncodingError|CodingKeys|codingPath|debugDescription|\bOptional\("
                   rb"|/(home|root|usr|opt|work|tmp|var|Users|build|proc|etc)/[\w.-]+|root:x:0:0")
MODEL_ROUTE = re.compile(r"(/v1)?/(chat/completions|completions|responses|messages)$|/api/(chat|generate)$")

def leaks(case, reply):
    text = (reply.head.encode() + b"\n" + reply.body[:300_000]).replace(b"\\/", b"/")
    for match in LEAKS.finditer(text):
        sent = case.sent()          # what we said ourselves may be said back to us
        once = urllib.parse.unquote_to_bytes(sent)
        if not any(match[0] in echo for echo in (sent, once, urllib.parse.unquote_to_bytes(once), sent.replace(b"\\/", b"/"))):
            return f"leaks {match[0][:60]!r}"

def error_shape(path, status, reply):
    value = reply.json()
    error = value.get("error") if isinstance(value, dict) else None
    if not error: return "no JSON error object"
    if path == "any" or status not in (400, 401, 404, 429): return None   # may come from a layer that knows no route
    if path.startswith("/api/"): return None if isinstance(error, str) else "Ollama's error is a text"
    if not isinstance(error, dict): return "error is not an object"
    message = error.get("message")
    if not (isinstance(message, str) and message and isinstance(error.get("type"), str)): return "error without message or type"
    if re.match(r"(/v1)?/messages", path): return None if value.get("type") == "error" else "Anthropic's error lacks type:error"
    return None if {"param", "code"} <= error.keys() else "error without param or code"

def success_shape(path, reply):
    kind = reply.headers.get("content-type", "")
    if "json" in kind and "ndjson" not in kind: return None if reply.json() is not None else "200 with a body that is not JSON"
    if "event-stream" in kind: lines = [l[6:] for l in reply.body.split(b"\n") if l.startswith(b"data: ")]
    elif "ndjson" in kind: lines = [l for l in reply.body.split(b"\n") if l.strip()]
    else: return None
    if not lines: return "empty stream"
    try: events = [json.loads(l) for l in lines if l.strip() != b"[DONE]"]
    except (ValueError, RecursionError): return "stream with a line that is not JSON"
    if any(e.get("error") or e.get("type") == "response.failed" for e in events if isinstance(e, dict)): return "error inside a 200 stream"
    last = events[-1] if events else {}
    ended = (lines[-1].strip() == b"[DONE]" or last.get("done") is True
             or last.get("type") in ("message_stop", "response.completed", "response.incomplete"))
    return None if ended else "stream without its last event"

def judge(case, outcome, reply):
    """The complaints about one exchange, by the rules that hold for every reply."""
    result = Result(outcome, what=case.what, start=reply.start() if reply else "(no reply)")
    busy = outcome in (429, 503)
    found = []
    if reply and reply.status >= 500 and not busy: found.append("5xx for a client's fault")
    elif not busy and outcome not in RULES[case.rule][0]:
        found.append(f"{outcome}, where {sorted(map(str, RULES[case.rule][0]))} is acceptable: {RULES[case.rule][1]}")
    if reply:
        if busy and "retry-after" not in reply.headers: found.append("no Retry-After")
        if reply.status == 101: found.append("switched protocols")
        if reply.status >= 400 and case.path and not case.bodiless: found.append(error_shape(case.path, reply.status, reply))
        if reply.status == 200 and not case.bodiless: found.append(success_shape(case.path, reply))
        if "x-hostile-injected" in reply.head.lower(): found.append("a header was injected into the reply")
        found.append(leaks(case, reply))
        if case.check and not busy: found.append(case.check(reply))
        result.generated = reply.status == 200 and bool(MODEL_ROUTE.match(case.path))
    result.problems = [f for f in found if f]
    return result

def exchange(case):
    try: connection = Connection()
    except OSError: return "refused", None
    try:
        connection.transmit(case.send, case.patient)
        if case.leave:
            if case.after: connection.fill()
            connection.close(reset=case.leave == "reset")
            return "left", None
        reply = connection.reply(case.bodiless)
        return reply.status, reply
    except Broken as broken: return str(broken), None
    except OSError: return "closed", None
    finally: connection.close()

def perform(case):
    return case.run(case) if case.run else [judge(case, *exchange(case))]

# ------------------------------------------------------------------------------------------- building requests

def request(method, path, body=None, *lines, version="1.1", drop=()):
    """One request as bytes. `lines` are raw header lines; one that repeats a default's name replaces the default."""
    if isinstance(body, (dict, list)): body = json.dumps(body)
    if isinstance(body, str): body = body.encode("utf-8", "surrogatepass")
    fields = {"Host": S.name}
    if S.key: fields["Authorization"] = f"Bearer {S.key}"
    if body is not None: fields |= {"Content-Type": "application/json", "Content-Length": len(body)}
    given = {line.split(":")[0].lower() for line in lines} | {d.lower() for d in drop}
    heads = [f"{k}: {v}" for k, v in fields.items() if k.lower() not in given] + list(lines)
    return "\r\n".join([f"{method} {path} HTTP/{version}", *heads, "", ""]).encode("latin-1") + (body or b"")

def spoil(body): return json.dumps(body | {"messages": 5, "input": 5, "prompt": 5})     # every route refuses this body

def post(what, rule, path, body, *lines, check=None):
    return Case(what, rule, [request("POST", path, body, *lines)], path, check=check)

ASK = {"/v1/chat/completions": lambda c: {"messages": [{"role": "user", "content": c}], "max_tokens": 2},
    "/v1/completions": lambda c: {"prompt": c, "max_tokens": 2},
    "/v1/responses": lambda c: {"input": c, "max_output_tokens": 16, "store": False},
    "/v1/messages": lambda c: {"messages": [{"role": "user", "content": c}], "max_tokens": 2},
    "/api/chat": lambda c: {"messages": [{"role": "user", "content": c}], "stream": False, "options": {"num_predict": 2}},
    "/api/generate": lambda c: {"prompt": c, "stream": False, "options": {"num_predict": 2}}}
CHATS = ["/v1/chat/completions", "/v1/messages", "/api/chat"]

def ask(r, content="Say ok.", paths=tuple(ASK), **more):
    path = r.choice(list(paths))
    return path, {"model": S.model} | ASK[path](content) | more

@functools.cache
def bomb(kind, mebibytes=256):
    """A valid chat request around `mebibytes` of one letter, packed: about a thousandth on the wire."""
    packer = zlib.compressobj(9, zlib.DEFLATED, {"gzip": 31, "deflate": 15, "raw": -15}[kind])
    parts = [packer.compress(b'{"model":%s,"max_tokens":1,"messages":[{"role":"user","content":"' % json.dumps(S.model).encode())]
    parts += [packer.compress(b"a" * (1 << 20)) for _ in range(mebibytes)]
    return b"".join(parts) + packer.compress(b'"}]}') + packer.flush()

CATEGORIES = {}       # name: (share of the requests, function from a random source to a Case)
def category(name, share):
    def note(make): CATEGORIES[name] = (share, make)
    return note
