"""The same layers as ONNX, in the nodes that torch.onnx writes. Needs the Python package onnx."""
import math

from onnx import TensorProto, helper

from architectures.layers import Network

SAME = {"Add": "Add", "Multiply": "Mul", "Subtract": "Sub", "Divide": "Div", "Power": "Pow", "ReLU": "Relu", "Sigmoid": "Sigmoid",
        "Log": "Log", "HSwish": "HardSwish", "Sqrt": "Sqrt", "Reshape": "Reshape", "Unsqueeze": "Unsqueeze", "Squeeze": "Squeeze",
        "Tile": "Tile", "Broadcast": "Expand", "Exp": "Exp"}
TYPES = {"f32": TensorProto.FLOAT, "i64": TensorProto.INT64}


class OnnxNetwork(Network):
    """opset 17 is what the exporter by tracing writes, 20 what the one by torch.export does (GELU as one node)."""

    def __init__(self, small=False, opset=17):
        super().__init__(small)
        self.opset = opset
        self.nodes, self.constants, self.inputs, self.outputs = [], {}, [], []

    def name_of(self, value):
        return f"v{value[0]}_{value[1]}"

    def ints_of(self, value):
        _, shape, offset, size = self.constants[value[0]]
        return [int.from_bytes(self.weights[at:at + 8], "little", signed=True) for at in range(offset, offset + size, 8)]

    def node(self, kind, inputs, outputs, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=f"{kind}_{len(self.nodes)}", **attributes))
        return outputs[0]

    def numbers(self, values, shape=None):
        """A constant of ints, by name."""
        return self.name_of(self.constant([len(values)] if shape is None else shape, values, "i64"))

    def layer(self, kind, opset, inputs, shapes, data=None, element="FP32"):
        number, data = len(self.layers), data or {}
        self.layers.append(kind)
        values = [(number, len(inputs) + i, tuple(shape)) for i, shape in enumerate(shapes)]
        names, outputs = [self.name_of(value) for value in inputs], [self.name_of(value) for value in values]
        if kind == "Const":
            self.constants[number] = (data["element_type"], tuple(shapes[0]), data["offset"], data["size"])
        elif kind == "Parameter":
            self.inputs.append(helper.make_tensor_value_info(outputs[0], TensorProto.FLOAT, list(shapes[0])))
        elif kind == "Result":
            self.outputs.append((names[0], inputs[0][2]))
        elif kind in SAME:
            self.node(SAME[kind], names, outputs)
        else:
            getattr(self, f"write_{kind}")(inputs, names, values, outputs, data)
        return values if len(values) > 1 else values[0] if values else None

    def write_Convolution(self, inputs, names, values, outputs, data):
        pads, strides = ([int(k) for k in data[key].split(",")] for key in ("pads_begin", "strides"))
        weights = self.constants[inputs[1][0]]
        groups = weights[1][0] if len(weights[1]) == 5 else 1
        if groups > 1:
            self.constants[inputs[1][0]] = (weights[0], (groups * weights[1][1], *weights[1][2:]), *weights[2:])
        self.node("Conv", names, outputs, group=groups, kernel_shape=list(weights[1][-2:]), pads=pads * 2, strides=strides, dilations=[1, 1])

    write_GroupConvolution = write_Convolution

    def write_ConvolutionBackpropData(self, inputs, names, values, outputs, data):
        strides = [int(k) for k in data["strides"].split(",")]
        self.node("ConvTranspose", names, outputs, kernel_shape=strides, strides=strides, pads=[0] * 4, dilations=[1, 1], group=1)

    def add(self, a, b):
        last = self.nodes[-1] if self.nodes else None
        if last is not None and last.op_type in ("Conv", "ConvTranspose") and len(last.input) == 2 and last.output[0] == self.name_of(a) \
                and b[0] in self.constants and b[2][0] == 1 and math.prod(b[2]) == b[2][1]:
            kind, shape, *where = self.constants[b[0]]
            self.constants[b[0]] = (kind, (shape[1],), *where)
            last.input.append(self.name_of(b))
            return a
        return super().add(a, b)

    def write_MatMul(self, inputs, names, values, outputs, data):
        for side, key in enumerate(("transpose_a", "transpose_b")):
            if data[key] == "true":
                rank = len(inputs[side][2])
                order = [*range(rank - 2), rank - 1, rank - 2]
                names[side] = self.node("Transpose", [names[side]], [f"{outputs[0]}_t{side}"], perm=order)
        self.node("MatMul", names, outputs)

    def write_SoftMax(self, inputs, names, values, outputs, data):
        axis = data["axis"]
        self.node("Softmax", names, outputs, axis=axis - len(inputs[0][2]) if axis == len(inputs[0][2]) - 1 else axis)

    def write_Swish(self, inputs, names, values, outputs, data):
        self.node("Mul", [names[0], self.node("Sigmoid", names, [f"{outputs[0]}_s"])], outputs)

    def write_HSigmoid(self, inputs, names, values, outputs, data):
        self.node("HardSigmoid", names, outputs, alpha=1 / 6, beta=0.5)

    def write_Gelu(self, inputs, names, values, outputs, data):
        if self.opset >= 20:
            self.node("Gelu", names, outputs, approximate="none")
            return
        root, one, half = (self.name_of(self.number(value)) for value in (math.sqrt(2), 1.0, 0.5))
        y = self.node("Erf", [self.node("Div", [names[0], root], [f"{outputs[0]}_d"])], [f"{outputs[0]}_e"])
        y = self.node("Mul", [names[0], self.node("Add", [y, one], [f"{outputs[0]}_a"])], [f"{outputs[0]}_m"])
        self.node("Mul", [y, half], outputs)

    def write_Clamp(self, inputs, names, values, outputs, data):
        limits = [self.name_of(self.number(float(data[key]))) for key in ("min", "max")]
        self.node("Clip", [names[0], *limits], outputs)

    def write_MaxPool(self, inputs, names, values, outputs, data):
        pads, strides, kernel = ([int(k) for k in data[key].split(",")] for key in ("pads_begin", "strides", "kernel"))
        self.node("MaxPool", names, outputs[:1], kernel_shape=kernel, pads=pads * 2, strides=strides, ceil_mode=0)

    def write_AvgPool(self, inputs, names, values, outputs, data):
        strides, kernel = ([int(k) for k in data[key].split(",")] for key in ("strides", "kernel"))
        self.node("AveragePool", names, outputs, kernel_shape=kernel, pads=[0] * 4, strides=strides, ceil_mode=0, count_include_pad=1)

    def write_reduction(self, kind, inputs, names, outputs, data):
        keep, axes = int(data["keep_dims"] == "true"), self.ints_of(inputs[1])
        if self.opset >= 18 or kind == "ReduceSum":
            self.node(kind, names, outputs, keepdims=keep)
        else:
            self.node(kind, names[:1], outputs, keepdims=keep, axes=axes)

    def write_ReduceMean(self, inputs, names, values, outputs, data):
        self.write_reduction("ReduceMean", inputs, names, outputs, data)

    def write_ReduceMax(self, inputs, names, values, outputs, data):
        self.write_reduction("ReduceMax", inputs, names, outputs, data)

    def write_ReduceSum(self, inputs, names, values, outputs, data):
        self.write_reduction("ReduceSum", inputs, names, outputs, data)

    def write_ReduceL2(self, inputs, names, values, outputs, data):
        self.write_reduction("ReduceL2", inputs, names, outputs, data)

    def write_Concat(self, inputs, names, values, outputs, data):
        self.node("Concat", names, outputs, axis=data["axis"])

    def write_VariadicSplit(self, inputs, names, values, outputs, data):
        self.node("Split", [names[0], names[2]], outputs, axis=self.ints_of(inputs[1])[0])

    def write_Transpose(self, inputs, names, values, outputs, data):
        self.node("Transpose", names[:1], outputs, perm=self.ints_of(inputs[1]))

    def write_Gather(self, inputs, names, values, outputs, data):
        self.node("Gather", names[:2], outputs, axis=self.ints_of(inputs[2])[0])

    def write_GatherElements(self, inputs, names, values, outputs, data):
        self.node("GatherElements", names, outputs, axis=data["axis"])

    def write_ShapeOf(self, inputs, names, values, outputs, data):
        self.node("Shape", names, outputs)

    def write_Slice(self, inputs, names, values, outputs, data):
        x, begin, end, step, axis = names
        self.node("Slice", [x, begin, end, axis, step], outputs)

    def write_Roll(self, inputs, names, values, outputs, data):
        """Two slices and their concatenation for each axis."""
        x, last = names[0], len(self.ints_of(inputs[1])) - 1
        for k, (shift, axis) in enumerate(zip(self.ints_of(inputs[1]), self.ints_of(inputs[2]))):
            limits = [[-shift, 2**63 - 1], [0, -shift]]
            parts = [self.node("Slice", [x, self.numbers([a]), self.numbers([b]), self.numbers([axis]), self.numbers([1])],
                               [f"{outputs[0]}_{k}_{i}"]) for i, (a, b) in enumerate(limits)]
            x = self.node("Concat", parts, outputs if k == last else [f"{outputs[0]}_{k}"], axis=axis)

    def write_Pad(self, inputs, names, values, outputs, data):
        pads = self.numbers([0] * len(inputs[0][2]) + self.ints_of(inputs[2]))
        self.node("Pad", [names[0], pads, names[3]], outputs, mode="constant")

    def write_Interpolate(self, inputs, names, values, outputs, data):
        if data["shape_calculation_mode"] == "scales":
            scales = self.name_of(self.constant([4], [1.0, 1.0, 2.0, 2.0]))
            self.node("Resize", [names[0], "", scales], outputs, mode="nearest", nearest_mode="floor",
                      coordinate_transformation_mode="asymmetric")
            return
        size = self.node("Concat", [self.numbers(list(inputs[0][2][:2])), names[1]], [f"{outputs[0]}_s"], axis=0)
        corners = data["coordinate_transformation_mode"]
        self.node("Resize", [names[0], "", "", size], outputs, mode="linear" if data["mode"].startswith("linear") else "nearest",
                  coordinate_transformation_mode=corners if corners == "align_corners" else "pytorch_half_pixel", nearest_mode="floor",
                  cubic_coeff_a=-0.75)

    def write_TopK(self, inputs, names, values, outputs, data):
        count = self.numbers(self.ints_of(inputs[1]), [1])
        self.node("TopK", [names[0], count], outputs, axis=-1, largest=1, sorted=1)

    def write_GridSample(self, inputs, names, values, outputs, data):
        mode = "bilinear" if self.opset < 20 else "linear"
        self.node("GridSample", names, outputs, mode=mode, padding_mode=data["padding_mode"], align_corners=int(data["align_corners"] == "true"))

    def norm(self, x, eps=1e-5):
        names = [self.name_of(x)]
        names += [self.name_of(value) for value in (self.about_one(x[2][-1:]), self.noise(x[2][-1:], 0.02))]
        number = len(self.layers)
        self.layers.append("LayerNormalization")
        self.node("LayerNormalization", names, [f"v{number}_0"], axis=-1, epsilon=eps)
        return (number, 0, x[2])

    def linear(self, x, out, bias=True, gain=1.0):
        """Of matrices a Gemm, else a product and a sum, whose weights the exporter has turned."""
        inner = x[2][-1]
        if len(x[2]) != 2:
            y = self.matmul(x, self.noise((inner, out), gain * inner ** -0.5), (*x[2][:-1], out))
            return self.add(self.noise((out,), 0.01), y) if bias else y
        names = [self.name_of(value) for value in (x, self.noise((out, inner), gain * inner ** -0.5), *([self.noise((out,), 0.01)] if bias else []))]
        number = len(self.layers)
        self.layers.append("Gemm")
        self.node("Gemm", names, [f"v{number}_0"], transB=1, alpha=1.0, beta=1.0)
        return (number, 0, (x[2][0], out))

    def initializer(self, value):
        element, shape, offset, size = self.constants[value]
        return helper.make_tensor(f"v{value}_0", TYPES[element], shape, bytes(self.weights[offset:offset + size]), raw=True)

    def write(self, path):
        used = {name for node in self.nodes for name in node.input}
        outputs = []
        for k, (name, shape) in enumerate(self.outputs):
            self.node("Identity", [name], [f"output{k}"])
            outputs.append(helper.make_tensor_value_info(f"output{k}", TensorProto.FLOAT, list(shape)))
        graph = helper.make_graph(self.nodes, path.stem, self.inputs, outputs,
                                  [self.initializer(value) for value in self.constants if f"v{value}_0" in used])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], producer_name="clinfer")
        model.ir_version = 8 if self.opset < 20 else 9
        path.write_bytes(model.SerializeToString())
