#!/usr/bin/env python3
"""Small models of many opsets and domains, run by the program onnx_cases and by ONNX Runtime, whose outputs are compared.

    own_cases.py --cases build/tests/onnx_cases [--device CPU] [--only PART]

They cover what ONNX's own cases (backend.py) lack: forms of operations that older opsets have, com.microsoft's operations,
sparse initialisers, functions, bodies that read values from outside, chains of QuantizeLinear and DequantizeLinear, and the networks of
exporters.py. Needs the Python packages onnx, onnxruntime and numpy.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import exporters

RANDOM = np.random.default_rng(7)
MICROSOFT = 'com.microsoft'
I, F = np.int64, np.float32


def r(*shape):
    return RANDOM.uniform(-2, 2, shape).astype(F)


def u8(*shape):
    return RANDOM.integers(0, 255, shape, dtype=np.uint8)


def i8(*shape):
    return RANDOM.integers(-127, 127, shape, dtype=np.int8)


def i(*values):
    return np.array(values, I)


def f(*values):
    return np.array(values, F)


def scalar(value, kind=F):
    return np.array(value, kind)


def node(op, inputs, outputs='y', domain='', **attributes):
    return helper.make_node(op, inputs.split(' ') if inputs else [], outputs.split(' '), domain=domain, **attributes)


def value(name, array):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def body(name, inputs, outputs, nodes, weights=()):
    """A graph whose inputs and outputs are (name, type, shape)."""
    info = [[helper.make_tensor_value_info(n, t, s) for n, t, s in side] for side in (inputs, outputs)]
    return helper.make_graph(nodes, name, *info, list(weights))


CASES = {}


def case(name, opset, nodes, inputs, weights=None, outputs='y', functions=(), sparse=(), imports=()):
    nodes = nodes if isinstance(nodes, list) else [nodes]
    graph = helper.make_graph(nodes, name, [value(n, a) for n, a in inputs.items()],
                              [helper.make_empty_tensor_value_info(o) for o in outputs.split()],
                              [numpy_helper.from_array(a, n) for n, a in (weights or {}).items()])
    graph.sparse_initializer.extend(sparse)
    domains = [helper.make_opsetid('', opset), helper.make_opsetid(MICROSOFT, 1), *(helper.make_opsetid(d, 1) for d in imports)]
    CASES[f'{name}_{opset}'] = (helper.make_model(graph, opset_imports=domains, functions=functions, ir_version=8 if functions else 7),
                                list(inputs.values()))


def older_forms():
    """The same operation before and after its attributes became inputs, and what changed its meaning."""
    x = r(2, 3, 4, 5)
    for opset in (7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22):
        if opset >= 10:
            for pads in (0, 1):
                for counted in (0, 1):
                    case(f'AveragePool_{pads}{counted}', opset, node('AveragePool', 'x', kernel_shape=[3, 3], strides=[2, 3], pads=[pads] * 4, ceil_mode=1,
                                                                     count_include_pad=counted), {'x': r(1, 2, 6, 8)})
        axes = {'axes': [1, -1]} if opset >= 11 else {'axes': [1, 3]}
        for op in ('ReduceSum', 'ReduceMean', 'ReduceMax', 'ReduceL2', 'ReduceLogSumExp'):
            if opset >= (13 if op == 'ReduceSum' else 18):
                case(op, opset, node(op, 'x axes', keepdims=0), {'x': x}, {'axes': i(1, -1)})
            else:
                case(op, opset, node(op, 'x', keepdims=0, **axes), {'x': x})
        if opset < 13:
            case('Squeeze', opset, [node('Unsqueeze', 'x', 'u', axes=[0, 2]), node('Squeeze', 'u', axes=[2])], {'x': x})
            case('Softmax', opset, node('Softmax', 'x', axis=2), {'x': x})
            case('Split', opset, node('Split', 'x', 'y z', axis=3, split=[2, 3]), {'x': x}, outputs='y z')
        else:
            case('Squeeze', opset, [node('Unsqueeze', 'x a', 'u'), node('Squeeze', 'u b')], {'x': x}, {'a': i(0, 2), 'b': i(2)})
            case('Softmax', opset, node('Softmax', 'x', axis=2), {'x': x})
            case('Split', opset, node('Split', 'x s', 'y z', axis=3), {'x': x}, {'s': i(2, 3)}, outputs='y z')
        if opset < 10:
            case('Slice', opset, node('Slice', 'x', axes=[1, 3], starts=[1, 0], ends=[3, -1]), {'x': x})
            case('Upsample', opset, node('Upsample', 'x s', mode='linear') if opset > 8 else
                 node('Upsample', 'x', mode='nearest', scales=[1., 1., 2., 2.]), {'x': x}, {'s': f(1, 1, 2, 2)} if opset > 8 else None)
            case('TopK', opset, node('TopK', 'x', 'y z', k=2, axis=3), {'x': x}, outputs='y z')
        else:
            case('Slice', opset, node('Slice', 'x s e a t'), {'x': x}, {'s': i(2, -1), 'e': i(0, -10), 'a': i(1, 3), 't': i(-1, -2)})
            case('TopK', opset, node('TopK', 'x k', 'y z', axis=3), {'x': x}, {'k': i(2)}, outputs='y z')
        if opset < 11:
            case('Clip', opset, node('Clip', 'x', min=-.5, max=1.), {'x': x})
            case('Pad', opset, node('Pad', 'x', pads=[0, 0, 1, 2, 0, 0, 0, 1], value=.5), {'x': x})
            if opset == 10:
                case('Resize', opset, node('Resize', 'x s', mode='linear'), {'x': x}, {'s': f(1, 1, 2, 1.5)})
        else:
            case('Clip', opset, node('Clip', 'x a b'), {'x': x}, {'a': scalar(-.5), 'b': scalar(1.)})
            case('Pad', opset, node('Pad', 'x p v', mode='constant'), {'x': x}, {'p': i(0, 0, 1, 2, 0, 0, 0, 1), 'v': scalar(.5)})
            for how in ('half_pixel', 'align_corners', 'asymmetric', 'pytorch_half_pixel'):
                case('Resize_' + how, opset, node('Resize', 'x none s', mode='linear', coordinate_transformation_mode=how), {'x': x},
                     {'s': f(1, 1, 2, 1.6), 'none': f()})
            case('Resize_sizes', opset, node('Resize', 'x none none z', mode='nearest', coordinate_transformation_mode='asymmetric',
                                             nearest_mode='floor'), {'x': x}, {'z': i(2, 3, 8, 9), 'none': f()})
        case('Conv', opset, node('Conv', 'x w b', pads=[1, 0, 1, 2], strides=[1, 2], group=1), {'x': x}, {'w': r(4, 3, 3, 3), 'b': r(4)})
        case('ConvTranspose', opset, node('ConvTranspose', 'x w', strides=[2, 2], output_padding=[1, 0]), {'x': x}, {'w': r(3, 2, 3, 3)})
        case('Gemm', opset, node('Gemm', 'a b c', alpha=.5, beta=2., transB=1), {'a': r(3, 4)}, {'b': r(5, 4), 'c': r(5)})
        case('BatchNormalization', opset, node('BatchNormalization', 'x s b m v'), {'x': x},
             {'s': r(3), 'b': r(3), 'm': r(3), 'v': np.abs(r(3)) + F(.1)})
        case('MaxPool', opset, node('MaxPool', 'x', kernel_shape=[2, 3], strides=[2, 1], pads=[0, 1, 0, 1],
                                    **({'ceil_mode': 1} if opset >= 10 else {})), {'x': x})
        case('AveragePool', opset, node('AveragePool', 'x', kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1), {'x': x})
        case('PRelu', opset, node('PRelu', 'x s'), {'x': x}, {'s': r(3, 1, 1)})
        case('LSTM', opset, node('LSTM', 's w r b', 'y h c', hidden_size=3), {'s': r(4, 2, 5)},
             {'w': r(1, 12, 5), 'r': r(1, 12, 3), 'b': r(1, 24)}, outputs='y h c')
        case('GRU', opset, node('GRU', 's w r b', 'y h', hidden_size=3, linear_before_reset=1), {'s': r(4, 2, 5)},
             {'w': r(1, 9, 5), 'r': r(1, 9, 3), 'b': r(1, 18)}, outputs='y h')
        if opset >= 10:
            chain = [node('QuantizeLinear', 'x s z', 'q'), node('DequantizeLinear', 'q s z', 'd'),
                     node('DequantizeLinear', 'w t o', 'e', **({'axis': 0} if opset >= 13 else {})),
                     node('Conv', 'd e', 'c'), node('Relu', 'c', 'u'), node('QuantizeLinear', 'u p n', 'v'), node('DequantizeLinear', 'v p n')]
            per = (lambda a: a) if opset >= 13 else (lambda a: a[:1].reshape(()))
            case('QDQ', opset, chain, {'x': x}, {
                's': scalar(.02), 'z': scalar(120, np.uint8), 'w': i8(4, 3, 1, 1), 't': per(np.abs(r(4)) * F(.01) + F(.01)),
                'o': per(np.zeros(4, np.int8)), 'p': scalar(.05), 'n': scalar(0, np.uint8)})
    case('Identity', 14, node('Dropout', 'x'), {'x': x})
    case('Celu', 12, node('Celu', 'x', alpha=.7), {'x': x})
    for how in ('bilinear', 'nearest', 'bicubic'):
        case('GridSample_' + how, 16, node('GridSample', 'x g', mode=how, padding_mode='border'), {'x': r(1, 2, 5, 6), 'g': r(1, 3, 4, 2)})
    case('LayerNormalization', 17, node('LayerNormalization', 'x s b', axis=-1), {'x': x}, {'s': r(5), 'b': r(5)})
    case('GroupNormalization', 21, node('GroupNormalization', 'x s b', num_groups=2), {'x': r(2, 4, 3, 3)}, {'s': r(4), 'b': r(4)})
    case('Gelu', 20, node('Gelu', 'x', approximate='tanh'), {'x': x})
    case('Einsum', 13, node('Einsum', 'a b', equation='bhid,bhjd->bhij'), {'a': r(1, 2, 3, 4), 'b': r(1, 2, 5, 4)})


def microsoft():
    def m(op, inputs, outputs='y', **attributes):
        return node(op, inputs, outputs, MICROSOFT, **attributes)
    x, t = r(1, 4, 6, 6), r(2, 5, 8)
    s, z = scalar(.03), scalar(128, np.uint8)
    grid = {'xs': s, 'xz': z, 'ys': scalar(.05), 'yz': scalar(100, np.uint8)}
    case('BiasGelu', 17, m('BiasGelu', 't b'), {'t': t}, {'b': r(8)})
    case('Gelu', 17, m('Gelu', 't'), {'t': t})
    case('FastGelu', 17, m('FastGelu', 't b'), {'t': t}, {'b': r(8)})
    case('QuickGelu', 17, m('QuickGelu', 't', alpha=1.702), {'t': t})
    for act, extra in (('Relu', {}), ('LeakyRelu', {'activation_params': [.1]}), ('Sigmoid', {}), ('Tanh', {}),
                       ('HardSigmoid', {'activation_params': [.2, .5]}), ('Clip', {'activation_params': [-.5, .5]})):
        case('FusedConv_' + act, 17, m('FusedConv', 'x w b', activation=act, pads=[1, 1, 1, 1], **extra), {'x': x}, {'w': r(3, 4, 3, 3), 'b': r(3)})
    case('FusedMatMul', 17, m('FusedMatMul', 'a b', transB=1, alpha=.25), {'a': t}, {'b': r(2, 7, 8)})
    case('SkipLayerNormalization', 17, m('SkipLayerNormalization', 't k g b c', epsilon=1e-5), {'t': t, 'k': r(2, 5, 8)}, {'g': r(8), 'b': r(8), 'c': r(8)})
    case('Attention', 17, m('Attention', 't w b', num_heads=2), {'t': t}, {'w': r(8, 24), 'b': r(24)})
    case('MultiHeadAttention', 17, m('MultiHeadAttention', 'q k v b', num_heads=2), {'q': t, 'k': r(2, 6, 8), 'v': r(2, 6, 8)}, {'b': r(24)})
    case('Inverse', 17, m('Inverse', 'a'), {'a': r(2, 3, 3) + 3 * np.eye(3, dtype=F)})
    case('Trilu', 17, m('Trilu', 'a k', upper=0), {'a': r(4, 5)}, {'k': scalar(1, I)})
    case('Pad', 17, m('Pad', 'x p v', mode='constant'), {'x': x}, {'p': i(0, 0, 1, 1, 0, 0, 1, 1), 'v': scalar(.5)})
    case('GridSample', 17, m('GridSample', 'x g', mode='bilinear'), {'x': x, 'g': r(1, 3, 3, 2)})
    case('QLinearAdd', 17, m('QLinearAdd', 'a xs xz b xs xz ys yz'), {'a': u8(2, 8), 'b': u8(2, 8)}, grid)
    case('QLinearMul', 17, m('QLinearMul', 'a xs xz b xs xz ys yz'), {'a': u8(2, 8), 'b': u8(2, 8)}, grid)
    case('QLinearSigmoid', 17, m('QLinearSigmoid', 'a xs xz ys yz'), {'a': u8(2, 8)}, grid)
    case('QLinearLeakyRelu', 17, m('QLinearLeakyRelu', 'a xs xz ys yz', alpha=.1), {'a': u8(2, 8)}, grid)
    case('QLinearGlobalAveragePool', 17, m('QLinearGlobalAveragePool', 'a xs xz ys yz', channels_last=0), {'a': u8(1, 4, 6, 6)}, grid)
    case('QLinearAveragePool', 17, m('QLinearAveragePool', 'a xs xz ys yz', kernel_shape=[2, 2]), {'a': u8(1, 4, 6, 6)}, grid)
    case('QLinearConcat', 17, m('QLinearConcat', 'ys yz a xs xz b xs xz', axis=1), {'a': u8(2, 8), 'b': u8(2, 3)}, grid)
    case('QLinearSoftmax', 17, m('QLinearSoftmax', 'a xs xz ys yz', axis=-1, opset=13), {'a': u8(2, 8)},
         {**grid, 'ys': scalar(1 / 256), 'yz': scalar(0, np.uint8)})
    case('QLinearConv', 17, node('QLinearConv', 'a xs xz w ws wz ys yz b', pads=[1, 1, 1, 1]), {'a': u8(1, 4, 6, 6)},
         {**grid, 'w': i8(3, 4, 3, 3), 'ws': np.abs(r(3)) * F(.01) + F(.001), 'wz': np.zeros(3, np.int8), 'b': np.array([5, -9, 100], np.int32)})
    case('QLinearMatMul', 17, node('QLinearMatMul', 'a xs xz w ws wz ys yz'), {'a': u8(5, 8)},
         {**grid, 'w': i8(8, 6), 'ws': scalar(.01), 'wz': scalar(0, np.int8)})
    case('QGemm', 17, m('QGemm', 'a xs xz w ws wz c ys yz', transB=1), {'a': u8(5, 8)},
         {**grid, 'w': i8(6, 8), 'ws': scalar(.01), 'wz': scalar(0, np.int8), 'c': np.arange(6, dtype=np.int32)})
    case('DynamicQuantizeMatMul', 17, m('DynamicQuantizeMatMul', 'a w ws wz b'), {'a': r(5, 8)},
         {'w': u8(8, 6), 'ws': scalar(.01), 'wz': scalar(120, np.uint8), 'b': r(6)})
    case('DynamicQuantizeLinear', 17, [node('DynamicQuantizeLinear', 'a', 'q s z'), node('MatMulInteger', 'q w z wz', 'p'),
                                       node('Cast', 'p', 'c', to=1), node('Mul', 'c s', 'y')], {'a': r(5, 8)},
         {'w': u8(8, 6), 'wz': scalar(120, np.uint8)})
    case('MatMulIntegerToFloat', 17, m('MatMulIntegerToFloat', 'a w xs ws xz wz'), {'a': u8(5, 8)},
         {**grid, 'w': u8(8, 6), 'ws': scalar(.01), 'wz': scalar(120, np.uint8)})
    case('QuantizeLinear', 17, [m('QuantizeLinear', 'a xs xz', 'q'), m('DequantizeLinear', 'q xs xz')], {'a': r(5, 8)}, grid)


def graphs():
    x = r(3, 4)
    dims = np.zeros((4, 4), F)
    dims[[0, 2, 3], [1, 2, 0]] = 1.5, -2, .25
    kept = np.nonzero(dims)
    values = numpy_helper.from_array(dims[kept], 'w')
    for kind, places in (('pairs', np.stack(kept, 1)), ('linear', kept[0] * 4 + kept[1])):
        sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(places.astype(I), 'w_indices'), [4, 4])
        if kind == 'linear':  # ONNX Runtime takes such initialisers only
            case('Sparse_' + kind, 13, node('MatMul', 'x w'), {'x': x}, sparse=[sparse])
    inner = helper.make_function('own', 'Scaled', ['a', 'b'], ['c'],
                                 [node('Mul', 'a b', 't'), helper.make_node('LeakyRelu', ['t'], ['c'])],
                                 [helper.make_opsetid('', 17)], ['alpha'])
    inner.node[1].attribute.append(onnx.AttributeProto(name='alpha', type=onnx.AttributeProto.FLOAT, ref_attr_name='alpha'))
    outer = helper.make_function('own', 'Twice', ['a'], ['c'], [node('Scaled', 'a a', 't', 'own', alpha=.3), node('Scaled', 't a', 'c', 'own', alpha=.1)],
                                 [helper.make_opsetid('', 17), helper.make_opsetid('own', 1)])
    case('Functions', 17, node('Twice', 'x', 'y', 'own'), {'x': x}, functions=[inner, outer], imports=['own'])
    shape = [3, 4]
    branch = [body(n, [], [(f'{n}_out', TensorProto.FLOAT, shape)], [node(op, 'x', f'{n}_out')]) for n, op in (('then', 'Relu'), ('else', 'Neg'))]
    flag = [node('ReduceSum', 'x', 'sum', keepdims=0), node('Greater', 'sum zero', 'flag')]
    for opset in (11, 13, 16):
        case('If', opset, [*flag, node('If', 'flag', 'y', then_branch=branch[0], else_branch=branch[1])], {'x': x}, {'zero': scalar(0.)})
        case('If_known', opset, node('If', 'flag', 'y', then_branch=branch[0], else_branch=branch[1]), {'x': x}, {'flag': scalar(False, np.bool_)})
        loop = body('loop', [('it', TensorProto.INT64, []), ('go', TensorProto.BOOL, []), ('s', TensorProto.FLOAT, shape)],
                    [('go_on', TensorProto.BOOL, []), ('s_out', TensorProto.FLOAT, shape), ('part', TensorProto.FLOAT, shape)],
                    [node('Identity', 'go', 'go_on'), node('Mul', 's x', 'p'), node('Cast', 'it', 'n', to=1), node('Add', 'p n', 's_out'),
                     node('Identity', 's_out', 'part')])
        case('Loop', opset, node('Loop', 'trips go x', 'y z', body=loop), {'x': x}, {'trips': scalar(4, I), 'go': scalar(True, np.bool_)}, outputs='y z')
        scan = body('scan', [('s', TensorProto.FLOAT, [4]), ('v', TensorProto.FLOAT, [4])],
                    [('s_out', TensorProto.FLOAT, [4]), ('part', TensorProto.FLOAT, [4])],
                    [node('Mul', 's v', 'p'), node('Add', 'p v', 's_out'), node('Tanh', 's_out', 'part')])
        case('Scan', opset, node('Scan', 'start x', 'y z', body=scan, num_scan_inputs=1), {'x': x}, {'start': r(4)}, outputs='y z')
        case('Scan_back', opset, node('Scan', 'start x', 'y z', body=scan, num_scan_inputs=1, scan_input_directions=[1], scan_output_axes=[1]),
             {'x': x}, {'start': r(4)}, outputs='y z')


def found_rows():
    """What depends on how many rows are found: with none, few and many of them, so that each branch is taken once."""
    S = TensorProto.INT64
    count = [node('NonZero', 'x', 'places'), node('Shape', 'places', 'sizes'), node('Gather', 'sizes one', 'found', axis=0)]
    constants = {'zero': scalar(0, I), 'one': scalar(1, I), 'two': scalar(2, I), 'three': scalar(3, I), 'l0': i(0), 'l1': i(1),
                 'l3': i(3), 'lm1': i(-1), 'big': i(1 << 40), 'true': scalar(True, np.bool_), 'half': scalar(.5)}

    def bodies(shape, then='Relu', other='Neg', of='f'):
        return {f'{k}_branch': body(k, [], [(f'{k}_out', TensorProto.FLOAT, shape)], [node(op, of, f'{k}_out')])
                for k, op in (('then', then), ('else', other))}

    values = [('none', np.zeros(6, F)), ('two', f(0, -1, 0, 0, 2, 0)), ('five', f(1, -1, 2, 0, -3, 4)), ('all', f(1, -1, 2, 7, -3, 4))]
    f_of_x = node('Add', 'x half', 'f')
    for name, x in values:
        def found(kind, nodes, opset=17, outputs='y', more=(), name=name, x=x):
            nodes = nodes if isinstance(nodes, list) else [nodes]
            case(f'Found_{kind}_{name}', opset, [*count, f_of_x, *nodes], {'x': x}, {**constants, **dict(more)}, outputs=outputs)

        as_list = node('Unsqueeze', 'found l0', 'n')
        found('if', [node('Greater', 'found three', 'c'), node('If', 'c', **bodies([6]))])
        found('if_any', [node('Equal', 'found zero', 'c'), node('If', 'c', **bodies([6]))])
        found('if_cast', [node('Cast', 'found', 'c', to=9), node('If', 'c', **bodies([6]))])
        found('if_not', [node('Less', 'found three', 'd'), node('Not', 'd', 'c'), node('If', 'c', **bodies([6]))])
        found('if_size', [node('Size', 'places', 's'), node('Mod', 's two', 'm'), node('Cast', 's', 'c', to=9), node('If', 'c', **bodies([6]))])
        found('if_inside', [node('Greater', 'found zero', 'c'), node('If', 'c', then_branch=body(
            'then', [], [('then_out', TensorProto.FLOAT, [6])],
            [node('Shape', 'places', 's'), node('Gather', 's one', 'm', axis=0), node('Greater', 'm three', 'd'),
             node('If', 'd', 'then_out', **bodies([6]))]), else_branch=bodies([6])['else_branch'])])
        found('range', [node('Range', 'zero found one', 'r'), node('Cast', 'r', 'y', to=1)])
        found('where', [node('Greater', 'found three', 'c'), node('Where', 'c x f', 'y')])
        found('constant_of_shape', [as_list, node('ConstantOfShape', 'n', 'y', value=numpy_helper.from_array(f(3)))])
        found('expand', [as_list, node('Expand', 'half n', 'y')])
        found('tile', [as_list, node('Tile', 'x n', 'y')])
        found('reshape', [as_list, node('Transpose', 'places', 't'), node('Concat', 'n l1', 's', axis=0), node('Reshape', 't s', 'y')])
        found('slice_end', [as_list, node('Slice', 'f l0 n l0', 'y')])
        found('slice_start', [as_list, node('Slice', 'f n big l0', 'y')])
        found('top_k', [as_list, node('Min', 'n l3', 'k'), node('TopK', 'f k', 'y z')], outputs='y z')
        found('pad', [node('Sub', 'eight found', 'm'), node('Unsqueeze', 'm l0', 'e'), node('Concat', 'l0 e', 'p', axis=0), node('Squeeze', 'places l0', 'q'),
                      node('Pad', 'q p', 'w'), node('Cast', 'w', 'y', to=1)], more={'eight': scalar(8, I)}.items())
        found('mean', [node('Gather', 'f places', 'g', axis=0), node('ReduceSum', 'g', 's', keepdims=0), node('Cast', 'found', 'd', to=1),
                       node('Add', 'd one_f', 'e'), node('Div', 's e', 'y')], more={'one_f': scalar(1.)}.items())
        found('loop_trips', node('Loop', 'found true x', 'y', body=body(
            'loop', [('it', S, []), ('go', TensorProto.BOOL, []), ('s', TensorProto.FLOAT, [6])],
            [('go_on', TensorProto.BOOL, []), ('s_out', TensorProto.FLOAT, [6])],
            [node('Identity', 'go', 'go_on'), node('Add', 's half', 's_out')])))
        found('loop_while', node('Loop', ' true zero_f', 'y', body=body(
            'loop', [('it', S, []), ('go', TensorProto.BOOL, []), ('s', TensorProto.FLOAT, [])],
            [('go_on', TensorProto.BOOL, []), ('s_out', TensorProto.FLOAT, [])],
            [node('Add', 's half', 's_out'), node('Less', 'it found', 'go_on')])), more={'zero_f': scalar(0.)}.items())
        found('loop_parts', [node('Loop', 'found true x', 'z parts', body=body(
            'loop', [('it', S, []), ('go', TensorProto.BOOL, []), ('s', TensorProto.FLOAT, [6])],
            [('go_on', TensorProto.BOOL, []), ('s_out', TensorProto.FLOAT, [6]), ('part', TensorProto.FLOAT, [6])],
            [node('Identity', 'go', 'go_on'), node('Add', 's half', 's_out'), node('Neg', 's_out', 'part')])), node('Abs', 'parts', 'y')])
        found('loop_ends_early', [node('Loop', 'ten true x', 'z parts', body=body(
            'loop', [('it', S, []), ('go', TensorProto.BOOL, []), ('s', TensorProto.FLOAT, [6])],
            [('go_on', TensorProto.BOOL, []), ('s_out', TensorProto.FLOAT, [6]), ('part', TensorProto.FLOAT, [6])],
            [node('Less', 'it found', 'go_on'), node('Add', 's half', 's_out'), node('Neg', 's_out', 'part')])), node('Abs', 'parts', 'y')],
              more={'ten': scalar(10, I)}.items())
        if name != 'none':
            found('scan', [node('Gather', 'f places', 'g', axis=0), node('Transpose', 'g', 't', perm=[1, 0]), node('Scan', 's t', 'y z', num_scan_inputs=1, body=body(
                'scan', [('a', TensorProto.FLOAT, [1]), ('v', TensorProto.FLOAT, [1])], [('b', TensorProto.FLOAT, [1]), ('part', TensorProto.FLOAT, [1])],
                [node('Add', 'a v', 'b'), node('Identity', 'b', 'part')]))], more={'s': f(0)}.items(), outputs='y z')
            found('last', [node('Gather', 'places l_1', 'g', axis=1), node('Cast', 'g', 'y', to=1)], more={'l_1': scalar(-1, I)}.items())
            found('last_float', [node('Cast', 'places', 'p', to=1), node('Gather', 'p l_1', 'y', axis=1)], more={'l_1': scalar(-1, I)}.items())
            found('arg_max', [node('Gather', 'f places', 'g', axis=0), node('ArgMax', 'g', 'y', axis=1, select_last_index=1)])
            found('elements', [node('Cast', 'places', 'p', to=1), node('GatherElements', 'p l11', 'y', axis=1)], more={'l11': np.array([[-1, 0]], I)}.items())
        found('flatten', [node('Unsqueeze', 'places l0', 'p'), node('Transpose', 'p', 'q', perm=[2, 0, 1]), node('Flatten', 'q', 'r', axis=1), node('Cast', 'r', 'y', to=1)])
        found('one_hot', [node('Squeeze', 'places l0', 'q'), node('OneHot', 'q six v', 'y')], more={'six': scalar(6, I), 'v': f(0, 1)}.items())
        found('split', [as_list, node('Sub', 'six n', 'm'), node('Concat', 'n m', 's', axis=0), node('Split', 'f s', 'y z', axis=0)],
              outputs='y z', more={'six': i(6)}.items())
        found('cum_sum', [node('Gather', 'f places', 'g', axis=0), node('CumSum', 'g one', 'y')])
        # A state that grows, in a loop that reads its size.
        found('growing', node('Loop', 'three true x', 'y', body=body(
            'loop', [('it', S, []), ('go', TensorProto.BOOL, []), ('s', TensorProto.FLOAT, ['open'])],
            [('go_on', TensorProto.BOOL, []), ('s_out', TensorProto.FLOAT, ['open'])],
            [node('Identity', 'go', 'go_on'), node('Shape', 's', 'd'), node('Squeeze', 'd', 'e'), node('Greater', 'e seven', 'c'),
             node('If', 'c', 't', **bodies(['open'], 'Neg', 'Abs', of='s')), node('Concat', 't half1', 's_out', axis=0)])),
              more={'half1': f(.5), 'seven': scalar(7, I)}.items())
    boxes = f(0, 0, 1, 1, 0, 0, .9, 1, 2, 2, 3, 3, 4, 4, 5, 5, 4, 4, 5, 5.1).reshape(1, 5, 4)
    for name, scores in (('none', f(.1, .1, .1, .1, .1)), ('two', f(.9, .8, .7, .1, .1)), ('three', f(.9, .8, .7, .6, .5))):
        nms = [node('Unsqueeze', 'x l01', 's'), node('NonMaxSuppression', 'boxes s most iou low', 'picked'), node('Shape', 'picked', 'd'),
               node('Gather', 'd zero', 'n', axis=0)]
        more = {**constants, 'boxes': boxes, 'most': i(10), 'iou': f(.5), 'low': f(.3), 'l01': i(0, 1), 'l2': i(2)}
        then = body('then', [], [('then_out', TensorProto.FLOAT, [5])], [node('Neg', 'x', 'then_out')])
        other = body('else', [], [('else_out', TensorProto.FLOAT, [5])], [node('Abs', 'x', 'else_out')])
        for kind, test in (('any', [node('Greater', 'n zero', 'c')]), ('many', [node('Greater', 'n two', 'c')]),
                           ('empty', [node('Equal', 'n zero', 'c')]), ('columns', [node('Gather', 'd one', 'm', axis=0), node('Equal', 'm three', 'c')])):
            case(f'Nms_if_{kind}_{name}', 17, [*nms, *test, node('If', 'c', then_branch=then, else_branch=other)], {'x': scores}, more)
        case(f'Nms_gather_{name}', 17, [*nms, node('Gather', 'picked l2', 'p', axis=1), node('Squeeze', 'p l1', 'q'), node('Squeeze', 'boxes l0', 'b'),
                                        node('Gather', 'b q', 'y', axis=0)], {'x': scores}, more)
        case(f'Nms_flag_{name}', 17, [*nms, node('Greater', 'n two', 'c'), node('Cast', 'c', 'y', to=1), node('Cast', 'n', 'z', to=1)], {'x': scores}, more, outputs='y z')


def compare(folder, model, inputs):
    """'' where both agree, else what is wrong."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=['CPUExecutionProvider'])
        wanted = session.run(None, {n.name: a for n, a in zip(session.get_inputs(), inputs)})
    except Exception as error:  # pylint: disable=broad-except
        return f'ONNX Runtime: {str(error).splitlines()[0]}'
    if (folder / 'error.txt').exists():
        return (folder / 'error.txt').read_text()
    for k, array in enumerate(wanted):
        got = np.load(folder / f'out_{k}.npy')
        if got.shape != array.shape:
            return f'output {k} has the shape {got.shape}, not {array.shape}'
        off = np.abs(got.astype(np.float64) - array.astype(np.float64)).max(initial=0)
        # Integers may round the other way by one step.
        if off > (1 if array.dtype.kind in 'iu' else 2e-5 * max(np.abs(array).max(initial=0), 1)):
            return f'output {k} is off by {off:.3g}'
    return ''


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--cases', required=True, help='the program onnx_cases')
    parser.add_argument('--device', default='')
    parser.add_argument('--only', default='')
    arguments = parser.parse_args()
    older_forms()
    microsoft()
    graphs()
    found_rows()
    CASES.update({f'{name}_{opset}': (model, inputs) for name, opset, model, inputs in exporters.networks()})
    chosen = {name: made for name, made in CASES.items() if arguments.only in name}
    root = Path(tempfile.mkdtemp())
    for name, (model, inputs) in chosen.items():
        (root / name).mkdir()
        onnx.save(model, root / name / 'model.onnx')
        for k, array in enumerate(inputs):
            np.save(root / name / f'{k}.npy', array)
    subprocess.run([arguments.cases] + (['--device', arguments.device] if arguments.device else []),
                   input='\n'.join(str(root / name) for name in chosen), text=True, check=True)
    wrong = {name: why for name, (model, inputs) in chosen.items() if (why := compare(root / name, model, inputs))}
    for name, why in wrong.items():
        print(f'{name}: {why.replace(str(root), "")}')
    print(f'{len(chosen) - len(wrong)} of {len(chosen)} agree')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
