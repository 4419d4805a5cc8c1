#!/usr/bin/env python3
"""Sends video and, beside it, the objects on its frames as ONVIF metadata: XML in an RTP stream of its own.

    onvif.py SOURCE ANALYSIS [--host 127.0.0.1] [--port 5004] [--encoder "..."]

SOURCE and ANALYSIS are parts of a launch line. Video goes to the port (RTP) and the next one (RTCP), with the times of capture that
rtponviftimestamp adds; metadata go to the two ports after them, with encoding name VND.ONVIF.METADATA and payload type 107. Needs
python3-gst-1.0. Coordinates are ONVIF's: -1 is the left and lower edge, 1 the right and upper one.
"""
import argparse
import datetime
import struct
import sys
import time
from xml.etree import ElementTree

import gi
gi.require_version("Gst", "1.0")
from gi.repository import Gst

TT = "http://www.onvif.org/ver10/schema"
ElementTree.register_namespace("tt", TT)
PAYLOAD_TYPE, CLOCK, MOST_BYTES, SSRC = 107, 90000, 1300, 0x0C11F0E5


def add(parent, name, text=None, **attributes):
    element = ElementTree.SubElement(parent, f"{{{TT}}}{name}", {key: str(value) for key, value in attributes.items()})
    element.text = text
    return element


def items(structure, name):
    return list(structure.get_value(name)) if structure.has_field(name) else []


def document(result, utc):
    """The tt:MetadataStream of a frame, from the custom meta ClinferResult (docs/metadata.md)."""
    root = ElementTree.Element(f"{{{TT}}}MetadataStream")
    frame = add(add(root, "VideoAnalytics"), "Frame", UtcTime=utc)
    for region in items(result, "regions"):
        parameters = {parameter.get_name(): parameter for parameter in items(region, "parameters")}
        number = parameters["object_id"].get_value("id") if "object_id" in parameters else region.get_value("region_id")
        left, top, right, bottom = (region.get_value(key) for key in ("x_min", "y_min", "x_max", "y_max"))
        appearance = add(add(frame, "Object", ObjectId=number), "Appearance")
        shape = add(appearance, "Shape")
        add(shape, "BoundingBox", left=f"{2 * left - 1:.4f}", top=f"{1 - 2 * top:.4f}", right=f"{2 * right - 1:.4f}", bottom=f"{1 - 2 * bottom:.4f}")
        add(shape, "CenterOfGravity", x=f"{left + right - 1:.4f}", y=f"{1 - top - bottom:.4f}")
        if "detection" in parameters:
            add(add(appearance, "Class"), "Type", region.get_string("roi_type"), Likelihood=f"{parameters['detection'].get_value('confidence'):.3f}")
    return ElementTree.tostring(root, encoding="UTF-8", xml_declaration=True)


class Metadata:
    def __init__(self, pipeline):
        self.pipeline, self.source, self.sequence = pipeline, pipeline.get_by_name("metadata"), 0
        pad = pipeline.get_by_name("results").get_static_pad("src")
        pad.add_probe(Gst.PadProbeType.BUFFER, self.on_frame)
        pad.add_probe(Gst.PadProbeType.EVENT_DOWNSTREAM, self.on_event)

    def on_frame(self, _pad, info):
        buffer = info.get_buffer()
        meta = buffer.get_custom_meta("ClinferResult")
        if meta is not None:
            text = document(meta.get_structure(), self.capture_time(buffer.pts))
            parts = [text[at:at + MOST_BYTES] for at in range(0, len(text), MOST_BYTES)]
            for part in parts:
                self.send(part, buffer.pts, last=part is parts[-1])
        return Gst.PadProbeReturn.OK

    def on_event(self, _pad, info):
        if info.get_event().type == Gst.EventType.EOS:
            self.source.emit("end-of-stream")
        return Gst.PadProbeReturn.OK

    def capture_time(self, pts):
        """Of a live source: when the pipeline's clock showed the frame's time."""
        age = (self.pipeline.get_clock().get_time() - self.pipeline.get_base_time() - pts) / Gst.SECOND
        return datetime.datetime.fromtimestamp(time.time() - age, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def send(self, part, pts, last):
        """One RTP packet; the marker says that a document ends with it."""
        header = struct.pack(">BBHII", 0x80, PAYLOAD_TYPE | (0x80 if last else 0), self.sequence, pts * CLOCK // Gst.SECOND % 2**32, SSRC)
        self.sequence = (self.sequence + 1) % 2**16
        packet = Gst.Buffer.new_wrapped(header + part)
        packet.pts = packet.dts = pts
        self.source.emit("push-buffer", packet)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("analysis")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=5004)
    parser.add_argument("--encoder", default="vp8enc deadline=1 cpu-used=8 ! rtpvp8pay", help='with its payloader; H.264: "x264enc tune=zerolatency ! rtph264pay"')
    options = parser.parse_args()
    Gst.init(None)
    caps = f"application/x-rtp,media=application,encoding-name=VND.ONVIF.METADATA,clock-rate={CLOCK},payload={PAYLOAD_TYPE},ssrc=(uint){SSRC}"
    sink = [f"udpsink host={options.host} port={options.port + i} sync=false async=false" for i in range(4)]
    pipeline = Gst.parse_launch(
        f"rtpbin name=rtp {options.source} ! {options.analysis} ! identity name=results ! videoconvert ! {options.encoder} "
        f"! rtponviftimestamp ! rtp.send_rtp_sink_0 rtp.send_rtp_src_0 ! {sink[0]} name=video rtp.send_rtcp_src_0 ! {sink[1]} "
        f'appsrc name=metadata is-live=true format=time caps="{caps}" ! rtp.send_rtp_sink_1 rtp.send_rtp_src_1 ! {sink[2]} name=objects '
        f"rtp.send_rtcp_src_1 ! {sink[3]}")
    Metadata(pipeline)
    # RTCP goes on after both streams have ended: the end is theirs, not that of all sinks.
    running = ["video", "objects"]

    def on_end(pad, info):
        if info.get_event().type == Gst.EventType.EOS:
            running.remove(pad.get_parent_element().get_name())
            if not running:
                pipeline.post_message(Gst.Message.new_application(pipeline, Gst.Structure.new_empty("end")))
        return Gst.PadProbeReturn.OK

    for name in list(running):
        pipeline.get_by_name(name).get_static_pad("sink").add_probe(Gst.PadProbeType.EVENT_DOWNSTREAM, on_end)
    pipeline.set_state(Gst.State.PLAYING)
    try:
        message = pipeline.get_bus().timed_pop_filtered(Gst.CLOCK_TIME_NONE, Gst.MessageType.APPLICATION | Gst.MessageType.ERROR)
        failure = message.parse_error()[0].message if message.type == Gst.MessageType.ERROR else None
    except KeyboardInterrupt:
        failure = None
    pipeline.set_state(Gst.State.NULL)
    if failure:
        sys.exit(failure)


if __name__ == "__main__":
    main()
