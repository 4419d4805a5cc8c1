#!/usr/bin/env python3
"""Quantises a model by NNCF. `clinfer quantize` starts this: it has the inputs, which the elements' preprocessing has made, and compares
the result.

    quantize.py MODEL FOLDER OUT.xml [--preset mixed|performance] [--seed N] [--keep LAYER]...

FOLDER/inputs.json: {"inputs": [names of the model's inputs], "samples": N, "info": {key of model_info: value}}; FOLDER/S.I.npy: input I of
sample S. OUT.xml gets the model_info, so that it is fed as the original. Needs nncf and openvino (pip install nncf openvino).
"""
import argparse
import json
import pathlib
import random
import sys

LACKS = 3  # exit status where a package is missing

try:
    import nncf
    import numpy as np
    import openvino as ov
except ImportError as error:
    print(f"{error}: pip install nncf openvino, for the Python that CLINFER_PYTHON names (default python3)", file=sys.stderr)
    sys.exit(LACKS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("out")
    parser.add_argument("--preset", choices=("mixed", "performance"), default="mixed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="append", default=[])
    args = parser.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    facts = json.loads((args.folder / "inputs.json").read_text(encoding="utf-8"))
    model = ov.Core().read_model(args.model)
    count = len(facts["inputs"])
    sample = [np.load(args.folder / f"0.{i}.npy") for i in range(count)]
    model.reshape({i: list(sample[i].shape) for i in range(count)})  # one frame, whatever batch the file states

    def inputs(number):
        return [np.load(args.folder / f"{number}.{i}.npy").astype(model.inputs[i].element_type.to_dtype()) for i in range(count)]

    kept = nncf.IgnoredScope(names=args.keep) if args.keep else None
    quantised = nncf.quantize(model, nncf.Dataset(range(facts["samples"]), inputs), subset_size=facts["samples"],
                              preset=nncf.QuantizationPreset(args.preset), ignored_scope=kept)
    for key, value in facts["info"].items():
        if not quantised.has_rt_info(["model_info", key]):
            quantised.set_rt_info(value, ["model_info", key])
    ov.save_model(quantised, args.out, compress_to_fp16=False)


try:
    main()
except KeyboardInterrupt:
    sys.exit(130)
except Exception as error:  # NNCF's and OpenVINO's own types are many; their first line says what is wrong
    print(f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no reason given'}", file=sys.stderr)
    sys.exit(1)
