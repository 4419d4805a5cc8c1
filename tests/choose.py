#!/usr/bin/env python3
"""Turns NAMEs into what to build and which tests to run: `choose.py [--all] BUILD NAME...`.

A NAME is a test or a suite of `meson test --list`, else a part of the name of a GoogleTest case; the sources tell which
programs hold such a case. Prints a line `build TARGET...`, and a line `run FILTER TEST...` for each set of tests that take
the same filter ("-": none). Tests of the suite `long` count only with --all, or where they are named themselves.
"""
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys

import unity

FILTER = "--gtest_filter="


def introspect(build, what):
    done = subprocess.run(["meson", "introspect", f"--{what}", build], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def sources_of(program):
    """The sources of a target as meson tells it, as far as they are written already. Those of a unity build are in generated files."""
    files = [file for part in program["target_sources"] for file in part.get("sources", []) + part.get("generated_sources", [])]
    return [source for file in files for source in unity.sources_of(file, "/") if source.suffix == ".cpp" and source.is_file()]


def cases(source):
    """{name: whether it has parameters} of the GoogleTest cases of a source file."""
    text = pathlib.Path(source).read_text(encoding="utf-8")
    return {f"{suite}.{case}": kind == "_P" for kind, suite, case in re.findall(r"^TEST(|_F|_P)\(\s*(\w+),\s*(\w+)\)", text, re.M)}


def has(case, name):
    """Whether NAME is a part of the case's name; `Prefix/Suite.Case/parameter` names one with parameters."""
    plain = re.sub(r"^\w*/", "", name) if "." in name else name
    return fnmatch.fnmatchcase(case, f"*{plain.split('/')[0]}*")


def admits(own_filter, case):
    """Whether GoogleTest runs the case under this filter."""
    wanted, _, unwanted = own_filter.partition("-")
    return (any(fnmatch.fnmatchcase(case, pattern) for pattern in (wanted or "*").split(":")) and
            not any(fnmatch.fnmatchcase(case, pattern) for pattern in unwanted.split(":")))


def choose(tests, targets, names, everything):
    """{filter or "-": [test]}, and the NAMEs that choose nothing."""
    usual = [test for test in tests if everything or "long" not in test["suites"]]
    chosen, parts = {}, []
    for name in names:
        found = [test for test in tests if test["name"] == name] or [test for test in usual if name in test["suites"]]
        if found:
            chosen.setdefault("-", []).extend(found)
        else:
            parts.append(name)
    unknown = set(parts)
    for test in usual:
        program = targets.get(test["cmd"][0])
        sources = sources_of(program) if program else []
        own = [word[len(FILTER):] for word in test["cmd"] if word.startswith(FILTER)]
        known = {case: kind for source in sources for case, kind in cases(source).items() if not own or admits(own[-1], case)}
        found = {name: [case for case in known if has(case, name)] for name in parts}
        found = {name: those for name, those in found.items() if those}
        unknown -= set(found)
        if found and own:  # the last filter of a command line counts, so it has to say what the test's own one does
            found = [f"{case}/*:*/{case}/*" if known[case] else case for those in found.values() for case in those]
        else:
            found = [f"*{name}*" for name in found]
        if found:
            chosen.setdefault(":".join(found), []).append(test)
    return chosen, sorted(unknown)


def main():
    everything = "--all" in sys.argv
    build, *names = [word for word in sys.argv[1:] if word != "--all"]
    # The tests as meson.build files say now.
    subprocess.run(["ninja", "-C", build, "--quiet", "build.ninja"], check=True, stdout=sys.stderr)
    targets = introspect(build, "targets")
    tests = introspect(build, "tests")
    for test in tests:
        test["suites"] = [suite.split(":", 1)[1] for suite in test["suite"]]
    chosen, unknown = choose(tests, {target["filename"][0]: target for target in targets}, names, everything)
    if unknown:
        sys.exit(f"no test, suite or case has this name: {', '.join(unknown)} "
                 f"(`meson test -C {build} --list` lists tests; cases of long ones need --all)")
    wanted = {target for group in chosen.values() for test in group for target in test["depends"]}
    # Data that a script writes once.
    wanted |= {t["id"] for t in targets if t["type"] == "custom" and t["build_by_default"] and "/tests/" in t["defined_in"]}
    print("build", *sorted(os.path.relpath(t["filename"][0], build) for t in targets if t["id"] in wanted))
    for wanted_cases, group in chosen.items():
        print("run", wanted_cases, *dict.fromkeys(test["name"] for test in group))


if __name__ == "__main__":
    main()
