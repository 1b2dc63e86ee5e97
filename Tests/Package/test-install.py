#!/usr/bin/env python3
"""Tests scripts/install.sh with a server on this machine, also with one that sends wrong things.

    Tests/Package/test-install.py [DIST]    with DIST, also an installation of the archive that scripts/package made
"""
import hashlib
import http.server
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/install.sh"
ARCH = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
failures = passed = 0
served = {}  # path: bytes, or a function of the request handler


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = served.get(self.path)
        if callable(body):
            return body(self)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_):
        pass


def endless(handler):
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(bytes(1 << 16))
    except OSError:
        pass


def cut(data, stated):
    def send(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(stated))
        handler.end_headers()
        handler.wfile.write(data)
        handler.connection.close()
    return send


def slow(handler):
    handler.send_response(200)
    handler.end_headers()
    try:
        for _ in range(200):
            handler.wfile.write(b"x" * 2000)
            handler.wfile.flush()
            time.sleep(0.1)
    except OSError:
        pass


def archive(version, says=None, exits=0, extra=(), mode=0o755):
    """A release whose program is a script, and entries that do not belong there."""
    name = f"fm-{version}-linux-test"
    files = {
        "bin/fm": f"#!/bin/sh\necho {says or version}\nexit {exits}\n".encode(),
        "share/fm/install.sh": SCRIPT.read_bytes(),
        **{f"share/{p}": b"." for p in ("man/man1/fm.1.gz", "bash-completion/completions/fm", "zsh/site-functions/_fm",
                                        "fish/vendor_completions.d/fm.fish", "doc/fm/LICENSE")},
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for path, data in files.items():
            info = tarfile.TarInfo(f"{name}/{path}")
            info.size, info.mode = len(data), mode
            tar.addfile(info, io.BytesIO(data))
        for path, kind, target in extra:
            info = tarfile.TarInfo(path.replace("@", name))
            info.type, info.linkname = kind, target
            tar.addfile(info)
    return f"{name}.tar.gz", buffer.getvalue()


def publish(folder, version, data=None, name=None, **changes):
    """Puts a release into a folder of the server; `changes` of what latest.json says of the archive."""
    made, bytes = archive(version)
    bytes = bytes if data is None else data
    entry = {"name": name or made, "sha256": hashlib.sha256(bytes).hexdigest(), "size": len(bytes), "kind": "archive", "arch": ARCH,
             "glibc": "2.17"} | changes
    served[f"{folder}/{made}"] = bytes
    served[f"{folder}/latest.json"] = json.dumps(
        {"version": version, "files": [dict(entry, kind="wheel", name="x.whl"), entry]}, indent=2).encode()


def contents(folder):
    """All paths below a folder, with what they are."""
    return {str(p.relative_to(folder)): os.readlink(p) if p.is_symlink() else p.is_file() and p.read_bytes() for p in folder.rglob("*")}


def install(*arguments, script=SCRIPT, shell="sh", **environment):
    run = subprocess.run([shell, str(script), *map(str, arguments)], capture_output=True, text=True, timeout=60,
                         env={"PATH": os.environ["PATH"], "HOME": str(home), **environment})
    return run.returncode, run.stdout + run.stderr


def check(name, holds, output=""):
    global failures, passed
    passed, failures = passed + bool(holds), failures + (not holds)
    if not holds:
        print(f"FAILED: {name}\n{output}", file=sys.stderr)


def refuses(name, words, *arguments, **options):
    """The script must say why, change nothing and end with 1, on an empty system and on one with an installation."""
    for prefix in (home / "empty", home / ".local"):
        before = contents(home)
        status, output = install(*arguments, "--prefix", prefix, **options)
        check(f"{name} ({prefix.name}): status {status}", status == 1, output)
        check(f"{name} ({prefix.name}): says “{words}”", words in output and "Nothing was changed" in output, output)
        check(f"{name} ({prefix.name}): changes nothing", contents(home) == before, str(contents(home).keys() ^ before.keys()))


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
site = f"http://127.0.0.1:{server.server_port}"
work = tempfile.TemporaryDirectory()
home = Path(work.name, "home")
home.mkdir()
local = home / ".local"
fm = local / "bin/fm"


def version():
    return subprocess.run([fm], capture_output=True, text=True).stdout.strip()


# The usual way: install, again, update, roll back, a certain version, remove.
(local / "share/man/man1").mkdir(parents=True)
(local / "share/man/man1/other.1").write_text("of another program")
before = contents(home)
publish("", "0.1.0")
publish("/v0.1.0", "0.1.0")
status, output = install(site)
check("installs", status == 0 and version() == "0.1.0", output)
check("tells that PATH lacks the folder", "PATH" in output, output)
check("links the man page", (local / "share/man/man1/fm.1.gz").is_file())
status, output = install(FM_DOWNLOAD_URL=site + "/", PATH=f"{local}/bin:{os.environ['PATH']}")
check("is installed already", status == 0 and "already" in output and "PATH" not in output, output)
publish("", "0.2.0")
status, output = install(script=local / "bin/fm-update")
check("updates itself from the same address", status == 0 and version() == "0.2.0", output)
for expected in ("0.1.0", "0.2.0"):
    status, output = install("--rollback", script=local / "bin/fm-update")
    check(f"rolls back to {expected}", status == 0 and version() == expected, output)
publish("", "0.3.0")
status, output = install(shell="bash", script=local / "bin/fm-update")
check("updates with another shell", status == 0 and version() == "0.3.0", output)
check("keeps two versions", len([p for p in (local / "lib/fm").iterdir() if p.is_dir() and not p.is_symlink()]) == 2)
status, output = install(site, "--version", "v0.1.0")
check("installs a certain version", status == 0 and version() == "0.1.0", output)
status, output = install("--uninstall")
check("removes everything", status == 0 and contents(home) == before, output + str(contents(home).keys() - before.keys()))
status, output = install("--uninstall")
check("has nothing to remove", status == 1 and contents(home) == before, output)
spaced = home / "a folder"
status, output = install(site, "--prefix", spaced)
check("a folder with a space", status == 0 and (spaced / "bin/fm").is_file(), output)
status, output = install("--uninstall", "--prefix", spaced)
check("removes the folder that it made", status == 0 and not spaced.exists(), output)
# Only wget, as on a new Debian.
tools = Path(work.name, "tools")
tools.mkdir()
for folder in os.environ["PATH"].split(":"):
    for tool in ("sh", "wget", "tar", "gzip", "sha256sum", "getconf", *"""awk basename cat cut date df dirname grep head ln ls mkdir mktemp mv
            printf readlink rm rmdir sed sort tail tr uname wc""".split()):
        if os.access(f"{folder}/{tool}", os.X_OK) and not (tools / tool).exists():
            (tools / tool).symlink_to(f"{folder}/{tool}")
if (tools / "wget").exists():
    status, output = install(site, "--prefix", home / "wget", PATH=str(tools))
    check("downloads with wget", status == 0 and (home / "wget/bin/fm").is_file(), output)
    install("--uninstall", "--prefix", home / "wget")
# A program in the place of the link is somebody else's.
fm.parent.mkdir()
fm.write_text("mine")
status, output = install(site)
check("leaves another fm alone", status == 1 and fm.read_text() == "mine" and "bin/fm" in output, output)
fm.unlink()

# What must not happen, before and after an installation.
install(site, "--version", "0.1.0")
LINK, HARD, FILE, DEVICE = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.REGTYPE, tarfile.CHRTYPE
refuses("no address", "FM_DOWNLOAD_URL", "--quiet", HOME=str(home)) if not (local / "lib/fm/source").unlink() else None
refuses("no encryption", "https://", "http://example.invalid/fm")
refuses("another scheme", "https://", "file:///etc")
refuses("no server", "could not be downloaded", "http://127.0.0.1:9")
refuses("no such folder", "could not be downloaded", f"{site}/none")
served["/html/latest.json"] = b"<!DOCTYPE html><html><body>Sign in</body></html>"
refuses("a page instead of the list", "not the list of a release", f"{site}/html")
served["/empty/latest.json"] = b""
refuses("an empty list", "not the list of a release", f"{site}/empty")
served["/endless/latest.json"] = endless
refuses("an endless list", "larger than", f"{site}/endless")
publish("/hash", "0.4.0", sha256="0" * 64)
refuses("a wrong hash", "another SHA-256", f"{site}/hash")
for field, value, words in [("sha256", "xyz", "no valid SHA-256"), ("size", -1, "no valid size"), ("size", 10**13, "more than"),
                            ("size", "1+a[$(touch x)]", "no valid size"), ("name", "../../etc/fm.tar.gz", "no archive of fm"),
                            ("name", "fm-$(touch x).tar.gz", "no archive of fm"), ("arch", "mips", "has no archive"),
                            ("glibc", "9.1", "needs 9.1"), ("size", 10, "larger than stated")]:
    publish("/field", "0.4.0", **{field: value})
    refuses(f"{field} {value}", words, f"{site}/field")
publish("/field", "0.4.0; touch x")
refuses("a wrong version", "no valid version", f"{site}/field")
publish("/v9.9.9", "0.4.0")
refuses("another version than asked for", "not 9.9.9", site, "--version", "9.9.9")
refuses("a version with a path", "is no version", site, "--version", "../x")
name, data = archive("0.4.0")
publish("/cut", "0.4.0")
served[f"/cut/{name}"] = cut(data[:300], len(data))
refuses("a connection that is cut", "could not be downloaded", f"{site}/cut")
served[f"/cut/{name}"] = data[:300]
refuses("an archive that is cut", "incomplete", f"{site}/cut")
publish("/cut", "0.4.0", data=data[:300])
refuses("an archive that was published incomplete", "no archive", f"{site}/cut")
served[f"/cut/{name}"] = endless
refuses("an endless archive", "larger than stated", f"{site}/cut")
for title, entry in {
    "a path out of the folder": ("@/../../evil", FILE, ""), "an absolute path": ("/tmp/evil", FILE, ""),
    "another folder": ("evil", FILE, ""), "a link out": ("@/lib", LINK, "/etc"), "a relative link": ("@/lib", LINK, "../../.."),
    "a hard link": ("@/lib", HARD, "/etc/passwd"), "a device": ("@/null", DEVICE, ""),
}.items():
    publish("/evil", "0.4.0", data=archive("0.4.0", extra=[entry])[1])
    refuses(title, "not unpacked", f"{site}/evil")
publish("/says", "0.4.0", data=archive("0.4.0", says="0.3.9")[1])
refuses("a program of another version", "not 0.4.0", f"{site}/says")
publish("/fails", "0.4.0", data=archive("0.4.0", says="no", exits=9)[1])
refuses("a program that does not run", "does not run", f"{site}/fails")
publish("/modes", "0.4.0", data=archive("0.4.0", mode=0o6777)[1])
install(f"{site}/modes", "--prefix", home / "modes")
check("no rights beyond the usual ones", (home / "modes/bin/fm").stat().st_mode & 0o7777 == 0o755,
      oct((home / "modes/bin/fm").stat().st_mode))
install("--uninstall", "--prefix", home / "modes")

# Ended while it downloads.
publish("/slow", "0.4.0", size=400000)
served[f"/slow/{name}"] = slow
before = contents(home)
process = subprocess.Popen(["sh", SCRIPT, f"{site}/slow"], env={"PATH": os.environ["PATH"], "HOME": str(home)}, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, start_new_session=True)
time.sleep(1)
os.killpg(process.pid, signal.SIGTERM)
check("ended by a signal", process.wait(30) != 0 and contents(home) == before, str(contents(home).keys() ^ before.keys()))

# A script that was cut anywhere does nothing. The last line, with its braces, is the only one that does.
text = SCRIPT.read_bytes().rstrip()
points = {i for i, c in enumerate(text) if c == 10} | set(range(len(text) - 30, len(text))) | set(range(0, len(text), 97))
changed = []
for end in sorted(points):
    subprocess.run(["sh", "-s", "--", site, "--prefix", str(home / "cut")], input=text[:end], env={"PATH": os.environ["PATH"], "HOME": str(home)},
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
    if contents(home) != before:
        changed.append(end)
check(f"cut at {len(points)} places", not changed, str(changed))
check("not cut", subprocess.run(["sh", "-s", "--", site, "--prefix", str(home / "cut")], input=text, capture_output=True,
                                env={"PATH": os.environ["PATH"], "HOME": str(home)}).returncode == 0)
install("--uninstall", "--prefix", home / "cut")
install("--uninstall")

if len(sys.argv) > 1:
    dist = Path(sys.argv[1])
    for file in dist.iterdir():
        served[f"/dist/{file.name}"] = file.read_bytes()
    status, output = install(f"{site}/dist")
    said = subprocess.run([fm, "--version"], capture_output=True, text=True).stdout.strip()
    check("installs the release", status == 0 and said == json.loads((dist / "latest.json").read_text())["version"], output)
    install("--uninstall")
    check("removes the release", not (local / "lib").exists() and not (local / "bin").exists())

work.cleanup()
print(f"{passed} passed, {failures} failed")
sys.exit(bool(failures))
