#!/usr/bin/env python3
"""The style checks find what they are there to find: each case breaks one rule in a small tree of its own."""
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check  # noqa: E402

GOOD = {
    "kernels/op.h": "// Why.\n#pragma once\n#include <vector>\n",
    "kernels/base/tensor.h": "// Why.\n#pragma once\n",
    "kernels/relu.cpp": '// Why.\n#include "kernels/op.h"\n',
    "kernels/meson.build": "# ops = ['none']\nops = [\n  'relu',  # 'other'\n]\n",
    "tests/kernels/relu_test.cpp": '// Why.\n#include <gtest/gtest.h>\n#include "kernels/op.h"\nTEST(A, B) {}\n',
    "engine/engine.h": '// Why.\n#pragma once\n#include "kernels/base/tensor.h"\n',
    "engine/graph/graph.h": "// Why.\n#pragma once\n",
    "engine/ir/read.cpp": '// Why.\n#include <pugixml.hpp>\n#include "engine/graph/graph.h"\n',
    "engine/compile/compile.h": '// Why.\n#pragma once\n#include "engine/measure/tuning.h"\n',
    "engine/measure/tuning.h": '// Why.\n#pragma once\n#include "engine/runtime/run.h"\n',
    "engine/runtime/run.h": "// Why.\n#pragma once\n",
    "engine/runtime/run.cpp": '// Why.\n#include <CL/opencl.hpp>\n#include "kernels/op.h"\n',
    "gst/plugin.cpp": '// Why.\n#include <gst/gst.h>\n#include "engine/engine.h"\n#include "kernels/base/tensor.h"\n',
}


class Style(unittest.TestCase):
    def findings(self, name, changes=None):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in {**GOOD, **(changes or {})}.items():
                if text is not None:
                    (root / path).parent.mkdir(parents=True, exist_ok=True)
                    (root / path).write_text(text, newline="")
            return getattr(check, "check_" + name)(root)[0]

    def refused(self, name, path, text, message):
        found = self.findings(name, {path: text})
        self.assertEqual(len(found), 1, found)
        self.assertIn(path, found[0])
        self.assertIn(message, found[0])

    def test_good_tree_passes(self):
        for name in ("layers", "text", "ops", "prose"):
            self.assertEqual(self.findings(name), [])

    def test_prose_headless_subjects(self):
        for comment in ("// What is measured.", "int a;  // Who waits.", "// Fine.\n// The same for b.", "// Fine: what it is.\n// What is read",
                        "/// Whatever comes."):
            for path in ("engine/heads/a.cpp", "kernels/a.cl", "tests/gst/a.h"):
                self.refused("prose", path, f"// Opens.\n\n{comment}\n", "noun or verb")

    def test_prose_of_documents_and_scripts(self):
        for path, text in (("docs/a.md", "# What it is\n"), ("README.md", "Fine. What is\nread.\n"), ("docs/a.md", "| a | Who waits |\n"),
                           ("tests/a.py", "# What is read.\n"), ("engine/meson.build", "x = 1\n# The same for b.\n")):
            self.refused("prose", path, text, "noun or verb")
        for text in ("# What is it?\n", "```\nWhat it is\n```\n", "Says\nWhat is `x`?\n"):
            self.assertEqual(self.findings("prose", {"docs/a.md": text}), [])

    def test_prose_accepts(self):
        for comment in ("// The sums, whatever their type.", "// What is it?", 'f("// What is this");', "// Says what is measured."):
            self.assertEqual(self.findings("prose", {"engine/a.cpp": f"// Opens.\n\n{comment}\n"}), [])

    def test_subjects(self):
        for subject in ("engine: edit graphs in constant time", "gst/infer: pass frames on", "all: move operations into rooms",
                        "docs: say what a term means", "engine, tuning: embed records"):
            self.assertIsNone(check.subject_problem(subject), subject)
        for subject in ("engine: what loading a model may take", "engine: edits graphs", "engine: edited graphs", "no area at all",
                        "engine: editing graphs", "engine: the graph", "engine: " + "edit " * 14):
            self.assertIsNotNone(check.subject_problem(subject), subject)

    def test_commits_without_history(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(check.check_commits(pathlib.Path(folder)), (None, ""))

    def test_layers_upward(self):
        for path, target in (("kernels/a.cpp", "engine/engine.h"), ("tuning/a.h", "engine/engine.h"),
                             ("engine/a.cpp", "gst/plugin.cpp"), ("engine/graph/a.h", "engine/engine.h"),
                             ("gst/a.cpp", "engine/graph/graph.h"), ("gst/a.cpp", "kernels/op.h"),
                             ("engine/ir/a.cpp", "engine/runtime/run.cpp"), ("kernels/a.cl", "engine/engine.h"),
                             ("engine/runtime/a.cpp", "engine/measure/tuning.h"), ("engine/ocl/a.cpp", "engine/runtime/run.h"),
                             ("engine/runtime/frames/a.cpp", "engine/compile/compile.h"),
                             ("engine/runtime/frames/a.cpp", "engine/runtime/run.h"),
                             ("engine/measure/a.cpp", "engine/compile/compile.h")):
            self.refused("layers", path, f'// Why.\n#include "{target}"\n', f'may not include "{target}"')

    def test_layers_circles_of_folders(self):
        def include(target):
            return f'// Why.\n#pragma once\n#include "{target}"\n'

        three = {"gst/meta/a.h": include("gst/track/a.h"), "gst/track/a.h": include("gst/zones/a.h"), "gst/zones/a.h": "// Why.\n#pragma once\n"}
        self.assertEqual(self.findings("layers", three), [])
        found = self.findings("layers", {**three, "gst/zones/b.cpp": include("gst/meta/a.h")})
        self.assertEqual(len(found), 3, found)
        self.assertIn("gst/zones/b.cpp:3: folders include each other in a circle: gst/zones -> gst/meta -> gst/track -> gst/zones", found)
        # Files of one folder may include each other's headers, and a folder one below it.
        self.assertEqual(self.findings("layers", {"gst/a.cpp": include("gst/meta/a.h"), "gst/meta/a.h": include("gst/meta/b.h"),
                                                  "gst/meta/b.h": include("gst/meta/a.h")}), [])

    def test_layers_upward_in_angle_brackets(self):
        self.refused("layers", "kernels/a.cpp", "// Why.\n#  include <engine/engine.h>\n", "may not include")

    def test_layers_relative_path(self):
        self.refused("layers", "kernels/a.cpp", '// Why.\n#include "op.h"\n', "is no file")

    def test_layers_libraries(self):
        for path, header in (("engine/graph/a.cpp", "pugixml.hpp"), ("kernels/a.cpp", "CL/cl.h"),
                             ("engine/plan/a.cpp", "CL/opencl.hpp"), ("gst/a.cpp", "CL/cl.h"),
                             ("engine/runtime/a.cpp", "glib.h"), ("tests/engine/a.cpp", "gst/gst.h"),
                             ("tuning/a.h", "json-glib/json-glib.h"), ("engine/a.cpp", "json-glib/json-glib.h"),
                             ("kernels/a.cpp", "gtest/gtest.h")):
            self.refused("layers", path, f"// Why.\n#include <{header}>\n", f"<{header}> belongs in")

    def test_text(self):
        for text, message in (("// Why.\nint a; \n", "blanks at the end"), ("// Why.\n\tint a;\n", "a tab"),
                              ("// Why.\nint a;", "has no end"), ("// Why.\r\n", "carriage return"),
                              ("int a;\n", "does not open with a comment"), ("// Why.\n\n", "blank lines at the end"),
                              ("// Why.\n// TO" + "DO: all\n", "unfinished"), ("// Why.\n// ------\n", "a ruler"),
                              ("// Why.\n" + "int a;\n" * 800, "801 lines")):
            found = self.findings("text", {"kernels/a.cpp": text})
            self.assertTrue(any(f.startswith("kernels/a.cpp") and message in f for f in found), (message, found))

    def test_text_numbers_by_locale(self):
        for line in ('auto a = std::strtod("1", nullptr);', "std::ostringstream out;", "x = stof(text);"):
            for path in ("engine/heads/a.cpp", "kernels/a.h", "gst/a.cpp"):
                self.refused("text", path, f"// Why.\n#pragma once\n{line}\n", "locale")
            self.assertEqual(self.findings("text", {"tests/a.cpp": f"// Why.\n{line}\n", "engine/a.cpp": f"// Why.\n// Not {line}\n"}), [])

    def test_text_header_without_once(self):
        self.refused("text", "gst/a.h", "// Why.\n", "#pragma once")

    def test_text_crowded_folders(self):
        sources = {f"gst/crop/a{number}.cpp": "// Why.\n" for number in range(26)}
        self.assertEqual(self.findings("text", sources), ["gst/crop: 26 sources; 25 are the limit, give it rooms by subject"])
        sources["gst/crop/a0.cpp"] = None
        self.assertEqual(self.findings("text", sources), [])

    def test_text_scripts(self):
        self.refused("text", "pipelines/start", "#!/bin/sh\necho a \n", "blanks at the end")

    def test_headers_of_folders_that_are_not_built(self):
        missing = "// Why.\n#pragma once\n#include <none_such.h>\n"
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in (("tests/a.cpp", "// Why.\n"), ("tests/gst/a.cpp", "// Why.\n"), ("tests/gst/a.h", missing), ("tests/data/a.h", missing)):
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            (root / "compile_commands.json").write_text(json.dumps([{"directory": folder, "file": "tests/a.cpp", "command": f"c++ -I{root} -c tests/a.cpp"}]))
            findings, note = check.check_headers(root, root)
        self.assertEqual(len(findings), 1, findings)
        self.assertIn("tests/data/a.h", findings[0])  # as the sources of the folder above
        self.assertIn("left out: tests/gst/a.h", note)

    def test_ops(self):
        self.refused("ops", "tests/kernels/relu_test.cpp", "// Why.\n", "holds no test")
        self.assertIn("tests/kernels/relu_test.cpp", self.findings("ops", {"tests/kernels/relu_test.cpp": None})[0])
        self.assertIn("kernels/relu.cpp", self.findings("ops", {"kernels/relu.cpp": None})[0])
        self.assertIn("twice", self.findings("ops", {"kernels/meson.build": "ops = ['relu', 'relu']\n"})[0])
        self.assertIn("no list", self.findings("ops", {"kernels/meson.build": "x = 1\n"})[0])


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=0).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed, 0 skipped")
    sys.exit(1 if bad else 0)
