#!/usr/bin/env python3
"""Checks of the source text: `check.py CHECK ROOT [BUILD]` prints each finding as file:line and exits with 1 if there is any.

layers   which folder includes what (the table RULES below)
text     blanks at line ends, tabs, last newline, long files, crowded folders, rulers without heading, words that mark unfinished work, numbers by locale
ops      each word in kernels/meson.build has its source and its test
prose    comments and documents whose subject is a bare clause ("What is measured ...", "Who waits ...", "The same ...")
commits  subjects of the commits from COMMITS_SINCE on: `area: imperative`, at most 72 characters (77: no git history)
headers  each header compiles alone (needs a configured build folder, for the flags)
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import unity  # noqa: E402

FOLDERS = ("kernels", "tuning", "engine", "gst", "pipelines", "tests", "docs")
SOURCES = (".h", ".cpp", ".cl")
TEXTS = SOURCES + (".py", ".md", ".sh", ".build", ".txt", ".supp", ".dict", ".map", ".toml", ".json")
MAX_LINES = 800
MAX_SOURCES = 25  # of one folder

# The engine's face: engine.h, and the plain headers that it includes and thereby hands on.
PUBLIC = ["engine/engine.h", "kernels/base/", "kernels/frames/clip.h", "kernels/frames/frame.h", "kernels/frames/preprocess.h"]
# Folder -> what its files may include of the project's own. The longest matching folder counts.
RULES = {
    "kernels": ["kernels/"],
    "kernels/base": ["kernels/base/"],
    "tuning": ["kernels/", "tuning/"],
    "engine": ["kernels/", "tuning/", "engine/"],
    "engine/compile": ["kernels/", "engine/engine.h", "engine/opencl.h", "engine/query.h", "engine/graph/", "engine/passes/", "engine/plan/", "engine/ocl/",
                       "engine/cuda/", "engine/host/", "engine/runtime/", "engine/measure/", "engine/devices/", "engine/compile/"],
    "engine/cuda": ["kernels/base/", "engine/cuda/"],
    "engine/devices": ["kernels/", "engine/engine.h", "engine/graph/", "engine/plan/", "engine/runtime/", "engine/devices/"],
    "engine/graph": ["kernels/", "engine/graph/"],
    "engine/heads": PUBLIC + ["engine/heads/"],
    "engine/host": ["kernels/", "engine/engine.h", "engine/graph/", "engine/passes/", "engine/plan/", "engine/runtime/", "engine/host/"],
    "engine/library": ["kernels/base/", "kernels/frames/frame.h", "engine/engine.h", "engine/opencl.h", "engine/async.h", "engine/query.h", "engine/library/"],
    "engine/measure": ["kernels/", "tuning/", "engine/engine.h", "engine/graph/", "engine/passes/", "engine/plan/", "engine/ocl/",
                       "engine/runtime/", "engine/measure/"],
    "engine/ocl": ["kernels/", "engine/engine.h", "engine/power.h", "engine/ocl/"],
    "engine/ir": ["kernels/", "engine/engine.h", "engine/graph/", "engine/ir/"],
    "engine/onnx": ["kernels/", "engine/engine.h", "engine/graph/", "engine/ir/", "engine/onnx/"],
    "engine/passes": ["kernels/", "engine/engine.h", "engine/graph/", "engine/passes/"],
    "engine/plan": ["kernels/", "tuning/", "engine/graph/", "engine/passes/", "engine/plan/"],
    "engine/runtime": ["kernels/", "engine/engine.h", "engine/graph/", "engine/ir/", "engine/onnx/", "engine/plan/", "engine/ocl/",
                       "engine/cuda/", "engine/runtime/"],
    "engine/runtime/frames": ["kernels/", "engine/engine.h", "engine/ocl/", "engine/runtime/frames/"],
    "engine/runtime/network": ["kernels/", "engine/engine.h", "engine/plan/", "engine/ocl/", "engine/cuda/", "engine/runtime/frames/", "engine/runtime/network/"],
    "engine/runtime/requests": ["kernels/", "engine/engine.h", "engine/graph/", "engine/plan/", "engine/ocl/", "engine/runtime/frames/",
                                "engine/runtime/network/", "engine/runtime/run/", "engine/runtime/requests/"],
    "engine/runtime/run": ["kernels/", "engine/engine.h", "engine/plan/", "engine/ocl/", "engine/cuda/", "engine/runtime/frames/",
                           "engine/runtime/network/", "engine/runtime/run/"],
    "engine/verify": ["kernels/", "engine/engine.h", "engine/verify.h", "engine/graph/", "engine/plan/", "engine/host/", "engine/runtime/",
                      "engine/compile/", "engine/verify/"],
    "gst": PUBLIC + ["engine/power.h", "engine/verify.h", "engine/heads/", "gst/"],
    "gst/base": PUBLIC + ["gst/base/"],
    "tests": ["kernels/", "tuning/", "engine/", "gst/", "tests/"],
    "pipelines": PUBLIC + ["pipelines/"],
}
# Library header -> where alone it may be included. A leading "*" stands for .cpp files only.
LIBRARIES = {
    r"pugixml": ["engine/ir/", "tests/"],
    r"(google/protobuf|onnx\.pb)": ["engine/onnx/", "tests/"],
    r"CL/": ["engine/measure/", "engine/ocl/", "engine/opencl.h", "engine/runtime/", "pipelines/examples/", "tests/"],
    r"yaml-cpp/": ["*engine/heads/"],
    r"libsoup/": ["gst/metrics/"],
    r"json-glib/": ["*tuning/", "*engine/heads/", "*gst/", "*tests/"],
    r"(gst/|glib|gio/|gmodule|gobject/|cairo|pango|va/)": ["gst/", "pipelines/examples/", "tests/gst/", "tests/rig/"],
    r"(gtest|gmock)/": ["tests/"],
}
HEADLESS = re.compile(r"(What|Who|Whatever|Whoever|Those (that|who)|All (that|who)|Nothing (that|who)|The same)\b(?!.*\?$)")
# Words that open a subject and are no imperative, besides those that their ending tells.
NO_VERBS = set("a an the what who how why when where which that this these those it its one two no not all any each every some more "
               "less most of in on at by for from with without to as and or but if is are was were has have had does did can may "
               "must will would should new old only also fewer faster slower".split())
VERBS_LIKE_OTHERS = set("address bring bypass compress cross discuss embed exceed express feed focus guess miss need pass press "
                        "proceed process seed speed string suppress swing weed".split())
LONGEST_SUBJECT = 72
COMMITS_SINCE = "2026-11-26T12:10:00Z"  # earlier ones are as they are
# In a German application these read "0.5" as 0 and write 1234 as "1.234".
BY_LOCALE = re.compile(r"\b(strto(d|f|ld)|atof|sto(d|f|ld)|(?<!public std::)ostringstream|stringstream)\b")
PRODUCT = ("kernels", "tuning", "engine", "gst")
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" * 3, "HA" + "CK"]) + r")\b")


def files(root, suffixes):
    """Files of the project below root, as paths relative to it."""
    for path in sorted(root.iterdir()):
        if path.is_file() and path.suffix in suffixes:
            yield path.relative_to(root)
    for folder in FOLDERS:
        for base, folders, names in os.walk(root / folder):
            folders[:] = sorted(f for f in folders if not f.startswith((".", "build")) and f != "__pycache__")
            for name in sorted(names):
                path = pathlib.Path(base, name)
                if path.suffix in suffixes or (path.suffix == "" and TEXTS is suffixes and is_script(path)):
                    yield path.relative_to(root)


def is_script(path):
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def includes(text):
    """(line number, "name" or <name>) of each #include."""
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(r'\s*#\s*include\s*([<"][^>"]+)', line)
        if found:
            yield number, found.group(1)


def check_layers(root):
    findings, seen, count = [], 0, 0
    arrows = {}  # (folder, folder that it includes): place of one include
    for path in files(root, SOURCES):
        seen += 1
        name = path.as_posix()
        folder = next((f.as_posix() for f in path.parents if f.as_posix() in RULES), "")
        for number, include in includes((root / path).read_text()):
            count += 1
            quoted, target = include[0] == '"', include[1:]
            where = f"{name}:{number}"
            ours = quoted or (root / target).is_file()
            if ours:
                if not (root / target).is_file():
                    findings.append(f'{where}: "{target}" is no file; paths start at the root of the project')
                elif not any(target == rule or (rule.endswith("/") and target.startswith(rule))
                             for rule in RULES.get(folder, [])):
                    findings.append(f'{where}: {folder}/ may not include "{target}"; it may: {", ".join(RULES.get(folder, []))}')
                elif (arrow := (path.parent.as_posix(), pathlib.PurePosixPath(target).parent.as_posix())) and arrow[0] != arrow[1]:
                    arrows.setdefault(arrow, where)
                continue
            for library, places in LIBRARIES.items():
                if re.match(library, target) and not any(allowed(name, place) for place in places):
                    findings.append(f"{where}: <{target}> belongs in {', '.join(places)} (*: .cpp files only)")
    findings += circles(arrows)
    return findings, f"{count} includes in {seen} files, {len(arrows)} arrows between folders"


def circles(arrows):
    """A finding for each arrow between folders that is part of a circle."""
    targets = {}
    for start, end in arrows:
        targets.setdefault(start, set()).add(end)

    def way(start, end):
        """The shortest way from start to end; None: there is none."""
        ways = [[start]]
        known = {start}
        for known_way in ways:
            if known_way[-1] == end:
                return known_way
            for folder in sorted(targets.get(known_way[-1], set()) - known):
                known.add(folder)
                ways.append(known_way + [folder])
        return None

    return [f"{where}: folders include each other in a circle: {' -> '.join([start] + back)}"
            for (start, end), where in sorted(arrows.items()) if (back := way(end, start))]


def allowed(name, place):
    if place.startswith("*"):
        return name.endswith(".cpp") and name.startswith(place[1:])
    return name.startswith(place)


def check_text(root):
    findings, seen = [], 0
    sources = collections.Counter()
    for path in files(root, TEXTS):
        seen += 1
        name = path.as_posix()
        try:
            text = (root / path).read_bytes().decode()
        except UnicodeDecodeError as error:
            findings.append(f"{name}: is not UTF-8 ({error})")
            continue
        if text and not text.endswith("\n"):
            findings.append(f"{name}: the last line has no end")
        if text.endswith("\n\n"):
            findings.append(f"{name}: blank lines at the end")
        lines = text.split("\n")[:-1]
        for number, line in enumerate(lines, 1):
            if line.rstrip("\r") != line.rstrip():
                findings.append(f"{name}:{number}: blanks at the end of the line")
            if "\t" in line:
                findings.append(f"{name}:{number}: a tab")
            if "\r" in line:
                findings.append(f"{name}:{number}: a carriage return")
            if path.suffix in SOURCES and re.fullmatch(r"\s*//\s*-+", line):
                findings.append(f"{name}:{number}: a ruler on a line of its own; it belongs to its heading: // ---- heading ----")
            if path.suffix in SOURCES and path.parts[0] in PRODUCT and BY_LOCALE.search(line.partition("//")[0]):
                findings.append(f"{name}:{number}: depends on the application's locale; kernels/base/numbers.h has what does not")
            if UNFINISHED.search(line):
                findings.append(f"{name}:{number}: a mark of unfinished work: {line.strip()}")
        if path.suffix in SOURCES:
            sources[path.parent.as_posix()] += 1
            if len(lines) > MAX_LINES:
                findings.append(f"{name}: {len(lines)} lines; {MAX_LINES} are the limit, split it by what it does")
            if not lines or not lines[0].startswith("//"):
                findings.append(f"{name}:1: does not open with a comment that says what it is for")
            if path.suffix == ".h" and "#pragma once" not in lines:
                findings.append(f"{name}: lacks #pragma once")
    findings += [f"{folder}: {count} sources; {MAX_SOURCES} are the limit, give it rooms by subject"
                 for folder, count in sorted(sources.items()) if count > MAX_SOURCES]
    return findings, f"{seen} files"


def op_words(root):
    text = re.sub(r"#.*", "", (root / "kernels/meson.build").read_text())
    found = re.search(r"\bops\s*=\s*\[(.*?)\]", text, re.S)
    return re.findall(r"'([^']+)'", found.group(1)) if found else []


def check_ops(root):
    findings = []
    words = op_words(root)
    if not words:
        findings.append("kernels/meson.build: no list of operations found")
    for word in words:
        for path in (f"kernels/{word}.cpp", f"tests/kernels/{word}_test.cpp"):
            if not (root / path).is_file():
                findings.append(f"kernels/meson.build: '{word}' needs {path}")
            elif "_test" in path and "TEST" not in (root / path).read_text():
                findings.append(f"{path}: holds no test")
    for word in sorted(set(words)):
        if words.count(word) > 1:
            findings.append(f"kernels/meson.build: '{word}' is there twice")
    return findings, f"{len(words)} operations"


def comments(text):
    """(line number, text) of each run of // comment lines, and of each comment after code."""
    start, run = 0, []
    for number, line in enumerate(text.splitlines() + [""], 1):
        whole = re.match(r"\s*//+ ?(.*)", line)
        if whole:
            start = start if run else number
            run.append(whole.group(1))
            continue
        if run:
            yield start, " ".join(run)
            run = []
        trailing = re.match(r'(?:[^"/]|"(?:[^"\\]|\\.)*"|/(?!/))*//+ (.*)', line)
        if trailing:
            yield number, trailing.group(1)


def script_comments(text):
    """(line number, text) of each run of # comment lines."""
    start, run = 0, []
    for number, line in enumerate(text.splitlines() + [""], 1):
        if re.match(r"\s*#(?!!)", line):
            start = start if run else number
            run.append(line.strip()[1:].strip())
        elif run:
            yield start, " ".join(run)
            run = []


def paragraphs(text):
    """(line number, text) of each paragraph, heading, list item and table cell outside of code blocks."""
    start, run, code = 0, [], False
    for number, line in enumerate(text.splitlines() + [""], 1):
        fence = line.strip().startswith("```")
        code ^= fence
        opens = re.match(r"\s*([-*#|]|\d+\.)", line)
        if run and (opens or fence or code or not line.strip()):
            for cell in " ".join(run).split("|"):
                yield start, cell.lstrip("-*#. 0123456789")
            run = []
        if line.strip() and not fence and not code:
            start = start if run else number
            run.append(line.strip())


def check_prose(root):
    findings, seen = [], 0
    readers = {**{suffix: comments for suffix in SOURCES}, ".py": script_comments, ".build": script_comments, ".md": paragraphs}
    for path in files(root, tuple(readers)):
        seen += 1
        for number, comment in readers[path.suffix]((root / path).read_text()):
            for sentence in re.split(r"(?<=[.:;])\s+", comment):
                if HEADLESS.match(sentence):
                    findings.append(f'{path.as_posix()}:{number}: say what it is or does, with a noun or verb: "{sentence[:60]}"')
    return findings, f"{seen} files"


def subject_problem(subject):
    """Why a commit's subject breaks the rules, or None."""
    if len(subject) > LONGEST_SUBJECT:
        return f"{len(subject)} characters, {LONGEST_SUBJECT} are the limit"
    found = re.match(r"[a-z][a-z0-9/, _-]*: ([A-Za-z][\w'-]*)", subject)
    if not found:
        return "not of the form `area: imperative`"
    word = found.group(1).lower()
    if word in VERBS_LIKE_OTHERS:
        return None
    if word in NO_VERBS or re.search(r"(ed|ing|[^s]s)$", word):
        return f'"{word}" is no imperative'
    return None


def check_commits(root):
    """None without git's history."""
    done = subprocess.run(["git", "-C", str(root), "log", "--no-merges", "--since", COMMITS_SINCE, "--format=%h %s"],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None, ""
    findings, subjects = [], done.stdout.splitlines()
    for line in subjects:
        commit, _, subject = line.partition(" ")
        problem = subject_problem(subject)
        if problem:
            findings.append(f"commit {commit}: {problem}: {subject}")
    return findings, f"{len(subjects)} commits"


def check_headers(root, build):
    with open(build / "compile_commands.json", encoding="utf-8") as file:
        commands = json.load(file)
    # A header is compiled as the source beside it with most include folders is, or one of the nearest folder above or below.
    flags = {}
    for entry in sorted(commands, key=lambda e: -len(re.findall(r"\s-(I|isystem)", e["command"]))):
        for source in unity.sources_of(entry["file"], entry["directory"]):
            if source.is_relative_to(root) and source.suffix == ".cpp":
                flags.setdefault(source.relative_to(root).parent.as_posix(), (entry["directory"], entry["command"]))

    def compile_alone(header):
        folder = header.parent.as_posix()
        if folder not in flags and any((root / folder).glob("*.cpp")):
            return None  # its sources are not built, for want of what they need
        options = [f for f in (folder, *map(str, header.parent.parents)) if f in flags]
        options += [f for f in sorted(flags) if f.split("/")[0] == folder.split("/")[0]]
        if not options:
            return None
        directory, command = flags[options[0]]
        words, kept, skip = shlex.split(command), [], False
        for word in words:
            with_value = ("-o", "-MF", "-MQ", "-include", "-include-pch")  # a precompiled header would hide what is missing
            if skip or word in ("-c", "-MD", "-MMD", *with_value):
                skip = word in with_value and not skip
                continue
            if word.startswith("-O") or word.startswith("-fsanitize") or word.endswith(".cpp"):
                continue
            kept.append(word)
        kept += ["-fsyntax-only", "-fdiagnostics-color=never", "-x", "c++", "-"]
        text = f'#include "{header.as_posix()}"\n#include "{header.as_posix()}"\n'
        done = subprocess.run(kept, cwd=directory, input=text, capture_output=True, text=True, check=False)
        return "" if done.returncode == 0 else done.stderr.strip()

    headers = list(files(root, (".h",)))
    findings, left_out = [], []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for header, error in zip(headers, pool.map(compile_alone, headers)):
            if error is None:
                left_out.append(header.as_posix())
            elif error:
                findings.append(f"{header.as_posix()}: does not compile alone\n{error}")
    note = f" ({len(left_out)} of folders that are not built left out: {', '.join(left_out)})" if left_out else ""
    return findings, f"{len(headers) - len(left_out)} headers{note}"


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("layers", "text", "ops", "prose", "commits", "headers"):
        sys.exit(__doc__)
    check, root = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    if check == "headers":
        findings, what = check_headers(root, pathlib.Path(sys.argv[3]).resolve())
    else:
        findings, what = {"layers": check_layers, "text": check_text, "ops": check_ops, "prose": check_prose,
                          "commits": check_commits}[check](root)
    if findings is None:
        print(f"{check}: skipped, there is no git history")
        return 77
    for finding in findings:
        print(finding)
    print(f"{check}: checked {what}: {len(findings) or 'no'} finding{'s' if len(findings) != 1 else ''}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
