#!/usr/bin/env python3
"""Compares what the shared library exports with the list of what it is to export, and looks at its soname.

    abi.py LIBRARY.so LIST.map
"""
import re
import subprocess
import sys

SONAME = "libclinfer.so.0"


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


library, listed_in = sys.argv[1:]
text = re.sub(r"/\*.*?\*/", "", open(listed_in, encoding="utf-8").read(), flags=re.S)
listed = set(re.findall(r"^\s*(_Z\w+);", text, flags=re.M))
exported = set()
for line in output_of("nm", "-D", "--defined-only", "--without-symbol-versions", library).splitlines():
    kind, name = line.split()[-2:]
    if kind != "A":  # the name of the version
        exported.add(name)
failed = False
for what, names in (("is exported and not listed", exported - listed), ("is listed and not exported", listed - exported)):
    for name in sorted(names):
        print(f"{output_of('c++filt', name).strip()} ({name}) {what}")
        failed = True
soname = re.search(r"SONAME\)\s+Library soname: \[(.*)\]", output_of("readelf", "-d", library)).group(1)
if soname != SONAME:
    print(f"the soname is {soname}, not {SONAME}: programs that were built against the former library do not find it")
    failed = True
if not listed or failed:
    sys.exit(f"{library} does not export what {listed_in} lists")
print(f"ok   {len(exported)} symbols, {soname}")
