#!/usr/bin/env python3
"""Checks clpublish's lines key by key: those that readers of DL Streamer's gvametaconvert expect, of the right type, and no others.

    lines.py MODEL.xml      gst-launch-1.0 and GST_PLUGIN_PATH as in the environment
"""
import json
import pathlib
import subprocess
import sys
import tempfile

SHARE, TEXT, WHOLE = (lambda v: isinstance(v, (int, float)) and 0 <= v <= 1), (lambda v: isinstance(v, str) and v != ""), \
    (lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= 0)
NUMBER = lambda v: isinstance(v, (int, float))


def each(schema):
    return lambda v: isinstance(v, list) and all(matches(i, schema) for i in v)


class Optional:
    def __init__(self, schema):
        self.schema = schema


def matches(value, schema):
    """Raises ValueError that names the key that is missing, unknown or wrong."""
    if callable(schema):
        return schema(value)
    if not isinstance(value, dict):
        return False
    for key, wanted in schema.items():
        optional = isinstance(wanted, Optional)
        if key not in value:
            if optional or key == "*":
                continue
            raise ValueError(f"no {key} in {value}")
        if not matches(value[key], wanted.schema if optional else wanted):
            raise ValueError(f"{key} is {value[key]}")
    for key in set(value) - set(schema):
        if "*" not in schema or not matches(value[key], schema["*"]):
            raise ValueError(f"{key} is not known: {value[key]}")
    return True


ATTRIBUTE = {"label_id": WHOLE, "label": Optional(TEXT), "confidence": SHARE, "model": {"name": TEXT}}
TENSOR = {"name": TEXT, "layer_name": TEXT, "model_name": TEXT, "precision": lambda v: v in ("FP32", "FP16", "I32", "I64", "U8"),
          "layout": lambda v: v in ("ANY", "NCHW", "NHWC", "NC"), "dims": each(WHOLE), "data": Optional(each(NUMBER))}
OBJECT = {
    "x": WHOLE, "y": WHOLE, "w": lambda v: WHOLE(v) and v > 0, "h": lambda v: WHOLE(v) and v > 0,
    "region_id": Optional(lambda v: WHOLE(v) and v > 0), "parent_id": Optional(WHOLE), "id": Optional(WHOLE), "roi_type": Optional(TEXT),
    "detection": Optional({"bounding_box": {"x_min": SHARE, "x_max": SHARE, "y_min": SHARE, "y_max": SHARE},
                           "confidence": Optional(SHARE), "label_id": Optional(WHOLE), "label": Optional(TEXT)}),
    "tensors": Optional(each(TENSOR)), "*": ATTRIBUTE}
LINE = {"frame": WHOLE, "objects": each(OBJECT), "resolution": {"width": WHOLE, "height": WHOLE}, "timestamp": WHOLE,
        "source": Optional(TEXT), "tags": Optional(lambda v: True), "system_timestamp": Optional(TEXT), "tensors": Optional(each(TENSOR)),
        "inference": Optional(lambda v: v in ("run", "skipped", "late", "held"))}

# DL Streamer 2026.2 with schema=dl-streamer: its keys, and no others.
DL_TENSOR = {"precision": TEXT, "layout": TEXT, "name": TEXT, "dims": Optional(each(WHOLE)), "model_name": Optional(TEXT), "layer_name": Optional(TEXT),
             "semantic_tag": Optional(TEXT), "tensor_name": Optional(TEXT), "dims_order": Optional(TEXT), "format": Optional(TEXT), "type": Optional(TEXT),
             "label": Optional(TEXT), "label_id": Optional(WHOLE), "confidence": Optional(lambda v: True), "data": Optional(each(NUMBER)),
             "point_names": Optional(each(TEXT)), "point_connections": Optional(each(WHOLE))}
DL_OBJECT = {
    "x": WHOLE, "y": WHOLE, "w": WHOLE, "h": WHOLE, "region_id": Optional(WHOLE), "parent_id": Optional(WHOLE), "id": Optional(WHOLE), "roi_type": Optional(TEXT),
    "detection": OBJECT["detection"], "tensors": Optional(each(DL_TENSOR)), "zone_violations": Optional(each(TEXT)),
    "tripwire_crossings": Optional(each({"tripwire_id": TEXT, "direction": lambda v: v in (-1, 1)})),
    "dwell_times": Optional(each({"zone_id": TEXT, "dwell_time_sec": NUMBER, "first_seen_timestamp_sec": NUMBER})),
    "*": {"label": TEXT, "model": Optional({"name": TEXT}), "confidence": Optional(SHARE), "label_id": Optional(WHOLE)}}
DL_LINE = {"objects": Optional(each(DL_OBJECT)), "tensors": Optional(each(DL_TENSOR)), "resolution": {"width": WHOLE, "height": WHOLE},
           "timestamp": Optional(WHOLE), "source": Optional(TEXT), "tags": Optional(lambda v: True), "system_timestamp": Optional(TEXT),
           "rtp": Optional({"sender_ntp_unix_timestamp_ns": WHOLE})}


def lines_of(elements, live=False, count=(3,), frames=3, schema=LINE):
    command = f"gst-launch-1.0 -q videotestsrc pattern=ball num-buffers={frames} is-live={live} ! video/x-raw,width=320,height=240 ! {elements} ! fakesink"
    run = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=300)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    if run.returncode != 0 or len(lines) not in count:
        sys.exit(f"{command}\n{run.stdout}{run.stderr}")
    for line in lines:
        try:
            if not matches(line, schema):
                raise ValueError(line)
        except ValueError as error:
            sys.exit(f"{command}\n{error}\n{json.dumps(line)}")
    return lines


def expect(name, true):
    if not true:
        sys.exit(f"FAIL {name}")
    print(f"ok   {name}")


def near(a, b):
    return all(abs(p - q) < 0.02 for p, q in zip(a, b))


def box(line):
    found = line["objects"][0]["detection"]["bounding_box"]
    return [found[k] for k in ("x_min", "y_min", "x_max", "y_max")]


def main():
    clinfer = f"clinfer model={sys.argv[1]}"
    plain = lines_of(f"{clinfer} ! clpublish")
    expect("objects", all(line["objects"][0]["detection"]["label"] == "ball" for line in plain))
    expect("a file has no time of the day", all("system_timestamp" not in line for line in plain))
    live = lines_of(f"{clinfer} ! clpublish", live=True)
    expect("a live source has one", all(line["system_timestamp"].endswith("Z") for line in live))
    lines = lines_of(f"""{clinfer} post-process=none ! clpublish add-tensor-data=true source=cam tags='{{"site": 7}}'""")
    expect("tensors with data", all(len(line["tensors"][0]["data"]) == 140 for line in lines))
    expect("source and tags", all(line["source"] == "cam" and line["tags"] == {"site": 7} for line in lines))
    lines = lines_of(f"{clinfer} ! {clinfer} inference-region=roi-list post-process=none ! clpublish")
    expect("tensors of an object", all(line["objects"][0]["tensors"][0]["dims"] == [1, 1, 20, 7] for line in lines))
    # Converted, squeezed, and enlarged with black borders at the sides.
    for elements, scale in (("videoconvert ! video/x-raw,format=RGB", 1), ("videoscale ! video/x-raw,width=200,height=300", 1),
                            ("videoscale ! video/x-raw,width=640,height=240,pixel-aspect-ratio=1/1", 0.5)):
        lines = lines_of(f"{clinfer} ! {elements} ! clpublish")
        moved = [[0.5 + (v - 0.5) * scale if i % 2 == 0 else v for i, v in enumerate(box(line))] for line in plain]
        expect(f"objects after {elements}", all(near(box(line), right) and line["objects"][0]["detection"]["confidence"] > 0.9
                                                 for line, right in zip(lines, moved)))

    # Frames that are repeated or left out keep their own objects; queues and branches change nothing.
    for rate, count in ((60, (4, 5, 6)), (15, (1, 2))):
        elements = f"video/x-raw,framerate=30/1 ! videorate ! video/x-raw,framerate={rate}/1"
        lines = lines_of(f"{clinfer} ! {elements} ! clpublish", count=count)
        expect(f"objects after {elements}", all(any(near(box(line), box(before)) for before in plain) for line in lines))
    for elements in ("queue max-size-buffers=1", "tee name=t t. ! queue ! fakesink async=false t. ! queue", "identity sync=true ! multiqueue"):
        lines = lines_of(f"{clinfer} ! {elements} ! clpublish")
        expect(f"objects after {elements}", all(near(box(line), box(before)) for line, before in zip(lines, plain)))
    # A crop that copies, and one that marks the rest of the frame as invisible (GstVideoCropMeta).
    for after in ("", "videoconvert ! video/x-raw,format=BGRx ! "):
        lines = lines_of(f"{clinfer} ! video/x-raw,format=I420 ! videocrop left=40 top=20 ! {after}clpublish")
        expect(f"objects after videocrop ! {after}", all(
            near(box(line), [(v * (320, 240)[i % 2] - (40, 20)[i % 2]) / (280, 220)[i % 2] for i, v in enumerate(box(before))])
            for line, before in zip(lines, plain)))
    dl_streamer(clinfer)
    chains(clinfer)
    after_movers(clinfer, plain)
    turned(clinfer)
    together(clinfer)


def dl_streamer(clinfer):
    """The lines of DL Streamer 2026.2: with and without objects, tensors, tracks, lines and zones."""
    def lines(elements, count=(3,), frames=3):
        return lines_of(elements, count=count, frames=frames, schema=DL_LINE)

    plain = lines(f"{clinfer} ! clpublish schema=dl-streamer source=cam")
    expect("its objects", all(line["source"] == "cam" and [o["detection"]["label"] for o in line["objects"]] == ["ball"] for line in plain))
    lines(f"{clinfer} threshold=1 ! clpublish schema=dl-streamer", count=(0,))
    empty = lines(f"{clinfer} threshold=1 ! clpublish schema=dl-streamer add-empty-results=true")
    expect("no objects", all("objects" not in line for line in empty))
    found = lines(f"{clinfer} attach-tensors=true ! clpublish schema=dl-streamer add-tensor-data=true")
    expect("tensors", all([t["name"] for t in line["objects"][0]["tensors"]] == ["detection"] and line["tensors"][0]["type"] == "tensor"
                          and len(line["tensors"][0]["data"]) > 0 for line in found))
    events = lines(f"{clinfer} ! cltrack ! clzones lines=middle:0.0,0.5,1.0,0.5 zones=all:0.0,0.0,1.0,0.0,1.0,1.0,0.0,1.0 dwell-time=1000 ! "
                   "clpublish schema=dl-streamer", count=range(40, 121), frames=120)
    objects = [o for line in events for o in line["objects"]]
    expect("tracks and zones", any(o.get("id") and o.get("zone_violations") == ["all"] for o in objects))
    expect("lines", {c["tripwire_id"] for o in objects for c in o.get("tripwire_crossings", [])} == {"middle"})
    expect("times", [d["zone_id"] for o in objects for d in o.get("dwell_times", [])] == ["all"])


def chains(clinfer):
    """Ids of several elements in a row: none twice, and no object is its own parent."""
    second = f"{clinfer} inference-region=roi-list object-class=ball"
    for line in lines_of(f"{clinfer} regions=0,0,320,240 ! {second} ! {clinfer} ! clpublish"):
        ids = [o["region_id"] for o in line["objects"] if "region_id" in o]
        expect("ids differ", len(ids) > 2 and len(ids) == len(set(ids)))
        expect("no object is its own parent", all(o.get("parent_id") != o["region_id"] for o in line["objects"] if "region_id" in o))
        expect("parents are there", all(o["parent_id"] in ids for o in line["objects"] if o.get("parent_id")))


def after_movers(clinfer, plain):
    """Elements that move the picture without telling metas about it: results follow, or are gone."""
    def expected(line, left, top, width, height):
        return [(v * (320, 240)[i % 2] - (left, top)[i % 2]) / (width, height)[i % 2] for i, v in enumerate(box(line))]

    for elements, *view in (
            ("videocrop left=40 top=20 right=10", 40, 20, 270, 220),
            ("videocrop left=40 ! videoscale add-borders=false ! video/x-raw,width=100,height=200 ! videocrop bottom=40 ! queue", 40, 0, 280, 192),
            ("videoscale ! video/x-raw,width=160,height=120 ! videocrop left=-1 right=-1 ! video/x-raw,width=100", 60, 0, 200, 240),
            ("tee name=t t. ! queue ! fakesink async=false t. ! queue ! aspectratiocrop aspect-ratio=1/1", 40, 0, 240, 240),
            ("videobox left=-10 top=20 right=-30", -10, 20, 360, 220),
            ("videobox autocrop=true ! video/x-raw,width=300,height=220", 10, 10, 300, 220)):
        for reader in ("clpublish", "cloverlay ! clpublish", f"{clinfer} inference-region=roi-list post-process=none ! clpublish"):
            lines = lines_of(f"{clinfer} ! {elements} ! {reader}")
            expect(f"objects after {elements} ! {reader.split(' ')[0]}",
                   all(near(box(line), expected(before, *view)) and line["objects"][0]["detection"]["confidence"] > 0.9
                       and len(line["objects"]) == 1 for line, before in zip(lines, plain)))
    lines = lines_of(f"{clinfer} ! videocrop left=200 ! clpublish")
    expect("an object that was cropped away is gone", all(line["objects"] == [] and line["inference"] == "run" for line in lines))
    for elements in ("compositor sink_0::xpos=20", "videoflip video-direction=90r ! compositor sink_0::xpos=20"):
        lines = lines_of(f"{clinfer} ! {elements} ! clpublish")
        expect(f"nothing after {elements}", all(line["objects"] == [] for line in lines))
    # Encoders and decoders of some versions let pass what others drop.
    for elements in ("jpegenc ! jpegdec", "pngenc ! pngdec"):
        lines = lines_of(f"{clinfer} ! {elements} ! clpublish")
        expect(f"right or nothing after {elements}",
               all(line["objects"] == [] or near(box(line), box(before)) for line, before in zip(lines, plain)))


def together(clinfer):
    """Two streams that share a model and its batches, each tracked, read once per object, counted, cropped and published in one line."""
    frames = 240
    with tempfile.TemporaryDirectory() as folder:
        chains = " ".join(
            f"videotestsrc pattern=ball num-buffers={frames} ! video/x-raw,format={form},width=320,height=240,framerate=30/1 "
            f"! {clinfer} model-instance-id=all batch-size=4 inference-interval=3 overload-policy=skip-inference ! cltrack "
            f"! {clinfer} inference-region=roi-list object-class=ball post-process=none reclassify-interval=0 "
            f"! clzones lines=middle:0.5,0.0,0.5,1.0 anchor=center ! clpublish source={form} file-path={folder}/{form}.frames "
            f"! clcrop object-class=ball width=64 height=64 ! clpublish source={form} file-path={folder}/{form}.crops ! fakesink"
            for form in ("NV12", "RGB"))
        run = subprocess.run(f"gst-launch-1.0 -q {chains}", shell=True, capture_output=True, text=True, timeout=300)
        if run.returncode != 0:
            sys.exit(f"{chains}\n{run.stdout}{run.stderr}")
        for form in ("NV12", "RGB"):
            lines, crops = ([json.loads(line) for line in pathlib.Path(folder, f"{form}.{kind}").read_text().splitlines()] for kind in ("frames", "crops"))
            expect(f"{form}: a line for each frame, in order", [line["frame"] for line in lines] == list(range(frames)))
            objects = [line["objects"] for line in lines]
            expect(f"{form}: the ball is on each frame, with one id", all(len(found) == 1 and found[0]["id"] == 1 for found in objects))
            expect(f"{form}: each third frame is inferred, and the boxes between are predicted", all(found[0].get("predicted", False) == (n % 3 != 0) for n, found in enumerate(objects)))
            expect(f"{form}: the second network's tensor is on each", all(len(found[0]["tensors"]) == 1 for found in objects))
            events = [(line["frame"], event["direction"]) for line in lines for event in line.get("events", [])]
            expect(f"{form}: it crosses the middle twice: {events}", [direction for _, direction in events] == ["in", "out"]
                   and all(abs(frame - right) < 9 for (frame, _), right in zip(events, (101, 201))))
            expect(f"{form}: the counts are in the lines", lines[-1]["zones"][0]["in"] == 1 and lines[-1]["zones"][0]["out"] == 1)
            expect(f"{form}: a crop for each, with the id", len(crops) == frames and all(
                crop["resolution"] == {"width": 64, "height": 64} and crop["objects"][0]["id"] == 1 for crop in crops))


# Ways to store a picture, and all values of the tag.
METHODS = ("none", "clockwise", "rotate-180", "counterclockwise", "horizontal-flip", "vertical-flip", "upper-left-diagonal", "upper-right-diagonal")
TAGS = [f"{flip}rotate-{angle}" for flip in ("", "flip-") for angle in (0, 90, 180, 270)]


def turned(clinfer):
    """Objects of pictures that are stored turned: where they are in the stored picture, and in the upright one after videoflip."""
    for method, tag in zip(METHODS, TAGS):
        stored = f"videoflip method={method} ! taginject tags=image-orientation={tag}"
        lines, by_eye = lines_of(f"{stored} ! {clinfer} ! clpublish"), lines_of(f"videoflip method={method} ! {clinfer} ! clpublish")
        expect(f"objects of a picture stored as {tag}", all(near(box(a), box(b)) for a, b in zip(lines, by_eye)))
        lines, by_eye = (lines_of(f"{stored} ! {chain} ! clpublish")
                         for chain in (f"{clinfer} ! videoflip video-direction=auto", f"videoflip video-direction=auto ! {clinfer}"))
        expect(f"and of the upright one of {tag}", all(near(box(a), box(b)) and a["resolution"] == b["resolution"] for a, b in zip(lines, by_eye)))


if __name__ == "__main__":
    main()
