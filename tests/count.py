#!/usr/bin/env python3
"""Counts test cases in meson's test logs, shows what failed, and ends with `N passed, N failed, N skipped`.

A GoogleTest program counts by its cases, a script that ends with such a line by that line, any other program as one. A
program that dies counts as one failure beside the cases that it had finished. Arguments: LABEL=testlog.json ...
"""
import json
import re
import sys

TAIL = 60  # lines shown of a failed program's output


def number(pattern, text):
    found = re.search(pattern, text, re.M)
    return int(found.group(1)) if found else 0


def count(test):
    """(passed, failed, skipped, names of failed cases) of one program."""
    out, result = test.get("stdout", ""), test["result"]
    good = result in ("OK", "SKIP", "EXPECTEDFAIL")
    names = sorted(set(re.findall(r"^\[  FAILED  \] ([^\s,]+\.[^\s,]+)", out, re.M)))
    if re.search(r"^\[==========\] \d+ tests? .*ran\.", out, re.M):
        passed = number(r"^\[  PASSED  \] (\d+) tests?\.", out)
        skipped = number(r"^\[  SKIPPED \] (\d+) tests?, listed below", out)
        failed = number(r"^\[  FAILED  \] (\d+) tests?, listed below", out)
    elif "[==========] Running " in out:
        passed = len(re.findall(r"^\[       OK \] ", out, re.M))
        skipped = len(re.findall(r"^\[  SKIPPED \] \S+ \(", out, re.M))
        failed = len(names) + 1
        running = re.findall(r"^\[ RUN      \] (\S+)", out, re.M)
        names.append((running[-1] if running else "start") + f" ended the program ({result})")
    elif line := re.findall(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", out, re.M):
        passed, failed, skipped = (int(n or 0) for n in line[-1])
    else:
        passed, failed, skipped = int(result in ("OK", "EXPECTEDFAIL")), int(not good), int(result == "SKIP")
    if not good and failed == 0:
        failed = 1
        names.append(f"after the last case ({result}, exit status {test.get('returncode')})")
    return passed, failed, skipped, names


def about_failures(out):
    """Of a GoogleTest program's output, what the failed cases wrote and what stands outside of all cases."""
    kept, case = [], None
    for line in out.splitlines():
        if line.startswith("[ RUN      ]"):
            case = []
        elif case is None:
            kept.append(line)
        elif line.startswith(("[       OK ]", "[  SKIPPED ]")):
            case = None
        elif line.startswith("[  FAILED  ]"):
            kept += case + [line]
            case = None
        else:
            case.append(line)
    kept += case or []  # the program ended inside this one
    return [l for l in kept if l.strip() and not re.match(r"\[(-+|  SKIPPED |==========)\]", l)]


def show_failure(label, test, names):
    print(f"---- {label}: {test['name']} failed: {', '.join(names) or test['result']}")
    for stream in ("stdout", "stderr"):
        lines = about_failures(test.get(stream, ""))
        if len(lines) > TAIL:
            print(f"({len(lines) - TAIL} lines of {stream} left out; all of them are in meson-logs)")
        for line in lines[-TAIL:]:
            # The last line of this program's output must be the only one of its form.
            print("  | " + line)


def main():
    total = [0, 0, 0]
    for argument in sys.argv[1:]:
        label, path = argument.split("=", 1)
        with open(path, encoding="utf-8", errors="replace") as log:
            tests = [json.loads(line) for line in log if line.strip()]
        for test in sorted(tests, key=lambda t: t["name"]):
            passed, failed, skipped, names = count(test)
            name = test["name"].split(" / ")[-1]
            if failed:
                show_failure(label, test, names)
            print(f"{label:10} {name:14} {passed:5} ok {failed:5} failed {skipped:5} skipped {test['duration']:8.1f} s")
            total = [a + b for a, b in zip(total, (passed, failed, skipped))]
    passed, failed, skipped = total
    if passed + failed + skipped == 0:
        print("no test ran")
        failed = 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
