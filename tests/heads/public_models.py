#!/usr/bin/env python3
"""Models from public repositories and packages as people have them, through the element without a hint, against their authors' way to
take a picture and to read the outputs, which is written here apart from the product's.

    public_models.py FOLDER SHARED [--list] [--verbose] [NAME ...]      clinfer on GST_PLUGIN_PATH; exit status 1 where something is silent or false

FOLDER holds checkouts as OWNER/REPOSITORY and unpacked packages as NAME-VERSION; public_models.json says which, with the commit or version
and the sum of each model. Whatever lies beside a model there counts. SHARED holds data/frames, the pictures. Without FOLDER it is skipped
(exit status 77), and so is each model that FOLDER lacks. Needs numpy, onnx and onnxruntime (CLINFER_PYTHON names a Python that has them).

What becomes of a model is one of
    right    the results are the authors'
    said     they are not, or there are none, and a warning says so beside raw tensors; `hint` in the table is the line that makes them right
    refused  the model is not run, with a reason; `refusal` in the table says that this is right
    SILENT   the results are others, and nothing says so
    FALSE    a warning says that the family takes pictures in a way that is not its authors'
A network that is surer than the usual threshold on no picture has a lower one in the table, `least`, which the element gets, too.
"""
import argparse
import collections
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

import other_python

try:
    import numpy as np
    import onnx
    import onnxruntime
    import public_decoders
    from public_decoders import DECODERS, SLACK
    from real_detectors import bilinear, frames
except ImportError:
    other_python.retry("numpy, onnx and onnxruntime")

HERE = os.path.dirname(os.path.abspath(__file__))
BOX, POINT = .015, .015                                              # shares of the frame


# ---- what the authors' code feeds

class Fed:
    """A frame [h, w, 3] of BGR as a network's input, and the way back from its pixels to shares of the frame."""

    def __init__(self, frame, size, feed):
        self.size = np.array(size, float)
        height, width = frame.shape[:2]
        resize = feed.get("resize", "stretch")
        inner, at, part, side = self.size, np.zeros(2), frame, None
        if resize.startswith("letterbox"):
            scale = min(size[0] / width, size[1] / height)
            inner = np.maximum(np.round(np.array([width, height]) * scale), 1)
            at = np.zeros(2) if resize == "letterbox-top-left" else np.floor((self.size - inner) / 2)
        elif resize == "crop":
            side = np.minimum(np.array([width, height]), np.array([width, height]).min() * self.size / self.size.min())
        elif resize == "stretch":
            side = np.array([width, height])
        if side is not None:
            side = (side * feed.get("share", 1)).round().astype(int)
            left, top = (np.array([width, height]) - side) // 2
            part = frame[top:top + side[1], left:left + side[0]]
        self.inner, self.at = inner, at
        picture = np.full((size[1], size[0], 3), feed.get("pad", 0), np.float32)
        x, y = at.astype(int)
        picture[y:y + int(inner[1]), x:x + int(inner[0])] = bilinear(part, int(inner[0]), int(inner[1]))
        if feed.get("color", "RGB") == "GRAY":
            picture = (picture @ np.float32([.114, .587, .299]))[..., None]
        elif feed.get("color", "RGB") == "RGB":
            picture = picture[:, :, ::-1]
        self.picture = np.float32((picture - np.float32(feed.get("mean", 0))) / np.float32(feed.get("scale", 1)))

    def shares(self, pixels):
        """x, y pairs in pixels of the input as shares of the frame."""
        pixels = np.asarray(pixels, float)
        return ((pixels.reshape(*pixels.shape[:-1], -1, 2) - self.at) / self.inner).reshape(pixels.shape)


# ---- the element

def element(model, frame_file, properties):
    """The first line of the element, and its warnings and errors."""
    with tempfile.TemporaryDirectory() as folder:
        written = f"{folder}/lines.json"
        command = ["gst-launch-1.0", "filesrc", f"location={frame_file}", "!", "pngdec", "!", "videoconvert", "!", "video/x-raw,format=BGR", "!", "clinfer", f"model={model}",
                   "config=INFERENCE_PRECISION=f32", *properties.split(), "!", "clpublish", f"file-path={written}", "!", "fakesink"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
        lines = []
        if os.path.exists(written):
            with open(written, encoding="utf-8") as file:
                lines = [line for line in file.read().splitlines() if line.startswith("{")]
    said = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith(("WARNING:", "ERROR:"))]
    return json.loads(lines[0]) if lines else None, said


# ---- comparing

def corners_of(found):
    box = found["detection"]["bounding_box"]
    return np.array([box[key] for key in ("x_min", "y_min", "x_max", "y_max")])


def points_of(found):
    return np.array([(p["x"], p["y"]) for p in found.get("landmarks") or found.get("keypoints") or []])


def compare_objects(line, right, fed):
    ours = [o for o in line.get("objects", []) if "detection" in o]
    for label, score, corners, points in right:
        corners = np.clip(fed.shares(corners), 0, 1)
        near = min((o for o in ours if o["detection"]["label_id"] == label), key=lambda o: abs(corners_of(o) - corners).max(), default=None)
        if near is None or abs(corners_of(near) - corners).max() > BOX:
            if score >= public_decoders.LEAST + SLACK:
                return f"no object {label} at {corners.round(3)} with {score:.3f}, but {[(o['detection']['label_id'], corners_of(o).round(2).tolist(), o['detection']['confidence']) for o in ours][:3]}"
            continue
        ours.remove(near)
        if abs(near["detection"]["confidence"] - score) > SLACK:
            return f"score {near['detection']['confidence']}, right is {score:.3f}"
        if points is not None and len(points) > 0:
            found, wanted = points_of(near), fed.shares(points).reshape(-1, 2)
            if found.shape != wanted.shape or abs(found - wanted).max() > POINT:
                return f"{len(found)} points, or elsewhere; right are {len(wanted)}"
    surplus = [o for o in ours if o["detection"]["confidence"] >= public_decoders.LEAST + SLACK]
    return f"{len(surplus)} objects too many: {surplus[0]['detection']}" if surplus else ""


def answers_of(line):
    return [(key, value) for item in line.get("objects", []) for key, value in item.items() if isinstance(value, dict) and key != "detection"]


def compare(line, right, fed):
    """What is wrong with a line, or ''."""
    if "objects" in right:
        return compare_objects(line, right["objects"], fed)
    if "regions" in right:
        ours, missing = [o for o in line.get("objects", []) if "detection" in o], 0
        wanted = [r for r in right["regions"] if r[2] >= .55]
        for x, y, _ in wanted:
            at = fed.shares([x, y])
            missing += not any(abs((corners_of(o)[:2] + corners_of(o)[2:]) / 2 - at).max() < .02 for o in ours)
        most = sum(r[2] >= .45 for r in right["regions"])
        return f"{missing} of {len(wanted)} regions are missing, {len(ours)} found" if missing > len(wanted) // 20 or len(ours) > most + most // 20 else ""
    if "text" in right:
        texts = [value["label"] for key, value in answers_of(line) if key.startswith("text")]
        return "" if texts == [right["text"]] else f"text {texts}, right is {right['text']!r}"
    if "best" in right:
        ours = [(value["label_id"], value["confidence"]) for key, value in answers_of(line) if "confidence" in value and "label_id" in value]
        for label, score in right["best"]:
            if not any(label == a and abs(score - b) <= SLACK for a, b in ours):
                return f"classes {ours[:4]}, right is {label} at {score:.3f}"
        return ""
    if "number" in right:
        numbers = [float(value["label"]) for _, value in answers_of(line) if re.fullmatch(r"-?[0-9.]+", str(value.get("label", "")))]
        return "" if any(abs(n - right["number"]) < 1 for n in numbers) else f"numbers {numbers}, right is {right['number']:.2f}"
    if "angles" in right:
        found = dict(answers_of(line))
        ours = [float(found[key]["label"]) for key in ("yaw", "pitch", "roll") if key in found]
        return "" if len(ours) == 3 and max(abs(np.array(ours) - right["angles"])) < 2 else f"angles {ours}, right are {right['angles'].round(1).tolist()}"
    if "embedding" in right:
        vectors = [np.array(value["data"]) for key, value in answers_of(line) if key.startswith("embedding")]
        for v in vectors:
            if len(v) == len(right["embedding"]) and v @ right["embedding"] / np.linalg.norm(v) / np.linalg.norm(right["embedding"]) > .995:
                return ""
        return f"{len(vectors)} vectors, or another direction"
    if "points" in right:
        found = [points_of(o) for o in line.get("objects", []) if o.get("landmarks") or o.get("keypoints")]
        wanted = fed.shares(right["points"])
        return "" if len(found) == 1 and found[0].shape == wanted.shape and abs(found[0] - wanted).max() <= POINT else f"{[len(f) for f in found]} points, or elsewhere; right are {len(wanted)}"
    if "refined" in right:
        score, corners, points = right["refined"]
        ours = [o for o in line.get("objects", []) if "detection" in o]
        if score < public_decoders.LEAST:
            return f"{len(ours)} faces, right is none" if ours else ""
        return compare_objects(line, [(0, score, corners, None if points is None else points.ravel())], fed)
    if "lanes" in right:
        ours = [o for o in line.get("objects", []) if o.get("landmarks")]
        if len(ours) != len(right["lanes"]):
            return f"{len(ours)} lanes, right are {len(right['lanes'])}"
        for _, points in right["lanes"]:
            wanted = fed.shares(points)
            inside = wanted[(wanted >= 0).all(1) & (wanted <= 1).all(1)]
            apart = min(np.mean([np.hypot(*(points_of(o) - p).T).min() for p in inside]) for o in ours)
            if apart > .03:
                return f"a lane is {apart:.3f} away"
        return ""
    if "classes" in right:
        maps = line.get("segmentation")
        maps = maps if isinstance(maps, list) else [maps] if maps else []
        if not maps:
            return "no segmentation"
        for label in np.unique(right["classes"]):
            wanted = (right["classes"] == label).mean()
            ours = sum(part["share"] for part in maps[0]["classes"] if part["label_id"] == label)
            if abs(ours - wanted) > .02:
                return f"class {label} covers {ours:.3f}, right is {wanted:.3f}"
        return ""
    if "map" in right:
        ours = [m for m in line.get("maps", []) if m["kind"] in ("saliency", "depth")]
        if not ours:
            return "no map"
        return "" if abs(ours[0]["maximum"] - right["map"].max()) < .05 and abs(ours[0]["minimum"] - right["map"].min()) < .05 else f"map {ours[0]}, right is {right['map'].min():.3f} to {right['map'].max():.3f}"
    results = [key for key in ("objects", "segmentation", "maps") if line.get(key)]
    return f"{results}, right are raw tensors" if results else ""


FAMILY = re.compile(r"nothing states how the model takes pictures[^;]*; (.*?) is assumed, as (.*?) takes? them")


def false_claims(said, feed):
    """What a warning claims of the family that its authors' code does not do."""
    if any("are possibly of the head" in text for text in said):
        return ""                                                    # the family itself is in doubt, and the claim with it
    for text in said:
        found = FAMILY.search(text)
        if not found:
            continue
        claims = found.group(1)
        resize = feed.get("resize", "stretch").split("-")[0]
        wrong = [word for word, mode in (("stretched", "stretch"), ("letterboxed", "letterbox"), ("cropped", "crop")) if word in claims and mode != resize]
        wrong += [order for order in ("RGB", "BGR") if order in claims.split(", ") and order != feed.get("color", "RGB")]
        numbers = re.search(r"mean ([-\d.,]+), scale ([-\d.,]+)", claims)
        if numbers:
            for name, text_of, default in (("mean", numbers.group(1), 0), ("scale", numbers.group(2), 1)):
                ours = np.array([float(v) for v in text_of.rstrip(",").split(",")])
                if abs(ours - np.array(feed.get(name, default))).max() > 1:
                    wrong.append(f"{name} {text_of}")
        if wrong:
            return f"{', '.join(wrong)}, as {found.group(2)}"
    return ""


# ---- the table

class OfOpenvino:
    """An IR, or a file that onnxruntime refuses, with onnxruntime's calls."""

    def __init__(self, path):
        import openvino

        self.model = openvino.Core().read_model(path)
        self.compiled = openvino.compile_model(self.model, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "LP_TRANSFORMS_MODE": "NO"})  # quantised values by their formula, in floats

    def get_inputs(self):
        return [Port(i.any_name, [d.get_length() if d.is_static else "" for d in i.partial_shape]) for i in self.model.inputs]

    def get_outputs(self):
        return [Port(next(iter(o.names), ""), []) for o in self.model.outputs]

    def run(self, _, given):
        found = self.compiled({name: value.astype(self.model.input(name).element_type.to_dtype()) for name, value in given.items()})
        return [np.float32(found[o]) for o in self.compiled.outputs]


Port = collections.namedtuple("Port", "name shape")


class ByFormula:
    """A network of QLinear operations by their formula, with onnxruntime's calls: sums of integers, times a factor in f32, rounded once.

    onnxruntime itself adds by an approximation that depends on the processor (it rounds -32.50001 to -32), and networks as deep as MobileNet
    make other scores of a single such step.
    """

    def __init__(self, path):
        self.graph = onnx.load(path).graph
        self.known = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in self.graph.initializer}

    def get_inputs(self):
        return [Port(i.name, [d.dim_value for d in i.type.tensor_type.shape.dim]) for i in self.graph.input if i.name not in self.known]

    def get_outputs(self):
        return [Port(o.name, []) for o in self.graph.output]

    @staticmethod
    def bytes_of(steps, zero):
        limits = np.iinfo(zero.dtype)
        return np.clip(np.rint(steps) + int(zero), limits.min, limits.max).astype(zero.dtype)

    @staticmethod
    def sums(x, weights, attributes):
        """A convolution of integers."""
        (top, left, bottom, right), (down, across) = attributes.get("pads", (0, 0, 0, 0)), attributes.get("strides", (1, 1))
        x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
        group, (out, _, rows, columns) = attributes.get("group", 1), weights.shape
        height, width = (x.shape[2] - rows) // down + 1, (x.shape[3] - columns) // across + 1
        x, weights = x[0].reshape(group, -1, *x.shape[2:]), weights.reshape(group, out // group, -1, rows, columns)
        total = np.zeros((group, out // group, height * width))
        for r in range(rows):
            for c in range(columns):
                part = x[:, :, r:r + down * (height - 1) + 1:down, c:c + across * (width - 1) + 1:across]
                total += weights[..., r, c].astype(float) @ part.reshape(group, part.shape[1], -1).astype(float)  # exact: below 2^53
        return total.reshape(1, out, height, width)

    def run(self, _, given):
        of = {**self.known, **given}

        def steps(value, zero):
            zero = of[zero].astype(np.int64)
            return of[value].astype(np.int64) - zero.reshape(zero.shape + (1,) * (of[value].ndim - 1) if zero.size > 1 else ())

        def factor(x, w, y):
            return np.float32(of[x]) * np.float32(of[w]) / np.float32(of[y])
        for node in self.graph.node:
            i, attributes = list(node.input), {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            if node.op_type == "QuantizeLinear":
                made = self.bytes_of(np.float32(of[i[0]]) / of[i[1]], of[i[2]])
            elif node.op_type == "DequantizeLinear":
                made = np.float32(steps(i[0], i[2])) * of[i[1]]
            elif node.op_type == "QLinearConv":
                total = self.sums(steps(i[0], i[2]), steps(i[3], i[5]), attributes) + (of[i[8]].reshape(-1, 1, 1) if len(i) > 8 else 0)
                made = self.bytes_of(np.float32(total) * factor(i[1], i[4], i[6]).reshape(-1, 1, 1), of[i[7]])
            elif node.op_type == "QLinearMatMul":
                made = self.bytes_of(np.float32(steps(i[0], i[2]) @ steps(i[3], i[5])) * factor(i[1], i[4], i[6]), of[i[7]])
            elif node.op_type == "QLinearAdd":
                made = self.bytes_of((steps(i[0], i[2]) * float(of[i[1]]) + steps(i[3], i[5]) * float(of[i[4]])) / float(of[i[6]]), of[i[7]])
            elif node.op_type == "QLinearGlobalAveragePool":
                pixels = np.float32(np.prod(of[i[0]].shape[2:]))
                made = self.bytes_of(np.float32(steps(i[0], i[2]).sum((2, 3), keepdims=True)) * (of[i[1]] / (of[i[3]] * pixels)), of[i[4]])
            elif node.op_type == "Reshape":
                made = of[i[0]].reshape(of[i[1]])
            else:
                raise ValueError(f"no formula of {node.op_type}")
            of[node.output[0]] = made
        return [of[o.name] for o in self.graph.output]


def session_of(path, shape):
    """Of a file whose size is an exporter's example: in this shape."""
    if path.endswith(".xml"):
        return OfOpenvino(path)
    model = path
    if shape:
        loaded = onnx.load(path)
        for dimension, size in zip(loaded.graph.input[0].type.tensor_type.shape.dim, shape):
            dimension.dim_value = size
        for output in loaded.graph.output:
            output.type.tensor_type.ClearField("shape")
        model = loaded.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def right_of(row, path, frame):
    """What the authors' code finds, and how the frame was fed."""
    by = {"formula": ByFormula, "openvino": OfOpenvino}.get(row.get("by"))
    session = by(path) if by else session_of(path, row.get("reshaped"))
    inputs = session.get_inputs()
    shape = list(row.get("shape") or row.get("reshaped") or inputs[0].shape)
    channels_last = shape[-1] in (1, 3) and shape[1] not in (1, 3)
    size = (shape[2], shape[1]) if channels_last else (shape[3], shape[2])
    fed = Fed(frame, size, row.get("feed", {}))
    tensor = fed.picture[None] if channels_last else fed.picture.transpose(2, 0, 1)[None]
    if len(inputs[0].shape) == 3:                                    # a gray picture without its channels
        tensor = tensor[..., 0] if channels_last else tensor[:, 0]
    if row.get("feed", {}).get("transposed"):                        # TensorFlow's MTCNN
        tensor = tensor.transpose(0, 2, 1, 3)
    given = {inputs[0].name: np.ascontiguousarray(np.repeat(tensor, shape[0] if isinstance(shape[0], int) else 1, 0))}
    for more in inputs[1:]:
        value = row.get("others", {}).get(more.name, 0)
        given[more.name] = np.array([value], np.float32) if isinstance(value, list) else np.full(more.shape, value, np.float32)
    kinds = {"tensor(float16)": np.float16, "tensor(int64)": np.int64}
    given = {i.name: given[i.name].astype(kinds.get(getattr(i, "type", ""), np.float32)) for i in inputs}
    outputs = session.run(None, given)
    options = dict(row.get("options", {}), names=[o.name for o in session.get_outputs()])
    if row.get("characters") == "metadata":
        options["characters"] = session.get_modelmeta().custom_metadata_map["character"].split("\n") + [" "]
    elif "charset" in options:                                       # a list in JSON, the blank first
        with open(os.path.join(os.path.dirname(path), options["charset"]), encoding="utf-8") as file:
            options["characters"] = json.load(file)["characters"][1:]
    elif "characters" in row:
        with open(os.path.join(os.path.dirname(path), row["characters"]), encoding="utf-8") as file:
            options["characters"] = file.read().rstrip("\n").split("\n") + [" "]
    return DECODERS[row["decode"]](outputs, np.array(size, float), options), fed


def verdict(row, folder, shared):
    path = os.path.join(folder, row["source"] if row["version"] == "commit" or len(row["version"]) == 40 else f"{row['source']}-{row['version']}", row["path"])
    if not os.path.exists(path):
        return "absent", path
    with open(path, "rb") as file:
        if hashlib.sha256(file.read()).hexdigest() != row["sha256"]:
            return "absent", "another file than the table's"
    picture = f"{shared}/data/frames/{row['picture']}.png"
    public_decoders.LEAST = row.get("least", public_decoders.USUAL)
    line, said = element(path, picture, f"threshold={row['least']}" if "least" in row else "")
    if "refusal" in row:
        text = " ".join(said)
        return ("refused", "") if line is None and row["refusal"] in text else ("SILENT", f"not refused: {text[-300:]}")
    try:
        right, fed = right_of(row, path, next(frames(picture, 1)))
    except Exception as error:                                       # of onnxruntime, which has many kinds
        return "absent", f"no reference: {error}"
    claims = false_claims(said, row.get("feed", {}))
    why = "nothing came out" if line is None else compare(line, right, fed)
    if claims:
        return "FALSE", f"{claims}; {why or 'right otherwise'}"
    if not why:
        return "right", " / ".join(said)
    of_picture = "hint" in row and any("nothing states how" in text for text in said)
    beside = of_picture or line is None or not (line.get("objects") or line.get("segmentation") or line.get("maps")) or "tensors" in json.dumps(line)
    if not (said and beside):
        return "SILENT", f"{why} || {' / '.join(said)[:400]}"
    told = f"{why} || {' / '.join(said)[:500]}"
    if "hint" not in row:
        return "said", told
    hinted, said_then = element(path, picture, row["hint"])
    left = "nothing came out: " + " ".join(said_then)[-300:] if hinted is None else compare(hinted, right, fed)
    return ("said", f"right with {row['hint']} || {told}") if not left else ("SILENT", f"wrong even with {row['hint']}: {left}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("shared")
    parser.add_argument("--list", action="store_true", help="only print what is in the table")
    parser.add_argument("--verbose", action="store_true", help="print what is said of right results, too")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_intermixed_args()
    with open(f"{HERE}/public_models.json", encoding="utf-8") as file:
        table = json.load(file)
    if arguments.list:
        for row in table:
            print(f"{row['name']}: {row['source']} {row['version'][:12]} {row['path']}")
        return 0
    if not os.path.isdir(arguments.folder):
        print("skipped: the folder of public models is not here")
        return 77
    if unknown := set(arguments.names) - {row["name"] for row in table}:
        parser.error(f"no such model: {', '.join(sorted(unknown))}")
    counts = dict.fromkeys(("right", "said", "refused", "SILENT", "FALSE", "absent"), 0)
    for row in table:
        if arguments.names and row["name"] not in arguments.names:
            continue
        try:
            word, why = verdict(row, arguments.folder, arguments.shared)
        except subprocess.TimeoutExpired:
            word, why = "SILENT", "nothing came out for fifteen minutes"
        counts[word] += 1
        print(f"{word:7} {row['name']}" + (f": {why}" if word != "right" or arguments.verbose else ""), flush=True)
    print(", ".join(f"{number} {word}" for word, number in counts.items()))
    return 1 if counts["SILENT"] or counts["FALSE"] else 0


if __name__ == "__main__":
    sys.exit(main())
