#!/usr/bin/env python3
"""Runs the commands of the program with --json: stdout is JSON alone, and says what the text says.

    json_output.py CLINFER MODEL      OCL_ICD_VENDORS as in the environment
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAM, MODEL = sys.argv[1:]
FAST = ["--seconds", "0.2"]


def text_of(*words):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def json_of(*words):
    text = text_of(*words, "--json")
    if text.count("\n") != 1:
        sys.exit(f"{' '.join(words)} --json prints {text.count(chr(10))} lines: {text[:400]}")
    return json.loads(text)


def expect(name, found, wanted):
    if found != wanted:
        sys.exit(f"{name}: {found!r}, but the text says {wanted!r}")
    print(f"ok   {name}: {found!r}")


def refuse(part, *words):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=300)
    if done.returncode == 0 or part not in done.stderr or done.stdout:
        sys.exit(f"{' '.join(words)}: {done.returncode}, {done.stdout}{done.stderr}")
    print(f"ok   refused: {done.stderr.strip()}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        devices = json_of("devices")["devices"]
        expect("devices", [d["id"] for d in devices], re.findall(r"^((?:CPU|GPU)\.\d+)", text_of("devices"), re.M))

        drawing, graph = text_of("graph", MODEL), json_of("graph", MODEL)
        on_device = [layer for layer in graph["layers"] if layer["runs"] == "device"]
        expect("layers with a kernel", len(on_device), drawing.count("kernel: ") - drawing.count("no kernel: "))
        expect("their kernels are drawn", [layer["layer"] for layer in on_device if layer["kernel"] not in drawing], [])
        expect("a fused layer", "Relu_1" in [name for layer in on_device for name in layer["fused"]], True)
        expect("reasons of the others", [layer for layer in graph["layers"] if bool(layer["reason"]) == bool(layer["kernel"])], [])
        file = pathlib.Path(folder, "graph.json")
        text_of("graph", MODEL, "--json", "-o", str(file))
        expect("the same in a file", json.loads(file.read_text()) == graph, True)
        refuse("leave out --after", "graph", MODEL, "--json", "--after", "read")

        words, heads = text_of("heads", MODEL), json_of("heads", MODEL)
        expect("head", f"{heads['head']}: {heads['reason']}", re.search(r"^head (.*)$", words, re.M)[1])
        expect("heads considered", len(heads["considered"]), words.partition("\nhead ")[2].partition("\nfacts\n")[0].count("\n  "))
        expect("facts", len(heads["facts"]), len(words.partition("\nfacts\n")[2].partition("\nwarning")[0].strip().splitlines()))
        expect("picture", [i["shape"] for i in heads["inputs"] if i["fed"] == "picture"], [[1, 3, 192, 256]])

        records = str(pathlib.Path(folder, "records.json"))
        tuned = json_of("tune", MODEL, "--tuning-file", records, *FAST)
        expect("the tuning file", tuned["file"], records)
        expect("it was measured", tuned["measured"] > 0 and tuned["rounds"] > 0 and tuned["gain"] > 0, True)
        expect("the layers", len([layer for layer in tuned["layers"] if layer["from"] == "measured"]), tuned["measured"])
        check = json_of("tune", MODEL, "--tuning-file", records, "--check")
        numbers = re.search(r"records for (\d+) of (\d+) problems of (\d+) layers", text_of("tune", MODEL, "--tuning-file", records, "--check"))
        expect("records", [check[k] for k in ("with_record", "problems", "layers")], [int(n) for n in numbers.groups()])

        bench = json_of("bench", MODEL, *FAST, "--perf-count")
        expect("bench", bench["images_per_second"] > 0 and len(bench["layers"]) > 0, True)


if __name__ == "__main__":
    main()
