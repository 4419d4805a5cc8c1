#!/usr/bin/env python3
"""A disk that fills after the start: `full_disk.py MODEL.xml --clinfer PROGRAM`.

On a small file system of its own, of which nothing is left once the process is at work, lie in turn: the caches, the file of
clpublish, the journal of its queue, a tuning file. Caches are no reason to end, nor is a journal; a file of results is an error
that says so, and ends in a whole line; a tuning file stays as it was. Needs root for the file system; skipped (77) without.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

PATIENCE = 300  # seconds: kernels are compiled on a busy machine
SOURCE = "videotestsrc pattern=ball num-buffers={frames} is-live=true ! video/x-raw,width=320,height=240,framerate=30/1 ! queue ! clinfer model={model}"


class Disk:
    """A file system of some MiB in a mount namespace of this process."""

    def __init__(self, folder, mib):
        self.folder = folder
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m", "none", folder], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.folder], check=True)

    def fill(self):
        """Leaves no byte."""
        with open(f"{self.folder}/filler", "ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError:
                    pass

    def files(self):
        return sum(len(names) for _, _, names in os.walk(self.folder))


def environment(disk=None):
    """Caches on that disk, else cold ones elsewhere."""
    dropped = ("POCL_CACHE_DIR", "XDG_CACHE_HOME")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    kept["XDG_CACHE_HOME"] = f"{disk.folder}/cache" if disk else tempfile.mkdtemp(dir=os.environ["TMPDIR"])
    return kept


def run(command, disk, is_at_work, env):
    """Starts it, fills the disk once it is at work, and waits for its end: status and what was said."""
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    until = time.monotonic() + PATIENCE
    while not is_at_work() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    disk.fill()
    try:
        said = process.communicate(timeout=PATIENCE)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return "hung", process.communicate()[0]
    return process.returncode, said


def pipeline(model, frames, rest):
    return ["gst-launch-1.0", "--no-fault", *SOURCE.format(model=model, frames=frames).split(), *rest]


def lines_of(path):
    """The lines of JSON, and whether the last one is whole."""
    if not os.path.exists(path):
        return [], False
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return [json.loads(line) for line in text.rstrip("\0").splitlines()], text.endswith("\n")


def caches(options, folder, disk):
    """Some programs are stored, the rest finds no room."""
    out = f"{folder}/lines"
    status, said = run(pipeline(options.model, 150, ["!", "clpublish", f"file-path={out}", "!", "fakesink"]), disk,
                       lambda: disk.files() > options.files, environment(disk))
    lines, whole = lines_of(out)
    found = sum(bool(line.get("objects")) for line in lines)
    if status != 0 or len(lines) != 150 or not whole or found < 100:
        return f"status {status}, {len(lines)} lines, {found} with the ball: {said[-1500:]}"
    # Half a file of the cache is no trap for the next process.
    os.remove(f"{disk.folder}/filler")
    again = subprocess.run(pipeline(options.model, 30, ["!", "fakesink"]), env=environment(disk), capture_output=True, text=True,
                           timeout=PATIENCE, check=False)
    return "" if again.returncode == 0 else f"with room again: status {again.returncode}: {again.stderr[-1500:]}"


def results(options, folder, disk):
    out = f"{disk.folder}/lines"
    status, said = run(pipeline(options.model, 3000, ["!", "clpublish", f"file-path={out}", "!", "fakesink"]), disk,
                       lambda: os.path.exists(out) and os.path.getsize(out) > 2000, environment())
    lines, whole = lines_of(out)
    if status != 1 or "no space left for the results" not in said or not whole or not lines:
        return f"status {status}, {len(lines)} lines, {'whole' if whole else 'half a line at the end'}: {said[-1500:]}"
    return ""


def journal(options, folder, disk):
    """The broker is away; the queue holds more than the disk takes."""
    queue = f"{disk.folder}/queue"
    os.mkdir(queue, 0o700)
    status, said = run(pipeline(options.model, 100, ["!", "clpublish", "method=mqtt", "address=127.0.0.1:9", "topic=t", f"queue-dir={queue}",
                                                     "queue-size=5000", "!", "fakesink"]),
                       disk, lambda: any(entry.stat().st_size > 2000 for entry in os.scandir(queue)), environment())
    if status != 0 or said.count("kept in memory only") != 1:
        return f"status {status}: {said[-1500:]}"
    return ""


def tuning(options, folder, disk):
    file = f"{disk.folder}/tuning.json"
    tune = [options.clinfer, "tune", options.model, "--device", "CPU", "--tuning-file", file, "--seconds", "2"]
    first = subprocess.run(tune, env=environment(), capture_output=True, text=True, timeout=PATIENCE, check=False)
    if first.returncode != 0:
        return f"with room: status {first.returncode}: {first.stderr[-1500:]}"
    with open(file, encoding="utf-8") as old:
        before = old.read()
    env = environment()
    status, said = run([*tune, "--retune"], disk, lambda: bool(os.listdir(env["XDG_CACHE_HOME"])), env)
    with open(file, encoding="utf-8") as new:
        after = new.read()
    json.loads(after)
    if (after == before) != (status != 0) or (status != 0 and "o space left" not in said):
        return f"status {status}, the file is {'the old one' if after == before else 'new'}: {said[-1500:]}"
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--clinfer", required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if "CLINFER_OWN_MOUNTS" not in os.environ:
        again = ["unshare", "--mount", "--propagation", "private"]
        if os.geteuid() != 0 or subprocess.run([*again, "true"], capture_output=True, check=False).returncode != 0:
            print("nothing can be mounted here")
            return 77
        os.environ["CLINFER_OWN_MOUNTS"] = "1"
        os.execvp(again[0], [*again, sys.executable, *sys.argv])
    options.model = os.path.abspath(options.model)
    wrong = 0
    # Caches: full before anything is stored, after the first file, in the middle.
    cases = [("caches, from the start", caches, 40, 0), ("caches, after a file", caches, 40, 1), ("caches, after ten", caches, 40, 10),
             ("results", results, 1, 0), ("journal", journal, 1, 0), ("tuning file", tuning, 4, 0)]
    for name, case, mib, options.files in cases:
        if options.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TMPDIR"] = folder
            os.mkdir(f"{folder}/disk")
            begin = time.monotonic()
            with Disk(f"{folder}/disk", mib) as disk:
                why = case(options, folder, disk)
        print(f"{name}: {why or 'right'} ({time.monotonic() - begin:.1f} s)", flush=True)
        wrong += bool(why)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
