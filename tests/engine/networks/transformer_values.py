#!/usr/bin/env python3
"""Networks with attention, few layers of few channels (pipelines/bench/networks.py --tiny), beside OpenVINO (IR) and ONNX Runtime.

    transformer_values.py CLINFER PIPELINES/BENCH [NAME...] [--forms ir,17,20] [--f16]

Each output is right to 1e-3 of its largest value in f32. With --f16, on Intel's CPU runtime, to 2e-2; which of two alike queries comes
first may differ there, so that a row that a network chose counts as right if the reference has its like, and a tenth may lack it.
Forms: IR, or ONNX of a version of the operations. Needs openvino, onnxruntime, onnx and numpy.
"""
import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import intel_runtime  # noqa: E402

CHOOSE = ("rtdetr", "dfine", "rfdetr")  # networks that choose their queries


def reference(path, picture):
    """The outputs, in order."""
    if path.suffix == ".onnx":
        import onnxruntime
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        return session.run(None, {session.get_inputs()[0].name: picture})
    import openvino
    compiled = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled(picture)
    return [results[output] for output in compiled.outputs]


def ours(clinfer, path, picture, folder, environment, config):
    import numpy
    numpy.save(folder / "picture.npy", picture)
    command = [clinfer, "run", path, "--device", "CPU", "--input", f"0={folder / 'picture.npy'}", "--output-dir", folder, *config]
    done = subprocess.run([str(part) for part in command], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(done.stdout.strip().splitlines()[-1] if done.stdout.strip() else f"exit status {done.returncode}")
    return [numpy.load(folder / f"{k}.npy").astype(numpy.float32) for k in range(len(list(folder.glob("[0-9]*.npy"))))]


def worst(outputs, references):
    """The largest error of an output, in its largest values."""
    return max(float(abs(a - b).max() / abs(b).max()) for a, b in zip(outputs, references))


def worst_of_most_rows(outputs, references):
    """The same of rows that stand in any order, all outputs of a row together, but for the worst tenth."""
    import numpy
    sides = [numpy.concatenate([value[0] / abs(b).max() for value, b in zip(values, references)], 1) for values in (outputs, references)]
    errors = abs(sides[0][:, None] - sides[1][None]).max(2).min(1)
    return float(numpy.sort(errors)[len(errors) * 9 // 10])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clinfer", type=Path)
    parser.add_argument("bench", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--forms", default="ir,17,20")
    parser.add_argument("--f16", action="store_true")
    args = parser.parse_args()
    try:
        import numpy
        import openvino  # noqa: F401
    except ImportError as missing:
        print(f"skipped: {missing}")
        return 77
    sys.path.insert(0, str(args.bench))
    import networks
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="clinfer-values-") as temporary:
        folder, environment, config = Path(temporary), None, []
        if args.f16:
            library = intel_runtime.library()
            if library is None:
                print(f"skipped: needs {intel_runtime.MISSING}")
                return 77
            environment = {**intel_runtime.environment(library, temporary), "XDG_CACHE_HOME": temporary}
            config = ["--config", "INFERENCE_PRECISION=f16"]
        else:
            environment = dict(os.environ)
        for name in args.names or networks.TINY:
            for form in args.forms.split(","):
                path = networks.write(folder, name, onnx=0 if form == "ir" else int(form), tiny=True)
                sizes = networks.NETWORKS[name][1] | networks.TINY[name]
                shape = (1, 3, sizes.get("height", sizes.get("size")), sizes.get("width") if "height" in sizes else sizes["size"])
                picture = numpy.random.default_rng(3).standard_normal(shape, dtype=numpy.float32)
                try:
                    results = ours(args.clinfer, path, picture, folder, environment, config)
                    expected = reference(path, picture)
                    error = (worst_of_most_rows if args.f16 and name.startswith(CHOOSE) else worst)(results, expected)
                    right = len(results) == len(expected) and error < (2e-2 if args.f16 else 1e-3)
                    said = f"{error:.1e}"
                except RuntimeError as refusal:
                    right, said = False, str(refusal)
                wrong += not right
                print(f"{'right' if right else 'WRONG'} {name} {form}: {said}", flush=True)
                for file in folder.glob("[0-9]*.npy"):
                    file.unlink()
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
