#!/usr/bin/env python3
"""clmetrics, scraped while pipelines run: the text is Prometheus's, the numbers are those of the elements, counters never fall, the
port is shared by pipelines of a process and refused where another process has it, and the dashboard asks for metrics that exist.

    metrics.py MODEL.xml DASHBOARD.json
"""
import json
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import hostile_http

SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\.)*",?)*)\})? (\S+)')


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def check(what, true):
    if not true:
        sys.exit(f"failed: {what}")


def parse(text):
    """{(name, labels): value}, and the types; fails where the text is not in Prometheus's format 0.0.4."""
    values, types, helps = {}, {}, set()
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split(" ")[2]
            check(f"one help of {name}", name not in helps)
            helps.add(name)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            check(f"one type of {name}", name not in types and name in helps)
            types[name] = kind
        else:
            match = SAMPLE.fullmatch(line)
            check(f"a sample: {line}", match)
            name, labels, value = match.groups()
            key = (name, tuple(sorted(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or ""))))
            check(f"{name} after its type, of the last metric", list(types)[-1] == name)
            check(f"{line} once", key not in values)
            values[key] = float(value)
    return values, types


def scrape(port, path="/metrics", patience=60):
    end = time.monotonic() + patience
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
                check("the content's type", path != "/metrics" or answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"))
                return answer.read().decode()
        except urllib.error.HTTPError:
            raise
        except (urllib.error.URLError, ConnectionError):
            check("an answer in time", time.monotonic() < end)
            time.sleep(0.1)


def value(values, name, **labels):
    found = [v for (n, l), v in values.items() if n == name and set(labels.items()) <= set(l)]
    check(f"one {name} of {labels}: {found}", len(found) == 1)
    return found[0]


def start(launch):
    return subprocess.Popen(["gst-launch-1.0", "-m", *launch.split()], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def main():
    model, dashboard = sys.argv[1:]
    if subprocess.run(["gst-inspect-1.0", "clmetrics"], capture_output=True, check=False).returncode != 0:
        print("no libsoup 3: skipped")
        sys.exit(77)
    # A name that moves the cursor and turns the direction of what follows.
    folder = tempfile.mkdtemp()
    for kind in ("xml", "bin"):
        shutil.copy(f"{model[:-3]}{kind}", f"{folder}/ball\u202e\u009b31m.{kind}")
    model = f"{folder}/ball\u202e\u009b31m.xml"
    port = free_port()
    camera = "videotestsrc is-live=true name={} pattern=ball ! video/x-raw,width=160,height=120,framerate=30/1"
    network = f"clinfer name={{}} model={model} model-instance-id=one overload-policy=skip-inference"
    launch = (f"clmetrics port={port} {camera.format('door')} ! queue name=room ! {network.format('first')} inference-interval=3 "
              f"! cltrack ! clpublish file-path=/dev/null ! fakesink {camera.format('yard')} ! {network.format('second')} ! fakesink")
    running = start(launch)
    try:
        scrape(port)
        end = time.monotonic() + 120
        while "clinfer_model_info" not in scrape(port) or value(parse(scrape(port))[0], "clinfer_frames_inferred_total", element="second") < 5:
            check("inferences in time", time.monotonic() < end)
            time.sleep(0.2)
        before, types = parse(scrape(port))
        time.sleep(1)
        after, _ = parse(scrape(port))
        for key, count in before.items():
            check(f"{key} does not fall: {count}, {after.get(key)}", types[key[0]] != "counter" or after[key] >= count)
        for element, source in (("first", "door"), ("second", "yard")):
            where = {"element": element, "camera": source, "pipeline": "pipeline0", "model": "ball??31m"}
            check("frames come", value(after, "clinfer_frames_in_total", **where) > value(before, "clinfer_frames_in_total", **where))
            frames, inferred, skipped = (value(after, f"clinfer_frames_{kind}_total", **where) for kind in ("out", "inferred", "skipped"))
            check(f"{frames} frames are inferred ({inferred}) or skipped ({skipped})", abs(frames - inferred - skipped) <= 1 and skipped <= frames)
            check("the last frame is fresh", 0 <= value(after, "clinfer_last_frame_age_seconds", pad="src", **where) < 20)
            p50, p95, p99 = (value(after, "clinfer_stage_seconds", stage="infer", quantile=q, **where) for q in ("0.5", "0.95", "0.99"))
            check(f"percentiles: {p50} {p95} {p99}", 0 < p50 <= p95 <= p99 < 60)
        check("the interval", value(after, "clinfer_frames_inferred_total", element="first") * 2 <=
              value(after, "clinfer_frames_skipped_total", element="first") + 3)
        value(after, "gstreamer_queue_buffers", element="room", camera="door")
        value(after, "clinfer_published_frames_total", camera="door")
        value(after, "clinfer_tracks", camera="door")
        check("memory", 1e6 < value(after, "process_resident_memory_bytes") < 1e11)
        check("CPU time", value(after, "process_cpu_seconds_total") > value(before, "process_cpu_seconds_total"))
        metrics = {name for name, _ in after}
        with open(dashboard, encoding="utf-8") as file:
            asked = set(re.findall(r"\b((?:clinfer|gstreamer|process)_\w+)", " ".join(
                target["expr"] for panel in json.load(file)["panels"] for target in panel.get("targets", []))))
        check(f"the dashboard asks for {asked - metrics}", asked and asked <= metrics)
        try:
            scrape(port, "/other")
            check("another path is refused", False)
        except urllib.error.HTTPError as error:
            check("another path is not found", error.code == 404)
        hostile_http.check_server(port, "/metrics", running.pid)
        other = start(f"clmetrics port={port} videotestsrc num-buffers=1 ! fakesink")
        text = other.communicate(timeout=60)[0]
        check("a port in use is an error: " + text, other.returncode != 0 and f"port {port} cannot be used on 127.0.0.1" in text)
    finally:
        running.terminate()
        running.communicate(timeout=60)
        shutil.rmtree(folder)
    print("ok")


if __name__ == "__main__":
    main()
