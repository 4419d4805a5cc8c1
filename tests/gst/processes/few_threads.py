#!/usr/bin/env python3
"""gst-launch with few threads finds the ball, or ends with an error: `few_threads.py MODEL.xml LIBRARY`.

LIBRARY is preloaded and refuses threads beyond FAIL_THREADS. GStreamer, GLib and PoCL need five between them: with fewer, GLib ends the
process, and GStreamer 1.22 waits for ever for a source whose thread it could not start. That is allowed below five only. With more, GLib
and PoCL may still end the process, each with a message of its own, where others were faster to take the threads that they need.
"""
import os
import re
import subprocess
import sys
import tempfile

FRAMES = 5
OF_OTHERS = 5  # threads
PATIENCE, SHORT_PATIENCE = 120, 15  # seconds


def run(model, library, threads, cache):
    line = (f"gst-launch-1.0 --no-fault -q videotestsrc pattern=ball num-buffers={FRAMES} ! video/x-raw,width=320,height=240 ! "
            f"clinfer model={model} cache-dir={cache} ! clpublish ! fakesink")
    environment = dict(os.environ, POCL_CACHE_DIR=os.path.join(cache, "pocl"), POCL_MAX_PTHREAD_COUNT="2")
    if threads is not None:
        environment.update(LD_PRELOAD=library, FAIL_THREADS=str(threads))
    try:
        done = subprocess.run(line.split(), env=environment, capture_output=True, text=True, check=False,
                              timeout=SHORT_PATIENCE if threads is not None and threads < OF_OTHERS else PATIENCE)
    except subprocess.TimeoutExpired:
        return "hang", ""
    found = done.stdout.count('"label":"ball"')
    error = re.search("^ERROR: from element .*", done.stderr, re.MULTILINE)
    if done.returncode == 0:
        return ("right" if found == FRAMES else f"{found} frames with a ball"), ""
    if done.returncode > 0 and error:
        return "error", error.group()
    return f"status {done.returncode}", done.stderr[-2000:]


def main():
    model, library = map(os.path.abspath, sys.argv[1:3])
    wrong = 0
    with tempfile.TemporaryDirectory() as cache:
        if run(model, library, None, cache)[0] != "right":
            print("it does not work with all threads")
            return 1
        for threads in range(21):
            outcome, text = run(model, library, threads, cache)
            of_others = (threads < OF_OTHERS and (outcome == "hang" or outcome.startswith("status -"))
                         or outcome.startswith("status -") and re.search("PTHREAD ERROR in pthread_scheduler_init|"
                                                                         "GLib-ERROR .*: Error creating thread", text))
            print(f"{threads} threads: {outcome} {text}", flush=True)
            wrong += outcome not in ("right", "error") and not of_others
        wrong += outcome != "right"  # the most threads of these are enough
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
