"""Runs each code block of docs/ that is marked `sh`, and looks for each message of the troubleshooting page in the sources."""
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(sys.argv[1])
failures = []

for page in sorted((root / 'docs').glob('*.md')):
    for number, block in enumerate(re.findall(r'^```sh\n(.*?)^```', page.read_text(), re.M | re.S), 1):
        run = subprocess.run(['bash', '-e', '-o', 'pipefail', '-c', block], cwd=root, capture_output=True, text=True, timeout=600)
        print(f'{page.name}: block {number}: {run.returncode}')
        if run.returncode != 0 or 'ERROR' in run.stderr:
            failures.append(f'{page.name}, block {number}:\n{block}{run.stdout[-2000:]}{run.stderr[-2000:]}')

sources = ''
for folder in ('gst', 'engine', 'kernels'):
    for path in sorted((root / folder).rglob('*.cpp')):
        sources += path.read_text()
sources = re.sub(r'"\s*\n\s*"', '', sources)  # adjacent literals are one text
table = (root / 'docs' / 'troubleshooting.md').read_text()
messages = [line.split('|')[1].strip().strip('`') for line in table.splitlines() if line.startswith('| `')]
if not messages:
    failures.append('troubleshooting.md lists no messages')
for message in messages:
    if message not in sources:
        failures.append(f'troubleshooting.md: no source has the message "{message}"')

print('\n'.join(failures) or f'{len(messages)} messages found')
sys.exit(1 if failures else 0)
