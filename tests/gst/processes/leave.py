#!/usr/bin/env python3
"""Ends applications while they load a model for the first time: `leave.py MODEL.xml --c-program P --clinfer P [--times N]`.

Nothing is cached, so compilers are at work throughout. gst-launch, an application in C, one in Python and the program
`clinfer` get SIGINT at random times; each has to end in a second, with the status of an orderly end, without a crash,
and without leaving a compiler behind.
"""
import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE = 60  # seconds until it counts as hung
IN_PYTHON = """
import signal, sys, gi
gi.require_version("Gst", "1.0")
from gi.repository import GLib, Gst
Gst.init(None)
pipeline = Gst.parse_launch(" ".join(sys.argv[1:]))
loop = GLib.MainLoop()
GLib.unix_signal_add(GLib.PRIORITY_DEFAULT, signal.SIGINT, loop.quit)
pipeline.set_state(Gst.State.PLAYING)
loop.run()
pipeline.set_state(Gst.State.NULL)
"""


def python_with_gi():
    """A Python that has GStreamer, the system's where this one has not; or None."""
    for python in (sys.executable, "/usr/bin/python3"):
        test = [python, "-c", "import gi; gi.require_version('Gst', '1.0'); from gi.repository import Gst"]
        if os.path.exists(python) and subprocess.run(test, capture_output=True, check=False).returncode == 0:
            return python
    return None


def applications(arguments, folder):
    """Name, command and exit status of an orderly end of each application."""
    pipeline = ["videotestsrc", "!", "clinfer", f"model={arguments.model}", f"cache-dir={folder}/cache", "!", "fakesink"]
    yield "gst-launch", ["gst-launch-1.0", "--no-fault", *pipeline], 0
    yield "C", [arguments.c_program, *pipeline], 0
    if python := python_with_gi():
        yield "Python", [python, "-c", IN_PYTHON, *pipeline], 0
    # Not GStreamer's: an interrupted command ends by the signal, as the shell expects it.
    yield "clinfer", [arguments.clinfer, "bench", arguments.model, "--config", f"CACHE_DIR={folder}/cache"], -signal.SIGINT


def compilers_of(folder):
    """Processes of clinfer that have the folder in their environment."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                mine = folder.encode() in file.read()
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                state = file.read().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if mine and state != "Z":
            found.append(int(pid))
    return found


def compilers_left(folder):
    """Those that are still there after a long time: on a busy machine one may need seconds to see that its application is gone."""
    until = time.monotonic() + PATIENCE
    while (left := compilers_of(folder)) and time.monotonic() < until:
        time.sleep(0.1)
    return left


def a_trifle():
    """Seconds that this machine takes to start and end a process that does nothing: a few hundredths where it is idle."""
    begin = time.monotonic()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.monotonic() - begin


def leave(name, command, expected, delay, folder):
    """What was wrong, or "", and how long the end took."""
    environment = {**os.environ, "POCL_CACHE_DIR": f"{folder}/pocl", "XDG_CACHE_HOME": folder}
    with open(f"{folder}/out", "w+", encoding="utf-8", errors="replace") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            process.wait(delay)
            return f"{name} ended by itself with {process.returncode}", 0
        except subprocess.TimeoutExpired:
            pass
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return f"{name}, stopped after {delay:.2f} s, went on for {PATIENCE} s", PATIENCE
        took = time.monotonic() - begin
        out.seek(0)
        output = out.read()
    wrong = ""
    if process.returncode != expected or "SIGSEGV" in output or "CRITICAL" in output:
        wrong = f"{name}, stopped after {delay:.2f} s, ended with {process.returncode}: {output[-500:]}"
    if left := compilers_left(folder):
        wrong += f" {name}, stopped after {delay:.2f} s, left processes {left}"
    return wrong, took


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--c-program", required=True)
    parser.add_argument("--clinfer", required=True)
    parser.add_argument("--times", type=int, default=12)
    parser.add_argument("--longest", type=float, default=3, help="seconds after which the last one is stopped")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that runs this beside others ignores it
    print(f"seed {arguments.seed}")
    wrong, times = [], []
    for number in range(arguments.times):
        with tempfile.TemporaryDirectory() as folder:
            choices = list(applications(arguments, folder))
            name, command, expected = choices[number % len(choices)]
            # An application that has not got to its signal handler ends by the signal.
            delay = random.uniform(0.6 + 4 * a_trifle(), arguments.longest)
            why, took = leave(name, command, expected, delay, folder)
            slow = took > 1 + 20 * a_trifle()
            if slow and not why:
                why = f"{name}, stopped after {delay:.2f} s, took {took:.2f} s to end"
            times.append(took)
            print(f"{name:10} after {delay:.2f} s: {took:.2f} s {why}", flush=True)
            if why:
                wrong.append(why)
    times.sort()
    print(f"{arguments.times} times; median {times[len(times) // 2]:.2f} s, longest {times[-1]:.2f} s; {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
