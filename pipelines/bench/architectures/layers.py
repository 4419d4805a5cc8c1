"""Layers as networks have them, on a writer of IR: convolutions, products of tokens, attention, sampling."""
import array
import math
import random
from statistics import NormalDist

from ir_model import Model

NOISE = [NormalDist().inv_cdf((i + 0.5) / 256) for i in range(256)]  # each as likely as the others


def pair(value):
    return tuple(value) if isinstance(value, (tuple, list)) else (value, value)


class Network(Model):
    """Layers as networks for pictures have them. A value is (layer, port, shape)."""

    def __init__(self, small=False, quantized_to=None):
        """quantized_to: None, "int8" or "fp8", which what convolutions and products read is rounded to."""
        super().__init__()
        self.small, self.quantized_to = small, quantized_to
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
        if self.quantized_to == "fp8":
            return self.op("FakeConvert", [x, self.floats(shape, 448 / high)], data={"destination_type": "f8e4m3"}, opset=13)
        limits = [self.floats(shape, limit) for limit in (low, high)]
        return self.op("FakeQuantize", [x, *limits, *limits], data={"levels": levels, "auto_broadcast": "numpy"})

    def quantized(self, x):
        """Bytes from 0 on where no value is negative, else with a zero point of 128, or floats of 8 bits; once for all that read x."""
        if not self.quantized_to or x in self.bytes:
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
        return self.quantize(weights, -limit, limit, 255, (shape[0], *[1] * (len(shape) - 1))) if self.quantized_to else weights

    def function(self, name, x):
        if name == "relu6":
            y = self.op("Clamp", [x], data={"min": 0, "max": 6})
        elif name == "Gelu":
            y = self.op("Gelu", [x], data={"approximation_mode": "ERF"}, opset=7)
        else:
            opset = {"ReLU": 1, "Sigmoid": 1, "Swish": 4, "HSwish": 4, "HSigmoid": 5}[name]
            y = self.op(name, [x], opset=opset)
        if name in ("relu6", "ReLU"):
            self.not_negative.add(y)
        return y

    def conv(self, x, out, kernel=1, stride=1, act=None, groups=1, gain=1.0, pad=None, bias=True):
        """Kernel, stride and padding are numbers or pairs; padding keeps the size unless given."""
        n, channels, *sides = x[2]
        kernel, stride = pair(kernel), pair(stride)
        pads = tuple(k // 2 for k in kernel) if pad is None else pair(pad)
        inner = channels // groups
        shape = (out, inner, *kernel) if groups == 1 else (groups, out // groups, inner, *kernel)
        weights = self.weights_of(shape, gain * math.sqrt(2 / (inner * math.prod(kernel))))
        x = self.quantized(x)
        size = [(side + 2 * p - k) // s + 1 for side, p, k, s in zip(sides, pads, kernel, stride)]
        padding = ",".join(map(str, pads))
        data = {"strides": ",".join(map(str, stride)), "dilations": "1,1", "pads_begin": padding, "pads_end": padding, "auto_pad": "explicit"}
        y = self.op("Convolution" if groups == 1 else "GroupConvolution", [x, weights], (n, out, *size), data)
        y = self.add(y, self.noise((1, out, 1, 1), 0.01)) if bias else y
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
        """To the shape, whose first number, the batch, follows from the others."""
        first = 0 if x[2][0] == shape[0] else -1
        return self.op("Reshape", [x, self.ints([first, *shape[1:]])], tuple(shape), {"special_zero": "true"})

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

    def linear(self, x, out, bias=True, gain=1.0):
        """A product with weights by output channel, and its summands."""
        rows, inner = x[2][:-1], x[2][-1]
        y = self.matmul(self.quantized(x), self.weights_of((out, inner), gain * inner ** -0.5), (*rows, out), transpose_b=True)
        return self.add(y, self.noise((out,), 0.01)) if bias else y

    def about_one(self, shape):
        """Constant factors between 0.8 and 1.2."""
        return self.constant(shape, [1 + 0.2 * math.sin(3.7 * i + len(self.layers)) for i in range(math.prod(shape))])

    def norm(self, x, eps=1e-5):
        """LayerNorm of the last dimension."""
        data = {"eps": eps, "normalize_variance": "true", "eps_mode": "inside_sqrt"}
        y = self.op("MVN", [x, self.ints([-1])], x[2], data, opset=6)
        return self.add(self.multiply(y, self.about_one(x[2][-1:])), self.noise(x[2][-1:], 0.02))

    def multiply(self, a, b):
        return self.broadcast("Multiply", a, b)

    def number(self, value):
        return self.constant((), [value])

    def scaled(self, x, factor):
        return self.multiply(x, self.number(factor))

    def transpose(self, x, order):
        return self.moved(self.op("Transpose", [x, self.ints(order)], tuple(x[2][d] for d in order)), [x])

    def tokens_of(self, x):
        """[N, C, H, W] as [N, H W, C]."""
        n, channels, *sides = x[2]
        return self.transpose(self.reshape(x, (n, channels, math.prod(sides))), [0, 2, 1])

    def picture_of(self, x, height, width):
        """[N, H W, C] as [N, C, H, W]."""
        return self.reshape(self.transpose(x, [0, 2, 1]), (x[2][0], x[2][2], height, width))

    def slice(self, x, axis, begin, end, step=1):
        axis %= len(x[2])
        shape = list(x[2])
        shape[axis] = -(-(min(end, shape[axis]) - begin) // step)
        return self.op("Slice", [x, *(self.ints([value]) for value in (begin, end, step, axis))], tuple(shape), opset=8)

    def unsqueeze(self, x, axis):
        axis %= len(x[2]) + 1
        return self.op("Unsqueeze", [x, self.ints([axis])], (*x[2][:axis], 1, *x[2][axis:]))

    def squeeze(self, x, axis):
        axis %= len(x[2])
        return self.op("Squeeze", [x, self.ints([axis])], (*x[2][:axis], *x[2][axis + 1:]))

    def gather(self, x, indices, axis=0):
        """Takes constant indices from an axis; a single one drops it."""
        scalar = isinstance(indices, int)
        index = self.constant([] if scalar else [len(indices)], [indices] if scalar else indices, "i64")
        shape = (*x[2][:axis], *([] if scalar else [len(indices)]), *x[2][axis + 1:])
        return self.op("Gather", [x, index, self.constant([], [axis], "i64")], shape, {"batch_dims": 0}, opset=8)

    def unbound(self, x, axis=0):
        """The parts of an axis, which they lose."""
        return [self.squeeze(part, axis) for part in self.split(x, [1] * x[2][axis], axis)]

    def roll(self, x, shifts, axes):
        return self.op("Roll", [x, self.ints(shifts), self.ints(axes)], x[2], opset=7)

    def pad(self, x, ends):
        """Zeros after the values of each dimension."""
        data = {"pad_mode": "constant"}
        shape = tuple(size + end for size, end in zip(x[2], ends))
        return self.op("Pad", [x, self.ints([0] * len(ends)), self.ints(ends), self.number(0.0)], shape, data)

    def mean(self, x, axis, keep=False):
        return self.reduce("ReduceMean", x, axis, keep)

    def reduce(self, kind, x, axis, keep=False):
        axis %= len(x[2])
        shape = (*x[2][:axis], *([1] if keep else []), *x[2][axis + 1:])
        return self.op(kind, [x, self.ints([axis])], shape, {"keep_dims": str(keep).lower()}, opset=4 if kind == "ReduceL2" else 1)

    def resize(self, x, height, width, mode="linear_onnx", corners=False):
        data = {"mode": mode, "shape_calculation_mode": "sizes", "coordinate_transformation_mode": "align_corners" if corners else "half_pixel",
                "nearest_mode": "floor", "antialias": "false", "pads_begin": "0,0,0,0", "pads_end": "0,0,0,0", "cube_coeff": -0.75}
        return self.op("Interpolate", [x, self.ints([height, width]), self.ints([2, 3])], (*x[2][:2], height, width), data, opset=11)

    def deconv(self, x, out, kernel):
        """A transposed convolution whose windows do not overlap."""
        n, channels, height, width = x[2]
        data = {"strides": f"{kernel},{kernel}", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "output_padding": "0,0",
                "auto_pad": "explicit"}
        weights = self.noise((channels, out, kernel, kernel), channels ** -0.5)
        y = self.op("ConvolutionBackpropData", [x, weights], (n, out, height * kernel, width * kernel), data)
        return self.add(y, self.noise((1, out, 1, 1), 0.01))

    def average_pool(self, x, kernel, stride=None):
        kernel, stride = pair(kernel), pair(stride or kernel)
        n, channels, *sides = x[2]
        size = [(side - k) // s + 1 for side, k, s in zip(sides, kernel, stride)]
        data = {"strides": ",".join(map(str, stride)), "pads_begin": "0,0", "pads_end": "0,0", "kernel": ",".join(map(str, kernel)),
                "exclude-pad": "true", "rounding_type": "floor", "auto_pad": "explicit"}
        return self.op("AvgPool", [x], (n, channels, *size), data)

    def batch_of(self, x):
        """The number of images, of which exporters make shapes when it may change."""
        shape = self.layer("ShapeOf", 3, [x], [(len(x[2]),)], {"output_type": "i64"}, "I64")
        return self.layer("Gather", 8, [shape, self.ints([0]), self.constant([], [0], "i64")], [(1,)], {"batch_dims": 0}, "I64")

    def repeated(self, x, images):
        """A constant [1, ...] for each of the images."""
        size = self.layer("Concat", 1, [images, self.ints(x[2][1:])], [(len(x[2]),)], {"axis": 0}, "I64")
        return self.op("Broadcast", [x, size], x[2], {"mode": "bidirectional"}, opset=3)

    def top(self, x, count):
        """(values, indices) of the largest of the last dimension, in order."""
        shape = (*x[2][:-1], count)
        data = {"axis": len(shape) - 1, "mode": "max", "sort": "value", "index_element_type": "i64", "stable": "false"}
        return self.layer("TopK", 11, [x, self.constant([], [count], "i64")], [shape, shape], data)

    def rows_at(self, x, indices):
        """Of [N, rows, C] those at the indices [N, count]."""
        wide = self.op("Tile", [self.unsqueeze(indices, -1), self.ints([1, 1, x[2][2]])], (*indices[2], x[2][2]))
        return self.op("GatherElements", [x, wide], wide[2], {"axis": 1}, opset=6)

    def grid_sample(self, x, grid):
        data = {"align_corners": "false", "mode": "bilinear", "padding_mode": "zeros"}
        return self.op("GridSample", [x, grid], (*x[2][:2], *grid[2][1:3]), data, opset=9)

    def in_heads(self, x, heads):
        n, tokens, width = x[2]
        return self.transpose(self.reshape(x, (n, tokens, heads, width // heads)), [0, 2, 1, 3])

    def from_heads(self, x):
        n, heads, tokens, size = x[2]
        return self.reshape(self.transpose(x, [0, 2, 1, 3]), (n, tokens, heads * size))

    def dot_attention(self, q, k, v, bias=None):
        """softmax(q k^T / sqrt(size) + bias) v, as PyTorch's scaled_dot_product_attention is exported."""
        factor = q[2][-1] ** -0.25
        order = [*range(len(k[2]) - 2), len(k[2]) - 1, len(k[2]) - 2]
        scores = self.matmul(self.scaled(q, factor), self.scaled(self.transpose(k, order), factor), (*q[2][:-1], k[2][-2]))
        scores = self.softmax(self.add(scores, bias) if bias else scores, len(scores[2]) - 1)
        return self.matmul(scores, v, (*q[2][:-1], v[2][-1]))

    def attention(self, x, heads, keys=None, values=None):
        """Products for queries, keys and values; attention by heads; the last product."""
        width = x[2][2]
        keys = x if keys is None else keys
        q, k, v = (self.in_heads(self.linear(y, width), heads) for y in (x, keys, keys if values is None else values))
        return self.linear(self.from_heads(self.dot_attention(q, k, v)), width)

    def mlp(self, x, hidden, act="Gelu"):
        return self.linear(self.function(act, self.linear(x, hidden)), x[2][-1])
