#!/usr/bin/env python3
"""Runs the tests of several devices on Intel's CPU runtime for OpenCL beside PoCL: two vendors, two compilers, one machine.

    two_vendors.py DEVICES_TEST [ARGUMENT...]

The runtime is installed by `pip install intel-opencl-rt intel-cmplr-lib-rt`; CLINFER_PYTHON names the Python that has it. Without it
the test is skipped (exit status 77).
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

POCL = Path("/etc/OpenCL/vendors/pocl.icd")


def intel_runtime():
    for python in (os.environ.get("CLINFER_PYTHON"), sys.executable):
        library = python and Path(python).parent.parent / "lib/libintelocl.so"
        if library and library.exists():
            return library.absolute()
    return None


def main():
    library = intel_runtime()
    if library is None or not POCL.exists():
        print("skipped: needs PoCL and Intel's CPU runtime (pip install intel-opencl-rt intel-cmplr-lib-rt; "
              "CLINFER_PYTHON names the Python that has it)")
        return 77
    with tempfile.TemporaryDirectory() as vendors:
        Path(vendors, "1.icd").write_text(f"{library}\n")
        Path(vendors, "2.icd").write_text(POCL.read_text())
        environment = {**os.environ, "OCL_ICD_VENDORS": vendors}
        environment.pop("POCL_DEVICES", None)
        listed = subprocess.run([environment["CLINFER_PROGRAM"], "devices"], env=environment, stdout=subprocess.PIPE, text=True)
        print(listed.stdout)
        if "Intel(R) OpenCL" not in listed.stdout or "Portable Computing Language" not in listed.stdout:
            print("skipped: the two runtimes do not both have a device on this machine")
            return 77
        return subprocess.run(sys.argv[1:], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
