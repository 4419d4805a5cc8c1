#!/usr/bin/env python3
"""What kernel tuning brings: tunes models, and prints the table of layers and of whole networks, tuned over untuned.

    tuning_gain.py --clinfer build/engine/tools/clinfer MODEL.xml... [--batch 1,8] [--device D] [--seconds S] [--tuning-file F]
                   [--exhaustive] [--keep FOLDER] [--markdown FILE]

Each model is tuned at each batch by `clinfer tune`, which runs the untuned network (shipped records off) and the tuned one by
turns in one process; the gain is the median over the rounds. --exhaustive measures all points besides, into a file of its own, and
prints how near the search came. All records end up in the tuning file (a new one unless --tuning-file names one that is there);
it can become a file of tuning/db/. --seconds limits each model's run. --keep keeps what each run printed. Needs Python 3.8+.
"""
import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WHOLE = re.compile(r"whole network on (?P<device>.*): untuned (?P<untuned>[\d.]+) ms, tuned (?P<tuned>[\d.]+) ms, gain (?P<gain>[\d.]+) "
                   r"\(quartiles (?P<low>[\d.]+) to (?P<high>[\d.]+)")


def tune(args, model, batch, tuning_file, exhaustive):
    """Runs `clinfer tune`; returns its numbers and the seconds it took."""
    command = [args.clinfer, "tune", str(model), "--tuning-file", str(tuning_file), "--batch", str(batch), "--config", "TUNING_DB=NO"]
    if args.device:
        command += ["--device", args.device]
    if args.seconds and not exhaustive:
        command += ["--seconds", str(args.seconds)]
    if exhaustive:
        command += ["--exhaustive"]
    begin = time.monotonic()
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    seconds = time.monotonic() - begin
    if args.keep:
        name = f"{model.stem}-batch{batch}{'-exhaustive' if exhaustive else ''}.txt"
        (args.keep / name).write_text(run.stdout + run.stderr)
    found = WHOLE.search(run.stdout)
    if run.returncode != 0 or not found:
        error = run.stderr.strip().splitlines()
        print(f"{model.stem} batch {batch}: failed: {error[-1] if error else 'no result'}", file=sys.stderr)
        return None
    print(f"== {model.stem}, batch {batch}\n{run.stdout}", flush=True)
    return {name: value if name == "device" else float(value) for name, value in found.groupdict().items()} | {"seconds": seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL.xml")
    parser.add_argument("--clinfer", default="build/engine/tools/clinfer")
    parser.add_argument("--device")
    parser.add_argument("--batch", default="1,8")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--tuning-file", type=Path)
    parser.add_argument("--exhaustive", action="store_true")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--markdown", type=Path)
    args = parser.parse_args()
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
    folder = tempfile.TemporaryDirectory()
    tuning_file = args.tuning_file or Path(folder.name, "tuning.json")
    all_points = Path(folder.name, "exhaustive.json")

    lines = ["| model | batch | untuned ms | tuned ms | gain | quartiles | tuning s |" + (" exhaustive gain | reached |" if args.exhaustive else ""),
             "| --- | --- | --- | --- | --- | --- | --- |" + (" --- | --- |" if args.exhaustive else "")]
    gains, device, failed = {}, "", 0
    for batch in map(int, args.batch.split(",")):
        for model in args.models:
            result = tune(args, model, batch, tuning_file, False)
            if result is None:
                failed += 1
                continue
            device = result["device"]
            gains.setdefault(batch, []).append(result["gain"])
            line = (f"| {model.stem} | {batch} | {result['untuned']:.3f} | {result['tuned']:.3f} | {result['gain']:.3f} | "
                    f"{result['low']:.3f} to {result['high']:.3f} | {result['seconds']:.0f} |")
            if args.exhaustive:
                best = tune(args, model, batch, all_points, True)
                line += f" {best['gain']:.3f} | {result['gain'] / best['gain']:.3f} |" if best else " failed | |"
            lines.append(line)
    text = f"Tuned over untuned on {device}, shipped records off:\n\n" + "\n".join(lines) + "\n\n"
    for batch, values in gains.items():
        text += f"median at batch {batch}: {statistics.median(values):.3f} of {len(values)} models\n"
    print(text)
    if args.markdown:
        args.markdown.write_text(text)
    if not args.tuning_file:
        print(tuning_file.read_text() if tuning_file.exists() else "", end="")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
