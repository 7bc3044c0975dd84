"""claim and verify: what is shown, what is packed, and what the same file is worth elsewhere."""
import hashlib
import json
import os
import pathlib
import re
import signal
import sys
import unittest
from unittest import mock

from comparing import Comparing
from lab import asked_again

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from claim_seal import machine_kind, sealed, slowed  # noqa: E402

PUBLISHED = ROOT / "reports/examples/claims.md"

# Work of known length: slowdown=210 takes 3.1 times as long. What is claimed is far from that, and of four launches an interval is half as
# wide as of three: a busy machine does not reach it.
CASES = ("selftest_compare", "-a", "steps=100000", "--protocol", "quick", "--launches", "4")
TRUE, FALSE = "slowdown=0 >= 2 x slowdown=210", "slowdown=0 >= 4.5 x slowdown=210"


class Claims(Comparing):
    def claimed(self, statement=TRUE, name="x.claim", **options):
        self.syslab("claim", statement, *CASES, "-o", name, **options)
        return self.folder / name

    def full_title(self, held):
        params = held["cases"][0]["params"]
        words = [f"{axis}={str(value).lower() if isinstance(value, bool) else value}" for axis, value in sorted(params.items())]
        return " ".join(["selftest_compare", "selftest", *words])

    def verified(self, name="x.claim", expect=0):
        return json.loads(self.syslab("verify", name, "--launches", "4", "--json", expect=expect).stdout)

    @asked_again
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
        self.assertAlmostEqual(verified["border"], 1.98)
        self.assertEqual(self.syslab("verify", "x.claim", "--launches", "4").stdout.count("confirmed if at least 1.980, 1 % less than claimed\n"), 1)
        page = self.syslab("report", "x.claim").stdout
        self.assertIn("syslab verify x.claim", page)
        self.assertRegex(page, r"\b3\.[012]")

    @asked_again
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
        self.assertEqual((elsewhere["verdict"], elsewhere["differing"]), ("confirmed", ["OMP_SCHEDULE: claim “static,7”, here not set"]))

    @asked_again
    def test_what_is_false_is_not_written(self):
        done = self.syslab("claim", FALSE, *CASES, "-o", "x.claim", expect=6)
        self.assertIn("refuted", done.stdout)
        self.assertRegex(done.stdout, r"would show 'slowdown=0 >= [23]\.")
        self.assertFalse((self.folder / "x.claim").exists())
        done = self.syslab("claim", FALSE + " in geometric mean", *CASES, "-o", "x.claim", expect=6)
        self.assertRegex(done.stdout, r"would show 'slowdown=0 >= [23]\.\d+ x slowdown=210 in geometric mean'")
        self.assertEqual(done.stdout.count("refuted"), 1, "the mean is judged, and no case")

    @asked_again
    def test_a_false_claim_is_refuted_and_another_machine_is_told(self):
        file = self.claimed()
        held = json.loads(file.read_text())
        forged = slowed(held, 2)  # its own times show six times as fast, far enough for a busy machine
        forged["claim"] = FALSE + " in every case"
        file.write_text(json.dumps(sealed(forged)))
        refuted = self.verified(expect=6)
        self.assertEqual(refuted["verdict"], "refuted")
        self.assertTrue(any("the time of slowdown=210" in one for one in refuted["differing"]), refuted)
        held["environment"]["cpu"]["model"] = "Another CPU"
        held["machine_kind"] = machine_kind(held["environment"])
        file.write_text(json.dumps(sealed(held)))
        elsewhere = self.verified(expect=5)
        self.assertEqual((elsewhere["verdict"], elsewhere["here"]), ("other hardware", "confirmed"))
        self.assertTrue(any("cpu.model: claim “Another CPU”" in one for one in elsewhere["differing"]), elsewhere)

    @asked_again
    def test_a_claim_brings_no_code_and_no_other_question(self):
        file = self.claimed()
        held = json.loads(file.read_text())
        changed = json.loads(json.dumps(held))
        changed["faster"].update(is_mine=True, name="me", digest="00ff")
        changed["cases"][0]["title"] = "selftest_compare"  # both sides have an implementation of their own
        file.write_text(json.dumps(sealed(changed)))
        self.assertIn("--mine me=FILE", self.refused("verify", file))
        changed = json.loads(json.dumps(held))
        changed["cases"][0]["params"]["steps"] = 5
        changed["cases"][0]["title"] = "selftest_compare"
        file.write_text(json.dumps(sealed(changed)))
        self.assertIn("mean another", self.refused("verify", file))
        changed = json.loads(json.dumps(held))
        changed["cases"][0]["version"] = "0"
        file.write_text(json.dumps(sealed(changed)))
        self.assertIn("of version 0 when the claim was made", self.refused("verify", file))
        whole = json.dumps(held)
        for text in ("", "[]", "{\"syslab_claim\": 1}", whole[:len(whole) // 2], whole.replace('"seconds": [', '"seconds": [NaN, ', 1)):
            file.write_text(text)
            self.assertIn("x.claim", self.refused("verify", file))

    @asked_again
    def test_what_was_edited_is_named_and_not_measured(self):
        file = self.claimed()
        held = json.loads(file.read_text())
        title = self.full_title(held)

        def emptied(claim):
            claim["cases"][0]["blocks"] = []

        edits = {
            "tolerance": (lambda claim: claim.update(tolerance=0.9), [("changed", "tolerance")]),
            "claim": (lambda claim: claim.update(claim="slowdown=0 >= 1.5 x slowdown=210 in every case"), [("changed", "claim")]),
            "times": (lambda claim: claim.update(cases=slowed(claim, 10)["cases"]), [("changed", "cases")]),
            "blocks": (emptied, [("changed", "cases"), ("blocks", title), ("checked", title), ("not_shown", TRUE + " in every case")]),
            "command": (lambda claim: claim["faster"].update(command="./other"), [("changed", "faster"), ("derived", "question/experiments")]),
            "digest": (lambda claim: claim["slower"].update(digest="0" * 40), [("changed", "slower"), ("revision", "slowdown=210")]),
            "revision": (lambda claim: claim["build"].update(git_sha="0" * 40),
                         [("changed", "build"), ("revision", "slowdown=0"), ("revision", "slowdown=210")]),
            "one time": (lambda claim: claim["cases"][0]["blocks"][0]["seconds"].__setitem__(0, 1e-9),
                         [("changed", "cases"), ("times", title)]),
            "no case": (lambda claim: claim.update(cases=[]), [("changed", "cases"), ("times", "cases"), ("not_shown", TRUE + " in every case")]),
            "a field": (lambda claim: claim.update(evil=1), [("changed", "evil"), ("unknown", "the claim")]),
            "seal": (lambda claim: claim.pop("seal"), [("unsealed", "seal")]),
        }
        for name, (edit, wanted) in edits.items():
            with self.subTest(name):
                changed = json.loads(json.dumps(held))
                edit(changed)
                file.write_text(json.dumps(changed))
                told = self.verified(expect=1)
                self.assertEqual(told["verdict"], "altered")
                self.assertEqual([(one["kind"], one["where"]) for one in told["altered"]], wanted)
                self.assertTrue(all(one["found"] and one["expected"] for one in told["altered"]), told)
                said = self.syslab("verify", file, expect=1).stdout.splitlines()
                self.assertEqual(len(said), len(wanted) + 1, said)
                self.assertTrue(said[-1].startswith("altered:"), said)
        # Sealed anew, what contradicts itself is found all the same; a tolerance does not, and is told with the verdict.
        for name in ("blocks", "digest", "revision"):
            with self.subTest(name, sealed=True):
                changed = json.loads(json.dumps(held))
                edits[name][0](changed)
                file.write_text(json.dumps(sealed(changed)))
                self.assertEqual(self.verified(expect=1)["verdict"], "altered")
        self.assertEqual(self.sql("SELECT verb FROM run"), [("claim",)])
        file.write_text(json.dumps(sealed({**held, "tolerance": 0.9})))
        told = self.verified()
        self.assertEqual((told["verdict"], told["differing"]), ("confirmed", ["tolerance: claim 90 %, usually 1 %"]))
        # The revision is the build's, and that of sides of ours: edited everywhere it contradicts nothing, and is listed.
        for revision, dirty in (("0" * 40, False), (held["build"]["git_sha"], not held["build"]["git_dirty"])):
            changed = json.loads(json.dumps(held))
            changed["build"].update(git_sha=revision, git_dirty=dirty)
            told_as = revision + ("+changes" if dirty else "")
            for side in ("faster", "slower"):
                changed[side]["digest"] = told_as
            file.write_text(json.dumps(sealed(changed)))
            here = held["build"]["git_sha"] + ("+changes" if held["build"]["git_dirty"] else "")
            self.assertEqual(self.verified()["differing"], [f"revision of syslab: claim “{told_as}”, here “{here}”"])

    @asked_again
    def test_no_value_of_a_file_forges_a_line_of_the_answer(self):
        file = self.claimed()
        held = json.loads(file.read_text())
        for forged in ("2026\nconfirmed: it is 9.000 times as fast (95 %: 8 … 10).", "2026\rconfirmed", "2026\u2028confirmed", "2026\u202econfirmed"):
            model = {**held["environment"], "cpu": {**held["environment"]["cpu"], "model": forged}}
            for changed in ({**held, "made_at": forged}, {**held, "environment": model}):
                file.write_text(json.dumps(sealed(changed)))
                for verb in ("verify", "report"):
                    done = self.syslab(verb, file, expect=2)
                    self.assertEqual(done.stdout, "")
                    self.assertIn("expected text without signs that cannot be printed", done.stderr)
                    self.assertFalse(set("\r\u2028\u202e") & set(done.stderr), done.stderr)
                    self.assertNotIn("\nconfirmed", done.stderr)

    @asked_again
    def test_what_a_seal_alone_kept_is_computed_again_or_listed(self):
        file = self.claimed()
        held = json.loads(file.read_text())
        case, = held["cases"]
        environment = held["environment"]
        altered = {
            "derived": {**held, "cases": [{**case, "title": case["title"] + ", ten times as fast"}]},
            "checked": {**held, "cases": [{**case, "checked": 10 ** 9}]},
            "doubled": {**held, "cases": [case, case]},
            "unknown": {**held, "environment": {**environment, "cpu": {**environment["cpu"], "verdict": "confirmed"}}},
        }
        altered["label"] = {**held, "faster": {**held["faster"], "label": "the fastest"}}
        altered["kind"] = {**held, "machine_kind": "0" * 64}
        for kind, changed in altered.items():
            with self.subTest(kind):
                file.write_text(json.dumps(sealed(changed)))
                told = self.verified(expect=1)
                self.assertEqual([one["kind"] for one in told["altered"]], ["derived" if kind in ("label", "kind") else kind])
        file.write_text(json.dumps(sealed({**held, "build": {**held["build"], "version": "9.9", "flags": "-Ofast", "build_type": "debug"},
                                           "environment": {**environment, "libraries": {"glibc": "1.0"}}})))
        differing = self.verified()["differing"]
        self.assertEqual([one.split(": claim ")[0] for one in differing], ["build.build_type", "build.flags", "build.version", "libraries.glibc"])
        self.assertIn("claim “-Ofast”, here “", differing[1])

    def test_what_verify_would_reject_is_not_measured(self):
        for percent in ("0%", "-1%", "100%", "150%", "nan%"):
            said = self.refused("claim", TRUE, *CASES, f"--tolerance={percent}", "-o", "x.claim")
            self.assertIn(f"--tolerance {percent}; expected a percentage above 0 % and below 100 %", said)
        self.assertFalse(self.db.exists())

    def test_how_much_is_asked_for_is_said_where_compare_has_an_option(self):
        for option in ("--delta", "--detect"):
            for verb, rest in (("claim", (*CASES, "-o", "x.claim")), ("verify", ())):
                said = self.refused(verb, TRUE, *rest, option, "2%")
                self.assertIn("the factor of the claim's statement, 'a >= 1.02 x b' for 2 %", said)
                self.assertEqual("--tolerance how much less" in said, verb == "claim", said)

    @asked_again
    def test_laws_that_were_searched_with_the_same_code_go_with_it(self):
        self.syslab("check", "weighted_sum", "--impl", "tiled", "--device", "cpu", "--cases", "1")
        self.syslab("claim", "tiled >= 0.001 x naive", "weighted_sum", "--device", "cpu", "--protocol", "quick", "--launches", "3", "-a", "rows=64",
                    "-a", "dim=64", "-a", "dtype=fp32", "-a", "pass=forward", "-o", "x.claim")
        held = json.loads((self.folder / "x.claim").read_text())
        self.assertIn({"name": "weighted_sum.linearity", "contract": "full", "outcome": "passed", "inputs": 1}, held["faster"]["laws"])
        self.assertEqual(len(held["faster"]["laws"]), 5)
        self.assertNotIn("laws", held["slower"])
        self.assertIn("5 laws of contract full passed", self.syslab("report", "x.claim").stdout)

    @asked_again
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
        self.assertIn("folder", self.refused("claim", TRUE, *CASES, "-o", self.folder))
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
                self.assertNotIn("not as syslab wrote it", page)
                self.assertNotIn("no seal", page)
                self.assertIn("GPU", page)
                held = json.loads((folder / name).read_text())
                self.assertLessEqual(set(held.get("digests", {}).values()), of_files, "its functions have changed since: verify it says so")


# They sleep, and for long: on a busy machine, handing a call over takes milliseconds, and whoever computes waits for processors.
FUNCTIONS = """
import time
import numpy as np

def work(x, seconds):
    time.sleep(seconds * LONGER)
    return x * 2

def slow(x): return work(x, 0.2)
def fast(x): return work(x, 0.05)
def wrong(x): return work(x, 0.05) + (len(x) == 32)

def cases():
    for n in (16, 32):
        yield {"axes": {"n": n}, "arguments": lambda seed, n=n: {"x": np.random.default_rng(seed).standard_normal(n)}}
"""


class ClaimedFunctions(Comparing):
    @asked_again
    def test_a_function_is_claimed_with_two_files_and_verified_with_as_many(self):
        (self.folder / "f.py").write_text(f"{FUNCTIONS}\nLONGER = {self.longer}\n")
        files = ("--mine", "me=f.py:fast", "--reference", "f.py:slow")
        few = ("--launches", "5", "--protocol", "quick")  # one of them may come at a busy moment
        told = self.syslab("claim", "me >= 2 x reference", *files, *few, "-o", "x.claim").stderr
        self.assertRegex(told, r"launch 5 of 5: [\d.]+ times as fast \([\d.]+ … [\d.]+\)")
        self.assertIn("\nsyslab verify x.claim --mine me=FILE.py:NAME --reference FILE.py:NAME --inputs FILE.py:NAME\n```\n",
                      self.syslab("report", "x.claim").stdout)
        told = self.refused("verify", "x.claim")
        self.assertIn("the files that it is about: --mine me=FILE.py:NAME --reference FILE.py:NAME (SHA-256", told)
        bad = self.syslab("verify", "x.claim", "--mine", "me=f.py:wrong", *files[2:], "--launches", "5", expect=6).stdout
        self.assertRegex(bad, r"function n=16 .* confirmed\nfunction n=32 .* wrong\n")
        self.assertIn("refuted: function n=32: me is wrong: out[", bad)
        self.assertEqual(bad.count("× the bound"), 1, bad)
        self.assertNotIn("side B", bad)
        short = self.syslab("claim", "me >= 1.5 x reference", *files, "--protocol", "quick", "--budget", "1ms", "-o", "y.claim", expect=5).stdout
        self.assertIn("a verdict takes 3", short)


if __name__ == "__main__":
    unittest.main()
