#!/usr/bin/env python3
"""Checks what the READMEs say against the project: `readme.py ROOT OP_TABLE_PROGRAM CONVENTIONS_TABLE_PROGRAM
[ONNX_PLANS_PROGRAM] [--update]`.

The tables of operations are the registry's and that of conventions is the code's (--update writes them), docs/onnx.md names each ONNX operation, each link to a file leads
somewhere.
"""
import pathlib
import re
import subprocess
import sys

MARKS = ["<!-- operations: written by `ninja update-readme` -->\n", "<!-- end of operations -->\n"]
ONNX_MARKS = ["<!-- onnx operations: written by `ninja update-readme` -->\n", "<!-- end of onnx operations -->\n"]

CONVENTION_MARKS = ["<!-- conventions: written by `ninja update-readme` -->\n", "<!-- end of conventions -->\n"]


def links(text):
    """Targets of [text](target) and of pictures, without those on the network."""
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    return [t.split("#")[0] for t in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"[a-z]+:|#", t)]


def main():
    root = pathlib.Path(sys.argv[1])
    programs = [word for word in sys.argv[2:] if word != "--update"]
    tables = [("docs/operations.md", MARKS, programs[:1]), ("kernels/README.md", MARKS, [programs[0], "host"]), ("docs/heads.md", CONVENTION_MARKS, programs[1:2])]
    tables += [("docs/operations.md", ONNX_MARKS, [programs[2], "--operations"])] if len(programs) > 2 else []  # built with ONNX
    findings, rows = [], 0
    for name, (begin, end), command in tables:
        registry = subprocess.run(command, check=False, capture_output=True, text=True)
        table = registry.stdout
        rows += max(table.count("\n") - 2, 1)
        page = root / name
        text = page.read_text()
        if registry.returncode != 0:
            findings.append(f"kernels/: {registry.stderr.strip() or registry.returncode}")
        if text.count(begin) != 1 or text.count(end) != 1:
            findings.append(f"{name}: the marks {begin.strip()} and {end.strip()} are not there once each")
            continue
        before, rest = text.split(begin)
        stated, after = rest.split(end)
        if stated == table:
            continue
        if "--update" in sys.argv:
            page.write_text(before + begin + table + end + after)
        else:
            findings.append(f"{name}: the table below {begin.strip()} is not the code's; run `ninja update-readme`")
    if len(programs) > 2:
        listed = re.findall(r"\w+", subprocess.run([programs[2], "--operations"], check=False, capture_output=True, text=True).stdout)
        page = (root / "docs/onnx.md").read_text()
        for name in sorted(set(listed) - set(re.findall(r"\w+", page)) - {"of", "com", "microsoft"}):
            findings.append(f"docs/onnx.md: the operation {name} is missing")
    checked = 0
    for page in [*root.glob("*.md"), *root.glob("*/README.md"), *root.glob("docs/*.md")]:
        for target in links(page.read_text()):
            checked += 1
            if not (page.parent / target).exists():
                findings.append(f"{page.relative_to(root)}: the link to {target} leads nowhere")
    for finding in findings:
        print(finding)
    print(f"readme: checked {rows} rows of operations and {checked} links: "
          f"{len(findings) or 'no'} finding{'s' if len(findings) != 1 else ''}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
