#!/usr/bin/env python3
"""Prints how long each suite of a test run took, and its slowest tests.

usage: show_times.py RESULTS.xml
"""
import pathlib
import sys
import xml.etree.ElementTree

# The results of the testing library are beside the file that was asked for.
asked = pathlib.Path(sys.argv[1])
files = [file for file in (asked, asked.with_name(asked.stem + "-swift-testing" + asked.suffix)) if file.exists() and file.stat().st_size]
tests = []
for file in files:
    for case in xml.etree.ElementTree.parse(file).getroot().iter("testcase"):
        tests.append((float(case.get("time") or 0), case.get("classname") or "", case.get("name") or ""))
if not tests:
    sys.exit()
suites = {}
for seconds, suite, _ in tests:
    parts = suite.split(".")
    name = ".".join(parts[:2])
    count, total = suites.get(name, (0, 0.0))
    suites[name] = (count + 1, total + seconds)
print(f"\n{len(tests)} tests, {sum(test[0] for test in tests):.0f} s")
for name, (count, total) in sorted(suites.items(), key=lambda item: -item[1][1]):
    if total >= 1:
        print(f"  {total:7.1f} s  {count:4} tests  {name}")
print("slowest:")
for seconds, suite, name in sorted(tests, reverse=True)[:10]:
    print(f"  {seconds:7.1f} s  {suite} {name}"[:150])
