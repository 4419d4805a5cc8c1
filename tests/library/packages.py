#!/usr/bin/env python3
"""Each file that is installed is in one of the Debian packages, each pattern of theirs finds one, and their examples exist.

    packages.py SOURCE BUILD
"""
import fnmatch
import json
import pathlib
import re
import subprocess
import sys


def main():
    source, build = map(pathlib.Path, sys.argv[1:])
    wrong = []
    plan = subprocess.run(["meson", "introspect", "--installed", build], capture_output=True, text=True, check=True).stdout
    prefix = json.loads(subprocess.run(["meson", "introspect", "--buildoptions", build], capture_output=True, text=True, check=True).stdout)
    prefix = next(option["value"] for option in prefix if option["name"] == "prefix")
    # As dh_python3 and Debian's Meson place them.
    paths = [re.sub(r"lib/python3[.\d]*/site-packages", "lib/python3/dist-packages", "usr" + path.removeprefix(prefix))
             for path in json.loads(plan).values() if path.startswith(prefix)]
    used = set()
    patterns = {(file.name, line.strip()) for file in (source / "debian").glob("*.install") for line in file.open() if line.strip()}
    for path in sorted(set(paths)):
        found = [entry for entry in patterns if fnmatch.fnmatch(path, entry[1]) or fnmatch.fnmatch(path, entry[1] + "/*")]
        used.update(found)
        if len({name for name, _ in found}) != 1:
            wrong.append(f"{path} is in {', '.join(sorted(name for name, _ in found)) or 'no package'}")
    wrong += [f"debian/{name}: nothing is installed as {pattern}" for name, pattern in sorted(patterns - used)]
    wrong += [f"debian/{file.name}: there is no {line.strip()}" for file in (source / "debian").glob("*.examples") for line in file.open()
              if line.strip() and not (source / line.strip()).exists()]
    print("\n".join(wrong) or f"ok   {len(set(paths))} files in packages")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
