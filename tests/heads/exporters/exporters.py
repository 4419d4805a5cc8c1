#!/usr/bin/env python3
"""Tiny models with the files that exporters leave beside them, and what the element makes of them.

    exporters.py [--keep DIR] [NAME ...]      the plug-in is found by the environment (GST_PLUGIN_PATH)

The one place for the next report about an exporter: a function under @case writes a folder by that exporter's own rules and returns
what is right, computed here by those rules and not by clinfer's. Needs numpy and onnx (CLINFER_PYTHON names a Python that has them);
without them it is skipped (exit status 77). Ends with `N right, N wrong`.

Most models answer with what they were fed at five places. The picture's red says the column, its green the row, and its blue is the
same everywhere, so that these numbers tell part, order, range and padding.
"""
import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import other_python

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError:
    other_python.retry("numpy and onnx")

F = np.float32
FRAME, BLUE = (600, 400), 40
IMAGENET = ((.485, .456, .406), (.229, .224, .225))
CASES = {}


def case(make):
    CASES[make.__name__.replace("_", "-")] = make
    return make


# ---- models and pictures

def write_png(path, rgb):
    height, width, _ = rgb.shape
    rows = b"".join(b"\0" + row.tobytes() for row in rgb)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def picture(size=FRAME):
    y, x = np.mgrid[0:size[1], 0:size[0]]
    return np.dstack([x / (size[0] - 1) * 255, y / (size[1] - 1) * 255, np.full(x.shape, BLUE)]).round().astype(np.uint8)


def model_of(nodes, inputs, outputs, constants=None, metadata=None):
    def info(name, value):
        return helper.make_tensor_value_info(name, *value)

    graph = helper.make_graph(nodes, "network", [info(*item) for item in inputs.items()], [info(*item) for item in outputs.items()],
                              [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    for key, value in (metadata or {}).items():
        made.metadata_props.add(key=key, value=value)
    return made


def places(size):
    width, height = size
    return [(0, 0), (0, width - 1), (height - 1, 0), (height - 1, width - 1), (height // 2, width // 2)]


def probe(size):
    """A network that answers with the three channels at five places."""
    nodes, constants = [], {"axes": np.array([2, 3]), "row": np.array([1, 3])}
    for i, (y, x) in enumerate(places(size)):
        constants[f"from{i}"], constants[f"to{i}"] = np.array([y, x]), np.array([y + 1, x + 1])
        nodes += [helper.make_node("Slice", ["picture", f"from{i}", f"to{i}", "axes"], [f"pixel{i}"]),
                  helper.make_node("Reshape", [f"pixel{i}", "row"], [f"row{i}"])]
    nodes.append(helper.make_node("Concat", [f"row{i}" for i in range(5)], ["logits"], axis=1))
    return model_of(nodes, {"picture": (TensorProto.FLOAT, [1, 3, size[1], size[0]])}, {"logits": (TensorProto.FLOAT, [1, 15])}, constants)


def constants_model(outputs, shape, metadata=None):
    """A network whose outputs are these, whatever it sees."""
    nodes = [helper.make_node("ReduceMean", ["picture"], ["mean"], keepdims=0), helper.make_node("Mul", ["mean", "zero"], ["nothing"])]
    constants = {"zero": F(0)}
    for name, value in outputs.items():
        constants[name + "_value"] = np.asarray(value, F)
        nodes.append(helper.make_node("Add", [name + "_value", "nothing"], [name]))
    return model_of(nodes, {"picture": (TensorProto.FLOAT, shape)}, {name: (TensorProto.FLOAT, list(np.shape(value))) for name, value in outputs.items()}, constants, metadata)


# ---- what the authors' code feeds

def fed(size, part, mean=(0, 0, 0), std=(1, 1, 1), blue_first=False, unit=1 / 255, offset=0, pad=None, frame=FRAME):
    """The numbers at the places, where `part` (x0, y0, x1, y1) of the picture fills the input; beyond the picture is `pad`."""
    values = []
    for y, x in places(size):
        column = part[0] + (x + .5) * (part[2] - part[0]) / size[0] - .5
        row = part[1] + (y + .5) * (part[3] - part[1]) / size[1] - .5
        if pad is not None and not (-.5 <= column <= frame[0] - .5 and -.5 <= row <= frame[1] - .5):
            rgb = [pad] * 3
        else:
            rgb = [np.clip(column / (frame[0] - 1), 0, 1) * 255, np.clip(row / (frame[1] - 1), 0, 1) * 255, BLUE]
        rgb = rgb[::-1] if blue_first else rgb
        values += [(rgb[c] * unit + offset - mean[c]) / std[c] for c in range(3)]
    return np.array(values, F)


def whole(frame=FRAME):
    return (0, 0, *frame)


def middle(width, height, frame=FRAME):
    return ((frame[0] - width) / 2, (frame[1] - height) / 2, (frame[0] + width) / 2, (frame[1] + height) / 2)


def shorter_edge(edge, crop, frame=FRAME):
    """The shorter edge becomes `edge`, and the middle of `crop` x `crop` is cut out."""
    side = crop * min(frame) / edge
    return middle(side, side, frame)


def boxed(size, centred, frame=FRAME):
    """All of the picture in its proportions; the rest is padding."""
    scale = max(frame[0] / size[0], frame[1] / size[1])
    width, height = size[0] * scale, size[1] * scale
    return middle(width, height, frame) if centred else (0, 0, width, height)


class Folder:
    def __init__(self, path):
        self.path = path

    def write(self, name, content):
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if isinstance(content, onnx.ModelProto):
            return onnx.save(content, path)
        with open(path, "w", encoding="utf-8") as file:
            return file.write(content if isinstance(content, str) else json.dumps(content))


def feeds(folder, size, want, files, model="model.onnx", **more):
    folder.write(model, probe(size))
    for name, content in files.items():
        folder.write(name, content)
    return {"model": more.pop("load", model), "fed": want, **more}


# ---- Hugging Face's transformers

def processor(kind, **more):
    return {"preprocessor_config.json": {"image_processor_type": kind, "do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255, **more}}


NORMALISED = {"do_normalize": True, "image_mean": IMAGENET[0], "image_std": IMAGENET[1]}
HALF = ((.5,) * 3, (.5,) * 3)


@case
def vit_stretches(folder):
    return feeds(folder, (64, 64), fed((64, 64), whole(), *HALF), processor("ViTImageProcessor", size={"height": 64, "width": 64}, do_normalize=True, image_mean=HALF[0], image_std=HALF[1]))


@case
def beit_stretches_then_cuts(folder):
    part = middle(FRAME[0] * 64 / 80, FRAME[1] * 64 / 80)
    return feeds(folder, (64, 64), fed((64, 64), part, *IMAGENET), processor("BeitImageProcessor", size={"height": 80, "width": 80}, do_center_crop=True, crop_size={"height": 64, "width": 64}, **NORMALISED))


@case
def clip_of_old_with_numbers(folder):
    return feeds(folder, (64, 64), fed((64, 64), shorter_edge(64, 64), *IMAGENET),
                 {"preprocessor_config.json": {"feature_extractor_type": "CLIPFeatureExtractor", "size": 64, "crop_size": 64, "do_resize": True, "do_center_crop": True, **NORMALISED}})


@case
def convnext_of_384_stretches(folder):
    return feeds(folder, (384, 384), fed((384, 384), whole(), *IMAGENET), processor("ConvNextImageProcessor", size={"shortest_edge": 384}, crop_pct=.95, **NORMALISED))


@case
def convnext_of_old_with_a_number(folder):
    return feeds(folder, (96, 96), fed((96, 96), shorter_edge(int(96 / .8), 96), *IMAGENET),
                 {"preprocessor_config.json": {"feature_extractor_type": "ConvNextFeatureExtractor", "size": 96, "crop_pct": .8, "do_resize": True, **NORMALISED}})


@case
def levit_grows_the_edge(folder):
    return feeds(folder, (224, 224), fed((224, 224), shorter_edge(256, 224), *IMAGENET),
                 processor("LevitImageProcessor", size={"shortest_edge": 224}, do_center_crop=True, crop_size={"height": 224, "width": 224}, **NORMALISED))


@case
def efficientnet_divides_twice(folder):
    twice = tuple(s * s for s in IMAGENET[1])
    return feeds(folder, (64, 64), fed((64, 64), whole(), IMAGENET[0], twice),
                 processor("EfficientNetImageProcessor", size={"height": 64, "width": 64}, do_center_crop=False, include_top=True, rescale_offset=False, **NORMALISED))


@case
def offset_and_normalised(folder):
    return feeds(folder, (64, 64), fed((64, 64), whole(), *HALF, unit=1 / 127.5, offset=-1),
                 {"preprocessor_config.json": {"image_processor_type": "VivitImageProcessor", "size": {"height": 64, "width": 64}, "do_center_crop": False, "rescale_factor": 1 / 127.5, "rescale_offset": True,
                                               "do_normalize": True, "image_mean": HALF[0], "image_std": HALF[1]}})


@case
def mobilevit_is_blue_first_by_default(folder):
    return feeds(folder, (64, 64), fed((64, 64), shorter_edge(72, 64), blue_first=True),
                 processor("MobileViTFeatureExtractor", size={"shortest_edge": 72}, do_center_crop=True, crop_size={"height": 64, "width": 64}))


@case
def a_processor_inside_another(folder):
    inner = processor("SiglipImageProcessor", size={"height": 64, "width": 64}, do_normalize=True, image_mean=HALF[0], image_std=HALF[1])
    return feeds(folder, (64, 64), fed((64, 64), whole(), *HALF), {"processor_config.json": {"processor_class": "SiglipProcessor", "image_processor": inner["preprocessor_config.json"]}})


@case
def transformers_js(folder):
    folder.write("onnx/model_quantized.onnx", probe((64, 64)))
    return feeds(folder, (64, 64), fed((64, 64), shorter_edge(80, 64), *IMAGENET),
                 {"config.json": {"model_type": "resnet", "architectures": ["ResNetForImageClassification"], "id2label": {str(i): f"class {i}" for i in range(15)}},
                  **processor("ConvNextImageProcessor", size={"shortest_edge": 64}, crop_pct=.8, **NORMALISED)}, "onnx/model.onnx", load="", label="class")


# ---- timm and OpenCLIP

def timm(folder, size, want, config, **more):
    return feeds(folder, size, want, {"config.json": {"architecture": "resnet18", "num_classes": 15, **config}}, **more)


@case
def timm_squashes(folder):
    part = middle(FRAME[0] * 64 / 71, FRAME[1] * 64 / 71)
    return timm(folder, (64, 64), fed((64, 64), part, *HALF), {"pretrained_cfg": {"input_size": [3, 64, 64], "crop_pct": .9, "crop_mode": "squash", "mean": HALF[0], "std": HALF[1]}})


@case
def timm_with_a_border(folder):
    return timm(folder, (96, 96), fed((96, 96), boxed((96, 96), True), *HALF, pad=128), {"pretrained_cfg": {"input_size": [3, 96, 96], "crop_pct": 1.0, "crop_mode": "border", "mean": HALF[0], "std": HALF[1]}})


@case
def timm_at_the_size_of_tests(folder):
    return timm(folder, (96, 96), fed((96, 96), shorter_edge(96, 96), *IMAGENET),
                {"pretrained_cfg": {"input_size": [3, 64, 64], "crop_pct": .8, "test_input_size": [3, 96, 96], "test_crop_pct": 1.0, "mean": IMAGENET[0], "std": IMAGENET[1]}})


@case
def timm_of_old_without_a_group(folder):
    names = [f"flower {i}" for i in range(15)]
    return timm(folder, (64, 64), fed((64, 64), shorter_edge(73, 64), *IMAGENET), {"input_size": [3, 64, 64], "crop_pct": .875, "mean": IMAGENET[0], "std": IMAGENET[1], "label_names": names}, label="flower")


@case
def open_clip_cuts(folder):
    numbers = ((.48145466, .4578275, .40821073), (.26862954, .26130258, .27577711))
    return feeds(folder, (64, 64), fed((64, 64), shorter_edge(64, 64), *numbers), {"preprocess_cfg.json": {"size": 64, "mode": "RGB", "mean": numbers[0], "std": numbers[1], "resize_mode": "shortest"}})


@case
def open_clip_pads(folder):
    return feeds(folder, (96, 72), fed((96, 72), boxed((96, 72), True), *HALF, pad=77),
                 {"open_clip_config.json": {"model_cfg": {}, "preprocess_cfg": {"size": [72, 96], "mean": HALF[0], "std": HALF[1], "resize_mode": "longest", "fill_color": 77}}})


@case
def open_clip_in_a_folder_of_its_own(folder):
    return feeds(folder, (64, 64), fed((64, 64), whole(), *HALF), {"visual/preprocess_cfg.json": {"size": [64, 64], "mean": HALF[0], "std": HALF[1], "resize_mode": "squash"}, "config.json": {"embed_dim": 15}},
                 "visual/model.onnx")


# ---- OpenMMLab, Paddle, NVIDIA, Ultralytics

def pipeline(*transforms):
    return {"pipeline.json": {"pipeline": {"input": ["img"], "output": ["out"], "tasks": [{"type": "Task", "module": "Transform", "transforms": [{"type": "LoadImageFromFile"}, *transforms]}]}}}


@case
def mmdeploy_by_the_edge(folder):
    return feeds(folder, (64, 64), fed((64, 64), shorter_edge(80, 64), (103.53, 116.28, 123.675), (57.375, 57.12, 58.395), blue_first=True, unit=1),
                 pipeline({"type": "Resize", "keep_ratio": True, "size": [-1, 80]}, {"type": "CenterCrop", "crop_size": [64, 64]}, {"type": "Normalize", "to_rgb": False, "mean": [103.53, 116.28, 123.675], "std": [57.375, 57.12, 58.395]}))


@case
def mmdeploy_pads(folder):
    return feeds(folder, (96, 96), fed((96, 96), boxed((96, 96), False), unit=1 / 255, pad=114),
                 pipeline({"type": "Resize", "keep_ratio": True, "size": [96, 96]}, {"type": "Pad", "size": [96, 96], "pad_val": {"img": [114, 114, 114]}}, {"type": "Normalize", "to_rgb": True, "mean": [0, 0, 0], "std": [255, 255, 255]}))


@case
def paddlex_classifies(folder):
    steps = "PreProcess:\n  transform_ops:\n  - ResizeImage:\n      resize_short: 80\n  - CropImage:\n      size: 64\n  - NormalizeImage:\n      mean: [0.485, 0.456, 0.406]\n      std: [0.229, 0.224, 0.225]\n      scale: 1.0/255.0\n      order: ''\n  - ToCHWImage: null\n"
    names = "PostProcess:\n  Topk:\n    topk: 5\n    label_list:\n" + "".join(f"    - kind {i}\n" for i in range(15))
    return feeds(folder, (64, 64), fed((64, 64), shorter_edge(80, 64), *IMAGENET), {"inference.yml": "Global:\n  model_name: PP-LCNet_x1_0\n" + steps + names}, "inference.onnx", label="kind")


@case
def paddlex_detects(folder):
    steps = "mode: paddle\narch: YOLO\ndraw_threshold: 0.5\nPreprocess:\n- interp: 2\n  keep_ratio: false\n  target_size: [64, 64]\n  type: Resize\n- mean: [0.0, 0.0, 0.0]\n  norm_type: none\n  std: [1.0, 1.0, 1.0]\n  type: NormalizeImage\n- type: Permute\nlabel_list:\n- person\n"
    return feeds(folder, (64, 64), fed((64, 64), whole()), {"inference.yml": steps}, "inference.onnx")


@case
def deepstream(folder):
    config = "# made by TAO\n[property]\ngpu-id=0\nnet-scale-factor=0.01735207357279195\noffsets=123.675;116.28;103.53\nmodel-color-format=1\nonnx-file=model.onnx\nlabelfile-path=/home/somebody/labels.txt\nnetwork-type=1\nmaintain-aspect-ratio=1\nsymmetric-padding=1\n"
    return feeds(folder, (96, 96), fed((96, 96), boxed((96, 96), True), (123.675, 116.28, 103.53), (1 / .01735207357279195,) * 3, blue_first=True, unit=1, pad=0),
                 {"nvinfer_config.txt": config, "labels.txt": ";".join(f"sort {i}" for i in range(15)) + "\n"}, label="sort")


@case
def deepstream_of_another_model(folder):
    config = "[property]\nnet-scale-factor=0.5\nmodel-color-format=1\nonnx-file=other.onnx\n"
    return feeds(folder, (64, 64), fed((64, 64), whole(), *HALF), {"config_infer_other.txt": config, **processor("ViTImageProcessor", size={"height": 64, "width": 64}, do_normalize=True, image_mean=HALF[0], image_std=HALF[1])})


@case
def ultralytics_classifies(folder):
    return feeds(folder, (64, 64), fed((64, 64), shorter_edge(64, 64)), {"metadata.yaml": "description: Ultralytics YOLO11n-cls model\ntask: classify\nimgsz:\n- 64\n- 64\nnames:\n" + "".join(f"  {i}: thing {i}\n" for i in range(15))}, label="thing")


# ---- recorders

@case
def a_recorder_that_saves_half_of_the_columns(folder):
    """Pixels twice as wide as high: the picture is 1200x400, of which each column counts twice."""
    config = "[property]\nnet-scale-factor=0.00392156862745098\nmodel-color-format=0\nmaintain-aspect-ratio=1\n"
    return feeds(folder, (96, 96), fed((96, 96), (0, 0, 600, 1200), pad=0), {"nvinfer_config.txt": config}, before="capssetter caps=video/x-raw,pixel-aspect-ratio=2/1")


# ---- sizes that the file leaves open

def any_size():
    """The mean of the picture, of any size, as three classes."""
    nodes = [helper.make_node("GlobalAveragePool", ["picture"], ["mean"]), helper.make_node("Flatten", ["mean"], ["logits"])]
    return model_of(nodes, {"picture": (TensorProto.FLOAT, ["batch", 3, "height", "width"])}, {"logits": (TensorProto.FLOAT, ["batch", 3])})


@case
def an_open_size_that_a_file_states(folder):
    folder.write("model.onnx", any_size())
    folder.write("preprocessor_config.json", processor("ViTImageProcessor", size={"height": 32, "width": 48}, do_normalize=False)["preprocessor_config.json"])
    return {"model": "model.onnx", "fed": np.array([.5, .5, BLUE / 255], F), "tolerance": .01}


@case
def an_open_size_that_nothing_states(folder):
    nodes = [helper.make_node("Sigmoid", ["picture"], ["all"]), helper.make_node("ReduceMean", ["all"], ["map"], axes=[1], keepdims=1)]
    folder.write("text_det.onnx", model_of(nodes, {"picture": (TensorProto.FLOAT, ["n", 3, "h", "w"])}, {"map": (TensorProto.FLOAT, ["n", 1, "h", "w"])}))
    return {"model": "text_det.onnx", "said": "it gets the frame's", "elements": 608 * 416}


@case
def an_example_of_a_size(folder):
    """CenterFace's file states the 32x32 that its exporter was given."""
    nodes, constants = [helper.make_node("AveragePool", ["picture"], ["quarter"], kernel_shape=[4, 4], strides=[4, 4])], {}
    outputs = {"537": 1, "538": 2, "539": 2, "540": 10}
    for name, channels in outputs.items():
        constants["w" + name] = np.zeros((channels, 3, 1, 1), F)
        nodes.append(helper.make_node("Conv", ["quarter", "w" + name], [name]))
    folder.write("centerface.onnx", model_of(nodes, {"picture": (TensorProto.FLOAT, [1, 3, 32, 32])}, {name: (TensorProto.FLOAT, [1, channels, 8, 8]) for name, channels in outputs.items()}, constants))
    return {"model": "centerface.onnx", "said": "states an example of it", "elements": 608 * 416 // 16}


@case
def directions_of_lines(folder):
    """PP-OCR's classifier leaves its size open; all of its networks take 192x48, blue first."""
    constants = {"from": np.array([0]), "to": np.array([2]), "axes": np.array([1])}
    nodes = [helper.make_node("ReduceMean", ["x"], ["mean"], axes=[2, 3], keepdims=0), helper.make_node("Slice", ["mean", "from", "to", "axes"], ["two"]), helper.make_node("Softmax", ["two"], ["softmax_0.tmp_0"], axis=1)]
    folder.write("cls.onnx", model_of(nodes, {"x": (TensorProto.FLOAT, ["n", 3, "h", "w"])}, {"softmax_0.tmp_0": (TensorProto.FLOAT, ["n", 2])}, constants))
    return {"model": "cls.onnx", "label": "180"}


@case
def directions_of_lines_of_80_rows(folder):
    """PP-OCRv5's: red first, by ImageNet's mean and scale."""
    constants = {"from": np.array([1]), "to": np.array([3]), "axes": np.array([1])}
    nodes = [helper.make_node("ReduceMean", ["x"], ["mean"], axes=[2, 3], keepdims=0), helper.make_node("Slice", ["mean", "from", "to", "axes"], ["two"]), helper.make_node("Softmax", ["two"], ["fetch_name_0"], axis=1)]
    folder.write("cls.onnx", model_of(nodes, {"x": (TensorProto.FLOAT, ["n", 3, 80, 160])}, {"fetch_name_0": (TensorProto.FLOAT, ["n", 2])}, constants))
    return {"model": "cls.onnx", "label": "0", "said": "PP-OCRv5's classifier of directions"}


def classifier_of_imagenet(folder, want):
    """A thousand numbers, of which the first are what the network was fed."""
    made = probe((64, 64))
    made.graph.node[-1].output[0] = "few"
    made.graph.node.append(helper.make_node("Pad", ["few", "pads"], ["output"]))
    made.graph.initializer.append(numpy_helper.from_array(np.array([0, 0, 0, 985]), "pads"))
    made.graph.output[0].CopyFrom(helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, 1000]))
    folder.write("model.onnx", made)
    return {"model": "model.onnx", "fed": np.concatenate([want, np.zeros(985, F)])}


@case
def a_thousand_classes(folder):
    """As torchvision's networks are exported, without a word about the picture: the shorter edge is 256, and 224 are cut out."""
    return classifier_of_imagenet(folder, fed((64, 64), shorter_edge(256, 224), *IMAGENET))


@case
def text_regions_of_another_project(folder):
    """A probability map that PyTorch wrote is not of PP-OCR, whose networks alone are blue first."""
    folder.write("dbnet.onnx", constants_model({"out1": np.full((1, 1, 64, 64), .1, F)}, [1, 3, 64, 64]))
    return {"model": "dbnet.onnx", "said": "RGB, mean 123.675,116.28,103.53, scale 58.395,57.12,57.375 is assumed, as is usual for text detection by DB"}


# ---- names

@case
def names_of_a_training_beside_those_of_coco(folder):
    """FastestDet of two classes; the example's coco.names still lies there."""
    cells = np.full((1, 7, 4, 4), .01, F)
    cells[0, :, 1, 2] = .9, 0, 0, 0, 0, .1, .9                       # objectness, offsets, sides, classes
    folder.write("model.onnx", constants_model({"734": cells}, [1, 3, 64, 64]))
    folder.write("class.names", "helmet\nbare head\n")
    folder.write("coco.names", "\n".join(f"thing {i}" for i in range(80)) + "\n")
    return {"model": "model.onnx", "label": "bare head"}


@case
def a_dictionary_above_the_folder_rec(folder):
    scores = np.full((1, 6, 12), .01, F)
    for step, best in enumerate([1, 1, 0, 2, 11, 3]):
        scores[0, step, best] = .89
    folder.write("rec/rec.onnx", constants_model({"fetch_name_0": scores}, [1, 3, 48, 320]))
    folder.write("ppocrv5_dict.txt", "\n".join("abcdefghij") + "\n")
    return {"model": "rec/rec.onnx", "label": "ab c", "said": "ppocrv5_dict.txt is taken"}


@case
def frigate(folder):
    config = "mqtt:\n  enabled: false\nmodel:\n  path: /config/model_cache/model.onnx\n  labelmap_path: /labelmap/fifteen.txt\n  width: 64\n  height: 64\n  input_tensor: nchw\n  input_dtype: float\n  model_type: yolo-generic\n"
    return feeds(folder, (64, 64), fed((64, 64), whole()), {"config.yml": config, "fifteen.txt": "".join(f"{i}  thing {i}\n" for i in range(15))})


@case
def a_dictionary_among_others(folder):
    scores = np.full((1, 6, 12), .01, F)
    for step, best in enumerate([1, 1, 0, 2, 11, 3]):                # the blank first, a space last
        scores[0, step, best] = .89
    folder.write("rec.onnx", constants_model({"softmax_2.tmp_0": scores}, [1, 3, 48, 320]))
    folder.write("en_dict.txt", "\n".join("abcdefghij") + "\n")
    folder.write("japan_dict.txt", "\n".join("abcdefghijklmnop") + "\n")
    folder.write("notes.txt", "\n".join("0123456789") + "\n")
    return {"model": "rec.onnx", "label": "ab c", "said": "en_dict.txt is taken"}


@case
def a_dictionary_whose_space_was_lost(folder):
    """PP-OCR's en_dict.txt ends in a line that is a space, which some packages have lost: 13 classes of 10 characters."""
    scores = np.full((1, 6, 13), .01, F)
    for step, best in enumerate([1, 1, 0, 2, 11, 3]):
        scores[0, step, best] = .88
    folder.write("rec.onnx", constants_model({"softmax_2.tmp_0": scores}, [1, 3, 48, 320]))
    folder.write("en_dict.txt", "\n".join("abcdefghij"))
    return {"model": "rec.onnx", "label": "ab c", "said": "en_dict.txt is taken"}


def lines_of_ten_classes(folder, outputs, dictionary):
    """As many classes as PaddleDetection's turned boxes have columns."""
    scores = np.full((1, 40, 10), .01, F)
    for step, best in enumerate([1, 0, 2, 9, 3]):
        scores[0, step, best] = .91
    scores[0, 5:, 0] = .91
    folder.write("model.onnx", constants_model({outputs: scores}, [1, 3, 48, 320]))
    folder.write("dict.txt", dictionary)
    return {"model": "model.onnx", "label": "ab c", "properties": f"labels-file={folder.path}/dict.txt"}


@case
def a_dictionary_of_eight_characters(folder):
    return lines_of_ten_classes(folder, "softmax_2.tmp_0", "\r\n".join("abcdefgh") + "\r\n")


@case
def a_dictionary_of_eight_characters_by_paddlex(folder):
    return lines_of_ten_classes(folder, "fetch_name_0", "\n".join("abcdefgh") + "\n")


@case
def names_of_tensorflow_lite(folder):
    """Its detectors count classes from 0, and its label maps have a line before the first."""
    boxes, classes, scores = np.zeros((1, 10, 4), F), np.zeros((1, 10), F), np.zeros((1, 10), F)
    boxes[0, 0], classes[0, 0], scores[0, 0] = (.2, .1, .8, .6), 1, .9
    outputs = {f"TFLite_Detection_PostProcess{end}": value for end, value in (("", boxes), (":1", classes), (":2", scores), (":3", F([1])))}
    folder.write("model.onnx", constants_model(outputs, [1, 3, 64, 64]))
    folder.write("labelmap.txt", "???\ncat\nred fox\ndog\n")
    return {"model": "model.onnx", "label": "red fox", "properties": f"labels-file={folder.path}/labelmap.txt"}


def points(folder, name, values):
    folder.write("model.onnx", constants_model({name: values}, [1, 3, 112, 112]))
    return {"model": "model.onnx", "points": np.asarray(values).reshape(68, -1)[:, :2], "properties": "resize-mode=stretch"}


@case
def points_as_a_table(folder):
    return points(folder, "landmarks", np.random.default_rng(3).uniform(.1, .9, (1, 68, 2)))


@case
def points_of_three_dimensions(folder):
    return points(folder, "landmarks", np.random.default_rng(4).uniform(.1, .9, (1, 204)))


@case
def points_of_pfld(folder):
    """Those of 98 and 106 points are trained on pictures as OpenCV reads them."""
    values = np.random.default_rng(5).uniform(.1, .9, (1, 212))
    folder.write("pfld-106-lite.onnx", constants_model({"output": values}, [1, 3, 112, 112]))
    return {"model": "pfld-106-lite.onnx", "points": values.reshape(106, 2), "said": "BGR, mean 0, scale 255 is assumed, as PFLD of 98 and 106 points takes them"}


@case
def points_of_bodypix(folder):
    """Beside the offsets of a point from its own cell, there are those of every cell of a person; a side of 64 is four strides of 16."""
    heat, short, long = np.full((1, 4, 4, 17), -9, F), np.zeros((1, 4, 4, 34), F), np.full((1, 4, 4, 34), 25, F)
    wanted = []
    for k in range(17):
        y, x = k % 4, k // 5
        heat[0, y, x, k], short[0, y, x, k], short[0, y, x, 17 + k] = 3, k / 4, 2
        wanted.append(((x * 16 + 2) / 64, (y * 16 + k / 4) / 64))
    made = constants_model({"displacement_bwd": np.zeros((1, 4, 4, 32), F), "heatmaps": heat, "long_offsets": long, "short_offsets": short}, [1, 64, 64, 3])
    folder.write("model.onnx", made)
    return {"model": "model.onnx", "points": np.array(wanted), "properties": "resize-mode=stretch"}


@case
def points_in_maps_of_yolov8(folder):
    """YOLOv8-face before its last step, as its authors export it for OpenCV: 64 bins, a score, and x, y, visibility of five points a cell."""
    maps = {name: np.full((1, 80, side, side), -9, F) for name, side in (("output0", 8), ("884", 4), ("892", 2))}
    middle_of = np.array([2.5, 1.5])                                # of the cell, in strides of 16
    maps["884"][0, [1, 17, 33, 49], 1, 2] = 9                       # one stride to each side
    maps["884"][0, 64, 1, 2] = 2
    wanted = []
    for k in range(5):
        maps["884"][0, 65 + 3 * k:68 + 3 * k, 1, 2] = .1 * k, .25, 3
        wanted.append((2 * np.array([.1 * k, .25]) + middle_of - .5) * 16 / 64)
    folder.write("face.onnx", constants_model(maps, [1, 3, 64, 64], {"task": "pose", "kpt_shape": "[5, 3]", "names": "{0: 'face'}", "stride": "32", "imgsz": "[64, 64]"}))
    return {"model": "face.onnx", "label": "face", "points": np.array(wanted), "properties": "resize-mode=stretch"}


@case
def boxes_and_scores_in_one_scale(folder):
    """ONNX Runtime's quantize_static gives YOLOv8's output one scale, that of its boxes: scores are 0 or one step of 1.39."""
    rows = np.zeros((1, 7, 2100), F)
    rows[0, :4, 40], rows[0, 6, 40] = (100, 80, 90, 60), .8
    made = constants_model({"output0": rows}, [1, 3, 320, 320], {"task": "detect", "names": "{0: 'cat', 1: 'dog', 2: 'fox'}", "stride": "32", "imgsz": "[320, 320]"})
    made.graph.node[-1].output[0] = "floats"
    made.graph.initializer.extend([numpy_helper.from_array(F(1.390794), "step"), numpy_helper.from_array(np.int8(-125), "zero_of_steps")])
    made.graph.node.extend([helper.make_node("QuantizeLinear", ["floats", "step", "zero_of_steps"], ["bytes"]),
                            helper.make_node("DequantizeLinear", ["bytes", "step", "zero_of_steps"], ["output0"])])
    folder.write("best_int8.onnx", made)
    return {"model": "best_int8.onnx", "label": "fox", "said": "quantised in steps of 1.39"}


@case
def names_that_are_called_characters(folder):
    folder.write("model.onnx", constants_model({"fetch_name_0": [[.1, .7, .1, .1]]}, [1, 3, 224, 224], {"character": "0\n90\n180\n270"}))
    return {"model": "model.onnx", "label": "90"}


def named(folder, file, text, names, wanted, properties=""):
    scores = np.full((1, names), .01, F)
    scores[0, wanted[0]] = .9
    folder.write("model.onnx", constants_model({"prob": scores}, [1, 3, 32, 32]))
    folder.write(file, text)
    return {"model": "model.onnx", "label": wanted[1], "properties": properties}


@case
def names_in_data_yaml(folder):
    return named(folder, "data.yaml", "train: ../train/images\nval: ../valid/images\n\nnc: 3\nnames: ['cat', 'red fox', 'no']\ndownload: |\n  a script\n    of lines\n", 3, (1, "red fox"))


@case
def names_in_obj_names(folder):
    return named(folder, "obj.names", "cat\nred fox\ndog\n\n", 3, (1, "red fox"))


@case
def names_in_labels_json(folder):
    return named(folder, "labels.json", '{"0": "cat", "1": "red fox", "2": "dog"}', 3, (1, "red fox"))


def names_inside(folder, text):
    """Names in the ONNX file itself, of which the second class is a fox."""
    folder.write("model.onnx", constants_model({"prob": [[.05, .9, .05]]}, [1, 3, 32, 32], {"names": text}))
    return {"model": "model.onnx", "label": "fox"}


@case
def names_inside_as_json(folder):
    return names_inside(folder, '{"0": "cat", "1": "fox", "2": "dog"}')


@case
def names_inside_in_another_order(folder):
    return names_inside(folder, "{2: 'dog', 0: 'cat', 1: 'fox'}")


@case
def names_inside_with_their_numbers_after(folder):
    return names_inside(folder, '{"dog": 2, "fox": 1, "cat": 0}')


@case
def names_inside_as_a_list_with_commas(folder):
    return names_inside(folder, "cat, fox, dog")


@case
def names_by_label2id(folder):
    return named(folder, "config.json", '{"model_type": "vit", "label2id": {"cat": 0, "dog": 2, "red fox": 1}}', 3, (1, "red fox"))


@case
def names_in_a_table(folder):
    return named(folder, "labels.txt", "id,name\n0,cat\n1,red fox\n2,dog\n", 3, (1, "red fox"))


@case
def names_with_their_numbers(folder):
    return named(folder, "labelmap.txt", "0  cat\n1  red fox\n2  2 dogs\n", 3, (2, "2 dogs"))


@case
def names_that_are_numbers(folder):
    return named(folder, "labels.txt", "0\n1\n2\n", 3, (2, "2"))


@case
def names_as_python_prints_them(folder):
    return named(folder, "classes.txt", "{0: 'cat',\n 1: \"fox's\",\n 2: 'dog'}\n", 3, (1, "fox's"))


# ---- families that their own networks tell, without a file beside

@case
def open_model_zoo_by_another_converter(folder):
    return feeds(folder, (64, 64), fed((64, 64), whole(), blue_first=True, unit=1), {}, model="vehicle_sort_barrier_0099/saved_model/model_float32.onnx", said="as Open Model Zoo takes them")


def scaled_first(folder, operations, want):
    """A probe whose graph scales its picture itself, by operations and their numbers."""
    made = probe((64, 64))
    at = "picture"
    for k, (operation, number) in enumerate(operations):
        made.graph.initializer.append(numpy_helper.from_array(F(number), f"number{k}"))
        made.graph.node.insert(k, helper.make_node(operation, [at, f"number{k}"], [f"scaled{k}"]))
        at = f"scaled{k}"
    for node in made.graph.node[len(operations):]:
        node.input[:] = [at if name == "picture" else name for name in node.input]
    folder.write("model.onnx", made)
    return {"model": "model.onnx", "fed": want, "properties": "resize-mode=stretch color-format=rgb"}


@case
def a_graph_that_divides_by_255(folder):
    """TCMonoDepth's begin so, and take bytes."""
    return scaled_first(folder, [("Div", 255)], fed((64, 64), whole()))


@case
def a_graph_that_moves_bytes_around_zero(folder):
    """As Keras' Rescaling(1 / 127.5, -1) and MXNet's ArcFace."""
    return scaled_first(folder, [("Sub", 127.5), ("Mul", 1 / 127.5)], fed((64, 64), whole(), (.5,) * 3, (.5,) * 3))


@case
def a_graph_that_moves_shares_around_zero(folder):
    return scaled_first(folder, [("Mul", 2), ("Sub", 1)], fed((64, 64), whole(), (.5,) * 3, (.5,) * 3))


@case
def lprnet_without_its_dictionary(folder):
    scores = np.zeros((68, 18), F)
    scores[[11, 41, 41, 67, 31, *[67] * 13], np.arange(18)] = 9     # 浙 A A blank 0
    folder.write("plates.onnx", constants_model({"126": scores}, [1, 3, 24, 94]))
    return {"model": "plates.onnx", "label": "浙A0", "said": "China's plates"}


@case
def digits_without_a_softmax(folder):
    folder.write("mnist.onnx", constants_model({"Plus214_Output_0": [[0, 1, 0, 9, 0, 0, 0, 0, 0, 0]]}, [1, 1, 28, 28]))
    return {"model": "mnist.onnx", "label_id": 3, "said": "read as class scores"}


@case
def digits_without_channels(folder):
    """Keras' first network for digits takes [N,28,28]."""
    folder.write("model.onnx", constants_model({"softmax": [[0, 0, 0, 0, 0, 0, .9, .1, 0, 0]]}, [1, 28, 28]))
    return {"model": "model.onnx", "elements": 10, "properties": "post-process=classification", "label_id": 6}


@case
def a_picture_whose_axes_are_all_open(folder):
    """The convolution says how many channels there are."""
    nodes = [helper.make_node("Conv", ["picture", "ones"], ["sum"]), helper.make_node("ReduceMax", ["sum"], ["logits"], axes=[2, 3], keepdims=0)]
    folder.write("model.onnx", model_of(nodes, {"picture": (TensorProto.FLOAT, [None] * 4)}, {"logits": (TensorProto.FLOAT, None)}, {"ones": np.ones((1, 3, 1, 1), F)}))
    return {"model": "model.onnx", "elements": 1, "properties": "reshape=64x48 mean=0 scale=1 color-format=rgb resize-mode=stretch"}


@case
def grids_of_one_size_in_an_open_file(folder):
    """YOLOv5 exports in half precision so: axes are open, but what the grids are added to has to be of 640x640."""
    nodes = [helper.make_node("MaxPool", ["picture"], ["cells"], kernel_shape=[32, 32], strides=[32, 32]), helper.make_node("Add", ["cells", "grid"], ["placed"]),
             helper.make_node("ReduceMax", ["placed"], ["logits"], axes=[2, 3], keepdims=0)]
    folder.write("model.onnx", model_of(nodes, {"picture": (TensorProto.FLOAT, [1, 3, "height", "width"])}, {"logits": (TensorProto.FLOAT, None)}, {"grid": np.zeros((1, 1, 20, 20), F)}))
    return {"model": "model.onnx", "elements": 3}


@case
def mltu_with_its_characters(folder):
    steps = np.zeros((1, 16, 5), F)
    steps[0, range(16), [0, 4, 2, 2, 4, 2, *[4] * 10]] = 1                  # a blank é é blank é, the blank last
    nodes = [helper.make_node("ReduceMean", ["picture"], ["mean"], keepdims=0), helper.make_node("Mul", ["mean", "zero"], ["nothing"]),
             helper.make_node("Add", ["steps", "nothing"], ["output"])]
    folder.write("model.onnx", model_of(nodes, {"picture": (TensorProto.FLOAT, [1, 32, 128, 3])}, {"output": (TensorProto.FLOAT, [1, 16, 5])}, {"zero": F(0), "steps": steps}))
    folder.write("configs.yaml", "batch_size: 16\nheight: 32\nmax_text_length: 21\nvocab: a#é;\nwidth: 128\n")
    return {"model": "model.onnx", "label": "aéé"}


@case
def classes_that_are_enlarged(folder):
    """Three masks, as segmentation_models.pytorch writes them: enlarged, then a sigmoid each. A quarter is of none."""
    masks = np.full((1, 3, 16, 16), -9, F)
    masks[0, 0, :8, :8] = masks[0, 1, :8, 8:] = masks[0, 2, 8:, :8] = 9
    nodes = [helper.make_node("ReduceMean", ["picture"], ["mean"], keepdims=0), helper.make_node("Mul", ["mean", "zero"], ["nothing"]),
             helper.make_node("Add", ["masks", "nothing"], ["small"]), helper.make_node("Resize", ["small", "", "scales"], ["large"], mode="linear"),
             helper.make_node("Sigmoid", ["large"], ["1273"])]
    folder.write("model.onnx", model_of(nodes, {"picture": (TensorProto.FLOAT, [1, 3, 64, 64])}, {"1273": (TensorProto.FLOAT, [1, 3, 64, 64])},
                                        {"zero": F(0), "masks": masks, "scales": np.array([1, 1, 4, 4], F)}))
    return {"model": "model.onnx", "shares": [.25] * 4}


# ---- running

def run(folder, wanted):
    path = os.path.join(folder, "picture.png")
    write_png(path, picture())
    model = os.path.join(folder, wanted["model"]) if wanted["model"] else folder
    command = ["gst-launch-1.0", "filesrc", f"location={path}", "!", "pngdec", "!", "videoconvert", "!", "video/x-raw,format=RGB", "!", *wanted.get("before", "identity").split(), "!", "clinfer", f"model={model}", "device=CPU", "attach-tensors=true",
               *wanted.get("properties", "").split(), "!", "clpublish", f"file-path={path}.json", "add-tensor-data=true", "!", "fakesink"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    lines = []
    if os.path.exists(f"{path}.json"):
        with open(f"{path}.json", encoding="utf-8") as file:  # on stdout gst-launch's messages would come between parts of a long line
            lines = file.read().splitlines()
    told = [line for line in (result.stdout + result.stderr).splitlines() if line.strip()]
    return (json.loads(lines[0]) if lines else None), told


def every(value, key):
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == key:
                yield inner
            yield from every(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from every(inner, key)


def compare(folder, wanted):
    """What is wrong, or ''."""
    line, told = run(folder, wanted)
    if line is None:
        return f"no line: {[line for line in told if 'ERROR' in line] or told[-3:]}"
    data = [np.array(d, float).ravel() for d in every(line, "data") if isinstance(d, list)]
    if "fed" in wanted:
        found = [d for d in data if d.size == wanted["fed"].size]
        if not found:
            return f"no tensor of {wanted['fed'].size} numbers"
        far = np.abs(found[0] - wanted["fed"])
        limit = wanted.get("tolerance", .02) * max(1, float(np.ptp(wanted["fed"])))
        if far.max() > limit:
            return f"fed {np.round(found[0][far > limit][:6], 3)}, right is {np.round(wanted['fed'][far > limit][:6], 3)}"
    if "elements" in wanted and not any(d.size == wanted["elements"] for d in data):
        return f"tensors of {[d.size for d in data]} numbers, right are {wanted['elements']}"
    if "said" in wanted and not any(wanted["said"] in line for line in told):
        return f"{wanted['said']!r} was not said"
    if "shares" in wanted:
        parts = {part["label_id"]: part["share"] for part in (line.get("segmentation") or {}).get("classes", [])}
        if any(abs(parts.get(k, 0) - share) > .02 for k, share in enumerate(wanted["shares"])):
            return f"classes cover {parts}, right is {wanted['shares']}"
    if "label" in wanted:
        labels = [answer["label"] for item in line["objects"] for answer in item.values() if isinstance(answer, dict) and "label" in answer]
        if not labels or not labels[0].startswith(wanted["label"]):
            return f"class {labels[:1]}, right is {wanted['label']!r}"
    if "points" in wanted:
        found = [[point["x"], point["y"]] for item in line["objects"] for point in item.get("landmarks") or item.get("keypoints") or []]
        if np.shape(found) != wanted["points"].shape or np.abs(found - wanted["points"]).max() > .01:
            return f"{len(found)} points {found[:2]}, right are {wanted['points'][:2]}"
    if "label_id" in wanted and wanted["label_id"] not in [answer["label_id"] for item in line["objects"] for answer in item.values() if isinstance(answer, dict) and "label_id" in answer]:
        return f"the objects are {line['objects']}, right is class {wanted['label_id']}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", help="a folder to leave the cases in")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    right = wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        for name in arguments.names or CASES:
            folder = os.path.join(arguments.keep or temporary, name)
            os.makedirs(folder, exist_ok=True)
            why = compare(folder, CASES[name](Folder(folder)))
            right, wrong = right + (not why), wrong + bool(why)
            print(f"FAIL {name}: {why}" if why else f"ok   {name}", flush=True)
    print(f"{right} right, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
