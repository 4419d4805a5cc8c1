"""Runs each block of code in docs/ (sh, c, cpp, python; json is parsed) and the whole launch lines of pipelines/README.md, and looks for each
message of the troubleshooting page in the sources."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

root = pathlib.Path(sys.argv[1])
failures = []

# Commands of the pages find the program as if it were installed.
environment = dict(os.environ)
if program := os.environ.get('CLINFER_PROGRAM'):
    environment['PATH'] = f'{pathlib.Path(program).parent}:{environment["PATH"]}'
library = pathlib.Path(os.environ['CLINFER_LIBRARY'])
environment['LD_LIBRARY_PATH'] = f'{library.parent}:{environment.get("LD_LIBRARY_PATH", "")}'
environment['PYTHONPATH'] = str(root / 'engine/library/python')
environment['PYTHONDONTWRITEBYTECODE'] = '1'


def gi_python():
    """A Python that has GStreamer's bindings; None without."""
    for python in (sys.executable, shutil.which('python3'), '/usr/bin/python3'):
        if python and subprocess.run([python, '-c', 'import gi; gi.require_version("Gst", "1.0"); from gi.repository import Gst'],
                                     capture_output=True).returncode == 0:
            return python
    return None


def compiled(language, source, folder):
    compiler = os.environ.get('CC', 'cc').split() if language == 'c' else os.environ.get('CXX', 'c++').split()
    path = pathlib.Path(folder) / f'block.{language}'
    path.write_text(source)
    warnings = ['-Wall', '-Wextra', '-Werror']
    if '#include <clinfer/' in source:  # the headers as they are installed
        (pathlib.Path(folder) / 'clinfer').symlink_to(library.parent / 'library/clinfer')
        standard = ['-std=c11'] if language == 'c' else ['-std=c++20']
        return [*compiler, *standard, *warnings, f'-I{folder}', str(path), '-o', f'{folder}/block',
                str(library)]
    flags = subprocess.run(['pkg-config', '--cflags', '--libs', 'gstreamer-1.0', 'gstreamer-video-1.0'], capture_output=True, text=True,
                           check=True).stdout.split()
    return [*compiler, *([] if language == 'c' else ['-std=c++17']), *warnings, str(path), '-o', f'{folder}/block', *flags]


def run_block(language, block, folder):
    """Commands to run in a row; a text: why the block is skipped."""
    if language == 'sh':
        return [['bash', '-e', '-o', 'pipefail', '-c', block]]
    if language in ('c', 'cpp'):
        return [compiled(language, block, folder), [f'{folder}/block']]
    if language == 'python' and 'gi.repository' not in block:
        return [[sys.executable, '-c', block]]
    if language == 'python':
        python = gi_python()
        return [[python, '-c', block]] if python else 'python3-gst-1.0 is not installed'
    raise ValueError(f'a block is marked "{language}": mark it sh, c, cpp or python, which are run, json, which is parsed, or text: lines '
                     'that need what is not here, of which the properties are looked up')


def unknown_properties(text):
    """Properties of our elements in launch lines that those do not have."""
    unknown = []
    for element, settings in re.findall(r'! (cl(?:infer|inferfilter|track|zones|crop|overlay|publish|metrics|watch))((?:\s+[\w-]+=(?:"[^"]*"|\S+))*)', text):
        known = subprocess.run(['gst-inspect-1.0', element], capture_output=True, text=True, timeout=60).stdout
        unknown += [f'{element} {name}' for name in re.findall(r'([\w-]+)=', re.sub(r'=("[^"]*"|\S+)', '= ', settings))
                    if not re.search(rf'^  {name} +:', known, re.M)]
    return unknown


def standing_in(line):
    """A launch line of pipelines/README.md, with the bundled model and a test video for what a user has."""
    source = 'videotestsrc pattern=ball num-buffers=10 ! video/x-raw,width=320,height=240,framerate=30/1'
    for what, instead in ((r'(filesrc location=in\.mp4|rtspsrc location=\S+) ! decodebin', source), (r'v4l2src( device=\S+)?', source),
                          (r'model=[\w-]+\.xml', f'model={root}/pipelines/models/ball.xml'), (r'labels-file=\S+', ''),
                          (r'autovideosink( sync=false)?', 'fakesink'), (r'file-path=\S+', 'file-path=/dev/null'),
                          (r'method=mqtt address=broker topic=\S+ (source=\S+) queue-dir=queue', r'file-path=/dev/null \1'), (r' \| .*', ' >/dev/null')):
        line = re.sub(what, instead, line)
    return line


lines = (root / 'pipelines/README.md').read_text()
for number, block in enumerate(re.findall(r'^```\n(.*?)^```', lines, re.M | re.S), 1):
    where = f'pipelines/README.md, block {number}'
    if unknown := unknown_properties(block):
        failures.append(f'{where}: no such property: {", ".join(unknown)}')
    for line in block.replace('\\\n', ' ').splitlines():
        if not line.startswith('gst-launch-1.0') or '...' in line:
            continue
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run(['bash', '-e', '-o', 'pipefail', '-c', standing_in(line)], cwd=folder, capture_output=True, text=True, timeout=600,
                                 env=environment)
        if run.returncode != 0 or 'ERROR' in run.stderr:
            failures.append(f'{where}:\n{standing_in(line)}\n{run.stdout[-2000:]}{run.stderr[-2000:]}')
        print(f'{where}: {line[:100]}: {run.returncode}', flush=True)

for page in sorted((root / 'docs').glob('*.md')):
    for number, (language, block) in enumerate(re.findall(r'^```(\w*)\n(.*?)^```', page.read_text(), re.M | re.S), 1):
        where = f'{page.name}, block {number}'
        try:
            if language == 'json':
                json.loads(block)
                print(f'{where}: JSON')
                continue
            if language == 'text':
                if unknown := unknown_properties(block):
                    failures.append(f'{where}: no such property: {", ".join(unknown)}')
                print(f'{where}: text')
                continue
            with tempfile.TemporaryDirectory() as folder:
                commands = run_block(language, block, folder)
                if isinstance(commands, str):
                    print(f'{where}: skipped, {commands}')
                    continue
                for command in commands:
                    run = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=600, env=environment)
                    if run.returncode != 0 or 'ERROR' in run.stderr:
                        failures.append(f'{where}:\n{block}{run.stdout[-2000:]}{run.stderr[-2000:]}')
                        break
                print(f'{where}: {language}: {run.returncode}')
        except ValueError as error:
            failures.append(f'{where}: {error}')

# Each page is in the guide's table.
guide = (root / 'docs' / 'README.md').read_text()
for page in sorted((root / 'docs').glob('*.md')):
    if page.name != 'README.md' and f']({page.name})' not in guide:
        failures.append(f'docs/README.md does not name {page.name}')

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
