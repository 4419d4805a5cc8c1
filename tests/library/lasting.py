#!/usr/bin/env python3
"""Refuses objects inside of functions that the end of the process destroys: where another thread than the first one calls exit(), threads
that load models may use them afterwards.

    lasting.py LIBRARY.so...
"""
import re
import shutil
import subprocess
import sys

# Names what runs when a library is loaded: destructors that it registers run after our handlers, which wait for threads.
AT_LOAD = re.compile(r"^(_GLOBAL__|__static_initialization|__cxx_global_var_init)|@plt$|^atexit$")


def registering(library):
    """The functions that register a destructor, and how many of those that run at load do."""
    text = subprocess.run(["objdump", "-dC", "--no-show-raw-insn", library], check=True, capture_output=True, text=True).stdout
    function, found, at_load = "", set(), 0
    for line in text.splitlines():
        begins = re.match(r"[0-9a-f]+ <(.*)>:$", line)
        if begins:
            function = begins.group(1)
        elif "__cxa_atexit" in line:
            if AT_LOAD.search(function):
                at_load += 1
            else:
                found.add(function)
    return found, at_load


if not shutil.which("objdump"):
    print("objdump is missing")
    sys.exit(77)
failed = False
for library in sys.argv[1:]:
    found, at_load = registering(library)
    if at_load == 0:
        sys.exit(f"{library} shows no destructor at all: it is not read rightly")
    for function in sorted(found):
        print(f"{library}: {function} has a static object that is destroyed at the end; write `static auto& x = *new T`")
        failed = True
if failed:
    sys.exit(1)
print(f"ok   {len(sys.argv) - 1} libraries")
