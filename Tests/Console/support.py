"""What the tests of the console share: the servers, a tab of the browser that notes what must not happen, and the list of tests."""
import contextlib
import json
import pathlib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

from playwright.sync_api import expect

HERE = pathlib.Path(__file__).parent.resolve()
KEY = "sk-console-test-0001"
tests = []


def test(function=None, *, full=False):
    """Marks a test; one that takes long, or says little that others do not, runs with --full only."""
    if function is None:
        return lambda function: test(function, full=full)
    function.is_full = full
    tests.append(function)
    return function


class Skipped(Exception):
    pass


class Run:
    """What the command line says, and what was made for this run."""
    fm = folder = pictures = failures = pages = plain = equipped = None
    is_full = False


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Served:
    """“fm serve” and the proxy with the scripted models before it. `url` is that of the proxy, `direct` the server's own."""

    def __init__(self, name, *options):
        self.name, self.options, self.ports, self.processes = name, options, (free_port(), free_port()), []
        self.direct, self.url = (f"http://127.0.0.1:{port}/" for port in self.ports)
        self.start()

    def start(self):
        store = Run.folder / f"{self.name}.sqlite"
        with open(Run.folder / f"{self.name}.log", "a") as log:
            server = subprocess.Popen([Run.fm, "serve", "--port", str(self.ports[0]), "-m", "small", "--store", store, "-q", *self.options],
                                      stdout=log, stderr=log)
            self.processes.append(server)
        end = time.time() + 60
        while not self.answers():
            if server.poll() is not None or time.time() > end:
                raise RuntimeError("fm serve did not start: " + (Run.folder / f"{self.name}.log").read_text()[-2000:])
            time.sleep(0.05)
        pages = ["--pages", Run.pages] if Run.pages else []
        proxy = subprocess.Popen([sys.executable, HERE / "scripted.py", "--upstream", self.direct, "--port", str(self.ports[1]), *pages],
                                 stdout=subprocess.PIPE, text=True)
        self.processes.append(proxy)
        proxy.stdout.readline()

    def answers(self):
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(self.direct + "health", timeout=5).status == 200

    def stop(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
        self.processes = []

    def ask(self, path, method="GET", body=None, key=None):
        """The reply of the server itself: status and JSON."""
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(self.direct + path, data, headers, method=method), timeout=120) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)


class Tab:
    """A page that notes everything that must not happen."""

    def __init__(self, browser, width=1280, height=860, scheme="light", context=None, allow=(), site=None, key=None):
        self.site = site or Run.plain
        self.context = context or browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme,
                                                      accept_downloads=True)
        self.context.set_default_timeout(8000)
        self.page = self.context.new_page()
        self.problems, self.foreign, self.allow = [], [], allow
        self.page.on("console", lambda m: m.type in ("error", "warning") and self.note(m.text))
        self.page.on("pageerror", lambda e: self.note(f"exception: {e}"))
        self.page.on("dialog", lambda d: (self.note(f"dialog: {d.message}"), d.dismiss()))
        self.page.on("request", lambda r: r.url.startswith((self.site.url, "data:", "blob:" + self.site.url)) or self.foreign.append(r.url))
        self.page.add_init_script("document.addEventListener('securitypolicyviolation', "
                                  "e => console.error('CSP violation: ' + e.violatedDirective + ' ' + e.blockedURI))")
        if key:
            self.page.add_init_script(f"sessionStorage.setItem('fm-api-key', {json.dumps(key)})")

    def note(self, text):
        if not any(word in text for word in self.allow):
            self.problems.append(text)

    def open(self, path=""):
        self.page.goto(self.site.url + path)
        expect(self.page.locator("#model option").first).to_be_attached()
        return self

    def ask(self, text, model="script:short", wait=True):
        if model:
            self.model(model)
        self.page.fill("#input", text)
        self.page.press("#input", "Enter")
        if wait:
            self.done()

    def model(self, name):
        # Scripted models are not listed.
        self.page.evaluate("""name => { const s = document.querySelector('#model');
          if (![...s.options].some(o => o.value === name)) s.append(new Option(name, name));
          s.value = name; s.dispatchEvent(new Event('change')) }""", name)

    def done(self, count=None):
        """Waits until answers are complete."""
        if count:
            expect(self.page.locator(".message.assistant")).to_have_count(count, timeout=30_000)
        expect(self.page.locator(".message.running")).to_have_count(0, timeout=90_000)
        expect(self.page.locator(".message.assistant").last).to_be_visible()
        self.page.wait_for_timeout(120)

    def panel(self, name):
        if self.page.locator("#inspector").is_hidden():
            self.page.click("#top-end button.icon")
        self.page.get_by_role("tab", name=name).click()

    def chip(self, name):
        self.page.locator(".chips button", has_text=name).click()

    def requests(self, ending="/chat/completions"):
        bodies = []
        self.page.on("request", lambda r: r.url.endswith(ending) and bodies.append(r.post_data_json))
        return bodies

    def shot(self, name):
        if Run.pictures:
            self.page.screenshot(path=Run.pictures / f"{name}.png")

    @property
    def last(self):
        return self.page.locator(".message.assistant").last

    def close(self):
        self.context.close()
        assert not self.problems, self.problems
        assert not self.foreign, self.foreign
