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


def environment(library, folder):
    """An environment in which this driver is the only one; the empty folder keeps its name."""
    Path(folder, "intel.icd").write_text(f"{library}\n")
    return {**os.environ, "OCL_ICD_VENDORS": folder}
