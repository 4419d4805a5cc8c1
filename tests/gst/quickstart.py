#!/usr/bin/env python3
"""Runs pipelines/quickstart, the first command of the README, on a build folder: it finds the ball in its test video.

    quickstart.py ROOT BUILD      OCL_ICD_VENDORS as in the environment; 77 where packages that it wants are missing
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

root, build = sys.argv[1:3]
with tempfile.TemporaryDirectory() as folder:
    out = pathlib.Path(folder, "out")
    no_apt = pathlib.Path(folder, "bin/apt-get")  # a test installs nothing
    no_apt.parent.mkdir()
    no_apt.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    no_apt.chmod(0o755)
    environment = dict(os.environ, CLINFER_BUILD=build, CLINFER_OUT=str(out), PATH=f"{no_apt.parent}:{os.environ['PATH']}")
    run = subprocess.run([f"{root}/pipelines/quickstart"], env=environment, capture_output=True, text=True, timeout=850)
    text = run.stdout + run.stderr
    if "what is missing could not be installed" in text:
        print(text)
        sys.exit(77)
    if run.returncode != 0:
        sys.exit(f"ended with {run.returncode}: {text}")
    lines = [json.loads(line) for line in (out / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    found = sum(any(o["detection"].get("label") == "ball" for o in line.get("objects", [])) for line in lines)
    if len(lines) != 300 or found < 290 or not (out / "annotated.webm").stat().st_size:
        sys.exit(f"{len(lines)} lines, {found} with the ball: {text}")
    print(text)
