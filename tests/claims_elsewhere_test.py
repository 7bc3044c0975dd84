#!/usr/bin/env python3
"""How tools/long/claims_elsewhere.py ends where the time was over before all claims had been begun; `syslab` is
imitated.

    claims_elsewhere_test.py ROOT
"""
import importlib.util
import json
import os
import pathlib
import sys
import tempfile
import unittest
from typing import Any
from unittest import mock

ROOT = pathlib.Path(sys.argv.pop(1))
sys.dont_write_bytecode = True
SPEC = importlib.util.spec_from_file_location("claims_elsewhere", ROOT / "tools/long/claims_elsewhere.py")
assert SPEC is not None and SPEC.loader is not None
tool: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tool)


class Verified(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        (self.folder / "library.so").touch()
        for name in ("chain_200000_2", "copy"):
            (self.folder / f"{name}.claim").write_text(json.dumps({"claim": "a >= 1 x b"}))

    def code(self, verdict="confirmed", calls=9):
        """Where each claim has this verdict, and the time is over behind so many."""
        made = []

        def call(claims, *_):
            made.append(1)
            claims.until = 0 if len(made) == calls else claims.until
            return {"ended": 0, "seconds": 0, "errors": "", "said": {"verdict": verdict}}

        words = ["claims_elsewhere.py", "verify", "syslab", str(self.folder), "--library",
                 str(self.folder / "library.so"), "--device", "cpu",
                 "--seconds", "1e6" if calls else "0"]
        with mock.patch.object(tool.Claims, "call", call), mock.patch.object(sys, "argv", words), \
             open(os.devnull, "w") as nowhere, \
             mock.patch.object(sys, "stdout", nowhere):
            return tool.main()

    def test_all_confirmed(self):
        self.assertEqual(self.code(), 0)

    def test_those_that_were_not_begun_are_not_verified(self):
        self.assertEqual(self.code(calls=1), 3)
        self.assertEqual(self.code(), 0)

    def test_nothing_was_begun(self):
        self.assertEqual(self.code(calls=0), 3)

    def test_what_an_earlier_call_has_verified_counts(self):
        self.assertEqual(self.code(), 0)
        self.assertEqual(self.code(calls=1), 0)

    def test_one_that_does_not_hold_counts_for_more(self):
        self.assertEqual(self.code("refuted", calls=1), 1)

    def test_nothing_to_verify(self):
        for file in self.folder.glob("*.claim"):
            file.unlink()
        self.assertEqual(self.code(), 1)


if __name__ == "__main__":
    unittest.main()
