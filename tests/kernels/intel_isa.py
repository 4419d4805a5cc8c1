#!/usr/bin/env python3
"""Counts the instructions that Intel's compiler makes of layers, by kind, in the loop that does the work.

    intel_isa.py KERNELS_TEST [--devices skl,tgllp] [--layers Pointwise,Square,Depthwise,Product] [--assembly FOLDER]

The test program writes the programs of each layer (IntelLayers.* of convolution_subgroup_test.cpp) for the devices that it knows;
ocloc compiles and disassembles them. OCLOC names the compiler (ocloc; Debian 12: intel-opencl-icd, whose disassembler wants
the libiga64.so of libigc-dev; newer ones know mtl, arl-h, lnl and bmg, but neither skl nor icllp). Of each program the innermost
loop with the most multiply-adds counts.

slots: an instruction takes one for each register's width of its result (32 bytes, 64 on pvc, lnl and bmg), and at least one; a matrix
instruction takes its depth times the rows. cycles: slots, but two a row of a matrix instruction (one on those), which takes that long to compute.
multiply-adds: their share of the slots, and of the cycles. sends: messages to memory for 1,000 multiply-adds. moves, other: shares of
the slots.
"""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

OCLOC = os.environ.get("OCLOC", "ocloc")
LAYERS = {"Pointwise": "1x1 256->256 40x40", "Square": "3x3 64->64 72x72", "Depthwise": "depthwise 3x3 96 112x112",
          "Product": "64 rows x 512->512"}
BYTES = {"b": 1, "ub": 1, "w": 2, "uw": 2, "hf": 2, "bf": 2, "d": 4, "ud": 4, "f": 4, "q": 8, "uq": 8, "df": 8}
PRODUCTS = {"mad": 1, "mac": 1, "dp4a": 4}  # multiply-adds of a lane
MOVES = {"mov", "movi", "sel", "csel"}
SENDS = {"send", "sends", "sendc", "sendsc"}
IGNORED = {"sync", "nop", "illegal"}
INSTRUCTION = re.compile(r"^\s*(?:\([^)|]*\)\s*)?([a-z]\w*)((?:\.[\w.]+)*)\s+(?:\(\w+\)\s*)?\((\d+)\|M\d+\)(.*)")
JUMP = re.compile(r"^\s*(?:\([^)|]*\)\s*)?(?:while|jmpi|goto|brc|brd)\b")
LABEL = re.compile(r"\bL\d+\b")


def parse(text):
    """The instructions as (name, lanes, bytes of a result, (depth, rows, values in a word) of a matrix instruction or None), and the
    loops as ranges of them."""
    instructions, places, jumps = [], {}, []
    for line in text.splitlines():
        if label := re.match(r"\s*(L\d+):\s*$", line):
            places[label[1]] = len(instructions)
            continue
        if JUMP.match(line):  # it has two labels where lanes may part
            jumps += [(len(instructions), label) for label in LABEL.findall(line)]
        if found := INSTRUCTION.match(line):
            operands = found[4].split("//")[0]
            result = re.match(r"[^<]*<[^>]*>:(\w+)", operands)
            size = re.match(r"\.(\d)x(\d)", found[2])
            matrix = (int(size[1]), int(size[2]), 4 if ":b" in operands else 2) if size and found[1].startswith("dpas") else None
            instructions.append((found[1], int(found[3]), BYTES.get(result[1] if result else "ud", 4), matrix))
    loops = [(places[label], at + 1) for at, label in jumps if places.get(label, at + 1) <= at]
    return instructions, loops


class Count:
    """Slots of some instructions by kind."""

    def __init__(self, instructions, register):
        self.slots = collections.Counter()
        self.products = self.sends = 0
        self.faster = 0  # slots of matrix instructions, less their cycles
        for name, lanes, size, matrix in instructions:
            if name in IGNORED:
                continue
            slots = max(1, lanes * size / register)
            kind = "other"
            if matrix:
                depth, rows, values = matrix
                kind, slots = "products", depth * rows
                self.products += depth * rows * values * lanes
                self.faster += slots - rows * 64 // register
            elif PRODUCTS.get(name) and lanes > 1:
                kind = "products"
                self.products += PRODUCTS[name] * lanes
            elif name in SENDS:
                kind = "sends"
                self.sends += 1
                slots = 1
            elif name in MOVES:
                kind = "moves"
            self.slots[kind] += slots

    def share(self, kind):
        return 100 * self.slots[kind] / max(1, sum(self.slots.values()))

    def share_of_cycles(self):
        """Of the multiply-adds."""
        return 100 * (self.slots["products"] - self.faster) / max(1, sum(self.slots.values()) - self.faster)


def count_loop(text, device):
    """The loop of the most multiply-adds that has no other loop with half as many in it."""
    register = 64 if device in ("pvc", "lnl", "bmg") else 32
    instructions, loops = parse(text)
    counts = {loop: Count(instructions[slice(*loop)], register) for loop in loops}
    inner = [count for loop, count in counts.items()
             if not any(other != loop and loop[0] <= other[0] and other[1] <= loop[1] and counts[other].products * 4 > count.products
                        for other in loops)]
    best = max(inner, key=lambda count: (count.products, count.share("products")), default=None)
    return best if best and best.products else Count(instructions, register)


def run(*arguments):
    return subprocess.run([OCLOC, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def row(source, keep):
    """A line of the table for one program."""
    device = source.parent.parent.name
    title = source.read_text().rstrip().splitlines()[-1].removeprefix("// ")
    with tempfile.TemporaryDirectory() as folder:
        options = (source.parent / "options").read_text()
        made = run("compile", "-file", source, "-device", device, "-options", options, "-out_dir", folder)
        binary = next(pathlib.Path(folder).glob("*.bin"), None)
        if made.returncode or binary is None:
            return f"| {device} | {title} | does not compile |"
        run("disasm", "-file", binary, "-device", device, "-dump", pathlib.Path(folder) / "dump")
        text = next((pathlib.Path(folder) / "dump").glob("*.asm")).read_text()
    if keep:
        (keep / f"{device}-{source.stem}.asm").write_text(text)
    count = count_loop(text, device)
    sends = 1000 * count.sends / max(1, count.products)
    return (f"| {device} | {title} | {sum(count.slots.values()):.0f} | {count.share('products'):.1f} % | "
            f"{count.share_of_cycles():.1f} % | {sends:.2f} | "
            f"{count.share('moves'):.1f} % | {count.share('other'):.1f} % |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("test")
    parser.add_argument("--devices", default="skl,icllp,tgllp,dg2,pvc")
    parser.add_argument("--layers", default=",".join(LAYERS))
    parser.add_argument("--assembly", type=pathlib.Path)
    arguments = parser.parse_args()
    for layer in arguments.layers.split(","):
        print(f"\n{LAYERS[layer]}\n\n| device | program | slots | multiply-adds | of the cycles | sends | moves | other |\n"
              "| --- | --- | --- | --- | --- | --- | --- | --- |")
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([arguments.test, "--gtest_brief=1", f"--gtest_filter=IntelLayers.{layer}"], stdout=subprocess.DEVNULL,
                           env={**os.environ, "CLINFER_KERNEL_SOURCES": folder}, check=True)
            for device in arguments.devices.split(","):
                for source in sorted(pathlib.Path(folder, device, "default").glob("*.cl")):
                    print(row(source, arguments.assembly), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
