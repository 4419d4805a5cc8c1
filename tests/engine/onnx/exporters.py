#!/usr/bin/env python3
"""Small networks as tf2onnx and paddle2onnx write them: the forms that their converters make of one layer.

    exporters.py --out FOLDER      writes NAME_OPSET.onnx; needs numpy and onnx

own_cases.py compares them with ONNX Runtime; networks.py, given the files, compares their plans with those of OpenVINO's IR.
TensorFlow's pictures have their channels last, so that its layers stand between transposes, and its shapes are computed in 32 bits;
Paddle's layers take sizes from chains of Shape, Cast and Slice.
"""
import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F, I = np.float32, np.int64


class Net:
    """A network that grows node by node; each method returns the name of the value it adds."""

    def __init__(self, name, opset, seed=3):
        self.name, self.opset, self.random = name, opset, np.random.default_rng(seed)
        self.nodes, self.weights, self.inputs, self.outputs, self.values = [], [], [], [], []

    def input(self, name, array, shape=None):
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape or array.shape))
        self.values.append(array)
        return name

    def weight(self, array):
        name = f'const_{len(self.weights)}'
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def uniform(self, *shape, low=-1., high=1.):
        return self.random.uniform(low, high, shape).astype(F)

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [f'{kind}_{len(self.nodes)}:{k}' for k in range(outputs)]
        wanted = [i if isinstance(i, str) else self.weight(i) for i in inputs]
        self.nodes.append(helper.make_node(kind, wanted, names, name=f'{self.name}/{kind}_{len(self.nodes)}', **attributes))
        return names[0] if outputs == 1 else names

    def output(self, *names):
        self.outputs += names

    # Forms that changed with the opset.

    def clip(self, x, low, high):
        return self.op('Clip', x, min=low, max=high) if self.opset < 11 else self.op('Clip', x, np.array(low, F), np.array(high, F))

    def squeeze(self, x, *axes):
        return self.op('Squeeze', x, axes=list(axes)) if self.opset < 13 else self.op('Squeeze', x, np.array(axes, I))

    def unsqueeze(self, x, *axes):
        return self.op('Unsqueeze', x, axes=list(axes)) if self.opset < 13 else self.op('Unsqueeze', x, np.array(axes, I))

    def slice(self, x, axis, begin, end, step=1):
        if self.opset < 10:
            return self.op('Slice', x, axes=[axis], starts=[begin], ends=[end])
        return self.op('Slice', x, np.array([begin], I), np.array([end], I), np.array([axis], I), np.array([step], I))

    def mean(self, x, *axes, keepdims=1):
        if self.opset < 18:
            return self.op('ReduceMean', x, axes=list(axes), keepdims=keepdims)
        return self.op('ReduceMean', x, np.array(axes, I), keepdims=keepdims)

    def cast(self, x, to):
        return self.op('Cast', x, to=to)

    def resize_to(self, x, sizes, mode, coordinates):
        """To computed sizes; before opset 11 by computed scales."""
        how = dict(mode=mode, nearest_mode='floor', coordinate_transformation_mode=coordinates)
        if self.opset >= 11:
            empty = '' if self.opset >= 13 else np.zeros(0, F)
            return self.op('Resize', x, empty, empty, sizes, **how)
        scales = self.op('Div', self.cast(sizes, TensorProto.FLOAT), self.cast(self.op('Shape', x), TensorProto.FLOAT))
        return self.op('Resize' if self.opset > 9 else 'Upsample', x, scales, mode=mode)

    def model(self):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, [helper.make_empty_tensor_value_info(o) for o in self.outputs], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid('', self.opset)], ir_version=8, producer_name='exporters.py')


# ---- tf2onnx ----------------------------------------------------------------------------------------------------------------------

def nchw(net, x):
    return net.op('Transpose', x, perm=[0, 3, 1, 2])


def nhwc(net, x):
    return net.op('Transpose', x, perm=[0, 2, 3, 1])


def tf_conv(net, x, channels, kernel=3, stride=1, group=1, norm=True, activation='relu6'):
    """A convolution with TensorFlow's padding SAME, which pads the end more, between transposes."""
    size, given = channels[0], channels[1]
    pads = {1: [0] * 4, 2: [0, 0, 1, 1]}[stride] if kernel == 3 else [0] * 4
    if kernel == 3 and stride == 1:
        pads = [1] * 4
    w = net.uniform(given, size // group, kernel, kernel)
    y = net.op('Conv', nchw(net, x), w, kernel_shape=[kernel] * 2, strides=[stride] * 2, dilations=[1, 1], group=group, pads=pads)
    if norm:
        y = net.op('BatchNormalization', y, net.uniform(given), net.uniform(given), net.uniform(given), net.uniform(given, low=.5, high=2), epsilon=.001)
    y = nhwc(net, y)
    if not norm:
        y = net.op('Add', y, net.uniform(given))
    if activation == 'relu6':
        return net.clip(y, 0., 6.)
    if activation == 'swish':
        return net.op('Mul', y, net.op('Sigmoid', y))
    if activation == 'hswish':
        gate = net.clip(net.op('Add', y, np.array(3, F)), 0., 6.)
        return net.op('Mul', net.op('Mul', y, gate), np.array(1 / 6, F))
    return y


def tf_sizes(net, x, height, width):
    """[N, C, height, width] of a value with the channels last: computed in 32 bits, as tf.shape is."""
    shape = net.cast(net.op('Shape', x), TensorProto.INT32)
    batch = net.squeeze(net.slice(shape, 0, 0, 1), 0)
    channels = net.squeeze(net.slice(shape, 0, 3, 4), 0)
    parts = [net.unsqueeze(p, 0) for p in (batch, channels)] + [np.array([height, width], np.int32)]
    return net.cast(net.op('Concat', *parts, axis=0), TensorProto.INT64)


def tf_classifier(net):
    """MobileNet: bytes, depthwise layers, a residual, the mean over the picture, logits."""
    x = net.input('serving_default_input:0', net.random.integers(0, 256, (1, 32, 32, 3), dtype=np.uint8), ['unk__1', 32, 32, 3])
    x = net.op('Sub', net.op('Div', net.cast(x, TensorProto.FLOAT), np.array(127.5, F)), np.array(1, F))
    x = tf_conv(net, x, (3, 8), stride=2)
    y = tf_conv(net, tf_conv(net, x, (8, 16), 1), (16, 16), group=16, activation='hswish')
    y = tf_conv(net, y, (16, 8), 1, activation=None)
    x = net.op('Add', y, x)
    gate = net.mean(x, 1, 2)
    gate = net.op('Sigmoid', nhwc(net, net.op('Conv', nchw(net, gate), net.uniform(8, 8, 1, 1), net.uniform(8), kernel_shape=[1, 1])))
    x = tf_conv(net, net.op('Mul', x, gate), (8, 12), norm=False, activation='swish')
    x = net.mean(x, 1, 2, keepdims=0)
    shape = net.cast(net.op('Shape', x), TensorProto.INT32)
    batch = net.unsqueeze(net.squeeze(net.slice(shape, 0, 0, 1), 0), 0)
    x = net.op('Reshape', x, net.cast(net.op('Concat', batch, np.array([12], np.int32), axis=0), TensorProto.INT64))
    net.output(net.op('Softmax', net.op('Add', net.op('MatMul', x, net.uniform(12, 5)), net.uniform(5)), axis=1))


def tf_segmenter(net):
    """DeepLab: a dilated convolution by space to batch, pooled features, resizes to computed sizes, class numbers."""
    x = net.input('input:0', net.uniform(1, 17, 17, 3))
    x = tf_conv(net, x, (3, 8), stride=1)
    y = net.op('Pad', nchw(net, x), pads=[0, 0, 2, 2, 0, 0, 3, 3]) if net.opset < 11 else \
        net.op('Pad', nchw(net, x), np.array([0, 0, 2, 2, 0, 0, 3, 3], I), np.array(0, F))
    y = net.op('Reshape', nhwc(net, y), np.array([1, 11, 2, 11, 2, 8], I))
    y = net.op('Reshape', net.op('Transpose', y, perm=[2, 4, 0, 1, 3, 5]), np.array([4, 11, 11, 8], I))
    y = nhwc(net, net.op('Conv', nchw(net, y), net.uniform(8, 1, 3, 3), kernel_shape=[3, 3], group=8))
    y = net.op('Transpose', net.op('Reshape', y, np.array([2, 2, 1, 9, 9, 8], I)), perm=[2, 3, 0, 4, 1, 5])
    y = net.slice(net.slice(net.op('Reshape', y, np.array([1, 18, 18, 8], I)), 1, 0, 17), 2, 0, 17)
    pooled = tf_conv(net, net.mean(x, 1, 2), (8, 8), 1)
    pooled = nhwc(net, net.resize_to(nchw(net, pooled), tf_sizes(net, pooled, 17, 17), 'linear', 'align_corners' if net.opset > 10 else 'asymmetric'))
    y = tf_conv(net, net.op('Concat', y, pooled, axis=3), (16, 6), 1, norm=False, activation=None)
    y = nhwc(net, net.resize_to(nchw(net, y), tf_sizes(net, y, 34, 34), 'linear', 'half_pixel' if net.opset > 10 else 'asymmetric'))
    net.output(net.cast(net.op('ArgMax', y, axis=3, keepdims=0), TensorProto.INT32), net.op('Softmax', y, axis=3) if net.opset >= 13 else y)


def tf_detector(net):
    """A detector with the NonMaxSuppressionV3 of TensorFlow: what is picked, gathered and counted."""
    x = net.input('image:0', net.uniform(1, 16, 16, 3))
    x = tf_conv(net, tf_conv(net, x, (3, 8), stride=2), (8, 8), stride=2)
    rows = net.op('Reshape', tf_conv(net, x, (8, 12), norm=False, activation=None), np.array([-1, 6], I))
    center, size, scores = net.op('Split', rows, outputs=3, axis=1, split=[2, 2, 2]) if net.opset < 13 else \
        net.op('Split', rows, np.array([2, 2, 2], I), outputs=3, axis=1)
    half = net.op('Mul', net.op('Exp', net.op('Mul', size, np.array(.2, F))), np.array(.5, F))
    boxes = net.op('Concat', net.op('Sub', center, half), net.op('Add', center, half), axis=1)
    scores = net.op('Sigmoid', scores)
    best = net.op('ReduceMax', scores, axes=[1], keepdims=0) if net.opset < 18 else net.op('ReduceMax', scores, np.array([1], I), keepdims=0)
    limit = net.unsqueeze(net.cast(np.array(7, np.int32), TensorProto.INT64), 0)
    picked = net.op('NonMaxSuppression', net.unsqueeze(boxes, 0), net.unsqueeze(best, 0, 1), limit, np.array(.4, F), np.array(.3, F))
    picked = net.cast(net.squeeze(net.slice(picked, 1, 2, 3), 1), TensorProto.INT32)
    count = net.op('Shape', picked)
    net.output(net.op('Gather', boxes, picked, axis=0), net.op('Gather', best, picked, axis=0),
               net.op('ArgMax', net.op('Gather', scores, picked, axis=0), axis=1, keepdims=0), net.cast(net.squeeze(count, 0), TensorProto.INT32))


def tf_upsampler(net):
    """Super-resolution: depth to space, mirrored pads, a transposed convolution with TensorFlow's output shape."""
    x = net.input('lr:0', net.uniform(1, 9, 7, 4))
    pads = [0, 0, 1, 1, 0, 0, 1, 1]
    y = net.op('Pad', nchw(net, x), pads=pads, mode='reflect') if net.opset < 11 else net.op('Pad', nchw(net, x), np.array(pads, I), mode='reflect')
    y = net.op('Conv', y, net.uniform(8, 4, 3, 3), net.uniform(8), kernel_shape=[3, 3])
    y = net.op('PRelu', nhwc(net, y), net.uniform(1, 1, 8))
    y = nhwc(net, net.op('DepthToSpace', nchw(net, y), blocksize=2))
    y = net.op('ConvTranspose', nchw(net, y), net.uniform(2, 3, 3, 3), kernel_shape=[3, 3], strides=[2, 2])
    y = nhwc(net, net.slice(net.slice(y, 2, 0, 36), 3, 0, 28))
    net.output(net.clip(y, 0., 1.))


# ---- paddle2onnx ------------------------------------------------------------------------------------------------------------------

def paddle_norm(net, x, channels):
    return net.op('BatchNormalization', x, net.uniform(channels), net.uniform(channels), net.uniform(channels),
                  net.uniform(channels, low=.5, high=2), epsilon=1e-5, momentum=.9)


def paddle_act(net, x, kind):
    if kind == 'hardswish':
        if net.opset >= 14:
            return net.op('HardSwish', x)
        gate = net.clip(net.op('Add', x, np.array([3], F)), 0., 6.)
        return net.op('Div', net.op('Mul', x, gate), np.array([6], F))
    if kind == 'hardsigmoid':
        return net.op('HardSigmoid', x, alpha=.2, beta=.5)
    return net.op('Relu', x)


def paddle_conv(net, x, channels, kernel=3, stride=1, group=1, act='relu', same=False):
    padding = dict(auto_pad='SAME_UPPER') if same else dict(pads=[kernel // 2] * 4)
    y = net.op('Conv', x, net.uniform(channels[1], channels[0] // group, kernel, kernel), kernel_shape=[kernel] * 2, strides=[stride] * 2,
               dilations=[1, 1], group=group, **padding)
    y = paddle_norm(net, y, channels[1])
    return paddle_act(net, y, act) if act else y


def paddle_softmax(net, x, axis, rank):
    """Before opset 13 along the last dimension only."""
    if net.opset >= 13 or axis == rank - 1:
        return net.op('Softmax', x, axis=axis)
    order = [d for d in range(rank) if d != axis] + [axis]
    return net.op('Transpose', net.op('Softmax', net.op('Transpose', x, perm=order), axis=rank - 1), perm=[order.index(d) for d in range(rank)])


def paddle_shape_part(net, x, begin, end):
    """x.shape[begin:end] in the 32 bits of Paddle's shape."""
    return net.slice(net.cast(net.op('Shape', x), TensorProto.INT32), 0, begin, end)


def paddle_resize_as(net, x, like, mode='nearest', coordinates='asymmetric'):
    size = net.cast(paddle_shape_part(net, like, 2, 4), TensorProto.INT64)
    return net.resize_to(x, net.op('Concat', net.slice(net.op('Shape', x), 0, 0, 2), size, axis=0), mode, coordinates)


def paddle_classifier(net):
    """PP-LCNet and MobileNetV3: hardswish, squeeze and excitation with a bias added apart, dropout, flatten by computed shapes."""
    x = net.input('x', net.uniform(1, 3, 32, 32), [-1, 3, 32, 32])
    x = paddle_conv(net, x, (3, 8), stride=2, act='hardswish')
    x = paddle_conv(net, x, (8, 8), group=8, act='hardswish', same=True)
    pooled = net.op('GlobalAveragePool', x)
    gate = net.op('Add', net.op('Conv', pooled, net.uniform(4, 8, 1, 1), kernel_shape=[1, 1]), net.op('Reshape', net.uniform(4), np.array([1, 4, 1, 1], I)))
    gate = net.op('Conv', net.op('Relu', gate), net.uniform(8, 4, 1, 1), kernel_shape=[1, 1])
    gate = net.op('Add', gate, net.op('Reshape', net.uniform(8), np.array([1, 8, 1, 1], I)))
    x = net.op('Mul', x, paddle_act(net, gate, 'hardsigmoid'))
    x = paddle_conv(net, x, (8, 16), 1, act='hardswish')
    x = net.op('Dropout', net.op('GlobalAveragePool', x), **({'ratio': .2} if net.opset < 12 else {}))
    rest = net.op('ReduceProd', net.cast(paddle_shape_part(net, x, 1, 4), TensorProto.INT64), keepdims=1, **({'axes': [0]} if net.opset < 18 else {}))
    x = net.op('Reshape', x, net.op('Concat', net.cast(paddle_shape_part(net, x, 0, 1), TensorProto.INT64), rest, axis=0))
    x = net.op('Add', net.op('MatMul', x, net.uniform(16, 6)), net.uniform(6))
    net.output(net.op('Softmax', x, axis=1))


def paddle_segmenter(net):
    """PP-LiteSeg: pyramids by average pools, resizes to the size of another map, a softmax over channels between transposes."""
    image = net.input('x', net.uniform(1, 3, 24, 40))
    fine = paddle_conv(net, image, (3, 8), stride=2)
    deep = paddle_conv(net, fine, (8, 8), stride=2)
    parts = [deep]
    for kernel in ([6, 10], [3, 5]):
        pooled = paddle_conv(net, net.op('AveragePool', deep, kernel_shape=kernel, strides=kernel), (8, 4), 1)
        parts.append(paddle_resize_as(net, pooled, deep, 'linear', 'pytorch_half_pixel' if net.opset > 10 else 'asymmetric'))
    x = paddle_conv(net, net.op('Concat', *parts, axis=1), (16, 8))
    x = paddle_resize_as(net, x, fine, 'linear', 'align_corners' if net.opset > 10 else 'asymmetric')
    x = net.op('Add', net.op('Mul', x, np.array(.5, F)), fine)
    x = net.op('Add', net.op('Conv', x, net.uniform(5, 8, 1, 1), kernel_shape=[1, 1]), net.op('Reshape', net.uniform(5), np.array([1, 5, 1, 1], I)))
    x = paddle_resize_as(net, x, image, 'linear', 'half_pixel' if net.opset > 10 else 'asymmetric')
    net.output(paddle_softmax(net, x, 1, 4), net.op('ArgMax', x, axis=1, keepdims=0))


def paddle_detector(net):
    """PP-YOLOE: features of two sizes, distances by a softmax, and multiclass_nms3 as one NonMaxSuppression with what follows it."""
    image, scale = net.input('image', net.uniform(1, 3, 32, 32)), net.input('scale_factor', np.array([[.5, .25]], F))
    fine = paddle_conv(net, paddle_conv(net, image, (3, 8), stride=2), (8, 8), stride=2)
    deep = paddle_conv(net, fine, (8, 8), stride=2)
    fine = net.op('Concat', paddle_resize_as(net, deep, fine), fine, axis=1)
    boxes, scores = [], []
    for x, channels, cells, stride in ((deep, 8, 4, 8), (fine, 16, 8, 4)):
        gate = net.op('Sigmoid', net.op('Conv', net.op('GlobalAveragePool', x), net.uniform(channels, channels, 1, 1), kernel_shape=[1, 1]))
        x = net.op('Mul', x, gate)
        distances = net.op('Conv', x, net.uniform(16, channels, 1, 1), kernel_shape=[1, 1])
        distances = net.op('Transpose', net.op('Reshape', distances, np.array([-1, 4, 4, cells * cells], I)), perm=[0, 2, 3, 1])
        distances = net.op('Conv', paddle_softmax(net, distances, 1, 4), np.arange(4, dtype=F).reshape(1, 4, 1, 1))
        distances = net.squeeze(distances, 1)
        grid = (np.stack(np.meshgrid(np.arange(cells), np.arange(cells)), -1).reshape(-1, 2).astype(F) + F(.5))[None]
        low, high = net.op('Split', distances, outputs=2, axis=2, split=[2, 2]) if net.opset < 13 else \
            net.op('Split', distances, np.array([2, 2], I), outputs=2, axis=2)
        corners = net.op('Concat', net.op('Add', net.op('Mul', low, np.array(-1, F)), grid), net.op('Add', high, grid), axis=2)
        boxes.append(net.op('Mul', corners, np.array([stride], F)))
        logits = net.op('Conv', x, net.uniform(3, channels, 1, 1), kernel_shape=[1, 1])
        scores.append(net.op('Sigmoid', net.op('Reshape', logits, np.array([-1, 3, cells * cells], I))))
    boxes, scores = net.op('Concat', *boxes, axis=1), net.op('Concat', *scores, axis=2)
    turned = net.op('Concat', net.slice(scale, 1, 1, 2), net.slice(scale, 1, 0, 1), axis=1)
    boxes = net.op('Div', boxes, net.op('Reshape', net.op('Concat', turned, turned, axis=1), np.array([-1, 1, 4], I)))
    picked = net.op('NonMaxSuppression', boxes, scores, np.array([5], I), np.array([.6], F), np.array([.55], F))
    kind = net.slice(picked, 1, 1, 2)
    place = net.slice(picked, 1, 2, 3)
    flat = net.op('Reshape', scores, np.array([-1], I))
    score = net.op('Gather', flat, net.squeeze(net.op('Add', net.op('Mul', kind, np.array([80], I)), place), 1), axis=0)
    box = net.op('Gather', net.squeeze(boxes, 0), net.squeeze(place, 1), axis=0)
    rows = net.op('Concat', net.cast(kind, TensorProto.FLOAT), net.unsqueeze(score, 1), box, axis=1)
    count = net.op('Shape', score)
    keep = net.op('Min', count, np.array([8], I)) if net.opset >= 12 else count
    _, order = net.op('TopK', score, keep, outputs=2, axis=0)
    net.output(net.op('Gather', rows, order, axis=0), net.cast(keep, TensorProto.INT32))


def paddle_recogniser(net):
    """SVTR and CRNN of PP-OCR: attention on shapes that are computed, normalisations in parts, GELU by Erf, then an LSTM both ways."""
    x = net.input('x', net.uniform(1, 3, 8, 32))
    x = paddle_conv(net, paddle_conv(net, x, (3, 8), stride=2), (8, 16), act='hardswish')
    x = net.op('Transpose', net.op('Reshape', net.op('AveragePool', x, kernel_shape=[4, 1], strides=[4, 1]), np.array([0, 16, -1], I)), perm=[0, 2, 1])

    def layer_norm(v):
        off = net.op('Sub', v, net.mean(v, -1))
        root = net.op('Sqrt', net.op('Add', net.mean(net.op('Pow', off, np.array(2, F)), -1), np.array(1e-6, F)))
        return net.op('Add', net.op('Mul', net.op('Div', off, root), net.uniform(16)), net.uniform(16))

    batch, steps = (paddle_shape_part(net, x, k, k + 1) for k in (0, 1))
    qkv = net.op('Add', net.op('MatMul', layer_norm(x), net.uniform(16, 48)), net.uniform(48))
    shape = net.cast(net.op('Concat', batch, steps, np.array([3, 2, 8], np.int32), axis=0), TensorProto.INT64)
    qkv = net.op('Transpose', net.op('Reshape', qkv, shape), perm=[2, 0, 3, 1, 4])
    q, k, v = (net.squeeze(net.slice(qkv, 0, i, i + 1), 0) for i in range(3))
    scores = net.op('MatMul', net.op('Mul', q, np.array(8 ** -.5, F)), net.op('Transpose', k, perm=[0, 1, 3, 2]))
    y = net.op('Transpose', net.op('MatMul', net.op('Softmax', scores, axis=3), v), perm=[0, 2, 1, 3])
    y = net.op('Reshape', y, net.cast(net.op('Concat', batch, steps, np.array([16], np.int32), axis=0), TensorProto.INT64))
    x = net.op('Add', x, net.op('MatMul', y, net.uniform(16, 16)))
    y = net.op('MatMul', layer_norm(x), net.uniform(16, 32))
    erf = net.op('Add', net.op('Erf', net.op('Div', y, np.array(2 ** .5, F))), np.array(1, F))
    y = net.op('Mul', net.op('Mul', y, erf), np.array(.5, F))
    x = net.op('Add', x, net.op('MatMul', y, net.uniform(32, 16)))
    x, _, _ = net.op('LSTM', net.op('Transpose', x, perm=[1, 0, 2]), net.uniform(2, 24, 16), net.uniform(2, 24, 6), net.uniform(2, 48), outputs=3,
                     direction='bidirectional', hidden_size=6)
    x = net.op('Reshape', net.op('Transpose', x, perm=[2, 0, 1, 3]), np.array([0, 0, -1], I))
    net.output(net.op('Softmax', net.op('Add', net.op('MatMul', x, net.uniform(12, 7)), net.uniform(7)), axis=2))


NETWORKS = {
    tf_classifier: (9, 11, 13, 15, 18), tf_segmenter: (10, 11, 13, 18), tf_detector: (10, 11, 13, 18), tf_upsampler: (9, 11, 15),
    paddle_classifier: (9, 11, 13, 14, 16), paddle_segmenter: (10, 11, 13, 16), paddle_detector: (10, 11, 13, 16), paddle_recogniser: (11, 13, 16),
}


def networks():
    """(name, opset, model, inputs) of all."""
    for make, opsets in NETWORKS.items():
        for opset in opsets:
            net = Net(make.__name__, opset)
            make(net)
            yield net.name, opset, net.model(), net.values


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--out', required=True, type=Path, metavar='FOLDER')
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for name, opset, model, _ in networks():
        onnx.save(model, out / f'{name}_{opset}.onnx')


if __name__ == '__main__':
    main()
