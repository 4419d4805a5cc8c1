#!/usr/bin/env python3
"""Measures the records that ship with the engine (tuning/db/) on the present device, the most valuable ones first.

    records.py OUT.json [--clinfer build/engine/tools/clinfer] [--device GPU] [--minutes 20] [--batches 1,8,32]
               [--seconds 20] [--networks yolov8n,...] [--models MODEL.xml...]

Tunes the networks of networks.py, which it writes itself, and the models named, until the minutes are over: networks at the first
batch, networks at the second and models at the first, and so on. Each gets so many seconds. While one is measured on a GPU, the
kernels of the next are compiled. Whatever ends it, OUT.json has all that was measured; called again it goes on (OUT.json.done
says what is through). `tuning/make_db.py tuning/db/NAME.json OUT.json` makes shipped records of it. Needs Python 3.8+.
"""
import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import networks

TUNED = re.compile(r"tuning: .* (\d+) hits, (\d+) misses, .* (\d+) measured, (\d+) taken back(?:, gain ([\d.]+))?")
WRAP_UP = 15  # seconds that a model takes besides measuring, less than which it is not begun


def jobs_of(nets, models, batches):
    """(model, batch), the most valuable first: a round for each batch, models a round later than networks."""
    rounds = [[] for _ in range(len(batches) + 1)]
    for i, batch in enumerate(batches):
        rounds[i] = [(net, batch) for net in nets] + rounds[i]
        rounds[i + 1] += [(model, batch) for model in models]
    return [job for one in rounds for job in one]


class Runner:
    def __init__(self, args, cache):
        self.args, self.cache, self.ahead = args, cache, None

    def start(self, model, batch, *config, nice=0):
        command = [self.args.clinfer, "bench", str(model), "--batch", str(batch), "--seconds", "0.05"]
        command += ["--device", self.args.device] if self.args.device else []
        for setting in (f"CACHE_DIR={self.cache}", "TUNING_DB=NO", "DEVICE_TIMEOUT=0", *config):
            command += ["--config", setting]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                preexec_fn=(lambda: os.nice(nice)) if nice else None)

    def compile_ahead(self, model, batch):
        if self.args.compile_ahead and (self.ahead is None or self.ahead.poll() is not None):
            self.ahead = self.start(model, batch, nice=10)

    def tune(self, model, batch, until):
        """What the program printed; the end of its time is an interruption, after which the file has the results so far."""
        run = self.start(model, batch, "TUNING_MODE=TUNING_CREATE", f"TUNING_FILE={self.args.out}", f"TUNING_SECONDS={self.args.seconds}")
        try:
            return run.communicate(timeout=max(1, until - time.monotonic()))[0], run.returncode
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGINT)
            try:
                return run.communicate(timeout=20)[0], run.returncode
            except subprocess.TimeoutExpired:
                run.kill()
                return run.communicate()[0], run.returncode

    def stop(self):
        if self.ahead is not None and self.ahead.poll() is None:
            self.ahead.kill()
            self.ahead.communicate()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--clinfer", default="build/engine/tools/clinfer")
    parser.add_argument("--device")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--batches", default="1,8,32")
    parser.add_argument("--networks", default=",".join(networks.NETWORKS))
    parser.add_argument("--models", nargs="*", type=Path, default=[])
    args = parser.parse_args()
    args.compile_ahead = not (args.device or "").startswith("CPU")  # compilers would disturb the measuring there
    end = time.monotonic() + 60 * args.minutes

    done_file = args.out.with_name(args.out.name + ".done")
    done = set(done_file.read_text().splitlines()) if done_file.exists() else set()
    with tempfile.TemporaryDirectory() as folder:
        nets = [networks.write(Path(folder), name) for name in args.networks.split(",") if name]
        jobs = jobs_of(nets, args.models, [int(batch) for batch in args.batches.split(",")])
        waiting = [job for job in jobs if f"{job[0].stem} {job[1]}" not in done]
        runner = Runner(args, Path(folder, "cache"))
        failed = 0
        for i, (model, batch) in enumerate(waiting):
            if end - time.monotonic() < args.seconds + WRAP_UP:
                break
            begin = time.monotonic()
            if i + 1 < len(waiting):
                runner.compile_ahead(*waiting[i + 1])
            text, code = runner.tune(model, batch, end)
            found = TUNED.search(text)
            if code == 0 and found:
                hits, misses, measured, back, gain = found.groups()
                print(f"{model.stem} batch {batch}: {measured} of {int(hits) + int(misses)} layers measured, {back} taken back, "
                      f"gain {gain or '1'}, {time.monotonic() - begin:.0f} s", flush=True)
                with done_file.open("a") as out:
                    print(model.stem, batch, file=out)
                done.add(f"{model.stem} {batch}")
            else:
                last = text.strip().splitlines()
                print(f"{model.stem} batch {batch}: exit code {code}: {last[-1] if last else 'no output'}", flush=True)
                failed += end - time.monotonic() > 0
        runner.stop()
    print(f"{len(done)} of {len(jobs)} are through, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
