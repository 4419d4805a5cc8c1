#!/usr/bin/env python3
"""`coverage.py --check` fails for a file below 80 % without a reason, and for a reason that is out of date."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(__file__).parents[1] / "coverage.py"


class Coverage(unittest.TestCase):
    def run_it(self, reasons, *options, **files):
        with tempfile.TemporaryDirectory() as folder:
            summary, list_of_reasons = pathlib.Path(folder, "summary.json"), pathlib.Path(folder, "reasons.txt")
            summary.write_text(json.dumps({"files": [{"filename": f"gst/{name}.cpp", "line_covered": covered, "line_total": 100}
                                                     for name, covered in files.items()]}), encoding="utf-8")
            list_of_reasons.write_text("# Why.\n" + reasons, encoding="utf-8")
            done = subprocess.run([sys.executable, PROGRAM, summary, "--reasons", list_of_reasons, *options], capture_output=True,
                                  text=True, check=False)
            return done.returncode, done.stdout

    def test_prints_shares_and_reasons(self):
        status, text = self.run_it("gst/low.cpp: needs a GPU\n", "--check", low=40, high=90)
        self.assertEqual(status, 0, text)
        self.assertIn("40.0 %      40 of    100  gst/low.cpp  (needs a GPU)", text)
        self.assertIn("65.0 %     130 of    200  gst/", text)

    def test_a_file_below_needs_a_reason(self):
        status, text = self.run_it("", "--check", low=79)
        self.assertEqual(status, 1)
        self.assertIn("gst/low.cpp has no reason", text)
        self.assertEqual(self.run_it("gst/low.cpp:\n", "--check", low=79)[0], 1)
        self.assertEqual(self.run_it("", low=79)[0], 0)  # some of the tests only

    def test_patterns_stand_for_several_files(self):
        self.assertEqual(self.run_it("gst/l*.cpp: needs a GPU\n", "--check", low=40, less=30, high=90)[0], 0)

    def test_reasons_go_with_their_file(self):
        self.assertEqual(self.run_it("gst/high.cpp: x\n", "--check", high=80)[0], 0)  # it may be below elsewhere
        status, text = self.run_it("gst/gone.cpp: x\n", "--check", high=80)
        self.assertEqual(status, 1)
        self.assertIn("gst/gone.cpp has a reason, but no such file was measured", text)


if __name__ == "__main__":
    unittest.main()
