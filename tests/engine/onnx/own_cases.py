#!/usr/bin/env python3
"""Small models of many opsets and domains, run by the program onnx_cases and by ONNX Runtime, whose outputs are compared.

    own_cases.py --cases build/tests/onnx_cases [--device CPU] [--only PART]

They cover what ONNX's own cases (backend.py) lack: forms of operations that older opsets have, com.microsoft's operations,
sparse initialisers, functions, bodies that read values from outside, chains of QuantizeLinear and DequantizeLinear. Needs the Python
packages onnx, onnxruntime and numpy.
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
