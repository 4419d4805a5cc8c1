"""Writes an IR (version 11) whose outputs are given numbers, whatever picture it is fed. Needs numpy only."""
import os
from xml.sax.saxutils import quoteattr

import numpy as np

TYPES = {"float32": ("f32", "FP32"), "float16": ("f16", "FP16"), "uint8": ("u8", "U8"), "int8": ("i8", "I8"),
         "int32": ("i32", "I32"), "int64": ("i64", "I64"), "bool": ("boolean", "BOOL")}


class Ir:
    """Layers in the order of writing; an edge is (layer, port, type, shape)."""

    def __init__(self):
        self.layers, self.edges, self.weights = [], [], bytearray()

    def layer(self, kind, name, data, inputs, outputs, tensor=None):
        """outputs: [(dtype, shape)]; returns the edges that leave."""
        number, text = len(self.layers), []
        for port, (layer, from_port, dtype, shape) in enumerate(inputs):
            text.append(("input", port, dtype, shape, None))
            self.edges.append(f'<edge from-layer="{layer}" from-port="{from_port}" to-layer="{number}" to-port="{port}"/>')
        made = []
        for port, (dtype, shape) in enumerate(outputs, len(inputs)):
            text.append(("output", port, dtype, shape, tensor))
            made.append((number, port, np.dtype(dtype), tuple(shape)))
        body = ""
        for side in ("input", "output"):
            ports = "".join(f'<port id="{port}" precision="{TYPES[np.dtype(dtype).name][1]}"' + (f" names={quoteattr(names)}" if names else "") +
                            ">" + "".join(f"<dim>{d}</dim>" for d in shape) + "</port>"
                            for place, port, dtype, shape, names in text if place == side)
            body += f"<{side}>{ports}</{side}>" if ports else ""
        attributes = "<data " + " ".join(f"{key}={quoteattr(str(value))}" for key, value in data.items()) + "/>" if data else ""
        self.layers.append(f'<layer id="{number}" name={quoteattr(name)} type="{kind}" version="opset1">{attributes}{body}</layer>')
        return made[0] if made else None

    def parameter(self, name, shape, dtype):
        data = {"shape": ",".join(map(str, shape)), "element_type": TYPES[np.dtype(dtype).name][0]}
        return self.layer("Parameter", name, data, [], [(dtype, shape)], name)

    def constant(self, value):
        value = np.asarray(value)
        self.weights += b"\0" * (-len(self.weights) % 64)
        data = {"element_type": TYPES[value.dtype.name][0], "shape": ",".join(map(str, value.shape)), "offset": len(self.weights),
                "size": value.nbytes}
        self.weights += value.tobytes()
        return self.layer("Const", f"Constant_{len(self.layers)}", data, [], [(value.dtype, value.shape)])

    def convert(self, edge, dtype, tensor=None):
        return self.layer("Convert", tensor or f"Convert_{len(self.layers)}", {"destination_type": TYPES[np.dtype(dtype).name][0]}, [edge],
                          [(dtype, edge[3])], tensor)

    def save(self, path, name, info):
        """path: without suffix. info: rt_info/model_info."""
        stated = "".join(f"<{key} value={quoteattr(str(value))}/>" for key, value in (info or {}).items())
        with open(path + ".xml", "w", encoding="utf-8") as file:
            file.write(f'<?xml version="1.0"?>\n<net name={quoteattr(name)} version="11"><layers>\n' + "\n".join(self.layers) +
                       "\n</layers><edges>\n" + "\n".join(self.edges) + "\n</edges><rt_info>" +
                       (f"<model_info>{stated}</model_info>" if stated else "") + "</rt_info></net>\n")
        with open(path + ".bin", "wb") as file:
            file.write(self.weights)


def write_constants(folder, name, picture, outputs, inputs=(), info=None):
    """A model FOLDER/NAME.xml. picture: (name, shape, dtype) of its input; outputs: [(name, array)]; inputs: further ones like the
    picture, of which nothing depends. The picture's mean times 0 is added to each output, so that none is a mere constant."""
    os.makedirs(folder, exist_ok=True)
    ir = Ir()
    edge = ir.parameter(*picture)
    for further in inputs:
        ir.parameter(*further)
    if edge[2] != np.float32:
        edge = ir.convert(edge, np.float32)
    axes = ir.constant(np.arange(len(picture[1]), dtype=np.int64))
    mean = ir.layer("ReduceMean", "mean", {"keep_dims": "false"}, [edge, axes], [(np.float32, ())])
    zero = ir.layer("Multiply", "zero", {"auto_broadcast": "numpy"}, [mean, ir.constant(np.float32(0))], [(np.float32, ())])
    for output, value in outputs:
        value = np.asarray(value)
        as_float = value.dtype == np.float32
        edge = ir.layer("Add", output if as_float else output + "/sum", {"auto_broadcast": "numpy"},
                        [ir.constant(value.astype(np.float32)), zero], [(np.float32, value.shape)], output if as_float else None)
        if not as_float:
            edge = ir.convert(edge, value.dtype, output)
        ir.layer("Result", output + "/result", {}, [edge], [])
    ir.save(f"{folder}/{name}", name, info)
