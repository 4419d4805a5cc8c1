#!/usr/bin/env python3
"""Writes networks that many people use as OpenVINO IR or ONNX with random weights: for speed and kernel tuning, not for results.

    networks.py FOLDER [NAME...] [--small] [--int8 | --fp8] [--tiny] [--onnx [--opset 17|18|20]]

Writes FOLDER/NAME.xml and .bin, or NAME.onnx; all convolutional networks unless some are named. The layers are those of the trained
networks, for one picture: YOLOv8 and YOLO11 n, s and m at 640x640; ResNet-18 and -50, MobileNet-v2 and -v3-large at 224x224; and with
attention Swin, DETR, RT-DETR, D-FINE, RF-DETR, SegFormer, MobileViT, SVTR, YOLO12, ViT, DeiT, CLIP, Depth Anything, TinyViT, in the
operations that exporters write. --small lets the layers share their weights: enough for plans. --int8 quantises what convolutions and
products read and what is added up, as NNCF writes it: with FakeQuantize, weights by output channel; --fp8 does so by FakeConvert to
f8e4m3. --tiny writes networks with attention
(all unless some are named) with few layers of few channels, for tests of values. Needs nothing but Python 3.8+; --onnx needs the package onnx.
"""
import argparse
import math
from pathlib import Path

from architectures import detr, hybrids, vit, windows
from architectures.layers import Network

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


def mobilenet_v3(net, rows, last):
    """rows: kernel, channels inside, channels out, channels of the squeezed branch (0: none), function, stride."""
    x = net.conv(net.parameter((1, 3, 224, 224)), 16, 3, 2, "HSwish")
    for kernel, inner, out, squeezed, act, stride in rows:
        y = net.conv(x, inner, act=act) if inner != x[2][1] else x
        y = net.conv(y, inner, kernel, stride, act, inner)
        if squeezed:
            weights = net.conv(net.conv(net.mean_of_image(y), squeezed, act="ReLU"), inner, act="HSigmoid")
            y = net.broadcast("Multiply", y, weights)
        y = net.conv(y, out, gain=RESIDUAL)
        x = net.residual(x, y) if stride == 1 and x[2][1] == out else y
    x = net.conv(x, 6 * x[2][1], act="HSwish")
    net.classes(net.conv(net.mean_of_image(x), last, act="HSwish"))


MOBILENET_V3_LARGE = [
    (3, 16, 16, 0, "ReLU", 1), (3, 64, 24, 0, "ReLU", 2), (3, 72, 24, 0, "ReLU", 1), (5, 72, 40, 24, "ReLU", 2),
    (5, 120, 40, 32, "ReLU", 1), (5, 120, 40, 32, "ReLU", 1), (3, 240, 80, 0, "HSwish", 2), (3, 200, 80, 0, "HSwish", 1),
    (3, 184, 80, 0, "HSwish", 1), (3, 184, 80, 0, "HSwish", 1), (3, 480, 112, 120, "HSwish", 1),
    (3, 672, 112, 168, "HSwish", 1), (5, 672, 160, 168, "HSwish", 2), (5, 960, 160, 240, "HSwish", 1),
    (5, 960, 160, 240, "HSwish", 1)]
MOBILENET_V3_SMALL = [
    (3, 16, 16, 8, "ReLU", 2), (3, 72, 24, 0, "ReLU", 2), (3, 88, 24, 0, "ReLU", 1), (5, 96, 40, 24, "HSwish", 2),
    (5, 240, 40, 64, "HSwish", 1), (5, 240, 40, 64, "HSwish", 1), (5, 120, 48, 32, "HSwish", 1), (5, 144, 48, 40, "HSwish", 1),
    (5, 288, 96, 72, "HSwish", 2), (5, 576, 96, 144, "HSwish", 1), (5, 576, 96, 144, "HSwish", 1)]


def shuffled(net, a, b):
    """Joins two values and mixes their channels."""
    n, channels, height, width = a[2]
    x = net.reshape(net.concat([a, b]), (n, 2, channels, height, width))
    return net.reshape(net.transpose(x, [0, 2, 1, 3, 4]), (n, 2 * channels, height, width))


def shufflenet_v2(net, channels, last):
    x = net.max_pool(net.conv(net.parameter((1, 3, 224, 224)), 24, 3, 2, "ReLU"), 3, 2, 1)
    for out, count in zip(channels, (4, 8, 4)):
        half = out // 2
        for i in range(count):
            if i == 0:
                a = y = x
                a = net.conv(net.conv(a, a[2][1], 3, 2, groups=a[2][1]), half, act="ReLU")
            else:
                a, y = net.split(x, [half, half])
            y = net.conv(net.conv(y, half, act="ReLU"), half, 3, 2 if i == 0 else 1, groups=half)
            x = shuffled(net, a, net.conv(y, half, act="ReLU"))
    net.classes(net.conv(x, last, act="ReLU"))


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


def c3k(net, y):
    channels = y[2][1] // 2
    a = net.conv(y, channels, act="Swish")
    for _ in range(2):
        a = bottleneck(net, a, channels, True)
    return net.conv(net.concat([a, net.conv(y, channels, act="Swish")]), y[2][1], act="Swish")


def c3k2(net, x, out, count, deep, share=0.5):
    def plain(y):
        return bottleneck(net, y, y[2][1] // 2, True)

    return chained_parts(net, x, out, int(out * share), count, (lambda y: c3k(net, y)) if deep else plain)


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


def yolo_levels(net, maps, size, classes, separable):
    """Boxes and scores of three levels; scores by separable convolutions from YOLO11 on."""
    first = maps[0][2][1]
    inner, scored = max(16, first // 4, 64), max(first, min(classes, 100))
    levels = []
    for x in maps:
        boxes = net.conv(net.conv(net.conv(x, inner, 3, 1, "Swish"), inner, 3, 1, "Swish"), 64)
        if separable:
            y = net.conv(x, x[2][1], 3, 1, "Swish", x[2][1])
            y = net.conv(net.conv(y, scored, act="Swish"), scored, 3, 1, "Swish", scored)
            y = net.conv(y, scored, act="Swish")
        else:
            y = net.conv(net.conv(x, scored, 3, 1, "Swish"), scored, 3, 1, "Swish")
        levels.append((boxes, net.conv(y, classes)))
    yolo_boxes(net, levels, size)


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

    yolo_levels(net, (n3, m4, m5), size, classes, eleven)


def area_attention(net, x, areas):
    """YOLO12's: rows of the picture fall into areas, whose pixels see each other; a convolution of the values has the places."""
    n, channels, height, width = x[2]
    pixels, heads = height * width, channels // 32
    qkv = net.transpose(net.reshape(net.conv(x, 3 * channels), (n, 3 * channels, pixels)), [0, 2, 1])
    if areas > 1:
        qkv = net.reshape(qkv, (n * areas, pixels // areas, 3 * channels))
    parts, tokens = qkv[2][:2]
    qkv = net.transpose(net.reshape(qkv, (parts, tokens, heads, 96)), [0, 2, 3, 1])
    q, k, v = net.split(qkv, [32, 32, 32], 2)
    scores = net.matmul(net.transpose(q, [0, 1, 3, 2]), k, (parts, heads, tokens, tokens))
    scores = net.softmax(net.scaled(scores, 32 ** -0.5), 3)
    seen = net.matmul(v, net.transpose(scores, [0, 1, 3, 2]), v[2])

    def picture(y):
        y = net.transpose(y, [0, 3, 1, 2])
        y = net.reshape(y, (n, pixels, channels)) if areas > 1 else y
        return net.transpose(net.reshape(y, (n, height, width, channels)), [0, 3, 1, 2])

    seen, v = picture(seen), picture(v)
    return net.conv(net.add(seen, net.conv(v, channels, 7, groups=channels)), channels, gain=RESIDUAL)


def a2c2f(net, x, out, count, areas):
    """As c2f, of pairs of attention and products, or without areas of c3k."""
    parts = [net.conv(x, out // 2, act="Swish")]
    for _ in range(count):
        y = parts[-1]
        if areas:
            for _ in range(2):
                y = net.add(y, area_attention(net, y, areas))
                y = net.add(y, net.conv(net.conv(y, y[2][1] * 2, act="Swish"), y[2][1], gain=RESIDUAL))
        else:
            y = c3k(net, y)
        parts.append(y)
    return net.conv(net.concat(parts), out, act="Swish")


def yolo12(net, size, width, count, classes):
    def channels(number):
        return math.ceil(min(number, 1024) * width / 8) * 8

    def down(x, number):
        return net.conv(x, channels(number), 3, 2, "Swish")

    def block(x, number, deep=False, share=0.5):
        return c3k2(net, x, channels(number), count, deep, share)

    def joined(parts, number):
        return a2c2f(net, net.concat(parts), channels(number), count, 0)

    x = block(down(down(net.parameter((1, 3, size, size)), 64), 128), 256, share=0.25)
    p3 = block(down(x, 256), 512, share=0.25)
    p4 = a2c2f(net, down(p3, 512), channels(512), 2 * count, 4)
    p5 = a2c2f(net, down(p4, 1024), channels(1024), 2 * count, 1)
    n4 = joined([net.twice_as_large(p5), p4], 512)
    n3 = joined([net.twice_as_large(n4), p3], 256)
    m4 = joined([down(n3, 256), n4], 512)
    m5 = block(net.concat([down(m4, 512), p5]), 1024, deep=True)
    yolo_levels(net, (n3, m4, m5), size, classes, True)


# Networks by name: a function and what it takes.
CONVOLUTIONAL = {
    "yolov8n": (yolo, {"version": 8, "depth": 0.33, "width": 0.25, "most": 1024}),
    "yolov8s": (yolo, {"version": 8, "depth": 0.33, "width": 0.5, "most": 1024}),
    "yolov8m": (yolo, {"version": 8, "depth": 0.67, "width": 0.75, "most": 768}),
    "yolo11n": (yolo, {"version": 11, "depth": 0.5, "width": 0.25, "most": 1024}),
    "yolo11s": (yolo, {"version": 11, "depth": 0.5, "width": 0.5, "most": 1024}),
    "yolo11m": (yolo, {"version": 11, "depth": 0.5, "width": 1.0, "most": 512}),
    "resnet18": (resnet, {"blocks": (2, 2, 2, 2), "bottleneck": False}),
    "resnet50": (resnet, {"blocks": (3, 4, 6, 3), "bottleneck": True}),
    "mobilenet_v2": (mobilenet_v2, {}),
    "mobilenet_v3_large": (mobilenet_v3, {"rows": MOBILENET_V3_LARGE, "last": 1280}),
}
# Networks for phones, beside ONNX Runtime in BENCHMARKS.md; no records of tuning are shipped for them.
MOBILE = {
    "mobilenet_v3_small": (mobilenet_v3, {"rows": MOBILENET_V3_SMALL, "last": 1024}),
    "shufflenet_v2_x0_5": (shufflenet_v2, {"channels": (48, 96, 192), "last": 1024}),
}
TRANSFORMERS = {
    **windows.NETWORKS, **detr.NETWORKS, **hybrids.NETWORKS, "yolo12n": (yolo12, {"size": 640, "width": 0.25, "count": 1, "classes": 80}),
    **vit.NETWORKS,
}
# The arguments that differ in the smallest networks with the same patterns.
TINY = {**windows.TINY, **detr.TINY, **hybrids.TINY, "yolo12n": {"size": 128, "classes": 8}, **vit.TINY}
NETWORKS = {**CONVOLUTIONAL, **MOBILE, **TRANSFORMERS}


def write(folder, name, small=False, quantized_to=None, onnx=0, tiny=False):
    """The path of the file that it writes. onnx: 0 for IR, or the version of the operations."""
    if onnx:
        from architectures.onnx_network import OnnxNetwork
        net = OnnxNetwork(small, onnx)
    else:
        net = Network(small, quantized_to)
    function, arguments = NETWORKS[name]
    function(net, **{**arguments, **(TINY[name] if tiny else {})})
    path = folder / f"{name}{f'_{quantized_to}' if quantized_to else ''}{'_tiny' if tiny else ''}.{'onnx' if onnx else 'xml'}"
    net.write(path)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", choices=[[], *NETWORKS], metavar="NAME", help=", ".join(NETWORKS))
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--int8", dest="quantized_to", action="store_const", const="int8")
    parser.add_argument("--fp8", dest="quantized_to", action="store_const", const="fp8")
    parser.add_argument("--onnx", action="store_true")
    parser.add_argument("--opset", type=int, choices=(17, 18, 20), default=17)
    parser.add_argument("--tiny", action="store_true")
    args = parser.parse_args()
    if args.onnx and args.quantized_to:
        parser.error("--int8 and --fp8 are for IR")
    if no_tiny := [name for name in args.names if args.tiny and name not in TINY]:
        parser.error(f"{no_tiny[0]} has no tiny form; these have: {', '.join(TINY)}")
    args.folder.mkdir(parents=True, exist_ok=True)
    for name in args.names or (TINY if args.tiny else CONVOLUTIONAL):
        print(write(args.folder, name, args.small, args.quantized_to, args.opset if args.onnx else 0, args.tiny))


if __name__ == "__main__":
    main()
