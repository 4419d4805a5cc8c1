#!/usr/bin/env python3
"""gst-launch with few file descriptors finds the ball, or ends with an error: `few_files.py MODEL.xml`."""
import os
import re
import resource
import subprocess
import sys
import tempfile

FRAMES = 5
PATIENCE = 120  # seconds
# GLib, which has no descriptor for the main loop's wake-ups, ends the process.
OF_OTHERS = "Creating pipes for GWakeup"


def run(model, files, cache):
    line = (f"gst-launch-1.0 --no-fault -q videotestsrc pattern=ball num-buffers={FRAMES} ! video/x-raw,width=320,height=240 ! "
            f"clinfer model={model} cache-dir={cache} ! clpublish ! fakesink")

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    try:
        done = subprocess.run(line.split(), env=dict(os.environ, POCL_CACHE_DIR=os.path.join(cache, "pocl")), capture_output=True, text=True,
                              check=False, timeout=PATIENCE, preexec_fn=limit)
    except subprocess.TimeoutExpired:
        return "hang", ""
    if done.returncode == 0:
        found = done.stdout.count('"label":"ball"')
        return ("right" if found == FRAMES else f"{found} frames with a ball"), ""
    if done.returncode > 0 or OF_OTHERS in done.stderr:
        return "error", (re.findall("^ERROR.*", done.stderr, re.MULTILINE) or [done.stderr[-300:]])[0]
    return f"status {done.returncode}", done.stderr[-2000:]


def main():
    model = os.path.abspath(sys.argv[1])
    wrong = 0
    with tempfile.TemporaryDirectory() as cache:
        for files in (1024, *range(30, 5, -1)):
            outcome, text = run(model, files, cache)
            print(f"{files} files: {outcome} {text}", flush=True)
            wrong += outcome != "right" if files == 1024 else outcome not in ("right", "error")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
