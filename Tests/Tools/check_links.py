#!/usr/bin/env python3
"""Checks the links of all Markdown files of the repository that lead to its files, and to headings in them; and that names of types
and paths in the documents for people who work on the package are those of its sources."""
import pathlib
import re
import subprocess
import sys
from urllib.parse import unquote

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE = re.compile(r"^(```+|~~~+).*?^\1 *$|`[^`\n]+`", re.M | re.S)
LINK = re.compile(r"\]\(<?([^()\s<>]+)>?(?: +\"[^\"]*\")?\)|^ {0,3}\[[^\]^]+\]: *<?(\S+?)>?$", re.M)


def anchors(text, known={}):
    """The anchors of the headings as GitHub makes them: lowercase, without punctuation, numbered where they are equal."""
    if text not in known:
        known[text], counts = set(), {}
        for title in re.findall(r"^#{1,6} +(.*?)[ #]*$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M):
            title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
            name = re.sub(r"[^\w\- ]", "", title).replace(" ", "-")
            number = counts[name] = counts.get(name, -1) + 1
            known[text].add(f"{name}-{number}" if number else name)
    return known[text]


# In containers the folder often belongs to somebody else, and git refuses to read it unless it is named.
git = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-co", "--exclude-standard"]
tracked = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True)
files = {name for name in tracked.stdout.splitlines() if (ROOT / name).is_file()}
folders = {str(parent) for name in files for parent in pathlib.PurePath(name).parents}
problems = []
for name in sorted(files):
    if not name.endswith(".md"):
        continue
    text = (ROOT / name).read_text()
    for match in LINK.finditer(CODE.sub(lambda code: " " * len(code[0]), text)):
        link = match[1] or match[2]
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (ROOT / name).parent.joinpath(path).resolve() if path else ROOT / name
        relative = str(target.relative_to(ROOT)) if target.is_relative_to(ROOT) else path
        line = text.count("\n", 0, match.start()) + 1
        if relative not in files and relative not in folders:
            problems.append(f"{name}:{line}: {link} does not exist")
        elif anchor and relative.endswith(".md") and anchor not in anchors(target.read_text()):
            problems.append(f"{name}:{line}: {path or name} has no heading #{anchor}")
source = " ".join((ROOT / name).read_text() for name in sorted(files) if name.endswith((".swift", ".h", ".c")) and "/Golden/" not in name)
words = set(re.findall(r"\w+", source))
for name in ["CONTRIBUTING.md", "Documentation/Engine.md", "Documentation/Adding.md"]:
    text = (ROOT / name).read_text()
    code = re.findall(r"`([^`\n]+)`", text) + re.findall(r"^```mermaid\n(.*?)^```", text, re.M | re.S)
    for word in sorted(set(re.findall(r"\b[A-Z]+[a-z]\w*[A-Z]\w*\b", " ".join(code))) - words):
        if not any(word in file for file in files):
            problems.append(f"{name}: {word} is no name in the sources")
    for path in re.findall(r"`((?:Sources|Tests|Examples|Benchmarks|Documentation)/[\w./+-]+)`", text):
        if path.rstrip("/") not in files and path.rstrip("/") not in folders:
            problems.append(f"{name}: {path} does not exist")
for problem in problems:
    print("check_links:", problem, file=sys.stderr)
sys.exit(bool(problems))
