#!/usr/bin/env python3
"""Runs the tests of several devices on Intel's CPU runtime for OpenCL beside PoCL: two vendors, two compilers, one machine.

    two_vendors.py DEVICES_TEST [ARGUMENT...]

Without the runtime (tests/intel_runtime.py) the test is skipped (exit status 77).
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import intel_runtime

POCL = Path("/etc/OpenCL/vendors/pocl.icd")


def main():
    library = intel_runtime.library()
    if library is None or not POCL.exists():
        print(f"skipped: needs PoCL and {intel_runtime.MISSING}")
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
