#!/usr/bin/env python3
"""`clinfer heads --image` on pictures, on a video, and on networks that take clips.

    images.py CLINFER BALL_MODEL      the plug-in on GST_PLUGIN_PATH; needs numpy, without which it is skipped (exit status 77)

The network of clips tells which of its frames is the brightest, so that its answer shows what it was fed, in which order.
"""
import json
import os
import subprocess
import sys
import tempfile

import other_python

try:
    import numpy as np
    from ir import Ir
except ImportError:
    other_python.retry("numpy")

FRAMES = 4


def write_network(folder):
    ir = Ir()
    edge = ir.parameter("clip", (1, 3, FRAMES, 32, 32), np.float32)
    axes = ir.constant(np.array([1, 3, 4], np.int64))
    mean = ir.layer("ReduceMean", "mean", {"keep_dims": "false"}, [edge, axes], [(np.float32, (1, FRAMES))])
    answer = ir.layer("SoftMax", "logits", {"axis": 1}, [mean], [(np.float32, (1, FRAMES))], "logits")
    ir.layer("Result", "result", {}, [answer], [])
    ir.save(f"{folder}/brightest", "brightest", None)
    return f"{folder}/brightest.xml"


def launch(line):
    subprocess.run(f"gst-launch-1.0 -q {line}", shell=True, check=True, timeout=300)


def heads(clinfer, model, *words, cwd):
    done = subprocess.run([clinfer, "heads", model, *words], cwd=cwd, capture_output=True, text=True, timeout=600, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")], done.stdout + done.stderr


def expect(what, right, text):
    if not right:
        sys.exit(f"FAIL {what}:\n{text}")
    print(f"ok   {what}", flush=True)


def brightest(lines):
    """The answer, which the last line must have and no other."""
    found = [[value["label_id"] for item in line["objects"] for value in item.values() if isinstance(value, dict) and "label_id" in value]
             for line in lines]
    return found[-1][0] if found and found[-1] and not any(found[:-1]) else None


def test_clips(clinfer, folder):
    model = write_network(folder)
    pictures = []
    for level in (40, 80, 120, 240):
        pictures.append(f"{folder}/grey {level}.png")
        launch(f"videotestsrc num-buffers=1 pattern=solid-color foreground-color=0xff{level:02x}{level:02x}{level:02x} ! "
               f"video/x-raw,format=RGB,width=64,height=48 ! pngenc ! filesink 'location={pictures[-1]}'")
    for order in ((0, 1, 2, 3), (3, 0, 2, 1), (1, 3, 0, 2)):
        words = [word for k in order for word in ("--image", pictures[k])]
        code, lines, text = heads(clinfer, model, *words, "--drawn", "clip.png", cwd=folder)
        expect(f"a clip of pictures in the order {order}", code == 0 and len(lines) == FRAMES and brightest(lines) == order.index(3), text)
    expect("the drawn clip", os.path.getsize(f"{folder}/clip.png") > 100, "")
    code, lines, text = heads(clinfer, model, "--image", pictures[0], cwd=folder)
    expect("a picture stands for all frames", code == 0 and len(lines) == FRAMES and lines[-1]["inference"] == "run", text)
    code, lines, text = heads(clinfer, model, "--image", pictures[0], "--image", pictures[1], cwd=folder)
    expect("two pictures are no clip of four", code != 0 and "clips of 4 frames" in text, text)
    return model


def test_videos(clinfer, model, ball, folder):
    try:
        launch(f"videotestsrc num-buffers=9 pattern=ball ! video/x-raw,width=320,height=240 ! jpegenc ! avimux ! filesink location={folder}/ball.avi")
        launch(f"videotestsrc num-buffers=2 ! video/x-raw,width=64,height=48 ! jpegenc ! avimux ! filesink location={folder}/short.avi")
    except subprocess.CalledProcessError:
        print("skipped videos: needs jpegenc and avimux (gstreamer1.0-plugins-good)")
        return
    code, lines, text = heads(clinfer, model, "--image", f"{folder}/ball.avi", cwd=folder)
    expect("the first clip of a video", code == 0 and len(lines) == FRAMES and brightest(lines) is not None, text)
    code, lines, text = heads(clinfer, model, "--image", f"{folder}/short.avi", cwd=folder)
    expect("a video that is too short", code != 0 and "fewer than 4 frames" in text, text)
    code, lines, text = heads(clinfer, ball, "--image", f"{folder}/ball.avi", cwd=folder)
    expect("the first frame of a video", code == 0 and len(lines) == 1 and len(lines[0]["objects"]) == 1, text)


def test_pictures(clinfer, ball, folder):
    for name in ("one", "two"):
        launch(f"videotestsrc num-buffers=1 pattern=ball ! video/x-raw,format=RGB,width=320,height=240 ! pngenc ! filesink location={folder}/{name}.png")
    code, lines, text = heads(clinfer, ball, "--image", "one.png", "--image", "two.png", cwd=folder)
    drawn = all(os.path.exists(f"{folder}/{name}.heads.png") for name in ("one", "two"))
    expect("several pictures", code == 0 and [len(line["objects"]) for line in lines] == [1, 1] and drawn, text)
    code, lines, text = heads(clinfer, ball, "--image", "one.png", "--image", "two.png", "--drawn", "both.png", cwd=folder)
    expect("one name for two drawn pictures", code != 0 and "--drawn" in text, text)
    os.makedirs(f"{folder}/again")
    for name in (r'50%n of "a\b" x', "%d%s"):
        os.link(f"{folder}/one.png", f"{folder}/again/{name}.png")
        code, lines, text = heads(clinfer, ball, "--image", f"again/{name}.png", cwd=folder)
        drawn = os.path.exists(f"{folder}/{name}.heads.png")
        expect(f"a picture called {name}", code == 0 and len(lines[0]["objects"]) == 1 and drawn, text)
    os.link(f"{folder}/one.png", f"{folder}/again/one.png")
    code, lines, text = heads(clinfer, ball, "--image", "one.png", "--image", "again/one.png", cwd=folder)
    expect("two pictures of one name", code != 0 and "one.heads.png" in text and not lines, text)
    for value in ("1.5", "-1", "nan", "much"):
        code, lines, text = heads(clinfer, ball, "--image", "one.png", "--threshold", value, cwd=folder)
        expect(f"the threshold {value}", code != 0 and "from 0 to 1" in text and not lines, text)
    code, lines, text = heads(clinfer, ball, "--image", "three.png", cwd=folder)
    expect("a picture that is not there", code != 0 and "three.png is not a file" in text, text)


def main():
    clinfer, ball = (os.path.abspath(path) for path in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder:
        test_videos(clinfer, test_clips(clinfer, folder), ball, folder)
        test_pictures(clinfer, ball, folder)


if __name__ == "__main__":
    main()
