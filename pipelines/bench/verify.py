#!/usr/bin/env python3
"""Whether verify=N raises false alarms: models on a video, each until so many frames were verified.

    verify.py --data DATA [--only NAME] [--video FILE] [--samples 20] [--seconds 120] [--config KEY=VALUE,...] [--device CPU] [--jobs 1] [--frame-ms 50]

DATA/models has a folder for each model. Prints a line for each: frames verified, frames that differ, and what the first of these says.
The host's work is a twentieth of a core for each model, so that several at a time (--jobs) verify more. A model that the host cannot compute, or that takes too long, is named. Ends with 1 where a frame differs. The device is assumed to be
right, so that each difference is a false alarm. Needs gst-launch-1.0 with decoders, and GST_PLUGIN_PATH.
"""
import argparse
import concurrent.futures
import re
import subprocess
import sys
import time
from pathlib import Path


def field(line, name):
    found = re.search(name + r'=\((?:guint64|string)\)("(?:[^"\\]|\\.)*"|[^,;]*)', line)
    return found.group(1).strip('"') if found else ""


def play(model, options):
    """(frames verified, frames that differ, the first difference or problem) of a model."""
    source = f"filesrc location={options.video} ! decodebin" if options.video else "videotestsrc pattern=ball"
    words = ["gst-launch-1.0", "-m", *source.split(), "!", "videoconvert", "!", "identity", f"sleep-time={options.frame_ms * 1000}", "!", "clinfer",
             f"model={model}", f"device={options.device}", "first-tier=false", "verify=1", "stats-interval=500"]
    if options.config:
        words.append(f"config={options.config}")
    process = subprocess.Popen(words + ["!", "fakesink"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    checked, differing, said = 0, 0, ""
    end = time.time() + options.seconds
    for line in process.stdout:
        if "clinfer-verify" in line:
            said = said or field(line, "what")
        if "clinfer-stats" in line and field(line, "verify-checked"):
            checked, differing = int(field(line, "verify-checked")), int(field(line, "verify-differing"))
            said = said or field(line, "verify-problem")
            if checked >= options.samples or differing or field(line, "verify-problem"):
                break
        if line.startswith("ERROR"):
            said = said or line.strip()
        if time.time() > end:
            said = said or "took too long"
            break
    process.kill()
    process.wait()
    return checked, differing, said


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--video", type=Path)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--config", default="")
    parser.add_argument("--device", default="CPU")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--frame-ms", type=int, default=50)
    options = parser.parse_args()
    total = [0, 0]
    folders = [folder for folder in sorted((options.data / "models").iterdir()) if options.only in folder.name]
    models = [models[0] for models in (sorted(folder.glob("*.xml")) for folder in folders) if models]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for model, (checked, differing, said) in zip(models, pool.map(lambda model: play(model, options), models)):
            print(f"{model.parent.name:60} {checked:5} {differing:5}  {said}", flush=True)
            total = [total[0] + checked, total[1] + differing]
    print(f"{total[0]} frames verified, {total[1]} differ")
    return total[1] != 0


if __name__ == "__main__":
    sys.exit(main())
