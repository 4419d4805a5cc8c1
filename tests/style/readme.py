#!/usr/bin/env python3
"""Checks what the README says against the project: `readme.py ROOT OP_TABLE_PROGRAM [--update]`.

The table of operations is the registry's (--update writes it), each command and each link to a file leads somewhere.
"""
import pathlib
import re
import subprocess
import sys

BEGIN, END = "<!-- operations: written by `ninja update-readme` -->\n", "<!-- end of operations -->\n"


def links(text):
    """Targets of [text](target) and of pictures, without those on the network."""
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    return [t.split("#")[0] for t in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"[a-z]+:|#", t)]


def main():
    root = pathlib.Path(sys.argv[1])
    registry = subprocess.run([sys.argv[2]], check=False, capture_output=True, text=True)
    table = registry.stdout
    readme = root / "README.md"
    text = readme.read_text()
    findings = []
    if registry.returncode != 0:
        findings.append(f"kernels/: {registry.stderr.strip() or registry.returncode}")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        findings.append("README.md: the marks around the table of operations are not there once each")
    else:
        before, rest = text.split(BEGIN)
        stated, after = rest.split(END)
        if stated != table:
            if "--update" in sys.argv:
                readme.write_text(before + BEGIN + table + END + after)
            else:
                findings.append("README.md: the table of operations is not the registry's; run `ninja update-readme`")
    checked = 0
    for page in [*root.glob("*.md"), *root.glob("*/README.md"), *root.glob("docs/*.md")]:
        for target in links(page.read_text()):
            checked += 1
            if not (page.parent / target).exists():
                findings.append(f"{page.relative_to(root)}: the link to {target} leads nowhere")
    for finding in findings:
        print(finding)
    print(f"readme: checked {table.count(chr(10)) - 2} rows of operations and {checked} links: "
          f"{len(findings) or 'no'} finding{'s' if len(findings) != 1 else ''}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
