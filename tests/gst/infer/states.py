#!/usr/bin/env python3
"""A network that keeps a state: the element keeps one for its stream, and begins it anew at a discontinuity, after a flush and with new
caps, whatever nireq says. The network counts the frames that it has seen.

    states.py      skipped without PyGObject
"""
import json
import os
import pathlib
import struct
import sys
import tempfile

try:
    import gi
    gi.require_version("Gst", "1.0")
    from gi.repository import Gst
except (ImportError, ValueError):  # the system's Python has it, which is not always the first one
    if "--again" not in sys.argv and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv, "--again"])
    sys.exit(77)

SIZE = 8


def port(number, *shape):
    return f"<port id='{number}' precision='FP32'>" + "".join(f"<dim>{dim}</dim>" for dim in shape) + "</port>"


def counting_model(folder):
    """An input of a picture, whose mean of 0 is added to the number of frames so far."""
    picture = (1, 1, SIZE, SIZE)
    layers = [("Parameter", 1, f"element_type='f32' shape='1,1,{SIZE},{SIZE}'", [], picture),
              ("ReadValue", 6, "variable_id='frames' variable_type='f32' variable_shape='1,1,1,1'", [], (1, 1, 1, 1)),
              ("Const", 1, "element_type='f32' shape='1,1,1,1' offset='0' size='4'", [], (1, 1, 1, 1)),
              ("Const", 1, "element_type='i64' shape='2' offset='4' size='16'", [], (2,)),
              ("ReduceMean", 1, "keep_dims='true'", [0, 3], (1, 1, 1, 1)),
              ("Add", 1, "", [1, 2], (1, 1, 1, 1)),
              ("Add", 1, "", [5, 4], (1, 1, 1, 1)),
              ("Assign", 6, "variable_id='frames'", [5], None),
              ("Result", 1, "", [6], None)]
    text = edges = ""
    for number, (kind, opset, attributes, inputs, shape) in enumerate(layers):
        text += f"<layer id='{number}' name='{kind}{number}' type='{kind}' version='opset{opset}'><data {attributes}/>"
        if inputs:
            text += "<input>" + "".join(port(i, *layers[source][4]) for i, source in enumerate(inputs)) + "</input>"
        if shape:
            text += "<output>" + port(len(inputs), *shape) + "</output>"
        text += "</layer>"
        for i, source in enumerate(inputs):
            edges += f"<edge from-layer='{source}' from-port='{len(layers[source][3])}' to-layer='{number}' to-port='{i}'/>"
    (folder / "count.xml").write_text(f"<net name='count' version='11'><layers>{text}</layers><edges>{edges}</edges></net>")
    (folder / "count.bin").write_bytes(struct.pack("<fqq", 1, 2, 3))
    return folder / "count.xml"


def counts(model, feed, properties=""):
    """What the network gives for each frame that `feed` pushes into an appsrc."""
    result = model.with_name("results.jsonl")
    result.unlink(missing_ok=True)
    pipeline = Gst.parse_launch(
        f"appsrc name=in format=time caps=video/x-raw,format=GRAY8,width={SIZE},height={SIZE},framerate=30/1 ! clinfer name=net "
        f"model={model} device=CPU post-process=none {properties} ! clpublish method=file file-path={result} add-tensor-data=true "
        "! fakesink sync=false")
    source = pipeline.get_by_name("in")
    pipeline.set_state(Gst.State.PLAYING)
    feed(source, pipeline)
    source.emit("end-of-stream")
    message = pipeline.get_bus().timed_pop_filtered(120 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    error = message.parse_error()[0].message if message is not None and message.type == Gst.MessageType.ERROR else None
    pipeline.set_state(Gst.State.NULL)
    if message is None:
        sys.exit("the pipeline does not end")
    if error:
        return error
    lines = [json.loads(line) for line in result.read_text().splitlines()]
    return [round(line["tensors"][0]["data"][0]) for line in lines]


def push(source, frames, discont_at=(), width=SIZE):
    for n in range(frames):
        buffer = Gst.Buffer.new_wrapped(bytes(width * SIZE))
        buffer.pts = n * Gst.SECOND // 30
        if n in discont_at:
            buffer.set_flags(Gst.BufferFlags.DISCONT)
        source.emit("push-buffer", buffer)


def with_new_caps(source, _):
    push(source, 2)
    source.set_property("caps", Gst.Caps.from_string(f"video/x-raw,format=GRAY8,width=16,height={SIZE},framerate=30/1"))
    push(source, 2, width=16)


def with_flush(source, pipeline):
    push(source, 3)
    sink = pipeline.get_by_name("net").get_static_pad("sink")
    while pipeline.get_by_name("net").get_property("stats").get_value("frames-out") < 3:
        pass
    sink.send_event(Gst.Event.new_flush_start())
    sink.send_event(Gst.Event.new_flush_stop(True))
    sink.send_event(segment())
    push(source, 2)


def segment():
    begin = Gst.Segment()
    begin.init(Gst.Format.TIME)
    return Gst.Event.new_segment(begin)


Gst.init(None)
with tempfile.TemporaryDirectory() as name:
    model = counting_model(pathlib.Path(name))
    for what, feed, properties, wanted in (
            ("frames in a row", lambda source, _: push(source, 5), "", [1, 2, 3, 4, 5]),
            ("nireq=4", lambda source, _: push(source, 5), "nireq=4", [1, 2, 3, 4, 5]),
            ("a discontinuity", lambda source, _: push(source, 5, {3}), "", [1, 2, 3, 1, 2]),
            ("new caps", with_new_caps, "", [1, 2, 1, 2]),
            ("a flush", with_flush, "", [1, 2, 3, 1, 2])):
        got = counts(model, feed, properties)
        print(f"{what}: {got}", flush=True)
        if got != wanted:
            sys.exit(f"{what}: {got}, expected {wanted}")
    for properties, text in (("batch-size=2", "no other batch"), ("regions=0,0,4,4", "leave out")):
        got = counts(model, lambda source, _: push(source, 1), properties)
        if text not in str(got):
            sys.exit(f"{properties}: {got}, expected an error with \"{text}\"")
    two = model.with_name("two")
    two.mkdir()
    pipeline = Gst.parse_launch(" ".join(
        f"videotestsrc pattern=black num-buffers={frames} ! video/x-raw,format=GRAY8,width={SIZE},height={SIZE} ! clinfer model={model} device=CPU "
        f"model-instance-id=one post-process=none ! clpublish method=file file-path={two}/{frames}.jsonl add-tensor-data=true ! fakesink "
        for frames in (4, 6)))
    pipeline.set_state(Gst.State.PLAYING)
    pipeline.get_bus().timed_pop_filtered(120 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    for frames in (4, 6):
        lines = (two / f"{frames}.jsonl").read_text().splitlines()
        steps = [json.loads(line)["tensors"][0]["data"][0] for line in lines]
        differences = [b - a for a, b in zip(steps, steps[1:])]
        if len(steps) != frames or any(round(difference) != 1 for difference in differences):
            sys.exit(f"streams that share model-instance-id: {steps}")
print("ok")
