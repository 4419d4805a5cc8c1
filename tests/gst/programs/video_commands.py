#!/usr/bin/env python3
"""`clinfer compare`, `doctor` and `quantize` on a small video, with the bundled model; quantising is skipped without nncf.

    video_commands.py CLINFER ROOT      the plug-in on GST_PLUGIN_PATH
"""
import json
import os
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


def with_fact(folder, name, key, value):
    """A copy of the bundled model whose model_info also says this."""
    xml = pathlib.Path(BALL).read_text(encoding="utf-8")
    assert f"<{key} " not in xml
    (folder / f"{name}.xml").write_text(xml.replace("<model_info>", f'<model_info><{key} value="{value}" />'), encoding="utf-8")
    (folder / f"{name}.bin").write_bytes(pathlib.Path(BALL).with_suffix(".bin").read_bytes())
    return folder / f"{name}.xml"


def completes():
    """Words of the completion for bash, which asks the program."""
    def words(*typed):
        script = (f'source "{root}/engine/tools/completion/clinfer.bash"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _clinfer; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        return subprocess.run(["bash", "-c", script, "bash", clinfer, *typed], capture_output=True, text=True, check=True, timeout=60).stdout.split()
    assert words("do") == ["doctor"] and {"compare", "quantize", "--version"} <= set(words("")), words("")
    assert words("compare", "--she") == ["--sheet"] and "-o" in words("quantize", "-"), words("quantize", "-")


def doctors(folder, video):
    sheet = folder / "best.png"
    run_of = run("doctor", BALL, "--video", video, "--frames", 8, "--seconds", 4, "--json", "--sheet", sheet)
    report = json.loads(run_of.stdout)
    assert run_of.stdout.count("\n") == 1 and report["own"] == 0 and is_picture(sheet), report
    assert report["f16"]["objects"] >= 5 and report["devices"][0]["images_per_second"] > 0, report
    assert "color-format" not in report["line"] and f"model={BALL}" in report["line"], report
    # Statements that are wrong are found to be: pixels of 0..1 for a network of 0..255, which the properties then set right.
    wrong = json.loads(run("doctor", with_fact(folder, "wrong", "scale_values", "255"), "--video", video, "--frames", 8, "--seconds", 4, "--only-ways",
                           "--json").stdout)
    first, own = wrong["ways"][0], wrong["ways"][wrong["own"]]
    assert wrong["own"] > 0 and "scale=1" in first["properties"] and "scale=255" in own["properties"], wrong
    assert "scale=1 " in wrong["line"] and first["evidence"] > 2 * own["evidence"], wrong
    # A video without what the model finds decides nothing, and that is said.
    black = folder / "black.avi"
    record(black, pattern="black", frames=4)
    text = run("doctor", BALL, "--video", black, "--frames", 2, "--seconds", 1, "--only-ways").stdout
    assert "the data do not decide" in text, text


def quantises(folder, video):
    python = os.environ.get("CLINFER_PYTHON", "python3")
    if subprocess.run([python, "-c", "import nncf, openvino"], capture_output=True).returncode:
        refused = subprocess.run([clinfer, "quantize", BALL, "--video", str(video), "-o", str(folder / "q.xml")], capture_output=True, text=True)
        assert refused.returncode == 1 and "pip install nncf" in refused.stderr and not (folder / "q.xml").exists(), refused
        return "without nncf"
    out = folder / "small.xml"
    report = json.loads(run("quantize", BALL, "--video", video, "--frames", 24, "-o", out, "--max-drop", 0.2, "--json").stdout)
    assert report["b"]["model"] == str(out) and report["frames"] == 8 and report["objects"]["agree"] >= 0.8, report
    assert "FakeQuantize" in out.read_text(encoding="utf-8"), "nothing is quantised"
    assert report["b"]["bytes"] < report["a"]["bytes"] or out.with_suffix(".bin").stat().st_size > 0, report
    # It says itself how it is fed: a pipeline finds the ball.
    lines = subprocess.run(["gst-launch-1.0", "-q", "filesrc", f"location={video}", "!", "decodebin", "!", "videoconvert", "!", "clinfer",
                            f"model={out}", "!", "clpublish", "!", "fakesink"], capture_output=True, text=True, check=True, timeout=120).stdout
    found = sum(bool(json.loads(line).get("objects")) for line in lines.splitlines())
    assert found >= 25, f"{found} of 30 frames with an object"
    # A layer to be kept must exist.
    refused = subprocess.run([clinfer, "quantize", str(half_blind(folder)), "--video", str(video), "--frames", "3", "-o", str(folder / "k.xml"),
                              "--keep", "no such layer"], capture_output=True, text=True, timeout=300)
    assert refused.returncode == 1 and "no such layer" in refused.stderr and not (folder / "k.xml").exists(), refused
    return "with nncf"


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    video = folder / "a ball.avi"
    record(video)
    completes()
    compares(folder, video)
    doctors(folder, video)
    print("all right,", quantises(folder, video))
