"""What the cases are made of: models and pictures, the numbers that an exporter's own code would feed, and the list of cases."""
import json
import os
import struct
import sys
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
HALF = ((.5,) * 3, (.5,) * 3)
NORMALISED = {"do_normalize": True, "image_mean": IMAGENET[0], "image_std": IMAGENET[1]}
CASES = {}


def case(make):
    CASES[make.__name__.replace("_", "-")] = make
    return make


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


def processor(kind, **more):
    """Hugging Face's file beside a model."""
    return {"preprocessor_config.json": {"image_processor_type": kind, "do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255, **more}}
