#!/usr/bin/env python3
"""Random small networks, quantised in the ways that ONNX Runtime's tools know, run by the program onnx_cases and by ONNX Runtime.

    quantised_mixes.py --cases build/tests/onnx_cases [--device CPU] [--count 200] [--first 0] [--keep FOLDER]

A number gives the same mix each time: the network, its opset, how it is quantised (static as QDQ or QOperator, by tensor or channel, of u8
or s8; as ONNX Runtime saves such a graph; dynamic; weights of few bits; float16), and whether its nodes are out of order. Outputs may differ by
a few steps of a grid, where a value lies halfway. Needs the Python packages onnx, onnxruntime and numpy.
"""
import argparse
import contextlib
import io
import logging
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

F = np.float32
SHAPE = [1, 3, 16, 20]
SHARE = .04  # of the largest value of an output: a few of 255 steps


class Network:
    """A chain of random layers with branches; `x` is the value so far, of the shape `shape`."""

    def __init__(self, rng, opset):
        self.rng, self.opset, self.nodes, self.weights = rng, opset, [], {}
        self.x, self.shape = 'images', list(SHAPE)

    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def weight(self, *shape, scale=None):
        name = f'w{len(self.weights)}'
        fan = np.prod(shape[1:]) if len(shape) > 1 else 4
        self.weights[name] = (self.rng.standard_normal(shape) * (scale or 1.4 / np.sqrt(fan))).astype(F)
        return name

    def constant(self, value):
        name = f'w{len(self.weights)}'
        self.weights[name] = np.asarray(value)
        return name

    def add(self, op, inputs, shape=None, **attributes):
        out = f'v{len(self.nodes)}'
        self.nodes.append(helper.make_node(op, inputs, [out], name=f'n{len(self.nodes)}', **attributes))
        self.x, self.shape = out, shape or self.shape
        return out

    def conv(self, stride=1, depthwise=False):
        n, c, h, w = self.shape
        size = self.pick(1, 3)
        out = c if depthwise else int(self.pick(4, 6, 8, 13))
        inputs = [self.x, self.weight(out, 1 if depthwise else c, size, size)] + ([self.weight(out, scale=.3)] if self.rng.random() < .7 else [])
        self.add('Conv', inputs, [n, out, -(-h // stride), -(-w // stride)], pads=[size // 2] * 4, strides=[stride] * 2, kernel_shape=[size] * 2, group=c if depthwise else 1)

    def activation(self):
        kind = self.pick('Relu', 'Relu', 'LeakyRelu', 'Sigmoid', 'SiLU', 'Clip', 'HardSwish', 'None')
        before = self.x
        if kind == 'SiLU':
            self.add('Mul', [before, self.add('Sigmoid', [before])])
        elif kind == 'Clip':
            self.add('Clip', [before, self.constant(F(0)), self.constant(F(6))])
        elif kind == 'HardSwish':
            gate = self.add('HardSigmoid', [before], alpha=1 / 6, beta=.5)
            self.add('Mul', [before, gate])
        elif kind != 'None':
            self.add(kind, [before], **({'alpha': .1} if kind == 'LeakyRelu' else {}))

    def block(self):
        n, c, h, w = self.shape
        kind = self.pick('conv', 'depthwise', 'residual', 'join', 'pool', 'average', 'up', 'transposed', 'pad')
        if kind in ('conv', 'depthwise'):
            self.conv(int(self.pick(1, 2)) if min(h, w) > 4 else 1, kind == 'depthwise')
            self.activation()
        elif kind == 'residual':
            before = self.x
            self.conv(depthwise=True)
            self.activation()
            self.add('Add', [self.x, before])
        elif kind == 'join':
            before = self.x
            self.conv()
            self.activation()
            self.add('Concat', [self.x, before], [n, self.shape[1] + c, h, w], axis=1)
        elif kind in ('pool', 'average') and min(h, w) > 4:
            self.add('MaxPool' if kind == 'pool' else 'AveragePool', [self.x], [n, c, h // 2, w // 2], kernel_shape=[2, 2], strides=[2, 2])
        elif kind == 'up' and max(h, w) <= 20:
            self.add('Resize', [self.x, self.constant(F([])), self.constant(F([1, 1, 2, 2]))], [n, c, h * 2, w * 2], mode='nearest', coordinate_transformation_mode='asymmetric', nearest_mode='floor')
        elif kind == 'transposed' and max(h, w) <= 20:
            self.add('ConvTranspose', [self.x, self.weight(c, 5, 2, 2), self.weight(5, scale=.3)], [n, 5, h * 2, w * 2], strides=[2, 2], kernel_shape=[2, 2])
        elif kind == 'pad':
            self.add('Pad', [self.x, self.constant(np.array([0, 0, 1, 0, 0, 0, 0, 1]))], [n, c, h + 1, w + 1])

    def head(self):
        n, c, h, w = self.shape
        kind = self.pick('classes', 'map', 'rows', 'split')
        if kind == 'classes':
            self.add('GlobalAveragePool', [self.x], [n, c, 1, 1])
            self.add('Flatten', [self.x], [n, c])
            self.add('Gemm', [self.x, self.weight(7, c), self.weight(7, scale=.3)], [n, 7], transB=1)
            if self.rng.random() < .6:
                self.add('Softmax', [self.x], axis=1)
        elif kind == 'rows':
            self.add('Reshape', [self.x, self.constant(np.array([1, c, h * w]))], [n, c, h * w])
            self.add('Transpose', [self.x], [n, h * w, c], perm=[0, 2, 1])
            self.add('MatMul', [self.x, self.weight(c, 9)], [n, h * w, 9])
            if self.rng.random() < .5:
                self.add('Add', [self.x, self.weight(9, scale=.3)])
            if self.rng.random() < .5:
                self.add('Softmax', [self.x], axis=-1 if self.opset >= 13 else 2)
        elif kind == 'split':
            self.conv()
            c = self.shape[1]
            name = f'v{len(self.nodes)}'
            sizes = [c // 2, c - c // 2]
            given = {'split': sizes} if self.opset < 13 else {}
            self.nodes.append(helper.make_node('Split', [self.x] + ([] if given else [self.constant(np.array(sizes))]), [name, name + 'b'], name=name + 'n', axis=1, **given))
            self.x = name
            return [name, name + 'b']
        return [self.x]


def network(rng, opset):
    net = Network(rng, opset)
    net.conv(int(net.pick(1, 2)))
    net.activation()
    for _ in range(rng.integers(1, 6)):
        net.block()
    outputs = net.head()
    graph = helper.make_graph(net.nodes, 'mix', [helper.make_tensor_value_info('images', TensorProto.FLOAT, SHAPE)],
                              [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs], [numpy_helper.from_array(v, k) for k, v in net.weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', opset)], ir_version=10 if opset > 20 else 8)
    return onnx.shape_inference.infer_shapes(model)


class Readings(CalibrationDataReader):
    def __init__(self, rng):
        self.left = iter([{'images': rng.random(SHAPE).astype(F)} for _ in range(4)])

    def get_next(self):
        return next(self.left, None)


def saved(source, target, level):
    options = quiet(level)
    options.optimized_model_filepath = str(target)
    onnxruntime.InferenceSession(str(source), options, providers=['CPUExecutionProvider'])


def quiet(level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    return options


def shuffled(model, rng):
    nodes = [model.graph.node[i] for i in rng.permutation(len(model.graph.node))]
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def few_bits(model, bits, block, with_zero_points):
    """Products with constant weights become MatMulNBits, as ONNX Runtime's quantiser of language models writes it."""
    values = {i.name: i for i in model.graph.initializer}
    for node in [n for n in model.graph.node if n.op_type == 'MatMul' and n.input[1] in values]:
        weights = numpy_helper.to_array(values[node.input[1]]).T
        rows, columns = weights.shape
        blocks = -(-columns // block)
        parts = np.zeros((rows, blocks * block), F)
        parts[:, :columns] = weights
        parts = parts.reshape(rows, blocks, block)
        middle, last = 1 << (bits - 1), (1 << bits) - 1
        scale = (np.abs(parts).max(2) / (middle - 1) + 1e-6).astype(F)
        zero = np.full((rows, blocks), middle - 1 if with_zero_points else middle, np.uint8)
        packed = np.clip(np.rint(parts / scale[..., None]) + zero[..., None], 0, last).astype(np.uint8)
        pairs = lambda a: a if bits == 8 else np.pad(a, [(0, 0)] * (a.ndim - 1) + [(0, a.shape[-1] % 2)]).reshape(*a.shape[:-1], -1, 2) @ np.array([1, 16], np.uint8)
        inputs = {'b': pairs(packed).astype(np.uint8), 's': scale.ravel(), **({'z': pairs(zero).astype(np.uint8).ravel()} if with_zero_points else {})}
        model.graph.initializer.extend(numpy_helper.from_array(v, node.name + k) for k, v in inputs.items())
        made = helper.make_node('MatMulNBits', [node.input[0], *(node.name + k for k in inputs)], node.output, node.name, domain='com.microsoft', K=columns, N=rows, bits=bits, block_size=block)
        node.CopyFrom(made)
    model.opset_import.append(helper.make_opsetid('com.microsoft', 1))
    return f'{bits} by {block}{", with zero points" if with_zero_points else ""}'


def make(number, folder):
    """Writes model.onnx and 0.npy; gives a text that says what it is, and the right outputs."""
    rng = np.random.default_rng(number)
    pick = lambda *choices: choices[rng.integers(len(choices))]
    opset = int(pick(11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21))
    way = pick('qdq', 'qdq', 'qdq', 'qoperator', 'qoperator', 'saved', 'saved', 'dynamic', 'few bits', 'float16')
    made, source, target = network(rng, opset), folder / 'float.onnx', folder / 'model.onnx'
    onnx.save(made, source)
    what = f'{number}: opset {opset}, {way}'
    if way in ('qdq', 'qoperator', 'saved'):
        by_channel, activations = opset >= 13 and bool(rng.integers(2)), pick(QuantType.QUInt8, QuantType.QInt8)
        weights = pick(QuantType.QInt8, QuantType.QInt8, QuantType.QUInt8)
        if weights == QuantType.QUInt8:
            activations = weights  # ONNX Runtime knows no other pair
        what += f', by {"channel" if by_channel else "tensor"}, {activations.name} {weights.name}'
        extra = {'ActivationSymmetric': bool(rng.integers(2)), 'QuantizeBias': True}
        quantize_static(source, target, Readings(rng), quant_format=QuantFormat.QOperator if way == 'qoperator' else QuantFormat.QDQ,
                        per_channel=by_channel, activation_type=activations, weight_type=weights, extra_options=extra)
        if way == 'saved':
            level = pick(onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)
            what += f', {level.name}'
            target.rename(folder / 'quantised.onnx')
            saved(folder / 'quantised.onnx', target, level)
    elif way == 'dynamic':
        quantize_dynamic(source, target, weight_type=pick(QuantType.QInt8, QuantType.QUInt8), per_channel=bool(rng.integers(2)))
    elif way == 'few bits':
        what += ' ' + few_bits(made, int(pick(4, 8)), int(pick(16, 32, 64)), bool(rng.integers(2)))
        onnx.save(made, target)
    else:
        from onnxruntime.transformers.float16 import convert_float_to_float16
        onnx.save(convert_float_to_float16(made, keep_io_types=bool(rng.integers(2))), target)
    images = rng.random(SHAPE).astype(F)
    session = onnxruntime.InferenceSession(str(target), quiet(onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL), providers=['CPUExecutionProvider'])
    given = images.astype(np.float16) if session.get_inputs()[0].type == 'tensor(float16)' else images
    wanted = session.run(None, {'images': given})
    np.save(folder / '0.npy', given.astype(F))
    if rng.integers(2):
        what += ', out of order'
        model = onnx.load(target)
        shuffled(model, rng)
        onnx.save(model, target)
    return what, wanted


def wrong(folder, wanted):
    """'' where all outputs agree; refusals that name an operation of ONNX Runtime's own layouts are right."""
    if (folder / 'error.txt').exists():
        text = (folder / 'error.txt').read_text()
        return '' if 'com.microsoft.nchwc' in text else text
    for k, array in enumerate(wanted):
        got = np.load(folder / f'out_{k}.npy')
        if got.shape != array.shape:
            return f'output {k} has the shape {got.shape}, not {array.shape}'
        off = np.abs(got.astype(np.float64) - array.astype(np.float64)).max()
        if not off <= SHARE * max(np.abs(array.astype(np.float64)).max(), 1e-3):
            return f'output {k} is off by {off:.3g}; its largest value is {np.abs(array).max():.3g}'
    return ''


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--cases', required=True, help='the program onnx_cases')
    parser.add_argument('--device', default='')
    parser.add_argument('--count', type=int, default=200)
    parser.add_argument('--first', type=int, default=0)
    parser.add_argument('--keep', default='', help='where the models are left')
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    root = Path(arguments.keep or tempfile.mkdtemp())
    mixes, unmade = {}, []
    for number in range(arguments.first, arguments.first + arguments.count):
        folder = root / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            try:
                mixes[folder] = make(number, folder)
            except Exception as error:  # pylint: disable=broad-except
                unmade.append(f'{number}: ONNX Runtime: {str(error).splitlines()[0]}')
    subprocess.run([arguments.cases] + (['--device', arguments.device] if arguments.device else []),
                   input='\n'.join(map(str, mixes)), text=True, check=True)
    print('\n'.join(unmade[:10]), end='\n' if unmade else '')
    failed = 0
    for folder, (what, wanted) in mixes.items():
        if why := wrong(folder, wanted):
            failed += 1
            print(f'{what}: {why.replace(str(root), "")}')
    print(f'{len(mixes) - failed} of {len(mixes)} agree; ONNX Runtime could not make {len(unmade)}')
    return 1 if failed or len(unmade) > len(mixes) / 10 else 0


if __name__ == '__main__':
    sys.exit(main())
