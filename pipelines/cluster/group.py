#!/usr/bin/env python3
"""Runs a group of cameras in one process, which share a model and its batches, and starts again whatever stops.

    group.py CAMERAS LAUNCH [--worker NAME] [--port 9464] [--frozen-after 10] [--start-within 180] [--drain 10]

CAMERAS has a line for each camera, its name and its address: `gate rtsp://10.0.0.7/stream`; lines that begin with `#` are comments. The file is
read again when it changes. LAUNCH has a pipeline in gst-launch's words; {camera}, {address}, {worker}, {port} and variables of the environment ($BROKER)
in it are replaced for each camera. A pipeline that ends, fails, or whose sinks get no frame for --frozen-after seconds is started again, after
pauses that grow to 30 s; one that cannot even be stopped ends the process with status 1, for systemd, Kubernetes or Ray to start it again.
SIGTERM lets each pipeline send what it has, for at most --drain seconds. cameras.py runs such groups on many machines. Needs python3-gst-1.0.
"""
import argparse
import os
import pathlib
import re
import signal
import socket
import sys
import threading
import time

LONGEST_PAUSE = 30  # seconds between two attempts
STOP_WITHIN = 10  # seconds that a pipeline may take to stop before its process is given up


class Refused(Exception):
    """What is wrong with a file, where, and what to do."""


def read_cameras(path):
    """{name: address} of the file CAMERAS; raises Refused."""
    cameras = {}
    try:
        lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        words = [] if line.lstrip().startswith("#") else line.split()
        if not words:
            continue
        if len(words) != 2 or not re.fullmatch(r"[\w.-]+", words[0]) or re.search(r"[\"'!\\{}]", words[1]):
            raise Refused(f"{path}:{number}: a line is a name of letters, digits, '.', '_' and '-', and an address without quotes, '!', '\\' "
                          "or braces")
        if words[0] in cameras:
            raise Refused(f"{path}:{number}: there are two cameras {words[0]}")
        cameras[words[0]] = words[1]
    return cameras


def fill(launch, values):
    """The launch line for one camera: words in braces from `values`, $NAME from the environment; raises Refused where one is missing."""
    launch = os.path.expandvars(launch)
    missing = re.search(r"\$(\w+)", launch)
    if missing:
        raise Refused(f"the launch line has ${missing[1]}, which the environment of this process lacks")
    for name, value in values.items():
        launch = launch.replace("{" + name + "}", str(value))
    return launch


def gstreamer():
    """The module Gst, initialised; raises Refused where Python has no bindings."""
    try:
        import gi
        gi.require_version("Gst", "1.0")
        from gi.repository import Gst
    except (ImportError, ValueError) as error:
        raise Refused(f"{sys.executable} has no bindings of GStreamer ({error}): apt install python3-gst-1.0, and in a virtual environment "
                      "--system-site-packages") from error
    if not Gst.is_initialized():
        Gst.init(None)
    return Gst


def elements(Gst, pipeline, wanted):
    """The elements in `pipeline`, and in bins inside of it, for which `wanted` is true."""
    found, iterator = [], pipeline.iterate_recurse()
    while True:
        result, element = iterator.next()
        if result == Gst.IteratorResult.RESYNC:
            found = []
            iterator.resync()
        elif result != Gst.IteratorResult.OK:
            return found
        elif wanted(element):
            found.append(element)


def rendered(Gst, pipeline):
    """The number of buffers that the pipeline's sinks have got."""
    count = 0
    for sink in elements(Gst, pipeline, lambda e: e.find_property("stats") is not None and not e.srcpads and e.sinkpads):
        stats = sink.get_property("stats")
        for field in ("rendered", "dropped") if stats is not None else ():
            count += stats.get_value(field) or 0 if stats.has_field(field) else 0
    return count


class Camera:
    """One pipeline and its history. Only the group's thread touches it."""

    def __init__(self, name, address):
        self.name, self.address = name, address
        self.pipeline = None
        self.frames = 0  # of the present pipeline
        self.moved = time.monotonic()  # when `frames` last grew, or the pipeline began
        self.begin_at = 0.0
        self.pause = 1.0
        self.starts = 0
        self.why = ""  # why the last pipeline ended


class CameraGroup:
    """`launch`: the text of LAUNCH. `say` gets lines for people. The methods may be called from any thread."""

    def __init__(self, cameras, launch, worker, port=9464, frozen_after=10.0, start_within=180.0, say=None):
        self._gst = gstreamer()
        self._launch, self._worker, self._port = launch, worker, port
        self._frozen_after, self._start_within = frozen_after, start_within
        self._say = say or (lambda text: print(f"{worker}: {text}", flush=True))
        self._lock = threading.Lock()
        self._wanted = dict(cameras)
        self._health = {}
        self._draining = None  # seconds, once drain() was called
        self._cameras = {}
        self._thread = threading.Thread(target=self._run, name="cameras", daemon=True)
        for name, address in cameras.items():
            self._fill(name, address)
        self._thread.start()

    def set_cameras(self, cameras):
        """Begins and ends pipelines so that these cameras run; others go on undisturbed."""
        with self._lock:
            self._wanted = dict(cameras)

    def health(self):
        """By camera: address, frames of the present pipeline, age of the last one in seconds, number of starts, why the last pipeline ended."""
        with self._lock:
            now = time.monotonic()
            return {name: {**camera, "age": now - camera["moved"]} for name, camera in self._health.items()}

    def drain(self, seconds=10.0):
        """Ends all pipelines; sources stop and what is on its way goes out, for at most `seconds`."""
        with self._lock:
            self._draining = seconds
        self._thread.join(seconds + 2 * STOP_WITHIN)

    def _fill(self, name, address):
        return fill(self._launch, {"camera": name, "address": address, "worker": self._worker, "port": self._port})

    def _run(self):
        while True:
            with self._lock:
                wanted, draining = self._wanted, self._draining
            if draining is not None:
                self._end_all(draining)
                return
            for name in [n for n, camera in self._cameras.items() if wanted.get(n) != camera.address]:
                self._stop(self._cameras.pop(name))
            for name in wanted.keys() - self._cameras.keys():
                self._cameras[name] = Camera(name, wanted[name])
            for camera in self._cameras.values():
                self._look_at(camera)
            with self._lock:
                self._health = {c.name: {"address": c.address, "frames": c.frames, "moved": c.moved, "starts": c.starts, "why": c.why}
                                for c in self._cameras.values()}
            time.sleep(0.2)

    def _look_at(self, camera):
        now = time.monotonic()
        if camera.pipeline is None:
            if now >= camera.begin_at:
                self._begin(camera)
            return
        why = self._message(camera)
        frames = rendered(self._gst, camera.pipeline)
        if frames != camera.frames:
            if camera.frames == 0:
                self._say(f"{camera.name}: frames flow")
            camera.frames, camera.moved = frames, now
            if frames > 100:
                camera.pause = 1.0
        patience = self._frozen_after if camera.frames else self._start_within
        if not why and now - camera.moved > patience:
            why = f"no frame for {patience:g} s"
        if why:
            self._say(f"{camera.name}: {why}; starts again in {camera.pause:g} s")
            camera.why = why
            self._stop(camera)
            camera.begin_at, camera.pause = now + camera.pause, min(2 * camera.pause, LONGEST_PAUSE)

    def _begin(self, camera):
        camera.starts += 1
        camera.frames, camera.moved = 0, time.monotonic()
        try:
            camera.pipeline = self._gst.parse_launch(self._fill(camera.name, camera.address))
            camera.pipeline.set_state(self._gst.State.PLAYING)
        except Exception as error:  # of GLib: its text says what is wrong with the launch line
            camera.why = getattr(error, "message", str(error))
            self._say(f"{camera.name}: {camera.why}")
            camera.begin_at, camera.pause = time.monotonic() + camera.pause, min(2 * camera.pause, LONGEST_PAUSE)

    def _message(self, camera):
        """Why the pipeline ended; empty while it runs."""
        kinds = self._gst.MessageType
        while True:
            message = camera.pipeline.get_bus().pop_filtered(kinds.ERROR | kinds.EOS)
            if message is None:
                return ""
            return message.parse_error()[0].message if message.type == kinds.ERROR else "the stream ended"

    def _stop(self, camera):
        """Stops a pipeline; a driver or element that hangs ends the process, since nothing else frees its camera."""
        pipeline, camera.pipeline = camera.pipeline, None
        if pipeline is None:
            return
        stopper = threading.Thread(target=pipeline.set_state, args=(self._gst.State.NULL,), daemon=True)
        stopper.start()
        stopper.join(STOP_WITHIN)
        if stopper.is_alive():
            self._say(f"{camera.name}: its pipeline cannot be stopped; the process ends, so that its cameras begin anew")
            os._exit(1)

    def _end_all(self, seconds):
        playing = [camera for camera in self._cameras.values() if camera.pipeline is not None]
        for camera in playing:
            camera.pipeline.send_event(self._gst.Event.new_eos())
        end = time.monotonic() + seconds
        for camera in playing:
            left = max(0, int((end - time.monotonic()) * self._gst.SECOND))
            camera.pipeline.get_bus().timed_pop_filtered(left, self._gst.MessageType.ERROR | self._gst.MessageType.EOS)
            self._stop(camera)
        self._say(f"ended {len(playing)} cameras")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cameras")
    parser.add_argument("launch")
    parser.add_argument("--worker", default=socket.gethostname())
    parser.add_argument("--port", type=int, default=9464, help="{port} in LAUNCH, for clmetrics")
    parser.add_argument("--frozen-after", type=float, default=10)
    parser.add_argument("--start-within", type=float, default=180, help="seconds that the first frame may take")
    parser.add_argument("--drain", type=float, default=10)
    options = parser.parse_args()
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    try:
        cameras = read_cameras(options.cameras)
        group = CameraGroup(cameras, pathlib.Path(options.launch).read_text(encoding="utf-8"), options.worker, options.port,
                            options.frozen_after, options.start_within)
    except (Refused, OSError) as error:
        sys.exit(f"group.py: {error}")
    while not over.wait(1):
        try:
            changed = read_cameras(options.cameras)
        except Refused as error:  # a file that is being written; the next look may find it whole
            if cameras is not None:
                print(f"group.py: {error}; the cameras stay as they are", flush=True)
            cameras = None
            continue
        if changed != cameras:
            cameras = changed
            group.set_cameras(cameras)
    group.drain(options.drain)


if __name__ == "__main__":
    main()
