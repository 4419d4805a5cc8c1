#!/usr/bin/env python3
"""GstAnalytics both ways, with GStreamer's own elements: what clinfer finds is drawn by objectdetectionoverlay and its tensors are read by
ssdobjectdetector; objects that stand in GstAnalytics only are inferred in, drawn and published.

    analytics.py MODEL.xml      GST_PLUGIN_PATH as in the environment; exit code 77: skipped, with the reason
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

NEEDS = "import gi; gi.require_version('GstAnalytics', '1.0'); from gi.repository import GstAnalytics"
WIDTH, HEIGHT, FRAMES = 320, 240, 3
CAPS = f"video/x-raw,format=RGB,width={WIDTH},height={HEIGHT},framerate=30/1"


def skip(why):
    print(f"skip: {why}")
    sys.exit(77)


def with_analytics():
    """Goes on in a Python that has the bindings."""
    for python in (sys.executable, shutil.which("python3"), "/usr/bin/python3"):
        if python and subprocess.run([python, "-c", NEEDS], capture_output=True).returncode == 0:
            if python != sys.executable:
                os.execv(python, [python, *sys.argv])
            return
    skip("GstAnalytics for Python is not here: GStreamer 1.24 or newer, gir1.2-gst-plugins-bad-1.0 and python3-gst-1.0")


with_analytics()
import gi  # noqa: E402

gi.require_version("Gst", "1.0")
gi.require_version("GstVideo", "1.0")
gi.require_version("GstAnalytics", "1.0")
from gi.repository import GLib, Gst, GstAnalytics, GstVideo  # noqa: E402

Gst.init(None)
VERSION = Gst.version()[:2]
REL = GstAnalytics.RelTypes


def expect(name, true, said=""):
    if not true:
        sys.exit(f"FAIL {name} {said}")
    print(f"ok   {name}")


# ---- networks

def ir(name, side, outputs, answers=""):
    """A network that gives constants, one output each: {name: (shape, values)}. answers: its model_info."""
    data, layers, edges, count = b"", [], [], 0

    def layer(kind, attributes, inputs, shape, names="", precision="FP32", opset=1):
        nonlocal count
        dims = lambda s: "".join(f"<dim>{d}</dim>" for d in s)  # noqa: E731
        ports = "".join(f'<port id="{i}">{dims(s)}</port>' for i, (_, s) in enumerate(inputs))
        out = f'<output><port id="{len(inputs)}" precision="{precision}" names="{names}">{dims(shape)}</port></output>' if kind != "Result" else ""
        layers.append(f'<layer id="{count}" name="{kind}_{count}" type="{kind}" version="opset{opset}"><data {attributes}/><input>{ports}</input>{out}</layer>')
        for i, ((source, port), _) in enumerate(inputs):
            edges.append(f'<edge from-layer="{source}" from-port="{port}" to-layer="{count}" to-port="{i}"/>')
        count += 1
        return ((count - 1, len(inputs)), shape)

    def const(values, shape, code="f", kind="f32", precision="FP32"):
        nonlocal data
        packed = struct.pack(f"<{len(values)}{code}", *values)
        data += packed
        return layer("Const", f'element_type="{kind}" shape="{",".join(map(str, shape))}" offset="{len(data) - len(packed)}" size="{len(packed)}"',
                     [], shape, precision=precision)

    image = layer("Parameter", f'shape="1,3,{side},{side}" element_type="f32"', [], (1, 3, side, side), "image")
    mean = layer("ReduceMean", 'keep_dims="false"', [image, const([1, 2, 3], (3,), "q", "i64", "I64")], (1,))
    zero = layer("Multiply", 'auto_broadcast="numpy"', [mean, const([0], (1,))], (1,))
    for output, (shape, values) in outputs.items():
        layer("Result", "", [layer("Add", 'auto_broadcast="numpy"', [zero, const(values, shape)], shape, output)], shape)
    path = os.path.join(FOLDER, name)
    with open(path + ".xml", "w") as xml:
        xml.write(f'<?xml version="1.0"?><net name="{name}" version="11"><layers>{"".join(layers)}</layers><edges>{"".join(edges)}</edges>'
                  f"<rt_info><model_info>{answers}</model_info></rt_info></net>")
    with open(path + ".bin", "wb") as weights:
        weights.write(data)
    return path + ".xml"


def classifier():
    return ir("sex", 16, {"sex": ((1, 2), [0.1, 0.9])}, '<model_type value="classification"/><labels value="female male"/>')


# ---- pipelines

def run(elements, fill=None, caps=CAPS):
    """Buffers out of `elements`. Their frames are grey, or have what fill(buffer) adds."""
    pipeline = Gst.parse_launch(f"appsrc name=in format=time caps={caps} ! {elements} ! appsink name=out sync=false")
    source, sink, bus = pipeline.get_by_name("in"), pipeline.get_by_name("out"), pipeline.get_bus()
    pipeline.set_state(Gst.State.PLAYING)
    for n in range(FRAMES):
        buffer = Gst.Buffer.new_wrapped(bytes([90]) * (WIDTH * HEIGHT * 3))
        buffer.pts, buffer.duration = n * Gst.SECOND // 30, Gst.SECOND // 30
        if fill is not None:
            fill(buffer)
        source.emit("push-buffer", buffer)
    source.emit("end-of-stream")
    buffers = []
    while (sample := sink.emit("try-pull-sample", 60 * Gst.SECOND)) is not None:
        buffers.append(sample.get_buffer())
    message = bus.pop_filtered(Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    if message is not None or len(buffers) != FRAMES:
        sys.exit(f"FAIL {elements}: {len(buffers)} frames; {message.parse_error() if message else 'no error'}")
    return buffers


def ball(elements):
    """Buffers of a moving ball through `elements`."""
    pipeline = Gst.parse_launch(f"videotestsrc pattern=ball num-buffers={FRAMES} ! {CAPS} ! {elements} ! appsink name=out sync=false")
    sink = pipeline.get_by_name("out")
    pipeline.set_state(Gst.State.PLAYING)
    buffers = []
    while (sample := sink.emit("try-pull-sample", 60 * Gst.SECOND)) is not None:
        buffers.append(sample.get_buffer())
    message = pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    if message is not None or len(buffers) != FRAMES:
        sys.exit(f"FAIL {elements}: {len(buffers)} frames; {message.parse_error() if message else 'no error'}")
    return buffers


def lines(elements, fill=None):
    path = os.path.join(FOLDER, "lines.json")
    if os.path.exists(path):
        os.remove(path)
    run(f"{elements} ! clpublish file-path={path}", fill)
    with open(path) as file:
        return [json.loads(line) for line in file]


def pixels(buffer):
    return buffer.extract_dup(0, buffer.get_size())


def changed(a, b):
    """The rectangle in which two pictures differ: x, y, width, height."""
    a, b = pixels(a), pixels(b)
    where = [(i // 3 % WIDTH, i // 3 // WIDTH) for i in range(0, len(a), 3) if a[i:i + 3] != b[i:i + 3]]
    if not where:
        return None
    xs, ys = [x for x, _ in where], [y for _, y in where]
    return min(xs), min(ys), max(xs) - min(xs) + 1, max(ys) - min(ys) + 1


# ---- what stands in GstAnalytics

CAR = (100, 80, 60, 40)


def add_car(buffer, track=None, colour=None):
    meta = GstAnalytics.buffer_add_analytics_relation_meta(buffer)
    _, car = meta.add_od_mtd(GLib.quark_from_string("car"), *CAR, 0.75)
    if track is not None:
        _, mtd = meta.add_tracking_mtd(track, 0)
        meta.set_relation(REL.RELATE_TO, car.id, mtd.id)
    if colour is not None:
        _, mtd = meta.add_one_cls_mtd(0.5, GLib.quark_from_string(colour))
        meta.set_relation(REL.CONTAIN, car.id, mtd.id)


def found(buffer):
    """[(label, rectangle, confidence, [(class, level)])]: the objects, with the classes that they contain."""
    meta = GstAnalytics.buffer_get_analytics_relation_meta(buffer)
    objects = []
    if meta is None:
        return objects
    count = GstAnalytics.relation_get_length(meta)
    for i in range(count):
        known, mtd = meta.get_od_mtd(i)
        if not known:
            continue
        _, x, y, w, h, confidence = mtd.get_location()
        classes = []
        for j in range(count):
            is_class, of = meta.get_cls_mtd(j)
            if is_class and meta.get_relation(mtd.id, j) == REL.CONTAIN and meta.get_relation(j, mtd.id) == REL.IS_PART_OF:
                classes.append([(GLib.quark_to_string(of.get_quark(k)), round(of.get_level(k), 3)) for k in range(of.get_length())])
        objects.append((GLib.quark_to_string(mtd.get_obj_type()), (x, y, w, h), confidence, classes))
    return objects


def near(a, b, by=2):
    return all(abs(p - q) <= by for p, q in zip(a, b))


def check_written(model):
    published = os.path.join(FOLDER, "ball.json")
    buffers = ball(f"clinfer model={model} ! clpublish file-path={published}")
    with open(published) as file:
        objects = [json.loads(line)["objects"][0] for line in file]
    for buffer, seen in zip(buffers, objects):
        [(label, where, confidence, _)] = found(buffer)
        expect("an object in GstAnalytics", label == "ball" and confidence > 0.9 and where == (seen["x"], seen["y"], seen["w"], seen["h"]),
               (label, where, seen))
    [(label, where, _, classes)] = found(ball(f"clinfer model={model} ! clinfer model={classifier()} inference-region=roi-list")[0])
    expect("classes related to their object", label == "ball" and classes == [[("male", 0.9)]], classes)


def check_overlay(model):
    if Gst.ElementFactory.find("objectdetectionoverlay") is None:
        print("skip objectdetectionoverlay: gstreamer1.0-plugins-bad has it from 1.24 on")
        return
    plain, drawn = ball(f"clinfer model={model}"), ball(f"clinfer model={model} ! objectdetectionoverlay draw-labels=false")
    for before, after in zip(plain, drawn):
        [(_, where, _, _)] = found(before)
        expect("objectdetectionoverlay draws what clinfer found", changed(before, after) is not None and near(changed(before, after), where, 3),
               (changed(before, after), where))


def check_tensors():
    if VERSION < (1, 26) or Gst.ElementFactory.find("ssdobjectdetector") is None:
        print("skip tensors: GstTensorMeta and ssdobjectdetector come with GStreamer 1.26")
        return
    model = ir("ssd", 16, {"Gst.Model.ObjectDetector.Boxes": ((1, 2, 4), [0.25, 0.125, 0.75, 0.5, 0, 0, 0.1, 0.1]),
                           "Gst.Model.ObjectDetector.Scores": ((1, 2), [0.875, 0.1]),
                           "Gst.Model.ObjectDetector.Classes": ((1, 2), [1, 0]),
                           "Gst.Model.ObjectDetector.NumDetections": ((1,), [2])})
    labels = os.path.join(FOLDER, "labels.txt")
    with open(labels, "w") as file:
        file.write("cat\ndog\n")
    chain = f"clinfer model={model} post-process=none ! ssdobjectdetector label-file={labels}"
    [(label, where, confidence, _)] = found(run(chain)[0])
    expect("ssdobjectdetector reads clinfer's tensors", label == "dog" and near(where, (40, 60, 120, 120), 1) and abs(confidence - 0.875) < 1e-3,
           (label, where, confidence))
    line = lines(chain)[0]
    expect("and clpublish what it makes of them", [(o["x"], o["y"], o["roi_type"]) for o in line["objects"]] == [(40, 60, "dog")], line)


def check_segmentation():
    if VERSION < (1, 26):
        print("skip segmentation: GstAnalyticsSegmentationMtd comes with GStreamer 1.26")
        return
    # The left half is of class 1; of the right one, the upper part is of class 0, the lower of class 2.
    classes = [1, 1, 0, 0] * 2 + [1, 1, 2, 2] * 2
    model = ir("parts", 16, {"scores": ((1, 3, 4, 4), [float(c == of) for c in range(3) for of in classes])},
               '<model_type value="segmentation"/><labels value="sky wall road"/>')
    buffer = run(f"clinfer model={model} post-process=segmentation")[0]
    meta = GstAnalytics.buffer_get_analytics_relation_meta(buffer)
    segments = names = None
    for i in range(GstAnalytics.relation_get_length(meta)):
        known, mtd = meta.get_segmentation_mtd(i)
        segments = mtd if known else segments
        known, mtd = meta.get_cls_mtd(i)
        names = mtd if known else names
    expect("a segmentation in GstAnalytics", segments is not None and names is not None)
    labels = [GLib.quark_to_string(names.get_quark(k)) for k in range(names.get_length())]
    expect("its classes are named", labels == ["sky", "wall", "road"] and segments.get_region_count() == 3 and
           meta.get_relation(segments.id, names.id) == REL.N_TO_N, labels)
    mask = segments.get_mask()[0] if isinstance(segments.get_mask(), tuple) else segments.get_mask()
    values = pixels(mask)
    stride = len(values) // HEIGHT
    at = lambda x, y: values[y * stride + x]  # noqa: E731
    expect("its mask", (at(10, 10), at(WIDTH - 10, 10), at(10, HEIGHT - 10), at(WIDTH - 10, HEIGHT - 10)) == (1, 0, 1, 2))


def check_read():
    """A car that stands in GstAnalytics only."""
    [car] = lines("identity", add_car)[0]["objects"]
    expect("clpublish writes it", (car["x"], car["y"], car["w"], car["h"]) == CAR and car["roi_type"] == "car" and
           car["detection"]["confidence"] == 0.75, car)
    [car] = lines("identity", lambda b: add_car(b, track=7, colour="red"))[0]["objects"]
    expect("with its track and class", car["id"] == 7 and car["classification"]["label"] == "red", car)
    plain, drawn = run("identity"), run("cloverlay show-labels=false show-scores=false", add_car)
    expect("cloverlay draws it", near(changed(plain[0], drawn[0]) or (0, 0, 0, 0), CAR, 3), changed(plain[0], drawn[0]))
    second = f"clinfer model={classifier()} inference-region=roi-list object-class=car"
    [car] = lines(second, add_car)[0]["objects"]
    expect("roi-list infers in it", car["sex"]["label"] == "male" and (car["x"], car["y"], car["w"], car["h"]) == CAR, car)
    [(label, where, _, classes)] = found(run(second, add_car)[0])
    expect("and relates the answer to it", (label, where, classes) == ("car", CAR, [[("male", 0.9)]]), classes)
    # A chain: neither twice the object nor a lost answer.
    third = f"{second} ! clinfer model={ir('age', 16, {'age': ((1, 2), [0.3, 0.7])}, '<model_type value=%sclassification%s/><labels value=%syoung old%s/>' % (('%c' % 34,) * 4))} inference-region=roi-list"
    objects = lines(third, add_car)[0]["objects"]
    expect("two elements in a chain", len(objects) == 1 and objects[0]["sex"]["label"] == "male" and objects[0]["age"]["label"] == "old", objects)
    [(_, _, _, classes)] = found(run(third, add_car)[0])
    expect("two answers of one object", sorted(classes) == [[("male", 0.9)], [("old", 0.7)]], classes)
    [(label, where, _, classes)] = found(run(f"{second} ! videoscale ! video/x-raw,width={WIDTH // 2},height={HEIGHT // 2}", add_car)[0])
    expect("after videoscale", (label, where, classes) == ("car", (50, 40, 30, 20), [[("male", 0.9)]]), (where, classes))
    # An element that moves the picture without telling metas moves the object, or drops it.
    for elements, where in (("videocrop left=40 top=20", (60, 60, 60, 40)), ("videoflip method=rotate-180", (160, 120, 60, 40)),
                            ("videobox left=40 top=-10", (60, 90, 60, 40))):
        chain = f"{second} ! {elements}"
        [(label, at, _, classes)] = found(run(chain, add_car)[0])
        expect(f"GstAnalytics after {elements}", (label, at, classes) == ("car", where, [[("male", 0.9)]]), (at, classes))
        [car] = lines(chain, add_car)[0]["objects"]
        expect(f"once only after {elements}", (car["x"], car["y"], car["w"], car["h"]) == where and car["sex"]["label"] == "male", car)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as FOLDER:
        check_read()
        check_written(sys.argv[1])
        check_overlay(sys.argv[1])
        check_tensors()
        check_segmentation()
