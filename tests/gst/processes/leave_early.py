#!/usr/bin/env python3
"""Ends applications that play, without setting the pipeline to NULL: `leave_early.py MODEL.xml --c-program P [--times N]`.

main() returns, exit() or quick_exit() is called, exit() by another thread as well, GStreamer is deinitialised, the library is
closed or main() returns while it compiles, or Python's sys.exit() is called, a random 0 to 400 ms after PLAYING or (--library)
after the driver's library was loaded, with nothing cached and with all cached. Each has to end in a few seconds with status 0.
What an application of plain OpenCL comes to, whose thread builds a kernel meanwhile, is counted as well: drivers may not survive
that by themselves. While their libraries load, exit() on another thread finds destructors of theirs before our handler: that way
may be wrong as often as plain OpenCL is, the others never.
"""
import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from leave import compilers_left, python_with_gi  # noqa: E402

PATIENCE = 60  # seconds until it counts as hung
IN_PYTHON = """
import os, sys, time, gi
gi.require_version("Gst", "1.0")
from gi.repository import Gst
Gst.init(None)
pipeline = Gst.parse_launch(" ".join(sys.argv[2:]))
pipeline.set_state(Gst.State.PLAYING)
until = time.monotonic() + 20
while os.environ.get("LIBRARY", "") not in open("/proc/self/maps").read() and time.monotonic() < until:
    time.sleep(0.001)
time.sleep(float(sys.argv[1]) / 1000)
sys.exit(0)
"""


def end(command, folder):
    """What was wrong with the end, or ""."""
    environment = {**os.environ, "POCL_CACHE_DIR": f"{folder}/pocl", "XDG_CACHE_HOME": folder}
    with open(f"{folder}/out", "w+", encoding="utf-8", errors="replace") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)
            process.wait()
            return f"went on for {PATIENCE} s"
        out.seek(0)
        said = out.read()[-300:]
    if process.returncode != 0:
        return f"ended with {process.returncode}: {said}"
    if left := compilers_left(folder):
        return f"left processes {left}"
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--c-program", required=True)
    parser.add_argument("--times", type=int, default=4, help="of each way")
    parser.add_argument("--library", default="", help="part of its file's name")
    parser.add_argument("--ways", default="return,exit,quick_exit,thread,deinit,dlclose,library,python,opencl,opencl_thread")
    parser.add_argument("--longest", type=float, default=0.4, help="seconds")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    print(f"seed {arguments.seed}")
    os.environ["CLINFER_MODEL"] = arguments.model
    if arguments.library:
        os.environ["LIBRARY"] = arguments.library
    python = python_with_gi()
    wrong = {}
    for way in arguments.ways.split(","):
        if way == "python" and not python:
            continue
        for cold in (True, False):
            with tempfile.TemporaryDirectory() as folder:
                pipeline = ["videotestsrc", "!", "clinfer", f"model={arguments.model}", f"cache-dir={folder}/cache", "!", "fakesink"]
                if not cold:
                    subprocess.run(["gst-launch-1.0", "-q", "videotestsrc", "num-buffers=1", *pipeline[1:]], check=True,
                                   env={**os.environ, "POCL_CACHE_DIR": f"{folder}/pocl", "XDG_CACHE_HOME": folder})
                for _ in range(arguments.times):
                    if cold:
                        subprocess.run(["rm", "-rf", f"{folder}/cache", f"{folder}/pocl"], check=True)
                    delay = str(int(random.uniform(0, arguments.longest * 1000)))
                    command = [python, "-c", IN_PYTHON, delay] if way == "python" else [arguments.c_program, way, delay]
                    why = end(command + pipeline, folder)
                    if why:
                        print(f"{way}, {'cold' if cold else 'warm'}, after {delay} ms: {why}", flush=True)
                        wrong[way] = wrong.get(way, 0) + 1
    print(f"{2 * arguments.times} times each; wrong: {wrong or 'none'}")
    of_drivers = sum(count for way, count in wrong.items() if way.startswith("opencl"))
    ours = sum(count for way, count in wrong.items() if not way.startswith("opencl") and way != "thread")
    return 1 if ours > 0 or wrong.get("thread", 0) > of_drivers else 0


if __name__ == "__main__":
    sys.exit(main())
