#!/usr/bin/env python3
"""Records a clip around each event: from some seconds before it to some seconds after it; events that are near go into one clip.

    record_events.py SOURCE ANALYSIS [--before 5] [--after 5] [--message clzones] [--clips clip-%05d.mkv] [--encoder "..."]

SOURCE and ANALYSIS are parts of a launch line; an event is a message with this name that an element of ANALYSIS posts, at its field
`timestamp`. Example:

    record_events.py "v4l2src ! videoconvert" "clinfer model=person.xml ! cltrack ! clzones zones=yard:0.5,0.0,1.0,0.0,1.0,1.0,0.5,1.0"

Frames are encoded all the time, and the last seconds are kept in memory; nothing is written without an event. Each clip is written by a
splitmuxsink. Needs python3-gst-1.0.
"""
import argparse
import collections
import sys
import threading

import gi
gi.require_version("Gst", "1.0")
from gi.repository import Gst


class Recorder:
    def __init__(self, options):
        self.before, self.after = (int(seconds * Gst.SECOND) for seconds in (options.before, options.after))
        self.delay = int(options.delay * Gst.SECOND)
        self.location, self.count = options.clips, 0
        self.lock = threading.Lock()
        self.history = collections.deque()  # encoded frames; the first one is a key frame
        self.caps = None
        self.clip, self.end = None, 0  # the pipeline that writes, and the time up to which it does
        self.finished = []

    def on_sample(self, sink):
        """An encoded frame, in the encoder's thread."""
        sample = sink.emit("pull-sample")
        with self.lock:
            self.caps = sample.get_caps()
            self.history.append(sample.get_buffer())
            self.advance()
            self.history_from(self.history[-1].pts - self.before - self.delay)
        return Gst.FlowReturn.OK

    def history_from(self, time):
        """Forgets the frames before the last key frame that is not after this time."""
        starts = [i for i, buffer in enumerate(self.history) if buffer.pts <= time and not buffer.has_flags(Gst.BufferFlags.DELTA_UNIT)]
        for _ in range(starts[-1] if starts else 0):
            self.history.popleft()

    def on_event(self, time):
        with self.lock:
            if self.clip is not None and time - self.before > self.end:
                self.finish()  # advance() has written all of it
            self.end = max(self.end, time + self.after)
            if self.clip is None:
                self.begin(time - self.before)
            self.advance()

    def begin(self, time):
        self.clip = Gst.parse_launch("appsrc name=in format=time ! splitmuxsink name=out muxer-factory=matroskamux async-finalize=false")
        self.clip.get_by_name("out").set_property("location", self.location.replace("%05d", f"{self.count:05}"))
        self.count += 1
        self.clip.get_by_name("in").set_property("caps", self.caps)
        self.clip.set_state(Gst.State.PLAYING)
        self.history_from(time)
        self.start, self.pushed = self.history[0].pts, -1

    def advance(self):
        """Writes the frames up to the end of the clip. It is complete when no event can come any more that extends it."""
        if self.clip is None:
            return
        for buffer in self.history:
            if self.pushed < buffer.pts <= self.end:
                self.pushed = buffer.pts
                copy = buffer.copy_deep()  # copy() of the bindings is a reference
                copy.pts -= self.start
                copy.dts = Gst.CLOCK_TIME_NONE if buffer.dts == Gst.CLOCK_TIME_NONE else max(buffer.dts - self.start, 0)
                self.clip.get_by_name("in").emit("push-buffer", copy)
        if self.history[-1].pts > self.end + self.before + self.delay:
            self.finish()

    def finish(self):
        self.clip.get_by_name("in").emit("end-of-stream")
        self.finished.append(self.clip)
        self.clip = None

    def close_finished(self, wait=0):
        with self.lock:
            clips, self.finished = self.finished, []
        for clip in clips:
            bus = clip.get_bus()
            message = bus.timed_pop_filtered(wait, Gst.MessageType.EOS | Gst.MessageType.ERROR)
            if message is None:
                with self.lock:
                    self.finished.append(clip)
                continue
            clip.set_state(Gst.State.NULL)
            if message.type == Gst.MessageType.ERROR:
                sys.exit(f"clip: {message.parse_error()[0].message}")
            print(f"{clip.get_by_name('out').get_property('location')} is complete", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("analysis")
    parser.add_argument("--before", type=float, default=5)
    parser.add_argument("--after", type=float, default=5)
    parser.add_argument("--delay", type=float, default=5, help="seconds by which the analysis may be late")
    parser.add_argument("--message", default="clzones")
    parser.add_argument("--clips", default="clip-%05d.mkv")
    parser.add_argument("--encoder", default="videoconvert ! vp8enc deadline=1 cpu-used=8 keyframe-max-dist=30",
                        help='H.264: "x264enc tune=zerolatency key-int-max=30 ! h264parse"')
    options = parser.parse_args()
    Gst.init(None)
    pipeline = Gst.parse_launch(f"{options.source} ! tee name=t ! queue ! {options.analysis} ! fakesink async=false "
                                f"t. ! queue ! {options.encoder} ! appsink name=encoded emit-signals=true sync=false async=false")
    recorder = Recorder(options)
    pipeline.get_by_name("encoded").connect("new-sample", recorder.on_sample)
    pipeline.set_state(Gst.State.PLAYING)
    bus = pipeline.get_bus()
    failure = None
    try:
        while failure is None:
            message = bus.timed_pop_filtered(Gst.SECOND // 10, Gst.MessageType.EOS | Gst.MessageType.ERROR | Gst.MessageType.ELEMENT)
            recorder.close_finished()
            if message is None:
                continue
            if message.type == Gst.MessageType.ERROR:
                failure = message.parse_error()[0].message
            elif message.type == Gst.MessageType.EOS:
                break
            elif message.get_structure().get_name() == options.message:
                print(message.get_structure().to_string(), flush=True)
                recorder.on_event(message.get_structure().get_value("timestamp"))
    except KeyboardInterrupt:
        pass
    pipeline.set_state(Gst.State.NULL)
    with recorder.lock:
        if recorder.clip is not None:
            recorder.finish()
    recorder.close_finished(wait=10 * Gst.SECOND)
    if failure:
        sys.exit(failure)


if __name__ == "__main__":
    main()
