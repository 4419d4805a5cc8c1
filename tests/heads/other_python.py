"""Runs a script under a Python that has the packages it needs."""
import os
import sys

TRIED = "CLINFER_PYTHON_TRIED"


def retry(packages):
    """Called where an import failed: starts the script anew under CLINFER_PYTHON, then under the system's Python, for which
    pipelines/install installs numpy; each once. Else skips it (exit status 77)."""
    tried = int(os.environ.get(TRIED, "0"))
    for number, other in enumerate((os.environ.get("CLINFER_PYTHON"), "/usr/bin/python3"), 1):
        if number > tried and other and os.path.exists(other):
            os.environ[TRIED] = str(number)
            os.execv(other, [other, *sys.argv])
    print(f"skipped: needs {packages} (CLINFER_PYTHON names a Python that has them)")
    sys.exit(77)
