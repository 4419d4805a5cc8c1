#!/usr/bin/env python3
"""`clinfer compare` on a small video, with the bundled model.

    video_commands.py CLINFER ROOT      the plug-in on GST_PLUGIN_PATH
"""
import json
import pathlib
import subprocess
import sys
import tempfile

clinfer, root = sys.argv[1:3]
BALL = f"{root}/pipelines/models/ball.xml"


def run(*words, status=0, timeout=300):
    run = subprocess.run([clinfer, *map(str, words)], capture_output=True, text=True, timeout=timeout)
    assert run.returncode == status, f"{words}: {run.returncode}: {run.stdout}{run.stderr}"
    return run


def record(file, frames=30, pattern="ball", size=(480, 360)):
    subprocess.run(["gst-launch-1.0", "-q", "videotestsrc", f"pattern={pattern}", "background-color=0xff24425c", "foreground-color=0xfff2b134",
                    f"num-buffers={frames}", "!", f"video/x-raw,format=I420,width={size[0]},height={size[1]},framerate=30/1", "!", "avimux",
                    "!", "filesink", f"location={file}"], check=True, timeout=120)


def half_blind(folder):
    """A copy of the bundled model that has lost the weights of its first layers."""
    xml = pathlib.Path(BALL).read_text(encoding="utf-8")
    weights = bytearray(pathlib.Path(BALL).with_suffix(".bin").read_bytes())
    weights[:4000] = bytes(4000)
    (folder / "blind.xml").write_text(xml, encoding="utf-8")
    (folder / "blind.bin").write_bytes(weights)
    return folder / "blind.xml"


def is_picture(file):
    return file.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and file.stat().st_size > 1000


def compares(folder, video):
    # A model and itself: all agrees, nothing else is on standard output, and frames are drawn side by side.
    sheet = folder / "sheet of frames.png"
    same = run("compare", BALL, BALL, "--video", video, "--frames", 20, "--seconds", 0.2, "--json", "--sheet", sheet)
    report = json.loads(same.stdout)
    assert same.stdout.count("\n") == 1, same.stdout
    assert report["frames"] == 20 and report["agree"] == 1, report
    assert report["objects"]["both"] >= 18 and report["confidence_difference"]["most"] == 0, report
    assert report["a"]["bytes"] == sum(pathlib.Path(BALL).with_suffix(s).stat().st_size for s in (".xml", ".bin")), report
    assert report["speed"]["gain"] > 0 and is_picture(sheet), report
    # Another one: the objects that only one has are counted.
    other = json.loads(run("compare", BALL, half_blind(folder), "--video", video, "--frames", 20, "--seconds", 0.2, "--json").stdout)
    assert other["agree"] < 0.5 and other["objects"]["only_a"] >= 10 and other["worst"][0]["agree"] == 0, other
    # One model in two precisions, as text.
    text = run("compare", BALL, "--config-b", "INFERENCE_PRECISION=f16", "--video", video, "--frames", 5, "--seconds", 0.2).stdout
    assert "B  " in text and "agree" in text and "speed" in text, text
    # Numbers of frames: as many as there are.
    assert json.loads(run("compare", BALL, BALL, "--video", video, "--video", video, "--frames", 100, "--seconds", 0.1, "--json").stdout)[
        "frames"] == 60
    for words, part in (((BALL,), "--video FILE is needed"), ((BALL, "--video", video), "--device-b"),
                        ((BALL, BALL, "--video", folder / "none.avi"), "there is no video")):
        refused = subprocess.run([clinfer, "compare", *map(str, words)], capture_output=True, text=True, timeout=60)
        assert refused.returncode != 0 and part in refused.stderr and not refused.stdout, refused


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    video = folder / "a ball.avi"
    record(video)
    compares(folder, video)
print("all right")
