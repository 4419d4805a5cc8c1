#!/usr/bin/env python3
"""Writes a small network with an operation that no inference engine has: Posterize.

    make_model.py OUT.xml [--width 320] [--height 240] [--levels 4]      writes OUT.bin, too

A picture [1,3,H,W] (B G R, 0..255) is scaled to 0..1, sharpened by a 3x3 convolution with ReLU, posterized, and scaled to
0..255 again. Needs nothing but Python.
"""
import argparse
import struct

CHANNELS = 3


class Writer:
    """Layers and edges of an OpenVINO IR, and the weights beside it."""

    def __init__(self):
        self.layers, self.edges, self.weights = [], [], b""
        self.shapes = []  # of each layer's output

    def layer(self, kind, inputs, dims, version="opset1", **attributes):
        number = len(self.layers)
        ports = lambda shapes, first: "".join(
            f'<port id="{first + i}" precision="FP32">' + "".join(f"<dim>{d}</dim>" for d in s) + "</port>"
            for i, s in enumerate(shapes))
        data = "<data" + "".join(f' {k}="{v}"' for k, v in attributes.items()) + "/>" if attributes else ""
        into = f"<input>{ports([self.shapes[i] for i in inputs], 0)}</input>" if inputs else ""
        out = f"<output>{ports([dims], len(inputs))}</output>" if dims is not None else ""
        self.layers.append(f'<layer id="{number}" name="{kind.lower()}{number}" type="{kind}" version="{version}">'
                           f"{data}{into}{out}</layer>")
        for port, source in enumerate(inputs):
            self.edges.append((source, number, port))
        self.shapes.append(dims)
        return number

    def constant(self, values, shape):
        offset = len(self.weights)
        self.weights += struct.pack(f"<{len(values)}f", *values)
        return self.layer("Const", [], shape, element_type="f32", shape=",".join(map(str, shape)), offset=offset,
                          size=4 * len(values))

    def xml(self):
        ports_of = {}
        for number, text in enumerate(self.layers):
            ports_of[number] = text.count("<input>") and text.split("<input>")[1].split("</input>")[0].count("<port ")
        edges = "".join(f'<edge from-layer="{a}" from-port="{ports_of[a]}" to-layer="{b}" to-port="{p}"/>'
                        for a, b, p in self.edges)
        return ('<?xml version="1.0"?>\n<net name="posterize" version="11"><layers>\n' + "\n".join(self.layers) +
                f"\n</layers><edges>{edges}</edges></net>\n")


def write(path, width, height, levels):
    net = Writer()
    shape = [1, CHANNELS, height, width]
    picture = net.layer("Parameter", [], shape, shape=",".join(map(str, shape)), element_type="f32")
    scaled = net.layer("Multiply", [picture, net.constant([1 / 255], [1, 1, 1, 1])], shape, auto_broadcast="numpy")
    kernel = [0, -0.25, 0, -0.25, 2, -0.25, 0, -0.25, 0]
    weights = [value if a == b else 0 for a in range(CHANNELS) for b in range(CHANNELS) for value in kernel]
    sharp = net.layer("Convolution", [scaled, net.constant(weights, [CHANNELS, CHANNELS, 3, 3])], shape, strides="1,1",
                      pads_begin="1,1", pads_end="1,1", dilations="1,1", auto_pad="explicit")
    sharp = net.layer("ReLU", [sharp], shape)
    few = net.layer("Posterize", [sharp], shape, version="my_operations", levels=levels)
    result = net.layer("Multiply", [few, net.constant([255], [1, 1, 1, 1])], shape, auto_broadcast="numpy")
    net.layer("Result", [result], None)
    with open(path, "w", encoding="utf-8") as file:
        file.write(net.xml())
    with open(path.removesuffix(".xml") + ".bin", "wb") as file:
        file.write(net.weights)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--width", type=int, default=320)
    parser.add_argument("--height", type=int, default=240)
    parser.add_argument("--levels", type=int, default=4)
    arguments = parser.parse_args()
    write(arguments.out, arguments.width, arguments.height, arguments.levels)


if __name__ == "__main__":
    main()
