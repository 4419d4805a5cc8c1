#!/usr/bin/env python3
"""Compares what the shared library exports with what it is to export, and looks at its soname: the C++ names that clinfer.map lists, and
the functions that clinfer.h declares with CLINFER_API.

    abi.py LIBRARY.so FOLDER      of clinfer.map and clinfer.h
"""
import pathlib
import re
import subprocess
import sys

SONAME = "libclinfer.so.0"


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


library, folder = sys.argv[1], pathlib.Path(sys.argv[2])
listed_in = f"{folder}/clinfer.map and clinfer.h"
cpp, c = (re.sub(r"/\*.*?\*/", "", (folder / name).read_text(encoding="utf-8"), flags=re.S) for name in ("clinfer.map", "clinfer.h"))
functions = set(re.findall(r"^CLINFER_API [^(;]*?(clinfer_\w+)\(", c, flags=re.M))
if len(functions) < 30 or set(re.findall(r"\b(clinfer_\w+)\(", c)) != functions:
    sys.exit("clinfer.h declares functions without CLINFER_API")
listed = set(re.findall(r"^\s*(_Z\w+);", cpp, flags=re.M)) | functions
exported = set()
private = set()
for line in output_of("nm", "-D", "--defined-only", library).splitlines():
    kind, name = line.split()[-2:]
    if kind != "A":  # the name of a version
        name, _, version = name.partition("@@")
        (private if version.startswith("CLINFER_PRIVATE_") else exported).add(name)
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
foreign = [name for name in output_of("c++filt", *private).splitlines() if "clinfer::" not in name]
if foreign:
    sys.exit(f"{library} exports names of others: {', '.join(foreign[:5])}")
print(f"ok   {len(exported)} symbols, {len(private)} for the elements and the program of this version, {soname}")
