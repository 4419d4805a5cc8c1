#!/usr/bin/env python3
"""Compares models whose preprocessing begins with the planes of NV12, run by the element on NV12 frames, with OpenVINO on the same planes.

    planes.py [--seed N]      needs openvino and numpy (CLINFER_PYTHON names a Python that has them), else it is skipped (status 77)
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import other_python

try:
    import numpy as np
    import openvino as ov
    from openvino import opset8 as ops
    from openvino.preprocess import ColorFormat, PrePostProcessor, ResizeAlgorithm
except ImportError:
    other_python.retry("openvino and numpy")


def write_model(path, rng, color, single, element, size, resized):
    """A convolution of 3x3 on the picture, after what PrePostProcessor puts before it."""
    height, width = resized or size
    picture = ops.parameter([1, 3, height, width], np.float32, name="picture")
    weights = rng.uniform(-1, 1, (4, 3, 3, 3)).astype(np.float32)
    features = ops.convolution(picture, weights, [2, 2], [0, 0], [0, 0], [1, 1])
    features.set_friendly_name("features")
    model = ov.Model([ops.result(features)], [picture], "planes")
    model.outputs[0].get_tensor().set_names({"features"})
    planes = PrePostProcessor(model)
    tensor = planes.input().tensor()
    tensor.set_element_type(element)
    if single:
        tensor.set_color_format(ColorFormat.NV12_SINGLE_PLANE)
    else:
        tensor.set_color_format(ColorFormat.NV12_TWO_PLANES, ["y", "uv"])
    if resized:
        tensor.set_spatial_static_shape(*size)
    steps = planes.input().preprocess().convert_color(color)
    if element == ov.Type.u8:
        steps = steps.convert_element_type(ov.Type.f32)
    if resized:
        steps = steps.resize(ResizeAlgorithm.RESIZE_LINEAR)
    steps.mean([120.0, 110.0, 100.0]).scale([60.0, 70.0, 80.0])
    planes.input().model().set_layout(ov.Layout("NCHW"))
    model = planes.build()
    ov.save_model(model, path, compress_to_fp16=False)
    return ov.Core().compile_model(model, "CPU")


def element_output(model, frames, width, height, shape):
    # Pictures of so few rows are in BT.601 unless their caps say otherwise.
    command = ["gst-launch-1.0", "-q", "filesrc", f"location={frames}", "!", "rawvideoparse", "format=nv12", f"width={width}",
               f"height={height}", "framerate=1/1", "!", "clinfer", f"model={model}", "post-process=none", "!", "clpublish",
               "add-tensor-data=true", "!", "fakesink"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    lines = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise ValueError(result.stderr.strip())
    return [np.array(line["tensors"][0]["data"], np.float32).reshape(shape) for line in lines]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    rng = np.random.default_rng(parser.parse_args().seed)
    wrong = 0
    for single in (False, True):
        for color, element, resized in ((ColorFormat.RGB, ov.Type.u8, None), (ColorFormat.BGR, ov.Type.u8, (40, 56)),
                                        (ColorFormat.RGB, ov.Type.f32, None)):
            height, width = 2 * rng.integers(16, 40, 2)
            # rawvideoparse needs rows of whole words.
            width = int(width + 3) // 4 * 4
            height = int(height)
            name = f"{'one plane' if single else 'two planes'} {color} {element} {resized or ''}"
            with tempfile.TemporaryDirectory() as folder:
                compiled = write_model(f"{folder}/planes.xml", rng, color, single, element, (height, width), resized)
                planes = rng.integers(0, 256, (3, height * 3 // 2, width), np.uint8)
                planes.tofile(f"{folder}/frames.nv12")
                right = []
                for frame in planes.astype(np.uint8 if element == ov.Type.u8 else np.float32):
                    y, uv = frame[None, :height, :, None], frame[None, height:].reshape(1, height // 2, width // 2, 2)
                    right.append(compiled([frame[None, ..., None]] if single else [y, uv])[0])
                try:
                    ours = element_output(f"{folder}/planes.xml", f"{folder}/frames.nv12", width, height, right[0].shape)
                    # Bytes of the picture that round to a neighbour.
                    far = max(float(np.abs(a - b).max()) for a, b in zip(ours, right, strict=True))
                    why = f"{far:.3f} apart" if far > .2 else ""
                except ValueError as error:
                    why, far = str(error), 0
                wrong += bool(why)
                print(f"FAIL {name}: {why}" if why else f"ok   {name}: {far:.4f} apart, values up to {np.abs(right[0]).max():.1f}", flush=True)
    print(f"{6 - wrong} right, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
