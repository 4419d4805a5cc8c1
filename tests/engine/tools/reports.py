#!/usr/bin/env python3
"""The pages of `bench --report` and `tune --report`: whole, with the numbers of --json, and names that try to end the script do not; with
--browser also in headless Chromium.

    reports.py CLINFER MODEL.xml [--browser] [--keep FOLDER]      OCL_ICD_VENDORS as in the environment; exit status 77 without a browser
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "gst/metrics"))
import chromium  # noqa: E402


def check(what, true):
    if not true:
        sys.exit(f"failed: {what}")


def run(*words):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=600, check=False)
    check(f"{words} ends with {done.returncode}: {done.stderr}", done.returncode == 0)
    return done.stdout


def data_of(path):
    """What the page holds; fails where it needs anything from elsewhere."""
    text = path.read_text()
    check("nothing from elsewhere", not re.search(r'(?:src|href)="https?:|@import|url\(', text))
    found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    check("one script of data, one of code", len(found) == 1 and text.count("</script>") == 2 and text.endswith("</html>\n"))
    return json.loads(found[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clinfer")
    parser.add_argument("model")
    parser.add_argument("--browser", action="store_true")
    parser.add_argument("--keep")
    options = parser.parse_args()
    if options.browser and chromium.program() is None:
        print("SKIPPED, there is no chromium (pipelines/install long)")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_CACHE_HOME"] = name
        folder = pathlib.Path(options.keep or name)
        # A model whose name and layer would end a script.
        evil = pathlib.Path(name, "a<", "script><b>.xml")
        evil.parent.mkdir()
        evil.write_text(pathlib.Path(options.model).read_text().replace('name="Relu_1"', 'name="&lt;/script&gt;&lt;img src=x&gt;"'))
        shutil.copy(pathlib.Path(options.model).with_suffix(".bin"), evil.with_suffix(".bin"))
        bench, tune = folder / "bench.html", folder / "tune.html"
        told = json.loads(run(options.clinfer, "bench", evil, "--seconds", "1", "--json", "--report", bench))
        page = data_of(bench)
        check("the kind", page["kind"] == "bench")
        for key, value in told.items():
            check(f"{key}: {page['data'][key]}, {value}", page["data"][key] == value)
        data = page["data"]
        check("latencies", data["inferences"] >= len(data["latencies"]) > 1 and data["latencies"] == sorted(data["latencies"]))
        check("p50 among them", data["latencies"][0] <= data["latency_ms"]["p50"] <= data["latencies"][-1])
        timed = [layer for layer in data["layers"] if layer["status"] == "EXECUTED"]
        check("layers are timed", timed and sum(layer["device_us"] + layer["host_us"] for layer in timed) > 0)
        check(f"work: {data['work']}", data["work"]["operations_per_image"] > 1e6 and data["work"]["tflops"] > 0)
        told = json.loads(run(options.clinfer, "tune", options.model, "--tuning-file", folder / "records.json", "--seconds", "1", "--json", "--report", tune))
        check("tune's page has what it tells", data_of(tune) == {"kind": "tune", "data": told})
        failed = subprocess.run([options.clinfer, "bench", options.model, "--seconds", "0.1", "--report", "/nowhere/x.html"], capture_output=True, text=True,
                                timeout=300, check=False)
        check("a page that cannot be written: " + failed.stderr, failed.returncode == 1 and "/nowhere/x.html" in failed.stderr)
        if options.browser:
            for file, parts in ((bench, ("script><b>.xml", "images a second", "Latency of", "Time by type", "Time by layer", "Convolution")),
                                (tune, ("ball.xml", "ms untuned", "Whole network", "Layers: untuned"))):
                for kind, size, phone in (("wide", (1100, 900), False), ("phone", (390, 844), True)):
                    view = chromium.Page(file.as_uri(), size, phone)
                    try:
                        check(f"{file.name} is drawn", view.wait_for("document.querySelectorAll('section').length > 2"))
                        text = view.evaluate("document.body.innerText")
                        for part in parts:
                            check(f"{part!r} in {text}", part in text)
                        check("no picture out of a name", view.evaluate("document.images.length") == 0)
                        check(f"{kind}: nothing reaches beyond the page", view.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))
                        view.screenshot(folder / f"{file.stem}-{kind}.png")
                        check(f"no errors: {view.problems}", not view.problems)
                    finally:
                        view.close()
    print("ok")


if __name__ == "__main__":
    main()
