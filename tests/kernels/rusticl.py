#!/usr/bin/env python3
"""Runs tests on Mesa's rusticl, whose programs llvmpipe computes on the CPU: `rusticl.py PROGRAM [ARGUMENT...]`.

Its compiler is the one that AMD's and other GPUs get from Mesa. Without the driver (Debian 13: mesa-opencl-icd) or the headers of OpenCL C
that it reads (libclang-common-19-dev, libclc-19), the test is skipped (exit status 77).
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

DRIVER = Path("/etc/OpenCL/vendors/rusticl.icd")
NEEDS = "Mesa's rusticl (Debian 13: apt install mesa-opencl-icd libclc-19 libclang-common-19-dev)"


def main():
    if not DRIVER.exists():
        print(f"skipped: needs {NEEDS}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "rusticl.icd").write_text(DRIVER.read_text())
        environment = {**os.environ, "OCL_ICD_VENDORS": folder, "RUSTICL_ENABLE": "llvmpipe", "XDG_CACHE_HOME": folder}
        result = subprocess.run(sys.argv[1:], env=environment, stdout=subprocess.PIPE, text=True)
    print(result.stdout)
    if "no OpenCL device" in result.stdout or "opencl-c-base.h" in result.stdout:
        print(f"skipped: the driver is not whole; needs {NEEDS}")
        return 77
    return result.returncode


if __name__ == "__main__":
    sys.exit(main())
