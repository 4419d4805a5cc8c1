#!/usr/bin/env python3
"""Writes a small ONNX model that says which colour fills most of a picture: colours.py [OUT.onnx]

Needs python3-onnx. Nothing is trained: the nearer a pixel is to a colour, the larger
its share, and the mean of the shares over the picture is the result. The input is RGB of 0 to 1 (clinfer's color-format=rgb
scale=255), 64x64, of any batch.
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

COLOURS = {'red': (1, 0, 0), 'green': (0, 1, 0), 'blue': (0, 0, 1), 'yellow': (1, 1, 0), 'magenta': (1, 0, 1),
           'cyan': (0, 1, 1), 'black': (0, 0, 0), 'white': (1, 1, 1)}


def model():
    # -20 |pixel - colour|^2, without the part that all colours share
    colours = np.array(list(COLOURS.values()), np.float32)
    weights = [numpy_helper.from_array((40 * colours)[:, :, None, None], 'weights'),
               numpy_helper.from_array(-20 * (colours**2).sum(1), 'bias'),
               numpy_helper.from_array(np.array([0, -1], np.int64), 'flat')]
    nodes = [helper.make_node('Conv', ['picture', 'weights', 'bias'], ['scores'], name='conv', kernel_shape=[1, 1]),
             helper.make_node('Softmax', ['scores'], ['shares'], name='softmax', axis=1),
             helper.make_node('GlobalAveragePool', ['shares'], ['means'], name='mean'),
             helper.make_node('Reshape', ['means', 'flat'], ['colour'], name='flatten')]
    graph = helper.make_graph(
        nodes, 'colours', [helper.make_tensor_value_info('picture', TensorProto.FLOAT, ['batch', 3, 64, 64])],
        [helper.make_tensor_value_info('colour', TensorProto.FLOAT, ['batch', len(COLOURS)])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=7)


if __name__ == '__main__':
    path = sys.argv[1] if len(sys.argv) > 1 else 'colours.onnx'
    written = model()
    onnx.checker.check_model(written)
    onnx.save(written, path)
    print(f'{path}: labels={",".join(COLOURS)}')
