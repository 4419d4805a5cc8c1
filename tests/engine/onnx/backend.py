#!/usr/bin/env python3
"""ONNX's own backend tests: the cases that the package `onnx` makes or brings along, run by the program onnx_cases.

    backend.py --cases build/tests/onnx_cases [--device CPU] [--jobs N] [--folder DIR] [--only PART] [--sample N] [--verbose]

These are the cases of single nodes, those of small models (`simple`, `pytorch-operator`, `pytorch-converted`) and the light models. Needs the Python packages onnx and numpy. Without --device each case is computed by the operations' plain C++
versions; with it by kernels. A case whose model takes what shapes follow from (axes, sizes, counts) as inputs is
refused as it is; it is then run with those inputs as constants, as models from exporters have them, and counted apart.
"""
import argparse
import collections
import concurrent.futures
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

# Left out: strings, sequences, optional values, training, random numbers, small floats and integers.
LEFT_OUT = {
    'strings': lambda m, ops, types: onnx.TensorProto.STRING in types or bool(ops & {
        'StringNormalizer', 'StringConcat', 'StringSplit', 'RegexFullMatch', 'TfIdfVectorizer'}),
    'sequences': lambda m, ops, types: 'sequence' in types or any('Sequence' in o and o != 'ReverseSequence' for o in ops),
    'optional values': lambda m, ops, types: 'optional' in types or any('Optional' in o for o in ops),
    'training': lambda m, ops, types: any('training' in o.domain for o in m.opset_import),
    'random numbers': lambda m, ops, types: bool(ops & {'Bernoulli', 'RandomNormal', 'RandomUniform', 'Multinomial',
                                                        'RandomNormalLike', 'RandomUniformLike'}),
    'other float8, float4, int4, int2, bfloat16': lambda m, ops, types: bool(types & {
        getattr(onnx.TensorProto, n) for n in dir(onnx.TensorProto)
        if n.startswith(('FLOAT8', 'FLOAT4', 'INT4', 'UINT4', 'INT2', 'UINT2', 'BFLOAT16')) and n not in ('FLOAT8E4M3FN', 'FLOAT8E5M2')}),
    "ONNX's other domains": lambda m, ops, types: any(o.domain not in ('', 'ai.onnx') for o in m.opset_import),
    'pictures in files': lambda m, ops, types: 'ImageDecoder' in ops,
}


LEAST = 0.97  # share of the cases that pass, but for operations that are newer; none may be wrong


def facts(model):
    ops, types = set(), set()

    def note(value):
        kind = value.type.WhichOneof('value')
        types.add({'tensor_type': value.type.tensor_type.elem_type, 'sequence_type': 'sequence',
                   'optional_type': 'optional'}.get(kind, kind))

    def walk(graph):
        for value in list(graph.input) + list(graph.output) + list(graph.value_info):
            note(value)
        for tensor in graph.initializer:
            types.add(tensor.data_type)
        for node in graph.node:
            ops.add(node.op_type)
            for a in node.attribute:
                if a.type == onnx.AttributeProto.GRAPH:
                    walk(a.g)
                if a.type == onnx.AttributeProto.TENSOR:
                    types.add(a.t.data_type)
                if a.name in ('to', 'dtype', 'output_dtype'):
                    types.add(a.i)
    walk(model.graph)
    return ops, types


def fed(graph):
    """The inputs that a caller sets; before IR version 4 the initialisers are listed beside them."""
    weights = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in weights]


def beyond_f32(values):
    """Doubles that f32, which computes them, cannot hold."""
    finite = np.asarray(values)[np.isfinite(values)] if np.asarray(values).dtype == np.float64 else np.zeros(0)
    return bool((np.abs(finite) > np.finfo(np.float32).max).any())


def ramp(value):
    """The values that ONNX's runner feeds to light models."""
    shape = [d.dim_value if d.HasField('dim_value') else 1 for d in value.type.tensor_type.shape.dim]
    count = int(np.prod(shape))
    return (np.arange(count).reshape(shape) / count).astype(np.float32)


def plain(value):
    """A message as an array, and one of float8 as the floats that the program takes and gives."""
    array = numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
    return array.astype(np.float32) if getattr(array, 'dtype', None) is not None and 'float8' in array.dtype.name else array


def messages(pattern):
    """The tensors in files whose names differ by a number from 0."""
    found = []
    while (path := Path(pattern.format(len(found)))).exists():
        found.append(onnx.TensorProto.FromString(path.read_bytes()))
    return found


def package_cases():
    """(group, case) of all cases in the package."""
    from onnx.backend.test.case.node import collect_testcases
    from onnx.backend.test.loader import DATA_DIR, load_model_tests
    for case in collect_testcases(None):
        yield 'expanded' if '_expanded' in case.name else 'node', case
    for kind in ('simple', 'pytorch-operator', 'pytorch-converted', 'real'):
        for case in sorted(load_model_tests(kind=kind), key=lambda c: c.name) if (Path(DATA_DIR) / kind).exists() else []:
            light = Path(DATA_DIR) / 'light' / Path(case.url or '').name
            if case.model_dir:
                case.model = onnx.load(Path(case.model_dir) / 'model.onnx')
                case.data_sets = [[messages(f'{case.model_dir}/test_data_set_0/{side}put_{{}}.pb') for side in ('in', 'out')]]
                yield 'models', case
            elif light.is_file():
                case.model = onnx.load(light)
                case.data_sets = [[[ramp(v) for v in fed(case.model.graph)], messages(f'{light.with_suffix("")}_output_{{}}.pb')]]
                yield 'light', case


def with_constants(model, inputs, how):
    """The model with those inputs as initialisers that say sizes, axes or counts (1), with all but the first (2), or with all."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    left = []
    for i, (value, array) in enumerate(zip(fed(model.graph), inputs)):
        small = array.dtype.kind in 'iub' and array.ndim <= 1 or array.ndim == 0 or array.size == 0
        if how == 3 or i > 0 and (small or how == 2):
            changed.graph.initializer.append(numpy_helper.from_array(array, value.name))
            changed.graph.input.remove(next(v for v in changed.graph.input if v.name == value.name))
        else:
            left.append(array)
    return changed, left


def closed(model, inputs):
    """Open dimensions are those of the values."""
    for value, array in zip(fed(model.graph), inputs):
        shape = value.type.tensor_type.shape
        del shape.dim[:]
        for d in array.shape:
            shape.dim.add().dim_value = d
    return model


def write_case(folder, model, inputs):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    onnx.save(closed(model, inputs), folder / 'model.onnx')
    for i, array in enumerate(inputs):
        np.save(folder / f'{i}.npy', np.ascontiguousarray(array) if array.ndim else array)


def run(program, device, folders, jobs):
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda k: run_in_turn(program, device, folders[k::jobs]), range(jobs)))


def run_in_turn(program, device, folders):
    command = [program] + (['--device', device] if device else [])
    left = list(folders)
    while left:
        subprocess.run(command, input='\n'.join(map(str, left)), text=True, check=False)
        done = [i for i, f in enumerate(left) if (f / 'error.txt').exists() or (f / 'out_0.npy').exists()]
        at = max(done) + 1 if done else 0
        if at < len(left):
            (left[at] / 'error.txt').write_text('the program crashed')
            at += 1
        left = left[at:]


def judge(folder, outputs, rtol, atol):
    """'' where all outputs are right, else what is wrong."""
    error = folder / 'error.txt'
    if error.exists():
        return error.read_text().replace(str(folder / 'model.onnx') + ': ', '')
    for i, wanted in enumerate(outputs):
        if not (folder / f'out_{i}.npy').exists():
            return f'output {i} is missing'
        got = np.load(folder / f'out_{i}.npy')
        if got.shape != wanted.shape:
            return f'WRONG: output {i} has the shape {got.shape}, not {wanted.shape}'
        if got.dtype.kind != wanted.dtype.kind and not (wanted.dtype.kind == 'f' and got.dtype.kind == 'f'):
            return f'WRONG: output {i} is of {got.dtype}, not {wanted.dtype}'
        half = wanted.dtype == np.float16
        finite = np.abs(wanted.astype(np.float64))[np.isfinite(wanted.astype(np.float64))]
        # The resolution of f32 beside the largest value of the output is no error.
        least = 1e-6 * finite.max(initial=0) if wanted.dtype.kind == 'f' else 0
        with np.errstate(all='ignore'):
            if not np.allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=max(rtol, 1e-2 if half else 0),
                               atol=max(atol, least, 1e-3 if half else 0), equal_nan=True):
                worst = np.nanmax(np.abs(got.astype(np.float64) - wanted.astype(np.float64)))
                return f'WRONG: output {i} is off by {worst:.3g}'
    return ''


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--cases', required=True, help='the program onnx_cases')
    parser.add_argument('--device', default='', help='run on kernels of this device; the plain C++ versions unless given')
    parser.add_argument('--jobs', type=int, default=1, help='programs that run at the same time')
    parser.add_argument('--folder', help='where cases are written; a temporary folder unless given')
    parser.add_argument('--only', default='', help='cases with this in GROUP/NAME; groups: node, expanded, models, light')
    parser.add_argument('--sample', type=int, default=1, help='every Nth case')
    parser.add_argument('--newest', type=int, default=22, help='opset after which operations count apart')
    parser.add_argument('--verbose', action='store_true', help='name the cases that do not pass, and why')
    arguments = parser.parse_args()
    warnings.simplefilter('ignore')
    root = Path(arguments.folder or tempfile.mkdtemp())
    newer = {s.name for s in onnx.defs.get_all_schemas() if s.since_version > arguments.newest and
             all(v > arguments.newest for v in {x.since_version for x in onnx.defs.get_all_schemas_with_history()
                                                if x.name == s.name and x.domain == s.domain})}
    left_out = collections.defaultdict(list)
    cases = []
    for group, case in package_cases():
        if arguments.only not in f'{group}/{case.name}':
            continue
        ops, types = facts(case.model)
        why = next((name for name, test in LEFT_OUT.items() if test(case.model, ops, types)), None)
        if case.name.startswith('test_training_'):
            why = 'training'
        # Values of types that numpy lacks are messages.
        case.data_sets[:] = [tuple([plain(v) for v in side] for side in d) for d in case.data_sets]
        arrays = all(isinstance(v, np.ndarray) or np.isscalar(v) for d in case.data_sets for side in d for v in side)
        if why is None and not arrays:
            why = 'optional values'
        if why is None and any(beyond_f32(v) for d in case.data_sets for side in d for v in side):
            why = 'doubles beyond f32'
        if why:
            left_out[why].append(case.name)
        else:
            cases.append((case, 'newer' if group == 'node' and ops & newer else group))
    cases = cases[::arguments.sample]
    results, failed = {}, False
    attempts = ('as it is', 'sizes and axes constant', 'all but the first input constant', 'all inputs constant')
    for attempt, how in enumerate(attempts):
        open_cases = [c for c, _ in cases if results.get(c.name, ('', 'x'))[1]]
        folders = []
        for case in open_cases:
            # The newest data set last; one suffices.
            inputs, outputs = case.data_sets[0]
            model, inputs = case.model, [np.asarray(v) for v in inputs]
            if attempt:
                model, inputs = with_constants(model, inputs, attempt)
            else:
                copy = onnx.ModelProto()
                copy.CopyFrom(model)
                model = copy
            folder = root / case.name
            write_case(folder, model, inputs)
            folders.append(folder)
        run(arguments.cases, arguments.device, folders, arguments.jobs)
        for case in open_cases:
            wrong = judge(root / case.name, [np.asarray(v) for v in case.data_sets[0][1]],
                          getattr(case, 'rtol', 1e-3) or 1e-3, getattr(case, 'atol', 1e-7) or 1e-7)
            before = results.get(case.name)
            # A wrong result, other than a refusal, stays wrong.
            if before and before[1].startswith('WRONG'):
                continue
            results[case.name] = (how, wrong)
    for kind, title in (('node', 'node cases'), ('newer', f'operations newer than opset {arguments.newest}'),
                        ('expanded', '_expanded cases'), ('models', 'small models'), ('light', 'light models')):
        names = [c.name for c, k in cases if k == kind]
        passed = [n for n in names if not results[n][1]]
        print(f'{title}: {len(passed)} of {len(names)} pass'
              f' ({100 * len(passed) / max(len(names), 1):.1f} %)')
        for how in attempts:
            print(f'    {how}: {sum(results[n][0] == how for n in passed)}')
        wrong = [n for n in names if results[n][1].startswith('WRONG')]
        failed |= bool(wrong) or (kind != 'newer' and len(passed) < LEAST * len(names))
        print(f'    refused: {len(names) - len(passed) - len(wrong)}, wrong: {len(wrong)}')
        if arguments.verbose:
            for n in names:
                if results[n][1]:
                    print(f'    {n}: {results[n][1]}')
    print('left out: ' + ', '.join(f'{why} {len(names)}' for why, names in left_out.items()))
    if arguments.verbose:
        for why, names in left_out.items():
            print(f'    {why}: {" ".join(sorted(names))}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
