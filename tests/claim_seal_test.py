#!/usr/bin/env python3
"""tools/claim_seal.py writes JSON as syslab does: every double by the same digits, and published claims with the seal
that they have.

    claim_seal_test.py ROOT JSON_NUMBERS
"""
import json
import pathlib
import subprocess
import sys
import unittest

ROOT, NUMBERS = pathlib.Path(sys.argv.pop(1)), sys.argv.pop(1)
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))
import claim_seal  # noqa: E402


class Sealed(unittest.TestCase):
    def test_doubles_have_the_digits_of_syslab(self):
        lines = subprocess.run([NUMBERS], check=True, capture_output=True, text=True).stdout.split("\n")[:-1]
        self.assertGreater(len(lines), 50_000)
        others = 0
        for line in lines:
            digits, text = line.split()
            value = float.fromhex(digits)
            self.assertEqual(claim_seal.number_text(value), text)
            others += json.dumps(value) != text
        self.assertGreater(others, 10)  # Python's own digits would not do

    def test_published_claims_keep_their_seal(self):
        files = list((ROOT / "reports/examples/claims").glob("*.claim"))
        self.assertGreater(len(files), 5)
        for file in files:
            held = json.loads(file.read_text())
            self.assertEqual(claim_seal.sealed(held), held, file)
            self.assertEqual(claim_seal.machine_kind(held["environment"]), held["machine_kind"], file)

    def test_text_and_keys_are_as_syslab_writes_them(self):
        self.assertEqual(claim_seal.text_of({"b": [1, True, None, "µ\n\"\x7f"], "a": {}}),
                         '{"a":{},"b":[1,true,null,"µ\\n\\"\x7f"]}')


if __name__ == "__main__":
    unittest.main()
