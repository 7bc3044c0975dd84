#!/usr/bin/env python3
"""The comparison with the hand-outs' own tests, without them: what is drawn in place of fixtures fits the suite's own
models (skipped without torch), `check` is asked about the same device and backend, and what it says is read as it is
meant.

    official_suites_test.py ROOT
"""
import importlib.util
import os
import pathlib
import sys
import tempfile
import unittest
from typing import Any
from unittest import mock

ROOT = pathlib.Path(sys.argv.pop(1))
sys.dont_write_bytecode = True
SPEC = importlib.util.spec_from_file_location("official_suites", ROOT / "tools/long/official_suites.py")
assert SPEC is not None and SPEC.loader is not None
tool: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tool)
checks = tool.official_check
try:
    import torch
except ImportError:
    torch = None

COMMON = """import torch

class ToyModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = torch.nn.Linear(10, {outputs})

    def forward(self, x):
        return self.last(x)
"""


@unittest.skipIf(torch is None, "no torch")
class Fixtures(unittest.TestCase):
    def test_labels_have_the_width_of_the_suites_own_model(self):
        for outputs in (5, 10):
            with tempfile.TemporaryDirectory() as folder:
                suite, copy = pathlib.Path(folder, "suite"), pathlib.Path(folder, "copy")
                suite.mkdir()
                (suite / "common.py").write_text(COMMON.format(outputs=outputs))
                tool.put_suite(suite, copy)
                labels = torch.load(copy / "tests/fixtures/ddp_test_labels.pt")
                self.assertEqual(tuple(labels.shape), (20, outputs))


PROGRAM = """#!/bin/sh
echo "{\\"type\\": \\"submission\\", \\"adapters\\": [], \\"told\\": \\"$CUDA_VISIBLE_DEVICES $*\\"}"
"""


class Checks(unittest.TestCase):
    def told(self, device, **options):
        return self.check(device, **options)["told"]

    def check(self, device, **options):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "syslab")
            program.write_text(PROGRAM)
            program.chmod(0o755)
            with mock.patch.dict(os.environ, CUDA_VISIBLE_DEVICES="3,4"):
                return checks.check(mock.Mock(program=program, **options), "ada", "2025", device, "stubs",
                                    pathlib.Path(folder))

    def test_ranks_are_where_those_of_the_tests_are_and_on_a_gpu_in_gloo_s_group(self):
        self.assertRegex(self.told("cuda", cases=None), "^3 check .*--device cuda --mine me=ada")
        self.assertRegex(self.told("cpu", cases=7), "^ check .*--device cpu --cases 7 --mine me=ada")

    def test_a_check_that_does_not_end_is_said_of_each_test_and_of_nothing_else(self):
        with mock.patch(f"{__name__}.PROGRAM", "#!/bin/sh\nexec sleep 20\n"), mock.patch.object(checks, "LIMIT", 0.2):
            record = self.check("cpu", cases=None)
        self.assertEqual(record, {"adapters": [], "error": "check was stopped after 0.2 s"})
        self.assertEqual(checks.verdict_of(record, "2026", "test_ddp:test_DistributedDataParallel[ToyModel]"),
                         (False, "check was stopped after 0.2 s"))

    def verdict(self, **law):
        row = {"function": "get_ddp", "state": "implemented", "not_checked": "",
               "laws": [{"experiment": "ddp_overlap_individual_parameters", "contract": "handout", "law": "ddp.waits",
                         "message": "",
                         "out_of_time": False, "open": False, "outcome": "passed", **law}]}
        return checks.verdict_of({"adapters": [row]}, "2026", "test_ddp:test_DistributedDataParallel[ToyModel]")

    def test_a_law_that_is_not_held_says_why(self):
        self.assertEqual(self.verdict(), (True, ""))
        self.assertEqual(self.verdict(outcome="falsified", message="none waits\nthe module: …"),
                         (False, "ddp.waits: none waits"))
        told = "the worker ended while starting; its last lines:\nTraceback\nImportError: no torch"
        self.assertEqual(self.verdict(outcome="falsified", message=told),
                         (False, "ddp.waits: the worker ended while starting; its last lines: ImportError: no torch"))

    def test_a_law_that_was_not_tried_says_nothing(self):
        self.assertIsNone(self.verdict(outcome="unsupported", out_of_time=True))
        self.assertEqual(self.verdict(out_of_time=True), (True, ""))


class NotTried(unittest.TestCase):
    """Exit code 3, where all that was tried is well."""

    TEST = "test_ddp:test_DistributedDataParallel[ToyModel]"

    def published(self, results, **law):
        row = {"function": "get_ddp", "state": "implemented", "not_checked": "", "out_of_time": False,
               "laws": [{"experiment": "ddp_overlap_individual_parameters", "contract": "handout", "law": "ddp.waits",
                         "message": "",
                         "out_of_time": False, "open": False, "outcome": "passed", **law}]}
        report: dict = {"published": [], "not tried": []}
        with (tempfile.TemporaryDirectory() as folder,
              mock.patch.multiple(tool, put_suite=mock.DEFAULT, run_suite=lambda *_: results),
              mock.patch.object(checks, "timed_check", lambda *_: {"adapters": [row]})):
            own = pathlib.Path(folder)
            (own / "repositories/2026/ada").mkdir(parents=True)
            well = tool.published(mock.Mock(repositories=own / "repositories", output=None), {"2026": own}, own, "cpu",
                                  own, report)
        return tool.verdict(well, report["not tried"])

    def test_all_that_was_tried_and_held_is_well(self):
        self.assertEqual(self.published({self.TEST: ("passed", "")}), 0)

    def test_a_law_for_which_check_had_no_time(self):
        self.assertEqual(self.published({self.TEST: ("passed", "")}, outcome="gave_up", out_of_time=True), 3)

    def test_a_file_of_tests_that_was_stopped(self):
        self.assertEqual(self.published({self.TEST: ("passed", ""), "test_ddp:": ("not tried", "stopped after 900 s")}),
                         3)

    def test_a_test_that_differs_counts_for_more(self):
        self.assertEqual(self.published({self.TEST: ("failed", ""), "test_ddp:": ("not tried", "stopped after 900 s")}),
                         1)

    def ours(self, results):
        report: dict = {"ours": {}, "not tried": []}
        with mock.patch.multiple(tool, put_suite=mock.DEFAULT, run_suite=lambda *_: results):
            well = tool.ours(mock.Mock(adapters=pathlib.Path(), output=None), {"2026": pathlib.Path()}, "stubs",
                             ["cpu"], pathlib.Path(), report)
        return tool.verdict(well, report["not tried"])

    def test_of_our_own_the_same(self):
        stopped = {"test_ddp:": ("not tried", "stopped after 900 s")}
        self.assertEqual([self.ours(results) for results in ({self.TEST: ("passed", "")}, stopped,
                                                             {self.TEST: ("failed", ""), **stopped}, {})],
                         [0, 3, 1, 1])

    def test_what_is_stopped_is_neither_passed_nor_failed(self):
        ended = [('{"test": "test_a", "outcome": "passed", "why": ""}', ""), (None, "stopped after 900 s")]
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(tool, "lines_of", lambda *_: iter(ended)):
            (pathlib.Path(folder) / "tests").mkdir()
            (pathlib.Path(folder) / "tests/test_ddp.py").touch()
            results = tool.run_suite(pathlib.Path(folder), "2026", "cpu", [],
                                     mock.Mock(limit=1, library=None, start="fork"))
        self.assertEqual(tool.in_words(tool.counts_of(results)), "1 passed, 0 failed, 0 skipped, 1 not tried")


if __name__ == "__main__":
    unittest.main()
