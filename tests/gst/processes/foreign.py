#!/usr/bin/env python3
"""Puts the elements in front of and behind every video sink and filter of GStreamer's own plug-ins that is installed.

Usage: foreign.py MODEL [--part sinks|filters|all] [--only NAME,...]

The list is what gst-inspect-1.0 knows of core, base, good and bad. Each pipeline of ours must end as the same one without our
elements does: an element that needs a screen, a server or a camera fails in both. A crash, a critical message and a pipeline
that stands still are never right.
"""
import argparse
import concurrent.futures
import os
import re
import signal
import subprocess
import sys
import tempfile

MODULES = ("gstreamer", "gst-plugins-base", "gst-plugins-good", "gst-plugins-bad")
SOURCE = "videotestsrc num-buffers=4 ! video/x-raw,format={format},width=64,height=48,framerate=25/1"
PROPERTIES = {"shmsink": "socket-path={folder}/shm wait-for-connection=false", "filesink": "location={folder}/file", "fdsink": "fd=1",
              "multifilesink": "location={folder}/file%d", "tcpserversink": "port=0", "splitmuxsink": "location={folder}/split%d",
              "hlssink": "location={folder}/a%d playlist-location={folder}/list", "hlssink2": "location={folder}/b%d playlist-location={folder}/list2",
              "capsfilter": "caps=video/x-raw", "unixfdsink": "socket-path={folder}/fd",
              "appsink": "wait-on-eos=false"}  # nobody takes its frames
# They wait for somebody who connects, or for the next day; chopmydata makes buffers of a byte, and a hundred unreadable
# frames in a row are an error.
LEFT_OUT = {"clocksync", "tcpclientsink", "inputselector", "chopmydata"}
# Seconds. A busy machine loads a model slowly; what stands still without our elements is not waited for that long.
TIMEOUT, TIMEOUT_WITHOUT = 120, 20
TRIES = 10


def inspected():
    """{element: (klass, module, {direction: caps text})}, of elements with one sink pad that is always there."""
    lines = subprocess.run(["gst-inspect-1.0", "-a"], capture_output=True, text=True, timeout=600, errors="replace").stdout.splitlines()
    elements, name, direction = {}, None, None
    for line in lines:
        head, _, text = line.partition(":")
        if not re.fullmatch(r"[\w-]+", head) or not text.startswith(" "):
            continue
        if text == " Factory Details:":
            name, direction = head, None
            elements[name] = {"klass": "", "module": "", "pads": []}
        if head != name:
            continue
        found = elements[name]
        if match := re.match(r"\s+Klass\s+(\S+)", text):
            found["klass"] = match[1]
        elif match := re.match(r"\s+Source module\s+(\S+)", text):
            found["module"] = match[1]
        elif match := re.match(r"\s+(SINK|SRC) template: '(.+)'", text):
            found["pads"].append({"direction": match[1], "name": match[2], "always": False, "caps": ""})
        elif match := re.match(r"\s+Availability: (\S+)", text):
            found["pads"][-1]["always"] = match[1] == "Always"
        elif match := re.match(r"\s+(video/x-raw\S*|ANY)\s*$", text):
            if found["pads"]:
                found["pads"][-1]["caps"] += match[1] + " "
    return {name: found for name, found in elements.items() if found["module"] in MODULES}


def takes_video(pads, direction):
    pads = [pad for pad in pads if pad["direction"] == direction]
    return len(pads) == 1 and pads[0]["always"] and pads[0]["caps"] != ""


def launch(pipeline, timeout):
    """How it ends: "end", "error", or what must never be."""
    process = subprocess.Popen(["gst-launch-1.0", "-q", *pipeline.split()], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        said = process.communicate(timeout=timeout)[1]
    except subprocess.TimeoutExpired as late:
        # An error that is posted before gst-launch runs its loop ends that loop before it begins, and nothing does so again. Only
        # one that waits in its loop heeds an interrupt, and then stops all elements.
        if b"ERROR: pipeline doesn't want to preroll" in (late.stderr or b""):
            process.send_signal(signal.SIGINT)
        try:
            said = process.communicate(timeout=TIMEOUT_WITHOUT)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            return "stands still", process.communicate()[1].decode(errors="replace")
    text = said.decode(errors="replace")
    if process.returncode < 0 or "CRITICAL" in text or "Caught SIG" in text:
        return "crash", text
    return ("end" if process.returncode == 0 else "error"), text


def pipelines(name, found, model):
    ours = (f"clinfer model={model} ! cltrack ! clzones lines=middle:0.0,0.5,1.0,0.5 ! cloverlay trail-length=5 ! clpublish file-path=/dev/null")
    element = f"{name} {PROPERTIES.get(name, '')}".strip()
    if "Sink" in found["klass"]:
        yield f"{SOURCE.format(format='RGB')} ! {{ours}} ! {element}", ours
        yield f"{SOURCE.format(format='NV12')} ! {{ours}} ! {element}", "clinfer model=" + model + " regions=0,0,20,20 ! clcrop"
    else:
        yield f"{SOURCE.format(format='RGB')} ! videoconvert ! {element} ! videoconvert ! {{ours}} ! fakesink", ours
        yield f"{SOURCE.format(format='RGB')} ! {{ours}} ! videoconvert ! {element} ! fakesink", ours
        yield f"{SOURCE.format(format='RGB')} ! {{ours}} ! {element} ! fakesink", ours


def check(name, found, model):
    """The number of pipelines of an element, and what is wrong with some."""
    tried, wrong = 0, []
    with tempfile.TemporaryDirectory() as folder:
        for pipeline, ours in pipelines(name, found, model):
            pipeline = pipeline.replace("{folder}", folder)
            tried += 1
            expected, _ = launch(pipeline.replace("{ours}", "queue"), TIMEOUT_WITHOUT)
            got, text = launch(pipeline.replace("{ours}", ours), TIMEOUT_WITHOUT if expected == "stands still" else TIMEOUT)
            # Some elements crash now and then by themselves and fail otherwise, as a sink of DirectFB where there is no screen.
            for _ in range(TRIES if got == "crash" else 0):
                if expected != "crash":
                    expected, _ = launch(pipeline.replace("{ours}", "queue"), TIMEOUT_WITHOUT)
            if got not in ("end", expected) and (got, expected) != ("error", "crash"):
                wrong.append(f"{name}: {got}, without our elements {expected}: {pipeline.replace('{ours}', ours)}\n{text[-1500:]}")
    return tried, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--part", choices=("sinks", "filters", "all"), default="all")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    wanted = {name for name in options.only.split(",") if name}
    chosen = []
    for name, found in sorted(inspected().items()):
        is_sink = "Sink" in found["klass"] and takes_video(found["pads"], "SINK") and not any(p["direction"] == "SRC" for p in found["pads"])
        is_filter = not is_sink and takes_video(found["pads"], "SINK") and takes_video(found["pads"], "SRC")
        if (wanted and name not in wanted) or name in LEFT_OUT:
            continue
        if is_sink and options.part != "filters" or is_filter and options.part != "sinks":
            chosen.append((name, found, options.model))
    tried = failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        for of_element, wrong in threads.map(lambda element: check(*element), chosen):
            tried += of_element
            failed += len(wrong)
            for text in wrong:
                print(text, flush=True)
    if not tried:
        sys.exit("gst-inspect-1.0 lists no such element")
    print(f"{tried} pipelines, {failed} wrong")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
