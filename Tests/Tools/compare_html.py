#!/usr/bin/env python3
"""Compares the texts in Tests/RetrievalTests/HTMLPages.swift with those of an independent parser, html5lib, which builds trees as browsers
do. Prints the pages whose texts differ.

    python3 -m venv .build/html && .build/html/bin/pip install html5lib
    .build/html/bin/python Tests/Tools/compare_html.py
"""
import pathlib
import re
import sys
import textwrap

import html5lib

XHTML = "{http://www.w3.org/1999/xhtml}"
HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
BLOCKS = HEADINGS | set("""address article aside blockquote caption center dd details dialog dir div dl dt fieldset figcaption figure
    footer form header hgroup hr legend li listing main menu nav ol optgroup option p plaintext pre search section summary table tbody
    td tfoot th thead tr ul xmp""".split())
HIDDEN = set("""annotation annotation-xml audio canvas datalist head iframe noembed noframes noscript script style svg template title
    video""".split())
SPACED = {"button", "meter", "object", "progress", "select", "textarea"}
PREFORMATTED = {"listing", "plaintext", "pre", "textarea", "xmp"}


def name(node):
    return node.tag.rsplit("}", 1)[-1].lower() if isinstance(node.tag, str) else ""


def is_hidden(node):
    if not name(node) or name(node) in HIDDEN:
        return True
    style = {}
    for part in node.get("style", "").lower().replace("!important", "").split(";"):
        if ":" in part:
            key, value = part.split(":", 1)
            style[key.strip()] = value.strip()
    return (node.get("hidden", "until-found").lower() != "until-found" or node.get("aria-hidden", "").lower() == "true"
            or style.get("display") == "none" or style.get("visibility") in ("hidden", "collapse")
            or name(node) == "dialog" and node.get("open") is None)


def pieces(node, keeps):
    """The shown texts and boundaries below a node: strings, "<" and ">" of elements, and spaces."""
    if node.text:
        yield ("text", node.text, keeps)
    for child in node:
        kind = name(child)
        if not is_hidden(child):
            html = child.tag.startswith(XHTML)
            if html and kind == "br":
                yield ("br", child, keeps)
            elif html and (kind == "img" or kind == "input" and child.get("type", "").lower() == "image"):
                yield ("space", None, keeps)
                yield ("text", child.get("alt", ""), False)
                yield ("space", None, keeps)
            elif html and kind == "input":
                if child.get("type", "").lower() != "hidden":
                    yield ("space", None, keeps)
            else:
                yield ("start", child if html else None, keeps)
                yield from pieces(child, keeps or html and kind in PREFORMATTED)
                yield ("end", child if html else None, keeps)
        if child.tail:
            yield ("text", child.tail, keeps)


def cleaned(text):
    return text.replace("\u00a0", " ").replace("\u00ad", "")


def line(node):
    """The text of an element in one line."""
    text = ""
    for kind, value, _ in pieces(node, False):
        if kind == "text":
            text += cleaned(value)
        elif kind in ("br", "space") or value is not None and name(value) in BLOCKS | SPACED:
            text += " "
    return " ".join(re.split(r"[ \t\n\r\f]+", text)).strip()


def shown(node, names):
    """Whether an element with one of these names is shown below a node."""
    return any(kind == "start" and value is not None and name(value) in names for kind, value, _ in pieces(node, False))


class Page:
    def __init__(self, page):
        self.title, self.headings, self.blocks, self.text, self.has_text = None, [], [], "", True
        tree = html5lib.HTMLParser(namespaceHTMLElements=True).parse(page, scripting=True)
        titles = [" ".join("".join(node.itertext()).split()) for node in tree.iter(XHTML + "title")]
        self.walk(tree)
        self.flush()
        self.end_heading()
        self.title = next((title for title in titles if title), self.title)

    def flush(self):
        text = self.text.rstrip(" \t\n")
        text = re.sub(r"\A([ \t]*\n)+", "", text)
        self.text = ""
        if text.strip():
            self.add(text)

    def add(self, text):
        self.has_text = True
        self.blocks.append(([text for _, text in self.headings], text))

    def end_heading(self):
        if not self.has_text:
            self.blocks.append(([text for _, text in self.headings[:-1]], self.headings[-1][1]))
        self.has_text = True

    def walk(self, root):
        skipped = None
        for kind, value, keeps in pieces(root, False):
            element = name(value) if kind in ("start", "end") and value is not None else ""
            if skipped is not None:
                if kind == "end" and value is skipped:
                    skipped = None
                continue
            if kind == "text":
                text = cleaned(value)
                if not keeps:
                    text = re.sub(r"[ \t\n\r\f]+", " ", text)
                    if self.text[-1:] in ("", " ", "\n"):
                        text = text.lstrip(" ")
                self.text += text
            elif kind == "space" or element in SPACED:
                if self.text[-1:] not in ("", " ", "\n"):
                    self.text += " "
            elif kind == "br":
                if self.text:
                    self.text = (self.text if keeps else self.text.removesuffix(" ")) + "\n"
            elif element in BLOCKS:
                self.flush()
            if kind != "start":
                continue
            if element in HEADINGS:
                skipped, level, text = value, int(element[1]), line(value)
                if text:
                    if self.headings and self.headings[-1][0] >= level:
                        self.end_heading()
                    self.headings = [heading for heading in self.headings if heading[0] < level] + [(level, text)]
                    self.has_text = False
                    self.title = self.title or text
            elif element == "tr" and not shown(value, HEADINGS | PREFORMATTED - {"textarea"} | {"table"}):
                if any(value in list(part) for table in root.iter(XHTML + "table") if table.get("role") in ("presentation", "none")
                       for part in table):
                    continue
                skipped = value
                cells = [line(cell) for cell in value if name(cell) in ("td", "th") and not is_hidden(cell)]
                if len(cells) > 1 and any(cells):
                    self.add(" ".join("| " + cell if cell else "|" for cell in cells) + " |")
                elif any(cells):
                    self.add(cells[0])

    def dump(self):
        lines, headings = [f"title: {self.title}"] if self.title else [], []
        for above, text in self.blocks:
            if above != headings:
                lines.append(f"[{' › '.join(above)}]")
                headings = above
            lines.append(text.replace("\n", "⏎"))
        return "\n".join(lines)


def literal(text):
    if text.startswith("#"):
        return textwrap.dedent(re.fullmatch(r'#"""\n(.*?)\n?[ ]*"""#', text, re.S).group(1))
    escapes = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}
    return re.sub(r"\\(u\{([0-9A-Fa-f]+)\}|.)", lambda m: chr(int(m[2], 16)) if m[2] else escapes[m[1]], text[1:-1])


def main():
    source = (pathlib.Path(__file__).resolve().parents[1] / "RetrievalTests/HTMLPages.swift").read_text()
    string = r'(#""".*?"""#|"(?:[^"\\\n]|\\.)*")'
    pages = re.findall(r"HTMLPage\(\s*" + string + r",\s*" + string + r",\s*" + string + r"\)", source, re.S)
    different = 0
    for title, page, text in (map(literal, page) for page in pages):
        found = Page(page).dump()
        if found != text:
            different += 1
            print(f"{title}:\n  expected\n{textwrap.indent(text, '    ')}\n  html5lib\n{textwrap.indent(found, '    ')}")
    print(f"{len(pages)} pages, {different} differ")
    sys.exit(different > 0 or not pages)


if __name__ == "__main__":
    main()
