#!/usr/bin/env python3
"""Runs the tests of pointers as tensors on Intel's CPU runtime for OpenCL, which has unified shared memory:
`pointers_intel.py OPENCL_TEST`.

Without the runtime (tests/intel_runtime.py) the test is skipped (exit status 77).
"""
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import intel_runtime


def test(environment):
    result = subprocess.run([sys.argv[1], "--gtest_filter=Pointers.*"], env=environment, stdout=subprocess.PIPE, text=True)
    print(result.stdout)
    if result.returncode == 0 and "SKIPPED" in result.stdout:
        print("failed: this runtime has shared virtual and unified shared memory, so that nothing is to be skipped")
        return 1
    return result.returncode


if __name__ == "__main__":
    sys.exit(intel_runtime.run(test, own_cache=True))
