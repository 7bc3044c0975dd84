#!/usr/bin/env python3
"""tools/blas_kernels: which tests it takes, what it skips, and what it does not count as passed; Meson is imitated.

    blas_kernels_test.py ROOT
"""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import sys
import tempfile
import unittest
from typing import Any
from unittest import mock

ROOT = pathlib.Path(sys.argv.pop(1))
sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader("blas_kernels", str(ROOT / "tools/blas_kernels"))
SPEC = importlib.util.spec_from_loader("blas_kernels", LOADER)
assert SPEC is not None
tool: Any = importlib.util.module_from_spec(SPEC)
LOADER.exec_module(tool)

CPU = "processor : 0\nflags : fpu pni avx avx2 fma avx512f avx512bw avx512cd avx512dq avx512vl\n"


def record(name, said="Core: Cooperlake\n", result="OK"):
    return {"name": f"syslab:unit / {name}", "result": result, "stdout": "[ OK ]\n", "stderr": said}


class Kernels(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.logs = pathlib.Path(temporary.name) / "meson-logs"
        self.logs.mkdir()
        self.write("testlog", [record("model"), record("stats", said=""), record("parallel")])

    def write(self, log, rows):
        (self.logs / f"{log}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def ended(self, ran=(), kernels="Haswell", cpu=CPU, more=()):
        """(exit code, Meson's arguments, what was said)."""
        asked = []

        def run(words, **options):
            asked.append((words, options["env"]["OPENBLAS_CORETYPE"]))
            if ran is not None:  # else Meson ended before it wrote one
                self.write(f"testlog-{kernels}", ran)

        said, read = io.StringIO(), pathlib.Path.read_text
        argv = ["blas_kernels", str(self.logs.parent), kernels, *more]
        with mock.patch.object(tool.subprocess, "run", run), mock.patch.object(sys, "argv", argv), \
             mock.patch.object(pathlib.Path, "read_text", lambda path: cpu if path.name == "cpuinfo" else read(path)), \
             mock.patch.object(tool.platform, "machine", lambda: "x86_64"), \
             contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = tool.main()
        return code, asked, said.getvalue()

    def counts(self, said):
        return {line.split(":")[0]: int(line.split(":")[1]) for line in said.splitlines()[-6:]}

    def test_those_that_opened_openblas_run_again_with_the_kernels_asked_for(self):
        code, asked, said = self.ended([record("model", "Core: Haswell\n"),
                                        record("parallel", "Core: Haswell\nCore: Haswell\n")])
        self.assertEqual((code, self.counts(said)["Ok"]), (0, 2))
        (words, kernels), = asked
        self.assertEqual((words[-2:], kernels), (["model", "parallel"], "Haswell"))

    def test_a_suite_may_be_chosen(self):
        self.write("testlog", [record("model"), {**record("laws_gemm"), "name": "syslab:property / laws_gemm"}])
        code, ((words, _),), _ = self.ended([record("model", "Core: Haswell\n")], more=("--suite", "unit"))
        self.assertEqual((code, words[-2:]), (0, ["4", "model"]))
        self.assertEqual(self.ended(more=("--suite", "e2e"))[0], 2)

    def test_a_test_that_fails_or_takes_other_kernels_has_not_passed(self):
        for ran, why in (([record("model", "Core: Haswell\n", "FAIL"), record("parallel", "Core: Haswell\n")],
                          "model: FAIL"),
                         ([record("model", "Core: Haswell\n"), record("parallel", "Core: Zen\n")],
                          "parallel: OpenBLAS took Zen, not Haswell"),
                         ([record("model", "Core: Haswell\n"), record("parallel", "")],
                          "parallel: OpenBLAS took nothing, not Haswell"),
                         ([record("model", "Core: Haswell\n"), record("parallel", "Core: Haswell\n", "TIMEOUT")],
                          "parallel: TIMEOUT"),
                         ([record("model", "Core: Haswell\n")], "parallel: did not run")):
            with self.subTest(why):
                code, _, said = self.ended(ran)
                self.assertEqual((code, self.counts(said)["Ok"], self.counts(said)["Fail"]), (1, 1, 1))
                self.assertIn(why, said)

    def test_what_this_processor_cannot_execute_is_skipped_and_never_passed(self):
        code, asked, said = self.ended(kernels="SkylakeX", cpu="flags : fpu pni avx avx2 fma\n")
        self.assertEqual((code, asked), (0, []))
        self.assertEqual((self.counts(said)["Ok"], self.counts(said)["Skipped"]), (0, 2))
        self.assertIn("avx512f", said)

    def test_this_processors_own_kernels_are_not_run_twice(self):
        self.write("testlog", [record("model", "Core: Haswell\n"), record("parallel", "Core: Haswell\n")])
        code, asked, said = self.ended()
        self.assertEqual((code, asked, self.counts(said)["Ok"]), (0, [], 0))

    def test_the_log_of_an_earlier_run_proves_nothing(self):
        self.write("testlog-Haswell", [record("model", "Core: Haswell\n"), record("parallel", "Core: Haswell\n")])
        code, _, said = self.ended(ran=None)
        self.assertEqual((code, self.counts(said)["Fail"]), (1, 2))

    def test_without_a_log_that_tells_nothing_is_passed(self):
        self.write("testlog", [record("model", said="")])
        self.assertEqual(self.ended()[0], 2)
        (self.logs / "testlog.json").unlink()
        self.assertEqual(self.ended()[0], 2)


if __name__ == "__main__":
    unittest.main()
