#!/usr/bin/env python3
"""A compiler that hangs ends no pipeline, and keeps none from ending: `hung_compiler.py MODEL.xml --plugin libgstclinfer.so`.

A copy of the plug-in finds a program in the place of `clinfer-compiler` that never answers. `device-timeout` is a millisecond: it
must count neither the wait for kernels nor the host's inferences meanwhile. After ten seconds the application compiles by itself.
Eight equal cameras get equal shares of the host, which is too slow for them, in that time.
"""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from leave import compilers_left  # noqa: E402

PATIENCE = 120  # seconds until it counts as hung
FRAMES = 20
CAMERAS = 8


def environment(folder):
    """That of an application with the copy, which finds its library where it does in a build folder, and without a cache that has kernels."""
    inherited = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    return {**inherited, "GST_PLUGIN_PATH": f"{folder}/gst", "GST_REGISTRY": f"{folder}/registry.bin",
            "POCL_CACHE_DIR": f"{folder}/pocl", "XDG_CACHE_HOME": folder}


def launch(folder, options):
    command = ["gst-launch-1.0", "videotestsrc", *options, "!", "clpublish", "!", "fakesink"]
    return subprocess.Popen(command, env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def end_of(process):
    """Exit status, the results on frames, and the other lines."""
    try:
        out, _ = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        sys.exit(f"not ended in {PATIENCE} s")
    results = [line for line in out.splitlines() if line.startswith("{")]
    return process.returncode, [json.loads(line) for line in results], "\n".join(set(out.splitlines()) - set(results))


def shares(folder, model):
    """How many frames of each camera the host inferred in some seconds, and what was said."""
    camera = (f"videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=100/1 ! clinfer model={model}"
              f" model-instance-id=cameras cache-dir={folder}/cache ! fakesink sync=false async=false")
    process = subprocess.Popen(["gst-launch-1.0", "-e", "-m", *(" ".join([camera] * CAMERAS)).split()], env=environment(folder),
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    time.sleep(9)
    process.send_signal(signal.SIGINT)
    try:
        said, _ = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        said, _ = process.communicate()
    stats = [line for line in said.splitlines() if "clinfer-stats" in line]
    return [int(re.search(r"inferred=\(guint64\)(\d+)", line)[1]) for line in stats], said[-500:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--plugin", required=True)
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that runs this beside others ignores it
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(f"{folder}/gst")
        os.makedirs(f"{folder}/engine/tools")
        shutil.copy(arguments.plugin, f"{folder}/gst")
        shutil.copy(f"{os.path.dirname(arguments.plugin)}/../engine/libclinfer.so.0", f"{folder}/engine")
        with open(f"{folder}/engine/tools/clinfer-compiler", "w", encoding="utf-8") as program:
            program.write(f"#!/bin/sh\n: >>{folder}/asked\nexec sleep 1000\n")
        os.chmod(f"{folder}/engine/tools/clinfer-compiler", 0o755)
        clinfer = ["!", "clinfer", f"model={arguments.model}", f"cache-dir={folder}/cache", "device-timeout=1"]

        status, lines, said = end_of(launch(folder, [f"num-buffers={FRAMES}", *clinfer]))
        if status != 0 or len(lines) != FRAMES or "ERROR" in said:
            wrong.append(f"the host gave results on {len(lines)} of {FRAMES} frames, status {status}: {said}")
        if not os.path.exists(f"{folder}/asked"):
            wrong.append("no compiler was started")

        shutil.rmtree(f"{folder}/cache", ignore_errors=True)
        status, lines, said = end_of(launch(folder, [f"num-buffers={FRAMES}", *clinfer[:-1], "first-tier=false"]))
        if status != 0 or len(lines) != FRAMES or said.count("it does not answer") != 1:
            wrong.append(f"kernels of the application's own gave results on {len(lines)} of {FRAMES} frames, status {status}: {said}")

        shutil.rmtree(f"{folder}/cache")
        # Other processes may take the cores from some cameras only; who is unfair is so each time.
        tries = []
        for _ in range(3):
            counts, said = shares(folder, arguments.model)
            shutil.rmtree(f"{folder}/cache", ignore_errors=True)
            tries.append(counts)
            if len(counts) == CAMERAS and max(counts) > 1 and min(counts) >= max(counts) / 2 - 2:
                break
        else:
            wrong.append(f"the host's inferences of {CAMERAS} equal cameras: {tries} {said}")

        if os.path.exists(f"{folder}/asked"):
            os.remove(f"{folder}/asked")
        process = launch(folder, [*clinfer, "first-tier=false"])
        until = time.monotonic() + PATIENCE
        while not os.path.exists(f"{folder}/asked") and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(1)  # much longer than device-timeout
        process.send_signal(signal.SIGINT)
        status, lines, said = end_of(process)
        if status != 0 or lines or "ERROR" in said:
            wrong.append(f"while frames waited for kernels: {len(lines)} results, status {status}: {said}")
        if left := compilers_left(folder):
            wrong.append(f"processes {left} are left")
    print("\n".join(wrong) or f"{FRAMES} frames by the host, {FRAMES} without it, and an end, beside a compiler that hangs")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
