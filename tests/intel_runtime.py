"""Finds Intel's CPU runtime for OpenCL, which tests use beside PoCL: `pip install intel-opencl-rt intel-cmplr-lib-rt`, into the Python
that CLINFER_PYTHON names, or the one that runs the test."""
import os
import sys
import tempfile
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


def run(test, own_cache=False):
    """The exit status of `test(environment)`, where this driver is the only one; 77 (skipped) without it. `own_cache`: clinfer's caches are empty
    at first, and removed afterwards."""
    driver = library()
    if driver is None:
        print(f"skipped: needs {MISSING}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        return test({**environment(driver, folder), **({"XDG_CACHE_HOME": folder} if own_cache else {})})
