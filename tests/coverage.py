#!/usr/bin/env python3
"""Prints the share of lines that ran for each folder, and the files of which less than 80 % did: `coverage.py SUMMARY.json`.

The summary is gcovr's.
"""
import json
import sys
from collections import defaultdict

ENOUGH = 80.0  # percent


def percent(covered, total):
    return 100.0 * covered / total if total else 100.0


def main():
    with open(sys.argv[1], encoding="utf-8") as text:
        files = [(f["filename"], f["line_covered"], f["line_total"]) for f in json.load(text)["files"]]
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
        print(f"  {share:5.1f} %  {covered:6} of {total:6}  {name}")


if __name__ == "__main__":
    main()
