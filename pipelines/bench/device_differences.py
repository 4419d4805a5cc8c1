#!/usr/bin/env python3
"""How far the outputs of networks are apart between devices: PoCL, Intel's CPU runtime, and the first tier, which computes on the host.

    device_differences.py CLINFER MODEL.xml... | DATA [--config EXECUTION_MODE=accuracy] [--only NAME] [--same] [--except NAME] [--gpu-layer LIBRARY]

DATA has a folder models/NAME for each model. Each network gets the same random inputs everywhere. Prints a line of a table for each pair of devices and model:
the share of outputs' elements that are equal to the bit, the largest difference as a share of its output's largest value, and the root of the mean square error
as a share of the output's own. Needs numpy; Intel's runtime (tests/intel_runtime.py) is left out where it is not installed. Elements that are infinite or NaN
in both count as equal. --gpu-layer: the OpenCL layer (tests/faults/gpu_layer.cpp in a build) by which PoCL passes for a GPU, so that kernels for GPUs compute on
it as well. With --same the first tier does not compute, and the exit status is 1 where an element differs between them (77: skipped, since the
runtime is not installed), but for models with one of the names of --except.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
import intel_runtime  # noqa: E402 (beside the tests)


def devices_here(folder, with_first_tier, gpu_layer):
    """By name: the environment, and further words of `clinfer run`."""
    pocl = {**os.environ, "OCL_ICD_VENDORS": "/etc/OpenCL/vendors/pocl.icd"}
    library = intel_runtime.library()
    found = {"PoCL": (pocl, ["--device", "CPU"])}
    if with_first_tier:
        found["first tier"] = (pocl, ["--device", "CPU", "--tier", "first"])
    if gpu_layer:
        found["PoCL as a GPU"] = ({**pocl, "OPENCL_LAYERS": str(gpu_layer)}, ["--device", "GPU"])
    return {**found, "Intel": (intel_runtime.environment(library, folder), ["--device", "CPU"])} if library else found


def inputs_of(text):
    """(number, type, shape) of the Parameters of an IR."""
    found = []
    for match in re.finditer(r'<layer\b[^>]*\btype="Parameter"[^>]*>\s*<data\b([^>]*)/>', text):
        shape = re.search(r'shape="([^"]*)"', match.group(1)).group(1)
        kind = re.search(r'element_type="([^"]*)"', match.group(1)).group(1)
        found.append((len(found), kind, [int(size) for size in shape.split(",") if size.strip()]))
    return found


def run(clinfer, model, files, config, device, folder):
    """The outputs, or why there are none."""
    out = pathlib.Path(folder)
    environment, more = device
    words = [clinfer, "run", str(model), "--output-dir", str(out), *more]
    for number, file in files.items():
        words += ["--input", f"{number}={file}"]
    for setting in config:
        words += ["--config", setting]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=900, check=False)
    if done.returncode != 0:
        return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit status {done.returncode}"
    return [numpy.load(file) for file in sorted(out.glob("*.npy"), key=lambda file: int(file.stem))]


def difference(outputs, reference):
    """Share of equal elements, largest and typical difference."""
    equal = elements = 0
    largest = typical = 0.0
    for a, b in zip(outputs, reference):
        a, b = a.astype(numpy.float64).ravel(), b.astype(numpy.float64).ravel()
        same = (a == b) | (numpy.isnan(a) & numpy.isnan(b))
        equal, elements = equal + int(same.sum()), elements + a.size
        finite = numpy.isfinite(a) & numpy.isfinite(b)
        top = float(numpy.abs(b[finite]).max(initial=0))
        if top > 0:
            error = a[finite] - b[finite]
            largest = max(largest, float(numpy.abs(error).max(initial=0)) / top)
            typical = max(typical, float(numpy.sqrt((error ** 2).mean() / (b[finite] ** 2).mean())))
    return equal / max(elements, 1), largest, typical


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clinfer")
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--config", action="append", default=[])
    parser.add_argument("--only", default="")
    parser.add_argument("--same", action="store_true")
    parser.add_argument("--gpu-layer", type=pathlib.Path)
    parser.add_argument("--except", action="append", default=[], dest="excepted")
    options = parser.parse_args()
    if options.same and not intel_runtime.library() and not options.gpu_layer:
        print(f"skipped: needs {intel_runtime.MISSING}")
        return 77
    models = [model for path in options.models
              for model in (sorted(path.glob("models/*/*.xml")) if path.is_dir() else [path]) if options.only in str(model)]
    print("| model | devices | equal to the bit | largest difference | typical difference |\n| --- | --- | --- | --- | --- |")
    compared = failures = 0
    with tempfile.TemporaryDirectory() as folder:
        devices = devices_here(folder, not options.same, options.gpu_layer)
        for number, model in enumerate(models):
            files, random = {}, numpy.random.default_rng(7)
            for index, kind, shape in inputs_of(model.read_text(encoding="utf-8")):
                values = random.integers(0, 256, shape) if kind in ("f32", "f16", "u8") else numpy.zeros(shape)
                files[index] = pathlib.Path(folder, f"input{number}.{index}.npy")
                numpy.save(files[index], values.astype({"f16": "float16", "u8": "uint8", "i64": "int64", "i32": "int32"}.get(kind, "float32")))
            found = {}
            for name, device in devices.items():
                out = pathlib.Path(folder, f"{number}.{name}".replace(" ", "-"))
                out.mkdir()
                found[name] = run(options.clinfer, model, files, options.config, device, out)
            for a, b in (("Intel", "PoCL"), ("PoCL as a GPU", "PoCL"), ("first tier", "PoCL")):
                if a not in found:
                    continue
                compared += 1
                failed = [device for device in (a, b) if isinstance(found[device], str)]
                if failed:
                    print(f"| {model.stem} | {a}, {b} | {failed[0]}: {found[failed[0]]} | | |", flush=True)
                    failures += 1
                    continue
                equal, largest, typical = difference(found[a], found[b])
                print(f"| {model.stem} | {a}, {b} | {equal:.4f} | {largest:.1e} | {typical:.1e} |", flush=True)
                failures += equal < 1 and not any(name in model.stem for name in options.excepted)
    return options.same and (failures > 0 or compared == 0)


if __name__ == "__main__":
    sys.exit(main())
