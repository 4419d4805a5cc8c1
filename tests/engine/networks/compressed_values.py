#!/usr/bin/env python3
"""Products with weights of few bits and values of float8, as exporters write them, beside OpenVINO (IR) and ONNX Runtime.

    compressed_values.py CLINFER [--device CPU]

Each output is right to 1e-5 of its largest value. Layers whose weights are compressed must run in the kernel that decompresses them. Needs
openvino, onnxruntime, onnx and numpy.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

DEPTH, COLUMNS = 256, 72


def integers(numpy, bits, signed, group, layout):
    """Integers, scales and zeros of weights; columns first ("n") or last ("k")."""
    rng = numpy.random.default_rng(bits + group)
    low = -(1 << (bits - 1)) if signed else 0
    shape, of_scale = ((COLUMNS, DEPTH // group, group), (COLUMNS, DEPTH // group, 1)) if layout == "n" else \
        ((DEPTH // group, group, COLUMNS), (DEPTH // group, 1, COLUMNS))
    draw = lambda size: rng.integers(low, low + (1 << bits), size)
    return draw(shape), rng.uniform(0.5, 1, of_scale).astype(numpy.float32) / (1 << bits), draw(of_scale)


def write_ir(path, rows, bits, signed, group, zeros, halves):
    import numpy
    import openvino
    import openvino.opset13 as ops
    kind = getattr(openvino.Type, f"{'i' if signed else 'u'}{bits}")
    values, scales, middles = integers(numpy, bits, signed, group, "n")
    if group == DEPTH:
        values, scales, middles = (a.reshape(COLUMNS, -1) for a in (values, scales, middles))
    constant = lambda a: openvino.op.Constant(kind, openvino.Shape(a.shape), a.ravel().tolist())
    between = "f16" if halves else "f32"
    weights = ops.convert(constant(values), between)
    if zeros:
        weights = ops.subtract(weights, ops.convert(constant(middles), between))
    weights = ops.multiply(weights, ops.constant(scales.astype(numpy.float16 if halves else numpy.float32)))
    if group < DEPTH:
        weights = ops.reshape(weights, [COLUMNS, DEPTH], False)
    if halves:
        weights = ops.convert(weights, "f32")
    data = ops.parameter([rows, DEPTH], numpy.float32)
    openvino.save_model(openvino.Model([ops.matmul(data, weights, False, True)], [data]), path, compress_to_fp16=False)
    return 1


def write_float8_ir(path, rows, name):
    """Values that lie in the format, so that the way to round them does not matter; FakeConvert limits large ones."""
    import numpy
    import openvino
    import openvino.opset13 as ops
    kind = getattr(openvino.Type, name)
    data = ops.parameter([rows, DEPTH], numpy.float32)
    weights = openvino.op.Constant(kind, openvino.Shape([COLUMNS, DEPTH]), numpy.random.default_rng(1).standard_normal(COLUMNS * DEPTH).tolist())
    large = ops.multiply(ops.round(ops.multiply(data, ops.constant(numpy.float32(4))), "half_to_even"), ops.constant(numpy.float32(64)))
    limited = ops.fake_convert(large, ops.constant(numpy.float32(1)), ops.constant(numpy.float32(0)), name)
    product = ops.matmul(ops.divide(limited, ops.constant(numpy.float32(64))), ops.convert(weights, "f32"), False, True)
    openvino.save_model(openvino.Model([product, ops.convert(ops.convert(ops.round(data, "half_to_even"), kind), "f32")], [data]), path, compress_to_fp16=False)
    return 0


def packed(numpy, values, bits):
    parts = values.astype(numpy.uint8).reshape(*values.shape[:-1], -1, 8 // bits)
    return (parts << (numpy.arange(8 // bits, dtype=numpy.uint8) * bits)).sum(-1).astype(numpy.uint8)


def write_onnx(path, rows, nodes, weights, outputs=("y",)):
    import onnx
    from onnx import TensorProto, helper
    graph = helper.make_graph(nodes, "compressed", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, DEPTH])],
                              [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs], weights)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10), path)


def write_few_bits(path, rows, bits, group, zeros):
    import numpy
    from onnx import helper, numpy_helper
    values, scales, middles = integers(numpy, bits, False, group, "n")
    blocks = middles.reshape(COLUMNS, -1)
    fill = -blocks.shape[1] % (8 // bits)
    inputs = {"b": packed(numpy, values, bits), "s": scales.ravel()}
    if zeros:
        inputs["z"] = packed(numpy, numpy.pad(blocks, [(0, 0), (0, fill)]), bits).ravel()
    node = helper.make_node("MatMulNBits", ["x", *inputs], ["y"], domain="com.microsoft", K=DEPTH, N=COLUMNS, bits=bits, block_size=group)
    write_onnx(path, rows, [node], [numpy_helper.from_array(v, k) for k, v in inputs.items()])
    return 1


def write_dequantized(path, rows, bits, signed, group):
    import numpy
    from onnx import TensorProto, helper, numpy_helper
    values, scales, middles = integers(numpy, bits, signed, group, "k")
    kind = getattr(TensorProto, f"{'' if signed else 'U'}INT{bits}")
    weights = [helper.make_tensor("b", kind, [DEPTH, COLUMNS], values.ravel()), numpy_helper.from_array(scales.squeeze(1), "s"),
               helper.make_tensor("z", kind, [DEPTH // group, COLUMNS], middles.ravel())]
    nodes = [helper.make_node("DequantizeLinear", ["b", "s", "z"], ["w"], axis=0, block_size=group), helper.make_node("MatMul", ["x", "w"], ["y"])]
    write_onnx(path, rows, nodes, weights)
    return 1


def write_float8(path, rows, kind):
    import numpy
    from onnx import TensorProto, helper, numpy_helper
    kind = getattr(TensorProto, kind)
    weights = [numpy_helper.from_array(numpy.random.default_rng(1).standard_normal((DEPTH, COLUMNS)).astype(numpy.float32), "w"),
               helper.make_tensor("z", kind, [], [0.0])]
    weights += [numpy_helper.from_array(numpy.float32(v), k) for k, v in {"s": 0.004, "t": 0.03}.items()]
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]), helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
             helper.make_node("QuantizeLinear", ["w", "t", "z"], ["v"]), helper.make_node("DequantizeLinear", ["v", "t", "z"], ["e"]),
             helper.make_node("MatMul", ["d", "e"], ["y"]),
             helper.make_node("Cast", ["x"], ["c"], to=kind, saturate=0), helper.make_node("Cast", ["c"], ["f"], to=TensorProto.FLOAT)]
    write_onnx(path, rows, nodes, weights, ("y", "f"))
    return 0


CASES = {
    "i8": (write_ir, 8, True, DEPTH, False, False), "u8 zeros": (write_ir, 8, False, DEPTH, True, True),
    "i4 by 64": (write_ir, 4, True, 64, False, True), "u4 by 32 zeros": (write_ir, 4, False, 32, True, True), "u4 zeros": (write_ir, 4, False, DEPTH, True, False),
    "f8e4m3": (write_float8_ir, "f8e4m3"), "f8e5m2": (write_float8_ir, "f8e5m2"),
    "4 bits by 32": (write_few_bits, 4, 32, False), "4 bits by 64 zeros": (write_few_bits, 4, 64, True), "8 bits by 128 zeros": (write_few_bits, 8, 128, True),
    "uint4 blocks of 32": (write_dequantized, 4, False, 32), "int4 blocks of 64": (write_dequantized, 4, True, 64), "int8 blocks of 128": (write_dequantized, 8, True, 128),
    "FLOAT8E4M3FN": (write_float8, "FLOAT8E4M3FN"), "FLOAT8E5M2": (write_float8, "FLOAT8E5M2"),
}


def reference(path, data):
    if path.suffix == ".onnx":
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # else data are quantised to bytes
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, {"x": data})
    import openvino
    compiled = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0})
    results = compiled(data)
    return [results[output] for output in compiled.outputs]


def run(clinfer, command, path, *options):
    done = subprocess.run([str(part) for part in (clinfer, command, path, "--config", "INFERENCE_PRECISION=f32", *options)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip().splitlines()[-1])
    return done.stdout


def check(numpy, args, folder, name, rows):
    """What is wrong, or ''."""
    write, *how = CASES[name]
    path = folder / ("model.xml" if write in (write_ir, write_float8_ir) else "model.onnx")
    compressed = write(path, rows, *how)
    data = numpy.random.default_rng(3).standard_normal((rows, DEPTH), dtype=numpy.float32)
    numpy.save(folder / "x.npy", data)
    run(args.clinfer, "run", path, "--device", args.device, "--input", f"0={folder / 'x.npy'}", "--output-dir", folder)

    def layers_with(*options):
        return json.loads(run(args.clinfer, "graph", path, "--device", args.device, "--json", *options))["layers"]

    if any("fc_compressed" in layer["kernel"] for layer in layers_with("--config", "EXECUTION_MODE=accuracy")):
        return "sums are added up in parts in accuracy mode"
    layers = layers_with()
    if sum("fc_compressed" in layer["kernel"] for layer in layers) != compressed:
        return "the weights were written out as floats: " + ", ".join(f"{layer['type']} {layer['kernel'] or layer['reason']}" for layer in layers)
    for k, wanted in enumerate(reference(path, data)):
        got = numpy.load(folder / f"{k}.npy").astype(numpy.float64)
        if (numpy.isnan(got) != numpy.isnan(wanted)).any():
            return f"output {k} differs in what is no number"
        wanted = wanted.astype(numpy.float64)
        off = numpy.nanmax(abs(got - wanted)) / numpy.nanmax(abs(wanted))
        if not off <= 1e-5:
            return f"output {k} is off by {off:.1e} of its largest value"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clinfer", type=Path)
    parser.add_argument("--device", default="CPU")
    args = parser.parse_args()
    try:
        import numpy
        import openvino  # noqa: F401
    except ImportError as missing:
        print(f"skipped: {missing}")
        return 77
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="clinfer-compressed-") as temporary:
        for name in CASES:
            for rows in (1, 8):  # more are multiplied by floats without AVX-512
                try:
                    said = check(numpy, args, Path(temporary), name, rows)
                except RuntimeError as refusal:
                    said = str(refusal)
                wrong += bool(said)
                print(f"{'WRONG' if said else 'right'} {name}, {rows} rows{': ' if said else ''}{said}", flush=True)
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
