#!/usr/bin/env python3
"""Writes networks that many people use as OpenVINO IR with random weights: for speed and kernel tuning, not for results.

    networks.py FOLDER [NAME...] [--small] [--int8]     writes FOLDER/NAME.xml and .bin; all networks unless some are named

The layers are those of the trained networks, for one picture: YOLOv8 and YOLO11 n, s and m at 640x640; ResNet-18 and -50,
MobileNet-v2 and -v3-large at 224x224. --small lets the layers share their weights: enough for plans. --int8 quantises what convolutions and
the last product read and what is added up, as NNCF writes it: with FakeQuantize, weights by output channel. Needs nothing but Python 3.8+.
"""
import argparse
import array
import math
import random
from pathlib import Path
from statistics import NormalDist

from ir_model import Model

NOISE = [NormalDist().inv_cdf((i + 0.5) / 256) for i in range(256)]  # each as likely as the others


class Network(Model):
    """Layers as networks for pictures have them. A value is (layer, port, shape)."""

    def __init__(self, small=False, int8=False):
        super().__init__()
        self.small, self.int8 = small, int8
        self.not_negative, self.bytes, self.quantized_values = set(), set(), {}
        self.random = random.Random(1)

    def noise(self, shape, scale):
        count = math.prod(shape)
        values = [scale * value for value in NOISE]
        # No two layers are alike in either case.
        offset = 64 * len(self.layers) if self.small else len(self.weights)
        missing = offset // 4 + count - len(self.weights) // 4
        if missing > 0:
            drawn = self.random.getrandbits(8 * missing).to_bytes(missing, "little")
            self.weights += array.array("f", map(values.__getitem__, drawn)).tobytes()
        return self.layer("Const", 1, [], [shape], {"element_type": "f32", "shape": ",".join(map(str, shape)), "offset": offset,
                                                    "size": 4 * count})

    def quantize(self, x, low, high, levels, shape=()):
        limits = [self.floats(shape, limit) for limit in (low, high)]
        return self.op("FakeQuantize", [x, *limits, *limits], data={"levels": levels, "auto_broadcast": "numpy"})

    def quantized(self, x):
        """Bytes from 0 on where no value is negative, else with a zero point of 128; once for all that read x."""
        if not self.int8 or x in self.bytes:
            return x
        if x not in self.quantized_values:
            limits = (0, 6) if x in self.not_negative else (-4, 4 * 127 / 128)
            self.quantized_values[x] = self.moved(self.quantize(x, *limits, 256), [x])
            self.bytes.add(self.quantized_values[x])
        return self.quantized_values[x]

    def moved(self, y, values):
        """y, which is made of nothing but values of these."""
        for kind in (self.not_negative, self.bytes):
            if all(value in kind for value in values):
                kind.add(y)
        return y

    def weights_of(self, shape, scale):
        weights = self.noise(shape, scale)
        limit = scale * NOISE[-1]
        return self.quantize(weights, -limit, limit, 255, (shape[0], *[1] * (len(shape) - 1))) if self.int8 else weights

    def function(self, name, x):
        if name == "relu6":
            y = self.op("Clamp", [x], data={"min": 0, "max": 6})
        else:
            opset = {"ReLU": 1, "Sigmoid": 1, "Swish": 4, "HSwish": 4, "HSigmoid": 5}[name]
            y = self.op(name, [x], opset=opset)
        if name in ("relu6", "ReLU"):
            self.not_negative.add(y)
        return y

    def conv(self, x, out, kernel=1, stride=1, act=None, groups=1, gain=1.0):
        n, channels, height, width = x[2]
        pad, inner = kernel // 2, channels // groups
        shape = (out, inner, kernel, kernel) if groups == 1 else (groups, out // groups, inner, kernel, kernel)
        weights = self.weights_of(shape, gain * math.sqrt(2 / (inner * kernel * kernel)))
        x = self.quantized(x)
        size = [(side + 2 * pad - kernel) // stride + 1 for side in (height, width)]
        data = {"strides": f"{stride},{stride}", "dilations": "1,1", "pads_begin": f"{pad},{pad}", "pads_end": f"{pad},{pad}",
                "auto_pad": "explicit"}
        y = self.op("Convolution" if groups == 1 else "GroupConvolution", [x, weights], (n, out, *size), data)
        y = self.add(y, self.noise((1, out, 1, 1), 0.01))
        return self.quantized(self.function(act, y)) if act else y

    def broadcast(self, kind, a, b):
        shape = tuple(map(max, zip(*[(1,) * (max(len(a[2]), len(b[2])) - len(v[2])) + tuple(v[2]) for v in (a, b)])))
        return self.op(kind, [a, b], shape, {"auto_broadcast": "numpy"})

    def add(self, a, b):
        return self.broadcast("Add", a, b)

    def residual(self, x, y):
        return self.add(self.quantized(x), self.quantized(y))

    def max_pool(self, x, kernel, stride, pad):
        n, channels, height, width = x[2]
        size = [(side + 2 * pad - kernel) // stride + 1 for side in (height, width)]
        data = {"strides": f"{stride},{stride}", "dilations": "1,1", "pads_begin": f"{pad},{pad}", "pads_end": f"{pad},{pad}",
                "kernel": f"{kernel},{kernel}", "rounding_type": "floor", "auto_pad": "explicit", "index_element_type": "i64", "axis": 0}
        return self.moved(self.layer("MaxPool", 8, [x], [(n, channels, *size)] * 2, data)[0], [x])

    def mean_of_image(self, x):
        return self.op("ReduceMean", [x, self.ints([2, 3])], (*x[2][:2], 1, 1), {"keep_dims": "true"})

    def concat(self, values, axis=1):
        shape = list(values[0][2])
        shape[axis] = sum(value[2][axis] for value in values)
        return self.moved(self.op("Concat", values, tuple(shape), {"axis": axis}), values)

    def split(self, x, lengths, axis=1):
        shapes = [tuple(x[2][:axis]) + (length,) + tuple(x[2][axis + 1:]) for length in lengths]
        parts = self.layer("VariadicSplit", 1, [x, self.constant([], [axis], "i64"), self.ints(lengths)], shapes)
        return [self.moved(part, [x]) for part in parts]

    def reshape(self, x, shape):
        """To the shape, whose first number, the batch, is kept."""
        return self.op("Reshape", [x, self.ints([0, *shape[1:]])], shape, {"special_zero": "true"})

    def matmul(self, a, b, shape, transpose_a=False, transpose_b=False):
        return self.op("MatMul", [a, b], shape, {"transpose_a": str(transpose_a).lower(), "transpose_b": str(transpose_b).lower()})

    def softmax(self, x, axis):
        return self.op("SoftMax", [x], data={"axis": axis}, opset=8)

    def twice_as_large(self, x):
        n, channels, height, width = x[2]
        data = {"mode": "nearest", "shape_calculation_mode": "scales", "coordinate_transformation_mode": "asymmetric",
                "nearest_mode": "floor", "antialias": "false", "pads_begin": "0,0,0,0", "pads_end": "0,0,0,0", "cube_coeff": -0.75}
        return self.moved(self.op("Interpolate", [x, self.constant([2], [2.0, 2.0]), self.ints([2, 3])],
                                  (n, channels, 2 * height, 2 * width), data, opset=11), [x])

    def classes(self, x, count=1000):
        x = self.reshape(self.mean_of_image(x), (x[2][0], x[2][1]))
        x = self.matmul(self.quantized(x), self.weights_of((count, x[2][1]), 0.05), (x[2][0], count), transpose_b=True)
        self.result(self.softmax(self.add(x, self.noise((1, count), 0.01)), 1))


# Residual branches add little, so that no sum overflows f16.
RESIDUAL = 0.3


def resnet(net, blocks, bottleneck):
    x = net.conv(net.parameter((1, 3, 224, 224)), 64, 7, 2, "ReLU")
    x = net.max_pool(x, 3, 2, 1)
    for stage, count in enumerate(blocks):
        width = 64 << stage
        out = width * 4 if bottleneck else width
        for i in range(count):
            stride = 2 if i == 0 and stage else 1
            if bottleneck:
                y = net.conv(net.conv(x, width, 1, 1, "ReLU"), width, 3, stride, "ReLU")
                y = net.conv(y, out, gain=RESIDUAL)
            else:
                y = net.conv(net.conv(x, width, 3, stride, "ReLU"), out, 3, gain=RESIDUAL)
            skip = net.conv(x, out, 1, stride) if stride == 2 or x[2][1] != out else x
            x = net.quantized(net.function("ReLU", net.residual(y, skip)))
    net.classes(x)


def mobilenet_v2(net):
    x = net.conv(net.parameter((1, 3, 224, 224)), 32, 3, 2, "relu6")
    for expand, out, count, stride in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                                       (6, 320, 1, 1)]:
        for i in range(count):
            channels, step = x[2][1], stride if i == 0 else 1
            y = net.conv(x, channels * expand, act="relu6") if expand > 1 else x
            y = net.conv(y, channels * expand, 3, step, "relu6", channels * expand)
            y = net.conv(y, out, gain=RESIDUAL)
            x = net.residual(x, y) if step == 1 and channels == out else y
    net.classes(net.conv(x, 1280, act="relu6"))


def mobilenet_v3_large(net):
    x = net.conv(net.parameter((1, 3, 224, 224)), 16, 3, 2, "HSwish")
    for kernel, inner, out, squeezed, act, stride in [
            (3, 16, 16, 0, "ReLU", 1), (3, 64, 24, 0, "ReLU", 2), (3, 72, 24, 0, "ReLU", 1), (5, 72, 40, 24, "ReLU", 2),
            (5, 120, 40, 32, "ReLU", 1), (5, 120, 40, 32, "ReLU", 1), (3, 240, 80, 0, "HSwish", 2), (3, 200, 80, 0, "HSwish", 1),
            (3, 184, 80, 0, "HSwish", 1), (3, 184, 80, 0, "HSwish", 1), (3, 480, 112, 120, "HSwish", 1),
            (3, 672, 112, 168, "HSwish", 1), (5, 672, 160, 168, "HSwish", 2), (5, 960, 160, 240, "HSwish", 1),
            (5, 960, 160, 240, "HSwish", 1)]:
        y = net.conv(x, inner, act=act) if inner != x[2][1] else x
        y = net.conv(y, inner, kernel, stride, act, inner)
        if squeezed:
            weights = net.conv(net.conv(net.mean_of_image(y), squeezed, act="ReLU"), inner, act="HSigmoid")
            y = net.broadcast("Multiply", y, weights)
        y = net.conv(y, out, gain=RESIDUAL)
        x = net.residual(x, y) if stride == 1 and x[2][1] == out else y
    x = net.conv(x, 960, act="HSwish")
    net.classes(net.conv(net.mean_of_image(x), 1280, act="HSwish"))


def bottleneck(net, x, inner, shortcut):
    y = net.conv(net.conv(x, inner, 3, 1, "Swish"), x[2][1], 3, 1, "Swish", gain=RESIDUAL if shortcut else 1.0)
    return net.residual(x, y) if shortcut else y


def chained_parts(net, x, out, inner, count, block):
    """C2f: two halves, blocks one after the other on the second, all of them joined."""
    parts = net.split(net.conv(x, 2 * inner, act="Swish"), [inner, inner])
    for _ in range(count):
        parts.append(net.quantized(block(parts[-1])))
    return net.conv(net.concat(parts), out, act="Swish")


def c2f(net, x, out, count, shortcut):
    return chained_parts(net, x, out, out // 2, count, lambda y: bottleneck(net, y, y[2][1], shortcut))


def c3k2(net, x, out, count, deep, share=0.5):
    def c3k(y):
        channels = y[2][1] // 2
        a = net.conv(y, channels, act="Swish")
        for _ in range(2):
            a = bottleneck(net, a, channels, True)
        return net.conv(net.concat([a, net.conv(y, channels, act="Swish")]), y[2][1], act="Swish")

    def plain(y):
        return bottleneck(net, y, y[2][1] // 2, True)

    return chained_parts(net, x, out, int(out * share), count, c3k if deep else plain)


def sppf(net, x, out):
    parts = [net.conv(x, x[2][1] // 2, act="Swish")]
    for _ in range(3):
        parts.append(net.max_pool(parts[-1], 5, 1, 2))
    return net.conv(net.concat(parts), out, act="Swish")


def attention(net, x):
    n, channels, height, width = x[2]
    heads = channels // 64
    depth, keys, pixels = channels // heads, channels // heads // 2, height * width
    qkv = net.reshape(net.conv(x, channels + heads * keys * 2), (n, heads, 2 * keys + depth, pixels))
    q, k, v = net.split(qkv, [keys, keys, depth], 2)
    scores = net.matmul(q, k, (n, heads, pixels, pixels), transpose_a=True)
    scores = net.softmax(net.broadcast("Multiply", scores, net.constant([1, 1, 1, 1], [keys ** -0.5])), -1)
    seen = net.reshape(net.matmul(v, scores, v[2], transpose_b=True), x[2])
    return net.conv(net.add(seen, net.conv(net.reshape(v, x[2]), channels, 3, groups=channels)), channels, gain=RESIDUAL)


def c2psa(net, x, count):
    inner = x[2][1] // 2
    a, b = net.split(net.conv(x, 2 * inner, act="Swish"), [inner, inner])
    for _ in range(count):
        b = net.add(b, attention(net, b))
        b = net.add(b, net.conv(net.conv(b, 2 * inner, act="Swish"), inner, gain=RESIDUAL))
    return net.conv(net.concat([a, b]), x[2][1], act="Swish")


def yolo_boxes(net, levels, size):
    """Distances from cell to box by distributions of 16, and sigmoid scores: [1, 4 + classes, cells]."""
    classes = levels[0][1][2][1]
    flat = net.concat([net.reshape(net.concat(pair), (1, 64 + classes, pair[0][2][2] * pair[0][2][3])) for pair in levels], 2)
    cells = flat[2][2]
    distances, scores = net.split(flat, [64, classes])
    bins = net.op("Transpose", [net.reshape(distances, (1, 4, 16, cells)), net.ints([0, 2, 1, 3])], (1, 16, 4, cells))
    means = net.op("Convolution", [net.softmax(bins, 1), net.constant((1, 16, 1, 1), list(map(float, range(16))))], (1, 1, 4, cells),
                   {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "auto_pad": "explicit"})
    low, high = net.split(net.reshape(means, (1, 4, cells)), [2, 2])
    grids = [(step, size // step) for step in (8, 16, 32)]
    xs = [x + 0.5 for _, side in grids for _ in range(side) for x in range(side)]
    ys = [y + 0.5 for _, side in grids for y in range(side) for _ in range(side)]
    centres = net.constant((1, 2, cells), xs + ys)
    first, last = net.broadcast("Subtract", centres, low), net.add(centres, high)
    middle = net.broadcast("Multiply", net.add(first, last), net.constant((1, 1, 1), [0.5]))
    steps = net.constant((1, 1, cells), [float(step) for step, side in grids for _ in range(side * side)])
    boxes = net.broadcast("Multiply", net.concat([middle, net.broadcast("Subtract", last, first)]), steps)
    net.result(net.concat([boxes, net.function("Sigmoid", scores)]))


def yolo(net, version, depth, width, most, size=640, classes=80):
    eleven = version == 11
    deep_everywhere = eleven and width >= 1  # m and larger

    def channels(count):
        return math.ceil(min(count, most) * width / 8) * 8

    def block(x, count, times, deep=False, shortcut=False, share=0.5):
        if eleven:
            return c3k2(net, x, channels(count), max(round(2 * depth), 1), deep or deep_everywhere, share)
        return c2f(net, x, channels(count), max(round(times * depth), 1), shortcut)

    def down(x, count):
        return net.conv(x, channels(count), 3, 2, "Swish")

    x = down(down(net.parameter((1, 3, size, size)), 64), 128)
    x = block(x, 256 if eleven else 128, 3, shortcut=True, share=0.25)
    p3 = block(down(x, 256), 512 if eleven else 256, 6, shortcut=True, share=0.25)
    p4 = block(down(p3, 512), 512, 6, deep=True, shortcut=True)
    p5 = sppf(net, block(down(p4, 1024), 1024, 3, deep=True, shortcut=True), channels(1024))
    if eleven:
        p5 = c2psa(net, p5, max(round(2 * depth), 1))
    n4 = block(net.concat([net.twice_as_large(p5), p4]), 512, 3)
    n3 = block(net.concat([net.twice_as_large(n4), p3]), 256, 3)
    m4 = block(net.concat([down(n3, 256), n4]), 512, 3)
    m5 = block(net.concat([down(m4, 512), p5]), 1024, 3, deep=True)

    first = n3[2][1]
    inner, scored = max(16, first // 4, 64), max(first, min(classes, 100))
    levels = []
    for x in (n3, m4, m5):
        boxes = net.conv(net.conv(net.conv(x, inner, 3, 1, "Swish"), inner, 3, 1, "Swish"), 64)
        if eleven:
            y = net.conv(x, x[2][1], 3, 1, "Swish", x[2][1])
            y = net.conv(net.conv(y, scored, act="Swish"), scored, 3, 1, "Swish", scored)
            y = net.conv(y, scored, act="Swish")
        else:
            y = net.conv(net.conv(x, scored, 3, 1, "Swish"), scored, 3, 1, "Swish")
        levels.append((boxes, net.conv(y, classes)))
    yolo_boxes(net, levels, size)


NETWORKS = {
    "yolov8n": lambda net: yolo(net, 8, 0.33, 0.25, 1024),
    "yolov8s": lambda net: yolo(net, 8, 0.33, 0.5, 1024),
    "yolov8m": lambda net: yolo(net, 8, 0.67, 0.75, 768),
    "yolo11n": lambda net: yolo(net, 11, 0.5, 0.25, 1024),
    "yolo11s": lambda net: yolo(net, 11, 0.5, 0.5, 1024),
    "yolo11m": lambda net: yolo(net, 11, 0.5, 1.0, 512),
    "resnet18": lambda net: resnet(net, (2, 2, 2, 2), False),
    "resnet50": lambda net: resnet(net, (3, 4, 6, 3), True),
    "mobilenet_v2": mobilenet_v2,
    "mobilenet_v3_large": mobilenet_v3_large,
}


def write(folder, name, small=False, int8=False):
    net = Network(small, int8)
    NETWORKS[name](net)
    path = folder / f"{name}{'_int8' if int8 else ''}.xml"
    net.write(path)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", choices=[[], *NETWORKS], metavar="NAME", help=", ".join(NETWORKS))
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--int8", action="store_true")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for name in args.names or NETWORKS:
        print(write(args.folder, name, args.small, args.int8))


if __name__ == "__main__":
    main()
