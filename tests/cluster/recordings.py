#!/usr/bin/env python3
"""Recordings on three nodes of Ray, of which two are killed: the data set has each frame of each recording once, in order.

    recordings.py RECORDINGS.PY MODEL.xml [--count 24]      GST_PLUGIN_PATH as in the environment; exit status 77 without ray

Before that in one process: long files by segments have the frames that they have as wholes, what is no video is told, shares are disjoint.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from site_of_nodes import PATIENCE, Site, check, needs, wait_until

FRAMES = 10


def make(path, frames, encoder="jpegenc ! matroskamux"):
    subprocess.run(["gst-launch-1.0", "-q", *(f"videotestsrc pattern=ball num-buffers={frames} ! video/x-raw,width=96,height=72,framerate=25/1 "
                                              f"! videoconvert ! {encoder} ! filesink location={path}").split()], check=True, timeout=120)


def stamps(path):
    """The times of a recording's lines; fails where their numbers do not count from 0."""
    lines = [json.loads(line) for line in path.open()]
    check(f"{path.name} counts its frames", [line["frame"] for line in lines] == list(range(len(lines))))
    return [line["timestamp"] for line in lines]


def one_process(script, folder, launch):
    def run(out, *words, status=0):
        done = subprocess.run([sys.executable, script, launch, out, *map(str, words), "--here"], capture_output=True, text=True, timeout=600)
        check(f"{words} ends with {done.returncode}: {done.stderr}", done.returncode == status)
        return done.stderr

    videos = folder / "long"
    videos.mkdir()
    libav = subprocess.run(["gst-inspect-1.0", "avenc_mpeg4"], capture_output=True, check=False).returncode == 0
    made = {"b-frames.mp4": (300, "avenc_mpeg4 max-bframes=2 gop-size=25 ! mp4mux" if libav else "jpegenc ! mp4mux"),
            "vp8.webm": (250, "vp8enc keyframe-max-dist=40 deadline=1 ! webmmux"), "whole.avi": (200, "jpegenc ! avimux")}
    for name, (frames, encoder) in made.items():
        make(videos / name, frames, encoder)
    run(folder / "whole", videos, "--segment", 0)
    run(folder / "cut", videos, "--segment", 3)
    for name, (frames, _) in made.items():
        whole, cut = (stamps(folder / out / f"{name}.jsonl") for out in ("whole", "cut"))
        check(f"{name} has {len(whole)} frames, {frames} are right", len(whole) == frames)
        check(f"{name} in segments has {len(cut)} frames, the whole has {frames}", whole == cut)
    check("parts are gone", not (folder / "cut/.parts").exists())
    text = run(folder / "cut", videos)
    check("a second run finds all done: " + text, "3 of 3 recordings, 0 failed" in text)
    (videos / "broken.mp4").write_bytes(b"no video" * 100)
    text = run(folder / "cut", videos, "--retries", 0, status=1)
    check("a file that is no video is told: " + text, "broken.mp4: " in text and "3 of 4 recordings, 1 failed" in text)
    check("and stands in failed.jsonl", [json.loads(line)["recording"] for line in (folder / "cut/failed.jsonl").open()] == ["broken.mp4"])
    (videos / "broken.mp4").unlink()
    listed = folder / "list.txt"
    listed.write_text(f"{videos}/vp8.webm\n{videos}/b-frames.mp4\n{videos}/whole.avi\n")
    for index in (0, 1):
        run(folder / "shares", f"@{listed}", "--segment", 3, "--share", f"{index}/2")
        check("a share is every second recording", len(list((folder / "shares").glob("*.jsonl"))) == 2 + index)
    for words, why in (([folder / "nowhere"], "is no file, folder or URI"), ([folder / "empty"], "there are no videos"),
                       ([videos, "--share", "2/2"], "is no INDEX/COUNT")):
        (folder / "empty").mkdir(exist_ok=True)
        done = subprocess.run([sys.executable, script, launch, folder / "none", *map(str, words), "--here"], capture_output=True, text=True, timeout=60)
        check(f"{words} is refused: {done.stderr}", done.returncode in (1, 2) and why in done.stderr)
    print("ok   one process")


def on_ray(script, folder, launch, count):
    videos = folder / "short"
    videos.mkdir()
    make(videos / "0.mkv", FRAMES)
    for index in range(1, count):
        inside = videos / f"day-{index % 3}"
        inside.mkdir(exist_ok=True)
        shutil.copy(videos / "0.mkv", inside / f"{index}.mkv")
    make(videos / "long.mkv", 500)
    out = folder / "out"
    site = Site(["north", "south", "west"], {}, cpus=1)
    try:
        words = (script, launch, out, videos, "--segment", 4, "--retries", 8)
        job = site.run(*words)

        def done():
            return len(list(out.rglob("*.jsonl"))) if out.exists() else 0

        for name, share in (("north", 0.2), ("south", 0.5)):
            wait_until(f"{share:.0%} are done", lambda: done() >= share * count or job.poll() is not None)
            check("the work goes on", job.poll() is None)
            site.send(name, signal.SIGKILL)
            print(f"{name} killed after {done()} of {count + 1} recordings", flush=True)
        # Stopped in the middle and begun again, too.
        wait_until("three quarters are done", lambda: done() >= 0.75 * count or job.poll() is not None)
        job.kill()
        job.wait()
        begun = time.monotonic()
        job = site.run(*words)
        check("the work ends well", job.wait(timeout=4 * PATIENCE) == 0)
        print(f"begun again, the last quarter took {time.monotonic() - begun:.0f} s")
    finally:
        site.end()
    expected = {str(path.relative_to(videos)) + ".jsonl" for path in videos.rglob("*.mkv")}
    check("a file for each recording", {str(path.relative_to(out)) for path in out.rglob("*.jsonl")} == expected)
    right = stamps(out / "0.mkv.jsonl")
    check(f"{FRAMES} frames: {right}", len(set(right)) == FRAMES)
    for name in expected - {"long.mkv.jsonl"}:
        check(f"each line of {name} once", stamps(out / name) == right)
    long = stamps(out / "long.mkv.jsonl")
    check("each line of the long recording once", len(long) == 500 and long == sorted(set(long)))
    print(f"ok   {count + 1} recordings, each frame once")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("script")
    parser.add_argument("model")
    parser.add_argument("--count", type=int, default=24, help="short recordings; 0: in one process only")
    options = parser.parse_args()
    needs(ray=False)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.environ.update(MODEL=options.model, XDG_CACHE_HOME=name)
        launch = folder / "recording.launch"
        launch.write_text("uridecodebin uri={uri} ! videoconvert ! clinfer model=$MODEL ! clpublish source={recording} file-path={out} ! fakesink sync=false")
        one_process(options.script, folder, launch)
        if options.count == 0:
            return
        needs()
        on_ray(options.script, folder, launch, options.count)


if __name__ == "__main__":
    main()
