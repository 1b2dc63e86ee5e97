#!/usr/bin/env python3
"""Writes Sources/Apps/Retrieval/HTMLEntityTable.swift: the named character references of the HTML standard, from Python's html.entities.html5.

    python3 Tests/Tools/html_entities.py
"""
import pathlib
from collections import defaultdict
from html.entities import html5

HEAD = '''// Written by Tests/Tools/html_entities.py.

extension HTMLEntities {
    /// The named character references of the HTML standard: the scalars of each text, and its names. A name with a star is also
    /// known without a semicolon.
    static let table = """
'''

names = defaultdict(list)
for name, value in html5.items():
    if name.endswith(";"):
        names[value].append(name[:-1] + ("*" if name[:-1] in html5 else ""))
assert all(name.endswith(";") or name + ";" in html5 for name in html5)
assert all(name.rstrip(";").isascii() and name.rstrip(";").isalnum() for name in html5)
words = ["+".join(f"{ord(scalar):x}" for scalar in value) + ":" + ",".join(sorted(names[value])) for value in sorted(names)]

lines, line = [], ""
for word in words:
    if len(line) + len(word) > 116:
        lines.append(line)
        line = ""
    line += word + " "
lines.append(line.rstrip())
text = HEAD + "".join(f"        {line}\\\n" for line in lines[:-1]) + f"        {lines[-1]}\n" + '        """\n}\n'
path = pathlib.Path(__file__).resolve().parents[2] / "Sources/Apps/Retrieval/HTMLEntityTable.swift"
path.write_text(text)
print(f"{sum(map(len, names.values()))} names with a semicolon, {len(html5)} in all, {len(words)} values, {len(text)} bytes")
