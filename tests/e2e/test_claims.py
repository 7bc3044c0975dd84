"""claim and verify: what is shown, what is packed, and what the same file is worth elsewhere."""
import hashlib
import json
import os
import pathlib
import re
import signal
import unittest
from unittest import mock

from comparing import Comparing, judged_by_time

PUBLISHED = pathlib.Path(__file__).resolve().parents[2] / "reports/examples/claims.md"

# Work of known length: slowdown=210 takes 3.1 times as long. What is claimed is far from that, and of four launches an interval is half as
# wide as of three: a busy machine does not reach it.
CASES = ("selftest_compare", "-a", "steps=100000", "--protocol", "quick", "--launches", "4")
TRUE, FALSE = "slowdown=0 >= 2 x slowdown=210", "slowdown=0 >= 4.5 x slowdown=210"


@judged_by_time
class Claims(Comparing):
    def claimed(self, statement=TRUE, name="x.claim", **options):
        self.syslab("claim", statement, *CASES, "-o", name, **options)
        return self.folder / name

    def verified(self, name="x.claim", expect=0):
        return json.loads(self.syslab("verify", name, "--launches", "4", "--json", expect=expect).stdout)

    def test_what_is_true_is_packed_and_confirmed(self):
        file = self.claimed()
        self.assertLess(file.stat().st_size, 100_000)
        held = json.loads(file.read_text())
        case, = held["cases"]
        self.assertEqual((len(case["blocks"]), case["checked"]), (64, 4))
        verified = self.verified()
        self.assertEqual((verified["verdict"], verified["differing"]), ("confirmed", []))
        self.assertAlmostEqual(verified["cases"][0]["times_as_fast"], 3.1, delta=0.15)
        self.assertEqual(self.sql("SELECT verb FROM run ORDER BY id"), [("claim",), ("verify",)])
        page = self.syslab("report", "x.claim").stdout
        self.assertIn("syslab verify x.claim", page)
        self.assertRegex(page, r"\b3\.[012]")

    def test_a_claim_and_its_rows_tell_nobodys_folders_and_no_name_of_the_machine(self):
        told = {"SYSLAB_LIBRARY": "/home/ann/lab/libsyslab.so", "CUDA_HOME": "/home/ann/cuda", "SYSLAB_AUTHOR": "ann", "OMP_SCHEDULE": "static,7"}
        with mock.patch.dict(os.environ, told):
            held = json.loads(self.claimed().read_text())
        self.assertNotIn("name", held["environment"]["host"])
        self.assertEqual({name: value for name, value in held["environment"]["env"].items() if name in told or "/" in value}, {"OMP_SCHEDULE": "static,7"})
        (facts, key), = self.sql("SELECT facts, comparability_key FROM environment")
        self.assertNotIn("/home/ann", facts)
        self.assertEqual(key, held["machine_kind"])
        elsewhere = self.verified()
        self.assertEqual((elsewhere["verdict"], elsewhere["differing"]), ("confirmed", ["OMP_SCHEDULE: claim static,7, here not set"]))

    def test_what_is_false_is_not_written(self):
        done = self.syslab("claim", FALSE, *CASES, "-o", "x.claim", expect=6)
        self.assertIn("refuted", done.stdout)
        self.assertRegex(done.stdout, r"would show 'slowdown=0 >= [23]\.")
        self.assertFalse((self.folder / "x.claim").exists())

    def test_a_false_claim_is_refuted_and_another_machine_is_told(self):
        file = self.claimed()
        held = json.loads(file.read_text())
        held["claim"] = FALSE
        file.write_text(json.dumps(held))
        refuted = self.verified(expect=6)
        self.assertEqual(refuted["verdict"], "refuted")
        held["claim"], held["machine_kind"] = TRUE, "another"
        held["environment"]["cpu"]["model"] = "Another CPU"
        file.write_text(json.dumps(held))
        elsewhere = self.verified(expect=5)
        self.assertEqual((elsewhere["verdict"], elsewhere["here"]), ("other hardware", "confirmed"))
        self.assertTrue(any("cpu.model: claim Another CPU" in one for one in elsewhere["differing"]), elsewhere)

    def test_a_claim_brings_no_code_and_no_other_question(self):
        file = self.claimed()
        held = json.loads(file.read_text())
        changed = json.loads(json.dumps(held))
        changed["faster"].update(is_mine=True, name="me")
        file.write_text(json.dumps(changed))
        self.assertIn("--mine me=FILE", self.syslab("verify", file, expect=2).stderr)
        changed = json.loads(json.dumps(held))
        changed["cases"][0]["params"]["steps"] = 5
        file.write_text(json.dumps(changed))
        self.assertIn("mean another", self.syslab("verify", file, expect=2).stderr)
        changed = json.loads(json.dumps(held))
        changed["cases"][0]["version"] = "0"
        file.write_text(json.dumps(changed))
        self.assertIn("of version 0 when the claim was made", self.syslab("verify", file, expect=2).stderr)
        for text in ("", "[]", "{\"syslab_claim\": 1}"):
            file.write_text(text)
            self.assertIn("x.claim", self.syslab("verify", file, expect=2).stderr)

    def test_how_much_is_asked_for_is_said_where_compare_has_an_option(self):
        for option in ("--delta", "--detect"):
            for verb, rest in (("claim", (*CASES, "-o", "x.claim")), ("verify", ())):
                said = self.syslab(verb, TRUE, *rest, option, "2%", expect=2).stderr
                self.assertIn("the factor of the claim's statement, 'a >= 1.02 x b' for 2 %", said)
                self.assertEqual("--tolerance how much less" in said, verb == "claim", said)

    def test_laws_that_were_searched_with_the_same_code_go_with_it(self):
        self.syslab("check", "weighted_sum", "--impl", "tiled", "--device", "cpu", "--cases", "1")
        self.syslab("claim", "tiled >= 0.001 x naive", "weighted_sum", "--device", "cpu", "--protocol", "quick", "--launches", "3", "-a", "rows=64",
                    "-a", "dim=64", "-a", "dtype=fp32", "-a", "pass=forward", "-o", "x.claim")
        held = json.loads((self.folder / "x.claim").read_text())
        self.assertIn({"name": "weighted_sum.linearity", "contract": "full", "outcome": "passed", "inputs": 1}, held["faster"]["laws"])
        self.assertEqual(len(held["faster"]["laws"]), 5)
        self.assertNotIn("laws", held["slower"])
        self.assertIn("5 laws of contract full passed", self.syslab("report", "x.claim").stdout)

    def test_what_is_interrupted_or_crashes_ends_as_a_comparison_does(self):
        self.claimed(name="whole.claim")
        for words in (("claim", TRUE, *CASES[:-2], "-o", "x.claim"), ("verify", "whole.claim")):
            with self.subTest(words[0]):
                process = self.started(*words)
                process.send_signal(signal.SIGINT)
                out, _ = process.communicate(timeout=60)
                self.assertEqual(process.returncode, 3, out)
                self.assertIn("interrupted after", out)
        self.assertFalse((self.folder / "x.claim").exists())
        for fault, status in (("fault=die", 3), ("fault=wrong", 1)):
            self.syslab("claim", f"fault=none >= 1 x {fault}", *CASES, "-o", "x.claim", expect=status)
        self.syslab("claim", "fault=wrong >= 1 x fault=none", *CASES, "-o", "x.claim", expect=6)

    def test_what_cannot_be_claimed_is_said_before_anything_runs(self):
        for words in (("me > 1 x naive",), ("naive >= 1.1 x nobody", "flash_forward"), ("slowdown=0 >= slowdown=40", "nothing")):
            self.syslab("claim", *words, "-o", "x.claim", expect=2)
        self.assertIn("folder", self.syslab("claim", TRUE, *CASES, "-o", self.folder, expect=2).stderr)
        self.assertFalse(self.db.exists())

    def test_claims_that_are_published_open_and_are_of_the_files_beside_them(self):
        folder = PUBLISHED.parent / "claims"
        linked = set(re.findall(r"\]\(claims/([^)]*\.claim)\)", PUBLISHED.read_text()))
        self.assertEqual({file.name for file in folder.glob("*.claim")}, linked)
        of_files = {hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.glob("*.py")}
        for name in sorted(linked):
            with self.subTest(name):
                page = self.syslab("report", folder / name).stdout
                self.assertIn("it is confirmed", page)
                self.assertIn("GPU", page)
                held = json.loads((folder / name).read_text())
                self.assertLessEqual(set(held.get("digests", {}).values()), of_files, "its functions have changed since: verify it says so")


FUNCTIONS = """
import time
import numpy as np

def work(x, seconds):
    end = time.perf_counter() + seconds
    y = x * 2
    while time.perf_counter() < end:
        pass
    return y

def slow(x): return work(x, 6e-3)
def fast(x): return work(x, 90e-6)
def wrong(x): return work(x, 90e-6) + (len(x) == 32)

def cases():
    for n in (16, 32):
        yield {"axes": {"n": n}, "arguments": lambda seed, n=n: {"x": np.random.default_rng(seed).standard_normal(n)}}
"""


@judged_by_time
class ClaimedFunctions(Comparing):
    def test_a_function_is_claimed_with_two_files_and_verified_with_as_many(self):
        (self.folder / "f.py").write_text(FUNCTIONS)
        files = ("--mine", "me=f.py:fast", "--reference", "f.py:slow")
        few = ("--launches", "3", "--protocol", "quick")
        told = self.syslab("claim", "me >= 2 x reference", *files, *few, "-o", "x.claim").stderr
        self.assertRegex(told, r"launch 3 of 3: [\d.]+ times as fast \([\d.]+ … [\d.]+\)")
        self.assertIn("`syslab verify x.claim --mine me=FILE.py:NAME --reference FILE.py:NAME --inputs FILE.py:NAME`",
                      self.syslab("report", "x.claim").stdout)
        told = self.syslab("verify", "x.claim", expect=2).stderr
        self.assertIn("the files that it is about: --mine me=FILE.py:NAME --reference FILE.py:NAME (SHA-256", told)
        bad = self.syslab("verify", "x.claim", "--mine", "me=f.py:wrong", *files[2:], "--launches", "3", expect=6).stdout
        self.assertRegex(bad, r"function n=16 .* confirmed\nfunction n=32 .* wrong\n")
        self.assertIn("refuted: function n=32: me is wrong: out[", bad)
        self.assertEqual(bad.count("× the bound"), 1, bad)
        self.assertNotIn("side B", bad)
        short = self.syslab("claim", "me >= 2 x reference", *files, "--protocol", "quick", "--budget", "1ms", "-o", "y.claim", expect=5).stdout
        self.assertIn("a verdict takes 3", short)


if __name__ == "__main__":
    unittest.main()
