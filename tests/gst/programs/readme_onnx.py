#!/usr/bin/env python3
"""Runs the README's lines that make an ONNX model and run it, and checks what they print.

    readme_onnx.py      GST_PLUGIN_PATH as in the environment

Skipped (exit status 77) where neither the Python that CLINFER_PYTHON names nor the system's has the package onnx.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parents[3]
candidates = [p for p in (os.environ.get('CLINFER_PYTHON'), 'python3') if p]
python = next((p for p in candidates if subprocess.run([p, '-c', 'import onnx'], capture_output=True, check=False).returncode == 0), None)
if python is None:
    print('no Python with onnx')
    sys.exit(77)

blocks = re.findall(r'^```\n(.*?)^```', (root / 'README.md').read_text(), re.M | re.S)
block = next(b for b in blocks if 'colours.py' in b)
commands = block.replace('python3 pipelines/', f'{python} {root}/pipelines/')
with tempfile.TemporaryDirectory() as folder:
    run = subprocess.run(['sh', '-e', '-c', commands], cwd=folder, capture_output=True, text=True, timeout=600, check=False)
print(run.stdout, run.stderr)
lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith('{')]
found = [value['label'] for line in lines for item in line['objects'] for value in item.values() if isinstance(value, dict) and 'label' in value]
if run.returncode or 'ERROR' in run.stderr or found != ['blue'] * 3:
    print(f'status {run.returncode}, labels {found}; right are three times blue')
    sys.exit(1)
