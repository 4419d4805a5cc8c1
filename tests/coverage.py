#!/usr/bin/env python3
"""Prints the share of lines that ran for each folder, and the files of which less than 80 % did: `coverage.py SUMMARY.json`.

The summary is gcovr's. tests/coverage_reasons.txt says why a file may stay below: lines `FILES: reason`, with * for any letters.
With --check, which means that all suites ran, a file below without a reason is a failure, as is a reason for no file. (Where what
a test needs is installed, a file with a reason may be above.)
"""
import argparse
import fnmatch
import json
import os
import sys
from collections import defaultdict

ENOUGH = 80.0  # percent
REASONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "coverage_reasons.txt")


def percent(covered, total):
    return 100.0 * covered / total if total else 100.0


def read_reasons(path):
    """Reasons by pattern."""
    with open(path, encoding="utf-8") as text:
        lines = [line.strip() for line in text if line.strip() and not line.startswith("#")]
    return {name.strip(): reason.strip() for name, reason in (line.split(":", 1) for line in lines)}


def reason_for(name, reasons):
    return next((reason for pattern, reason in reasons.items() if reason and fnmatch.fnmatch(name, pattern)), None)


def problems_of(files, reasons):
    """What is wrong with the list of reasons, one line each."""
    low = sorted(name for name, covered, total in files if percent(covered, total) < ENOUGH)
    wrong = [f"{name} has no reason in {os.path.basename(REASONS)}" for name in low if reason_for(name, reasons) is None]
    known = [name for name, _, _ in files]
    return wrong + [f"{pattern} has a reason, but no such file was measured" for pattern in reasons if not fnmatch.filter(known, pattern)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("summary")
    parser.add_argument("--reasons", default=REASONS)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    with open(arguments.summary, encoding="utf-8") as text:
        files = [(f["filename"], f["line_covered"], f["line_total"]) for f in json.load(text)["files"]]
    reasons = read_reasons(arguments.reasons)
    folders = defaultdict(lambda: [0, 0])
    for name, covered, total in files:
        parts = name.split("/")[:-1]
        for depth in (1, 2):
            if len(parts) >= depth:
                folder = folders["/".join(parts[:depth])]
                folder[0] += covered
                folder[1] += total
    print("lines that ran:")
    for name, (covered, total) in sorted(folders.items()):
        print(f"  {percent(covered, total):5.1f} %  {covered:6} of {total:6}  {name}/")
    print(f"less than {ENOUGH:.0f} %:")
    low = sorted((percent(covered, total), name, covered, total) for name, covered, total in files if percent(covered, total) < ENOUGH)
    for share, name, covered, total in low:
        print(f"  {share:5.1f} %  {covered:6} of {total:6}  {name}  ({reason_for(name, reasons) or 'no reason is given'})")
    if not arguments.check:
        return 0
    wrong = problems_of(files, reasons)
    for line in wrong:
        print(f"coverage: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
