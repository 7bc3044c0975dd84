#!/usr/bin/env python3
"""The search for races in attention's kernels, without a GPU: what it plants stands once in the kernels of today, it
ends with 1 where a planted race is not found or a test fails, and it counts what racecheck says.

    delayed_kernels_test.py ROOT
"""
import contextlib
import importlib.util
import io
import os
import pathlib
import sys
import tempfile
import unittest
from typing import Any
from unittest import mock

ROOT = pathlib.Path(sys.argv.pop(1))
sys.dont_write_bytecode = True
SPEC = importlib.util.spec_from_file_location("delayed_kernels", ROOT / "tools/long/delayed_kernels.py")
assert SPEC is not None and SPEC.loader is not None
tool: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tool)

# As gtest's programs: one lists a test, and says of it what it is told to say.
PROGRAM = """#!/bin/sh
case "$*" in
  *--gtest_list_tests*) echo 'Suite.'; echo '  Test' ;;
  *) cat <<'END'
%s
END
  exit %d ;;
esac
"""
PASSED, FAILED = (PROGRAM % ("[  PASSED  ] 1 test.", 0), PROGRAM % ("[  FAILED  ] 1 test, listed below:", 1))
HAZARD = """========= Error: Potential WAR hazard detected at __shared__ 0x%x in block (0,0,0) :
=========     Read Thread (32,0,0) at void kernel<T>(P)+0x63c0 in ptx.cuh:164
=========     Write Thread (0,0,0) at void kernel<T>(P)+0x2190
=========     Current Value : 1
"""


class Tool(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def program(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    def ends(self, *arguments):
        said = io.StringIO()
        argv = ["delayed_kernels.py", "--jobs", "2", "--rounds", "1", *arguments]
        with mock.patch.object(sys, "argv", argv), contextlib.redirect_stdout(said):
            return tool.main(), said.getvalue()

    def test_what_is_planted_stands_once_and_is_of_the_object_named(self):
        for number, race in enumerate(tool.PLANTED):
            with self.subTest(race.what):
                copy = tool.plant(self.folder / str(number), race.file, race.texts) / "ops/attention" / race.file
                whole = (ROOT / tool.KERNELS / race.file).read_text(encoding="utf-8")
                self.assertEqual(len(whole) - len(copy.read_text(encoding="utf-8")),
                                 sum(len(old) - len(new) for old, new in race.texts))
                self.assertTrue((ROOT / tool.KERNELS / f"{race.objects.replace('_', '/', 1)}.cu").exists())
        with self.assertRaisesRegex(SystemExit, "no longer what is to be changed"):
            tool.plant(self.folder, "wgmma/forward.cuh", [("not there", "")])

    def test_a_planted_race_that_is_not_found_is_an_error(self):
        good, bad = self.program("good", PASSED), self.program("bad", FAILED)
        rest = [bad] * (len(tool.PLANTED) - 1)
        ended, said = self.ends("--tests", good, "--planted", bad, *rest)
        self.assertEqual(ended, 0, said)
        self.assertIn("without barrier (4) of wgmma/forward.cuh: 1 of 1 tests failed or did not end", said)
        slow = self.program("slow", PASSED.replace("cat <<", "sleep 20; cat <<"))
        ended, said = self.ends("--tests", good, "--planted", slow, *rest, "--limit", "1")
        self.assertEqual(ended, 0, said)
        ended, said = self.ends("--tests", good, "--planted", *rest, good)
        self.assertEqual(ended, 1, said)
        self.assertIn(f"without {tool.PLANTED[-1][0]}: 0 of 1 tests failed or did not end", said)
        self.assertEqual(self.ends("--tests", bad, "--planted", bad, *rest)[0], 1)

    def test_what_the_time_does_not_suffice_for_is_not_reached_and_counts_as_nothing(self):
        slow = self.program("slow", PASSED.replace("cat <<", "sleep 20; cat <<"))
        ended, said = self.ends("--tests", slow, "--rounds", "2", "--seconds", "1")
        self.assertEqual(ended, 0, said)
        self.assertIn("Suite.Test: not reached\n", said)
        self.assertIn("0 of 0 failed, 1 not reached |", said)
        ended, said = self.ends("--tests", slow, "--limit", "1")
        self.assertEqual(ended, 1, said)
        self.assertIn("stopped after 1.0 s", said)

    def test_hazards_are_counted_by_their_two_sides_and_what_was_said_is_kept(self):
        tests = self.program("tests", PASSED)
        said = "".join(HAZARD % at for at in (16, 32))
        said += "========= Error: Race reported between Read access at a+0x1 and b+0x2\n"
        said += "[  PASSED  ] 1 test.\n========= RACECHECK SUMMARY: 3 hazards displayed (3 errors, 0 warnings)"
        self.program("compute-sanitizer", PROGRAM % (said, 0))
        with mock.patch.dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}"):
            ended, printed = self.ends("--tests", tests, "--under", "racecheck", "--keep", str(self.folder / "kept"))
        self.assertEqual(ended, 1)
        self.assertIn("2 × Read ptx.cuh:164 | Write +0x2190\n", printed)
        self.assertIn("1 of 1 failed", printed)
        self.assertIn("Potential WAR", (self.folder / "kept/tests.Suite.Test.txt").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
