#!/usr/bin/env python3
"""Runs the conformance suite with the kernels for Intel's GPUs, on Intel's CPU runtime for OpenCL behind layers that present it as such
a GPU (gpu_layer.cpp, xmx_layer.cpp): `conformance_xmx.py ENGINE_TEST [ARGUMENT...]`.

Without the runtime (tests/intel_runtime.py) the test is skipped (exit status 77).
"""
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import intel_runtime


def test(environment):
    # The caches are empty, because programs of an earlier run may hold other functions of the layers.
    listed = subprocess.run([os.environ["CLINFER_PROGRAM"], "devices", "--kernels"], env=environment, stdout=subprocess.PIPE, text=True)
    if "Intel(R) OpenCL" not in listed.stdout:
        print("skipped: the runtime has no device on this machine")
        return 77
    if "used: conv_xmx" not in listed.stdout:
        print(f"{listed.stdout}the layers make no GPU with matrix instructions of the device")
        return 1
    return subprocess.run(sys.argv[1:], env=environment).returncode


if __name__ == "__main__":
    sys.exit(intel_runtime.run(test, own_cache=True))
