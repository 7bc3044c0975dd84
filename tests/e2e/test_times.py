"""Times that are not told, and warnings that stand beside those that are."""
import json
import os
import pathlib
import unittest

from lab import Lab, asked_again, attempts

FILES = pathlib.Path(__file__).parent / "time_cheats"
SHORT = ("--launches", "3", "--protocol", "quick")


class Times(Lab):
    """A call has a time if handing it over takes at most a tenth of it: 3 ms of the shortest here, and three times as much with each try."""

    def setUp(self):
        super().setUp()
        self.files, = {self.with_longer_calls(file).parent for file in FILES.glob("*.py")}

    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}

    def of(self, file, *names, inputs="cases", reference=None):
        mine = [word for name in names for word in ("--mine", f"{name}={self.files / file}.py:{name}")]
        reference = reference or f"{file}.py:reference"
        return (*mine, "--reference", f"{self.files}/{reference}", "--inputs", f"{self.files}/{reference.partition(':')[0]}:{inputs}")

    def comparison(self, *arguments, expect):
        [one] = [line for line in self.lines("compare", *arguments, *SHORT, expect=expect) if line.get("type") == "comparison"]
        return one


class HandingOver(Times):
    """A call's time that is mostly the lab's own."""

    def test_no_verdict_is_made_of_it(self):
        one = self.comparison("A:impl=us_7", "B:impl=empty", *self.of("lengths", "us_7", "empty"), expect=5)
        self.assertEqual((one["verdict"], one["reason_code"]), ("incomparable", "under_resolution"), one)
        self.assertEqual((one["seconds_a"], one["seconds_b"], one["log_ratio"]), (None, None, None))
        self.assertEqual(self.sql("SELECT count(*) FROM comparison_block"), [(0,)])
        self.assertEqual(self.sql("SELECT DISTINCT facts ->> '$.reason_code' FROM comparison"), [("under_resolution",)])

    def test_run_tells_no_time_and_stores_none_under_that_name(self):
        lines = self.lines("run", "function", "--impl", "us_7", *self.of("lengths", "us_7"), "--protocol", "quick", expect=5)
        [one] = attempts(lines)
        self.assertEqual((one["status"], one["no_time"]), ("ok", "under_resolution"))
        self.assertFalse([name for name in one["metrics"] if name.startswith(("time", "tflops", "gbps"))])
        self.assertEqual(self.sql("SELECT count(*) FROM metric WHERE name LIKE 'time%' AND value IS NOT NULL"), [(0,)])
        self.assertEqual(self.sql("SELECT name FROM series ORDER BY 1"), [("time_under_resolution",)])
        handover = json.loads(self.sql("SELECT facts -> '$.handover' FROM v_attempt")[0][0])
        self.assertGreater(handover["empty_calls"], 8)
        self.assertGreater(handover["share"], 0.1)

    @asked_again
    def test_neither_claim_nor_gate_makes_anything_of_it(self):
        told = self.json("claim", "empty >= 2 x us_7", *self.of("lengths", "us_7", "empty"), "-o", "x.claim", *SHORT, expect=5)
        self.assertEqual((told["verdict"], told["reason_code"], told["file"]), ("unclear", "under_resolution", None))
        self.assertFalse((self.folder / "x.claim").exists())
        mine = self.folder / "mine.py"
        mine.write_text(f"import time\ndef me(x):\n    time.sleep({0.03 * self.longer})\n    return x * 2.0\n")
        files = ("--mine", f"me={mine}:me", *self.of("lengths"))
        self.lines("run", "function", "--impl", "me", *files, *SHORT, expect=0)
        self.syslab("pin", "before", "latest")
        mine.write_text("def me(x):\n    return x * 2.0\n")
        [gated] = [line for line in self.lines("gate", "--against", "before", "--launches", "3", expect=5)
                   if line.get("type") == "comparison"]
        self.assertEqual((gated["verdict"], gated["reason_code"]), ("incomparable", "under_resolution"), gated)

    @asked_again
    def test_a_pin_without_a_time_says_so(self):
        mine = self.of("lengths", "us_7", "ms_30")
        self.lines("run", "function", "--impl", "us_7", *mine, *SHORT, expect=5)
        refused = self.syslab("gate", "--against", "latest", "--launches", "3", expect=2).stderr
        self.assertIn("holds no time of 1 case; expected one to compare with. function us_7", refused)
        self.assertRegex(refused, "not measured: in the pinned run it is too short to time: "
                                  "handing over a call (and copying its results )?takes up to")
        self.assertNotIn("fewer than 3 launches", refused)
        self.lines("run", "function", "--impl", "us_7", "--impl", "ms_30", *mine, *SHORT, expect=5)
        found = [line for line in self.lines("gate", "--against", "latest", "--launches", "3", "--delta", "900%", expect=5)
                 if line.get("type") == "comparison"]
        told = {line["case"].split()[1]: (line["verdict"], line["reason_code"]) for line in found}
        self.assertEqual(told, {"us_7": ("incomparable", "under_resolution"), "ms_30": ("same", "none")})

    @asked_again
    def test_a_call_that_takes_much_longer_has_its_time(self):
        one = self.comparison("A:impl=ms_30", "B:impl=ms_20", *self.of("lengths", "ms_30", "ms_20"), expect=0)
        self.assertEqual((one["verdict"], one["reason_code"], one["warnings"]), ("faster", "none", []), one)
        self.assertAlmostEqual(one["seconds_b"] / one["seconds_a"], 2 / 3, delta=0.1)

    def test_a_class_and_a_library_that_compute_next_to_nothing_have_none_either(self):
        case = ("-a", "rows=1", "-a", "dim=1", "-a", "pass=forward", "-a", "dtype=fp32", "--laws", "none", "--device", "cpu", "--protocol", "quick", "--impl", "me")
        for mine in (f"{os.environ['SYSLAB_MINE']}/plain.py:WeightedSum", f"{os.environ['SYSLAB_PLUGINS']}/operators.so"):
            with self.subTest(mine):
                [one] = attempts(self.lines("run", "weighted_sum", *case, "--mine", f"me={mine}", expect=5))
                self.assertEqual((one["status"], one.get("no_time")), ("ok", "under_resolution"))
        self.assertEqual(self.sql("SELECT count(*) FROM metric WHERE name LIKE 'time%' AND value IS NOT NULL"), [(0,)])
        shares = [json.loads(facts)["share"] for facts, in self.sql("SELECT facts -> '$.handover' FROM v_attempt")]
        self.assertEqual(len(shares), 2)
        self.assertGreater(min(shares), 0.1)


class Warnings(Times):
    """What may make a side look faster than it is stands beside the verdict, and in the claim."""

    def codes(self, comparison):
        return {(one["code"], one.get("about")) for one in comparison["warnings"]}

    def against_reference(self, file, name, expect=0, **options):
        found = self.comparison("A:impl=reference", f"B:impl={name}", *self.of(file, name, **options), expect=expect)
        self.assertEqual(found["verdict"], "faster", found)
        return found

    @asked_again
    def test_arguments_that_repeat(self):
        found = self.against_reference("contents", "remembers", inputs="repeating")
        self.assertEqual(self.codes(found), {("arguments_repeat", "x")})
        self.assertGreater(found["warnings"][0]["number"], 0.5)

    @asked_again
    def test_rows_that_are_equal(self):
        self.assertEqual(self.codes(self.against_reference("contents", "first_row", inputs="equal_rows")), {("rows_equal", "x")})

    @asked_again
    def test_few_rows_that_are_new(self):
        found = self.against_reference("contents", "changed_rows", inputs="few_new_rows")
        self.assertEqual(self.codes(found), {("arguments_repeat", "x")})

    @asked_again
    def test_new_arguments_let_none_of_them_gain_and_are_not_warned_of(self):
        for name in ("remembers", "first_row", "changed_rows"):
            with self.subTest(name):
                found = self.comparison("A:impl=reference", f"B:impl={name}", *self.of("contents", name, inputs="honest"), expect=None)
                self.assertEqual(found["warnings"], [])
                self.assertLess(found["seconds_a"] / found["seconds_b"], 1.2, found)

    @asked_again
    def test_a_reference_that_loads_what_it_judges(self):
        found = self.against_reference("patches", "fast", reference="follows.py:reference")
        self.assertEqual(self.codes(found), {("reference_shares_code", "patches.py"), ("library_patched", "numpy.exp")})

    @asked_again
    def test_a_module_that_both_import_and_that_neither_process_tells(self):
        found = self.against_reference("denies", "fast", reference="apart.py:reference")
        self.assertEqual(self.codes(found), {("reference_shares_code", "shared.py")})

    @asked_again
    def test_work_of_a_pass_back_in_the_untimed_forward_call(self):
        found = self.comparison("A:impl=reference", "B:impl=Early", "-a", "pass=backward",
                                *self.of("gradients", "Early", reference="gradients.py:Honest"), expect=0)
        self.assertEqual({(one["code"], one["side"]) for one in found["warnings"]}, {("forward_untimed", "Early")}, found)
        self.assertAlmostEqual(found["warnings"][0]["number"], 0.06 * self.longer, delta=0.03 * self.longer)

    @asked_again
    def test_a_claim_holds_them_and_its_page_shows_them(self):
        shown = self.syslab("claim", "first_row >= 1.2 x reference", *self.of("contents", "first_row", inputs="equal_rows"), "-o", "x.claim", *SHORT)
        claim = json.loads((self.folder / "x.claim").read_text())
        self.assertEqual([one["code"] for one in claim["cases"][0]["warnings"]], ["rows_equal"])
        self.assertIn("warning: ", shown.stdout)
        self.assertIn("rows of argument 'x'", self.syslab("report", "x.claim").stdout)

    def test_no_file_can_tell_which_side_it_is(self):
        lines = self.lines("check", "function", "--impl", "one_side,other_side", *self.of("lengths", "one_side", "other_side"), expect=None)
        seen = [one["detail"].partition("it sees ")[2][:64] for one in attempts(lines)]
        self.assertEqual(len(seen), 2)
        self.assertEqual(len(seen[0]), 64, seen)
        self.assertEqual(seen[0], seen[1])


if __name__ == "__main__":
    unittest.main()
