#!/usr/bin/env python3
"""Compares the imports of all targets with the table of layers in CONTRIBUTING.md: a target imports only targets further down, or of
its own row, and none that the last column names."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMPORT = re.compile(r"^ *(?:@\w+(?:\([^)\n]*\))? +|(?:internal|package|public|private|fileprivate) +)*import +(?:[a-z]+ +)?(\w+)", re.M)


def names(text):
    return re.findall(r"`(\w+)`", text)


row, forbidden = {}, {}
table = (ROOT / "CONTRIBUTING.md").read_text().split("\n## Layers\n")[1].split("\n## ")[0]
for number, line in enumerate(table.splitlines()):
    cells = [cell.strip() for cell in line.strip("|").split(" | ")]
    if not line.startswith("| `") or len(cells) != 3:
        continue
    for target in names(cells[0]):
        row[target] = number
        others = "everything else" in cells[2]
        forbidden[target] = lambda name, cell=cells[2], others=others: (name in names(cell)) != others
# The folders of Sources say for whom a target is; those of the command are no targets.
folders = {folder.name: folder for folder in (ROOT / "Sources").glob("[A-Z]*/*") if folder.is_dir()}
folders["fm"] = ROOT / "Sources" / "fm"
targets = folders.keys()
problems = [f"{name} is not in the table of layers" for name in sorted(targets - row.keys())]
problems += [f"{name} of the table of layers is no target" for name in sorted(row.keys() - targets)]
for target in sorted(targets & row.keys()):
    for file in sorted(folders[target].rglob("*.swift")):
        for name in sorted(set(IMPORT.findall(file.read_text())) & row.keys()):
            if row[name] < row[target] or forbidden[target](name):
                problems.append(f"{file.relative_to(ROOT)}: {target} must not import {name}")
for problem in problems:
    print("check_layers:", problem, file=sys.stderr)
sys.exit(bool(problems))
