#!/usr/bin/env python3
"""Runs tests of kernels on Intel's CPU runtime for OpenCL, whose sub-groups read blocks and shuffle as those of Intel's GPUs do, and whose
compiler is another one than PoCL's: `on_intel.py KERNELS_TEST [ARGUMENT...]`.

Without the runtime (tests/intel_runtime.py) the test is skipped (exit status 77).
"""
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import intel_runtime


def test(environment):
    result = subprocess.run(sys.argv[1:], env=environment, stdout=subprocess.PIPE, text=True)
    print(result.stdout)
    if result.returncode == 0 and "[       OK ]" not in result.stdout:
        print("skipped: the runtime has no device for these tests on this machine")
        return 77
    return result.returncode


if __name__ == "__main__":
    sys.exit(intel_runtime.run(test))
