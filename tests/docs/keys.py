#!/usr/bin/env python3
"""Runs each row of docs/keys.md through the program and the element, and looks that its result is what the row says; and that the
tests that docs/statements.md names exist.

    keys.py ROOT      CLINFER_PROGRAM, GST_PLUGIN_PATH and OCL_ICD_VENDORS as in the environment
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

root = pathlib.Path(sys.argv[1])
model = root / "pipelines/models/ball.xml"
ROW = re.compile(r"^\|[^|]*\|[^|]*\| `([^`]+)` \| (accepted|refused|says|makes)(?:: `([^`]+)`)? \|$", re.M)


def by_program(settings):
    config = [word for setting in settings.split(",") for word in ("--config", setting)]
    return [os.environ["CLINFER_PROGRAM"], "bench", model, "--device", "CPU", "--seconds", "0.1", *config]


def by_element(settings):
    return ["gst-launch-1.0", "videotestsrc", "num-buffers=1", "!", "video/x-raw,width=320,height=240", "!", "clinfer",
            f"model={model}", "device=CPU", "first-tier=false", f"config={settings}", "!", "fakesink"]


def wrong(command, settings, result, what, cache):
    """What is not as the row says; None where all is."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, XDG_CACHE_HOME=cache)
        run = subprocess.run(command(settings.replace("FOLDER", folder)), env=environment, capture_output=True, text=True,
                             timeout=900)
        text = run.stdout + run.stderr
        if (run.returncode == 0) == (result == "refused"):
            return f"ended with {run.returncode}: {text}"
        if result in ("refused", "says") and what not in text:
            return f"does not say {what!r}: {text}"
        if result == "makes" and not list(pathlib.Path(folder).glob(what)):
            return f"makes no {what}: {[str(p) for p in pathlib.Path(folder).rglob('*')]}"
    return None


def check_precision():
    """The sentence about the numbers' type is the same wherever it is said."""
    source = (root / "kernels/base/precision_text.h").read_text(encoding="utf-8")
    sentence = " ".join("".join(re.findall(r'"([^"]*)"', source)).split())
    help_of = [[os.environ["CLINFER_PROGRAM"], "bench", "--help"], ["gst-inspect-1.0", "clinfer"],
               ["gst-inspect-1.0", "clinferfilter"]]
    places = {" ".join(map(str, command)): subprocess.run(command, capture_output=True, text=True, timeout=900).stdout
              for command in help_of}
    places |= {name: (root / name).read_text(encoding="utf-8") for name in ("docs/keys.md",)}
    for place, text in places.items():
        if sentence not in " ".join(text.split()):
            sys.exit(f"{place} does not say {sentence!r}")


def check_options():
    """The page has the options of the engine, which the program's help lists, and no others."""
    help_of = subprocess.run([os.environ["CLINFER_PROGRAM"], "bench", "--help"], capture_output=True, text=True, timeout=900)
    known = set(re.findall(r"^    ([A-Z0-9_]+)=VALUE  ", help_of.stdout, re.M))
    page = (root / "docs/keys.md").read_text(encoding="utf-8")
    stated = {re.sub(r"^(GPU_|CLDNN_)", "", key) for key in re.findall(r"^\| `([A-Z0-9_]+)` \(", page, re.M)}
    if known != stated or len(known) < 20:
        sys.exit(f"docs/keys.md and the options of the engine differ in {sorted(known ^ stated)}")


def check_timing():
    """docs/properties.md lists those properties of clinfer that take effect while it plays, by how they do."""
    text = subprocess.run(["gst-inspect-1.0", "clinfer"], capture_output=True, text=True, timeout=900).stdout
    flags = dict(re.findall(r"^  (\S+) +: .*\n +flags: (.*)$", text, re.M))
    playing = {name for name, words in flags.items() if "PLAYING" in words and "writable" in words}
    controllable = {name for name in playing if "controllable" in flags[name]}
    page = (root / "docs/properties.md").read_text(encoding="utf-8").split("## Changes while playing\n")[1].split("\n## ")[0]
    first, *others = [set(re.findall(r"`([a-z-]+)`", item.split(" take effect")[0]))
                      for item in page.split("- ") if " take effect" in item]
    if len(playing) < 10 or first != controllable or set().union(*others) != playing - controllable - {"model"}:
        sys.exit(f"docs/properties.md does not list {sorted(controllable)} and {sorted(playing - controllable - {'model'})}")


def check_tests_of_statements():
    """docs/statements.md names tests that exist: Suite.Case of GoogleTest, or a test of meson."""
    text = (root / "docs/statements.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\|.*\| ([^|]+) \|$", text, re.M)
    tests = {name for cell in cells if cell not in ("tests", "---", "none") for name in cell.split(", ")}
    sources = "".join(p.read_text(encoding="utf-8") for p in (root / "tests").rglob("*.cpp"))
    builds = "".join(p.read_text(encoding="utf-8") for p in (root / "tests").rglob("meson.build"))
    for name in sorted(tests):
        suite, _, case = name.partition(".")
        found = (re.search(rf"^TEST(_F|_P)?\({suite}, {case}\)", sources, re.M) if case
                 else f"test('{suite}'" in builds)
        if not found:
            sys.exit(f"docs/statements.md names {name}, which is no test")
    if len(tests) < 40:
        sys.exit(f"docs/statements.md names {len(tests)} tests only")


def main():
    check_precision()
    check_options()
    check_timing()
    check_tests_of_statements()
    rows = ROW.findall((root / "docs/keys.md").read_text(encoding="utf-8"))
    failed = 0
    with tempfile.TemporaryDirectory() as cache:
        for settings, result, what in rows:
            for command in (by_program, by_element):
                why = wrong(command, settings, result, what, cache)
                print(f"{'FAIL' if why else 'ok  '} {command.__name__} {settings}{': ' + why if why else ''}", flush=True)
                failed += why is not None
    if failed or len(rows) < 30:
        sys.exit(f"{failed} failed of {len(rows)} rows")


if __name__ == "__main__":
    main()
