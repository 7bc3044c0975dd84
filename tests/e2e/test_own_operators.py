"""Somebody's own operators other than attention: in Python and as a library, checked and timed."""
import os
import pathlib
import re
import unittest

from lab import RIGHT, Lab, attempts

PYTHON = pathlib.Path(os.environ["SYSLAB_MINE"]) / "operators.py"
PLUGINS = pathlib.Path(os.environ["SYSLAB_PLUGINS"])
ALL = ("operators", "weighted_sum", "ceiling_gemm")


class OwnOperators(Lab):
    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}

    def check(self, what, *more, names=ALL, cases="10", expect=0):
        lines = self.lines("check", *names, "--impl", "me", "--mine", f"me={what}", "--cases", cases, *more, expect=expect)
        return {one["law"]: one["status"] for one in attempts(lines)}, lines[-1]

    def broken(self, name, keyword):
        laws, verdict = self.check(f"{PYTHON}:{name}", "-k", keyword, names=("operators",), expect=1)
        self.assertEqual(verdict["verdict"], "FAIL")
        return {law for law, status in laws.items() if status == "check_failed"}

    def test_right_ones_hold_in_python(self):
        laws, _ = self.check(f"{PYTHON}:Operators")
        self.assertEqual({status for status in laws.values()}, {"ok"}, laws)
        families = {law.split(".")[0] for law in laws}
        self.assertEqual(families, {"rms_norm", "rope", "swiglu", "cross_entropy", "embedding", "adamw", "global_norm", "gemm",
                                    "weighted_sum"})

    def test_what_no_law_draws_is_listed_of_each_operator(self):
        done = self.syslab("check", *ALL, "--impl", "me", "--mine", f"me={PYTHON}:Operators", "--cases", "5", expect=0)
        said = dict(re.findall(r"^ *never tried, at any depth, of (\w+): (.*)$", done.stdout, re.M))
        for name, limit in (("weighted_sum", "rows or dim other than 16, 32, 64, 128, 256, 1024, 2048"), ("gemm", "k > 300"),
                            ("rms_norm", "dim > 4096 and some above 600"), ("rope", "seq > 200"), ("swiglu", "rows > 4096"),
                            ("cross_entropy", "classes > 3000"), ("embedding", "vocab > 2000"), ("adamw", "elements > 9000"),
                            ("global_norm", "elements > 70001 and some above 5000")):
            self.assertIn(limit, said.pop(name))
        self.assertEqual(said, {})
        _, verdict = self.check(f"{PYTHON}:Operators", "-k", "rope", names=("operators",))
        self.assertRegex(verdict["left_out"], "^never tried, at any depth: fp16; bf16; batch > 3; heads > 12; seq > 200; head_dim > 160; ")

    def test_long_tables_and_long_sides_are_drawn(self):
        self.assertIn("rope.equals_oracle", self.broken("LastRowsOfTables", "rope"))
        laws, verdict = self.check(f"{PYTHON}:ShortBuffer", names=("weighted_sum",), cases="60", expect=1)
        self.assertEqual(verdict["verdict"], "FAIL")
        self.assertEqual({law for law, status in laws.items() if status == "check_failed"}, {"weighted_sum.equals_oracle"})

    def test_right_ones_hold_in_c(self):
        laws, _ = self.check(PLUGINS / "operators.so")
        for family in ("rope", "gemm", "weighted_sum"):
            of_it = {law: status for law, status in laws.items() if law.startswith(family + ".")}
            self.assertEqual(set(of_it.values()), {"ok"}, of_it)
        self.assertEqual(laws["swiglu.equals_oracle"], "ok")
        self.assertEqual(laws["swiglu.gradients_equal_oracle"], "unsupported")  # it has no swiglu_backward
        self.assertEqual(laws["adamw.equals_oracle"], "unsupported")

    def test_faults_are_found(self):
        self.assertIn("rope.equals_oracle", self.broken("TurnsBack", "rope"))
        self.assertIn("rms_norm.equals_oracle", self.broken("ForgetsEps", "rms_norm"))
        self.assertIn("embedding.equals_oracle", self.broken("OneIdCounts", "embedding"))
        laws, _ = self.check(PLUGINS / "faulty_operators.so", "-k", "rope", names=("operators",), expect=1)
        self.assertEqual(laws["rope.equals_oracle"], "check_failed")

    def test_an_exception_is_a_failure_and_what_is_not_there_is_none(self):
        self.assertIn("swiglu.equals_oracle", self.broken("Raises", "swiglu"))
        laws, verdict = self.check(f"{PYTHON}:Nothing", names=("operators",), expect=3)
        self.assertEqual(set(laws.values()), {"unsupported"})
        self.assertEqual(verdict["verdict"], "NOT CHECKED")
        self.assertTrue(any("has no rope_forward" in reason for reason in verdict["never_tried"]), verdict)

    def test_they_are_timed_once_they_are_right(self):
        one = ("-a", "rows=32", "-a", "dim=64", "-a", "dtype=fp32", "--impl", "me", "--laws", "none", "--protocol", "quick")
        for name in ("rms_norm", "rope", "swiglu", "embedding", "cross_entropy"):
            for direction in ("forward", "backward"):
                [ended] = attempts(self.lines("run", "operators", *one, "-a", f"operator={name}", "-a", f"pass={direction}",
                                              "--mine", f"me={PYTHON}:Operators", expect=RIGHT))
                self.assertEqual(ended["status"], "ok", (name, direction, ended))
        for name in ("adamw", "global_norm"):
            [ended] = attempts(self.lines("run", "operators", *one, "-a", f"operator={name}", "-a", "pass=forward", "--mine",
                                          f"me={PYTHON}:Operators", expect=RIGHT))
            self.assertEqual(ended["status"], "ok", (name, ended))
        self.assertEqual(self.sql("SELECT count(*) FROM metric WHERE name = 'time'"), [(12,)])
        for kind in (f"{PYTHON}:Operators", PLUGINS / "operators.so"):
            [ended] = attempts(self.lines("run", "ceiling_gemm", "-a", "size=64", "-a", "dtype=fp32", *one[6:], "--mine", f"me={kind}", expect=RIGHT))
            self.assertEqual(ended["status"], "ok", ended)

    def test_a_wrong_one_gets_no_time(self):
        [ended] = attempts(self.lines("run", "operators", "-a", "rows=32", "-a", "dim=64", "-a", "dtype=fp32", "-a", "operator=rope", "-a",
                                      "pass=forward", "--impl", "me", "--laws", "none", "--protocol", "quick", "--mine",
                                      f"me={PYTHON}:TurnsBack", expect=1))
        self.assertEqual(ended["status"], "check_failed")
        self.assertEqual(self.sql("SELECT count(*) FROM metric WHERE name = 'time'"), [(0,)])

    def test_attention_is_not_asked_of_a_library_that_has_none(self):
        done = self.syslab("check", "flash_forward", "--impl", "me", "--mine", f"me={PLUGINS / 'operators.so'}", "--cases", "5", expect=1)
        self.assertIn("has syslab_operator and no attention", done.stdout)


if __name__ == "__main__":
    unittest.main()
