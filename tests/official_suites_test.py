#!/usr/bin/env python3
"""The comparison with the hand-outs' own tests, without them: what is drawn in place of fixtures fits the suite's own models. Needs
torch; skipped without.

    official_suites_test.py ROOT
"""
import importlib.util
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))
sys.dont_write_bytecode = True
SPEC = importlib.util.spec_from_file_location("official_suites", ROOT / "tools/long/official_suites.py")
tool = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tool)
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


if __name__ == "__main__":
    unittest.main()
