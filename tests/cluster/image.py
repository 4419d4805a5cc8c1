#!/usr/bin/env python3
"""The steps of pipelines/cluster/Dockerfile in a fresh root that debootstrap makes, without Docker, and a pipeline in each stage.

    image.py SOURCE [--system debian:12] [--stage NAME]... [--keep FOLDER]      exit status 77 without root, debootstrap, overlayfs or network

Each stage is what the file says: FROM, COPY, RUN, WORKDIR and ENV are read from it, and any other instruction fails. A stage is a layer over
the one that it is from. --stage leaves out others; --keep leaves the roots there, and takes a root that debootstrap has made there before.
"""
import argparse
import contextlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

MIRROR = "http://deb.debian.org/debian"
SUITES = {"debian:12": "bookworm", "debian:13": "trixie"}
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
FRAMES = 30
# The first pipeline of a user of the image: a model beside it, frames, results as lines.
PIPELINE = (f"gst-launch-1.0 -q videotestsrc pattern=ball num-buffers={FRAMES} ! video/x-raw,width=320,height=240,framerate=30/1 "
            "! clinfer model=/models/ball.xml ! cltrack ! clpublish file-path=/tmp/lines ! fakesink")


def skip(why):
    print(f"SKIPPED, {why}")
    sys.exit(77)


def check(what, true):
    if not true:
        sys.exit(f"FAIL {what}")


def read_stages(file, arguments):
    """{name: (what it is from, [(instruction, its text)])}; the last stage may have no name."""
    text = re.sub(r"\\\n", " ", "".join(line for line in file.open() if not line.startswith("#")))
    stages, steps = {}, None
    for line in filter(str.strip, text.splitlines()):
        word, rest = line.strip().split(None, 1)
        rest = re.sub(r"\$(\w+)", lambda found: arguments.get(found[1], found[0]), rest)
        if word == "ARG":
            name, value = rest.split("=", 1)
            arguments.setdefault(name, value)
        elif word == "FROM":
            source, *name = re.fullmatch(r"(\S+)(?: AS (\S+))?", rest).groups()
            steps = []
            stages[name[0] or "the last"] = (source, steps)
        elif word in ("COPY", "RUN", "WORKDIR", "ENV"):
            steps.append((word, rest))
        else:
            sys.exit(f"FAIL {file}: this test does not know {word}")
    return stages


class Root:
    """A root and what a stage has set for the commands in it."""

    def __init__(self, folder, environment=None, workdir="/"):
        self.folder, self.environment, self.workdir = folder, dict(environment or {"PATH": PATH}), workdir

    def over(self, upper, work):
        """A root whose changes are in `upper`, over this one. It is mounted until the process ends."""
        merged = upper.parent / "merged"
        for made in (upper, work, merged):
            made.mkdir(parents=True, exist_ok=True)
        options = f"lowerdir={self.folder},upperdir={upper},workdir={work}"
        if subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, merged], check=False).returncode != 0:
            skip(f"no overlayfs can be mounted in {upper.parent}")
        return Root(merged, self.environment, self.workdir)

    def run(self, command, **how):
        """Runs a command of the shell in this root, in name spaces for mounts and processes of its own, with what Docker mounts there, too."""
        inside = ("set -e; mount -t proc proc proc; mount --rbind /sys sys; mount --rbind /dev dev; mount --bind /etc/resolv.conf etc/resolv.conf; "
                  'exec chroot . /bin/sh -c \'cd "$1" && eval "$2"\' sh "$0" "$1"')
        return subprocess.run(["unshare", "--mount", "--pid", "--fork", "/bin/sh", "-c", inside, self.workdir, command], cwd=self.folder,
                              env=self.environment, check=False, **how)

    def step(self, word, text, source):
        if word == "RUN":
            check(f"RUN {text}", self.run(text, stdin=subprocess.DEVNULL).returncode == 0)
        elif word == "COPY":
            check(f"COPY {text}: this test knows `. FOLDER` only", text.startswith(". /"))
            copy_source(source, self.folder / text.split()[1].lstrip("/"))
        elif word == "WORKDIR":
            (self.folder / text.lstrip("/")).mkdir(parents=True, exist_ok=True)
            self.workdir = text
        else:
            self.environment.update(word.split("=", 1) for word in shlex.split(text))


def copy_source(source, to):
    """What the repository has, as a fresh clone would."""
    names = subprocess.run(["git", "-C", source, "ls-files", "-z"], capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, names):
        if (source / name).exists():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, to / name)


def check_pipeline(stage, root, source):
    """Runs a pipeline with the model that a user mounts, and what WORKDIR is for."""
    models = root.folder / "models"
    models.mkdir(exist_ok=True)
    for name in ("ball.xml", "ball.bin"):
        shutil.copy(source / "pipelines/models" / name, models)
    (root.folder / "tmp/lines").unlink(missing_ok=True)
    done = root.run(PIPELINE + " && python3 -c 'import group; group.gstreamer()'", stdin=subprocess.DEVNULL)
    check(f"{stage}: the pipeline runs", done.returncode == 0)
    lines = (root.folder / "tmp/lines").read_text().splitlines()
    found = sum('"ball"' in line for line in lines)
    check(f"{stage}: {len(lines)} lines of {FRAMES} frames, {found} with a ball", len(lines) == FRAMES and found > FRAMES // 2)
    print(f"{stage}: {FRAMES} frames, a ball in {found} of them", flush=True)


def needs(system):
    if os.geteuid() != 0:
        skip("a fresh root needs root")
    for program in ("debootstrap", "unshare", "chroot", "git"):
        if shutil.which(program) is None:
            skip(f"there is no {program} (pipelines/install long)")
    if system not in SUITES:
        skip(f"debootstrap is told the suites of {', '.join(SUITES)}, not of {system}")
    try:
        urllib.request.urlopen(f"{MIRROR}/dists/{SUITES[system]}/Release", timeout=30).close()
    except OSError as error:
        skip(f"{MIRROR} cannot be reached: {error}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--system")
    parser.add_argument("--stage", action="append")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    arguments = {"SYSTEM": options.system} if options.system else {}
    stages = read_stages(options.source / "pipelines/cluster/Dockerfile", arguments)
    needs(arguments["SYSTEM"])
    # Mounts of this process go with it.
    if os.environ.get("CLINFER_TEST_UNSHARED") is None:
        os.execvpe("unshare", ["unshare", "--mount", sys.executable, *sys.argv], {**os.environ, "CLINFER_TEST_UNSHARED": "1"})
    # The stack unmounts the roots before their folder is removed, also after a failure.
    with tempfile.TemporaryDirectory() as temporary, contextlib.ExitStack() as mounted:
        folder = (options.keep or pathlib.Path(temporary)).resolve()
        fresh = folder / "fresh"
        if not (fresh / "etc/debian_version").exists():
            subprocess.run(["debootstrap", "--variant=minbase", SUITES[arguments["SYSTEM"]], fresh, MIRROR], check=True, stdout=subprocess.DEVNULL)
        roots = {arguments["SYSTEM"]: Root(fresh)}
        for name, (origin, steps) in stages.items():
            if options.stage and name not in options.stage:
                continue
            check(f"{name} is from a stage that ran", origin in roots)
            place = folder / name.replace(" ", "-")
            roots[name] = root = roots[origin].over(place / "upper", place / "work")
            mounted.callback(subprocess.run, ["umount", "--recursive", root.folder], check=True)
            for word, text in steps:
                print(f"{name}: {word} {text}", flush=True)
                root.step(word, text, options.source)
            check_pipeline(name, root, options.source)
    print("ok")


if __name__ == "__main__":
    main()
