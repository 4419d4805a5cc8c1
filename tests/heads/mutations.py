#!/usr/bin/env python3
"""Changes the outputs of generated models as exporters and converters do, and looks for results that are wrong without a word.

    mutations.py [--seed N] [--generated SHARED/heads] [--kinds KIND,...] [--jobs N] [FAMILY ...]     clinfer on GST_PLUGIN_PATH

Each family of families.py (and of generate.py in the folder SHARED/heads) is written once, and once more for each kind of change
below. A result is right, said (an error, or a warning about the outputs, with the raw tensors beside where there are objects), or
silently wrong; the exit status is 1 where one is silently wrong. Needs openvino and numpy (CLINFER_PYTHON names a Python that has
them); without them it is skipped (exit status 77).
"""
import argparse
import concurrent.futures
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile

import other_python
import run as runner

try:
    import numpy as np
    import openvino as ov
    import openvino.opset13 as op
    import families
except ImportError:
    other_python.retry("openvino and numpy")

# Warnings about pictures and devices are no words about the outputs.
OF_PICTURES = "nothing states how the model"
OF_OTHERS = (OF_PICTURES, "there is no GPU", "clinfer-compiler was not found")

# Settings that the warning about pictures asks for. One of them is right where only the fit of a frame was guessed wrongly.
FITS = [["resize-mode=stretch"], ["resize-mode=letterbox", "pad-place=centered"], ["resize-mode=letterbox", "pad-place=top-left"],
        ["resize-mode=crop"]]


class Outputs:
    """The outputs of a model as a list of (name, node), to be changed."""

    def __init__(self, path, rng, truth):
        self.model, self.rng, self.truth = ov.Core().read_model(path), rng, truth
        self.list = [(next(iter(sorted(port.get_names())), port.get_node().input_value(0).get_node().get_friendly_name()),
                      port.get_node().input_value(0)) for port in self.model.outputs]

    def shape(self, node):
        return list(node.get_shape())

    def values(self):
        """The outputs' numbers, by name."""
        compiled = ov.Core().compile_model(self.model, "CPU")
        zeros = {port: np.zeros([d.get_length() if d.is_static else 1 for d in port.get_partial_shape()], port.get_element_type().to_dtype()) for port in compiled.inputs}
        found = compiled(zeros)
        return {name: np.asarray(value) for (name, _), value in zip(self.list, found.values())}

    def each(self, change):
        """Applies change(node, shape) to each output; None leaves it. Returns whether any was changed."""
        made = [(name, node, change(node, self.shape(node))) for name, node in self.list]
        self.list = [(name, node if new is None else new.output(0)) for name, node, new in made]
        return any(new is not None for _, _, new in made)

    def extra(self, name, value, first=False):
        """A further output, which depends on the picture in name only."""
        picture = self.model.inputs[0]
        floats = op.convert(picture, np.float32)
        zero = op.multiply(op.reduce_mean(floats, np.arange(len(picture.get_partial_shape())), False), np.float32(0))
        node = op.add(op.constant(np.asarray(value, np.float32)), zero).output(0)
        self.list.insert(0 if first else len(self.list), (name, node))
        return True

    def save(self, path):
        results = []
        for name, node in self.list:
            # A node of its own: a shared one would have the names of two outputs.
            own = op.reshape(node, np.array(self.shape(node), np.int64), False) if node.get_partial_shape().is_static and self.shape(node) else node.get_node()
            own = own.output(0) if hasattr(own, "output") else own
            own.get_tensor().set_names({name})
            own.get_node().set_friendly_name(name)
            results.append(op.result(own))
        made = ov.Model(results, self.model.get_parameters(), self.model.get_friendly_name())
        info = self.model.get_rt_info()
        if "model_info" in info:
            for key, value in info["model_info"].value.items() if hasattr(info["model_info"], "value") else info["model_info"].items():
                made.set_rt_info(getattr(value, "value", value), ["model_info", key])
        ov.save_model(made, path, compress_to_fp16=False)


def permuted(node, order):
    return op.transpose(node, np.array(order, np.int64))


def unchanged(_):
    return True


def turned_round(outputs):
    outputs.list.reverse()
    return len(outputs.list) > 1


def shuffled(outputs):
    outputs.list = [outputs.list[i] for i in outputs.rng.permutation(len(outputs.list))]
    return len(outputs.list) > 2


def numbers(outputs):
    """Attributes are called as the outputs are, but for angles of a head, which are called by what they are."""
    names = {name: str(100 + 7 * i) for i, (name, _) in enumerate(outputs.list)}
    outputs.list = [(names[name], node) for name, node in outputs.list]
    if "attributes" in outputs.truth:
        outputs.truth["attributes"] = {name if name in ("yaw", "pitch", "roll") else names.get(name, name): answer for name, answer in outputs.truth["attributes"].items()}
    return True


def both(*changes):
    def change(outputs):
        return all(one(outputs) for one in changes)
    return change


def without_batch(outputs):
    return outputs.each(lambda node, shape: op.squeeze(node, np.array([0])) if len(shape) > 1 and shape[0] == 1 else None)


def swapped(outputs):
    """Rows and columns of tables."""
    return outputs.each(lambda node, shape: permuted(node, (0, 2, 1)) if len(shape) == 3 and shape[0] == 1 and min(shape[1:]) > 1 else None)


def channels_last(outputs):
    return outputs.each(lambda node, shape: permuted(node, (0, 2, 3, 1)) if len(shape) == 4 and shape[1] > 1 and min(shape[2:]) > 4 else None)


def halves(outputs):
    return outputs.each(lambda node, shape: op.convert(node, np.float16) if node.get_element_type() == ov.Type.f32 else None)


def floats(outputs):
    return outputs.each(lambda node, shape: op.convert(node, np.float32) if node.get_element_type() != ov.Type.f32 else None)


def vector_beside(outputs):
    return outputs.extra("features", outputs.rng.normal(0, 1, (1, 512)))


def map_beside(outputs):
    return outputs.extra("p3", outputs.rng.normal(0, 1, (1, 64, 40, 40)), first=True)


def map_after_without_batch(outputs):
    outputs.extra("backbone_out", outputs.rng.normal(0, 1, (1, 96, 20, 20)))
    return without_batch(outputs)


def auxiliary(first, name_of):
    """A second output like each floating one, as auxiliary heads make them, after or before the first. Its scores are of half the height."""
    def change(outputs):
        more = [(name_of(k, name), op.multiply(node, np.float32(.5)).output(0)) for k, (name, node) in enumerate(outputs.list)
                if node.get_element_type() == ov.Type.f32 and int(np.prod(outputs.shape(node))) > 100]
        outputs.list = more + outputs.list if first else outputs.list + more
        return bool(more)
    return change


def rows_beside(outputs):
    """The rows of a second detector, which sees nothing."""
    rows = np.zeros((1, 1, 200, 7))
    rows[..., 0] = -1
    return outputs.extra("second_detection_out", rows)


def dynamic_batch(outputs):
    picture = outputs.model.inputs[0]
    shape = picture.get_partial_shape()
    if shape[0] != 1:
        return False
    outputs.model.reshape({picture.get_any_name(): ov.PartialShape([-1, *list(shape)[1:]])})
    values = op.convert(picture, np.float32)
    zero = op.multiply(op.reduce_mean(values, np.arange(1, len(shape)), True), np.float32(0))

    def batched(node, own):
        if len(own) < 2 or own[0] != 1:
            return None
        flat = op.reshape(zero, np.array([-1] + [1] * (len(own) - 1), np.int64), False)
        if node.get_element_type() == ov.Type.boolean:
            return op.logical_or(node, op.convert(flat, ov.Type.boolean))
        return op.add(node, op.convert(flat, node.get_element_type()))
    return outputs.each(batched)


def background_last(outputs):
    """Rows that sum to 1 and mostly mean a background, which is first: it moves to the end, and classes count from 0."""
    values = outputs.values()

    def moved(name, shape):
        table = values[name]
        if len(shape) != 3 or shape[0] != 1 or shape[1] < 50 or shape[2] < 3 or table.dtype != np.float32:
            return False
        return abs(table.sum(2) - 1).max() < .02 and (table[0].argmax(1) == 0).mean() > .75
    names = [name for name, node in outputs.list if moved(name, outputs.shape(node))]
    if len(names) != 1 or "labels" in outputs.truth.get("properties", ""):
        return False
    outputs.list = [(name, op.gather(node, np.array([*range(1, outputs.shape(node)[2]), 0], np.int64), np.int64(2)).output(0) if name in names else node) for name, node in outputs.list]
    for item in outputs.truth["objects"]:
        item["label_id"] -= 1
    return True


def not_suppressed(outputs):
    """Boxes, scores and class numbers of which each is there twice."""
    words = [next((word for word in ("box", "score", "label", "class") if word in name), None) for name, _ in outputs.list]
    if len(outputs.list) != 3 or None in words or len({outputs.shape(node)[1] if len(outputs.shape(node)) > 1 else None for _, node in outputs.list}) != 1:
        return False
    outputs.list = [(name, op.concat([node, node], 1).output(0)) for name, node in outputs.list]
    return True


KINDS = {"unchanged": unchanged, "turned-round": turned_round, "shuffled": shuffled, "numbers": numbers, "turned-numbers": both(turned_round, numbers), "without-batch": without_batch,
         "swapped": swapped, "channels-last": channels_last, "halves": halves, "floats": floats, "vector-beside": vector_beside,
         "map-beside": map_beside, "map-without-batch": map_after_without_batch, "auxiliary-after": auxiliary(False, lambda k, name: f"aux_{name}"),
         "auxiliary-first": auxiliary(True, lambda k, name: f"aux_{name}"), "second-after": auxiliary(False, lambda k, name: str(1300 + k)),
         "second-first": auxiliary(True, lambda k, name: str(1300 + k)), "rows-beside": rows_beside, "dynamic-batch": dynamic_batch,
         "numbers-without-batch": both(without_batch, numbers), "numbers-swapped": both(swapped, numbers),
         "numbers-channels-last": both(channels_last, numbers), "numbers-vector-beside": both(vector_beside, numbers),
         "numbers-map-beside": both(map_beside, numbers), "background-last": background_last, "not-suppressed": not_suppressed}


def write(source, target, name, kind, rng, truth):
    """Writes the changed model with all that lies beside it, and changes what is right; False where the change does nothing to it."""
    outputs = Outputs(f"{source}/{name}.xml", rng, truth)
    if not KINDS[kind](outputs):
        return False
    os.makedirs(target)
    outputs.save(f"{target}/{name}.xml")
    for file in os.listdir(source):
        if not file.endswith((".xml", ".bin")):
            shutil.copy(f"{source}/{file}", target)
    return True


def element(model, truth, settings=()):
    """The first line of the element, its warnings and errors about outputs, and whether it warns of what pictures are."""
    width, height = truth["frame"]
    command = ["gst-launch-1.0", "videotestsrc", "pattern=black", "num-buffers=1", "!", f"video/x-raw,format=BGR,width={width},height={height}",
               "!", "clinfer", f"model={model}", *truth["properties"].split(), *settings, "!", "clpublish", f"file-path={model}.json", "!", "fakesink"]
    if os.path.exists(f"{model}.json"):
        os.remove(f"{model}.json")
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if "no element" in done.stderr:
        sys.exit(f"{done.stderr.strip()}: GST_PLUGIN_PATH has to name the plug-in's folder")
    lines = []
    if os.path.exists(f"{model}.json"):
        with open(f"{model}.json", encoding="utf-8") as file:
            lines = file.read().splitlines()
    said = [line for line in (done.stdout + done.stderr).splitlines()
            if line.startswith(("WARNING:", "ERROR:")) and not any(words in line for words in OF_OTHERS)]
    return json.loads(lines[0]) if lines else None, said, OF_PICTURES in done.stdout + done.stderr


def difference(line, truth, compare):
    """What is wrong with a line, or ''."""
    try:
        return compare(line, truth)
    except (ValueError, KeyError, IndexError, TypeError) as error:
        return repr(error)


def fit_that_is_right(model, truth, compare):
    """The settings by which a frame is fitted as the model wants it, or None."""
    for fit in FITS:
        line, _, _ = element(model, truth, fit)
        if line is not None and not difference(line, truth, compare):
            return " ".join(fit)
    return None


def verdict(model, truth, compare):
    """(right, said or SILENT; why)"""
    try:
        line, said, of_picture = element(model, truth)
    except subprocess.TimeoutExpired:
        return "SILENT", "nothing came out for five minutes"
    if line is None:
        return ("said" if said else "SILENT"), f"no line: {said[-1][-300:] if said else ''}"
    why = difference(line, truth, compare)
    if not why:
        return "right", " / ".join(text[-400:] for text in said)
    if of_picture and (fit := fit_that_is_right(model, truth, compare)):
        return "said", f"{why[:160]} || by the warning about pictures; right with {fit}"
    beside = not line.get("objects") or line.get("tensors") or any(item.get("tensors") for item in line["objects"])
    return ("said" if said and beside else "SILENT"), f"{why[:160]} || {' / '.join(text[-260:] for text in said)[:600]}"


def module(path):
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def sources(arguments, folder):
    """(name, folder, how to compare) of each family."""
    found = []
    for number, (name, make) in enumerate(families.FAMILIES.items()):
        if not arguments.families or name in arguments.families:
            make(np.random.default_rng([arguments.seed, number]), families.Writer(f"{folder}/own", name))
            found.append((name, f"{folder}/own/{name}", runner.compare))
    if arguments.generated and os.path.exists(f"{arguments.generated}/generate.py"):
        generate, check = module(f"{arguments.generated}/generate.py"), module(f"{arguments.generated}/check.py")
        for number, (name, make) in enumerate(generate.FAMILIES.items()):
            if not arguments.families or f"shared:{name}" in arguments.families:
                make(generate.Case(np.random.default_rng([arguments.seed, number]), f"{folder}/shared"))
                found.append((f"shared:{name}", f"{folder}/shared/{name}", lambda line, truth: check.wrong(truth, line, "")))
    if unknown := set(arguments.families) - {name for name, *_ in found}:
        sys.exit(f"no such family: {', '.join(sorted(unknown))}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--generated")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="print what is said of right results, too")
    parser.add_argument("families", nargs="*")
    arguments = parser.parse_intermixed_args()
    counts = {kind: dict.fromkeys(("right", "said", "SILENT"), 0) for kind in arguments.kinds.split(",")}

    def one(task):
        kind, (name, source, compare), folder = task
        base = os.path.basename(source)
        target = f"{folder}/{kind}/{name}".replace(":", "-")
        with open(f"{source}/truth.json", encoding="utf-8") as file:
            truth = json.load(file)
        if not write(source, target, base, kind, np.random.default_rng(arguments.seed), truth):
            return None
        truth["properties"] = truth["properties"].replace(source, target)
        result = verdict(f"{target}/{base}.xml", truth, compare)
        shutil.rmtree(target)
        return kind, name, *result

    with tempfile.TemporaryDirectory() as folder:
        tasks = [(kind, family, folder) for family in sources(arguments, folder) for kind in counts]
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for result in pool.map(one, tasks):
                if result is None:
                    continue
                kind, name, word, why = result
                counts[kind][word] += 1
                if word != "right" or (why and arguments.verbose):
                    print(f"{word:6} {kind} {name}: {why}", flush=True)
    total = dict.fromkeys(("right", "said", "SILENT"), 0)
    for kind, count in counts.items():
        print(f"{kind}: " + ", ".join(f"{number} {word}" for word, number in count.items()))
        for word, number in count.items():
            total[word] += number
    print(", ".join(f"{number} {word}" for word, number in total.items()))
    return 1 if total["SILENT"] else 0


if __name__ == "__main__":
    sys.exit(main())
