#!/usr/bin/env python3
"""Writes a header as it is installed: with the names that the public headers have there.

    public_header.py SOURCE.h INSTALLED.h
"""
import sys

NAMES = {
    "engine/engine.h": "clinfer/engine.h",
    "engine/opencl.h": "clinfer/opencl.h",
    "engine/async.h": "clinfer/async.h",
    "kernels/base/error.h": "clinfer/error.h",
    "kernels/base/no_answer.h": "clinfer/no_answer.h",
    "kernels/base/tensor.h": "clinfer/tensor.h",
    "kernels/frames/frame.h": "clinfer/frame.h",
}

source, installed = sys.argv[1:]
text = open(source, encoding="utf-8").read()
for name, public in NAMES.items():
    text = text.replace(name, public)
for line in text.splitlines():
    if line.startswith('#include "') and not line.startswith('#include "clinfer/'):
        sys.exit(f"{source}: a public header includes one that is not: {line}")
with open(installed, "w", encoding="utf-8") as out:
    out.write(text)
