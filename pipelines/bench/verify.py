#!/usr/bin/env python3
"""Whether verify=N raises false alarms: models on videos, each until so many frames were verified.

    verify.py --data DATA [--only NAME,NAME] [--video FILE|FOLDER] [--samples 20] [--seconds 120] [--config KEY=VALUE,...] [--device CPU] [--jobs 1] [--copies 1] [--frame-ms 50]

DATA/models has a folder for each model. Prints a line for each: frames verified, frames that differ, and what the first of these says.
The host's work is a twentieth of a core for each element, so that several models at a time (--jobs) and several elements of a process that share a model (--copies) verify more;
--frame-ms is best about twenty times what an inference takes on the host. An element plays one video after the other, each time with another brightness, contrast, hue and orientation, so that no picture comes twice; without --video it plays
generated patterns. A model that the host cannot compute, or that takes too long, is named. Ends with 1 where a frame differs. The device is assumed to be
right, so that each difference is a false alarm. Needs gst-launch-1.0 with decoders, and GST_PLUGIN_PATH.
"""
import argparse
import concurrent.futures
import random
import re
import subprocess
import sys
import time
from pathlib import Path


def field(line, name):
    found = re.search(name + r'=\((?:guint64|string)\)("(?:[^"\\]|\\.)*"|[^,;]*)', line)
    return found.group(1).strip('"') if found else ""


PATTERNS = ("ball", "snow", "smpte", "zone-plate kx2=20 ky2=20 kt=1", "circular", "spokes", "pinwheel", "checkers-8", "blink", "gamut", "colors")
TURNS = ("none", "horizontal-flip", "rotate-180", "vertical-flip")
ROUND = 1000  # frames of a generated pattern


def source_of(number, options):
    """The words of a source for the round of this number, and of what changes its pictures."""
    values = random.Random(number)
    if options.video:
        files = sorted(options.video.iterdir()) if options.video.is_dir() else [options.video]
        source = f"filesrc location={files[number % len(files)]} ! decodebin ! videoconvert"
    else:
        source = f"videotestsrc num-buffers={ROUND} pattern={PATTERNS[number % len(PATTERNS)]} ! video/x-raw,width=320,height=240"
    if number == 0:
        return source.split()
    return (f"{source} ! videoflip method={values.choice(TURNS)} ! videobalance brightness={values.uniform(-0.3, 0.3):.3f} "
            f"contrast={values.uniform(0.5, 1.5):.3f} hue={values.uniform(-0.4, 0.4):.3f} saturation={values.uniform(0.3, 1.7):.3f}").split()


def chain_of(number, model, options):
    """The words of a source, the element c0, c1, ... that verifies its frames, and a sink."""
    words = [*source_of(number, options), "!", "videoconvert", "!", "identity", f"sleep-time={options.frame_ms * 1000}", "!",
             "clinfer", f"name=c{number % options.copies}", f"model={model}", "model-instance-id=verified", f"device={options.device}",
             "first-tier=false", "verify=1", "stats-interval=500"]
    if options.config:
        words.append(f"config={options.config}")
    return [*words, "!", "fakesink"]


def play_round(model, first, most, end, options):
    """(frames verified, frames that differ, the first difference or problem) of the elements of one process."""
    words = ["gst-launch-1.0", "-m"]
    for copy in range(options.copies):
        words += chain_of(first + copy, model, options)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    checked, differing, said = {}, {}, ""
    for line in process.stdout:
        name = re.search(r'from element "(c\d+)"', line)
        if "clinfer-verify" in line:
            said = said or field(line, "what")
        if name and "clinfer-stats" in line and field(line, "verify-checked"):
            checked[name.group(1)], differing[name.group(1)] = int(field(line, "verify-checked")), int(field(line, "verify-differing"))
            said = said or field(line, "verify-problem")
            if sum(checked.values()) >= most or differing[name.group(1)] or field(line, "verify-problem"):
                break
        if line.startswith("ERROR"):
            said = said or line.strip()
        if time.time() > end:
            said = said or "took too long"
            break
    process.kill()
    process.wait()
    if any(differing.values()):
        said = f"pictures from {first} on: {said}"
    return sum(checked.values()), sum(differing.values()), said


def play(model, options):
    """The same in round after round, until so many frames are verified, or one differs."""
    checked, differing, said, number, idle = 0, 0, "", 0, 0
    end = time.time() + options.seconds
    while checked < options.samples and not said:
        more, differing, said = play_round(model, number, options.samples - checked, end, options)
        checked, number, idle = checked + more, number + options.copies, 0 if more else idle + 1
        # A round may end before its first frame is verified where the machine has other work.
        if idle == 3 and not said:
            said = "three rounds verified nothing"
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
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--frame-ms", type=int, default=50)
    options = parser.parse_args()
    total = [0, 0]
    folders = [folder for folder in sorted((options.data / "models").iterdir())
               if any(name in folder.name for name in options.only.split(","))]
    models = [models[0] for models in (sorted(folder.glob("*.xml")) for folder in folders) if models]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        playing = [(model, pool.submit(play, model, options)) for model in models]
        for model, result in playing:
            checked, differing, said = result.result()
            print(f"{model.parent.name:60} {checked:5} {differing:5}  {said}", flush=True)
            total = [total[0] + checked, total[1] + differing]
    print(f"{total[0]} frames verified, {total[1]} differ")
    return total[1] != 0


if __name__ == "__main__":
    sys.exit(main())
