"""Runs a script under a Python that has the packages it needs."""
import os
import sys


def retry(packages):
    """Called where an import failed: starts the script anew under CLINFER_PYTHON, once; else skips it (exit status 77)."""
    other = os.environ.get("CLINFER_PYTHON", "")
    if other and "CLINFER_PYTHON_TRIED" not in os.environ:
        os.environ["CLINFER_PYTHON_TRIED"] = "1"
        os.execv(other, [other, *sys.argv])
    print(f"skipped: needs {packages} (CLINFER_PYTHON names a Python that has them)")
    sys.exit(77)
