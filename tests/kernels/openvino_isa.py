#!/usr/bin/env python3
"""Counts the instructions that Intel's compiler makes of OpenVINO's own kernels for the layers of intel_isa.py.

    openvino_isa.py [--devices skl,tgllp,dg2] [--layers Pointwise,Square,Depthwise] [--assembly FOLDER]

OpenVINO's GPU plug-in (of the Python that runs this: `pip install openvino`) compiles a network of ten such layers for a device that
opencl_recorder.cpp pretends to be; so its host code chooses the kernels and the defines. ocloc (OCLOC names it) compiles the programs
that it builds, and the loops are counted as ours are; bytes only where the device has dp4a. Of dg2, matrix units are not offered: for
these, the plug-in uses oneDNN. A layer may have two rows, which differ in their tails; of 3x3 in f16 the short loop is that of the 1x1
convolution before and after the ten.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from intel_isa import LAYERS, OCLOC, count_loop, run

HERE = pathlib.Path(__file__).resolve().parent
SIZES = {"Pointwise": (256, 1, 40, 1), "Square": (64, 3, 72, 1), "Depthwise": (96, 3, 112, 96)}
LENGTH = 10
SCRATCH = re.compile(r"scratch block|\.ss\[")


def compile_network(layer, quantised):
    """In a process that loads the recorder: prints the names of the layers' kernels."""
    import numpy as np
    import openvino
    from openvino import opset10 as op

    channels, kernel, size, groups = SIZES[layer]
    random = np.random.default_rng(1)

    def weights(*shape):
        return op.constant(random.standard_normal(shape).astype(np.float32) / 10)

    def quantise(value, low, high, levels):
        ends = [op.constant(np.float32(end)) for end in (low, high, low, high)]
        return op.fake_quantize(value, *ends, levels)

    def convolution(value, quantised):
        shape = (channels, channels, kernel, kernel) if groups == 1 else (groups, channels // groups, 1, kernel, kernel)
        filters = weights(*shape)
        filters = quantise(filters, -0.4, 0.4, 255) if quantised else filters
        make = op.convolution if groups == 1 else op.group_convolution
        value = op.relu(make(value, filters, [1, 1], [kernel // 2] * 2, [kernel // 2] * 2, [1, 1]))
        return quantise(value, 0, 6, 256) if quantised else value

    def pointwise(value):
        return op.relu(op.convolution(value, weights(channels, channels, 1, 1), [1, 1], [0, 0], [0, 0], [1, 1]))

    data = op.parameter([1, channels, size, size], np.float32)
    value = pointwise(data)
    value = quantise(value, 0, 6, 256) if quantised else value
    for _ in range(LENGTH):
        value = convolution(value, quantised)
    network = openvino.Core().compile_model(openvino.Model([pointwise(value)], [data]), "GPU", {"INFERENCE_PRECISION_HINT": "f16"})
    for node in network.get_runtime_model().get_ordered_ops():
        information = node.get_rt_info()
        if information["layerType"].astype(str) == "Convolution":
            print(information["primitiveType"].astype(str).split("__")[0])


def most_frequent(names):
    return max(set(names), key=names.count)


def rows(library, device, layer, kind, keep):
    """Lines of the table."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LD_LIBRARY_PATH": str(library), "RECORDER_FOLDER": folder, "RECORDER_DEVICE": device}
        done = subprocess.run([sys.executable, __file__, "--compile", layer, kind], env=environment, stdout=subprocess.PIPE, text=True,
                              check=True)
        kernel = most_frequent(done.stdout.split())
        for source in sorted(pathlib.Path(folder).glob("*.cl")):
            # With the hash of its parameters. The kernel of ten layers has one program or two, which differ in their tails.
            names = [name for name in re.findall(r"__kernel void (\w+)", source.read_text()) if re.fullmatch(kernel + r"_\d+_\d+_\d+", name)]
            if not names:
                continue
            options = source.with_suffix(".options").read_text()
            made = run("compile", "-file", source, "-device", device, "-options", options, "-out_dir", source.with_suffix(""))
            binary = next(source.with_suffix("").glob("*.bin"), None)
            if made.returncode or binary is None:
                yield f"| {device} | {kind} | {kernel} | does not compile |"
                continue
            run("disasm", "-file", binary, "-device", device, "-dump", source.with_suffix(".dump"))
            for name in names:
                text = (source.with_suffix(".dump") / f"{name}_KernelHeap.asm").read_text()
                if keep:
                    (keep / f"openvino-{device}-{name}.asm").write_text(text)
                count = count_loop(text, device)
                yield (f"| {device} | {kind} | {kernel} | {sum(count.slots.values()):.0f} | {count.share('products'):.1f} % | "
                       f"{1000 * count.sends / max(1, count.products):.2f} | {count.share('moves'):.1f} % | "
                       f"{count.share('other'):.1f} % | {len(SCRATCH.findall(text))} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default="skl,tgllp,dg2")
    parser.add_argument("--layers", default=",".join(SIZES))
    parser.add_argument("--assembly", type=pathlib.Path)
    parser.add_argument("--compile", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.compile:
        return compile_network(arguments.compile[0], arguments.compile[1] == "int8")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["c++", "-std=c++20", "-shared", "-fPIC", "-o", f"{folder}/libOpenCL.so.1", HERE / "opencl_recorder.cpp"], check=True)
        for layer in arguments.layers.split(","):
            print(f"\n{LAYERS[layer]}\n\n| device | data | kernel | slots | multiply-adds | sends | moves | other | scratch messages |\n"
                  "| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
            for device in arguments.devices.split(","):
                for kind in ("f16",) if device == "skl" else ("f16", "int8"):
                    for row in dict.fromkeys(rows(folder, device, layer, kind, arguments.assembly)):
                        print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
