"""Finds Intel's CPU runtime for OpenCL, which tests use beside PoCL: `pip install intel-opencl-rt intel-cmplr-lib-rt`, into the Python
that CLINFER_PYTHON names, or the one that runs the test."""
import os
import sys
from pathlib import Path

MISSING = "Intel's CPU runtime (pip install intel-opencl-rt intel-cmplr-lib-rt; CLINFER_PYTHON names the Python that has it)"


def library():
    """The path of its OpenCL driver, or None."""
    for python in (os.environ.get("CLINFER_PYTHON"), sys.executable):
        found = python and Path(python).parent.parent / "lib/libintelocl.so"
        if found and found.exists():
            return found.absolute()
    return None
