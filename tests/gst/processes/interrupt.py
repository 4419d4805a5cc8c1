#!/usr/bin/env python3
"""Ctrl-C while the element tunes: `interrupt.py MODEL.xml`. gst-launch ends in order, whatever a compiler is doing.

A compiler that outlived what it needs once crashed the process at its end, where gst-launch then waited for a debugger.
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

ROUNDS = 2
PATIENCE = 30  # seconds: a second on an idle machine


def interrupt(model, delay):
    """What was wrong, or ""."""
    with tempfile.TemporaryDirectory() as folder:  # nothing is cached: compilers are at work throughout
        environment = {**os.environ, "XDG_CACHE_HOME": folder, "POCL_CACHE_DIR": folder}
        command = ["gst-launch-1.0", "-m", "videotestsrc", "!", "clinfer", f"model={model}", "tuning-mode=retune",
                   f"tuning-file={folder}/t.json", "config=TUNING_DB=NO", "!", "fakesink"]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            for line in process.stdout:
                if "clinfer-tuning" in line:
                    break
            else:
                return f"it ended before it could be stopped: {process.wait()}"
            time.sleep(delay)
            begin = time.monotonic()
            process.send_signal(signal.SIGINT)
            try:
                output, _ = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                return f"it went on for {PATIENCE} s"
            print(f"after {delay:.1f} s of tuning: ended in {time.monotonic() - begin:.2f} s", flush=True)
            if process.returncode != 0 or "SIGSEGV" in output:
                return f"status {process.returncode}: {output[-500:]}"
            if not os.path.exists(f"{folder}/t.json"):
                return "there is no tuning file"
    return ""


def main():
    wrong = [why for number in range(ROUNDS) if (why := interrupt(sys.argv[1], 1.5 * number))]
    print("\n".join(wrong) or "every round ended in order")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
