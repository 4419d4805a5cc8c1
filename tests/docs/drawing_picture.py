#!/usr/bin/env python3
"""Draws docs/drawing.png: labels in several scripts and at the frame's edges, a skeleton, answers of further networks, on a made up picture.

    drawing_picture.py OUT.png [CLOVERLAY_PROPERTY=VALUE ...]      needs python3-gst-1.0, gir1.2-gst-plugins-base-1.0, fonts-noto-cjk
"""
import sys

import gi
gi.require_version("Gst", "1.0")
gi.require_version("GstVideo", "1.0")
from gi.repository import Gst, GstVideo  # noqa: E402

WIDTH, HEIGHT = 640, 360
# Shares of the picture, in COCO's order of 17 points.
XS = (.60, .59, .61, .58, .62, .56, .64, .54, .66, .53, .67, .575, .625, .57, .63, .57, .63)
YS = (.60, .59, .59, .60, .60, .66, .66, .74, .74, .82, .82, .82, .82, .90, .90, .97, .97)


def array(values):
    return f"< {', '.join(f'(double){v}' for v in values)} >"


def answer(name, label, confidence):
    structure = Gst.Structure.new_from_string(
        f"{name}, type=classification_result, attribute_name={name}, label_id=(int)1, confidence=(double){confidence}")
    structure.set_value("label", label)
    return structure


def add(buffer, number, label, x, y, width, height, confidence, parameters=()):
    region = GstVideo.buffer_add_video_region_of_interest_meta(buffer, label, x, y, width, height)
    detection = Gst.Structure.new_from_string(
        f"detection, x_min=(double){x / WIDTH}, y_min=(double){y / HEIGHT}, x_max=(double){(x + width) / WIDTH}, "
        f"y_max=(double){(y + height) / HEIGHT}, confidence=(double){confidence}, label_id=(int){number}")
    detection.set_value("label", label)
    for parameter in (detection, *parameters):
        region.add_param(parameter)


def main():
    Gst.init(None)
    pipeline = Gst.parse_launch(
        f"appsrc name=in format=time caps=video/x-raw,format=RGB,width={WIDTH},height={HEIGHT},framerate=1/1 "
        f"! cloverlay {' '.join(sys.argv[2:])} ! videoconvert ! pngenc snapshot=true ! filesink location={sys.argv[1]}")
    buffer = Gst.Buffer.new_wrapped(bytes(v for y in range(HEIGHT) for x in range(WIDTH) for v in (
        60 + x * 120 // WIDTH, 90 + y * 90 // HEIGHT, 120 if (x // 40 + y // 40) % 2 else 150)))
    buffer.pts = 0
    for number, region in enumerate((
            ("سيارة سوداء", 20, 60, 150, 80, 0.93), ("人物 자동차 オートバイ", 200, 60, 170, 90, 0.81), ("כלב גדול", 420, 60, 90, 80, 0.77),
            ("top edge label", 250, 0, 80, 30, 0.6), ("a label that is far too long for the right edge", 570, 200, 70, 60, 0.55),
            ("left", 0, 200, 40, 60, 0.5), ("bottom right corner", 560, 330, 80, 30, 0.5), ("tiny", 300, 220, 2, 2, 0.9))):
        add(buffer, number, *region)
    points = Gst.Structure.new_from_string(
        f"keypoints, type=keypoints, skeleton=coco-17, x={array(XS)}, y={array(YS)}, confidence={array([0.9] * len(XS))}")
    add(buffer, 8, "person", 335, 200, 100, 155, 0.88, (points, answer("gender", "female", 0.97), answer("age", "34", 0.7)))
    pipeline.set_state(Gst.State.PLAYING)
    source = pipeline.get_by_name("in")
    source.emit("push-buffer", buffer)
    source.emit("end-of-stream")
    message = pipeline.get_bus().timed_pop_filtered(30 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    if message is None or message.type == Gst.MessageType.ERROR:
        sys.exit(message.parse_error()[0].message if message else "nothing was drawn within 30 s")


if __name__ == "__main__":
    main()
