#!/usr/bin/env python3
"""clinfer watch and clwatch: two cameras on one page, their pictures as they come, counts, events and times, by HTTP; with --browser also in
headless Chromium, wide and on a phone.

    watch.py CLINFER MODEL.xml [--browser] [--keep FOLDER]      GST_PLUGIN_PATH as in the environment; exit status 77 without libsoup or browser

--keep leaves the screenshots there.
"""
import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import chromium
import hostile_http
import webrtc
from metrics import check, free_port

PATIENCE = 120


def ask(port, path, host=None, patience=PATIENCE):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Host": host} if host else {})
    end = time.monotonic() + patience
    while True:
        try:
            return urllib.request.urlopen(request, timeout=20)
        except urllib.error.HTTPError:
            raise
        except (urllib.error.URLError, ConnectionError):
            check("an answer in time", time.monotonic() < end)
            time.sleep(0.1)


def state(port):
    return json.load(ask(port, "/state.json"))["cameras"]


def wait_until(what, true):
    end = time.monotonic() + PATIENCE
    while not true():
        check(what + " in time", time.monotonic() < end)
        time.sleep(0.2)


def refused(port, path, host=None):
    try:
        ask(port, path, host).read()
    except urllib.error.HTTPError as error:
        return error.code
    return 200


def pictures(port, path, count):
    """The first `count` pictures of a stream; fails where a part is not whole."""
    with ask(port, path) as stream:
        kind, boundary = stream.headers["Content-Type"].split("; boundary=")
        check(kind, kind == "multipart/x-mixed-replace")
        check("the first boundary", stream.readline() == f"--{boundary}\r\n".encode())
        found = []
        for _ in range(count):
            headers = {}
            while (line := stream.readline().strip()):
                name, value = line.split(b": ")
                headers[name] = value
            found.append(stream.read(int(headers[b"Content-Length"])))
            check("a JPEG picture", headers[b"Content-Type"] == b"image/jpeg" and found[-1][:2] == b"\xff\xd8" and found[-1][-2:] == b"\xff\xd9")
            check("a boundary behind it", stream.readline() == b"\r\n" and stream.readline() == f"--{boundary}\r\n".encode())
        return found


def pictures_of_all(port, cameras, count):
    """Pictures of the stream of all cameras, by their place, until each has `count`."""
    found = {place: [] for place in range(cameras)}
    with ask(port, "/pictures") as stream:
        kind, boundary = stream.headers["Content-Type"].split("; boundary=")
        check(kind, kind == "multipart/mixed")
        end = time.monotonic() + PATIENCE
        while min(map(len, found.values())) < count:
            check(f"pictures of all cameras in time: {[len(of) for of in found.values()]}", time.monotonic() < end)
            check("a boundary", stream.readline() == f"--{boundary}\r\n".encode())
            headers = dict(line.split(b": ") for line in iter(lambda: stream.readline().strip(), b""))
            check("a JPEG picture", headers[b"Content-Type"] == b"image/jpeg")
            found[int(headers[b"Content-Location"].removeprefix(b"/pictures/"))].append(stream.read(int(headers[b"Content-Length"])))
            check("the end of a picture", stream.readline() == b"\r\n")
    check("whole pictures", all(picture[:2] == b"\xff\xd8" and picture[-2:] == b"\xff\xd9" for of in found.values() for picture in of))
    return found


def connections(port):
    """Established connections of the server at a port of 127.0.0.1."""
    rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    return sum(row[1] == f"0100007F:{port:04X}" and row[3] == "01" for row in rows)


def check_many(browser, folder):
    """More cameras than a browser opens connections to a host: all pictures by one of them, and the state beside it."""
    port, cameras = free_port(), 8
    lines = [f"videotestsrc is-live=true pattern=ball name=camera{i} ! video/x-raw,width=160,height=120,framerate=10/1 ! jpegenc ! clwatch port={port} webrtc=false"
             for i in range(cameras)]
    running = subprocess.Popen(["gst-launch-1.0", "-q", *" ".join(lines).split()])
    try:
        wait_until("all cameras", lambda: len(state(port)) == cameras and all(camera["frames"] > 0 for camera in state(port)))
        found = pictures_of_all(port, cameras, 3)
        check("pictures change", all(len(set(of)) > 1 for of in found.values()))
        if browser:
            page = chromium.Page(f"http://127.0.0.1:{port}/", (1280, 860))
            try:
                images = "[...document.querySelectorAll('img')]"
                check("pictures of all cameras", page.wait_for(f"{images}.length === {cameras} && {images}.every(i => i.naturalWidth === 160)"))
                asked = "performance.getEntriesByType('resource').filter(e => e.name.endsWith('/state.json')).length"
                before, shown = page.evaluate(asked), page.evaluate(f"{images}.map(i => i.src)")
                check("the state is asked for beside them", page.wait_for(f"{asked} >= {before} + 4", 30))
                check("pictures go on", all(a != b for a, b in zip(shown, page.evaluate(f"{images}.map(i => i.src)"))))
                kept = connections(port)
                check(f"one connection, and one for the state, not {kept}", kept <= 2)
                page.screenshot(folder / "watch-many.png")
                check(f"no errors: {page.problems}", not page.problems)
            finally:
                page.close()
    finally:
        running.terminate()
        running.wait(60)


def check_http(port):
    with ask(port, "/") as page:
        text = page.read().decode()
        check("a page that needs nothing from elsewhere", page.headers["Content-Type"].startswith("text/html") and "<title>clinfer watch" in text
              and not re.search(r'(?:src|href)="https?://', text))
    wait_until("both cameras", lambda: len(state(port)) == 2 and all(camera["frames"] > 20 and camera["models"][0].get("inferred", 0) > 5 for camera in state(port)))
    first, second = state(port)
    check(f"names {first['name']}, {second['name']}", (first["name"], second["name"]) == ("door.mkv", "yard of house.mkv"))
    for camera in (first, second):
        check(f"its size: {camera}", (camera["width"], camera["height"]) == (320, 240))
        check(f"its model: {camera}", [model["model"] for model in camera["models"]] == ["ball"])
        check("times", 0 < camera["models"][0]["stages"]["infer"]["p50"] <= camera["models"][0]["stages"]["infer"]["p95"])
        check("a line and a zone", [zone["name"] for zone in camera["zones"]] == ["middle", "left"])
    wait_until("a ball", lambda: state(port)[0]["objects"] == {"ball": 1})
    wait_until("it crosses the line", lambda: any(event["type"] == "cross" and event["zone"] == "middle" for event in state(port)[0]["events"]))
    streams = pictures(port, first["picture"], 5)
    check("pictures change", len(set(streams)) > 1)
    check("a still", ask(port, second["picture"] + ".jpg").read()[:2] == b"\xff\xd8")
    # Clients that go away in the middle of a picture, and one that never reads.
    for _ in range(5):
        ask(port, first["picture"]).close()
    silent = ask(port, first["picture"])
    before = state(port)[0]["frames"]
    wait_until("frames go on", lambda: state(port)[0]["frames"] > before + 20)
    silent.close()
    for path in ("/pictures/2", "/pictures/", "/pictures/x", "/pictures/0x", "/pictures/99999999999999999999", "/favicon.ico", "/state"):
        check(f"{path} is refused", refused(port, path) == 404)
    check("other hosts' names are refused", refused(port, "/state.json", "other.example") == 403)
    check("localhost is not", refused(port, "/state.json", f"localhost:{port}") == 200)


def check_hostile(port, watching):
    """What is no browser's doing; also beside a camera that has no next picture."""
    hostile_http.check_server(port, "/state.json", watching)
    port = free_port()
    ended = subprocess.Popen(["gst-launch-1.0", "-q", *f"videotestsrc num-buffers=2 ! jpegenc ! clwatch port={port} videotestsrc is-live=true ! fakesink".split()])
    try:
        wait_until("the camera ends", lambda: [camera["ended"] for camera in state(port)] == [True])
        hostile_http.check_streams(port, "/pictures/0", ended.pid)
    finally:
        ended.terminate()
        ended.wait(60)


def check_failing(clinfer, video, model, port):
    """One camera is not there at first: the other one goes on, the page tells, and the camera is shown when it comes."""
    away = free_port()
    words = [clinfer, "watch", video, f"http://user:secret@127.0.0.1:{away}/{video.name}", model, "--port", str(port)]
    running = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    server = None
    try:
        wait_until("the camera that is there", lambda: len(state(port)) == 2 and state(port)[0]["frames"] > 10)
        wait_until("the second failure of the other", lambda: state(port)[1]["failures"] >= 2)
        failing = state(port)[1]
        check(f"it is told: {failing}", failing["frames"] == 0 and failing["problem"] and 0 <= failing["retry_seconds"] <= 30)
        before = state(port)[0]["frames"]
        wait_until("frames of the first go on", lambda: state(port)[0]["frames"] > before + 10 and not state(port)[0]["problem"])
        server = subprocess.Popen([sys.executable, "-m", "http.server", str(away), "--bind", "127.0.0.1", "--directory", str(video.parent)],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until("the other comes", lambda: state(port)[1]["frames"] > 10 and state(port)[1]["problem"] == "")
    finally:
        if server is not None:
            server.kill()
            server.wait()
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)
    check("no password on the page", "secret" not in json.dumps(failing))
    words = ["gst-launch-1.0", "clcamera", f"uri=http://user:secret@127.0.0.1:{away}/x", "retry-after=200", "retry-most=500", "!", "fakesink", "async=false"]
    running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    waits = []
    for line in running.stdout:
        check("no password in messages", "secret" not in line)
        waits += [float(wait) for wait in re.findall(r"failed and is tried again in ([\d.]+) s", line)]
        if len(waits) == 4:
            break
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    check(f"attempts are made less and less often: {waits}", waits == [0.2, 0.4, 0.5, 0.5])


# By transport: the element that shows pictures, and its property that is not 0 once one has come.
SHOWN = {"WebRTC": ("video", "videoWidth"), "MJPEG": ("img", "naturalWidth")}


def check_page(page, name, transport):
    """A page of both cameras, which says how it gets its pictures."""
    tag, width = SHOWN[transport]
    shown = page.wait_for(f"document.querySelectorAll('article {tag}').length === 2 && [...document.querySelectorAll('{tag}')].every(i => i.{width} === 320)"
                          " && document.querySelectorAll('polyline')[1].getAttribute('points').split(' ').length > 3")
    text = page.evaluate("document.body.innerText")
    check(f"{name}: two cards with pictures and plots: {text}", shown)
    for part in ("clinfer watch", "2 of 2 live", f"pictures by {transport}", "door.mkv", "yard of house.mkv", "pictures/s", "inferred/s", "middle", "ball"):
        check(f"{name}: {part!r} in {text}", part in text)
    check(f"{name}: no errors: {page.problems}", not page.problems)
    return text


def check_browser(port, folder, transport):
    for name, size, phone in (("wide", (1280, 860), False), ("phone", (390, 844), True)):
        page = chromium.Page(f"http://127.0.0.1:{port}/", size, phone)
        try:
            check_page(page, name, transport)
            check(f"{name}: nothing reaches beyond the page's width", page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))
            columns = page.evaluate("new Set([...document.querySelectorAll('article')].map(a => a.getBoundingClientRect().left)).size")
            check(f"{name}: {columns} columns", columns == (1 if phone else 2))
            if transport == "WebRTC" and phone:  # browsers pause videos that are not on the screen
                last = "[...document.querySelectorAll('video')].at(-1)"
                page.evaluate(f"{last}.scrollIntoView()")
                at = page.evaluate(f"{last}.currentTime")
                check("the last video plays where it is looked at", page.wait_for(f"{last}.currentTime > {at} + 1", 30))
            page.screenshot(folder / f"watch-{transport}-{name}.png", whole=phone and transport == "MJPEG")
            if transport == "WebRTC" and not phone:
                check_webrtc(page, port)
        finally:
            page.close()


def viewers(port):
    return json.load(ask(port, "/state.json"))["viewers"]


def check_webrtc(page, port):
    """Pictures go on, viewers that leave are no more encoded for, and where there are too many all pictures come by MJPEG."""
    times = "[...document.querySelectorAll('video')].map(v => v.currentTime)"
    before = page.evaluate(times)
    check("both videos go on", page.wait_for(f"{times}.every((t, i) => t > {before}[i] + 1)", 30))
    check(f"a viewer for each camera, not {viewers(port)}", viewers(port) == 2)
    page.call("Page.navigate", url="about:blank")
    wait_until("both have left", lambda: viewers(port) == 0)
    over = threading.Event()

    def fill():
        while not over.wait(0.2):
            for _ in range(webrtc.MOST - viewers(port)):
                webrtc.ask(port, "POST", "/webrtc/0", webrtc.OFFER)

    filling = threading.Thread(target=fill)
    filling.start()
    try:
        wait_until("all connections are in use", lambda: viewers(port) == webrtc.MOST)
        page.call("Page.navigate", url=f"http://127.0.0.1:{port}/")
        text = check_page(page, "too many", "MJPEG")
        check(f"it says why: {text}", f"All {webrtc.MOST} connections" in text)
    finally:
        over.set()
        filling.join()
    wait_until("those that have not come are forgotten", lambda: viewers(port) == 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clinfer")
    parser.add_argument("model")
    parser.add_argument("--browser", action="store_true")
    parser.add_argument("--keep")
    options = parser.parse_args()
    if subprocess.run(["gst-inspect-1.0", "clwatch"], capture_output=True, check=False).returncode != 0:
        print("SKIPPED, no libsoup 3")
        sys.exit(77)
    if options.browser and chromium.program() is None:
        print("SKIPPED, there is no chromium (pipelines/install long)")
        sys.exit(77)
    port = free_port()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        videos = [folder / "door.mkv", folder / "yard of house.mkv"]
        subprocess.run(["gst-launch-1.0", "-q", *"videotestsrc pattern=ball num-buffers=3000 ! video/x-raw,width=320,height=240,framerate=15/1 ! jpegenc "
                        "! matroskamux ! filesink".split(), f"location={videos[0]}"], check=True, timeout=300)
        os.link(videos[0], videos[1])
        check_many(options.browser, pathlib.Path(options.keep or name))
        words = [options.clinfer, "watch", *map(str, videos), options.model, "--port", str(port), "--lines", "middle:0.5,0.0,0.5,1.0",
                 "--zones", "left:0.0,0.0,0.5,0.0,0.5,1.0,0.0,1.0"]
        running = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        try:
            check_http(port)
            check_hostile(port, running.pid)
            if options.browser:
                only_mjpeg = state(port)[0]["only_mjpeg"]
                transport = "MJPEG" if only_mjpeg else "WebRTC"
                check_browser(port, pathlib.Path(options.keep or name), transport)
            taken = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
            check("a port in use is an error: " + taken.stderr, taken.returncode != 0 and f"port {port} cannot be used on 127.0.0.1" in taken.stderr)
            running.send_signal(signal.SIGINT)
            text = running.communicate(timeout=60)[1]
            check("it says where the page is: " + text, f"http://localhost:{port}/ shows 2 cameras" in text)
        finally:
            running.kill()
            running.communicate()
        if options.browser and transport == "WebRTC":
            port = free_port()
            running = subprocess.Popen([options.clinfer, "watch", *map(str, videos), options.model, "--port", str(port), "--mjpeg", *words[-4:]],
                                       stderr=subprocess.PIPE, text=True)
            try:
                wait_until("both cameras", lambda: len(state(port)) == 2)
                check_browser(port, pathlib.Path(options.keep or name), "MJPEG")
            finally:
                running.kill()
                running.communicate()
        elif options.browser:
            print("skip: pictures by WebRTC: " + only_mjpeg)
        if subprocess.run(["gst-inspect-1.0", "souphttpsrc"], capture_output=True, check=False).returncode == 0:
            check_failing(options.clinfer, videos[0], options.model, free_port())
        else:
            print("skip: a camera that fails, for want of souphttpsrc (gstreamer1.0-plugins-good)")
        for words, why in (([options.model], "MODEL is missing"), ([videos[0], options.model, "--port", "0"], "--port is 0"),
                           ([videos[0], options.model, "--threshold", "2"], "--threshold")):
            run = subprocess.run([options.clinfer, "watch", *words], capture_output=True, text=True, timeout=60, check=False)
            check(f"{words} is refused: {run.stderr}", run.returncode == 2 and why in run.stderr and run.stderr.count("\n") == 1)
        run = subprocess.run([options.clinfer, "watch", folder / "none.mkv", options.model, "--port", str(free_port())], capture_output=True, text=True,
                             timeout=120, check=False)
        check("a file that is not there is an error: " + run.stderr, run.returncode != 0 and "none.mkv" in run.stderr)
    print("ok")


if __name__ == "__main__":
    main()
