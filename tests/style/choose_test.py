#!/usr/bin/env python3
"""Tests of ../choose.py on made-up programs: which tests a NAME chooses, and with which filter."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import choose  # noqa: E402


class Choose(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        source = pathlib.Path(folder.name, "reader_test.cpp")
        source.write_text("TEST(Reader, Refuses) {}\nTEST_F(\n    Reader, Takes) {}\nTEST_P(ReaderOf, Refuses) {}\n"
                          "// TEST(No, Case)\n")
        self.targets = {"/b/one": {"target_sources": [{"sources": [str(source)]}]}}
        self.tests = [{"name": "one", "suites": ["engine"], "cmd": ["/b/one"]},
                      {"name": "one_part", "suites": ["engine"], "cmd": ["/b/one", "--gtest_filter=-*Takes*"]},
                      {"name": "one_long", "suites": ["engine", "long"], "cmd": ["/b/one", "--gtest_filter=*Takes*"]},
                      {"name": "script", "suites": ["gst"], "cmd": ["python3", "script.py"]}]

    def chosen(self, *names, everything=False):
        groups, unknown = choose.choose(self.tests, self.targets, names, everything)
        return {cases: [test["name"] for test in group] for cases, group in groups.items()}, unknown

    def test_a_test_or_suite_by_its_name(self):
        self.assertEqual(self.chosen("script"), ({"-": ["script"]}, []))
        self.assertEqual(self.chosen("engine"), ({"-": ["one", "one_part"]}, []))
        self.assertEqual(self.chosen("one_long"), ({"-": ["one_long"]}, []))

    def test_a_case_keeps_the_filters_of_the_tests(self):
        self.assertEqual(self.chosen("Reader.Takes"), ({"*Reader.Takes*": ["one"]}, []))
        self.assertEqual(self.chosen("Reader.Takes", everything=True),
                         ({"*Reader.Takes*": ["one"], "Reader.Takes": ["one_long"]}, []))
        self.assertEqual(self.chosen("Refuses"),
                         ({"*Refuses*": ["one"], "Reader.Refuses:ReaderOf.Refuses/*:*/ReaderOf.Refuses/*": ["one_part"]}, []))

    def test_a_case_with_its_parameter(self):
        self.assertEqual(self.chosen("Kinds/ReaderOf.Refuses/2")[0]["*Kinds/ReaderOf.Refuses/2*"], ["one"])

    def test_a_case_of_a_unity_build(self):
        source = self.targets["/b/one"]["target_sources"][0]["sources"][0]
        file = pathlib.Path(source).with_name("one-unity0.cpp")
        file.write_text(f"#include<{source}>\n")
        self.targets["/b/one"]["target_sources"] = [{"sources": [], "generated_sources": [str(file)]}]
        self.assertEqual(self.chosen("Reader.Takes"), ({"*Reader.Takes*": ["one"]}, []))

    def test_tells_names_that_are_nothing(self):
        self.assertEqual(self.chosen("Reader.Refuses", "No.Case", "Nothing")[1], ["No.Case", "Nothing"])


if __name__ == "__main__":
    unittest.main()
