"""Writes OpenVINO IR models layer by layer. Needs nothing but Python."""
import struct


class Model:
    """An IR under construction. A value is (layer, port, shape)."""

    def __init__(self):
        self.layers, self.edges, self.weights = [], [], bytearray()

    def layer(self, kind, opset, inputs, shapes, data=None, element="FP32"):
        number = len(self.layers)
        for port, (layer, from_port, _) in enumerate(inputs):
            self.edges.append(f'<edge from-layer="{layer}" from-port="{from_port}" to-layer="{number}" to-port="{port}"/>')

        def ports(tag, first, all_shapes, precision):
            dims = ["".join(f"<dim>{d}</dim>" for d in shape) for shape in all_shapes]
            listed = "".join(f'<port id="{first + i}"{precision}>{text}</port>' for i, text in enumerate(dims))
            return f"<{tag}>{listed}</{tag}>" if dims else ""

        attributes = " ".join(f'{key}="{value}"' for key, value in (data or {}).items())
        self.layers.append(f'<layer id="{number}" name="{kind}{number}" type="{kind}" version="opset{opset}">'
                           f'{f"<data {attributes}/>" if attributes else ""}'
                           f'{ports("input", 0, [i[2] for i in inputs], "")}'
                           f'{ports("output", len(inputs), shapes, f" precision={chr(34)}{element}{chr(34)}")}</layer>')
        values = [(number, len(inputs) + i, tuple(shape)) for i, shape in enumerate(shapes)]
        return values if len(values) > 1 else values[0] if values else None

    def parameter(self, shape):
        return self.layer("Parameter", 1, [], [shape], {"shape": ",".join(map(str, shape)), "element_type": "f32"})

    def constant(self, shape, values, element="f32"):
        offset = len(self.weights)
        self.weights += struct.pack(f"<{len(values)}{'f' if element == 'f32' else 'q'}", *values)
        return self.layer("Const", 1, [], [shape], {"element_type": element, "shape": ",".join(map(str, shape)), "offset": offset,
                                                    "size": len(self.weights) - offset}, "FP32" if element == "f32" else "I64")

    def floats(self, shape, value):
        count = 1
        for dim in shape:
            count *= dim
        return self.constant(shape, [value] * count)

    def ints(self, values):
        return self.constant([len(values)], values, "i64")

    def op(self, kind, inputs, shape=None, data=None, opset=1):
        return self.layer(kind, opset, inputs, [shape or inputs[0][2]], data)

    def result(self, value):
        self.layer("Result", 1, [value], [])

    def write(self, path):
        path.write_text('<?xml version="1.0"?><net name="generated" version="11"><layers>' + "\n".join(self.layers) +
                        "</layers><edges>" + "\n".join(self.edges) + "</edges></net>")
        path.with_suffix(".bin").write_bytes(self.weights)
