#!/usr/bin/env python3
"""Builds and runs the examples for applications on the bundled model, and checks what they say.

    examples.py EXAMPLES MODEL.xml      CC and CXX, pkg-config and GST_PLUGIN_PATH as in the environment
"""
import os
import shutil
import subprocess
import sys
import tempfile

SOURCE = "videotestsrc pattern=ball num-buffers=3 ! video/x-raw,width=320,height=240"


def output_of(command):
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if run.returncode != 0:
        sys.exit(f"{command[0]} ended with {run.returncode}: {run.stderr.strip()}")
    return run.stdout


def build(source, out, compiler, packages):
    flags = output_of(["pkg-config", "--cflags", "--libs", *packages]).split()
    output_of([*compiler.split(), "-Wall", "-Wextra", "-Werror", source, "-o", out, *flags])


def expect(name, text, *parts):
    for part, times in parts:
        if text.count(part) != times:
            sys.exit(f"{name}: {text.count(part)} times {part!r}, {times} are right, in:\n{text}")
    print(f"ok   {name}")


def gi_python():
    """A Python that has GStreamer's bindings; None without."""
    for python in (sys.executable, shutil.which("python3"), "/usr/bin/python3"):
        if python and subprocess.run([python, "-c", "import gi; gi.require_version('Gst', '1.0'); from gi.repository import Gst"],
                                     capture_output=True).returncode == 0:
            return python
    return None


def main():
    examples, model = sys.argv[1:]
    clinfer = f"clinfer model={model}"
    with tempfile.TemporaryDirectory() as folder:
        c, cpp = os.path.join(folder, "read_objects"), os.path.join(folder, "read_tensors")
        build(f"{examples}/read_objects.c", c, os.environ.get("CC", "cc"), ["gstreamer-1.0", "gstreamer-video-1.0"])
        build(f"{examples}/read_tensors.cpp", cpp, os.environ.get("CXX", "c++") + " -std=c++17", ["gstreamer-1.0"])
        text = output_of([c, f"{SOURCE} ! {clinfer} ! videoconvert ! video/x-raw,format=RGB ! fakesink name=sink"])
        expect("read_objects.c", text, ("object 1 of 0: ball, ", 3), ("detection: ball ", 3))
        text = output_of([cpp, f"{SOURCE} ! {clinfer} post-process=none ! fakesink name=sink"])
        expect("read_tensors.cpp", text, ("detection_out [ 1 1 20 7 ]: 0 1 ", 3))
    python = gi_python()
    if python is None:
        print("skip read_results.py: python3-gst-1.0 is not installed")
        return
    script = f"{examples}/read_results.py"
    expect("read_results.py, objects", output_of([python, script, "test", model]),
           ("frame: ball run", 3), ("object 1 of 0: ball", 3), ("    box 0.4", 3))
    expect("read_results.py, tensors", output_of([python, script, "test", model, "post-process=none"]),
           ("tensor detection_out [1, 1, 20, 7]: 0 1 ", 3))


if __name__ == "__main__":
    main()
