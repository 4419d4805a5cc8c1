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


def runs_on_a_folder(environment, folder):
    """A video and a folder that holds the model, as users have them: the same script, other arguments."""
    models = pathlib.Path(folder, "models")
    models.mkdir()
    for suffix in (".xml", ".bin"):
        (models / f"ball{suffix}").write_bytes(pathlib.Path(root, f"pipelines/models/ball{suffix}").read_bytes())
    video = pathlib.Path(folder, "ball.avi")
    subprocess.run(["gst-launch-1.0", "-q", "videotestsrc", "pattern=ball", "num-buffers=20", "!", "video/x-raw,format=I420,width=480,height=360",
                    "!", "avimux", "!", "filesink", f"location={video}"], check=True, timeout=60)
    run = subprocess.run([f"{root}/pipelines/quickstart", str(video), str(models)], env=environment, capture_output=True, text=True, timeout=300)
    if "what is missing could not be installed" in run.stdout + run.stderr:
        return "a folder: skipped, the group video is not installed"
    if run.returncode != 0 or "20 frames" not in run.stdout:
        sys.exit(f"on a folder it ended with {run.returncode}: {run.stdout}{run.stderr}")
    return "a folder: right"


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
    print(runs_on_a_folder(dict(environment, CLINFER_OUT=str(pathlib.Path(folder, "out of a folder"))), folder))
