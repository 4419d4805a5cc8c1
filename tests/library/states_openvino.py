#!/usr/bin/env python3
"""Networks that keep states, against OpenVINO: the same outputs and states over a sequence of inferences, after a reset, and after a state
was set.

    states_openvino.py SOURCE      CLINFER_LIBRARY, OCL_ICD_VENDORS as in the environment; CLINFER_PYTHON: a Python with openvino
"""
import os
import pathlib
import sys
import tempfile

try:
    import numpy as np
    import openvino as ov
    from openvino import opset13 as op
    from openvino.op.util import Variable, VariableInfo
except ImportError:
    python = os.environ.get("CLINFER_PYTHON")
    if python and "--again" not in sys.argv:
        os.execvp(python, [python, *sys.argv, "--again"])
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "engine/library/python"))
sys.dont_write_bytecode = True
import clinfer  # noqa: E402

random = np.random.default_rng(3)


def constant(*shape):
    return op.constant(random.standard_normal(shape).astype("f4") / 2)


def model_of(build, shape):
    """A model of one input; `build(input, read, assign)` returns the outputs."""
    sinks, states = [], {}

    def read(name, initial, dims):
        info = VariableInfo()
        info.data_shape, info.data_type, info.variable_id = ov.PartialShape(dims), ov.Type.f32, name
        states[name] = Variable(info)
        return op.read_value(states[name]) if initial is None else op.read_value(initial, states[name])

    def assign(name, value):
        sinks.append(op.assign(value, states[name]))

    picture = op.parameter(shape, ov.Type.f32, name="in")
    outputs = build(picture, read, assign)
    return ov.Model([op.result(output) for output in outputs], sinks, [picture], "states")


def convolution_memory(x, read, assign):
    """A gated memory of a picture, as recurrent matting has."""
    before = read("memory", op.constant(np.zeros((1, 4, 9, 7), "f4")), [1, 4, 9, 7])
    both = op.concat([x, before], 1)
    pads = ([1, 1], [1, 1], [1, 1], [1, 1])
    gate = op.sigmoid(op.convolution(both, constant(4, 7, 3, 3), *pads))
    new = op.tanh(op.convolution(both, constant(4, 7, 3, 3), *pads))
    after = op.add(op.multiply(gate, before), op.multiply(op.subtract(op.constant(np.float32(1)), gate), new))
    assign("memory", after)
    return [op.convolution(after, constant(2, 4, 1, 1), [1, 1], [0, 0], [0, 0], [1, 1]), op.relu(before)]


def cell(x, read, assign):
    """An LSTM cell whose first states follow from constants of other types."""
    hidden = read("hidden", op.convert(op.constant(random.standard_normal((1, 8)).astype("f2")), "f32"), [1, 8])
    memory = read("memory", constant(1, 8), [1, 8])
    gates = op.add(op.matmul(x, constant(5, 32), False, False), op.matmul(hidden, constant(8, 32), False, False))
    keep, take, give, new = op.split(gates, op.constant(np.int64(1)), 4).outputs()
    after = op.add(op.multiply(op.sigmoid(keep), memory), op.multiply(op.sigmoid(take), op.tanh(new)))
    shown = op.multiply(op.sigmoid(give), op.tanh(after))
    assign("hidden", shown)
    assign("memory", after)
    return [op.matmul(shown, constant(8, 3), False, False)]


def computed(x, read, assign):
    """A state that begins with what the inference computes, and a counter without an initial value."""
    before = read("mean", op.multiply(x, op.constant(np.float32(2))), [1, 5])
    after = op.add(op.multiply(before, op.constant(np.float32(.75))), op.multiply(x, op.constant(np.float32(.25))))
    assign("mean", after)
    count = op.add(read("count", None, [1, 1]), op.constant(np.ones((1, 1), "f4")))
    assign("count", count)
    return [after, op.divide(after, count)]


def swapped(x, read, assign):
    """Two states that take each other's value, and one that stays."""
    a, b = read("a", constant(1, 5), [1, 5]), read("b", constant(1, 5), [1, 5])
    still = read("still", constant(1, 5), [1, 5])
    assign("a", b)
    assign("b", op.add(a, x))
    assign("still", still)
    return [op.add(op.subtract(a, b), still)]


def compare(name, build, shape, folder):
    path = folder / f"{name}.xml"
    ov.save_model(model_of(build, shape), path, compress_to_fp16=False)
    core = ov.Core()
    theirs = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
    model = clinfer.Model(path).compile("CPU", INFERENCE_PRECISION="f32")
    ours = model.create_request()
    worst = 0

    def step():
        nonlocal worst
        value = random.standard_normal(shape).astype("f4")
        wanted = theirs.infer({0: value})
        wanted = [wanted[i] for i in range(len(wanted))] + [state.state.data for state in theirs.query_state()]
        names = [state.name for state in theirs.query_state()]
        got = ours.infer(value) + [ours.state(state) for state in names]
        worst = max([worst, *(float(np.abs(a - b).max()) for a, b in zip(wanted, got))])
        if sorted(names) != sorted(port.name for port in model.states):
            sys.exit(f"{name}: the states are {model.states}, OpenVINO has {names}")

    for _ in range(6):
        step()
    for state in theirs.query_state():
        state.reset()
    ours.reset_states()
    for _ in range(3):
        step()
    state = theirs.query_state()[0]
    value = random.standard_normal(tuple(state.state.shape)).astype("f4")
    state.state = ov.Tensor(value)
    ours.set_state(state.name, value)
    for _ in range(3):
        step()
    print(f"{name}: the largest difference is {worst:.2g}", flush=True)
    if worst > 1e-5:
        sys.exit(f"{name}: OpenVINO's values differ by {worst}")


with tempfile.TemporaryDirectory() as where:
    for build, shape in ((convolution_memory, (1, 3, 9, 7)), (cell, (1, 5)), (computed, (1, 5)), (swapped, (1, 5))):
        compare(build.__name__, build, shape, pathlib.Path(where))
print("ok")
