#!/usr/bin/env python3
"""Infers in recordings on the machines of a Ray cluster, or in this process, and leaves a data set with each frame once.

    recordings.py LAUNCH OUT RECORDING... [--segment 600] [--retries 3] [--gpus 0.5] [--resource NAME=AMOUNT]...
    recordings.py LAUNCH OUT RECORDING... --here [--share INDEX/COUNT]

A RECORDING is a file, a folder (its videos, however deep) or @FILE, a list with one a line. LAUNCH has a pipeline in gst-launch's words; {uri},
{recording} (its name) and {out} (where clpublish has to write) are replaced. OUT gets NAME.jsonl for each recording, a line a frame, and
failed.jsonl with those that failed --retries times, and why. Files of MP4 and Matroska that are longer than --segment seconds are cut there:
segments run on several machines, trackers begin anew in each. Parts are written beside their place and renamed, so a machine that dies leaves
nothing half; the same command goes on where an earlier one was stopped. --share is for Kubernetes' indexed jobs: every COUNT-th recording.
The folder OUT, and the recordings, have the same place on all machines. Needs python3-gst-1.0 and, without --here, `pip install ray`.
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import sys
import time

import group as shared
from group import Refused, elements, fill, gstreamer

VIDEOS = {".mp4", ".mov", ".m4v", ".mkv", ".webm", ".avi", ".ts", ".mts", ".m2ts", ".mpg", ".mpeg", ".flv", ".3gp", ".ogv", ".wmv"}
SEEKABLE = ("video/quicktime", "video/x-matroska", "video/webm")  # where a position names one frame, whichever way one came to it
PARTS = ".parts"  # folder in OUT of segments that are done, and of what is being written
MARGIN = 1.0  # seconds decoded before and behind a segment, so that its first and last frames are whole


class Failed(Exception):
    """A recording that could not be read or written; another attempt may do."""


def names_of(words):
    """{name: URI} of the recordings that the command line names; raises Refused."""
    uris = {}

    def add(path_or_uri, root):
        if "://" in path_or_uri:
            name, uri = re.sub(r"^\w+://", "", path_or_uri), path_or_uri
        else:
            path = pathlib.Path(path_or_uri).absolute()
            name, uri = str(path.relative_to(root)) if root else path.name, path.as_uri()
        if uris.get(name, uri) != uri:  # two files of one name in different folders
            name = f"{name}-{hashlib.sha1(uri.encode()).hexdigest()[:8]}"
        uris[name] = uri

    for word in words:
        if word.startswith("@"):
            try:
                lines = pathlib.Path(word[1:]).read_text(encoding="utf-8").splitlines()
            except (OSError, UnicodeDecodeError) as error:
                raise Refused(f"{word[1:]} cannot be read: {error}") from error
            for line in filter(None, map(str.strip, lines)):
                add(line, None)
        elif "://" not in word and os.path.isdir(word):
            root = pathlib.Path(word).absolute()
            for path in sorted(root.rglob("*")):
                if path.suffix.lower() in VIDEOS and path.is_file():
                    add(str(path), root)
        elif "://" in word or os.path.exists(word):
            add(word, None)
        else:
            raise Refused(f"{word} is no file, folder or URI")
    if not uris:
        raise Refused(f"there are no videos in {' '.join(words)}")
    if any(name.split("/")[0] == ".." or name.startswith("/") for name in uris):
        raise Refused("a recording's name leads out of the data set")
    return uris


def segments_of(uri, seconds):
    """Number of segments of `seconds` that the recording is cut into; 1: it stays whole. Raises Failed."""
    Gst = gstreamer()
    import gi
    gi.require_version("GstPbutils", "1.0")
    from gi.repository import GLib, GstPbutils
    if seconds <= 0:
        return 1
    try:
        info = GstPbutils.Discoverer.new(30 * Gst.SECOND).discover_uri(uri)
    except GLib.Error as error:
        raise Failed(error.message) from error
    stream = info.get_stream_info()
    container = stream.get_caps().get_structure(0).get_name() if stream is not None and stream.get_caps() is not None else ""
    if not info.get_seekable() or container not in SEEKABLE or info.get_duration() < 1.5 * seconds * Gst.SECOND:
        return 1
    return max(1, round(info.get_duration() / (seconds * Gst.SECOND)))


def place(out, name, index, count):
    return pathlib.Path(out, PARTS, f"{name}.{index}-of-{count}")


def durable_rename(written, target):
    with open(written, "rb") as file:
        os.fsync(file.fileno())
    os.replace(written, target)


def infer_segment(launch, out, name, uri, index, count, seconds, patience):
    """Writes the lines of one segment, unless they are there; returns their number. Raises Failed."""
    target = place(out, name, index, count)
    if target.exists():
        return sum(1 for _ in open(target, "rb"))
    Gst = gstreamer()
    from gi.repository import GLib
    target.parent.mkdir(parents=True, exist_ok=True)
    written = target.with_name(f"{target.name}.{os.uname().nodename}-{os.getpid()}-{time.monotonic_ns()}")
    written.touch()
    values = {"uri": quoted(uri), "recording": quoted(name), "out": quoted(str(written))}
    try:
        pipeline = Gst.parse_launch(fill(launch, values))
    except GLib.Error as error:
        written.unlink()
        raise Refused(f"the launch line: {error.message}") from error
    try:
        if count > 1:
            limit(Gst, pipeline, index * seconds, None if index == count - 1 else (index + 1) * seconds, patience)
        play(Gst, pipeline, patience)
        durable_rename(written, target)
    finally:
        pipeline.set_state(Gst.State.NULL)
        written.unlink(missing_ok=True)
    return sum(1 for _ in open(target, "rb"))


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def await_message(Gst, pipeline, seconds, kinds):
    """The next message of `kinds`, None after `seconds`; raises Failed at an error."""
    message = pipeline.get_bus().timed_pop_filtered(int(seconds * Gst.SECOND), kinds | Gst.MessageType.ERROR)
    if message is not None and message.type == Gst.MessageType.ERROR:
        error, _ = message.parse_error()
        raise Failed(f"{message.src.get_name()}: {error.message}")
    return message


def limit(Gst, pipeline, start, end, patience):
    """Lets frames pass whose position is from `start` to before `end`, in seconds; a None end is the file's."""
    first = elements(Gst, pipeline, lambda e: e.get_factory() is not None and e.get_factory().get_name() == "clinfer")
    if not first:
        raise Refused("the launch line has no clinfer, in front of which segments are cut; --segment 0 leaves recordings whole")
    inside = range(int(start * Gst.SECOND), int((start + 1e9 if end is None else end) * Gst.SECOND))

    sought = []  # once the pad was flushed: frames before that come again

    def flushed(_pad, info):
        if info.get_event().type == Gst.EventType.FLUSH_STOP:
            sought.append(True)
        return Gst.PadProbeReturn.OK

    def look(pad, info):
        if not sought:
            return Gst.PadProbeReturn.DROP
        segment = pad.get_sticky_event(Gst.EventType.SEGMENT, 0).parse_segment()
        position = segment.to_stream_time(Gst.Format.TIME, info.get_buffer().pts)
        return Gst.PadProbeReturn.OK if position in inside else Gst.PadProbeReturn.DROP

    sink = first[-1].get_static_pad("sink")
    sink.add_probe(Gst.PadProbeType.BUFFER, look)
    sink.add_probe(Gst.PadProbeType.EVENT_FLUSH, flushed)
    # A dropped frame prerolls no sink, so that sinks are told of the seek without waiting for one.
    pipeline.set_state(Gst.State.PAUSED)
    if await_message(Gst, pipeline, patience, Gst.MessageType.STREAM_START) is None:
        raise Failed(f"no stream within {patience:g} s")
    asked = time.monotonic()
    while not pipeline.query_duration(Gst.Format.TIME)[0]:
        await_message(Gst, pipeline, 0.02, Gst.MessageType.EOS)
        if time.monotonic() - asked > patience:
            raise Failed(f"no duration within {patience:g} s")
    stop = -1 if end is None else int((end + MARGIN) * Gst.SECOND)
    if not pipeline.seek(1.0, Gst.Format.TIME, Gst.SeekFlags.FLUSH | Gst.SeekFlags.ACCURATE, Gst.SeekType.SET,
                         int(max(0, start - MARGIN) * Gst.SECOND), Gst.SeekType.NONE if end is None else Gst.SeekType.SET, stop):
        raise Failed("the stream cannot be searched; --segment 0 leaves recordings whole")


def play(Gst, pipeline, patience):
    """Runs the pipeline to its end; raises Failed where it fails, or its position stays for `patience` seconds."""
    pipeline.set_state(Gst.State.PLAYING)
    seen, moved = None, time.monotonic()
    while await_message(Gst, pipeline, 1, Gst.MessageType.EOS) is None:
        position = pipeline.query_position(Gst.Format.TIME)[1]
        if position != seen:
            seen, moved = position, time.monotonic()
        elif time.monotonic() - moved > patience:
            raise Failed(f"no frame for {patience:g} s")


def join(out, name, count):
    """Puts a recording's segments together as OUT/NAME.jsonl, numbers its frames, and removes the parts. Raises Failed."""
    target = pathlib.Path(out, name + ".jsonl")
    target.parent.mkdir(parents=True, exist_ok=True)
    written = pathlib.Path(out, PARTS, f"{name}.joined-{os.uname().nodename}-{os.getpid()}-{time.monotonic_ns()}")
    number, last = 0, -1
    with open(written, "w", encoding="utf-8") as file:
        for index in range(count):
            for line in open(place(out, name, index, count), encoding="utf-8"):
                stamp = json.loads(line).get("timestamp", last + 1)
                if index > 0 and stamp <= last:
                    written.unlink()
                    raise Failed(f"segment {index} has a frame of the one before it; --segment 0 leaves recordings whole")
                last = stamp
                file.write(re.sub(r'^\{"frame":\d+', f'{{"frame":{number}', line))
                number += 1
    durable_rename(written, target)
    for index in range(count):
        place(out, name, index, count).unlink(missing_ok=True)
    return number


def is_done(out, name):
    return pathlib.Path(out, name + ".jsonl").exists()


class Progress:
    """Tells on stderr how far the work is: one line that is renewed on a terminal, else one every ten seconds."""

    def __init__(self, total, done):
        self.total, self.done, self.frames, self.failed = total, done, 0, 0
        self.begun, self.told, self.before = time.monotonic(), 0.0, done

    def tell(self, last=False):
        now = time.monotonic()
        terminal = sys.stderr.isatty()
        if not last and now - self.told < (0.5 if terminal else 10):
            return
        self.told = now
        seconds = max(now - self.begun, 1e-3)
        fresh = self.done + self.failed - self.before
        left = (self.total - self.done - self.failed) * seconds / fresh / 60 if fresh else 0
        text = f"{self.done} of {self.total} recordings, {self.failed} failed, {self.frames / seconds:.0f} frames/s"
        text += f", {left:.0f} min left" if fresh and not last else ""
        print(("\r\033[K" if terminal else "") + text, end="" if terminal and not last else "\n", file=sys.stderr, flush=True)


class Job:
    def __init__(self, options, recordings):
        self.options, self.recordings = options, recordings
        self.launch = pathlib.Path(options.launch).read_text(encoding="utf-8")
        self.progress = Progress(len(recordings), sum(is_done(options.out, name) for name in recordings))
        self.failures = {}

    def failed(self, name, why):
        self.failures[name] = why
        self.progress.failed += 1
        print(f"recordings.py: {name}: {why}", file=sys.stderr, flush=True)

    def todo(self):
        return [(name, uri) for name, uri in self.recordings.items() if not is_done(self.options.out, name)]

    def segment(self, name, uri, index, count):
        o = self.options
        return (self.launch, o.out, name, uri, index, count, o.segment, o.frozen_after)

    def finish(self):
        """Writes failed.jsonl; returns the exit status."""
        path = pathlib.Path(self.options.out, "failed.jsonl" if self.options.share is None else f"failed-{self.options.share[0]}.jsonl")
        if self.failures:
            path.write_text("".join(json.dumps({"recording": name, "why": why}) + "\n" for name, why in sorted(self.failures.items())))
        else:
            path.unlink(missing_ok=True)
            if self.options.share is None:
                shutil.rmtree(pathlib.Path(self.options.out, PARTS), ignore_errors=True)
        self.progress.tell(last=True)
        return 1 if self.failures else 0

    def here(self):
        for name, uri in self.todo():
            for attempt in range(self.options.retries + 1):
                try:
                    count = segments_of(uri, self.options.segment)
                    for index in range(count):
                        self.progress.frames += infer_segment(*self.segment(name, uri, index, count))
                    join(self.options.out, name, count)
                    self.progress.done += 1
                    break
                except Failed as error:
                    if attempt == self.options.retries:
                        self.failed(name, str(error))
            self.progress.tell()
        return self.finish()

    def on_ray(self):
        try:
            import ray
        except ImportError:
            raise Refused(f"{sys.executable} has no Ray: pip install ray, or --here for this process") from None
        ray.init(address=os.environ.get("RAY_ADDRESS", "auto"), log_to_driver=False, logging_level="warning")
        this = sys.modules[__name__]
        ray.cloudpickle.register_pickle_by_value(shared)
        if __name__ != "__main__":
            ray.cloudpickle.register_pickle_by_value(this)
        o = self.options
        how = {"num_cpus": o.cpus, "num_gpus": o.gpus, "resources": o.resource, "max_retries": o.retries, "retry_exceptions": [Failed],
               "scheduling_strategy": "SPREAD"}
        plan, work = ray.remote(segments_of).options(**how), ray.remote(infer_segment).options(**how)
        waiting = iter(self.todo())
        calls = {}  # under way: what they are about
        segments = {}  # by name: those that are not done yet, and their number
        room = 2 * max(1, int(sum(node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]) / max(o.cpus, 0.1)))

        def begin():
            for name, uri in waiting:
                calls[plan.remote(uri, o.segment)] = (name, uri, None)
                if len(calls) >= room:
                    return

        begin()
        while calls:
            ready, _ = ray.wait(list(calls), timeout=0.5)
            for call in ready:
                name, uri, index = calls.pop(call)
                try:
                    value = ray.get(call)
                    if index is None:
                        segments[name] = (set(range(value)), value)
                        for part in range(value):
                            calls[work.remote(*self.segment(name, uri, part, value))] = (name, uri, part)
                        continue
                    self.progress.frames += value
                    left, count = segments[name]
                    left.discard(index)
                    if not left:
                        join(o.out, name, count)
                        self.progress.done += 1
                except ray.exceptions.RayTaskError as error:
                    if isinstance(error.cause, Refused):
                        raise error.cause from None
                    self.fail_once(name, str(error.cause))
                except (ray.exceptions.RayError, Failed) as error:
                    self.fail_once(name, str(error).strip().splitlines()[0])
            if len(calls) < room:
                begin()
            self.progress.tell()
        return self.finish()

    def fail_once(self, name, why):
        if name not in self.failures:
            self.failed(name, why)


def share(text):
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or int(match[1]) >= int(match[2]):
        raise argparse.ArgumentTypeError(f"{text} is no INDEX/COUNT, 0/4 to 3/4 for four")
    return int(match[1]), int(match[2])


def resource(text):
    name, _, amount = text.partition("=")
    return name, float(amount)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("launch")
    parser.add_argument("out")
    parser.add_argument("recordings", nargs="+", metavar="RECORDING")
    parser.add_argument("--segment", type=float, default=600, help="seconds of a segment; 0: recordings stay whole")
    parser.add_argument("--retries", type=int, default=3)
    parser.add_argument("--frozen-after", type=float, default=180, help="seconds without a frame after which an attempt has failed")
    parser.add_argument("--cpus", type=float, default=1, help="processors that a recording takes")
    parser.add_argument("--gpus", type=float, default=0)
    parser.add_argument("--resource", type=resource, action="append", default=[], help="what else it takes of its machine: NAME=AMOUNT")
    parser.add_argument("--here", action="store_true", help="without Ray, one recording after the other")
    parser.add_argument("--share", type=share, metavar="INDEX/COUNT")
    options = parser.parse_args()
    options.resource = dict(options.resource)
    options.out = os.path.abspath(options.out)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        recordings = names_of(options.recordings)
        if options.share is not None:
            index, count = options.share
            recordings = dict(sorted(recordings.items())[index::count])
        os.makedirs(os.path.join(options.out, PARTS), exist_ok=True)
        job = Job(options, recordings)
        sys.exit(job.here() if options.here else job.on_ray())
    except (Refused, OSError, ConnectionError) as error:
        sys.exit(f"recordings.py: {error}")


if __name__ == "__main__":
    main()
