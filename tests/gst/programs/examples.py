#!/usr/bin/env python3
"""Builds and runs the examples for applications on the bundled model, and checks what they say.

    examples.py EXAMPLES MODEL.xml      CC and CXX, pkg-config and GST_PLUGIN_PATH as in the environment
"""
import glob
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from xml.etree import ElementTree

SOURCE = "videotestsrc pattern=ball num-buffers=3 ! video/x-raw,width=320,height=240"


def output_of(command):
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if run.returncode != 0:
        sys.exit(f"{command[0]} ended with {run.returncode}: {run.stderr.strip()}")
    return run.stdout


def build(source, out, compiler, packages):
    flags = output_of(["pkg-config", "--cflags", "--libs", *packages]).split()
    output_of([*compiler.split(), "-Wall", "-Wextra", "-Werror", source, "-o", out, *flags])


def expect(name, text, *parts):
    for part, times in parts:
        if text.count(part) != times:
            sys.exit(f"{name}: {text.count(part)} times {part!r}, {times} are right, in:\n{text}")
    print(f"ok   {name}")


def gi_python():
    """A Python that has GStreamer's bindings; None without."""
    for python in (sys.executable, shutil.which("python3"), "/usr/bin/python3"):
        if python and subprocess.run([python, "-c", "import gi; gi.require_version('Gst', '1.0'); from gi.repository import Gst"],
                                     capture_output=True).returncode == 0:
            return python
    return None


def check_clips(python, script, clinfer, folder):
    """The ball crosses the middle 3.4, 6.7, 10.0 and 13.4 s after the start, 30 frames a second, a key frame at least each second."""
    def frames_of(clip):
        launch = f"gst-launch-1.0 -v filesrc location={clip} ! matroskademux ! fakesink silent=false"
        return output_of(launch.split()).count("last-message = chain")

    source = "videotestsrc pattern=ball num-buffers=450 ! video/x-raw,width=320,height=240,framerate=30/1"
    for seconds, clips, least in ((1, 4, 61), (2, 1, 450 - 41)):  # in the second run the clips would overlap: they are one
        text = output_of([python, script, source, f"{clinfer} ! cltrack ! clzones lines=middle:0.5,0.0,0.5,1.0 anchor=center",
                          "--before", str(seconds), "--after", str(seconds), "--clips", f"{folder}/{seconds}-%05d.mkv"])
        expect("record_events.py", text, ("event=(string)cross", 4), ("is complete", clips))
        counts = [frames_of(clip) for clip in sorted(glob.glob(f"{folder}/{seconds}-*.mkv"))]
        if len(counts) != clips or any(not least <= count <= least + 30 for count in counts):
            sys.exit(f"clips of {counts} frames, {clips} of {least} to {least + 30} are right")
        print(f"ok   clips of {counts} frames")


def check_onvif(python, script, clinfer):
    """The packets of the metadata stream make documents that have the ball where it is."""
    if subprocess.run(["gst-inspect-1.0", "--exists", "rtponviftimestamp"]).returncode != 0:
        print("skip onvif.py: rtponviftimestamp is not installed (gstreamer1.0-plugins-bad)")
        return
    sockets = None
    while sockets is None:  # four ports in a row
        sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM)]
        sockets[0].bind(("127.0.0.1", 0))
        port = sockets[0].getsockname()[1]
        try:
            for i in range(1, 4):
                sockets.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                sockets[-1].bind(("127.0.0.1", port + i))
        except OSError:
            for one in sockets:
                one.close()
            sockets = None
    for one in sockets:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        one.settimeout(0.1)
    output_of([python, script, "videotestsrc is-live=true pattern=ball num-buffers=12 ! video/x-raw,width=320,height=240,framerate=10/1",
               f"{clinfer} ! cltrack", "--port", str(port)])

    def packets(one):
        try:
            while True:
                yield one.recv(65536)
        except TimeoutError:
            pass

    video = list(packets(sockets[0]))
    if not video or not any(packet[0] & 0x10 and packet[12:14] == b"\xab\xac" for packet in video):
        sys.exit(f"onvif.py: none of {len(video)} video packets has the time of capture")
    documents, text, following = 0, b"", None
    tt = "{http://www.onvif.org/ver10/schema}"
    for packet in packets(sockets[2]):
        version, kind, sequence = struct.unpack(">BBH", packet[:4])
        if version != 0x80 or kind & 0x7F != 107 or (following is not None and sequence != following):
            sys.exit(f"onvif.py: packet {packet[:4].hex()}, its number should be {following}")
        following = (sequence + 1) % 2**16
        text += packet[12:]
        if kind & 0x80:
            frame = ElementTree.fromstring(text).find(f"{tt}VideoAnalytics/{tt}Frame")
            box = frame.find(f"{tt}Object/{tt}Appearance/{tt}Shape/{tt}BoundingBox")
            if not frame.get("UtcTime").endswith("Z") or frame.find(f"{tt}Object").get("ObjectId") != "1" \
                    or frame.find(f".//{tt}Type").text != "ball" or not -1 <= float(box.get("bottom")) < float(box.get("top")) <= 1.001:
                sys.exit(f"onvif.py: {text}")
            documents += 1
            text = b""
    if documents != 12:
        sys.exit(f"onvif.py: {documents} documents of 12 frames")
    print(f"ok   onvif.py: {documents} documents, {len(video)} packets of video")


def check_custom_layer(folder):
    """The network of pipelines/custom-layer, whose operation no engine has, in both elements that run networks, and its errors."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../pipelines/custom-layer")
    place = os.path.join(folder, "with spaces")
    shutil.copytree(source, place)
    model, file = os.path.join(folder, "posterize.xml"), os.path.join(place, "posterize.xml")
    output_of([sys.executable, os.path.join(place, "make_model.py"), model, "--width", "64", "--height", "48"])
    picture = ["videotestsrc", "num-buffers=2", "!", "video/x-raw,width=64,height=48,format=RGB", "!"]
    filtered = os.path.join(folder, "filtered.rgb")
    output_of(["gst-launch-1.0", "-q", *picture, "clinferfilter", f"model={model}", f"config-file=\"{file}\"", "!",
               "video/x-raw,format=RGB", "!", "filesink", f"location={filtered}"])
    with open(filtered, "rb") as frames:
        levels = set(frames.read())
    if not levels <= {0, 85, 170, 255} or len(levels) != 4:
        sys.exit(f"custom-layer: clinferfilter gives the levels {sorted(levels)}")
    print("ok   custom-layer, clinferfilter")
    for given in (f"config-file={file}", f"config=CONFIG_FILE={file},INFERENCE_PRECISION=f32"):
        text = output_of(["gst-launch-1.0", "-q", *picture, "clinfer", f"model={model}", given, "post-process=none", "attach-tensors=true",
                          "dump-kernels=true", "!", "clpublish", "add-tensor-data=true", "!", "fakesink"])
        for line in text.splitlines():
            data = json.loads(line)["tensors"][0]["data"]
            if len(data) != 3 * 48 * 64 or any(min(abs(value - level) for level in (0, 85, 170, 255)) > 0.5 for value in data):
                sys.exit(f"custom-layer: clinfer gives {sorted(set(data))[:9]} ...")
    print("ok   custom-layer, clinfer")
    with open(os.path.join(place, "posterize.cl"), "a", encoding="utf-8") as kernel:
        kernel.write("nonsense;\n")
    last = 1 + open(os.path.join(source, "posterize.cl"), encoding="utf-8").read().count("\n")
    for settings, parts in (([], ("Posterize", "config-file")), ([f"config-file={place}/none.xml"], ("none.xml",)),
                            ([f"config-file={file}"], ("posterize.xml:2: custom layer Posterize", f"posterize.cl:{last}:"))):
        run = subprocess.run(["gst-launch-1.0", "-q", *picture, "clinfer", f"model={model}", *settings, "!", "fakesink"],
                             capture_output=True, text=True, timeout=300)
        if run.returncode == 0 or any(part not in run.stderr for part in parts):
            sys.exit(f"custom-layer: {settings} ends with {run.returncode}: {run.stderr}")
    print("ok   custom-layer, errors")


def main():
    examples, model = sys.argv[1:]
    clinfer = f"clinfer model={model}"
    with tempfile.TemporaryDirectory() as folder:
        c, cpp = os.path.join(folder, "read_objects"), os.path.join(folder, "read_tensors")
        build(f"{examples}/read_objects.c", c, os.environ.get("CC", "cc"), ["gstreamer-1.0", "gstreamer-video-1.0"])
        build(f"{examples}/read_tensors.cpp", cpp, os.environ.get("CXX", "c++") + " -std=c++17", ["gstreamer-1.0"])
        check_custom_layer(folder)
        text = output_of([c, f"{SOURCE} ! {clinfer} ! videoconvert ! video/x-raw,format=RGB ! fakesink name=sink"])
        expect("read_objects.c", text, ("object 1 of 0: ball, ", 3), ("detection: ball ", 3))
        text = output_of([cpp, f"{SOURCE} ! {clinfer} post-process=none ! fakesink name=sink"])
        expect("read_tensors.cpp", text, ("detection_out [ 1 1 20 7 ]: 0 1 ", 3))
    python = gi_python()
    if python is None:
        print("skip read_results.py: python3-gst-1.0 is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        check_clips(python, f"{examples}/record_events.py", clinfer, folder)
    check_onvif(python, f"{examples}/onvif.py", clinfer)
    script = f"{examples}/read_results.py"
    expect("read_results.py, objects", output_of([python, script, "test", model]),
           ("frame: ball run", 3), ("object 1 of 0: ball", 3), ("    box 0.4", 3))
    expect("read_results.py, tensors", output_of([python, script, "test", model, "post-process=none"]),
           ("tensor detection_out [1, 1, 20, 7]: 0 1 ", 3))


if __name__ == "__main__":
    main()
